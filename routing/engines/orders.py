"""Orders of the switches for Up*/Down*: candidates, and the search for an order that balances the load.

An order is valid if every switch except the first of each connected component has a neighbour before it.  Then every
switch has a path up to the first switch, and every pair has a path.  These orders differ from OpenSM's ranks in two
points.  First, if there are several roots (the top switches of a tree), switches that connect the roots come early in
the order.  So even two roots reach each other, while every path between leaves stays the same.

Second, an order need not be breadth first.  In maximum cardinality search, the next switch is always the switch with
the most links to the switches before it.  Each switch then has many paths up, and the points where paths turn down are
spread over the whole fabric.  On fabrics other than trees, such orders were measured to carry two to four times the
all-to-all traffic of the best breadth-first order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import Balanced, Targets, balance
from routing._kernels.longest_path import longest_path
from routing._kernels.order import build_order
from routing.engines.destinations import Destinations, inverse_capacity
from routing.engines.effort import has_unique_paths, visits_per_tree
from routing.fabric import Fabric
from routing.trees.levels import distances

HOP_COST = 0.03
"""Cost of each hop of a path, in addition to the cost of the load on its channels.  The cost is small: it matters only
where the utilisation is low, and keeps paths from long detours there.
"""

CLUSTERED_CANDIDATES = 12
MOST_STEPS = 400
"""Maximum number of steps of the local search for a switch order if its work limit is ``VISITS_PER_SECOND``, as with
effort 1.  With another work limit, the maximum is higher or lower in proportion.
"""

DUEL_PASSES = 3
"""Number of refinement passes in the last comparison of orders of a tree's switches (:meth:`OrderSearch.best`)."""

VISITS_PER_SECOND = 60_000_000
"""Number of channels that the search for an order may visit at effort 1.  These visits take about a second on one core.
"""

LONGEST = 60
"""Desired maximum number of hops of a path.  An order with longer paths is used only if no better order is found.

OpenSM's SA follows a path for 63 hops and does not answer path queries for longer paths.
"""

BETWEENNESS_UP_TO = 1_000_000
"""Largest product of the numbers of switches and channels for which the most central switch is computed exactly."""


def breadth_first(fabric: Fabric, roots: list[int]) -> npt.NDArray[np.int32]:
    """Return int32[S], positions of the switches in a breadth-first order.

    The roots come first, together with the switches of shortest paths between them.  All other switches follow by their
    distance from these switches.
    """
    joined = _join(fabric, roots)
    distance = np.asarray(fabric.graph.distances(source=roots, mode="out"), float).min(axis=0)
    distance[~np.isfinite(distance)] = fabric.switches
    key = distance + len(joined)
    key[joined] = np.arange(len(joined))
    return build_order(fabric.channels, key, pull=0.0)


