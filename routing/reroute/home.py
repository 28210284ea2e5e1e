"""The way back: columns of the fabric without faults return as soon as they hold again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from routing.fabric import NO_PORT, Fabric
from routing.reroute.translate import drop_lost, lay_over
from routing.reroute.values import Published
from routing.tables import Routing


def heal(
    routing: Routing, home: Published, fabric: Fabric, apart: npt.NDArray[np.intp] | None = None
) -> tuple[Routing, int]:
    """Tables with the columns of home wherever those hold as a whole, and how many entries that changes.

    SLs go along with the columns.  ``apart``: LIDs, if home has the devices of now and differs in these at most.
    """
    lids, parts = fabric.lids, fabric.component
    lft, sl, lid = _home_now(home, fabric, apart)
    if sl.shape[:-1] != routing.sl.shape[:-1] or not len(lid):
        return routing, 0
    target = lids.switch[lid]
    here = np.flatnonzero(target >= 0)
    lft[target[here], here] = lids.port[lid[here]]
    held, levels = routing.lft[:, lid], routing.sl[..., lid]
    other = (lft != held).any(axis=0) | ((sl != levels) if sl.ndim == 1 else (sl != levels).any(axis=0))
    column = np.flatnonzero(other & (target >= 0))
    reached = parts[:, None] == parts[target[column]]
    column = column[~((lft[:, column] == NO_PORT) & reached).any(axis=0)]
    if not len(column):
        return routing, 0
    tables, new_sl = routing.lft.copy(), routing.sl.copy()
    tables[:, lid[column]], new_sl[..., lid[column]] = lft[:, column], sl[..., column]
    return replace(routing, lft=tables, sl=new_sl), int(np.count_nonzero(held[:, column] != lft[:, column]))


def _home_now(
    home: Published, fabric: Fabric, apart: npt.NDArray[np.intp] | None
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], npt.NDArray[np.intp]]:
    """Columns of home as far as they hold, their SLs and LIDs."""
    if apart is None:
        then = lay_over(home.routing, home.fabric, fabric).routing
        return then.lft, then.sl, np.arange(then.lft.shape[1])
    lft = home.routing.lft[:, apart]
    drop_lost(lft, home.fabric, fabric, apart)
    return lft, home.routing.sl[..., apart], apart


def is_same(one: Fabric, other: Fabric) -> bool:
    """Whether switches, their cables, LIDs and where these are delivered are the same in two fabrics."""
    if one is other:
        return True
    mine, theirs = one.channels, other.channels
    return all(
        np.array_equal(a, b)
        for a, b in (
            (one.switch_guid, other.switch_guid),
            (mine.src, theirs.src),
            (mine.port, theirs.port),
            (mine.dst, theirs.dst),
            (mine.dst_port, theirs.dst_port),
            (one.lids.switch, other.lids.switch),
            (one.lids.port, other.lids.port),
        )
    )
