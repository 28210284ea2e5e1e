"""Compute forwarding tables for InfiniBand fabrics, and prove that the tables have no credit loop.

The data flow has three steps.  A reader (:mod:`routing.formats`) or a generator (:mod:`routing.topologies`) returns a
:class:`~routing.fabric.Fabric`.  An engine (:mod:`routing.engines`) computes a :class:`~routing.tables.Routing` for the
fabric.  :mod:`routing.deadlock` proves the routing free of credit loops.
"""

__version__ = "0.1.0"
