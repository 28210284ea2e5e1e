"""The fewest entries that can change, whatever VLs that takes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.fewest import fill_holes
from routing.fabric import NO_PORT, Fabric


def fewest_entries(fabric: Fabric, held: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Tables (uint8[S, L]) without the holes of ``held`` (255 where a LID of the same part has no route).

    A switch without a way takes one on which the fewest entries change, and of those the one with the fewest hops.  For
    one hole in a column there is no lesser change; several are filled one after the other, the nearest first.  What
    leads in a circle is left as it is where no hole needs it.

    Cost: see :func:`routing._kernels.fewest.fill_holes`; a copy of the tables.
    """
    lft, lids = held.copy(), fabric.lids
    holes = (held == NO_PORT) & between(fabric)
    lid = np.flatnonzero(holes.any(axis=0))
    lft[:, lid] = fill_holes(fabric.channels, lids.switch[lid], holes[:, lid].T, held[:, lid].T).T
    return lft


def between(fabric: Fabric) -> npt.NDArray[np.bool_]:
    """bool[S, L], whether a switch has a way to a LID at another."""
    lids, parts = fabric.lids, fabric.component
    elsewhere = lids.switch != np.arange(fabric.switches)[:, None]
    found: npt.NDArray[np.bool_] = (lids.switch >= 0) & elsewhere & (parts[:, None] == parts[lids.switch])
    return found
