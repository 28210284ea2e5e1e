"""MinHop: balanced shortest paths, which may form credit loops."""

from __future__ import annotations

import time

from routing.engines.base import EngineOptions, Objective, Offers, Promise, refuse_unsupported
from routing.engines.destinations import Destinations, balanced_trees, forwarding_tables
from routing.engines.effort import refinement_passes
from routing.engines.provenance import engine_tables
from routing.engines.uncounted import without_uncounted
from routing.engines.vl_assignment import round_robin_sls, vl_tables, vls_allowed
from routing.fabric import Fabric
from routing.tables import Routing

NEW_CHANNEL_COST = 0.1
"""Additional cost, for the objective bisection, of a channel that the destination's tree does not use yet.  With this
cost, the flow to a destination uses few channels.
"""


class MinHop:
    """Balanced shortest paths.

    Notes
    -----
    By default, one VL is used.  If the user requests several VLs, the destinations are spread over them.  This breaks
    some credit loops, but only by chance.
    """

    name = "minhop"
    summary = "balanced shortest paths; may have credit loops off trees"
    promise = Promise.NONE
    offers = Offers(options=("objective",))

    @without_uncounted
    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`).  Cost: O(L S hops radix) a pass."""
        refuse_unsupported(self, options)
        start = time.perf_counter()
        vls = 1 if options.vls == "auto" else vls_allowed(options)
        destinations = Destinations.of(fabric)
        bisection = options.objective is Objective.BISECTION
        trees = balanced_trees(
            fabric, options, destinations.targets(), passes=refinement_passes(fabric, options),
            hop_cost=NEW_CHANNEL_COST if bisection else 0.0, bisection=bisection,
        )  # fmt: skip
        tables = vl_tables(round_robin_sls(destinations, len(fabric.lids), vls), vls, options)
        lft = forwarding_tables(fabric, destinations, trees.next_channel)
        return engine_tables(self, fabric, options, start, lft=lft, tables=tables, vls_needed=1)


ENGINE = MinHop()
