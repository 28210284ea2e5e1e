"""Event-driven simulation of a fabric with its routing tables, at the level of packets and credits.

:func:`routing.simulate.run.simulate` sets up a simulation; see docs/simulation.md for the model.
"""
