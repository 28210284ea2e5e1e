"""Kernel wrapper: VLs for ways that have none, beside ways that have one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, point, pointer
from routing._kernels.repair import Waits
from routing._kernels.slots import slot_numbers
from routing.fabric import Channels

NO_LANE = 255


@dataclass(frozen=True, eq=False)
class Groups:
    """Ways that ride one VL together.

    Attributes
    ----------
    first
        int32[G+1], the ways of group ``g`` are ``first[g]:first[g+1]``.
    source, lid
        int32[W], the switch at which each way begins, and the LID to which it leads.
    start
        uint8[G], the VL that each group tries first.
    """

    first: npt.NDArray[np.int32]
    source: npt.NDArray[np.int32]
    lid: npt.NDArray[np.int32]
    start: npt.NDArray[np.uint8]


def fit_ways(
    channels: Channels,
    lid_switch: npt.NDArray[np.int32],
    lft: npt.NDArray[np.uint8],
    groups: Groups,
    *,
    waits: Waits,
    allowed: npt.NDArray[np.bool_],
    budget: int = 1 << 62,
) -> tuple[npt.NDArray[np.uint8], Waits, int]:
    """Give each group of ways, in turn, the first VL from its own on that closes no cycle with what is there.

    Parameters
    ----------
    channels, lid_switch, lft
        Where the ways lead: int32[L] the switch that delivers each LID, uint8[S, L].
    groups
        What has to be placed, in this order.
    waits
        What waits for what on each VL already.
    allowed
        bool[V], the VLs that may be given.
    budget
        Channels that searches for cycles may come by; after that nothing more is placed.

    Returns
    -------
    uint8[G], Waits, int
        The VL of each group, :data:`NO_LANE` where none takes it or a way of it does not arrive; what waits for what
        then; what is left of the budget.

    Notes
    -----
    Cost: for each group its hops times the VLs that are tried, and searches for cycles; a pass over the slots.
    """
    masks, order = np.array(waits.masks, order="C"), np.array(waits.order, np.int32, order="C")
    lane, slot = np.full(len(groups.start), NO_LANE, np.uint8), slot_numbers(channels)[0]
    ways, left = ffi.new("ways_to_fit *"), ffi.new("int64_t *", budget)
    ways.switches, ways.lids = lft.shape
    ways.channels, ways.vls, ways.groups = len(channels), len(order), len(groups.start)
    is_open = np.ascontiguousarray(allowed).astype(np.uint8)
    point(ways, first=channels.first, src=channels.src, dst=channels.dst, into=channels.into)
    point(ways, into_first=channels.into_first, at_port=channels.at_port, slot=slot, lid_switch=lid_switch, lft=lft)
    point(ways, open=is_open, way_first=groups.first, way_from=groups.source, way_to=groups.lid, start=groups.start)
    check(lib.ibn_fit_ways(ways, pointer(masks), pointer(order), left, pointer(lane)))
    return lane, Waits(masks, order), left[0]
