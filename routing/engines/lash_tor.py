"""LASH-TOR: shortest paths in layers.  A path that fits into no layer changes to higher layers along its hops."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.layering import ChangingVls, changing_vls
from routing.engines.base import EngineOptions, Offers, Promise, refuse_unsupported
from routing.engines.destinations import Destinations, forwarding_tables
from routing.engines.dfsssp import layered_tables, tree_tables
from routing.engines.layer_seeds import LayerSeed, random_orders
from routing.engines.layered import LayerSearch
from routing.engines.path_selection import PathSelector, PathSet
from routing.engines.provenance import engine_tables
from routing.engines.uncounted import without_uncounted
from routing.engines.vl_assignment import most_vls
from routing.errors import NotEnoughVLs
from routing.fabric import Fabric
from routing.tables import Routing, identity_sl2vl

SLS = 16
"""Number of SLs of InfiniBand."""

VISITS_PER_SECOND = 25_000_000
"""Number of channels that the cycle searches of all attempts together may visit at effort 1.  These visits take about a
second on one core.
"""

LEAST_EFFORT = 1.0
"""The work limit is never lower than the work limit for this effort.  With a lower limit, the search could end before
it finds VLs on which the paths fit.
"""

ATTEMPTS = 6
"""Number of seeds with random switch orders that are tried for each number of VLs and each set of paths."""

FAIR = 1.03
"""To save VLs, paths may be taken whose highest utilisation is up to this factor times the lowest one that is known."""


class LashTor:
    """Shortest paths in layers, with an SL per pair of switches.  A path may change to the next layer at a switch.

    Notes
    -----
    After T. Skeie, O. Lysne, J. Flich, P. Lopez, A. Robles, J. Duato, "LASH-TOR: a generic transition-oriented routing
    algorithm", ICPADS 2004.  Pairs of switches are placed as in LASH.  If a pair fits into no layer, its paths begin in
    the first layer.  Before a hop whose dependency would close a cycle, a path moves to the next layer.  Differences:

    - In the published algorithm, switches know the VL of a packet.  An InfiniBand switch selects the next VL only by
      SL, in-port and out-port.  So all paths on an SL must agree in their changes of VL.  With V VLs, packets on the
      first V SLs keep their VL.  The remaining SLs are for paths that change their VL.
    - Both directions between two switches have one SL, and the CDG contains the dependencies of both.  So replies are
      safe.
    - The paths come from :mod:`routing.engines.lash`, and balance the load.
    - Paths change their VL only where that saves VLs, or where LASH needs more VLs than allowed.
    """

    name = "lash-tor"
    summary = "LASH with transitions to higher virtual lanes, which needs fewer of them; replies are safe"
    promise = Promise.DEADLOCK_FREE
    offers = Offers(options=("reversible",), needs_vls=True)

    @without_uncounted
    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`).

        Cost: the cost of LASH, and O(S^2 hops) for each attempt, with the searches for cycles.

        Raises
        ------
        NotEnoughVLs
            No paths were found that fit into the allowed VLs.
        """
        refuse_unsupported(self, options)
        start = time.perf_counter()
        minimal = options.vls == "min"
        have = most_vls(options)
        search = LayerSearch(fabric, Destinations.of(fabric), options, mutual=True)
        if search.is_tree_enough:
            return tree_tables(self, search, start)
        job = _Job.of(fabric, options)
        try:
            lash = search.run()
        except NotEnoughVLs:
            lash = None
        limit = FAIR * job.paths[0].max_utilisation * (1 + 1e-9)
        most = have
        if lash is not None and minimal:
            most = lash.layers.needed - (lash.max_utilisation <= limit)
        fits = lash is not None and lash.max_utilisation <= limit and not minimal
        found = None if fits else job.fewest(most, limit)
        if found is None and lash is None:  # Badly balanced paths are used only if nothing else fits.
            found = job.fewest(have, np.inf)
        if found is not None:
            return job.tables(self, *found, start)
        if lash is None:
            raise NotEnoughVLs(None, have)
        return layered_tables(self, fabric, options, lash, mutual=True, start=start)


ENGINE = LashTor()


