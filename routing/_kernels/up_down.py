"""Kernel wrapper: an order of the switches in which no turn in use leads down and up again."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, pointer
from routing.fabric import Channels


def up_down(
    channels: Channels, slot: npt.NDArray[np.int32], waits: npt.NDArray[np.uint16]
) -> npt.NDArray[np.int32] | None:
    """int32[S], the place of each switch in such an order; None if there is none.

    ``waits`` (uint16[slots]) is not 0 where a turn is in use, and ``slot`` (int32[C]) the first slot of each channel.

    Cost: O(turns), three times.
    """
    switches = len(channels.first) - 1
    position, placed = np.zeros(switches, np.int32), ffi.new("int32_t *")
    tables = (getattr(channels, name) for name in ("first", "src", "dst", "into", "into_first"))
    check(
        lib.ibn_up_down(
            switches, *(pointer(table) for table in tables), pointer(slot), pointer(waits), pointer(position), placed
        )
    )
    return position if placed[0] == switches else None


def climbing(channels: Channels, position: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """int32[C], an order of the channels in which every turn climbs that does not lead down and up again."""
    near, far = position[channels.src].astype(np.int64), position[channels.dst]
    key = np.where(far < near, -near, near + len(position))
    place = np.empty(len(channels), np.int32)
    place[np.argsort(key, kind="stable")] = np.arange(len(channels), dtype=np.int32)
    return place
