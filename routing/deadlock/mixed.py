"""Build the dependency graph of mixed tables, while a fabric changes from one set of tables to another.

During the change a packet has no fixed route: each switch forwards it by the entry that is installed at that moment.
So on its path to a LID a packet may meet old and new entries in any order.  A channel over which the packet can reach a
switch may depend on the channels of both entries of that switch.  So mixed tables can have dependencies that neither
the old nor the new tables have (the "ghost dependencies" of Pinkston, Pang and Duato, 2003).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.cdg import Trace, trace, trace_endports
from routing._kernels.cdg_by_vl import VlTrace, trace_vls, trace_vls_endports
from routing._kernels.slots import Slots
from routing._kernels.transition import admit_mixed, trace_mixed, trace_mixed_vls
from routing.cdg.acyclic import topological_order
from routing.cdg.graph import Cycle, DependencyGraph
from routing.cdg.injection import InjectionPoints, Masks, injected_traffic
from routing.cdg.trace import REPLIES, uniform_sl2vl, vl_bits, vl_masks
from routing.deadlock.lost import LostLids
from routing.deadlock.traffic_sources import lid_name
from routing.edges import NO_EDGES
from routing.fabric import NO_PORT, Fabric
from routing.tables import DATA_VLS, Provenance, Routing, ServiceLevels, SlToVl

CELLS = 1 << 22
"""Largest number of elements of an array with traffic.  Such an array has an element for each pair of a LID and a
source: a switch, a port, or a row of an SL table.  The LIDs are traced in chunks, so that no array has more elements.
"""

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Mixture:
    """Mixed tables: at any moment each switch may have the old or the new entry for each LID.

    Attributes
    ----------
    fabric
        The fabric of the tables.
    before, after
        uint8[S, L], old and new forwarding tables.
    sl
        SLs of the old tables, then SLs of the new tables if they differ.  A packet may have the old or the new SL.
    sl2vl
        Old SL2VL tables, then new SL2VL tables if they differ.  Every switch may use the old or the new table.
    lost
        Former owners of the LIDs that no port has any more.  Senders may still send to these LIDs, with the old SLs.
    """

    fabric: Fabric
    before: Bytes
    after: Bytes
    sl: tuple[ServiceLevels, ...]
    sl2vl: tuple[Bytes, ...]
    lost: LostLids

    @classmethod
    def of(cls, fabric: Fabric, old: Routing, new: Routing, lost: LostLids | None = None) -> Mixture:
        """Return the mixed tables of two routings.

        Parameters
        ----------
        fabric, old, new
            The fabric, and its old and new tables.
        lost
            Former owners of the LIDs that are gone, if known.

        Raises
        ------
        TableError
            The shapes do not fit the fabric.
        """
        for routing in (old, new):
            routing.check_shapes(fabric)
        lost = LostLids.unknown(fabric, old.sl) if lost is None else lost
        sl, sl2vl = _distinct_sls(fabric, old, new), _distinct_sl2vl(fabric, old, new)
        return cls(fabric, old.lft, new.lft, sl, sl2vl, lost)

    def between(self, before: Bytes, after: Bytes) -> Mixture:
        """Return mixed tables of two other forwarding tables, with the SL and SL2VL tables of this object."""
        return Mixture(self.fabric, before, after, self.sl, self.sl2vl, self.lost)

    @cached_property
    def changed(self) -> npt.NDArray[np.int64]:
        """Return int64[K], the LIDs for which some switch changes its entry.  LIDs without an owner are included."""
        return np.flatnonzero((self.before != self.after).any(axis=0))

    @cached_property
    def misdirected(self) -> npt.NDArray[np.int64]:
        """Return int64[K], the LIDs without an owner for which some old or new entry leads to another switch.

        A trace of the tables follows only LIDs that have an owner, and so leaves out these entries.  Cost: O(S) for
        each LID without an owner.
        """
        gone, rows = np.flatnonzero(self.fabric.lids.switch < 0), np.arange(self.fabric.switches)[:, None]
        found = []
        for lft in (self.before, self.after):
            named = gone[(lft[:, gone] != NO_PORT).any(axis=0)]
            found.append(named[(self.fabric.channels.at_port[rows, lft[:, named]] >= 0).any(axis=0)])
        return np.union1d(*found)

    @cached_property
    def of_switch(self) -> npt.NDArray[np.bool_]:
        """Return bool[L], whether each LID belongs to a switch.  If no port has the LID any more, its last owner
        counts.
        """
        lids = self.fabric.lids
        return np.asarray((lids.port == 0) | (self.lost.of_switch & (lids.switch < 0)))

    def removed(self, switch: npt.NDArray[np.int64], lid: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return bool[N], whether the new tables only remove each of N entries.

        The new tables only remove an entry if they name no port for it, and its LID is gone or unreachable.
        ``switch`` and ``lid`` (int64[N] each) name the N entries.  Such an entry can be removed at any time without
        danger: its switch then drops the packets, so no dependency is added.
        """
        target, part = self.fabric.lids.switch[lid], self.fabric.component
        apart = (target < 0) | (part[switch] != part[target])
        return np.asarray(apart & (self.after[switch, lid] == NO_PORT) & (self.before[switch, lid] != NO_PORT))

    def name_of(self, lid: int) -> str:
        """Return the name of the port that has a LID, or was its last owner; "" if unknown."""
        return lid_name(self.fabric, lid) if self.fabric.lids.switch[lid] >= 0 else self.lost.name.get(lid, "")

    def injected_traffic(
        self, positions: InjectionPoints, bit: Masks, lids: npt.NDArray[np.int64], *, switch_pairs: bool
    ) -> tuple[Masks, Masks]:
        """Return which SLs packets can have from each injection point to each of some LIDs.

        The first result is for requests, the second result is for replies.  Each result is uint16[K, N], for K LIDs
        and N injection points.  An element is a mask of the SLs of the packets from the injection point to the LID.
        ``bit`` (uint16[16]) gives the bit by which each SL is represented in the mask, such as the bit of its VL.

        A packet has the SL of the old or of the new tables.  Packets to some LIDs have only the SL of the old tables:
        LIDs that no port has any more, and LIDs in another part of the fabric.  The reason is that the SM answers with
        a new SL only if a path exists.

        ``positions`` are the injection points.  ``switch_pairs`` states whether switch-to-switch traffic is included.
        """
        fabric = self.fabric
        target, where = fabric.lids.switch[lids], {"switch_pairs": switch_pairs}
        requests, replies = injected_traffic(fabric, positions, self.sl[:1], bit, lids, **where)
        gone = target < 0
        if gone.any():
            senders = positions if switch_pairs else positions.without_switches(fabric)
            replies[gone] = self.lost.replies(lids[gone], senders, bit)
        if len(self.sl) > 1:
            more, back = injected_traffic(fabric, positions, self.sl[1:], bit, lids, **where)
            part = fabric.component
            near = ~gone[:, None] & (part[target][:, None] == part[positions.switch])
            requests |= np.where(near, more, np.uint16(0))
            replies |= np.where(near, back, np.uint16(0))
        return requests, replies

    def injected_vls(self, lids: npt.NDArray[np.int64], *, replies: bool) -> npt.NDArray[np.uint32]:
        """Return uint32[K, S], the VLs of the packets that enter at each switch towards each of K LIDs, as bits.

        Only traffic from or to CAs and routers counts.  Replies count only if ``replies`` is true.  Packets must not
        change their VL along a path.  Cost: O(K S), or O(K L) if SLs depend on the source LID.
        """
        points, bits = InjectionPoints.by_switch(self.fabric), vl_bits(self.sl2vl[0])
        enter = np.empty((len(lids), self.fabric.switches), np.uint32)
        of_switch = self.of_switch[lids]
        for some in (of_switch, ~of_switch):
            if some.any():
                sent, back = self.injected_traffic(points, bits, lids[some], switch_pairs=some is not of_switch)
                enter[some] = sent | back if replies else sent
        return enter

    def plain(self) -> Routing:
        """Return the old tables as a routing: the old forwarding tables, with the old SLs and the old SL2VL tables.

        The old SLs are the first element of :attr:`sl`, and the old SL2VL tables are the first element of
        :attr:`sl2vl`.
        """
        return Routing(self.before, self.sl[0].table, self.sl2vl[0], 1, 1, Provenance("before"))

    def without(self, lids: npt.NDArray[np.int64]) -> Mixture:
        """Return mixed tables in which the columns of some LIDs do not change: the columns keep their old entries."""
        after = self.after.copy()
        after[:, lids] = self.before[:, lids]
        return self.between(self.before, after)

    def columns(self, lids: npt.NDArray[np.int64]) -> tuple[Bytes, Bytes]:
        """Return the old and the new LFT columns of K LIDs as rows, uint8[K, S] each."""
        return np.ascontiguousarray(self.before[:, lids].T), np.ascontiguousarray(self.after[:, lids].T)


