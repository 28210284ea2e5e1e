"""Find the credit loops that may have caused the errors in switch port counters.

In a deadlock, ports drop packets that waited too long at the head of a queue, or ports do not send although they have
packets to send.  Congestion has the same symptoms, but only a deadlock has these symptoms on every channel of a credit
loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.cdg.graph import DependencyGraph
from routing.cdg.trace import dependency_graph
from routing.deadlock.waitfor import WaitFor
from routing.deadlock.witness import CreditLoop, credit_loop
from routing.fabric import Fabric
from routing.numerals import count_noun
from routing.tables import Routing

_FOLLOWED, _OTHER = 1.0, 1000.0
"""Cost of a suspected channel, and cost of any other channel, in the shortest-path search for loops.  Unsuspected
channels cost much more, so the search finds a loop with the fewest unsuspected channels.  Of several such loops, the
search finds a shortest one.
"""
_LOOPS = 8


@dataclass(frozen=True)
class SuspectLoop:
    """A credit loop, and for each of its channels whether the port counters are as in a deadlock.

    Attributes
    ----------
    loop
        The loop, with an example of traffic for each dependency.
    suspected
        For each channel of the loop, whether its port counters are as in a deadlock.
    """

    loop: CreditLoop
    suspected: tuple[bool, ...]

    @property
    def complete(self) -> bool:
        """Return whether all channels of the loop are suspected, as they would be in a deadlock."""
        return all(self.suspected)

    def describe(self) -> list[str]:
        """Return lines to print: a summary, then one line for each channel, with a star at suspected channels."""
        head, *turns = self.loop.describe()
        share = f"{sum(self.suspected)} of {count_noun(len(self.suspected), 'channel')} suspected"
        stars = ("*" if suspected else " " for suspected in self.suspected)
        return [f"{share}: {head}", *(f"{star}{turn[1:]}" for star, turn in zip(stars, turns, strict=True))]


@dataclass(frozen=True)
class SuspectTurns:
    """Credit loops with channels whose port counters are as in a deadlock.

    Attributes
    ----------
    loops
        The loops.  The loops of which all channels are suspected come first.
    elsewhere
        Suspected channels that are not on any credit loop.  The cause of their counters is congestion, or a deadlock
        elsewhere that blocks their traffic.
    """

    loops: tuple[SuspectLoop, ...]
    elsewhere: tuple[int, ...]


def suspect_loops(
    fabric: Fabric, routing: Routing, suspected: npt.NDArray[np.int32], *, threads: int = 2
) -> SuspectTurns:
    """Find credit loops through suspected channels (channels whose counters are as in a deadlock).

    The loops that consist of suspected channels only come first.  Each further loop leads through a suspected channel
    that no earlier loop has.  Of all loops through this channel, the loop with the fewest unsuspected channels is
    found; of several such loops, a shortest loop.  At most eight loops are returned.

    Parameters
    ----------
    fabric, routing
        The fabric and its tables.
    suspected
        int32[N], numbers of the suspected channels.
    threads
        Worker threads.

    Notes
    -----
    Cost: one pass over the tables, and a shortest-path search for each suspected channel that is not on a loop found
    before.
    """
    graph = dependency_graph(fabric, routing, switch_pairs=False, threads=threads)
    on_cycle = WaitFor.of_dependencies(graph).on_cycle
    numbers = np.arange(len(on_cycle))
    hit = on_cycle & np.isin(numbers % max(1, graph.channels), suspected)
    cycles, left = _complete_loops(graph, hit), hit.copy()
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
        loops.append(SuspectLoop(loop, tuple(bool(hit[number]) for number in cycle)))
    channels_on_cycle = set((np.flatnonzero(on_cycle) % max(1, graph.channels)).tolist())
    return SuspectTurns(tuple(loops), tuple(c for c in suspected.tolist() if c not in channels_on_cycle))


def _complete_loops(graph: DependencyGraph, hit: npt.NDArray[np.bool_]) -> list[list[int]]:
    """Return loops that consist of suspected channels only.

    The first loop is a shortest one.  Each further loop is a shortest one that has no channel of the loops before.
    ``hit`` marks the vertices of ``graph`` that are on a cycle and whose channels are suspected.
    """
    found: list[list[int]] = []
    free = hit.copy()
    while len(found) < _LOOPS:
        cycle = graph.among(free).shortest_cycle()
        if not cycle:
            break
        found.append([vl * graph.channels + channel for channel, vl in cycle])
        free[_same_channels(graph, found[-1])] = False
    return found


def _same_channels(graph: DependencyGraph, numbers: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return all vertices of a dependency graph that have the same channels as the vertices ``numbers``, on any VL.

    A vertex is a channel on a VL.  The VL does not count here, because the counters of a port do not distinguish VLs.
    """
    channels = np.unique(np.array(numbers) % graph.channels)
    return (channels[:, None] + graph.channels * np.arange(graph.vls)).ravel()


def _loop_through(
    graph: DependencyGraph, number: int, hit: npt.NDArray[np.bool_], on_cycle: npt.NDArray[np.bool_]
) -> list[int]:
    """Return the loop with the fewest unsuspected channels through the vertex ``number``, which must be on a cycle.

    ``hit`` marks the vertices whose channels are suspected; ``on_cycle`` marks the vertices on a cycle.
    """
    part = graph.among(on_cycle)
    whole, cost = part.to_igraph(), np.where(hit[part.to], _FOLLOWED, _OTHER)
    ends = sorted(set(whole.predecessors(number)))
    lengths = whole.distances(source=number, target=ends, weights=cost.tolist())[0]
    nearest = ends[int(np.argmin(lengths))]
    return [int(v) for v in whole.get_shortest_paths(number, to=nearest, weights=cost.tolist())[0]]
