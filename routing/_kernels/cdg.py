"""Kernel wrappers: follow every route, collect the channel dependencies, order them, find a shortest cycle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, pointer
from routing.errors import TableError
from routing.fabric import Channels, Fabric
from routing.tables import DATA_VLS, Routing

NOTHING = 256
"""Slots at the front that stand for no dependency (see csrc/cdg.h)."""


def slot_numbers(channels: Channels) -> tuple[npt.NDArray[np.int32], int]:
    """int32[C], the first slot of each channel, and the number of slots (see :class:`Slots`).

    Raises
    ------
    TableError
        There are more possible dependencies than can be numbered.
    """
    size = np.diff(channels.first)[channels.dst].astype(np.int64) + 2
    end = NOTHING + np.cumsum(size)
    count = int(end[-1]) if len(end) else NOTHING
    if count >= 1 << 31:
        raise TableError(f"{count} possible dependencies between channels are more than can be numbered")
    return (end - size).astype(np.int32), count


@dataclass(frozen=True, eq=False)
class Slots:
    """Numbers of the possible dependencies of a fabric, and the tables by which kernels find them.

    Attributes
    ----------
    exit
        uint8[S, 256], number among the channels of its switch of the channel behind a port; the out-degree for a port
        behind which no switch is, the out-degree + 1 for a cable back to the same switch.
    xfirst, xdst, dep_first
        int32[S+1], int32[X], int32[X] with X = C + 2 S: the extended channels (csrc/cdg.h).
    slot
        int32[C], the slot of the dependency of each channel on the first channel of the switch behind it.
    count
        Number of slots.
    """

    exit: npt.NDArray[np.uint8]
    xfirst: npt.NDArray[np.int32]
    xdst: npt.NDArray[np.int32]
    dep_first: npt.NDArray[np.int32]
    slot: npt.NDArray[np.int32]
    count: int

    @classmethod
    def of(cls, fabric: Fabric) -> Slots:
        """Number the dependencies that the cables allow.  Cost: O(256 S + C)."""
        channels, switches = fabric.channels, fabric.switches
        rows = np.arange(switches)
        degree = np.diff(channels.first)
        exits = np.where(channels.at_port >= 0, channels.at_port - channels.first[:-1, None], degree[:, None])
        ends, ports = fabric.link_device, fabric.link_port
        back = np.flatnonzero((ends[:, 0] == ends[:, 1]) & (ends[:, 0] < switches))
        exits[ends[back], ports[back]] = degree[ends[back]] + 1
        xfirst = (channels.first + 2 * np.arange(switches + 1)).astype(np.int32)
        place = np.arange(len(channels)) + 2 * channels.src
        xdst = np.empty(len(channels) + 2 * switches, np.int32)
        xdst[xfirst[1:] - 2], xdst[xfirst[1:] - 1], xdst[place] = switches, rows, channels.dst
        slot, count = slot_numbers(channels)
        dep_first = np.zeros(len(xdst), np.int32)
        dep_first[place] = slot
        return cls(exits.astype(np.uint8), xfirst, xdst, dep_first, slot, count)


@dataclass(frozen=True, eq=False)
class Trace:
    """What following every route shows.

    Attributes
    ----------
    hops
        uint8[S, L], hops between switches (254: that or more), 255 where nothing is delivered.
    dep
        uint32[slots]: low half the VLs on which requests take the turn, high half those of requests or replies.
    to_endports
        uint32[slots], the same on the way to CAs and routers only.
    undelivered, split, circling
        Pairs (switch, LID) that are not delivered within a connected part; between two; of both, in a circle.
    sls
        Mask of the SLs in use (0: not looked at, since all ride one VL).
    """

    hops: npt.NDArray[np.uint8]
    dep: npt.NDArray[np.uint32]
    to_endports: npt.NDArray[np.uint32]
    undelivered: int
    split: int
    circling: int
    sls: int


@dataclass(frozen=True, eq=False)
class LaneTrace:
    """What following every route shows where the VL may change on the way.

    Attributes
    ----------
    hops, undelivered, split, circling
        As in :class:`Trace`.
    dep
        uint16[slots, V]: for each turn and each VL before it, the VLs after it.
    to_endports
        uint16[slots, V], the same on the way to CAs and routers only.
    lanes
        Mask of the VLs in use.
    dropped
        Pairs (switch, LID) whose route is there, but some sender at the switch sends on an SL that is dropped.
    """

    hops: npt.NDArray[np.uint8]
    dep: npt.NDArray[np.uint16]
    to_endports: npt.NDArray[np.uint16]
    undelivered: int
    split: int
    circling: int
    lanes: int
    dropped: int


class _Tables:
    """The C view of a fabric and its tables, with the arrays behind it kept alive."""

    def __init__(self, fabric: Fabric, routing: Routing, slots: Slots, threads: int, switch_pairs: bool) -> None:
        lids = fabric.lids
        self.c = ffi.new("cdg_tables *")
        self.c.switches, self.c.lids, self.c.slots = fabric.switches, len(lids), slots.count
        self.c.sl_rows = 0 if routing.sl.ndim == 1 else routing.sl.shape[0]
        self.c.threads = threads if routing.lft.size > 100_000 else 1
        self.kept: list[npt.NDArray[Any]] = []
        self.point(self.c, "lft", "uint8_t *", routing.lft, np.uint8)
        self.point(self.c, "sl", "uint8_t *", routing.sl, np.uint8)
        self.point(self.c, "exit", "uint8_t *", slots.exit, np.uint8)
        self.point(self.c, "xfirst", "int32_t *", slots.xfirst, np.int32)
        self.point(self.c, "xdst", "int32_t *", slots.xdst, np.int32)
        self.point(self.c, "dep_first", "int32_t *", slots.dep_first, np.int32)
        self.point(self.c, "lid_switch", "int32_t *", lids.switch, np.int32)
        self.point(self.c, "lid_port", "uint8_t *", lids.port, np.uint8)
        self.point(self.c, "part", "int32_t *", fabric.component, np.int32)
        if not switch_pairs:
            self.point(self.c, "has_endport", "uint8_t *", _has_endport(fabric, routing), np.uint8)

    def point(self, struct: Any, field: str, ctype: str, array: npt.NDArray[Any], dtype: npt.DTypeLike) -> None:
        whole = np.ascontiguousarray(array)
        self.kept.append(whole)
        setattr(struct, field, pointer(ctype, whole, dtype))


def _goes_by_lid(fabric: Fabric, routing: Routing) -> bool:
    """Whether SLs hang on the LID of the sender."""
    return routing.sl.ndim == 2 and len(routing.sl) != fabric.switches


def _has_endport(fabric: Fabric, routing: Routing) -> npt.NDArray[np.uint8]:
    """uint8[S]: 1 where a CA or router sends; one that needs a LID to do so has one."""
    lids, by_lid = fabric.lids, _goes_by_lid(fabric, routing)
    switch = lids.switch[lids.port > 0] if by_lid else fabric.endport_switch
    has = np.zeros(fabric.switches, np.uint8)
    has[switch[switch >= 0]] = 1
    return has


def trace(fabric: Fabric, routing: Routing, slots: Slots, vl_bit: npt.NDArray[np.uint16], *, threads: int) -> Trace:
    """Follow every route where the VL hangs on the SL alone (``vl_bit``: uint16[16], 0 for a dropped SL).

    Cost: O(S L) time; memory for the slots twice a thread.
    """
    hops = np.empty(routing.lft.shape, np.uint8)
    dep = np.zeros((2, slots.count), np.uint32)
    tables = _Tables(fabric, routing, slots, threads, switch_pairs=True)
    undelivered, split, circling, sls = _run_trace(tables, fabric, routing, vl_bit, hops=hops, dep=dep)
    np.bitwise_or(dep[0], dep[1], out=dep[1])
    return Trace(hops, dep[1], dep[0], undelivered, split, circling, sls)


def trace_endports(
    fabric: Fabric, routing: Routing, slots: Slots, vl_bit: npt.NDArray[np.uint16], found: Trace, *, threads: int
) -> npt.NDArray[np.uint32]:
    """uint32[slots], the dependencies of a trace without what switches send to switches.

    Cost: O(S L') for the L' LIDs of switches.
    """
    dep = np.zeros((2, slots.count), np.uint32)
    tables = _Tables(fabric, routing, slots, threads, switch_pairs=False)
    _run_trace(tables, fabric, routing, vl_bit, hops=None, dep=dep)
    return np.asarray(found.to_endports | dep[1])


def _run_trace(
    tables: _Tables,
    fabric: Fabric,
    routing: Routing,
    vl_bit: npt.NDArray[np.uint16],
    *,
    hops: npt.NDArray[np.uint8] | None,
    dep: npt.NDArray[np.uint32],
) -> list[int]:
    used = vl_bit[routing.sl[fabric.lids.switch >= 0]] if routing.sl.ndim == 1 else vl_bit
    tables.c.spread = int(len(used) > 0 and bool((used != used[0]).any()))
    tables.point(tables.c, "vl_bit", "uint16_t *", vl_bit, np.uint16)
    counts = np.zeros(4, np.int64)
    check(
        lib.ibn_cdg_trace(
            tables.c,
            ffi.NULL if hops is None else pointer("uint8_t *", hops, np.uint8),
            pointer("uint32_t *", dep, np.uint32),
            pointer("int64_t *", counts, np.int64),
        )
    )
    return list(counts.tolist())


def trace_lanes(fabric: Fabric, routing: Routing, slots: Slots, *, replies: bool, threads: int) -> LaneTrace:
    """Follow every route where the VL hangs on in-port and out-port as well; ``replies``: count them in.

    Cost: O(S L k) time for k SLs that share a channel towards one LID (L^2 on top for replies or where SLs go by the
    LID of the sender); V times the memory of :func:`trace`.
    """
    hops = np.empty(routing.lft.shape, np.uint8)
    dep = np.zeros((2, slots.count, _lanes(routing)), np.uint16)
    tables = _Tables(fabric, routing, slots, threads, switch_pairs=True)
    undelivered, split, circling, used, dropped = _run_lanes(
        tables, fabric, routing, slots, replies=replies, hops=hops, dep=dep
    )
    np.bitwise_or(dep[0], dep[1], out=dep[1])
    return LaneTrace(hops, dep[1], dep[0], undelivered, split, circling, used, dropped)


def trace_lanes_endports(
    fabric: Fabric, routing: Routing, slots: Slots, found: LaneTrace, *, replies: bool, threads: int
) -> npt.NDArray[np.uint16]:
    """uint16[slots, V], the dependencies of a trace, with replies or not, without what switches send to switches.

    Cost: as :func:`trace_lanes`, for the LIDs of switches.
    """
    dep = np.zeros((2, *found.dep.shape), np.uint16)
    tables = _Tables(fabric, routing, slots, threads, switch_pairs=False)
    _run_lanes(tables, fabric, routing, slots, replies=replies, hops=None, dep=dep)
    return np.asarray(found.to_endports | dep[1])


def _lanes(routing: Routing) -> int:
    """Highest VL in the tables + 1."""
    return int(routing.sl2vl[routing.sl2vl < DATA_VLS].max(initial=0)) + 1


def _run_lanes(
    tables: _Tables,
    fabric: Fabric,
    routing: Routing,
    slots: Slots,
    *,
    replies: bool,
    hops: npt.NDArray[np.uint8] | None,
    dep: npt.NDArray[np.uint16],
) -> list[int]:
    lanes = ffi.new("cdg_lanes *")
    lanes.ports, lanes.vls = routing.sl2vl.shape[1], dep.shape[2]
    channels, x = fabric.channels, np.arange(len(fabric.channels)) + 2 * fabric.channels.src
    xport, xin = np.zeros(len(slots.xdst), np.uint8), np.zeros(len(slots.xdst), np.uint8)
    xport[x], xin[x] = channels.port, channels.dst_port
    switch, port, lid = _senders(fabric, routing)
    repliers = _repliers(fabric, routing)
    lanes.senders, lanes.repliers = len(switch), len(repliers) if replies else 0
    tables.point(lanes, "replier", "int32_t *", repliers, np.int32)
    tables.point(lanes, "sl2vl", "uint8_t *", routing.sl2vl, np.uint8)
    tables.point(lanes, "xport", "uint8_t *", xport, np.uint8)
    tables.point(lanes, "xin", "uint8_t *", xin, np.uint8)
    tables.point(lanes, "sender_switch", "int32_t *", switch, np.int32)
    tables.point(lanes, "sender_port", "uint8_t *", port, np.uint8)
    tables.point(lanes, "sender_lid", "int32_t *", lid, np.int32)
    counts = np.zeros(5, np.int64)
    check(
        lib.ibn_cdg_trace_lanes(
            tables.c,
            lanes,
            ffi.NULL if hops is None else pointer("uint8_t *", hops, np.uint8),
            pointer("uint16_t *", dep, np.uint16),
            pointer("int64_t *", counts, np.int64),
        )
    )
    return list(counts.tolist())


def _senders(
    fabric: Fabric, routing: Routing
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """Switch, in-port and LID of all that send requests.

    One for each LID where SLs go by the sender's LID; else one for each port, less those that a switch treats alike:
    for them stands a CA or router, if there is one among them.
    """
    lids = fabric.lids
    if _goes_by_lid(fabric, routing):
        lid = np.flatnonzero(lids.switch >= 0)
        return lids.switch[lid], lids.port[lid], lid.astype(np.int32)
    here = fabric.endport_switch >= 0
    switch = np.concatenate([fabric.endport_switch[here], np.arange(fabric.switches, dtype=np.int32)])
    port = np.concatenate([fabric.endport_switch_port[here], np.zeros(fabric.switches, np.uint8)])
    alike = switch.astype(np.int64) * 256 + _like(routing, switch, port)
    _, one = np.unique(alike, return_index=True)
    return switch[one], port[one], np.zeros(len(one), np.int32)


def _repliers(fabric: Fabric, routing: Routing) -> npt.NDArray[np.int32]:
    """LIDs whose replies differ: all, or, where the SL hangs on the LID alone, one for each SL and in-port.

    For several that do not differ stands that of a CA or router, if there is one among them.
    """
    lid = np.flatnonzero(fabric.lids.switch >= 0).astype(np.int32)
    if routing.sl.ndim == 2:
        return lid
    lid = lid[np.argsort(fabric.lids.port[lid] == 0, kind="stable")]
    switch, port = fabric.lids.switch[lid], fabric.lids.port[lid]
    alike = (switch.astype(np.int64) * 256 + _like(routing, switch, port)) * 16 + routing.sl[lid]
    _, one = np.unique(alike, return_index=True)
    return lid[one]


def _like(routing: Routing, switch: npt.NDArray[np.int32], port: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """For each (switch, in-port) a port of that switch, the same for neighbours in order whose SL2VL rows are equal."""
    by_port = np.lexsort((port, switch))
    s, p = switch[by_port], port[by_port]
    rows = routing.sl2vl[s, p].reshape(len(s), -1)
    new = np.ones(len(s), bool)
    new[1:] = (s[1:] != s[:-1]) | (rows[1:] != rows[:-1]).any(axis=1)
    first = np.maximum.accumulate(np.where(new, np.arange(len(s)), 0))
    like = np.empty(len(s), np.uint8)
    like[by_port] = p[first]
    return like


@dataclass(frozen=True, eq=False)
class Dependencies:
    """Which channel waits for which, as a bit mask for every possible turn.

    Attributes
    ----------
    first, dst
        int32[S+1], int32[C] as in :class:`~routing.fabric.Channels`.
    slot
        int32[C]: the turn from channel ``c`` to the k-th channel of ``dst[c]`` has mask ``dep[slot[c] + k]``.
    dep
        uint32[slots].
    """

    first: npt.NDArray[np.int32]
    dst: npt.NDArray[np.int32]
    slot: npt.NDArray[np.int32]
    dep: npt.NDArray[np.uint32]

    def _native(self, threads: int) -> Any:
        graph = ffi.new("cdg_dependencies *")
        graph.channels, graph.threads = len(self.dst), threads
        graph.first = pointer("int32_t *", self.first, np.int32)
        graph.dst = pointer("int32_t *", self.dst, np.int32)
        graph.slot = pointer("int32_t *", self.slot, np.int32)
        graph.dep = pointer("uint32_t *", self.dep, np.uint32)
        return graph

    def order(
        self, bits: npt.NDArray[np.uint8], *, threads: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Topological orders: int32[len(bits), C], and how many channels each holds (C: no cycle).

        Cost: O(turns) for every bit, which are shared among the threads.
        """
        order = np.empty((len(bits), len(self.dst)), np.int32)
        ordered = np.zeros(len(bits), np.int32)
        check(
            lib.ibn_cdg_order(
                self._native(threads),
                len(bits),
                pointer("uint8_t *", bits, np.uint8),
                pointer("int32_t *", order, np.int32),
                pointer("int32_t *", ordered, np.int32),
            )
        )
        return order, ordered
