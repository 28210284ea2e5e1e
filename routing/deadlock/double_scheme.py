"""Double Scheme: install new tables without stopping all traffic, adapted to InfiniBand.

The destination LIDs are split into two sets.  While no packets are sent to one set and the new routes of this set are
written, the other set carries all traffic, on separate VLs.

Source: Pinkston, Pang and Duato (2003), the enhanced basic scheme in five steps.  There, each switch has a routing
function for each of two sets of VLs.  An InfiniBand switch has one forwarding table for all VLs.  So here the two sets
are sets of LIDs.  With LMC > 0 each end port has LIDs in both sets, and can be reached at any time.  With LMC 0, an end
port has a LID in one set only, so traffic to this end port has to wait while no packets are sent to this set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing.cdg.graph import DependencyGraph
from routing.deadlock.lost import LostLids
from routing.deadlock.mixed import MixedGraphs, Mixture
from routing.deadlock.mixed_witness import black_holes
from routing.fabric import NO_PORT, Fabric
from routing.tables import DATA_VLS, Routing, ServiceLevels

Lids = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Flow:
    """Packets that may be in the fabric: packets for some LIDs, routed by given tables.

    Attributes
    ----------
    routing
        The tables by which the packets are forwarded.
    lids
        bool[L], the LIDs to which the packets are sent.
    """

    routing: Routing
    lids: Lids

    def masked(self) -> Routing:
        """Return the tables ``routing``, with 255 in all entries towards LIDs that are not in ``lids``."""
        return replace(self.routing, lft=np.where(self.lids, self.routing.lft, np.uint8(NO_PORT)))


@dataclass(frozen=True, eq=False)
class Step:
    """One of the five steps of the Double Scheme, with its proof.

    Attributes
    ----------
    number, title
        Number of the step, 1 to 5, and its action for printing.
    tables
        Tables of this step: the forwarding tables and SL2VL tables of the switches, and the SLs of the senders.
    inject
        bool[L], LIDs to which packets are sent.
    drained
        bool[L], LIDs for which no packet is in the fabric.
    flows
        All traffic that may be in the fabric during the step.
    wait
        Condition that must be met before the next step; "" if there is none.
    order
        int32[V, C], a topological order of the dependencies of all flows; None if these dependencies have a cycle.
    cycle
        A shortest cycle of the dependencies, as pairs (channel, VL); empty if there is no cycle.
    lost
        Number of entries that the flows use and that drop packets.
    """

    number: int
    title: str
    tables: Routing
    inject: Lids
    drained: Lids
    flows: tuple[Flow, ...]
    wait: str
    order: npt.NDArray[np.int32] | None
    cycle: tuple[tuple[int, int], ...]
    lost: int

    @property
    def safe(self) -> bool:
        """Return whether the flows of the step cannot form a credit loop."""
        return self.order is not None


@dataclass(frozen=True, eq=False)
class DoubleScheme:
    """Five steps from the old tables to the new tables, which drain one half of the LIDs at a time.

    Attributes
    ----------
    steps
        The steps in order.
    first, second
        bool[L] each, the two sets of LIDs.  The first set gets its new routes first.
    shifted
        Substitute SL for each SL of the old tables.  With the substitutes, packets to the second set use separate VLs.
        Empty if both sets use the same VLs.
    above
        Difference between the VL of a substitute SL and the VL of the SL that it replaces.
    gapless
        Whether in every step, each end port has some LID to which packets are sent.
    """

    steps: tuple[Step, ...]
    first: Lids
    second: Lids
    shifted: dict[int, int]
    above: int
    gapless: bool

    @property
    def safe(self) -> bool:
        """Return whether in each step CAs may send packets to some LID, and no step can form a credit loop."""
        return all(step.safe and step.inject.any() for step in self.steps)


def double_scheme(
    fabric: Fabric,
    old: Routing,
    new: Routing,
    *,
    lost: LostLids | None = None,
    replies: bool = False,
    max_vls: int = 8,
    threads: int = 2,
) -> DoubleScheme | None:
    """Compute the five steps of the Double Scheme, and check that the CDG of all traffic in each step is acyclic.

    Parameters
    ----------
    fabric, old, new
        The fabric and its old and new tables.
    lost
        The LIDs that no port has any more, with their former owners, if known.  The first set contains these LIDs,
        and no packets are sent to them.
    replies
        Whether reply traffic is included.
    max_vls
        Number of data VLs that every port has.
    threads
        Worker threads.

    Returns
    -------
    DoubleScheme or None
        The five steps, which may be unsafe.  None if one of the two sets of LIDs would be empty.  Also None if the
        SL2VL tables differ and there are not enough free SLs and VLs to separate the two sets.

    Notes
    -----
    Cost: at most seven dependency graphs, one for each flow of each step.
    """
    gone = Mixture.of(fabric, old, new, lost).misdirected
    first, second = split_lids(fabric, old, new, gone)
    if not first.any() or not second.any():
        return None
    shift = _shift(fabric, old, new, max_vls, gone)
    if shift is None:
        if not _same_vls(old, new):
            return None
        shift = {}
    scheme = _Scheme(fabric, (first, second), gone, lost, replies=replies, threads=threads)
    steps = scheme.steps(old, new, shift)
    here = np.flatnonzero(fabric.lids.endport >= 0)
    reached = [np.bincount(fabric.lids.endport[here], step.inject[here], fabric.endports) for step in steps]
    cabled = (fabric.endport_switch >= 0) & (fabric.endport_lid > 0)
    gapless = all(bool((count[cabled] > 0).all()) for count in reached)
    return DoubleScheme(steps, first, second, shift, _above(fabric, old, new, gone) if shift else 0, gapless)


def split_lids(fabric: Fabric, old: Routing, new: Routing, gone: npt.NDArray[np.int64]) -> tuple[Lids, Lids]:
    """Split the LIDs into two sets, bool[L] each.

    If an end port has several LIDs, half of them are in each set.  Of the other LIDs whose columns change, every second
    LID is in the first set.  LIDs that are gone but still have entries (``gone``: int64[K]) are in the first set, too.
    All remaining LIDs are in the second set.  Cost: O(S L).
    """
    lids = fabric.lids
    delivered = lids.switch >= 0
    changed = delivered & (old.lft != new.lft).any(axis=0)
    first = np.zeros(len(lids), bool)
    owner = lids.endport
    several = (owner >= 0) & (fabric.endport_lmc[owner] > 0) if fabric.endports else np.zeros(len(lids), bool)
    own = owner[several]
    offset = np.flatnonzero(several) - fabric.endport_lid[own].astype(np.int64)
    first[several] = offset < (1 << fabric.endport_lmc[own].astype(np.int64)) // 2
    first[np.flatnonzero(changed & ~several)[::2]] = True
    first &= delivered
    first[gone] = True
    return first, delivered & ~first


def _used(fabric: Fabric, routing: Routing, gone: npt.NDArray[np.int64]) -> list[int]:
    here = fabric.lids.switch >= 0
    here[gone] = True
    return [int(sl) for sl in np.flatnonzero(np.bincount(routing.sl[..., here].ravel(), minlength=16))]


def _same_vls(old: Routing, new: Routing) -> bool:
    return old.sl2vl.shape == new.sl2vl.shape and np.array_equal(old.sl2vl, new.sl2vl)


def _shift(
    fabric: Fabric, old: Routing, new: Routing, max_vls: int, gone: npt.NDArray[np.int64]
) -> dict[int, int] | None:
    """Choose a substitute for each SL of the old tables, among the SLs that neither the old nor the new tables use.
    Packets with a substitute SL use VLs that no other packets use.

    ``gone`` (int64[K]) lists LIDs that no port has any more.  Returns None if there are not enough free SLs, or if
    their VLs exceed ``max_vls``.
    """
    mine, theirs = (_used(fabric, routing, gone) for routing in (old, new))
    free = [sl for sl in range(16) if sl not in {*mine, *theirs}]
    vls = [_vls_over(routing, sls) for routing, sls in ((old, mine), (new, theirs))]
    if len(free) < len(mine) or max(vls) + vls[0] > min(max_vls, DATA_VLS):
        return None
    return dict(zip(mine, free, strict=False))


def _vls_over(routing: Routing, sls: Sequence[int]) -> int:
    """Return the highest data VL, plus 1, to which any of the given SLs is mapped."""
    table = routing.sl2vl[..., list(sls)]
    return 1 + int(table[table < DATA_VLS].max(initial=0))


def _above(fabric: Fabric, old: Routing, new: Routing, gone: npt.NDArray[np.int64]) -> int:
    """Return the lowest VL above all VLs that packets of the old and the new tables use.  ``gone`` lists LIDs that no
    port has any more.
    """
    return max(_vls_over(routing, _used(fabric, routing, gone)) for routing in (old, new))


class _Scheme:
    def __init__(
        self,
        fabric: Fabric,
        sets: tuple[Lids, Lids],
        gone: npt.NDArray[np.int64],
        lost: LostLids | None,
        *,
        replies: bool,
        threads: int,
    ) -> None:
        self._fabric, (self._first, self._second) = fabric, sets
        self._gone, self._lost_lids = gone, lost
        self._replies, self._threads = replies, threads

    def steps(self, old: Routing, new: Routing, shift: dict[int, int]) -> tuple[Step, ...]:
        first, second = self._first, self._second
        both, none = first | second, np.zeros_like(first)
        apart = self._apart(old, new, shift)
        moved = replace(apart, sl2vl=self._sl2vl(new, old, new, shift))
        half = replace(moved, lft=np.where(first, new.lft, old.lft), sl=self._sls(new, apart))
        whole = replace(new, sl2vl=half.sl2vl)
        other, fresh = Flow(apart, second), Flow(whole, first)
        leaving = (Flow(old, both), other) if shift else (Flow(old, both),)
        gone = "until all packets that were sent before have left"
        return (
            self._step(1, "send to the second set only", apart, inject=second, drained=none, flows=leaving, wait=gone),
            self._step(2, "write the routes of the first set", half, inject=second, drained=first, flows=(other,)),
            self._step(
                3, "send to the first set only", half, inject=first, drained=none, flows=(fresh, other), wait=gone
            ),
            self._step(4, "write the routes of the second set", whole, inject=first, drained=second, flows=(fresh,)),
            self._step(5, "send to both sets", whole, inject=both, drained=none, flows=(Flow(whole, both),)),
        )

    def _apart(self, old: Routing, new: Routing, shift: dict[int, int]) -> Routing:
        """Return the old tables with substitute SLs, which keep packets of the old tables apart from packets of the new
        tables.

        ``shift`` holds the substitute of each SL.  Packets with a substitute SL use VLs that no other packets use.
        """
        sl = np.arange(16, dtype=np.uint8)
        sl[list(shift)] = list(shift.values())
        return replace(old, sl=sl[old.sl], sl2vl=self._sl2vl(old, old, new, shift))

    def _sls(self, new: Routing, apart: Routing) -> npt.NDArray[np.uint8]:
        """Return the SL table for the steps in which the first set of LIDs has its new routes already.  The second set
        still has its old routes.

        For the first set, the result has the SLs of the new tables ``new``.  For the second set, it has the SLs of
        ``apart``: the old tables with substitute SLs, so that no packet on an old route shares a VL with a packet on
        a new route.  If the old or the new SL table has one row for each sender, the result has such rows too.
        """
        sls = new.service_levels, apart.service_levels
        rows = max(each.rows for each in sls)
        if not rows:
            return np.where(self._first, new.sl, apart.sl)
        return np.where(self._first, *(self._with_rows(each, rows) for each in sls))

    def _with_rows(self, sls: ServiceLevels, rows: int) -> npt.NDArray[np.uint8]:
        if sls.by_switch and rows != sls.rows:
            return sls.table[np.maximum(self._fabric.lids.switch, 0)]
        return sls.with_rows(rows)

    def _sl2vl(self, base: Routing, old: Routing, new: Routing, shift: dict[int, int]) -> npt.NDArray[np.uint8]:
        """Return the SL2VL tables of ``base`` with the substitute SLs of ``shift`` added.

        A substitute SL gets the VL of the old SL that it replaces, plus a constant.  Because of the constant, no other
        packets use the VL.
        """
        if not shift:
            return base.sl2vl
        above = _above(self._fabric, old, new, self._gone)
        shape = (new if old.sl_to_vl.uniform else old).sl2vl.shape
        table, own = (np.array(np.broadcast_to(routing.sl2vl, shape)) for routing in (base, old))
        for sl, stand_in in shift.items():
            vl = own[..., sl]
            table[..., stand_in] = np.where(vl < DATA_VLS, vl + np.uint8(above), vl)
        return table

    def _step(
        self,
        number: int,
        title: str,
        tables: Routing,
        *,
        inject: Lids,
        drained: Lids,
        flows: tuple[Flow, ...],
        wait: str = "",
    ) -> Step:
        graph = DependencyGraph.union([self._graph_of(flow.masked()) for flow in flows])
        order = graph.order()
        cycle = () if order is not None else tuple(graph.shortest_cycle(self._fabric))
        lost = sum(self._lost(flow) for flow in flows)
        inject = inject & (self._fabric.lids.switch >= 0)
        return Step(number, title, tables, inject, drained, flows, wait, order, cycle, lost)

    def _lost(self, flow: Flow) -> int:
        """Return the number of entries that drop packets of a flow."""
        switches, lids = np.nonzero(np.broadcast_to(flow.lids, flow.routing.lft.shape))
        return int(black_holes(self._fabric, flow.routing.lft, switches, lids).sum())

    def _graph_of(self, tables: Routing) -> DependencyGraph:
        """Return the dependency graph of the tables, including the entries for LIDs that no port has any more."""
        mixture = Mixture.of(self._fabric, tables, tables, self._lost_lids)
        graphs = MixedGraphs(mixture, threads=self._threads)
        return graphs.graph(replies=self._replies, switch_pairs=False)
