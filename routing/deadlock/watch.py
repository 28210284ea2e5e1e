"""The credit loop that counters of switches point at.

A deadlock shows in the counters of switches: ports drop what has waited too long at the head of a queue, or have
something to send and do not send.  So does congestion; but only a deadlock shows all the way round a credit loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import igraph
import numpy as np
import numpy.typing as npt

from routing.deadlock.cdg import DependencyGraph, dependency_graph
from routing.deadlock.waitfor import WaitFor
from routing.deadlock.witness import CreditLoop, credit_loop
from routing.fabric import Fabric
from routing.numerals import number_of
from routing.tables import Routing

_FOLLOWED, _OTHER = 1.0, 1000.0
"""What a suspected channel, and any other, costs a loop: first come loops with few others, then short ones."""
_LOOPS = 8


@dataclass(frozen=True)
class Pointed:
    """A credit loop that suspected channels point at.

    Attributes
    ----------
    loop
        The loop, with traffic for each turn.
    suspected
        For each of its channels, whether it is suspected.
    """

    loop: CreditLoop
    suspected: tuple[bool, ...]

    @property
    def complete(self) -> bool:
        """Whether all of it is suspected, as a lock would have it."""
        return all(self.suspected)

    def describe(self) -> list[str]:
        """Lines to print: what it is, then one a channel, suspected ones with a star."""
        head, *turns = self.loop.describe()
        share = f"{sum(self.suspected)} of {number_of(len(self.suspected), 'channel')} suspected"
        stars = ("*" if suspected else " " for suspected in self.suspected)
        return [f"{share}: {head}", *(f"{star}{turn[1:]}" for star, turn in zip(stars, turns, strict=True))]


@dataclass(frozen=True)
class Pointers:
    """What suspected channels say.

    Attributes
    ----------
    loops
        Those that they point at, the most certain ones first.
    elsewhere
        Suspected channels that are on no credit loop: congestion, or what stands behind a lock.
    """

    loops: tuple[Pointed, ...]
    elsewhere: tuple[int, ...]


def loops_pointed_at(
    fabric: Fabric, routing: Routing, suspected: npt.NDArray[np.int32], *, threads: int = 2
) -> Pointers:
    """Name credit loops that go through suspected channels, as far as there are any.

    First come loops all of whose channels are suspected; then, for each channel that is left, the loop through it with
    the fewest channels that are not, and among these the shortest.

    Notes
    -----
    Cost: one pass over the tables, and a shortest-path search for each suspected channel that no loop explains.
    """
    graph = dependency_graph(fabric, routing, switch_pairs=False, threads=threads)
    on_cycle = WaitFor.of_dependencies(graph).on_cycle
    numbers = np.arange(len(on_cycle))
    hit = on_cycle & np.isin(numbers % max(1, graph.channels), suspected)
    cycles, left = _whole_loops(graph, hit), hit.copy()
    for cycle in cycles:
        left[_same_channels(graph, cycle)] = False
    for number in np.flatnonzero(left).tolist():
        if left[number] and len(cycles) < _LOOPS:
            cycles.append(_loop_through(graph, number, hit, on_cycle))
            left[_same_channels(graph, cycles[-1])] = False
    loops = []
    for cycle in cycles:
        named = [graph.name(number) for number in cycle]
        loop = credit_loop(fabric, routing, named, replies=False, scope="endports")
        loops.append(Pointed(loop, tuple(bool(hit[number]) for number in cycle)))
    channels_on_cycle = set((np.flatnonzero(on_cycle) % max(1, graph.channels)).tolist())
    return Pointers(tuple(loops), tuple(c for c in suspected.tolist() if c not in channels_on_cycle))


def _whole_loops(graph: DependencyGraph, hit: npt.NDArray[np.bool_]) -> list[list[int]]:
    """Shortest loops among suspected channels, none of which share a channel."""
    found: list[list[int]] = []
    source = np.repeat(np.arange(len(graph.first) - 1), np.diff(graph.first))
    free = hit.copy()
    while len(found) < _LOOPS:
        kept = free[source] & free[graph.to]
        part = DependencyGraph.of(graph.channels, graph.vls, source[kept], graph.to[kept].astype(np.int64))
        cycle = part.shortest_cycle()
        if not cycle:
            break
        found.append([vl * graph.channels + channel for channel, vl in cycle])
        free[_same_channels(graph, found[-1])] = False
    return found


def _same_channels(graph: DependencyGraph, numbers: Sequence[int]) -> npt.NDArray[np.int64]:
    """These channels on every VL: a port's counters do not say which VL it was."""
    channels = np.unique(np.array(numbers) % graph.channels)
    return (channels[:, None] + graph.channels * np.arange(graph.vls)).ravel()


def _loop_through(
    graph: DependencyGraph, number: int, hit: npt.NDArray[np.bool_], on_cycle: npt.NDArray[np.bool_]
) -> list[int]:
    """The loop through a channel with the fewest unsuspected ones; there is one, for the channel is on a cycle."""
    source = np.repeat(np.arange(len(graph.first) - 1), np.diff(graph.first))
    kept = on_cycle[source] & on_cycle[graph.to]
    pairs = np.column_stack([source[kept], graph.to[kept]])
    whole = igraph.Graph(n=len(on_cycle), edges=pairs, directed=True)
    cost = np.where(hit[pairs[:, 1]], _FOLLOWED, _OTHER)
    ends = sorted(set(whole.predecessors(number)))
    lengths = whole.distances(source=number, target=ends, weights=cost.tolist())[0]
    nearest = ends[int(np.argmin(lengths))]
    return [int(v) for v in whole.get_shortest_paths(number, to=nearest, weights=cost.tolist())[0]]
