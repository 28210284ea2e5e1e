"""The way back: columns of the fabric without faults return as soon as they hold again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from routing.fabric import NO_PORT, Fabric
from routing.reroute.translate import lay_over
from routing.reroute.values import Published
from routing.tables import Routing


def heal(routing: Routing, home: Published, fabric: Fabric) -> tuple[Routing, int]:
    """Tables with the columns of home wherever those hold as a whole, and how many entries that changes.

    SLs go along with the columns.
    """
    then = lay_over(home.routing, home.fabric, fabric).routing
    lids, parts = fabric.lids, fabric.component
    here = np.flatnonzero(lids.switch >= 0)
    then.lft[lids.switch[here], here] = lids.port[here]
    other = (then.lft != routing.lft).any(axis=0)
    if then.sl.shape == routing.sl.shape:
        other |= (then.sl != routing.sl) if then.sl.ndim == 1 else (then.sl != routing.sl).any(axis=0)
    column = np.flatnonzero(other & (lids.switch >= 0))
    reached = parts[:, None] == parts[lids.switch[column]]
    column = column[~((then.lft[:, column] == NO_PORT) & reached).any(axis=0)]
    if not len(column) or then.sl.shape != routing.sl.shape:
        return routing, 0
    lft, sl = routing.lft.copy(), routing.sl.copy()
    healed = int(np.count_nonzero(lft[:, column] != then.lft[:, column]))
    lft[:, column], sl[..., column] = then.lft[:, column], then.sl[..., column]
    return replace(routing, lft=lft, sl=sl), healed


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
