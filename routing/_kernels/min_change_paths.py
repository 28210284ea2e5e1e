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

    A missing entry gets the path on which the fewest other entries change.  Among paths with equally many changes, the
    path with the fewest hops is taken.  Of several such paths, the path with the lexicographically lowest channel
    numbers is taken.  In each step, the missing entry with the best path by these rules is filled.

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
        The out-ports with the filled entries.  An entry is unchanged if no path leads from its switch to the target.

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
