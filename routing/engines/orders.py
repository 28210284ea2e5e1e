"""Orders of the switches for Up*/Down*: candidates, and the search for one that balances.

An order serves if every switch but the first of each connected part has a neighbour before it: then there is a way up
from everywhere to the first, and every pair has a way.  Two things follow that OpenSM's ranks do not give.  Several
roots (the top switches of a tree) are joined by a tree of links inside the order, so that even two roots reach each
other, while every path between leaves stays as it was.  And an order need not be breadth first.  If the next switch is
always the one with the most links to those before it (maximum cardinality search), each has many ways up and the
turning points are spread over the whole fabric: measured to carry two to four times the all-to-all of the best
breadth-first order off trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import Targets, balance
from routing._kernels.longest import longest_way
from routing._kernels.order import grow_order
from routing.engines.destinations import Destinations, slowness
from routing.fabric import Fabric

HOP_COST = 0.03
"""What a hop costs beside the load: enough to keep detours short where nothing is full."""

CLUSTERED_CANDIDATES = 12
MOST_STEPS = 400
"""Steps of one search that may look at LOOKS channels; fewer looks allow fewer steps, also where each is cheap."""

DUEL_PASSES = 3
"""Refinement passes before the changed order of a tree is held against the one it came from."""

LOOKS = 60_000_000
"""Channels that the search for an order may look at, at effort 1."""

LONGEST = 60
"""Hops that no way should exceed where an order can be had that keeps to it: OpenSM's SA follows a way for 63 hops, and
leaves path queries for longer ones without an answer."""

BETWEENNESS_UP_TO = 1_000_000
"""Switches times channels up to which the most central switch is worth computing exactly."""


def breadth_first(fabric: Fabric, roots: list[int]) -> npt.NDArray[np.int32]:
    """int32[S], position of each switch: the roots first, joined by shortest paths, then the others by distance."""
    joined = _join(fabric, roots)
    distance = np.asarray(fabric.graph.distances(source=roots, mode="out"), float).min(axis=0)
    distance[~np.isfinite(distance)] = fabric.switches
    key = distance + len(joined)
    key[joined] = np.arange(len(joined))
    return grow_order(fabric.channels, key, pull=0.0)


def _join(fabric: Fabric, roots: list[int]) -> list[int]:
    """The roots and the switches on one breadth-first tree that joins them, nearest the first root first."""
    if len(roots) == 1:
        return roots
    visited, _, parent = fabric.graph.bfs(roots[0], mode="out")
    joined = {roots[0]}
    for root in roots:
        if parent[root] == root and root != roots[0]:
            continue  # in another connected part, where it comes first by its distance 0
        switch = root
        while switch not in joined:
            joined.add(switch)
            switch = parent[switch]
    return [switch for switch in visited if switch in joined]


def top_switches(fabric: Fabric) -> list[int]:
    """Switches without end ports, farthest from all switches with end ports: the top of a tree, if it is one."""
    leaves = np.flatnonzero(fabric.terminals_at)
    if len(leaves) in (0, fabric.switches):
        return []
    height = _distance_to_nearest(fabric, leaves)
    reached = height[height < fabric.switches]
    top = np.flatnonzero(height == reached.max())
    inner = np.isin(fabric.channels.src, top) & np.isin(fabric.channels.dst, top)
    return [] if inner.any() else [int(switch) for switch in top]


def _distance_to_nearest(fabric: Fabric, switches: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """int64[S], hops to the nearest of these switches (S: none is reached)."""
    channels = fabric.channels
    distance = np.full(fabric.switches, fabric.switches, np.int64)
    distance[switches] = 0
    for hops in range(1, fabric.switches):
        found = channels.dst[(distance[channels.src] == hops - 1) & (distance[channels.dst] == fabric.switches)]
        if len(found) == 0:
            break
        distance[found] = hops
    return distance


def central_switch(fabric: Fabric) -> int:
    """The switch that most shortest paths cross; in big fabrics the one with the most channels."""
    if fabric.switches * len(fabric.channels) <= BETWEENNESS_UP_TO:
        # Rounded, since the last bits of the sum depend on the order of summation.
        return int(np.argmax(np.round(fabric.graph.betweenness(), 6)))
    return int(np.argmax(np.diff(fabric.channels.first)))


def candidates(fabric: Fabric, seed: int) -> Iterator[npt.NDArray[np.int32]]:
    """Orders worth trying: from the top of a tree, from the centre, and clustered ones with random ties."""
    tops = top_switches(fabric)
    if tops:
        yield breadth_first(fabric, tops)
    yield breadth_first(fabric, [central_switch(fabric)])
    rng = np.random.default_rng(seed)
    for _ in range(CLUSTERED_CANDIDATES):
        yield grow_order(fabric.channels, rng.random(fabric.switches), pull=1.0)


@dataclass(frozen=True, eq=False)
class OrderSearch:
    """Finds the order that balances best, by trying on a sample of the destinations.

    Attributes
    ----------
    fabric, destinations
        What is to be routed.
    looks
        Channels to look at in one search, about: the measure of its cost, the same on every machine.
    seed, threads
        Of the random choices; of the kernel.
    """

    fabric: Fabric
    destinations: Destinations
    looks: int
    seed: int
    threads: int

    def best(self, families: npt.NDArray[np.int64], searches: int = 1) -> npt.NDArray[np.int32]:
        """int32[S], the order that balances best towards these families (int64 rows), one of so many searches.

        All candidates are tried; with the looks that are left, the best one is changed step by step: a few switches
        move forward or back, and the change stays if it is no worse.  On trees the two are then compared once more,
        with all LIDs of a port and with refinement: steps fit an order to the accidents of a first lay as well, and on
        a whole tree to nothing else, which was measured to cost a fifth of its balance.
        """
        looks = self.looks // searches
        sample = self._sample(families, looks // (CLUSTERED_CANDIDATES + 2))
        tried = [(self._try(order, sample), order) for order in candidates(self.fabric, self.seed)]
        worst, first = min(tried, key=lambda scored: scored[0])
        order = first
        left = looks // max(self._looks_at(len(sample.root)), 1) - len(tried)
        rng = np.random.default_rng(self.seed)
        for _ in range(min(MOST_STEPS * looks // LOOKS, left)):
            changed = _step(self.fabric, order, rng)
            score = self._try(changed, sample)
            if score <= worst:
                worst, order = score, changed
        if not top_switches(self.fabric):
            return order
        whole = self._sample(families, looks // (CLUSTERED_CANDIDATES + 2), whole=True)
        return min((first, order), key=lambda finalist: self._try(finalist, whole, DUEL_PASSES))

    def for_layers(self, layer: npt.NDArray[np.int32], layers: int) -> npt.NDArray[np.int32]:
        """int32[layers, S], an order for each layer: the best for each, or the best for all of them if that is better.

        ``layer`` is the layer of each LID, int32[D].
        """
        first = self.destinations.family_first[:-1]
        with_flow = self.destinations.share[first] > 0.0
        shared = np.tile(self.best(np.flatnonzero(with_flow)), (layers, 1))
        if layers == 1:
            return shared
        own = [self.best(np.flatnonzero(with_flow & (layer[first] == number)), layers) for number in range(layers)]
        return min((shared, np.stack(own)), key=lambda orders: self._try(orders, self.destinations.targets(layer)))

    def _looks_at(self, trees: int) -> int:
        return 3 * trees * len(self.fabric.channels)

    def _sample(self, families: npt.NDArray[np.int64], looks: int, *, whole: bool = False) -> Targets:
        """As many of the families, evenly picked, as can be laid with so many looks; one LID of each, or all."""
        starts = self.destinations.family_first.astype(np.int64)
        sizes = np.diff(starts)[families] if whole else np.ones(len(families), np.int64)
        count = min(len(families), max(1, looks // max(self._looks_at(int(sizes.max(initial=1))), 1)))
        places = np.linspace(0, max(len(families) - 1, 0), count).round().astype(np.int64)
        first, sizes = starts[families[places]], sizes[places]
        ends = np.cumsum(sizes)
        lid = np.repeat(first - (ends - sizes), sizes) + np.arange(sizes.sum())
        return Targets(
            family_first=np.concatenate([[0], ends]).astype(np.int32),
            root=self.destinations.root[lid],
            share=np.repeat(1.0 / sizes, sizes),
            layer=np.zeros(len(lid), np.int32),
        )

    def _try(self, position: npt.NDArray[np.int32], targets: Targets, passes: int = 0) -> tuple[int, float]:
        """How far ways are too long, and the fullest channel's load over capacity: less of the first is better."""
        trees = balance(
            self.fabric.channels,
            slowness(self.fabric),
            self.fabric.terminals_at.astype(np.float64),
            targets,
            position=np.ascontiguousarray(np.atleast_2d(position)),
            passes=passes,
            seed=self.seed,
            threads=self.threads,
            hop_cost=HOP_COST,
        )
        long = 0
        if self.fabric.switches > LONGEST:
            long = max(0, longest_way(self.fabric.channels, trees.next_channel) - LONGEST)
        return long, float(trees.worst.min())


def _step(fabric: Fabric, order: npt.NDArray[np.int32], rng: np.random.Generator) -> npt.NDArray[np.int32]:
    """The order with a few neighbouring places moved elsewhere."""
    key = order.astype(np.float64)
    length = int(rng.integers(1, min(8, fabric.switches) + 1))
    start = int(rng.integers(0, fabric.switches - length + 1))
    moved = (order >= start) & (order < start + length)
    key[moved] += rng.uniform(-0.5, 0.5) * fabric.switches
    return grow_order(fabric.channels, key, pull=0.0)
