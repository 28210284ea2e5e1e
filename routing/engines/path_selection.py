"""Select shortest paths that fit into few layers, by one of several rules."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import Balanced, Targets, balance
from routing._kernels.symmetric_paths import LinkBundles, spread_over_parallel_links, symmetric_paths
from routing.engines.base import EngineOptions, Objective
from routing.engines.destinations import Destinations, inverse_capacity
from routing.engines.effort import refinement_passes
from routing.engines.minhop import NEW_CHANNEL_COST
from routing.engines.torus_dimensions import directions
from routing.engines.torus_rings import Rings
from routing.fabric import Fabric

DIRECTED, RING_SYMMETRIC = "directed", "ringed"
"""Names of two path sets of grids and tori.

``DIRECTED``: paths that use one dimension after the other (:meth:`PathSelector.dimension_ordered`).
``RING_SYMMETRIC``: such paths in tori, where a path and its reply path use the same side of each ring
(:meth:`PathSelector.ring_symmetric`).  They fit into the layers of :class:`~routing.engines.torus_rings.Rings`.
"""

FIRST_FOUND = "first"
"""Name of the path set that :meth:`PathSelector.first_found` returns."""

MIRROR_PASSES = 4
"""Number of passes after the first for symmetric paths.  More passes changed nothing in measurements."""

TRANSIT_FLOW = 0.01
"""Flow of a switch without end ports in the computation of symmetric paths, relative to the mean flow of the other
switches.