def leads_nowhere(
    fabric: Fabric, lft: Bytes, switches: npt.NDArray[np.int64], lids: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Return bool[N], which of N entries neither deliver their LID nor lead to a switch.

    An entry of ``lft`` (uint8[S, L]) leads nowhere if its port is 255, has no cable, or leads to a CA that does not
    have the LID.  ``switches`` and ``lids`` name the entries, int64[N] each.  Cost: O(N).
    """
    entry = lft[switches, lids]
    delivers = (switches == fabric.lids.switch[lids]) & (entry == fabric.lids.port[lids])
    looped = np.zeros((fabric.switches, 256), bool)
    ends = fabric.link_device
    back = np.flatnonzero((ends[:, 0] == ends[:, 1]) & (ends[:, 0] < fabric.switches))
    looped[ends[back], fabric.link_port[back]] = True
    leads = (fabric.channels.at_port[switches, entry] >= 0) | looped[switches, entry]
    return np.asarray(~delivers & ~leads)


def _distinct(a: Bytes, b: Bytes) -> tuple[Bytes, ...]:
    return (a,) if a is b or np.array_equal(a, b) else (a, b)


def _distinct_sls(fabric: Fabric, old: Routing, new: Routing) -> tuple[ServiceLevels, ...]:
    """Return the old and the new SLs.  If the old and the new SLs agree for all LIDs that a port has, return only the
    old SLs.
    """
    a, b = old.service_levels, new.service_levels
    if len(_distinct(a.table, b.table)) == 1:
        return (a,)
    if a.form is not b.form:
        return a, b
    here = fabric.lids.switch >= 0
    differs = (a.table != b.table) & here
    if a.by_source_lid:
        differs &= here[:, None]
    return (a, b) if differs.any() else (a,)


def _distinct_sl2vl(fabric: Fabric, old: Routing, new: Routing) -> tuple[Bytes, ...]:
    """Return the old and the new SL2VL tables, or one table if both agree.

    Tables whose VLs depend only on the SL agree if they give the same VL to each SL in use.  In this case, the result
    is one table with a VL for each of the 16 SLs.  In all other cases, each table has a VL for each switch, in-port,
    out-port and SL.
    """
    rows = uniform_sl2vl(old), uniform_sl2vl(new)
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
    """Dependency graphs of mixed tables, for each selection of traffic: with or without replies, with or without
    switch-to-switch traffic.

    Only the LFT columns that change are traced with mixed entries; one trace of the old tables covers the unchanged
    columns.  If SLs or SL2VL tables differ, all columns are traced with mixed entries.
    """

    def __init__(self, mixture: Mixture, *, threads: int = 2) -> None:
        self._mixture, self._threads = mixture, threads
        self._slots = Slots.of(mixture.fabric)
        # Whether every packet keeps its VL along its path.
        self.fixed = SlToVl(mixture.sl2vl[0]).uniform
        self._vls = 1 + max(int(table[table < DATA_VLS].max(initial=0)) for table in mixture.sl2vl)
        same = len(mixture.sl) == len(mixture.sl2vl) == 1
        self._plain = mixture.plain() if same else None
        followed = np.union1d(mixture.changed, mixture.misdirected)
        self._columns = followed if same else np.union1d(followed, np.flatnonzero(mixture.fabric.lids.switch >= 0))
        self._looping: set[int] = set()
        self._parts: dict[tuple[bool, bool, bool], npt.NDArray[Any]] = {}
        self._deps: dict[tuple[bool, bool], npt.NDArray[Any]] = {}
        self._trace: Trace | None = None
        self._vl_traces: dict[bool, VlTrace] = {}
        self._graphs: dict[tuple[bool, bool], DependencyGraph] = {}

    def order(self, *, replies: bool, switch_pairs: bool) -> npt.NDArray[np.int32] | None:
        """Return int32[V, C], a topological order of the dependencies of mixed tables; None if these dependencies have
        a cycle.

        The arguments select the traffic: whether replies, and whether switch-to-switch traffic, are included.
        """
        if not self.fixed:
            return self.graph(replies=replies, switch_pairs=switch_pairs).order()
        dependencies = self._dependencies(replies, switch_pairs)
        used = int(np.bitwise_or.reduce(dependencies[NO_EDGES:], initial=0)).bit_length()
        return self._topological_order(dependencies, max(1, used))

    def cycle(self, *, replies: bool, switch_pairs: bool) -> Cycle:
        """Return a shortest cycle of the dependencies of the mixed tables, which must have a cycle.

        The arguments select the traffic: whether replies, and whether switch-to-switch traffic, are included.
        """
        return self.graph(replies=replies, switch_pairs=switch_pairs).shortest_cycle(self._mixture.fabric)

    def looping(self) -> npt.NDArray[np.int64]:
        """Return the LIDs for which old and new entries, mixed, can form a forwarding loop."""
        if not self._parts:
            self._dep(False, False)
        return np.array(sorted(self._looping), np.int64)

    def graph(self, *, replies: bool, switch_pairs: bool) -> DependencyGraph:
        """Return the dependency graph of the mixed tables; the graph is built at the first call for these arguments
        (see :meth:`order`).
        """
        if (replies, switch_pairs) not in self._graphs:
            self._graphs[replies, switch_pairs] = self._make(replies, switch_pairs)
        return self._graphs[replies, switch_pairs]

    def admit(
        self, before: Bytes, after: Bytes, lids: npt.NDArray[np.int64], *, replies: bool
    ) -> npt.NDArray[np.bool_]:
        """Return bool[K], whether the column of each of the K LIDs can change now without a cycle in the CDG of any VL.

        LIDs are checked one after the other.  A LID is admitted if its old and new entries close no cycle with other
        dependencies.  The other dependencies are those of the mixed tables of this object, and those of LIDs admitted
        earlier.

        Only traffic from or to CAs and routers counts.  Packets must keep their VL along a path (:attr:`fixed`).
        ``before`` and ``after`` (uint8[S, L] each) are the LFTs with the old and the new entries of these LIDs.

        Raises
        ------
        ValueError
            The dependencies of the mixed tables of this object have a cycle.
        """
        dependencies = self._dependencies(replies, False)
        order = self._topological_order(dependencies, DATA_VLS)
        if order is None:
            raise ValueError("there is a cycle already")
        next_channels = self._mixture.between(before, after).columns(lids)
        enter = self._mixture.injected_vls(lids, replies=replies)
        return admit_mixed(
            self._mixture.fabric, self._slots, next_channels, enter, dependencies=dependencies, order=order
        )

    def _dependencies(self, replies: bool, switch_pairs: bool) -> npt.NDArray[np.uint32]:
        """Return uint32[edges]: for each CDG edge, the VLs (as bits) on which packets of the mixed tables use it.

        Packets must keep their VL along a path.
        """
        return vl_masks(self._dep(False, switch_pairs), replies=replies).astype(np.uint32)

    def _topological_order(self, dependencies: npt.NDArray[np.uint32], vls: int) -> npt.NDArray[np.int32] | None:
        return topological_order(self._mixture.fabric.channels, dependencies, vls, threads=self._threads)

    def _enter(self, lids: npt.NDArray[np.int64], *, switch_pairs: bool) -> npt.NDArray[np.uint32]:
        """Return uint32[K, S], the VLs of packets that enter at each switch towards each of K LIDs, as bits.

        The low 16 bits hold the VLs of requests.  The high 16 bits hold the VLs that requests or replies use.
        """
        fabric, bit = self._mixture.fabric, vl_bits(self._mixture.sl2vl[0])
        entries = InjectionPoints.by_switch(fabric)
        requests, replies = self._mixture.injected_traffic(entries, bit, lids, switch_pairs=switch_pairs)
        return np.asarray(requests | (requests | replies).astype(np.uint32) << np.uint32(REPLIES))

    def _make(self, replies: bool, switch_pairs: bool) -> DependencyGraph:
        channels = self._mixture.fabric.channels
        if not self.fixed:
            return DependencyGraph.of_changing_vls(channels, self._dep(replies, switch_pairs), self._vls)
        return DependencyGraph.of_masks(channels, vl_masks(self._dep(False, switch_pairs), replies=replies))

    def _dep(self, replies: bool, switch_pairs: bool) -> npt.NDArray[Any]:
        """Return the VLs on which packets of the mixed tables use each CDG edge, as bits.  The result is cached.

        If packets keep their VL, the result is uint32[edges].  The low 16 bits hold the VLs of requests.  The high 16
        bits hold the VLs that requests or replies use.  If packets change their VL, the result is uint16[edges, V].  It
        has, for each edge and each VL on the first channel of the edge, the VLs on the second channel of the edge.
        """
        if (replies, switch_pairs) not in self._deps:
            dep = self._part(replies, False, True) | self._part(replies, True, switch_pairs)
            whole = dep if self._plain is None else dep | self._plain_dep(replies, switch_pairs)
            self._deps[replies, switch_pairs] = whole
        return self._deps[replies, switch_pairs]

    def _plain_dep(self, replies: bool, switch_pairs: bool) -> npt.NDArray[Any]:
        """Return the VLs on which packets of the old tables use each CDG edge.  The result has the shape of
        :meth:`_dep`.
        """
        assert self._plain is not None
        where, threads = (self._mixture.fabric, self._plain, self._slots), self._threads
        if self.fixed:
            bits = vl_bits(self._mixture.sl2vl[0])
            if self._trace is None:
                self._trace = trace(*where, bits, threads=threads)
            found = self._trace
            return found.dep if switch_pairs else trace_endports(*where, bits, found, threads=threads)
        if replies not in self._vl_traces:
            self._vl_traces[replies] = trace_vls(*where, replies=replies, threads=threads)
        vls = self._vl_traces[replies]
        return vls.dep if switch_pairs else trace_vls_endports(*where, vls, replies=replies, threads=threads)

    def _part(self, replies: bool, switches: bool, switch_pairs: bool) -> npt.NDArray[Any]:
        """Return the VLs on which packets to some LIDs use each CDG edge of the mixed tables.

        The LIDs are those of switches if ``switches`` is true, and all other LIDs if it is false.  LIDs whose columns
        are not traced with mixed entries are left out.  ``replies`` states whether replies are included.
        ``switch_pairs`` states whether switch-to-switch traffic is included.  The result has the shape of :meth:`_dep`.
        """
        key = replies, switches, switch_pairs
        if key not in self._parts:
            of_switch = self._mixture.of_switch[self._columns]
            columns = self._columns[of_switch == switches]
            collect = self._collect_fixed if self.fixed else self._collect_vls
            self._parts[key] = collect(columns, replies, switch_pairs)
        return self._parts[key]

    def _collect_fixed(self, columns: npt.NDArray[np.int64], _: bool, switch_pairs: bool) -> npt.NDArray[Any]:
        dep = np.zeros(self._slots.count, np.uint32)
        for some in self._chunks(columns, self._mixture.fabric.switches):
            enter = self._enter(some, switch_pairs=switch_pairs)
            self._note(some, trace_mixed(self._slots, self._mixture.columns(some), enter, dep, threads=self._threads))
        return dep

    def _collect_vls(self, columns: npt.NDArray[np.int64], replies: bool, switch_pairs: bool) -> npt.NDArray[Any]:
        fabric, mixture = self._mixture.fabric, self._mixture
        bit = (1 << np.arange(16)).astype(np.uint16)
        entries, dep = InjectionPoints.by_port(fabric), np.zeros((self._slots.count, self._vls), np.uint16)
        vls, where = (mixture.sl2vl[0], mixture.sl2vl[-1]), (entries.switch, entries.port)
        for some in self._chunks(columns, len(entries)):
            next_channels = mixture.columns(some)
            enter, back = mixture.injected_traffic(entries, bit, some, switch_pairs=switch_pairs)
            enter = np.ascontiguousarray(enter | back if replies else enter)
            found = trace_mixed_vls(
                fabric, self._slots, next_channels, enter, dep, sl2vl=vls, entries=where, threads=self._threads
            )
            self._note(some, found)
        return dep

    def _note(self, columns: npt.NDArray[np.int64], loops: npt.NDArray[np.bool_]) -> None:
        self._looping.update(columns[loops].tolist())

    def _chunks(self, columns: npt.NDArray[np.int64], positions: int) -> Iterator[npt.NDArray[np.int64]]:
        wide = max([positions, *(sl.rows for sl in self._mixture.sl)])
        size = max(1, CELLS // max(wide, 1))
        for start in range(0, len(columns), size):
            yield columns[start : start + size]
