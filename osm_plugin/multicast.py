"""The spanning tree on which multicast groups are routed.

OpenSM's own multicast routing takes, at every switch, the first port with the fewest hops.  With hop counts along the
engine's routes instead of shortest distances, this could form loops.  The routes of all switches towards one LID are
always a tree.  So the tree towards a root switch is used for every group, pruned to the members of the group.
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
    """A spanning tree of every connected component.

    Attributes
    ----------
    parent
        int32[S], the next switch towards the root; -1 for a root or an unreachable switch.
    up_port
        uint8[S], the port of the switch that leads to the parent; 255: none.
    down_port
        uint8[S], the port of the parent that leads back to the switch; 255: none.
    """

    parent: npt.NDArray[np.int32]
    up_port: npt.NDArray[np.uint8]
    down_port: npt.NDArray[np.uint8]


def multicast_tree(
    fabric: Fabric, routing: Routing, hops: npt.NDArray[np.uint8], roots: Sequence[int] = ()
) -> MulticastTree:
    """Return the tree of routes towards a root switch in each connected component.

    The root is the first of ``roots`` in the component.  If there is none, the root is the first switch of the engine's
    order, if the engine has one (Up*/Down*).  Multicast packets then go up and down like unicast packets, so they add
    no dependency that the order forbids.  Otherwise the root is the switch with the smallest maximum hop count from all
    other switches; the dependencies of multicast packets are then not proven.

    Parameters
    ----------
    fabric, routing
        The fabric and its complete tables.
    hops
        uint8[S, L], hops along the routes.
    roots
        GUIDs of the root switches that the administrator has named, in order of preference.

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
        root = _named(fabric, rows, roots)
        root = _root(fabric, hops, rows, names) if root is None else root
        if root is None:
            continue
        ports = routing.lft[rows, fabric.switch_lid[root]]
        channel = channels.at_port[rows, ports]
        found = channel >= 0
        rows, channel = rows[found], channel[found]
        parent[rows], up_port[rows] = channels.dst[channel], channels.port[channel]
        down_port[rows] = channels.dst_port[channel]
    return MulticastTree(parent, up_port, down_port)


def _named(fabric: Fabric, rows: npt.NDArray[np.int64], roots: Sequence[int]) -> int | None:
    """Return the row of the first switch of ``roots`` that is among ``rows`` and has a LID; None if there is none."""
    guids = fabric.switch_guid[rows].tolist()
    found = (int(rows[guids.index(guid)]) for guid in roots if guid in guids)
    return next((row for row in found if fabric.switch_lid[row] > 0), None)


def _root(fabric: Fabric, hops: npt.NDArray[np.uint8], rows: npt.NDArray[np.int64], names: Sequence[str]) -> int | None:
    rows = rows[fabric.switch_lid[rows] > 0]
    if not len(rows):
        return None
    named = [row for row in rows.tolist() if names and fabric.labels[row] == names[0]]
    if len(named) == 1:
        return int(named[0])
    farthest = hops[np.ix_(rows, fabric.switch_lid[rows])].max(axis=0)
    return int(rows[farthest.argmin()])