@dataclass(eq=False)
class _Job:
    """Search for SLs of all pairs of switches.  A path may change to a higher VL at a switch.

    Attributes
    ----------
    selector
        Selects the paths; holds the fabric and the options.
    paths
        Candidate paths, the most balanced first.
    visits
        Channels that further attempts may visit.
    """

    selector: PathSelector
    paths: list[PathSet]
    visits: int

    @classmethod
    def of(cls, fabric: Fabric, options: EngineOptions) -> _Job:
        """Prepare the search for a fabric: compute all candidate paths."""
        selector = PathSelector(fabric, Destinations.of(fabric), options)
        found = [selector.any_shortest]
        if selector.sources.any():
            rings, directed = selector.rings, selector.dimension_ordered()
            found += [] if rings is None else [selector.ring_symmetric(rings)]
            found += [] if directed is None else [directed]
            found += [selector.symmetric]
        visits = round(VISITS_PER_SECOND * max(options.effort, LEAST_EFFORT))
        return cls(selector, sorted(found, key=lambda paths: round(paths.max_utilisation, 6)), visits)

    def fewest(self, most: int, limit: float) -> tuple[PathSet, ChangingVls, int] | None:
        """Search for the paths that need the fewest VLs.  Return the paths, their SLs and the number of VLs; None if
        more than ``most`` VLs are needed.

        A set of paths that loads some channel to a utilisation above ``limit`` is not considered.
        """
        best = None
        for vls in range(most, 1, -1):
            found = self.search(vls, limit)
            if found is None:
                break
            best = (*found, vls)
        return best

    def search(self, vls: int, limit: float) -> tuple[PathSet, ChangingVls] | None:
        """Return the first set of paths that fits into ``vls`` VLs, with its SLs; None if no set fits, or if the search
        reached its work limit.

        A set of paths that loads some channel to a utilisation above ``limit`` is not considered.
        """
        for paths in self.paths:
            if paths.max_utilisation > limit:
                break
            for seed in self._seeds(vls):
                if self.visits <= 0:
                    return None
                found = self._assign(paths, vls, seed)
                self.visits -= found.visited
                if not found.left:
                    return paths, found
        return None

    def _seeds(self, vls: int) -> Iterator[LayerSeed]:
        """Yield initial states (seeds) of the VLs.

        The first seed has no switch order.  The other seeds alternately have a random switch order for the first VL
        only, or a different random switch order for each VL.
        """
        fabric, seed = self.selector.fabric, self.selector.options.seed
        yield LayerSeed(None, None)
        for attempt in range(ATTEMPTS):
            yield random_orders(fabric, 1 if attempt % 2 == 0 else vls, seed + 1000 * attempt)

    def _assign(self, paths: PathSet, vls: int, seed: LayerSeed) -> ChangingVls:
        selector, fabric, options = self.selector, self.selector.fabric, self.selector.options
        return changing_vls(
            fabric.channels, selector.inverse_capacity, selector.sources, root=selector.destinations.root,
            share=selector.destinations.share, next_channel=paths.next_channel, load=paths.load,
            counted=fabric.terminals_at > 0, vls=vls, sls=SLS - options.first_vl, avoid=seed.avoid, order=seed.order,
            budget=self.visits, spare=self.visits // 10,
        )  # fmt: skip

    def tables(self, engine: LashTor, paths: PathSet, levels: ChangingVls, vls: int, start: float) -> Routing:
        """Return the tables with the given paths and SLs.  On some of the SLs, packets change their VL along the path.

        Parameters
        ----------
        engine
            The engine, whose name is recorded in the tables.
        paths
            The paths between all switches.
        levels
            The SL of each pair of switches, and the VL that packets on each SL use at each hop.
        vls
            Number of VLs that the paths use.
        start
            Time at which the engine began, in seconds.
        """
        fabric, options, destinations = self.selector.fabric, self.selector.options, self.selector.destinations
        first = options.first_vl
        sl = np.full((fabric.switches, len(fabric.lids)), first, np.uint8)
        sl[:, destinations.lid] = levels.sl[:, destinations.root] + first
        return engine_tables(
            engine, fabric, options, start, lft=forwarding_tables(fabric, destinations, paths.next_channel),
            tables={"sl": sl, "sl2vl": _sl2vl(fabric, levels, vls, first), "vls": first + vls}, vls_needed=vls,
            paths=paths.name, pairs_with_transitions=levels.changing, left_to_chance=levels.left_uncounted,
        )  # fmt: skip


def _sl2vl(fabric: Fabric, levels: ChangingVls, vls: int, first: int) -> npt.NDArray[np.uint8]:
    """Return uint8[S, P, P, 16], the VL of each SL by switch, in-port and out-port (see :class:`Routing`).

    ``first`` is the first VL that the engine may use.  VL 0 in ``levels`` becomes VL ``first``, and so on.  On an SL
    whose packets may change their VL, each path begins on VL ``first``.
    """
    ports = 1 + int(fabric.switch_ports.max(initial=0))
    row = identity_sl2vl(first + vls)
    row[first + vls : first + vls + len(levels.turn_vl)] = first
    table = np.tile(row, (fabric.switches, ports, ports, 1))
    channels = fabric.channels
    before, after = channels.edges.channels()
    in_port = channels.dst_port[before]
    for number, turn_vl in enumerate(levels.turn_vl):
        used = np.flatnonzero(turn_vl != 255)
        at, out = channels.src[after[used]], channels.port[after[used]]
        table[at, in_port[used], out, first + vls + number] = turn_vl[used] + first
    return table
