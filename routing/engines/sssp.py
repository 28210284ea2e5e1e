"""SSSP: shortest paths with the load balanced over all destinations together."""

from __future__ import annotations

import time

from routing._kernels.weighted import weighted
from routing.engines.base import EngineOptions, Objective, Offers, Promise, refuse_unsupported
from routing.engines.destinations import Destinations, forwarding_tables
from routing.engines.path_selection import PathSelector
from routing.engines.provenance import engine_tables
from routing.engines.uncounted import without_uncounted
from routing.engines.vl_assignment import round_robin_sls, vl_tables, vls_allowed
from routing.errors import OptionError
from routing.fabric import Fabric
from routing.tables import Routing


class SSSP:
    """Globally balanced shortest paths.

    Notes
    -----
    After T. Hoefler, T. Schneider, A. Lumsdaine, "Optimized routing for large-scale InfiniBand networks", HOTI 2009.
    If ``minimal`` is False, the engine uses the published rule, which takes longer paths where channels are highly
    loaded.  Otherwise it uses shortest paths only, with two differences.  A path is selected by its highest utilisation
    rather than by the sum of the loads, and the trees of all destinations are refined together.  In grids and tori,
    dimension-ordered paths are computed as well, and the better of the two results is kept.
    """

    name = "sssp"
    summary = "shortest paths balanced over all destinations together; may have credit loops off trees"
    promise = Promise.NONE
    offers = Offers(
        options=("minimal", "objective"),
        refusals={"reversible": ("cannot make replies safe", "use lash, or dfsssp with --reversible")},
    )

    @without_uncounted
    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`).

        Raises
        ------
        OptionError
            The engine does not support an option.
        """
        refuse_unsupported(self, options)
        if not options.minimal and (options.objective is not Objective.ALLTOALL or options.passes is not None):
            raise OptionError("the published rule has neither objective nor passes", remedy="leave them out")
        start = time.perf_counter()
        vls = 1 if options.vls == "auto" else vls_allowed(options)
        destinations = Destinations.of(fabric)
        maker = PathSelector(fabric, destinations, options)
        if options.minimal:
            dimension_ordered = maker.dimension_ordered() if options.objective is Objective.ALLTOALL else None
            candidates = [maker.any_shortest] + ([] if dimension_ordered is None else [dimension_ordered])
            best = min(candidates, key=lambda paths: paths.max_utilisation)
            name, next_channel = best.name, best.next_channel
        else:
            name = "published"
            trees = weighted(fabric.channels, maker.inverse_capacity, maker.sources, destinations.targets())
            next_channel = trees.next_channel
        tables = vl_tables(round_robin_sls(destinations, len(fabric.lids), vls), vls, options)
        lft = forwarding_tables(fabric, destinations, next_channel)
        return engine_tables(self, fabric, options, start, lft=lft, tables=tables, vls_needed=1, paths=name)


ENGINE = SSSP()
