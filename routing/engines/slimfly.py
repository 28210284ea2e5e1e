"""Slim Fly and other fabrics of diameter two: balanced shortest paths, with one VL for the first hop and one for the
second.
"""

from __future__ import annotations

import time

import numpy as np

from routing.engines.base import EngineOptions, Objective, Offers, Promise, refuse_unsupported
from routing.engines.destinations import Destinations
from routing.engines.hop_classes import CLASSES, HopClasses, fallback, hop_routing
from routing.engines.path_selection import PathSelector
from routing.engines.uncounted import without_uncounted
from routing.errors import NotEnoughVLs, RoutingError
from routing.fabric import Fabric
from routing.tables import Routing

LEAST_NEAR = 0.5
"""Least share of the connected pairs of switches that must be at most two hops apart.  A fabric with a smaller share is
refused.
"""


class SlimFly:
    """Balanced shortest paths whose first hop uses one VL and whose second hop uses a second VL.

    Notes
    -----
    After M. Besta, T. Hoefler, "Slim Fly: a cost effective low-diameter network topology", SC 2014, whose minimal
    routing needs two VLs.  SL2VL distinguishes the hops: a packet that comes from a CA is at its first hop, and a
    packet that comes from another switch is at its second hop.  Differences:

    - Any fabric of diameter two is possible, such as a HyperX of two dimensions.
    - The load is balanced over all shortest paths, parallel links and all LIDs.
    - Where links are missing, some paths are longer.  A longer path keeps one VL on all hops, on which its dependencies
      close no cycle.  If too many links are missing, all paths keep one VL, as in LASH.
    - If there are more VLs than needed, several pairs of VLs are used.
    """

    name = "slimfly"
    summary = "balanced shortest paths on fabrics of diameter two, on two virtual lanes; replies are safe"
    promise = Promise.DEADLOCK_FREE
    offers = Offers(options=("reversible", "objective"), needs_vls=True)

    @without_uncounted
    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`).

        Cost: the cost of balanced shortest paths, and cycle searches for pairs of switches that are more than two hops
        apart.

        Raises
        ------
        RoutingError
            Most switches are more than two hops apart.
        NotEnoughVLs
            The paths do not fit into the allowed VLs.
        """
        refuse_unsupported(self, options)
        start = time.perf_counter()
        near = _share_within_two_hops(fabric)
        if near < LEAST_NEAR:
            raise RoutingError(
                f"only {100 * near:.0f} % of the pairs of switches are within two hops, and slimfly serves fabrics of "
                "diameter two (use another engine, such as nue)"
            )
        destinations = Destinations.of(fabric)
        selector = PathSelector(fabric, destinations, options)
        directed = selector.dimension_ordered() if options.objective is Objective.ALLTOALL else None
        found = selector.any_shortest
        if directed is not None and directed.max_utilisation < found.max_utilisation:
            found = directed
        paths = HopClasses(fabric, destinations, found.next_channel, np.ones(len(fabric.channels), np.bool_))
        try:
            return hop_routing(self, paths, options, start, rule=found.name)
        except NotEnoughVLs:
            return fallback(self, fabric, options)


ENGINE = SlimFly()


def _share_within_two_hops(fabric: Fabric) -> float:
    """Return the share of connected pairs of switches that are at most two hops apart; 1 if there are no pairs."""
    distance = np.asarray(fabric.graph.distances(mode="out")).reshape(fabric.switches, fabric.switches)
    pairs = np.isfinite(distance) & (distance > 0)
    return float((distance[pairs] <= CLASSES).mean()) if pairs.any() else 1.0
