"""Kernel wrapper: sort channels topologically by their dependencies."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, lib, struct_of
from routing.fabric import Channels


def sort_channels(
    channels: Channels, masks: npt.NDArray[np.uint32], bits: npt.NDArray[np.uint8], *, threads: int
) -> npt.NDArray[np.int32]:
    """Compute a topological order of the channels for each of several VLs.

    ``masks`` (uint32[edges]) has the VLs, as bits, on which each CDG edge is used.  If ``masks`` is
    :attr:`routing._kernels.cdg.Trace.dep`, the low bits are for requests, and the high bits for requests and replies.
    ``bits`` contains the numbers of the bits for which orders are computed.  The order for a bit covers the CDG edges
    whose mask has this bit.

    Returns
    -------
    int32[len(bits), C]
        Position of each channel; -1 for channels on a cycle or downstream of a cycle.

    Notes
    -----
    Cost: O(edges) per bit; the bits are shared among the threads.
    """
    order = np.empty((len(bits), len(channels)), np.int32)
    ordered = np.zeros(len(bits), np.int32)
    sizes = {"channels": len(channels), "threads": threads}
    graph = struct_of("cdg_dependencies", channels, **sizes, slot=channels.edges.first, dep=masks)
    call(lib.ibn_cdg_order, graph, len(bits), bits, order, ordered)
    return order
