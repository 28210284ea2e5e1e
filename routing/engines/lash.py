"""LASH: shortest paths in layers, with one SL for both directions between two switches."""

from __future__ import annotations

from routing.engines.base import EngineOptions, Offers, Promise
from routing.engines.dfsssp import route_in_layers
from routing.engines.uncounted import without_uncounted
from routing.fabric import Fabric
from routing.tables import Routing


class Lash:
    """Layered shortest paths with an SL per pair of switches, so that replies are safe too.

    Notes
    -----
    After T. Skeie, O. Lysne, I. Theiss, "Layered shortest path (LASH) routing in irregular system area networks", IPDPS
    Workshops 2002.  Differences: the load is balanced over all parallel links and all LIDs, and paths are selected
    such that they need few layers (:mod:`routing.engines.path_selection`).
    """

    name = "lash"
    summary = "shortest paths, one virtual lane per pair of switches in both directions; replies are safe"
    promise = Promise.DEADLOCK_FREE
    offers = Offers(options=("partition", "reversible", "objective"), needs_vls=True, opensm_options=("lash_start_vl",))

    @without_uncounted
    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`)."""
        return route_in_layers(self, fabric, options, mutual=True)


ENGINE = Lash()
