"""Kernel wrapper: find a switch order for up*-down* routing in which given dependencies never lead down and then up."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, ffi, lib
from routing.fabric import Channels


def up_down(channels: Channels, masks: npt.NDArray[np.uint16]) -> npt.NDArray[np.int32] | None:
    """Find an order of the switches in which no dependency in use leads down and then up.  Returns int32[S], the
    position of each switch; None if there is no such order.

    A dependency leads down and then up if its middle switch comes after both other switches in the order.  ``masks``
    (uint16[edges]) is nonzero for the CDG edges in use.

    Cost: three passes over the edges.
    """
    switches = len(channels.first) - 1
    position, placed = np.zeros(switches, np.int32), ffi.new("int32_t *")
    graph = channels.first, channels.src, channels.dst, channels.into, channels.into_first
    call(lib.ibn_trees_updown_order, switches, *graph, channels.edges.first, masks, position, placed)
    return position if placed[0] == switches else None


def is_increasing(channels: Channels, position: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return a topological order of the channels: each dependency that a switch order allows leads to a higher
    position.

    The result is int32[C], the position of each channel.  The switch order (``position``, int32[S]) allows all
    dependencies that do not lead down and then up.
    """
    near, far = position[channels.src].astype(np.int64), position[channels.dst]
    key = np.where(far < near, -near, near + len(position))
    index = np.empty(len(channels), np.int32)
    index[np.argsort(key, kind="stable")] = np.arange(len(channels), dtype=np.int32)
    return index
