"""Fill missing LFT entries and change as few other entries as possible; VLs are assigned afterwards."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.min_change_paths import fill_missing_entries
from routing.fabric import NO_PORT, Fabric


def fill_with_fewest_changes(fabric: Fabric, valid: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the LFTs (uint8[S, L]) with every missing entry filled and as few other entries changed as possible.

    An entry is missing where ``valid`` (uint8[S, L]) is 255 although the switch can reach the LID.  A switch with a
    missing entry takes the path that changes the fewest entries.  Among several such paths, the switch takes one with
    the fewest hops.  So the number of changes is minimal if a column has one missing entry.

    The missing entries of a column are filled one after the other.  Each step fills the entry whose path changes the
    fewest other entries.  Among several such entries, the one with the shortest path comes first.  A forwarding loop in
    ``valid`` remains, unless the path of a missing entry leads through a switch of the loop.

    Notes
    -----
    Cost: see :func:`routing._kernels.min_change_paths.fill_missing_entries`; a copy of the tables.
    """
    lft, lids = valid.copy(), fabric.lids
    missing = (valid == NO_PORT) & remote_pairs(fabric)
    lid = np.flatnonzero(missing.any(axis=0))
    lft[:, lid] = fill_missing_entries(fabric.channels, lids.switch[lid], missing[:, lid].T, valid[:, lid].T).T
    return lft


def remote_pairs(fabric: Fabric) -> npt.NDArray[np.bool_]:
    """Return bool[S, L]: true if the switch can reach the LID, and another switch delivers the LID."""
    lids, parts = fabric.lids, fabric.component
    elsewhere = lids.switch != np.arange(fabric.switches)[:, None]
    found: npt.NDArray[np.bool_] = (lids.switch >= 0) & elsewhere & (parts[:, None] == parts[lids.switch])
    return found
