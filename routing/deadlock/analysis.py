"""From tables to findings: the two ways through the kernels, for VLs that stay and for VLs that change on the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.cdg import Dependencies, Slots, Trace, trace, trace_lanes
from routing.deadlock.cdg import (
    REPLIES,
    DependencyGraph,
    common_lanes,
    from_lane_masks,
    from_masks,
    least_cycle,
    possible_turns,
    vl_bits,
)
from routing.deadlock.certificate import Certificate
from routing.fabric import Fabric
from routing.tables import Routing

Cycle = list[tuple[int, int]]
"""(channel, VL) of each of its members."""


@dataclass(frozen=True, eq=False)
class Findings:
    """What the kernels found.

    Attributes
    ----------
    hops
        uint8[S, L], 255 where nothing is delivered.
    undelivered, split, circling, dropped
        Pairs (switch, LID): not delivered within a part; in different parts; running in a circle; delivered by their
        route but for an SL that is dropped.
    vls
        Highest VL in use + 1.
    certificate
        None if requests alone close a loop.
    loop, reply_loop
        A shortest cycle of requests alone, and of requests with replies.
    """

    hops: npt.NDArray[np.uint8]
    undelivered: int
    split: int
    circling: int
    dropped: int
    vls: int
    certificate: Certificate | None
    loop: Cycle | None
    reply_loop: Cycle | None


def analyse(fabric: Fabric, routing: Routing, *, threads: int) -> Findings:
    """Follow all routes, collect the dependencies, order them or find the shortest cycles."""
    row = common_lanes(routing)
    if row is None:
        return _changing_lanes(fabric, routing, threads)
    return _fixed_lanes(fabric, routing, vl_bits(row), threads)


def _fixed_lanes(fabric: Fabric, routing: Routing, vl_bit: npt.NDArray[np.uint16], threads: int) -> Findings:
    slots = Slots.of(fabric)
    found = trace(fabric, routing, slots, vl_bit, threads=threads)
    vls = _lanes_used(fabric, routing, vl_bit, found)
    certificate, loop, reply_loop = _judge(fabric, slots, found.dep, vls, threads)
    dropped = 0 if vl_bit.all() else _count_dropped(fabric, routing, found, vl_bit)
    return Findings(
        found.hops, found.undelivered, found.split, found.circling, dropped, vls, certificate, loop, reply_loop
    )


def _changing_lanes(fabric: Fabric, routing: Routing, threads: int) -> Findings:
    slots = Slots.of(fabric)
    turns = possible_turns(fabric, slots)
    certificate, cycles = None, {True: Cycle(), False: Cycle()}
    for replies in (True, False):
        found = trace_lanes(fabric, routing, slots, replies=replies, threads=threads)
        vls = max(1, found.lanes.bit_length())
        graph = from_lane_masks(turns, found.dep[turns[:, 2]], len(fabric.channels), vls)
        order, acyclic = graph.order()
        if acyclic:
            certificate = Certificate(order, "reversible" if replies else "forward")
            break
        cycles[replies] = _shortest(fabric, graph)
    loop, reply_loop = cycles[False] or None, cycles[True] or None
    return Findings(
        found.hops, found.undelivered, found.split, found.circling, found.dropped, vls, certificate, loop, reply_loop
    )


def _shortest(fabric: Fabric, graph: DependencyGraph) -> Cycle:
    return graph.shortest_cycle(enough=least_cycle(fabric, graph))


def _lanes_used(fabric: Fabric, routing: Routing, vl_bit: npt.NDArray[np.uint16], found: Trace) -> int:
    if routing.sl.ndim == 1:
        used = vl_bit[routing.sl[fabric.lids.switch >= 0]]
    else:
        used = vl_bit[[bool(found.sls >> sl & 1) for sl in range(16)]] if found.sls else vl_bit
    return max(1, int(np.bitwise_or.reduce(used, initial=0)).bit_length())


def _judge(
    fabric: Fabric, slots: Slots, dep: npt.NDArray[np.uint32], vls: int, threads: int
) -> tuple[Certificate | None, Cycle | None, Cycle | None]:
    """The strongest certificate that there is, and the shortest cycles of requests and of requests with replies."""
    channels = fabric.channels
    graph = Dependencies(channels.first, channels.dst, slots.slot, dep)
    lanes = np.arange(vls, dtype=np.uint8)
    order, ordered = graph.order(lanes + REPLIES, threads=threads)
    if (ordered == len(channels)).all():
        return Certificate(order, "reversible"), None, None
    turns = possible_turns(fabric, slots)
    both = _shortest_open(fabric, turns, dep >> np.uint32(REPLIES), order)
    order, ordered = graph.order(lanes, threads=threads)
    if (ordered == len(channels)).all():
        return Certificate(order, "forward"), None, both
    same = np.array_equal(dep >> np.uint32(REPLIES), dep & np.uint32(0xFFFF))
    return None, both if same else _shortest_open(fabric, turns, dep, order), both


def _shortest_open(
    fabric: Fabric, turns: npt.NDArray[np.int64], dep: npt.NDArray[np.uint32], order: npt.NDArray[np.int32]
) -> Cycle:
    """A shortest cycle among what has no place in the order."""
    open_lanes = np.bitwise_or.reduce((order < 0) << np.arange(len(order))[:, None], axis=0)
    masks = dep[turns[:, 2]] & open_lanes[turns[:, 0]] & open_lanes[turns[:, 1]]
    graph = from_masks(turns, masks.astype(np.uint16), len(fabric.channels), len(order))
    return _shortest(fabric, graph)


def _count_dropped(fabric: Fabric, routing: Routing, found: Trace, vl_bit: npt.NDArray[np.uint16]) -> int:
    """Pairs whose SL is dropped, unless the LID is that of the switch itself."""
    travels = (found.hops < 255) & ((found.hops > 0) | (fabric.lids.port != 0))
    lost = vl_bit[routing.sl] == 0
    if routing.sl.ndim == 1:
        return int(travels[:, lost].sum())
    if routing.sl.shape[0] == fabric.switches:
        return int((travels & lost).sum())
    by_switch = np.zeros(travels.shape, bool)
    here = np.flatnonzero(fabric.lids.switch >= 0)
    np.logical_or.at(by_switch, fabric.lids.switch[here], lost[here])
    return int((travels & by_switch).sum())
