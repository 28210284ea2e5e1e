"""From a fabric to forwarding tables that are proven free of credit loops.

The way of the data: a source (:mod:`routing.formats`, :mod:`routing.topologies`) gives a
:class:`~routing.fabric.Fabric`; an engine (:mod:`routing.engines`) turns it into a
:class:`~routing.tables.Routing`; :mod:`routing.deadlock` proves it.
"""

__version__ = "0.1.0"
