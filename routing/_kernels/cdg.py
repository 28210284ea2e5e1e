"""Kernel wrapper: follow every route, and collect the channel dependencies of packets that keep their VL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, lib, struct_of
from routing._kernels.slots import Slots
from routing.fabric import Fabric
from routing.tables import Routing


@dataclass(frozen=True, eq=False)
class Trace:
    """Result of following every route: hops, channel dependencies, and undelivered packets.

    Attributes
    ----------
    hops
        uint8[S, L], hops from each switch to the switch that delivers each LID (254: 254 or more); 255: the packet is
        not delivered.
    dep
        uint32[edges], VLs, as bits, on which each CDG edge is used.  The low half is for requests, the high half for
        requests and replies together.
    to_endports
        uint32[edges], like ``dep``, but only for routes to CAs and routers.
    undelivered
        Number of undelivered pairs (switch, LID) within one connected part.
    split
        Number of undelivered pairs (switch, LID) across two connected parts.
    looping
        Number of undelivered pairs (switch, LID) of either kind whose route ends in a forwarding loop.
    sls
        SLs in use, as bits.  0: not determined, because all SLs use one VL.
    """

    hops: npt.NDArray[np.uint8]
    dep: npt.NDArray[np.uint32]
    to_endports: npt.NDArray[np.uint32]
    undelivered: int
    split: int
    looping: int
    sls: int


def tables_of(
    fabric: Fabric, routing: Routing, slots: Slots, *, threads: int, switch_pairs: bool, **further: Any
) -> Any:
    """Return the C struct of a fabric and its tables.

    Parameters
    ----------
    fabric, routing, slots
        The fabric, its tables, and the numbers of its CDG edges.
    threads
        Worker threads.
    switch_pairs
        Whether traffic between switches is included.
    further
        Further fields of the struct, which override the fields of the fabric and its tables.
    """
    lids = fabric.lids
    fields: dict[str, Any] = {
        "switches": fabric.switches, "lids": len(lids), "slots": slots.count, "part": fabric.component,
        "sl_rows": routing.service_levels.rows, "threads": threads if routing.lft.size > 100_000 else 1,
        "lft": routing.lft, "sl": routing.sl, "lid_switch": lids.switch, "lid_port": lids.port,
        "has_endport": None if switch_pairs else _has_endport(fabric, routing),
    }  # fmt: skip
    return struct_of("cdg_tables", slots, **(fields | further))


def _has_endport(fabric: Fabric, routing: Routing) -> npt.NDArray[np.uint8]:
    """Return uint8[S], 1 for switches at which a CA or router sends packets.

    If SLs depend on the sender's LID, CAs and routers without a LID are left out.
    """
    lids, by_lid = fabric.lids, routing.service_levels.by_source_lid
    switch = lids.switch[lids.port > 0] if by_lid else fabric.endport_switch
    has = np.zeros(fabric.switches, np.uint8)
    has[switch[switch >= 0]] = 1
    return has


def trace(fabric: Fabric, routing: Routing, slots: Slots, vl_bit: npt.NDArray[np.uint16], *, threads: int) -> Trace:
    """Follow every route, for tables in which the VL of a packet depends only on its SL.

    ``routing`` has the tables of the fabric, and ``slots`` numbers the CDG edges.  ``vl_bit`` is uint16[16]: 1 << VL of
    each SL, 0 if packets with the SL are dropped.

    Cost: O(S L) time.  Each thread needs memory for two arrays with one element for each CDG edge.
    """
    hops = np.empty(routing.lft.shape, np.uint8)
    dep = np.zeros((2, slots.count), np.uint32)
    tables = tables_of(
        fabric, routing, slots, threads=threads, switch_pairs=True, **_vl_fields(fabric, routing, vl_bit)
    )
    return _run_trace(tables, hops, dep)


def trace_endports(
    fabric: Fabric, routing: Routing, slots: Slots, vl_bit: npt.NDArray[np.uint16], found: Trace, *, threads: int
) -> npt.NDArray[np.uint32]:
    """Return the VLs on which each CDG edge is used if traffic between switches is left out.

    The result is uint32[edges], in the format of :attr:`Trace.dep`.  ``found`` is the trace with all traffic.  The CDG
    edges of routes to CAs and routers are taken from ``found.to_endports``.  So only routes to the LIDs of switches are
    followed again.  Cost: O(S L') for the L' LIDs of switches.
    """
    dep = np.zeros((2, slots.count), np.uint32)
    tables = tables_of(
        fabric, routing, slots, threads=threads, switch_pairs=False, **_vl_fields(fabric, routing, vl_bit)
    )
    call(lib.ibn_cdg_trace, tables, None, dep, np.zeros(4, np.int64))
    return np.asarray(found.to_endports | dep[1])


def trace_on_one_vl(
    fabric: Fabric, routing: Routing, slots: Slots, lids: npt.NDArray[np.intp] | None, *, threads: int
) -> Trace:
    """Follow the routes to some LIDs (int[N], None: to all LIDs) as if all packets used SL 0 and VL 0.

    The result covers the routes to these LIDs only; its ``hops`` are uint8[S, N].  Cost: O(S N) time.
    """
    columns = slice(None) if lids is None else lids
    lft = routing.lft[:, columns]
    hops = np.empty(lft.shape, np.uint8)
    dep = np.zeros((2, slots.count), np.uint32)
    tables = tables_of(
        fabric, routing, slots, threads=threads, switch_pairs=True, lids=lft.shape[1], sl_rows=0, lft=lft,
        lid_switch=fabric.lids.switch[columns], lid_port=fabric.lids.port[columns],
        sl=np.zeros(lft.shape[1], np.uint8), vl_bit=np.ones(16, np.uint16),
    )  # fmt: skip
    return _run_trace(tables, hops, dep)


def _vl_fields(fabric: Fabric, routing: Routing, vl_bit: npt.NDArray[np.uint16]) -> dict[str, Any]:
    """Return the fields of the C struct for the VL of each SL: the VLs as bits, and whether several VLs are in use."""
    used = vl_bit[routing.sl[fabric.lids.switch >= 0]] if routing.service_levels.by_lid else vl_bit
    return {"vl_bit": vl_bit, "spread": len(used) > 0 and bool((used != used[0]).any())}


def _run_trace(tables: Any, hops: npt.NDArray[np.uint8], dep: npt.NDArray[np.uint32]) -> Trace:
    """Run the kernel, which fills ``hops`` and ``dep``, and return the trace with these arrays."""
    counts = np.zeros(4, np.int64)
    call(lib.ibn_cdg_trace, tables, hops, dep, counts)
    np.bitwise_or(dep[0], dep[1], out=dep[1])
    return Trace(hops, dep[1], dep[0], *counts.tolist())
