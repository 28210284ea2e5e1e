"""Find the switches and channels of a fabric in an earlier or later one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric


def old_rows(old_fabric: Fabric, fabric: Fabric) -> npt.NDArray[np.int32]:
    """Return int32[S], the row in an earlier fabric of each present switch, -1 for a new one."""
    position = np.searchsorted(old_fabric.switch_guid, fabric.switch_guid)
    known = position < old_fabric.switches
    known[known] = old_fabric.switch_guid[position[known]] == fabric.switch_guid[known]
    return np.where(known, position, -1).astype(np.int32)


def channel_numbers(fabric: Fabric, base: Fabric) -> npt.NDArray[np.int32]:
    """Return int32[C], the number in ``base`` of each channel between the same ports of the same switches; -1: none."""
    mine, theirs = fabric.channels, base.channels
    if not len(theirs):
        return np.full(len(mine), -1, np.int32)
    if np.array_equal(fabric.switch_guid, base.switch_guid):
        there = theirs.at_port[mine.src, mine.port]
        same = (there >= 0) & (theirs.dst[there] == mine.dst) & (theirs.dst_port[there] == mine.dst_port)
        return np.where(same, there, np.int32(-1))
    row = old_rows(base, fabric)
    number = np.full(len(mine), -1, np.int32)
    known = np.flatnonzero((row[mine.src] >= 0) & (row[mine.dst] >= 0))
    there = theirs.at_port[row[mine.src[known]], mine.port[known]]
    same = there >= 0
    known, there = known[same], there[same]
    same = (theirs.dst[there] == row[mine.dst[known]]) & (theirs.dst_port[there] == mine.dst_port[known])
    number[known[same]] = there[same]
    return number
