"""Kernel wrapper: compute port groups for adaptive routing, and trace the dependencies of packets that follow port
groups.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, lib, struct_of
from routing.fabric import Fabric


@dataclass(frozen=True, eq=False)
class GroupTrace:
    """Dependencies of packets that follow port groups, and errors of the port groups.

    Attributes
    ----------
    masks
        uint16[edges], VLs, as bits, on which each CDG edge is used.
    groups
        Number of port groups that are not empty, at switches where packets arrive.
    ports
        Number of ports in the port groups that ``groups`` counts.
    choices
        Number of port groups with two ports or more, among those that ``groups`` counts.
    dead_ends
        Errors: number of empty port groups at switches where packets to the LID arrive.
    without_table
        Errors: number of port groups, among those that ``groups`` counts, that lack the port of the LFT entry.
    circulating
        Errors: number of LIDs whose packets can circulate, because the channels of the LID's port groups form a cycle.
    first_fault
        The first error that ``dead_ends``, ``without_table`` or ``circulating`` counts, as a pair (index of the LID,
        switch).  None: the port groups have no error.
    """

    masks: npt.NDArray[np.uint16]
    groups: int
    ports: int
    choices: int
    dead_ends: int
    without_table: int
    circulating: int
    first_fault: tuple[int, int] | None


def _tables(
    fabric: Fabric,
    lft: npt.NDArray[np.uint8],
    lids: npt.NDArray[np.int32],
    enter: npt.NDArray[np.uint16],
    **fields: Any,
) -> Any:
    """Return the C struct with a fabric, its forwarding tables, and the LIDs ``lids`` that have port groups.

    ``fields`` are the fields of the struct that the other parameters do not give.
    """
    channels = fabric.channels
    sizes = {"switches": fabric.switches, "channels": len(channels), "lids": len(fabric.lids), "targets": len(lids)}
    tables = {"lid_switch": fabric.lids.switch, "lft": lft, "target": lids, "enter": enter}
    edges = {"row": (len(channels) + 7) // 8, "edge_first": channels.edges.first}
    return struct_of("ibn_port_groups", channels, **(sizes | tables | edges | fields))


def grow_port_groups(
    fabric: Fabric,
    lft: npt.NDArray[np.uint8],
    lids: npt.NDArray[np.int32],
    enter: npt.NDArray[np.uint16],
    order: npt.NDArray[np.int32],
    *,
    grown: int,
    commit: bool,
) -> npt.NDArray[np.uint8]:
    """Compute port groups, one LID after the other.  A port joins a group if it closes no cycle of dependencies with
    the port groups computed before.

    Parameters
    ----------
    fabric, lft
        The fabric and its forwarding tables, uint8[S, L].
    lids
        int32[T], the LIDs whose port groups are computed.  A switch must deliver each LID.
    enter
        uint16[T, S], VLs, as bits, of the packets to each LID that enter the fabric at each switch.
    order
        int32[V, C], position of each channel in a topological order of the tables' dependencies on each VL.
    grown
        Number of LIDs whose port groups may have several ports; these LIDs are the first elements of ``lids``.  The
        port groups of the other LIDs have only the port of the forwarding table.
    commit
        Whether a packet chooses one port of its group and waits for this port alone.  If not, the packet takes the
        first port of its group that has room, and the group always contains the port of the forwarding table.

    Returns
    -------
    uint8[T, (C + 7) // 8]
        For each LID the channels in its port groups, as bits: channel ``c`` is bit ``c % 8`` of byte ``c // 8``.

    Notes
    -----
    Cost: O(T C) channels are tried, each with a cycle search.
    """
    tables = _tables(fabric, lft, lids, enter, commit=commit, vls=len(order), grown=grown)
    member = np.zeros((len(lids), tables.row), np.uint8)
    call(lib.ibn_cdg_grow_port_groups, tables, np.ascontiguousarray(order), member)
    return member


def trace_port_groups(
    fabric: Fabric,
    lft: npt.NDArray[np.uint8],
    lids: npt.NDArray[np.int32],
    enter: npt.NDArray[np.uint16],
    member: npt.NDArray[np.uint8],
    *,
    commit: bool,
    threads: int,
) -> GroupTrace:
    """Collect the dependencies of all packets that follow given port groups.

    ``member`` has the port groups, in the format that :func:`grow_port_groups` returns.  The other arguments have the
    same meaning as in :func:`grow_port_groups`.

    Cost: O(T C).
    """
    bounds = np.linspace(0, len(lids), max(1, threads) + 1).astype(np.int64)

    def part(low: int, high: int) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64], tuple[int, int] | None]:
        tables = _tables(fabric, lft, lids[low:high], enter[low:high], commit=commit, grown=high - low)
        masks, counts = np.zeros(fabric.channels.edges.count, np.uint16), np.zeros(6, np.int64)
        first = np.zeros(2, np.int32)
        call(lib.ibn_cdg_trace_port_groups, tables, np.ascontiguousarray(member[low:high]), masks, counts, first)
        return masks, counts, None if first[0] < 0 else (low + int(first[0]), int(first[1]))

    with ThreadPoolExecutor(max(1, threads)) as pool:
        found = list(pool.map(part, bounds[:-1].tolist(), bounds[1:].tolist()))
    masks = np.bitwise_or.reduce([one[0] for one in found])
    groups, ports, choices, dead_ends, without_table, circulating = np.sum([one[1] for one in found], axis=0).tolist()
    first_fault = next((one[2] for one in found if one[2] is not None), None)
    return GroupTrace(masks, groups, ports, choices, dead_ends, without_table, circulating, first_fault)
