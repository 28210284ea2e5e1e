"""Define the names with which another package can implement a routing engine for ibnue.

An engine is a class with a name, a summary, a promise (:class:`~routing.engines.base.Promise`: whether its tables are
always free of credit loops) and a method ``route``.  A package registers the class in the entry point group
``ibnue.engines``.  The names in ``__all__`` are stable.
"""

from routing.engines import ENGINES
from routing.engines.base import Engine, EngineOptions, Objective, Offers, Promise, offers_of, refuse_unsupported
from routing.fabric import NO_PORT, Channels, Fabric, LidTable
from routing.tables import Provenance, Routing, identity_sl2vl

__all__ = [
    "ENGINES",
    "NO_PORT",
    "Channels",
    "Engine",
    "EngineOptions",
    "Fabric",
    "LidTable",
    "Objective",
    "Offers",
    "Promise",
    "Provenance",
    "Routing",
    "identity_sl2vl",
    "offers_of",
    "refuse_unsupported",
]
