"""Kernel wrapper: fill missing LFT entries with the fewest changes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, lib, struct_of
from routing.fabric import Channels


def fill_missing_entries(
    channels: Channels, target: npt.NDArray[np.int32], missing: npt.NDArray[np.bool_], entry: npt.NDArray[np.uint8]
) -> npt.NDArray[np.uint8]:
    """Fill missing LFT entries while changing as few other entries as possible.

    Each step finds the best path among all paths that begin at a switch with a missing entry.  This missing entry is
    then filled, and other entries on the path change where necessary.  The best path is the path that changes the
    fewest entries.  Of several such paths, it is the path with the fewest hops.  If these are equal too, it is the path
    with the lowest channel numbers, compared from the first channel on.

    Parameters
    ----------
    channels
        Channels of the fabric.
    target
        int32[N], the switch that delivers the LID of each column.
    missing
        bool[N, S], whether each entry is missing, by LFT column and switch.
    entry
        uint8[N, S], the out-ports, by LFT column and switch.

    Returns
    -------
    uint8[N, S]
        The out-ports with the filled entries.  An entry stays missing if no path leads from its switch to the target.

    Notes
    -----
    Cost: for each column, a pass over the channels; for each missing entry, a pass over the switches without a path.
    If no switch with a missing entry has a neighbour with a path, a search begins at each such switch (Dijkstra 1959).
    """
    filled = np.array(entry, np.uint8, order="C")
    columns, switches = filled.shape
    sizes = {"columns": columns, "switches": switches, "channels": len(channels)}
    target = np.asarray(target, np.int32)
    call(
        lib.ibn_repair_min_change_paths,
        struct_of("missing_entries", channels, **sizes, target=target, missing=missing.astype(np.uint8)),
        filled,
    )
    return filled
