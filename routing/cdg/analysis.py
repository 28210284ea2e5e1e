"""Analyse tables: trace all routes, then find a certificate or the shortest credit loops.

Packets may keep their VL along the path, or change it from hop to hop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from routing._kernels.cdg import Trace, trace, trace_endports
from routing._kernels.cdg_by_vl import VlTrace, trace_vls, trace_vls_endports
from routing._kernels.dependencies import sort_channels
from routing._kernels.slots import Slots
from routing.cdg.acyclic import AcyclicCdg
from routing.cdg.certificate import Certificate, Scope, Strength
from routing.cdg.graph import Cycle, DependencyGraph
from routing.cdg.trace import REPLIES, uniform_sl2vl, vl_bits, vl_masks
from routing.cdg.union import acyclic_union
from routing.fabric import Fabric
from routing.tables import Routing

_STRENGTHS: tuple[tuple[bool, Strength], ...] = ((True, "reversible"), (False, "forward"))
_SCOPES: tuple[tuple[bool, Scope], ...] = ((True, "all"), (False, "endports"))


@dataclass(frozen=True, eq=False)
class Findings:
    """Result of the analysis of tables.

    Attributes
    ----------
    hops
        uint8[S, L], hops between switches, 255 where the packet is not delivered.
    undelivered
        Number of undelivered pairs (switch, LID) within one connected component.
    split
        Number of undelivered pairs (switch, LID) across two connected components.
    looping
        Number of pairs (switch, LID) whose route ends in a forwarding loop.
    dropped
        Number of pairs (switch, LID) with a complete route whose SL is dropped (VL 15).
    vls
        Highest VL in use + 1.
    certificate
        The certificate; None if requests from or to CAs and routers form a credit loop.
    cdg
        CDG of the traffic that the certificate covers, with its order.  None if there is no certificate, or if VLs
        change from hop to hop.
    loop
        A shortest cycle of requests from or to CAs and routers; None if there is no cycle.
    reply_loop
        A shortest cycle of these requests and their replies; None if there is no such cycle, or if no search was made.
    switch_loop
        A shortest cycle that forms only with switch-to-switch traffic, which the certificate leaves out.  None if there
        is no such cycle, or if no search was made.
    """

    hops: npt.NDArray[np.uint8]
    undelivered: int
    split: int
    looping: int
    dropped: int
    vls: int
    certificate: Certificate | None
    cdg: AcyclicCdg | None
    loop: Cycle | None
    reply_loop: Cycle | None
    switch_loop: Cycle | None


class Graphs(Protocol):
    """Channel dependency graphs of some tables, for every selection of traffic: with or without replies, with or
    without switch-to-switch traffic.
    """

    def order(self, *, replies: bool, switch_pairs: bool) -> npt.NDArray[np.int32] | None:
        """Return int32[V, C], a topological order of the CDG; None if the CDG has a cycle.

        The arguments state whether the CDG includes replies, and switch-to-switch traffic.
        """
        ...

    def cycle(self, *, replies: bool, switch_pairs: bool) -> Cycle:
        """Return a shortest cycle of the CDG, which must have a cycle.

        The arguments state whether the CDG includes replies, and switch-to-switch traffic.
        """
        ...


def analyse(fabric: Fabric, routing: Routing, *, threads: int, explain: bool = True) -> Findings:
    """Follow all routes, collect their dependencies, and find a topological order or the shortest cycles.

    Without ``explain``, the cycles that do not prevent a certificate are not searched for: ``reply_loop`` and
    ``switch_loop`` are None.
    """
    row = uniform_sl2vl(routing)
    if row is None:
        return _analyse_changing_vls(fabric, routing, threads, explain)
    return _analyse_fixed_vls(fabric, routing, vl_bits(row), threads, explain)


def _analyse_fixed_vls(
    fabric: Fabric, routing: Routing, vl_bit: npt.NDArray[np.uint16], threads: int, explain: bool
) -> Findings:
    slots = Slots.of(fabric)
    union = acyclic_union(fabric, routing, slots, vl_bit, threads=threads)
    certificate: Certificate | None
    cdg: AcyclicCdg | None
    if union is not None:
        # The union has the dependencies of all VLs and of all traffic, replies included.  Its topological order is
        # therefore valid on each VL and for all traffic.  No certificate is stronger.
        found, cdg, vls = union.found, union.cdg, len(union.cdg.order)
        certificate = Certificate(union.cdg.order, "reversible", "all")
        loop = reply_loop = switch_loop = None
    else:
        graphs = _FixedVls(fabric, routing, slots, vl_bit, threads)
        found, vls = graphs.found, graphs.vls
        certificate, loop, reply_loop, switch_loop = judge(graphs, explain)
        cdg = None if certificate is None else graphs.cdg(certificate)
    return Findings(
        hops=found.hops, undelivered=found.undelivered, split=found.split, looping=found.looping,
        dropped=0 if vl_bit.all() else _count_dropped(fabric, routing, found, vl_bit), vls=vls,
        certificate=certificate, cdg=cdg, loop=loop, reply_loop=reply_loop, switch_loop=switch_loop,
    )  # fmt: skip


def _analyse_changing_vls(fabric: Fabric, routing: Routing, threads: int, explain: bool) -> Findings:
    graphs = _ChangingVls(fabric, routing, threads)
    certificate, loop, reply_loop, switch_loop = judge(graphs, explain)
    found = graphs.trace(replies=True)
    return Findings(
        hops=found.hops, undelivered=found.undelivered, split=found.split, looping=found.looping,
        dropped=found.dropped, vls=graphs.vls(replies=False) if certificate is None else len(certificate.order),
        certificate=certificate, cdg=None, loop=loop, reply_loop=reply_loop, switch_loop=switch_loop,
    )  # fmt: skip


def judge(graphs: Graphs, explain: bool) -> tuple[Certificate | None, Cycle | None, Cycle | None, Cycle | None]:
    """Return the strongest certificate that the tables allow, and three cycles: ``loop``, ``reply_loop`` and
    ``switch_loop``.  :class:`Findings` explains the cycles.

    A certificate for requests and replies is tried before a certificate for requests only.  Within each of these
    strengths, a certificate for all traffic is tried before a certificate without switch-to-switch traffic.

    If ``explain`` is False, ``reply_loop`` and ``switch_loop`` are None, because no search for these cycles is made.
    """
    cycles: dict[bool, Cycle] = {}
    for replies, strength in _STRENGTHS:
        for switch_pairs, scope in _SCOPES:
            order = graphs.order(replies=replies, switch_pairs=switch_pairs)
            if order is not None:
                certificate = Certificate(order, strength, scope)
                seen = switch_pairs or not explain
                left_out = None if seen else graphs.cycle(replies=replies, switch_pairs=True)
                return certificate, None, cycles.get(True), left_out
        if explain or not replies:
            cycles[replies] = graphs.cycle(replies=replies, switch_pairs=False)
    return None, cycles[False], cycles.get(True), None


class _FixedVls:
    """CDGs if the VL depends on the SL alone: one graph for each VL."""

    def __init__(
        self, fabric: Fabric, routing: Routing, slots: Slots, vl_bit: npt.NDArray[np.uint16], threads: int
    ) -> None:
        self._fabric, self._routing, self._vl_bit, self._threads = fabric, routing, vl_bit, threads
        self._slots = slots
        self.found = trace(fabric, routing, self._slots, vl_bit, threads=threads)
        self.vls = _vls_used(fabric, routing, vl_bit, self.found)
        self._dep = {True: self.found.dep}
        self._order: dict[tuple[bool, bool], npt.NDArray[np.int32]] = {}
        self._cycle: dict[tuple[bool, bool], Cycle] = {}

    def order(self, *, replies: bool, switch_pairs: bool) -> npt.NDArray[np.int32] | None:
        channels = self._fabric.channels
        if switch_pairs not in self._dep:
            self._dep[switch_pairs] = trace_endports(
                self._fabric, self._routing, self._slots, self._vl_bit, self.found, threads=self._threads
            )
        vls = np.arange(self.vls, dtype=np.uint8) + np.uint8(REPLIES if replies else 0)
        order = sort_channels(channels, self._dep[switch_pairs], vls, threads=self._threads)
        self._order[replies, switch_pairs] = order
        return order if (order >= 0).all() else None

    def cdg(self, certificate: Certificate) -> AcyclicCdg:
        """Return the channel dependency graph of the traffic that a certificate covers."""
        masks = vl_masks(self._dep[certificate.scope == "all"], replies=certificate.strength == "reversible")
        return AcyclicCdg(self._fabric, masks, certificate.order)

    def cycle(self, *, replies: bool, switch_pairs: bool) -> Cycle:
        """Return a shortest cycle of the CDG for the traffic that the arguments select.

        The search covers only channels to which :meth:`order` could assign no position.  All other channels are on no
        cycle.
        """
        dep = self._dep[switch_pairs]
        with_replies, alone = (vl_masks(dep, replies=included) for included in (True, False))
        other = self._cycle.get((not replies, switch_pairs))
        if other is not None and np.array_equal(with_replies, alone):
            return other
        found = _shortest_open(self._fabric, with_replies if replies else alone, self._order[replies, switch_pairs])
        self._cycle[replies, switch_pairs] = found
        return found


class _ChangingVls:
    """CDGs if the VL may change from hop to hop: one graph over all pairs (channel, VL)."""

    def __init__(self, fabric: Fabric, routing: Routing, threads: int) -> None:
        self._fabric, self._routing, self._threads = fabric, routing, threads
        self._slots = Slots.of(fabric)
        self._found: dict[bool, VlTrace] = {}
        self._graphs: dict[tuple[bool, bool], DependencyGraph] = {}

    def trace(self, *, replies: bool) -> VlTrace:
        """Trace all routes, with or without replies, and return the result; each trace is computed once."""
        if replies not in self._found:
            self._found[replies] = trace_vls(
                self._fabric, self._routing, self._slots, replies=replies, threads=self._threads
            )
        return self._found[replies]

    def vls(self, *, replies: bool) -> int:
        """Return the highest VL in use + 1, with or without replies."""
        return max(1, self.trace(replies=replies).vls.bit_length())

    def order(self, *, replies: bool, switch_pairs: bool) -> npt.NDArray[np.int32] | None:
        if not switch_pairs:
            # The scope "endports" has two kinds of traffic: to CAs and routers, and from CAs and routers to switches.
            # The trace `found` has the dependencies of the first kind, and the dependencies of all traffic.  If the
            # first kind has a cycle, there is no order, and the second kind need not be traced.  If both sets of
            # dependencies are equal, the stored graph of all traffic is used, so that no second graph is built.
            found = self.trace(replies=replies)
            equal = np.array_equal(found.to_endports, found.dep)
            if (self._graph(replies, True) if equal else self._graph_of(found.to_endports, replies)).order() is None:
                return None
        return self._graph(replies, switch_pairs).order()

    def cycle(self, *, replies: bool, switch_pairs: bool) -> Cycle:
        return self._graph(replies, switch_pairs).shortest_cycle(self._fabric)

    def _graph(self, replies: bool, switch_pairs: bool) -> DependencyGraph:
        if (replies, switch_pairs) not in self._graphs:
            found = self.trace(replies=replies)
            dep = found.dep
            if not switch_pairs:
                dep = trace_vls_endports(
                    self._fabric, self._routing, self._slots, found, replies=replies, threads=self._threads
                )
            self._graphs[replies, switch_pairs] = self._graph_of(dep, replies)
        return self._graphs[replies, switch_pairs]

    def _graph_of(self, dep: npt.NDArray[np.uint16], replies: bool) -> DependencyGraph:
        return DependencyGraph.of_changing_vls(self._fabric.channels, dep, self.vls(replies=replies))


def _vls_used(fabric: Fabric, routing: Routing, vl_bit: npt.NDArray[np.uint16], found: Trace) -> int:
    if routing.service_levels.by_lid:
        used = vl_bit[routing.sl[fabric.lids.switch >= 0]]
    else:
        used = vl_bit[[bool(found.sls >> sl & 1) for sl in range(16)]] if found.sls else vl_bit
    return max(1, int(np.bitwise_or.reduce(used, initial=0)).bit_length())


def _shortest_open(fabric: Fabric, masks: npt.NDArray[np.uint16], order: npt.NDArray[np.int32]) -> Cycle:
    """Return a shortest cycle of a CDG, searched only among the channels whose position in ``order`` is -1.

    ``masks`` (uint16[edges]) holds the VLs of each CDG edge, as bits.  ``order`` (int32[V, C]) holds the position of
    each channel on each VL: -1 for channels on a cycle, and for channels downstream of a cycle.
    """
    open_vls = np.bitwise_or.reduce((order < 0) << np.arange(len(order))[:, None], axis=0)
    edges, is_open = fabric.channels.edges, np.zeros_like(masks)
    before, after = edges.channels()
    is_open[edges.numbers()] = open_vls[before] & open_vls[after]
    return DependencyGraph.of_masks(fabric.channels, masks & is_open).shortest_cycle(fabric)


def _count_dropped(fabric: Fabric, routing: Routing, found: Trace, vl_bit: npt.NDArray[np.uint16]) -> int:
    """Count the pairs (switch, LID) whose packets are dropped because of their SL.

    A switch that sends to its own LID does not count.  ``found`` is the trace of all routes, and ``vl_bit``
    (uint16[16]) is 1 << VL of each SL, 0 for dropped SLs.
    """
    travels = (found.hops < 255) & ((found.hops > 0) | (fabric.lids.port != 0))
    lost = vl_bit[routing.sl] == 0
    if not routing.service_levels.by_source_lid:
        return int((travels & lost).sum())
    by_switch = np.zeros(travels.shape, bool)
    here = np.flatnonzero(fabric.lids.switch >= 0)
    np.logical_or.at(by_switch, fabric.lids.switch[here], lost[here])
    return int((travels & by_switch).sum())
