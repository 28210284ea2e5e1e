"""Segment-based routing: the links are divided into segments, and each segment forbids one turn, in both directions."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import AllowedTurns
from routing.engines.base import LONGER_PATHS, EngineOptions, Offers, Promise, refuse_unsupported
from routing.engines.destinations import Destinations
from routing.engines.tree_paths import routing_of_tree
from routing.engines.turn_rules import TurnGraph, TurnTrial
from routing.engines.uncounted import without_uncounted
from routing.fabric import Fabric
from routing.tables import Routing

STARTS, START_SWITCHES = 16, 4000
"""Maximum number of partitions into segments that are tried, each from a random first switch.  On large fabrics the
limit is lower: the second number divided by the number of switches, plus 1.
"""

STEPS = 400
"""Maximum number of steps of the search for better places of the forbidden turns."""

MOVED = 4
"""Maximum number of segments whose forbidden turns one step moves."""


class SegmentBased:
    """Segment-based routing (SR) with balanced paths.

    Notes
    -----
    After A. Mejia, J. Flich, J. Duato, S.-A. Reinemo, T. Skeie, "Segment-based routing: an efficient fault-tolerant
    routing algorithm for meshes and tori", IPDPS 2006.  A segment is a path over switches that no earlier segment has,
    between two switches of earlier segments.  Each segment forbids the turn between two links at one of its switches,
    in both directions.  A segment of a single link forbids, at one end of the link, the turns between this link and
    links of earlier segments.  Each segment may choose the place of its forbidden turn without regard to other
    segments.  Differences:

    - Segments are the shortest that a breadth-first search finds.  Several first switches are tried.  In most trials
      the next switch is the switch with the most links to switches in earlier segments.
    - The published rules place the turns by hand or at fixed positions.  Here a local search moves the forbidden turns.
      It keeps a move unless the balance for a sample of the destinations becomes worse.
    - Forbidden turns that close no cycle are allowed again.
    - On a tree, paths lead up and then down (:mod:`routing.engines.tree_paths`).  So at each switch, the turns between
      two links up are forbidden.  This agrees with the published method: segments that begin at the top switches could
      forbid the same turns.
    - Paths balance the load, with a small cost per hop, instead of being the shortest allowed paths.
    """

    name = "segment"
    summary = "segment-based routing on any fabric; free of credit loops on one VL"
    promise = Promise.DEADLOCK_FREE
    offers = Offers(options=("reversible",), refusals={"minimal": LONGER_PATHS})

    @without_uncounted
    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`).

        Cost: O(S C) for each partition of the links into segments, and O(L S radix log C) for each pass over the
        destinations.  The search for places of the forbidden turns visits a limited number of channels.
        """
        refuse_unsupported(self, options)
        if (tree := routing_of_tree(self, fabric, options)) is not None:
            return tree
        start = time.perf_counter()
        graph = TurnGraph.of_fabric(fabric)
        steps = graph.trials(STEPS, options.effort)
        starts = min(STARTS, START_SWITCHES // max(fabric.switches, 1) + 1)
        trial = TurnTrial(fabric, Destinations.of(fabric), options, starts + steps)
        rng = np.random.default_rng(options.seed)
        firsts = np.resize(rng.permutation(fabric.switches), starts).tolist() if fabric.switches else []
        plans = [partition(graph, first, rng, clustered=k % 4 > 0) for k, first in enumerate(firsts)] or [Segments(())]
        best = min((trial.rate(plan.turns(graph, plan.middle())), k) for k, plan in enumerate(plans))
        plan = plans[best[1]]
        places, rating, turns = plan.middle(), best[0], plan.turns(graph, plan.middle())
        for _ in range(steps if plan.segments else 0):
            moved = plan.moved(places, rng)
            other = plan.turns(graph, moved, turns)
            tried = trial.rate(other)
            if tried <= rating:
                places, rating, turns = moved, tried, other
        found = {"segments": len(plan.segments), "single_links": sum(len(part) == 1 for part in plan.segments)}
        return trial.tables(self, turns, start, found)


ENGINE = SegmentBased()


@dataclass(frozen=True, eq=False)
class Segments:
    """Partition of the links between switches into segments.

    Attributes
    ----------
    segments
        For each segment, its bundles in their order along the segment.  A bundle is all parallel links between two
        switches.  A link on no cycle is in no segment.
    """

    segments: tuple[tuple[int, ...], ...]

    @cached_property
    def flat(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the bundles of all segments in one array, the index of each segment's first bundle, and the number of
        bundles of each segment: int64 each.
        """
        size = np.array([len(part) for part in self.segments], np.int64)
        return np.array([bundle for part in self.segments for bundle in part], np.int64), np.cumsum(size) - size, size

    def middle(self) -> npt.NDArray[np.int64]:
        """Return a place for each segment's forbidden turn: the middle of the segment.  In a segment of a single link,
        the place is the first end of the link.
        """
        return np.array([max(len(part) - 2, 0) // 2 for part in self.segments], np.int64)

    def moved(self, places: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Return the places of the forbidden turns, with the places of a few random segments moved.

        ``places`` (int64) is the place of the forbidden turn of each segment, see :meth:`turns`.
        """
        found = places.copy()
        for number in rng.integers(0, len(self.segments), int(rng.integers(1, MOVED + 1))).tolist():
            size = len(self.segments[number])
            found[number] = rng.integers(0, 2 if size == 1 else size - 1)
        return found

    def turns(self, graph: TurnGraph, places: npt.NDArray[np.int64], near: AllowedTurns | None = None) -> AllowedTurns:
        """Return the turns that are allowed if the forbidden turns are at the given places (int64, one place for each
        segment).

        Place k of a segment is the switch between its links k and k + 1, counted from 0.  In a segment of a single
        link, place 0 is the first end of the link, and place 1 is the second end.

        ``near`` is a similar set of turns, such as the result for other places.  It makes the computation faster, and
        does not change the result.
        """
        before, after = graph.turns
        bundles, first, size = self.flat
        when = np.full(len(graph.src), -1, np.int64)
        when[bundles] = when[graph.reverse[bundles]] = np.repeat(np.arange(len(first)), size)
        single = size == 1
        # `alone` and `its_place`: the link and the place of each segment of a single link.  `one` and `other`: the
        # links before and after the place of each segment of several links.
        alone, its_place = bundles[first[single]], places[single]
        one = bundles[(first + places)[~single]]
        other = bundles[(first + places + 1)[~single]]
        dropped = np.zeros(len(graph.src), np.bool_)
        for last in (alone, other):
            dropped[last] = dropped[graph.reverse[last]] = True
        # A segment of a single link forbids, at one end of the link, the turns between this link and earlier links.
        # `closed_at` has the switch at this end for each channel of such a link, and -1 for other channels.
        closed_at = np.full(len(graph.src), -1, np.int64)
        end = np.where(its_place == 0, graph.src[alone], graph.dst[alone])
        closed_at[alone] = closed_at[graph.reverse[alone]] = end
        forbidden = np.zeros(len(before), np.bool_)
        start = np.cumsum(graph.edges.degree, dtype=np.int64) - graph.edges.degree
        for into, out in ((one, other), (graph.reverse[other], graph.reverse[one])):
            forbidden[start[into] + out - graph.edges.after[into]] = True
        at = graph.dst[before]
        for link, earlier in ((before, after), (after, before)):
            forbidden |= (closed_at[link] == at) & (when[earlier] <= when[link])
        return graph.complete(graph.breadth_first(dropped=dropped), forbidden.astype(np.float64), near)


@dataclass(eq=False)
class _Partition:
    """Partition of a fabric into segments while it is built.

    Attributes
    ----------
    graph
        The bundles of the fabric.
    key
        Random number of each switch.  Among equally good candidates for the next switch, the switch with the lowest
        random number is taken.
    seen
        Whether each switch is reached (see :func:`partition`).
    links
        Number of bundles from each switch to reached switches.
    earliest
        For each switch, the position in ``order`` of its first reached neighbour, counted from 1.
    used
        Whether each bundle is in a segment, or on no cycle.
    order
        Reached switches, in the order in which they were added.
    segments
        The segments so far, each with its bundles.
    """

    graph: TurnGraph
    key: list[float]
    seen: list[bool]
    links: list[int]
    earliest: list[int]
    used: list[bool]
    order: list[int]
    segments: list[tuple[int, ...]]

    def see(self, switch: int) -> None:
        """Record that a switch is reached."""
        self.seen[switch] = True
        self.order.append(switch)
        for bundle in range(int(self.graph.first[switch]), int(self.graph.first[switch + 1])):
            neighbour = int(self.graph.dst[bundle])
            self.links[neighbour] += 1
            self.earliest[neighbour] = min(self.earliest[neighbour], len(self.order))

    def take(self, part: list[int], *, closed: bool = True) -> None:
        """Add a segment (``part``, a list of bundles), and record that its switches are reached.

        If ``closed`` is false, the bundles are on no cycle and form no segment.  In this case, the function only marks
        their switches as reached and the bundles as used.
        """
        for bundle in part:
            self.used[bundle] = self.used[int(self.graph.reverse[bundle])] = True
            if not self.seen[int(self.graph.dst[bundle])]:
                self.see(int(self.graph.dst[bundle]))
        if closed:
            self.segments.append(tuple(part))

    def take_single_links(self, since: int) -> None:
        """Add segments of a single link.  Each unused link from a newly added switch to a switch in a segment becomes
        such a segment.  ``order[since:]`` has the newly added switches.
        """
        for switch in self.order[since:]:
            for bundle in range(int(self.graph.first[switch]), int(self.graph.first[switch + 1])):
                if not self.used[bundle] and self.seen[int(self.graph.dst[bundle])]:
                    self.take([bundle])

    def first_links(self, switch: int) -> list[int]:
        """Return the unused bundles from switches in segments to ``switch``, which is in no segment.  The bundles are
        sorted by the random number (``key``) of the switch at which they begin.
        """
        out = range(int(self.graph.first[switch]), int(self.graph.first[switch + 1]))
        found = [int(self.graph.reverse[k]) for k in out if not self.used[k] and self.seen[int(self.graph.dst[k])]]
        return sorted(found, key=lambda bundle: self.key[int(self.graph.src[bundle])])

    def shortest(self, bundle: int) -> list[int]:
        """Return the bundles of the shortest segment whose first bundle is ``bundle``; empty if there is no such
        segment.
        """
        dst, reverse, first = self.graph.dst, self.graph.reverse, self.graph.first
        came = {int(dst[bundle]): bundle}
        queue = [int(dst[bundle])]
        for switch in queue:
            for link in range(int(first[switch]), int(first[switch + 1])):
                if self.used[link] or link == reverse[came[switch]]:
                    continue
                if self.seen[dst[link]]:
                    found = [link]
                    while found[-1] != bundle:
                        found.append(came[int(dst[reverse[found[-1]]])])
                    return found[::-1]
                if int(dst[link]) not in came:
                    came[int(dst[link])] = link
                    queue.append(int(dst[link]))
        return []


def partition(graph: TurnGraph, start: int, rng: np.random.Generator, *, clustered: bool) -> Segments:
    """Return a partition of the links into segments.  The first segment begins at switch ``start``.

    The segments are added one after the other.  A switch is reached if it is ``start`` or on an earlier segment.  Each
    segment is a shortest path from a reached switch, over switches that are not reached yet, to the same or another
    reached switch.  With ``clustered``, the first new switch of the path is the switch with the most links to reached
    switches.  Otherwise, the reached switches are examined in the order in which they were added.  The first neighbour
    found that is not reached becomes the first new switch.

    A link between two reached switches is a segment of its own.  A link on no cycle belongs to no segment, but the
    switch behind it counts as reached.  Cost: O(S^2 + S C) at most.
    """
    switches = graph.fabric.switches
    state = _Partition(
        graph=graph, key=rng.random(switches).tolist(), seen=[False] * switches, links=[0] * switches,
        earliest=[switches] * switches, used=[False] * len(graph.dst), order=[], segments=[],
    )  # fmt: skip
    roots = iter([start, *range(switches)])
    while len(state.order) < switches:
        new = [switch for switch in range(switches) if not state.seen[switch] and state.links[switch]]
        if not new:
            state.see(next(root for root in roots if not state.seen[root]))
            continue
        since = len(state.order)
        if clustered:
            switch = min(new, key=lambda switch: (-state.links[switch], state.key[switch]))
        else:
            switch = min(new, key=lambda switch: state.earliest[switch])
        into = state.first_links(switch)
        if len(into) > 1:
            state.take([into[0], int(graph.reverse[into[1]])])
        else:
            part = state.shortest(into[0])
            state.take(part or into, closed=bool(part))
        state.take_single_links(since)
    return Segments(tuple(state.segments))
