"""The tree that multicast groups are routed on.

OpenSM's own multicast takes, at every switch, the first port with the least hops, and says itself that anything else
may close a circle; with hops known along the engine's routes alone it would.  The routes of all switches towards one
LID, however, are a tree: that of a root switch serves every group, cut down to its members.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric
from routing.tables import Routing


@dataclass(frozen=True, eq=False)
class MulticastTree:
    """A spanning tree of every connected part.

    Attributes
    ----------
    parent
        int32[S], the next switch towards the root, or -1 (a root, or a switch that cannot be reached).
    up_port
        uint8[S], the port that leads there, 255 for none.
    down_port
        uint8[S], the port of the parent that leads back, 255 for none.
    """

    parent: npt.NDArray[np.int32]
    up_port: npt.NDArray[np.uint8]
    down_port: npt.NDArray[np.uint8]


def multicast_tree(fabric: Fabric, routing: Routing, hops: npt.NDArray[np.uint8]) -> MulticastTree:
    """The routes towards a root of each connected part.

    The root is the first switch of the engine's order, if it says so (Up*/Down*): everything then goes up and down
    again as unicast does, so that multicast adds no dependency that the order forbids.  Otherwise it is the switch that
    the farthest one has the fewest hops to; what multicast adds to the credit dependencies is then not proven.

    Parameters
    ----------
    fabric, routing
        Complete tables.
    hops
        uint8[S, L], hops along the routes.

    Notes
    -----
    Cost: O(S^2).
    """
    switches, channels = fabric.switches, fabric.channels
    parent = np.full(switches, -1, np.int32)
    up_port, down_port = np.full(switches, 255, np.uint8), np.full(switches, 255, np.uint8)
    first = routing.provenance.options.get("first_switches", ())
    names = [str(name) for name in first] if isinstance(first, Sequence) else []
    for part in range(int(fabric.component.max(initial=-1)) + 1):
        rows = np.flatnonzero(fabric.component == part)
        root = _root(fabric, hops, rows, names)
        if root is None:
            continue
        ports = routing.lft[rows, fabric.switch_lid[root]]
        channel = channels.at_port[rows, ports]
        found = channel >= 0
        rows, channel = rows[found], channel[found]
        parent[rows], up_port[rows] = channels.dst[channel], channels.port[channel]
        down_port[rows] = channels.dst_port[channel]
    return MulticastTree(parent, up_port, down_port)


def _root(fabric: Fabric, hops: npt.NDArray[np.uint8], rows: npt.NDArray[np.int64], names: Sequence[str]) -> int | None:
    rows = rows[fabric.switch_lid[rows] > 0]
    if not len(rows):
        return None
    named = [row for row in rows.tolist() if names and fabric.switch_name[row] == names[0]]
    if len(named) == 1:
        return int(named[0])
    farthest = hops[np.ix_(rows, fabric.switch_lid[rows])].max(axis=0)
    return int(rows[farthest.argmin()])