def _join(fabric: Fabric, roots: list[int]) -> list[int]:
    """Return the first root, other roots, and the switches that connect these roots to the first root.

    The connecting switches are on shortest paths to the first root, in a breadth-first tree.  Switches near the first
    root come first, in the result and in the order of the switches.

    A path must not lead down and then up in the order.  So if two switches come before a root, no path between them may
    lead over this root.  Therefore only few switches should come before roots: a switch becomes a connecting switch
    only if it connects at least half of the roots that are its neighbours.  Roots that stay unconnected, such as a top
    switch that has lost a link, are not in the result.  In the order, an unconnected root comes after the first of its
    neighbours.
    """
    if len(roots) == 1:
        return roots
    visited, _, parent = fabric.graph.bfs(roots[0], mode="out")
    is_root = np.zeros(fabric.switches, bool)
    is_root[roots] = True
    # The breadth-first search from the first root does not visit other connected components.  Roots in other components
    # need no path to the first root.  Such roots come early in the order, because their distance to a root is 0.
    paths = [_path_to_first(parent, root, roots[0]) for root in visited[1:] if is_root[root]]
    channels = fabric.channels
    links = np.unique(channels.src.astype(np.int64) * fabric.switches + channels.dst)
    beside = np.bincount(links // fabric.switches, is_root[links % fabric.switches], fabric.switches)
    joins = np.bincount([path[1] for path in paths], minlength=fabric.switches)
    joined = {roots[0]}
    for path in paths:
        if is_root[path[1]] or 2 * (joins[path[1]] + 1) >= beside[path[1]]:
            joined.update(path)
    return [switch for switch in visited if switch in joined]


def _path_to_first(parent: list[int], root: int, first: int) -> list[int]:
    """Return the switches on the path from ``root`` to ``first`` in the breadth-first tree that begins at ``first``."""
    path = [root]
    while path[-1] != first:
        path.append(parent[path[-1]])
    return path


def top_switches(fabric: Fabric) -> list[int]:
    """Return the top switches of a tree: the switches farthest from all switches with end ports.

    The list is empty if two of these switches are neighbours, if all switches have end ports, or if no switch has end
    ports.
    """
    leaves = np.flatnonzero(fabric.senders_at)
    if len(leaves) in (0, fabric.switches):
        return []
    height = distances(fabric, fabric.senders_at > 0)
    height[~np.isin(fabric.component, fabric.component[leaves])] = -1
    top = np.flatnonzero(height == height.max())
    inner = np.isin(fabric.channels.src, top) & np.isin(fabric.channels.dst, top)
    return [] if inner.any() else [int(switch) for switch in top]


def central_switch(fabric: Fabric) -> int:
    """Return the switch that is on the most shortest paths; in large fabrics, the switch with the most channels."""
    if fabric.switches * len(fabric.channels) <= BETWEENNESS_UP_TO:
        # Numbers of paths are rounded, because their last bits depend on the order of summation.
        return int(np.argmax(np.round(fabric.graph.betweenness(), 6)))
    return int(np.argmax(np.diff(fabric.channels.first)))


def candidates(fabric: Fabric, seed: int) -> Iterator[npt.NDArray[np.int32]]:
    """Yield candidate orders: breadth-first from the top of a tree and from the centre, and maximum cardinality search
    with random ties.
    """
    tops = top_switches(fabric)
    if tops:
        yield breadth_first(fabric, tops)
    yield breadth_first(fabric, [central_switch(fabric)])
    rng = np.random.default_rng(seed)
    for _ in range(CLUSTERED_CANDIDATES):
        yield build_order(fabric.channels, rng.random(fabric.switches), pull=1.0)


@dataclass(frozen=True, eq=False)
class OrderSearch:
    """Search for the switch order with the best balance.  Most methods compute the balance for a sample of the
    destinations only.

    Attributes
    ----------
    fabric, destinations
        The fabric to route, and its destinations.
    visits
        Work limit of one search in channel visits (approximate), which is the same on every machine.
    seed, threads
        Seed of the random choices; worker threads of the kernel.
    """

    fabric: Fabric
    destinations: Destinations
    visits: int
    seed: int
    threads: int

    def best(self, lmc_groups: npt.NDArray[np.int64], searches: int = 1) -> npt.NDArray[np.int32]:
        """Return int32[S], the order with the best balance towards the given LMC groups (``lmc_groups``: int64, numbers
        of groups in ``destinations``).

        If there is only one path between any two switches, the first candidate is returned.  Otherwise all candidates
        are tried.  A local search from the best candidate uses the rest of the work limit.  Each of its steps moves a
        few switches forward or back in the order, and is kept if the balance is not worse.  ``searches`` is the number
        of searches that share the work limit.

        On trees, the order from the local search is then compared with the breadth-first order and with the best
        candidate.  This comparison uses all LIDs of a port and refinement passes.  It is necessary because the local
        search has no refinement passes, and so may only adapt the order to random choices of the first pass.  In
        measurements on trees without faults, the local search only adapted the order to such choices, and the balance
        became worse by a fifth.
        """
        if has_unique_paths(self.fabric):
            return next(candidates(self.fabric, self.seed))
        visits = self.visits // searches
        sample = self._sample(lmc_groups, visits // (CLUSTERED_CANDIDATES + 2))
        tried = [(self._try(order, sample), order) for order in candidates(self.fabric, self.seed)]
        max_utilisation, first = min(tried, key=lambda scored: scored[0])
        order = first
        left = visits // (visits_per_tree(self.fabric) * max(len(sample.root), 1)) - len(tried)
        rng = np.random.default_rng(self.seed)
        for _ in range(min(MOST_STEPS * visits // VISITS_PER_SECOND, left)):
            changed = _step(self.fabric, order, rng)
            score = self._try(changed, sample)
            if score <= max_utilisation:
                max_utilisation, order = score, changed
        if not top_switches(self.fabric):
            return order
        whole = self._sample(lmc_groups, visits // (CLUSTERED_CANDIDATES + 2), whole=True)
        # The breadth-first order of the tree is compared again even if it was not the best candidate, because the first
        # sample of the destinations may underrate this order.
        return min((tried[0][1], first, order), key=lambda finalist: self._try(finalist, whole, DUEL_PASSES))

    def pick(self, orders: Sequence[npt.NDArray[np.int32]]) -> npt.NDArray[np.int32]:
        """Return the order whose paths to a sample of the destinations are balanced best.

        ``orders`` has one array int32[S] for each order: the positions of the switches.
        """
        if len(orders) == 1:
            return orders[0]
        sample = self.sample(len(orders))
        return min(orders, key=lambda order: self._try(order, sample))

    def sample(self, tries: int) -> Targets:
        """Return a sample of evenly spaced destinations.  The sample is so small that its trees can be computed
        ``tries`` times within the work limit.
        """
        with_flow = np.flatnonzero(self.destinations.share[self.destinations.lmc_group_first[:-1]] > 0.0)
        return self._sample(with_flow, self.visits // max(tries, 1))

    def rate(self, position: npt.NDArray[np.int32], layer: npt.NDArray[np.int32]) -> tuple[int, float]:
        """Rate the orders of several layers (int32[layers, S]) by their balance.  The result is a tuple; the smaller
        tuple is better.

        ``layer`` is the layer of each destination, int32[D].
        """
        return self._try(position, self.destinations.targets(layer))

    def for_layers(self, layer: npt.NDArray[np.int32], layers: int) -> npt.NDArray[np.int32]:
        """Return int32[layers, S], an order for each layer.

        Each layer has its own order, or all layers have the same order if that balances better.  ``layer`` is the layer
        of each destination, int32[D].
        """
        first = self.destinations.lmc_group_first[:-1]
        with_flow = self.destinations.share[first] > 0.0
        shared = np.tile(self.best(np.flatnonzero(with_flow)), (layers, 1))
        if layers == 1:
            return shared
        own = [self.best(np.flatnonzero(with_flow & (layer[first] == number)), layers) for number in range(layers)]
        return min((shared, np.stack(own)), key=lambda orders: self._try(orders, self.destinations.targets(layer)))

    def _sample(self, lmc_groups: npt.NDArray[np.int64], visits: int, *, whole: bool = False) -> Targets:
        """Return a sample of evenly spaced LMC groups, out of the given LMC groups.  The trees to the sample can be
        computed within ``visits`` channel visits.

        The sample has one LID of each selected LMC group, or with ``whole`` all LIDs of the group.
        """
        starts = self.destinations.lmc_group_first.astype(np.int64)
        sizes = np.diff(starts)[lmc_groups] if whole else np.ones(len(lmc_groups), np.int64)
        count = min(len(lmc_groups), max(1, visits // (visits_per_tree(self.fabric) * int(sizes.max(initial=1)))))
        positions = np.linspace(0, max(len(lmc_groups) - 1, 0), count).round().astype(np.int64)
        first, sizes = starts[lmc_groups[positions]], sizes[positions]
        ends = np.cumsum(sizes)
        lid = np.repeat(first - (ends - sizes), sizes) + np.arange(sizes.sum())
        return Targets(
            lmc_group_first=np.concatenate([[0], ends]).astype(np.int32),
            root=self.destinations.root[lid],
            share=np.repeat(1.0 / sizes, sizes),
            layer=np.zeros(len(lid), np.int32),
        )

    def _try(self, position: npt.NDArray[np.int32], targets: Targets, passes: int = 0) -> tuple[int, float]:
        """Compute the trees to ``targets`` in an order of the switches, and rate them.  The result is a tuple; the
        smaller tuple is better.

        ``position`` (int32[S] or int32[layers, S]) is the position of each switch in the order, and ``passes`` the
        number of refinement passes.

        Returns
        -------
        long
            Hops by which the longest path exceeds ``LONGEST``.
        worst
            Highest utilisation of a channel (load over capacity).
        """
        trees = balance(
            self.fabric.channels, inverse_capacity(self.fabric), self.fabric.source_weight_at.astype(np.float64),
            targets, position=np.ascontiguousarray(np.atleast_2d(position)), passes=passes, seed=self.seed,
            threads=self.threads, hop_cost=HOP_COST,
        )  # fmt: skip
        return hops_too_many(self.fabric, trees), float(trees.max_utilisation.min())


def hops_too_many(fabric: Fabric, trees: Balanced) -> int:
    """Return the number of hops by which the longest path exceeds :data:`LONGEST`."""
    return max(0, longest_path(fabric.channels, trees.next_channel) - LONGEST) if fabric.switches > LONGEST else 0


def _step(fabric: Fabric, order: npt.NDArray[np.int32], rng: np.random.Generator) -> npt.NDArray[np.int32]:
    """Return the order after a few consecutive switches were moved forward or back at random."""
    key = order.astype(np.float64)
    length = int(rng.integers(1, min(8, fabric.switches) + 1))
    start = int(rng.integers(0, fabric.switches - length + 1))
    moved = (order >= start) & (order < start + length)
    key[moved] += rng.uniform(-0.5, 0.5) * fabric.switches
    return build_order(fabric.channels, key, pull=0.0)