The flow is not 0, so that the paths of such switches are spread over the channels too.
"""


@dataclass(frozen=True, eq=False)
class PathSet:
    """A tree of shortest paths for every destination.

    Attributes
    ----------
    name
        Name of the rule that selected the paths.
    next_channel
        uint8[D, S], index of the selected channel among the channels of the switch, 255 for none.
    load
        float64[C], flow on each channel.
    max_utilisation
        Highest utilisation of a channel (load over capacity).
    bound
        Lower bound of ``max_utilisation`` for any shortest paths: the mean utilisation of all channels.  The mean does
        not depend on the choice of the shortest paths, because their total number of hops is fixed.  In grids and tori,
        the number of hops in each direction is fixed, too.  There the bound is the highest mean utilisation of a
        direction (an estimate if links are missing).
    """

    name: str
    next_channel: npt.NDArray[np.uint8]
    load: npt.NDArray[np.float64]
    max_utilisation: float
    bound: float


@dataclass(frozen=True, eq=False)
class PathSelector:
    """Selection of shortest paths.  With every method, the paths balance the load.  The methods differ in the other
    properties of the paths.
    """

    fabric: Fabric
    destinations: Destinations
    options: EngineOptions

    @cached_property
    def inverse_capacity(self) -> npt.NDArray[np.float64]:
        """Inverse capacity of each channel, float64[C]."""
        return inverse_capacity(self.fabric, self.options.link_weights)

    @cached_property
    def sources(self) -> npt.NDArray[np.float64]:
        """Traffic that the end ports of each switch send, float64[S]: the number of end ports if all weights are 1."""
        return self.fabric.source_weight_at.astype(np.float64)

    @cached_property
    def any_shortest(self) -> PathSet:
        """Balanced shortest paths without further restrictions, as in MinHop."""
        return self._balanced("free", None, refinement_passes(self.fabric, self.options))

    @cached_property
    def rank(self) -> npt.NDArray[np.int32] | None:
        """Rank of the direction of each channel in dimension order, int32[C]; None without directions.

        Grids, tori and hypercubes have directions.  The direction with the highest mean utilisation has rank 0.
        """
        direction = directions(self.fabric)
        if direction is None:
            return None
        count = int(direction.max()) + 1
        load = self._load_between_switches(direction) * self.inverse_capacity
        full = np.bincount(direction, load, count) / np.bincount(direction, minlength=count)
        rank = np.empty(count, np.int32)
        rank[np.argsort(-np.round(full, 6), kind="stable")] = np.arange(count)
        return rank[direction]

    @cached_property
    def rings(self) -> Rings | None:
        """The rings of a torus; None if the fabric has no rings."""
        return None if self.rank is None else Rings.of(self.fabric, self.rank)

    def dimension_ordered(self) -> PathSet | None:
        """Return paths of grids, tori and hypercubes that use one dimension after the other.  None if the fabric has no
        dimensions.

        On such paths, only dependencies along rings can close a cycle.  The most loaded dimension comes first, because
        flows are small and easy to balance at the beginning of their paths.
        """
        if self.rank is None:
            return None
        return self._balanced(DIRECTED, self.rank, refinement_passes(self.fabric, self.options))

    def by_rank(self, name: str, rank: npt.NDArray[np.int32], *, rank_from: int) -> PathSet:
        """Return shortest paths that use channels of low rank first; ``rank`` (int32[C]) is the rank of each channel.

        The rule applies to switches at least ``rank_from`` hops before the destination.  Such a switch considers the
        channels that lead nearer to the destination, and uses only those with the lowest rank.  Switches nearer to the
        destination use channels of any rank.
        """
        return self._balanced(name, rank, refinement_passes(self.fabric, self.options), rank_from)

    def ring_symmetric(self, rings: Rings) -> PathSet:
        """Return dimension-ordered paths where request and reply paths use the same side of each ring."""
        bundles = LinkBundles.between_switches(self.fabric.channels, self.inverse_capacity)
        following, load = self._spread(bundles, rings.hops(self.fabric, bundles))
        return self._path_set(RING_SYMMETRIC, following, load, rings.rank)

    def _load_between_switches(self, rank: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """Return float64[C], the all-to-all load of each channel with balanced shortest paths.  There is one tree for
        each switch with end ports.
        """
        root = np.flatnonzero(self.sources).astype(np.int32)
        return self._trees(Targets.single(root, self.sources[root]), rank, 0).load

    @cached_property
    def symmetric(self) -> PathSet:
        """Paths in which all end ports of two switches share one path, and the reply path is its reverse.

        If a dependency closes no cycle in a layer, the reverse dependency usually closes no cycle either.  So a path
        together with its reply path restricts a layer little more than the path alone.
        """
        sources = self.sources
        flowing = np.where(sources > 0.0, sources, TRANSIT_FLOW * sources[sources > 0.0].mean())
        bundles = LinkBundles.between_switches(self.fabric.channels, self.inverse_capacity)
        hop, _, _ = symmetric_paths(bundles, flowing, passes=MIRROR_PASSES, seed=self.options.seed)
        following, load = self._spread(bundles, hop)
        return self._path_set("mirrored", following, load)

    def first_found(self) -> PathSet:
        """Return shortest paths as a breadth-first search finds them: each switch sends to the first of its neighbours
        that are nearer to the destination.

        The published LASH uses these paths.  The paths share far more CDG edges than balanced paths, so they need fewer
        layers.  The load is balanced over parallel links only.
        """
        bundles = LinkBundles.between_switches(self.fabric.channels, self.inverse_capacity)
        distance = np.asarray(self.fabric.graph.distances(mode="out"), np.float32)
        hop = np.full((self.fabric.switches, self.fabric.switches), 255, np.uint8)
        for switch in range(self.fabric.switches):
            neighbours = bundles.dst[bundles.first[switch] : bundles.first[switch + 1]]
            if len(neighbours):
                nearer = (distance[neighbours] + 1 == distance[switch]) & np.isfinite(distance[switch])
                hop[:, switch] = np.where(nearer.any(axis=0), nearer.argmax(axis=0), 255)
        following, load = self._spread(bundles, hop)
        return self._path_set(FIRST_FOUND, following, load)

    def _spread(
        self, bundles: LinkBundles, hop: npt.NDArray[np.uint8]
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float64]]:
        targets, channels = self.destinations, self.fabric.channels
        return spread_over_parallel_links(
            channels, bundles, self.inverse_capacity, self.sources, root=targets.root, share=targets.share, hop=hop
        )

    def _balanced(self, name: str, rank: npt.NDArray[np.int32] | None, passes: int, rank_from: int = 0) -> PathSet:
        trees = self._trees(self.destinations.targets(), rank, passes, rank_from)
        return self._path_set(name, trees.next_channel, trees.load, rank)

    def _trees(self, targets: Targets, rank: npt.NDArray[np.int32] | None, passes: int, rank_from: int = 0) -> Balanced:
        bisection = self.options.objective is Objective.BISECTION
        return balance(
            self.fabric.channels, self.inverse_capacity, self.sources, targets, passes=passes, seed=self.options.seed,
            threads=self.options.threads, hop_cost=NEW_CHANNEL_COST if bisection else 0.0, bisection=bisection,
            rank=rank, rank_from=rank_from,
        )  # fmt: skip

    def _path_set(
        self,
        name: str,
        following: npt.NDArray[np.uint8],
        load: npt.NDArray[np.float64],
        direction: npt.NDArray[np.int32] | None = None,
    ) -> PathSet:
        max_utilisation = float((load * self.inverse_capacity).max(initial=0.0))
        part = np.zeros(len(load), np.int32) if direction is None else direction
        mean = np.bincount(part, load) / np.bincount(part, 1.0 / self.inverse_capacity)
        return PathSet(
            name, _lead_switches(self.destinations, following), load, max_utilisation, float(mean.max(initial=0.0))
        )


def _lead_switches(destinations: Destinations, following: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the trees of all LIDs, after each LID without traffic has got the tree of another LID.

    The other LID is the first LID with traffic that the same switch delivers.  If there is no such LID, the tree does
    not change.  So LIDs without traffic, such as the LID of a switch, add no further dependencies.
    """
    with_flow = np.flatnonzero(destinations.share > 0.0)
    roots, first = np.unique(destinations.root[with_flow], return_index=True)
    idle = np.flatnonzero(destinations.share == 0.0)
    idle = idle[np.isin(destinations.root[idle], roots)]
    was_routed = following.copy()
    was_routed[idle] = following[with_flow[first[np.searchsorted(roots, destinations.root[idle])]]]
    return was_routed
