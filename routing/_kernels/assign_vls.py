"""Kernel wrapper: assign VLs to paths while the channel dependencies on every VL stay acyclic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, ffi, lib, struct_of
from routing.fabric import Channels

NO_VL = 255


@dataclass(frozen=True, eq=False)
class PathGroups:
    """W paths in G groups.  All paths of a group use one VL.

    Attributes
    ----------
    first
        int32[G+1], the paths of group ``g`` are ``first[g]:first[g+1]``.
    source, lid
        int32[W], first switch and destination LID of each path.
    start
        uint8[G], VL that is tried first for each group.
    """

    first: npt.NDArray[np.int32]
    source: npt.NDArray[np.int32]
    lid: npt.NDArray[np.int32]
    start: npt.NDArray[np.uint8]


def assign_vls(
    channels: Channels,
    lid_switch: npt.NDArray[np.int32],
    lft: npt.NDArray[np.uint8],
    groups: PathGroups,
    *,
    masks: npt.NDArray[np.uint16],
    order: npt.NDArray[np.int32],
    allowed_vls: npt.NDArray[np.bool_],
    budget: int = 1 << 62,
    most_failed: int = (1 << 31) - 1,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint16], npt.NDArray[np.int32], int]:
    """Assign a VL to each group of paths, one group after the other.

    For each group, the VLs are tried in cyclic order from the group's start VL on.  The group gets the first VL whose
    CDG stays acyclic with the group's paths.

    Parameters
    ----------
    channels
        The channels of the fabric.
    lid_switch
        int32[L], the switch that delivers each LID.
    lft
        uint8[S, L], the LFTs.
    groups
        The groups of paths, in the order in which they get their VLs.
    masks
        uint16[edges], the VLs, as bits, on which each CDG edge is in use.
    order
        int32[V, C], for each VL the position of each channel in a topological order of the CDG edges in use on this VL.
    allowed_vls
        bool[V], the VLs that may be assigned.
    budget
        Work limit: number of channels that cycle searches may visit.  Once the limit is reached, no further group gets
        a VL.
    most_failed
        Once more than this number of groups have got no VL, no further group gets a VL.

    Returns
    -------
    vl : uint8[G]
        The VL of each group.  The VL is :data:`NO_VL` in four cases: the group fits on no VL; one of its paths does not
        reach its destination; the budget was used up before the group; or more than ``most_failed`` earlier groups got
        no VL.
    masks, order
        New arrays: ``masks`` with the CDG edges of the groups that got a VL, and topological orders of all these edges.
    left : int
        Remaining part of the budget.

    Notes
    -----
    Cost: for each group its hops times the number of VLs that are tried, and cycle searches; one pass over the CDG
    edges.
    """
    masks, order = np.array(masks, order="C"), np.array(order, np.int32, order="C")
    vl, slot = np.full(len(groups.start), NO_VL, np.uint8), channels.edges.first
    switches, lids = lft.shape
    is_open, left = np.ascontiguousarray(allowed_vls).astype(np.uint8), ffi.new("int64_t *", budget)
    request = struct_of(
        "vl_requests", channels, switches=switches, lids=lids, channels=len(channels), vls=len(order),
        groups=len(groups.start), most_failed=most_failed, slot=slot, lid_switch=lid_switch, lft=lft, open=is_open,
        path_first=groups.first, path_from=groups.source, path_to=groups.lid, start=groups.start,
    )  # fmt: skip
    call(lib.ibn_layering_assign_vls, request, masks, order, left, vl)
    return vl, masks, order, left[0]
