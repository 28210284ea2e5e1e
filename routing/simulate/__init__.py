"""Packets and credits: an event-driven simulation of a fabric with its tables.

:func:`routing.simulate.run.simulate` starts one; see docs/simulation.md for the model.
"""
