"""Event-driven simulation of a fabric with its routing tables: packets, buffers and credits.

:func:`routing.simulate.run.simulate` sets up a simulation.  See docs/simulation.md for the model.
"""
