"""Kernel wrappers: follow every route, collect the channel dependencies, order them, find a shortest cycle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, pointer
from routing.errors import TableError
from routing.fabric import Fabric
from routing.tables import Routing

NOTHING = 256
"""Slots at the front that stand for no dependency (see csrc/cdg.h)."""


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
        size = degree[channels.dst].astype(np.int64) + 2
        end = NOTHING + np.cumsum(size)
        count = int(end[-1]) if len(end) else NOTHING
        if count >= 1 << 31:
            raise TableError(f"{count} possible dependencies between channels are more than can be numbered")
        slot = (end - size).astype(np.int32)
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
    undelivered, split, circling
        Pairs (switch, LID) that are not delivered within a connected part; between two; of both, in a circle.
    sls
        Mask of the SLs in use (0: not looked at, since all ride one VL).
    """

    hops: npt.NDArray[np.uint8]
    dep: npt.NDArray[np.uint32]
    undelivered: int
    split: int
    circling: int
    sls: int


def trace(fabric: Fabric, routing: Routing, slots: Slots, vl_bit: npt.NDArray[np.uint16], *, threads: int) -> Trace:
    """Follow every route where the VL hangs on the SL alone (``vl_bit``: uint16[16], 0 for a dropped SL).

    Cost: O(S L) time; memory for the slots once a thread.
    """
    lids = fabric.lids
    sl = np.ascontiguousarray(routing.sl)
    arrays = (np.ascontiguousarray(routing.lft), slots.exit, slots.xfirst, slots.xdst, slots.dep_first)
    hops = np.empty(routing.lft.shape, np.uint8)
    dep = np.zeros(slots.count, np.uint32)
    counts = np.zeros(4, np.int64)
    used = vl_bit[sl[lids.switch >= 0]] if sl.ndim == 1 else vl_bit
    tables = ffi.new("cdg_tables *")
    tables.switches, tables.lids = fabric.switches, len(lids)
    tables.slots, tables.sl_rows = slots.count, 0 if sl.ndim == 1 else sl.shape[0]
    tables.spread = int(len(used) > 0 and bool((used != used[0]).any()))
    tables.threads = threads if routing.lft.size > 100_000 else 1
    part = np.ascontiguousarray(fabric.component)
    for name, ctype, array, dtype in (
        ("lft", "uint8_t *", arrays[0], np.uint8),
        ("exit", "uint8_t *", slots.exit, np.uint8),
        ("xfirst", "int32_t *", slots.xfirst, np.int32),
        ("xdst", "int32_t *", slots.xdst, np.int32),
        ("dep_first", "int32_t *", slots.dep_first, np.int32),
        ("lid_switch", "int32_t *", lids.switch, np.int32),
        ("lid_port", "uint8_t *", lids.port, np.uint8),
        ("part", "int32_t *", part, np.int32),
        ("sl", "uint8_t *", sl, np.uint8),
        ("vl_bit", "uint16_t *", vl_bit, np.uint16),
    ):
        setattr(tables, name, pointer(ctype, array, dtype))
    check(
        lib.ibn_cdg_trace(
            tables,
            pointer("uint8_t *", hops, np.uint8),
            pointer("uint32_t *", dep, np.uint32),
            pointer("int64_t *", counts, np.int64),
        )
    )
    undelivered, split, circling, sls = counts.tolist()
    return Trace(hops, dep, undelivered, split, circling, sls)


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
