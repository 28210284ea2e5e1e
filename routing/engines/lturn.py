"""L-turn routing: each channel has a direction in a spanning tree with two coordinates, and turns between some
directions are forbidden.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import AllowedTurns
from routing.engines.base import LONGER_PATHS, EngineOptions, Offers, Promise, refuse_unsupported
from routing.engines.destinations import Destinations
from routing.engines.orders import central_switch, top_switches
from routing.engines.roots import named_roots
from routing.engines.tree_paths import routing_of_tree
from routing.engines.turn_rules import TurnGraph, TurnTrial
from routing.engines.uncounted import without_uncounted
from routing.fabric import Fabric
from routing.tables import Routing

LEFT_UP, RIGHT_UP, LEFT_DOWN, RIGHT_DOWN = range(4)
"""Directions of a channel in a spanning tree.  Left leads to a switch with a lower number in preorder.  Up leads to a
switch with fewer hops to the root.  If both switches have equally many hops, a channel to the left leads up, and a
channel to the right leads down.
"""

PAIRS = ((LEFT_UP, RIGHT_UP), (LEFT_DOWN, RIGHT_DOWN), (LEFT_UP, LEFT_DOWN), (RIGHT_UP, RIGHT_DOWN))
"""Pairs of directions that share a coordinate.  Turns between the two directions of a pair close no cycle."""

ROOTS, TREES = 6, 3
"""Number of roots that are tried if no root is named, and number of spanning trees from each root."""


class LTurn:
    """L-turn routing with balanced paths.

    Notes
    -----
    After M. Koibuchi, A. Funahashi, A. Jouraku, H. Amano, "L-turn routing: an adaptive routing in irregular
    networks", ICPP 2001.  A breadth-first spanning tree gives each switch two coordinates: its number in preorder
    (left, right) and its hops to the root (up, down).  So each channel has one of four directions.  Turns between
    directions are forbidden such that no cycle is left.  The allowed turns are spread over the fabric, and do not
    gather around the root.  Differences:

    - The published routing forbids one fixed set of turns between directions.  Here several rules are tried: each is an
      order of the directions, and forbids turns to an earlier direction.  Two directions with a common coordinate, such
      as left-up and left-down, may share a place in the order.  Turns between them close no cycle, because every cycle
      leads both left and right, and both up and down.  Of all rules and several spanning trees, the combination with
      the best balance is used.
    - Forbidden turns that close no cycle are allowed again.
    - On a tree, if no root is named, paths lead up and then down by the levels of the tree
      (:mod:`routing.engines.tree_paths`).
    - The published routing is adaptive.  Here each LID has one next hop at each switch.
    """

    name = "lturn"
    summary = "L-turn routing: turns by two coordinates of a tree; free of credit loops on one VL"
    promise = Promise.DEADLOCK_FREE
    offers = Offers(
        options=("roots", "root_guid_file", "reversible"),
        refusals={"minimal": LONGER_PATHS},
        opensm_options=("root_guid_file",),
    )

    @without_uncounted
    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`).

        Cost: O(L S radix log C) per pass.  The cycle searches that find out which forbidden turns can be allowed again
        visit a limited number of channels.
        """
        refuse_unsupported(self, options)
        named = named_roots(fabric, options)
        if not named and (on_tree := routing_of_tree(self, fabric, options)) is not None:
            return on_tree
        start = time.perf_counter()
        roots = named or _roots(fabric, options.seed)
        rules = list(direction_orders())
        graph = TurnGraph.of_fabric(fabric)
        most = max(len(roots), 1) * TREES
        count = max(1, graph.trials(most * len(rules), options.effort) // len(rules))
        trial = TurnTrial(fabric, Destinations.of(fabric), options, count * len(rules))
        best: tuple[tuple[int, float], AllowedTurns, int] | None = None
        rng = np.random.default_rng(options.seed)
        for tree, root in list(product(range(TREES), roots or [0]))[:count]:
            key = rng.random(fabric.switches) if tree else np.arange(fabric.switches, dtype=np.float64)
            spanning, number, level = coordinates(graph, root, key)
            for rule in rules:
                turns = graph.complete(spanning, _forbidden(graph, directions(graph, number, level), rule))
                rating = trial.rate(turns)
                if best is None or rating < best[0]:
                    best = rating, turns, root
        assert best is not None
        label = fabric.labels[best[2]] if fabric.switches else None
        return trial.tables(self, best[1], start, {"root": label})


ENGINE = LTurn()


def _roots(fabric: Fabric, seed: int) -> list[int]:
    """Return roots to try: a top switch of a tree, the most central switch, and randomly chosen switches."""
    if fabric.switches == 0:
        return []
    drawn = np.random.default_rng(seed).permutation(fabric.switches)[:ROOTS].tolist()
    return list(dict.fromkeys([*top_switches(fabric)[:1], *drawn[:1], central_switch(fabric), *drawn[1:]]))[:ROOTS]


def direction_orders() -> Iterator[npt.NDArray[np.int64]]:
    """Yield int64[4], the rank of each direction: a turn to a direction of a lower rank is forbidden.

    Directions with equal rank share a coordinate, such as left-up and left-down.  So the turns between them close no
    cycle.  Left-up has a lower rank than right-down, because paths in the spanning tree take left-up first.  An order
    is left out if the turns that another order forbids are a subset of its forbidden turns.
    """
    for ranks in product(range(3), repeat=4):
        groups = [
            tuple(direction for direction in range(4) if ranks[direction] == rank) for rank in range(max(ranks) + 1)
        ]
        mixing = all(len(group) == 1 or group in PAIRS for group in groups)
        joint = any(
            len(one) == len(other) == 1 and tuple(sorted((*one, *other))) in PAIRS for one, other in pairwise(groups)
        )
        if mixing and not joint and ranks[LEFT_UP] < ranks[RIGHT_DOWN]:
            yield np.array(ranks, np.int64)


def coordinates(
    graph: TurnGraph, root: int, key: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return a breadth-first spanning tree, and the coordinates of the switches in it.

    Parameters
    ----------
    graph
        The bundles of the fabric.
    root
        The root in its connected component.  In each other component, the switch with the lowest number is the root.
    key
        float64[S]: the neighbours of a switch are visited in ascending order of their keys.

    Returns
    -------
    spanning
        int32[S], the bundle of each switch to its parent, -1 for a root.
    number, level
        int64[S] each: number in preorder, and hops to the root.
    """
    switches = graph.fabric.switches
    spanning = np.full(switches, -1, np.int32)
    number, level = np.zeros(switches, np.int64), np.zeros(switches, np.int64)
    children: list[list[int]] = [[] for _ in range(switches)]
    seen, count = [False] * switches, 0
    for top in [root, *range(switches)] if switches else []:
        if seen[top]:
            continue
        seen[top] = True
        queue = [top]
        for switch in queue:
            out = range(int(graph.first[switch]), int(graph.first[switch + 1]))
            for bundle in sorted(out, key=lambda bundle: key[graph.dst[bundle]]):
                neighbour = int(graph.dst[bundle])
                if not seen[neighbour]:
                    seen[neighbour] = True
                    spanning[neighbour], level[neighbour] = graph.reverse[bundle], level[switch] + 1
                    children[switch].append(neighbour)
                    queue.append(neighbour)
        stack = [top]
        while stack:
            switch = stack.pop()
            number[switch] = count
            count += 1
            stack += reversed(children[switch])
    return spanning, number, level


def directions(graph: TurnGraph, number: npt.NDArray[np.int64], level: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return int64[N], the direction of each bundle (``LEFT_UP`` to ``RIGHT_DOWN``).

    A channel between switches with equally many hops to the root leads up if it leads to the left.  So no cycle leads
    up only or down only.
    """
    left = number[graph.dst] < number[graph.src]
    rise = level[graph.src] - level[graph.dst]
    up = (rise > 0) | ((rise == 0) & left)
    return np.where(up, np.where(left, LEFT_UP, RIGHT_UP), np.where(left, LEFT_DOWN, RIGHT_DOWN))


def _forbidden(
    graph: TurnGraph, direction: npt.NDArray[np.int64], rank: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return float64[N], by turn: 1 if it leads to a direction of a lower rank, so that it is forbidden, else 0."""
    before, after = graph.turns
    return (rank[direction[before]] > rank[direction[after]]).astype(np.float64)
