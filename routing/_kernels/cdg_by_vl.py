"""Kernel wrapper: follow every route of packets that may change their VL from hop to hop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.cdg import tables_of
from routing._kernels.native import call, lib, struct_of
from routing._kernels.slots import Slots
from routing.fabric import Fabric
from routing.tables import DATA_VLS, Routing


@dataclass(frozen=True, eq=False)
class VlTrace:
    """Result of following every route of packets that may change their VL from hop to hop.

    Attributes
    ----------
    hops
        uint8[S, L], hops between switches (254: 254 or more), 255 where the packet is not delivered.
    undelivered, split
        Number of undelivered pairs (switch, LID) within one connected part, and across two connected parts.
    looping
        Number of undelivered pairs (switch, LID) of either kind whose route ends in a forwarding loop.
    dep
        uint16[edges, V]: for each CDG edge and each VL on its first channel, the VLs, as bits, on its second channel.
    to_endports
        uint16[edges, V], like ``dep``, but only for routes to CAs and routers.
    vls
        VLs in use, as bits.
    dropped
        Number of pairs (switch, LID) that lose packets although their route is complete.  The packets of at least one
        sender at the switch are dropped because of their SL.
    """

    hops: npt.NDArray[np.uint8]
    dep: npt.NDArray[np.uint16]
    to_endports: npt.NDArray[np.uint16]
    undelivered: int
    split: int
    looping: int
    vls: int
    dropped: int


def trace_vls(fabric: Fabric, routing: Routing, slots: Slots, *, replies: bool, threads: int) -> VlTrace:
    """Follow every route, for tables in which the VL of a packet also depends on the in-port and out-port at each
    switch.

    ``slots`` numbers the CDG edges.  ``replies`` is whether replies are followed too.

    Cost: O(S L k) time, where k is the number of different SLs that packets to one LID have on one channel.  If replies
    are followed, or if the SL depends on the LID of the sender: O(L^2) more.  Memory: V times that of
    :func:`routing._kernels.cdg.trace`.
    """
    hops = np.empty(routing.lft.shape, np.uint8)
    dep = np.zeros((2, slots.count, _vls_in_use(routing)), np.uint16)
    tables = tables_of(fabric, routing, slots, threads=threads, switch_pairs=True)
    undelivered, split, looping, used, dropped = _run_vls(
        tables, fabric, routing, slots, replies=replies, hops=hops, dep=dep
    )
    np.bitwise_or(dep[0], dep[1], out=dep[1])
    return VlTrace(hops, dep[1], dep[0], undelivered, split, looping, used, dropped)


def trace_vls_endports(
    fabric: Fabric, routing: Routing, slots: Slots, found: VlTrace, *, replies: bool, threads: int
) -> npt.NDArray[np.uint16]:
    """Return the VLs on which each CDG edge is used if traffic between switches is left out.

    The result is uint16[edges, V], in the format of :attr:`VlTrace.dep`.  ``found`` is the trace with all traffic, and
    ``replies`` is whether replies are followed too.  Cost: the cost of :func:`trace_vls` for the LIDs of switches.
    """
    dep = np.zeros((2, *found.dep.shape), np.uint16)
    tables = tables_of(fabric, routing, slots, threads=threads, switch_pairs=False)
    _run_vls(tables, fabric, routing, slots, replies=replies, hops=None, dep=dep)
    return np.asarray(found.to_endports | dep[1])


def _vls_in_use(routing: Routing) -> int:
    """Return the highest VL in the SL2VL tables + 1."""
    return int((routing.sl2vl * (routing.sl2vl < DATA_VLS)).max(initial=0)) + 1


def _run_vls(
    tables: Any,
    fabric: Fabric,
    routing: Routing,
    slots: Slots,
    *,
    replies: bool,
    hops: npt.NDArray[np.uint8] | None,
    dep: npt.NDArray[np.uint16],
) -> list[int]:
    channels, x = fabric.channels, np.arange(len(fabric.channels)) + 2 * fabric.channels.src
    xport, xin = np.zeros(len(slots.xdst), np.uint8), np.zeros(len(slots.xdst), np.uint8)
    xport[x], xin[x] = channels.port, channels.dst_port
    switch, port, lid = _senders(fabric, routing)
    repliers = _repliers(fabric, routing) if replies else np.zeros(0, np.int32)
    vls = struct_of(
        "cdg_vl_assignment", ports=routing.sl2vl.shape[1], vls=dep.shape[2], senders=len(switch), sl2vl=routing.sl2vl,
        repliers=len(repliers), xport=xport, xin=xin, replier=repliers, sender_switch=switch,
        sender_port=port, sender_lid=lid,
    )  # fmt: skip
    counts = np.zeros(5, np.int64)
    call(lib.ibn_cdg_trace_vls, tables, vls, hops, dep, counts)
    return list(counts.tolist())


def _senders(
    fabric: Fabric, routing: Routing
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """Return switch, in-port and LID of the senders whose requests must be followed.

    If the SL depends on the sender's LID, every LID is a sender.  Otherwise, one port represents all ports of its
    switch that have equal rows in the SL2VL table, because their packets use equal VLs.  A port with a CA or router is
    preferred to port 0 (the switch itself).
    """
    lids = fabric.lids
    if routing.service_levels.by_source_lid:
        lid = np.flatnonzero(lids.switch >= 0)
        return lids.switch[lid], lids.port[lid], lid.astype(np.int32)
    here = fabric.endport_switch >= 0
    switch = np.concatenate([fabric.endport_switch[here], np.arange(fabric.switches, dtype=np.int32)])
    port = np.concatenate([fabric.endport_switch_port[here], np.zeros(fabric.switches, np.uint8)])
    alike = switch.astype(np.int64) * 256 + _like(routing, switch, port)
    _, one = np.unique(alike, return_index=True)
    return switch[one], port[one], np.zeros(len(one), np.int32)


def _repliers(fabric: Fabric, routing: Routing) -> npt.NDArray[np.int32]:
    """Return the LIDs of the repliers (the receivers of requests) whose replies must be followed.

    The replies of two repliers at one switch have equal dependencies under two conditions.  First, the ports of both
    repliers have equal rows in the SL2VL table.  Second, the requests from each source to both repliers have equal SLs.
    If such repliers are at consecutive ports (see :func:`_like`), only one of them is returned: a CA or router if there
    is one, otherwise the switch itself.
    """
    lid = np.flatnonzero(fabric.lids.switch >= 0).astype(np.int32)
    lid = lid[np.argsort(fabric.lids.port[lid] == 0, kind="stable")]
    switch, port = fabric.lids.switch[lid], fabric.lids.port[lid]
    sls = np.ascontiguousarray(np.atleast_2d(routing.sl)[:, lid].T, np.uint8)
    alike = np.column_stack([switch.view(np.uint8).reshape(-1, 4), _like(routing, switch, port), sls])
    _, first = np.unique(alike.view(f"V{alike.shape[1]}"), return_index=True)
    return lid[np.sort(first)]


def _like(routing: Routing, switch: npt.NDArray[np.int32], port: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return, for each of N in-ports, an in-port of the same switch with an equal row in the SL2VL table.

    ``switch`` and ``port`` (N elements each) give the in-ports.  Consecutive in-ports of a switch that have equal rows
    get the same result, the lowest of these in-ports.
    """
    by_port = np.lexsort((port, switch))
    s, p = switch[by_port], port[by_port]
    rows = routing.sl2vl[s, p].reshape(len(s), -1)
    new = np.ones(len(s), bool)
    new[1:] = (s[1:] != s[:-1]) | (rows[1:] != rows[:-1]).any(axis=1)
    first = np.maximum.accumulate(np.where(new, np.arange(len(s)), 0))
    like = np.empty(len(s), np.uint8)
    like[by_port] = p[first]
    return like
