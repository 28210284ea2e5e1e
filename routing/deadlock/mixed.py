"""The mixed dependency graph: what can wait for what while a fabric goes from one set of tables to another.

A packet keeps no route: each switch sends it on by the entry that is there at that moment.  So on its way to a LID it
may meet old and new entries in any order, and what counts are all channels on which it can arrive at a switch by any
such mixture, each with both entries of that switch.  That is more than the dependencies of the old and of the new
tables together (the "ghost dependencies" of Pinkston, Pang and Duato, 2003).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.cdg import Trace, trace, trace_endports
from routing._kernels.cdg_lanes import LaneTrace, trace_lanes, trace_lanes_endports
from routing._kernels.dependencies import Dependencies
from routing._kernels.mixed import admit_mixed, trace_mixed, trace_mixed_lanes
from routing._kernels.slots import NOTHING, Slots
from routing.deadlock.analysis import Cycle
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
from routing.deadlock.entering import Entries, entering
from routing.fabric import Fabric
from routing.tables import DATA_VLS, Provenance, Routing

CELLS = 1 << 22
"""Entries of what enters that are held in memory at once."""

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Mixture:
    """Tables of which any entry may be of before or of after, at any moment.

    Attributes
    ----------
    fabric
        What they are for.
    before, after
        uint8[S, L], forwarding tables.
    sl
        One or two SL tables: a packet has the SL that any of them gives.
    sl2vl
        One or two SL2VL tables: every switch may have either.
    """

    fabric: Fabric
    before: Bytes
    after: Bytes
    sl: tuple[Bytes, ...]
    sl2vl: tuple[Bytes, ...]

    @classmethod
    def of(cls, fabric: Fabric, old: Routing, new: Routing) -> Mixture:
        """Any mixture of two routings.

        Raises
        ------
        TableError
            The shapes do not fit the fabric.
        """
        for routing in (old, new):
            routing.check_shapes(fabric)
        return cls(fabric, old.lft, new.lft, _distinct(old.sl, new.sl), _distinct_lanes(fabric, old, new))

    def between(self, before: Bytes, after: Bytes) -> Mixture:
        """The same SLs and VLs over other forwarding tables."""
        return Mixture(self.fabric, before, after, self.sl, self.sl2vl)

    @cached_property
    def changed(self) -> npt.NDArray[np.int64]:
        """int64[K], LIDs to which some switch changes its entry, of those that a switch delivers."""
        differs = (self.before != self.after).any(axis=0)
        return np.flatnonzero(differs & (self.fabric.lids.switch >= 0))

    def plain(self) -> Routing:
        """The tables before, with the first SLs and VLs."""
        return Routing(self.before, self.sl[0], self.sl2vl[0], 1, 1, Provenance("before"))

    def without(self, lids: npt.NDArray[np.int64]) -> Mixture:
        """The same, but for some LIDs whose entries stay as they are before."""
        after = self.after.copy()
        after[:, lids] = self.before[:, lids]
        return self.between(self.before, after)

    def columns(self, lids: npt.NDArray[np.int64]) -> tuple[Bytes, Bytes]:
        """uint8[K, S] twice: the columns of some LIDs, before and after, as rows."""
        return np.ascontiguousarray(self.before[:, lids].T), np.ascontiguousarray(self.after[:, lids].T)


def _distinct(a: Bytes, b: Bytes) -> tuple[Bytes, ...]:
    return (a,) if a is b or np.array_equal(a, b) else (a, b)


def _distinct_lanes(fabric: Fabric, old: Routing, new: Routing) -> tuple[Bytes, ...]:
    """SL2VL tables; one row if all ports have it, but for SLs that nobody uses."""
    rows = common_lanes(old), common_lanes(new)
    if rows[0] is not None and rows[1] is not None:
        differ = np.flatnonzero(rows[0] != rows[1]).tolist()
        if not any(bool((sl == level).any()) for level in differ for sl in (old.sl, new.sl)):
            return (rows[0],)
    ports = 1 + int(fabric.switch_ports.max(initial=0))
    whole = [
        table if table.ndim > 1 else np.broadcast_to(table, (fabric.switches, ports, ports, 16))
        for table in (old.sl2vl, new.sl2vl)
    ]
    return _distinct(whole[0], whole[1])


class MixedGraphs:
    """The dependency graphs of a mixture: with replies or not, with what switches send to switches or not.

    Only the columns of LIDs that change are followed over the mixture; for the others one pass over the tables before
    does.  (Where SLs or VLs change, all columns do.)
    """

    def __init__(self, mixture: Mixture, *, threads: int = 2) -> None:
        self._mixture, self._threads = mixture, threads
        self._slots = Slots.of(mixture.fabric)
        self._fixed = mixture.sl2vl[0].ndim == 1
        self._vls = 1 + max(int(table[table < DATA_VLS].max(initial=0)) for table in mixture.sl2vl)
        same = len(mixture.sl) == len(mixture.sl2vl) == 1
        self._plain = mixture.plain() if same else None
        self._columns = mixture.changed if same else np.flatnonzero(mixture.fabric.lids.switch >= 0)
        self._circling: set[int] = set()
        self._parts: dict[tuple[bool, bool, bool], npt.NDArray[Any]] = {}
        self._deps: dict[tuple[bool, bool], npt.NDArray[Any]] = {}
        self._trace: Trace | None = None
        self._lane_traces: dict[bool, LaneTrace] = {}
        self._graphs: dict[tuple[bool, bool], DependencyGraph] = {}

    def order(self, *, replies: bool, switch_pairs: bool) -> npt.NDArray[np.int32] | None:
        """int32[V, C], a topological order; None if there is a cycle."""
        if not self._fixed:
            order, acyclic = self.graph(replies=replies, switch_pairs=switch_pairs).order()
            return order if acyclic else None
        waits = self._waits(replies, switch_pairs)
        used = int(np.bitwise_or.reduce(waits[NOTHING:], initial=0)).bit_length()
        order, placed = self._orders(waits, max(1, used))
        return order if (placed == len(self._mixture.fabric.channels)).all() else None

    def cycle(self, *, replies: bool, switch_pairs: bool) -> Cycle:
        """A shortest cycle, where there is one."""
        graph = self.graph(replies=replies, switch_pairs=switch_pairs)
        return graph.shortest_cycle(enough=least_cycle(self._mixture.fabric, graph))

    def circling(self) -> npt.NDArray[np.int64]:
        """LIDs, of those whose columns are followed, for which packets may run in a circle."""
        if not self._parts:
            self._dep(False, False)
        return np.array(sorted(self._circling), np.int64)

    def graph(self, *, replies: bool, switch_pairs: bool) -> DependencyGraph:
        """What can wait for what; made once for each."""
        if (replies, switch_pairs) not in self._graphs:
            self._graphs[replies, switch_pairs] = self._make(replies, switch_pairs)
        return self._graphs[replies, switch_pairs]

    @property
    def fixed(self) -> bool:
        """Whether the VL of a packet never changes on its way."""
        return self._fixed

    def admit(
        self, before: Bytes, after: Bytes, lids: npt.NDArray[np.int64], *, replies: bool
    ) -> npt.NDArray[np.bool_]:
        """bool[K]: of some LIDs, in turn, those whose mixture closes no cycle with what waits and with those before.

        Of traffic from or to CAs and routers, where VLs stay.  ``before``, ``after``: uint8[S, L] whose columns count.

        Raises
        ------
        ValueError
            What waits has a cycle itself.
        """
        fabric, shift = self._mixture.fabric, np.uint32(REPLIES if replies else 0)
        waits = self._waits(replies, False)
        order, placed = self._orders(waits, DATA_VLS)
        if (placed < len(fabric.channels)).any():
            raise ValueError("there is a cycle already")
        ways = np.ascontiguousarray(before[:, lids].T), np.ascontiguousarray(after[:, lids].T)
        enter = np.empty((len(lids), fabric.switches), np.uint32)
        of_switch = fabric.lids.port[lids] == 0
        for some in (of_switch, ~of_switch):
            if some.any():
                enter[some] = self._enter(lids[some], switch_pairs=some is not of_switch)
        enter = (enter >> shift) & np.uint32(0xFFFF)
        return admit_mixed(fabric, self._slots, ways, enter, waits=waits, order=order)

    def _waits(self, replies: bool, switch_pairs: bool) -> npt.NDArray[np.uint32]:
        """uint32[slots], VLs on which each turn is taken, where they stay."""
        shift = np.uint32(REPLIES if replies else 0)
        return np.asarray((self._dep(False, switch_pairs) >> shift) & np.uint32(0xFFFF))

    def _orders(self, waits: npt.NDArray[np.uint32], vls: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """int32[V, C], int32[V]: a topological order for each VL, and how many channels have a place in it."""
        channels = self._mixture.fabric.channels
        graph = Dependencies(channels.first, channels.dst, self._slots.slot, waits)
        return graph.order(np.arange(vls, dtype=np.uint8), threads=self._threads)

    def _enter(self, lids: npt.NDArray[np.int64], *, switch_pairs: bool) -> npt.NDArray[np.uint32]:
        """uint32[K, S], VLs of what enters at each switch, with replies in the high half."""
        fabric, bit = self._mixture.fabric, vl_bits(self._mixture.sl2vl[0])
        entries = Entries.by_switch(fabric)
        requests, replies = entering(fabric, entries, self._mixture.sl, bit, lids, switch_pairs=switch_pairs)
        return np.asarray(requests | (requests | replies).astype(np.uint32) << np.uint32(REPLIES))

    def _make(self, replies: bool, switch_pairs: bool) -> DependencyGraph:
        channels, turns = len(self._mixture.fabric.channels), possible_turns(self._mixture.fabric, self._slots)
        if not self._fixed:
            return from_lane_masks(turns, self._dep(replies, switch_pairs)[turns[:, 2]], channels, self._vls)
        masks = self._waits(replies, switch_pairs)[turns[:, 2]].astype(np.uint16)
        used = int(np.bitwise_or.reduce(masks, initial=0)).bit_length()
        return from_masks(turns, masks, channels, max(1, used))

    def _dep(self, replies: bool, switch_pairs: bool) -> npt.NDArray[Any]:
        """uint32[slots] with replies in the high half; where VLs change, uint16[slots, V] with replies or not."""
        if (replies, switch_pairs) not in self._deps:
            dep = self._part(replies, False, True) | self._part(replies, True, switch_pairs)
            whole = dep if self._plain is None else dep | self._plain_dep(replies, switch_pairs)
            self._deps[replies, switch_pairs] = whole
        return self._deps[replies, switch_pairs]

    def _plain_dep(self, replies: bool, switch_pairs: bool) -> npt.NDArray[Any]:
        """Dependencies of the tables before."""
        assert self._plain is not None
        where, threads = (self._mixture.fabric, self._plain, self._slots), self._threads
        if self._fixed:
            bits = vl_bits(self._mixture.sl2vl[0])
            if self._trace is None:
                self._trace = trace(*where, bits, threads=threads)
            found = self._trace
            return found.dep if switch_pairs else trace_endports(*where, bits, found, threads=threads)
        if replies not in self._lane_traces:
            self._lane_traces[replies] = trace_lanes(*where, replies=replies, threads=threads)
        lanes = self._lane_traces[replies]
        return lanes.dep if switch_pairs else trace_lanes_endports(*where, lanes, replies=replies, threads=threads)

    def _part(self, replies: bool, switches: bool, switch_pairs: bool) -> npt.NDArray[Any]:
        """Dependencies on the way to the LIDs of switches, or to the others, whose columns are followed.

        uint32[slots] with replies in the high half, or uint16[slots, V].
        """
        key = replies, switches, switch_pairs
        if key not in self._parts:
            of_switch = self._mixture.fabric.lids.port[self._columns] == 0
            columns = self._columns[of_switch == switches]
            collect = self._collect_fixed if self._fixed else self._collect_lanes
            self._parts[key] = collect(columns, replies, switch_pairs)
        return self._parts[key]

    def _collect_fixed(self, columns: npt.NDArray[np.int64], _: bool, switch_pairs: bool) -> npt.NDArray[Any]:
        dep = np.zeros(self._slots.count, np.uint32)
        for some in self._chunks(columns, self._mixture.fabric.switches):
            enter = self._enter(some, switch_pairs=switch_pairs)
            self._note(some, trace_mixed(self._slots, self._mixture.columns(some), enter, dep, threads=self._threads))
        return dep

    def _collect_lanes(self, columns: npt.NDArray[np.int64], replies: bool, switch_pairs: bool) -> npt.NDArray[Any]:
        fabric, mixture = self._mixture.fabric, self._mixture
        bit = (1 << np.arange(16)).astype(np.uint16)
        entries, dep = Entries.by_port(fabric), np.zeros((self._slots.count, self._vls), np.uint16)
        lanes, where = (mixture.sl2vl[0], mixture.sl2vl[-1]), (entries.switch, entries.port)
        for some in self._chunks(columns, len(entries)):
            ways = mixture.columns(some)
            enter, back = entering(fabric, entries, mixture.sl, bit, some, switch_pairs=switch_pairs)
            enter = np.ascontiguousarray(enter | back if replies else enter)
            found = trace_mixed_lanes(
                fabric, self._slots, ways, enter, dep, sl2vl=lanes, entries=where, threads=self._threads
            )
            self._note(some, found)
        return dep

    def _note(self, columns: npt.NDArray[np.int64], circles: npt.NDArray[np.bool_]) -> None:
        self._circling.update(columns[circles].tolist())

    def _chunks(self, columns: npt.NDArray[np.int64], places: int) -> Iterator[npt.NDArray[np.int64]]:
        wide = max([places, *(len(sl) for sl in self._mixture.sl if sl.ndim == 2)])
        size = max(1, CELLS // max(wide, 1))
        for start in range(0, len(columns), size):
            yield columns[start : start + size]
