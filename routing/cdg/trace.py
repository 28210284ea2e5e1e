"""Trace the channel dependency graph from tables."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.cdg import trace, trace_endports
from routing._kernels.cdg_lanes import trace_lanes, trace_lanes_endports
from routing._kernels.slots import Slots
from routing.cdg.graph import DependencyGraph, from_lane_masks, from_masks, possible_turns
from routing.fabric import Fabric
from routing.tables import DATA_VLS, Routing, identity_sl2vl

REPLIES = 16
"""First bit of the half of a dependency mask that includes replies."""


def dependency_graph(
    fabric: Fabric, routing: Routing, *, replies: bool = False, switch_pairs: bool = True, threads: int = 2
) -> DependencyGraph:
    """Build the channel dependency graph of tables.

    ``replies``: include the replies to all requests; ``switch_pairs``: include switch-to-switch traffic.

    Raises
    ------
    TableError
        The shapes do not fit the fabric.
    """
    routing.check_shapes(fabric)
    slots, row = Slots.of(fabric), common_lanes(routing)
    turns = possible_turns(fabric, slots)
    if row is None:
        lanes = trace_lanes(fabric, routing, slots, replies=replies, threads=threads)
        vls = max(1, lanes.lanes.bit_length())
        by_lane = lanes.dep
        if not switch_pairs:
            by_lane = trace_lanes_endports(fabric, routing, slots, lanes, replies=replies, threads=threads)
        return from_lane_masks(turns, by_lane[turns[:, 2]], len(fabric.channels), vls)
    found = trace(fabric, routing, slots, vl_bits(row), threads=threads)
    dep = found.dep
    if not switch_pairs:
        dep = trace_endports(fabric, routing, slots, vl_bits(row), found, threads=threads)
    masks = (dep[turns[:, 2]] >> np.uint32(REPLIES if replies else 0)).astype(np.uint16)
    vls = max(1, int(np.bitwise_or.reduce(masks, initial=0)).bit_length())
    return from_masks(turns, masks, len(fabric.channels), vls)


def common_lanes(routing: Routing) -> npt.NDArray[np.uint8] | None:
    """Return uint8[16], the VL of each SL if it is equal at all ports of all switches, else None."""
    table = routing.sl2vl
    if table.ndim == 1:
        return table
    row = table.reshape(-1, 16)[0] if table.size else identity_sl2vl(1)
    return row if bool((table == row).all()) else None


def vl_bits(row: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint16]:
    """Return uint16[16], 1 << VL of each SL, 0 for dropped SLs."""
    return np.where(row < DATA_VLS, 1 << row.astype(np.int64), 0).astype(np.uint16)
