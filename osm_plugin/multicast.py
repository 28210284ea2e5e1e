"""Compute the spanning tree on which multicast groups are routed.

At every switch, OpenSM's own multicast routing takes the first port with the fewest hops.  OpenSM has hop counts along
the engine's paths, and not shortest distances.  Its choice could therefore form loops.

The paths of all switches towards one LID always form a tree.  So the tree towards a root switch is used for every
group, without the branches that have no members.
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
    """A spanning tree of the switches in each connected component.

    Attributes
    ----------
    parent
        int32[S], the next switch towards the root; -1 at a root and at an unreachable switch.
    up_port
        uint8[S], the port of the switch that leads to its parent; 255 if it has none.
    down_port
        uint8[S], the port of the parent that leads to the switch; 255 if it has none.
    """

    parent: npt.NDArray[np.int32]
    up_port: npt.NDArray[np.uint8]
    down_port: npt.NDArray[np.uint8]


def multicast_tree(
    fabric: Fabric, routing: Routing, hops: npt.NDArray[np.uint8], roots: Sequence[int] = ()
) -> MulticastTree:
    """Return the tree of paths towards a root switch, for each connected component.

    The root is the first switch of ``roots`` in the component.  Without one, there are two cases.  If the engine has an
    order of switches (Up*/Down*), the root is its first switch.  Multicast packets then go up and down as unicast
    packets do, so that they add no dependency that the order forbids.  Otherwise the root is the switch with the
    smallest maximum hop count from all other switches.  The dependencies of multicast packets are then not proven
    acyclic.

    Parameters
    ----------
    fabric, routing
        The fabric, and tables that deliver everywhere.
    hops
        uint8[S, L], number of hops along the paths of the tables.
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
