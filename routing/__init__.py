"""Compute forwarding tables for a fabric that are proven free of credit loops.

Data flow: a source (:mod:`routing.formats`, :mod:`routing.topologies`) yields a :class:`~routing.fabric.Fabric`; an
engine (:mod:`routing.engines`) computes its :class:`~routing.tables.Routing`; :mod:`routing.deadlock` proves it.
"""

__version__ = "0.1.0"
