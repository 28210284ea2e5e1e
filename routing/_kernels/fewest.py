"""Kernel wrapper: holes of tables, filled with the fewest changes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, point, pointer
from routing.fabric import Channels


def fill_holes(
    channels: Channels, target: npt.NDArray[np.int32], hole: npt.NDArray[np.bool_], entry: npt.NDArray[np.uint8]
) -> npt.NDArray[np.uint8]:
    """Give each hole a way on which the fewest entries change, and of those the one with the fewest hops.

    In each column the hole with the least of all comes first.  Of equals the way counts whose channels have the lower
    numbers, from its first on.

    Parameters
    ----------
    channels
        Of the fabric.
    target
        int32[N], the switch that delivers the LID of each column.
    hole, entry
        bool[N, S], uint8[N, S]: a row for each column, whether a switch has to find a way, and the out-ports.

    Returns
    -------
    uint8[N, S]
        The out-ports then.  A hole from which no way leads to the target is as it was.

    Notes
    -----
    Cost: for each column a pass over the channels; for each hole what is cut off and the other holes, and where none of
    these has a neighbour with a way, a search from each (Dijkstra 1959) as far as the best one goes.
    """
    filled, marked = np.array(entry, np.uint8, order="C"), np.ascontiguousarray(hole, np.uint8)
    target = np.ascontiguousarray(target, np.int32)
    given = ffi.new("holes_to_fill *")
    given.columns, given.switches = filled.shape
    given.channels = len(channels)
    point(given, first=channels.first, src=channels.src, dst=channels.dst, port=channels.port, into=channels.into)
    point(given, into_first=channels.into_first, at_port=channels.at_port, target=target, hole=marked)
    check(lib.ibn_fewest(given, pointer(filled)))
    return filled
