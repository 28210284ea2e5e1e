"""Topological orders of the channel dependency graph."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.dependencies import sort_channels
from routing.fabric import Channels


def topological_order(
    channels: Channels, masks: npt.NDArray[np.unsignedinteger], vls: int, *, threads: int
) -> npt.NDArray[np.int32] | None:
    """Return int32[V, C], a topological order of the channels on each of ``vls`` VLs; None if there is a cycle.

    ``masks`` holds the VLs of each CDG edge, uint16[edges] or uint32[edges].  Cost: O(edges) for each VL.
    """
    order = sort_channels(
        channels, masks.astype(np.uint32, copy=False), np.arange(vls, dtype=np.uint8), threads=threads
    )
    return order if (order >= 0).all() else None
