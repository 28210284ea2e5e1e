"""Compute the coordinates of the switches in a picture: levels of a tree, a grid, groups, or distances in the graph.

The coordinates are whole numbers, and depend only on the fabric.  One unit is one pixel, and y increases downwards.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Literal

import igraph
import numpy as np
import numpy.typing as npt

from routing.draw.grid_layout import grid_coordinates, grid_points
from routing.fabric import Fabric
from routing.names import system_name
from routing.trees.levels import tree_levels

Points = npt.NDArray[np.float64]
Kind = Literal["levels", "grid", "groups", "graph"]

GAP = 40.0
"""Distance between two neighbouring switches, in pixels."""
ROW = 48
"""Number of switches that one row of the picture of a tree may have in any fabric, if no names are drawn.  In large
fabrics a row may have more switches: the square root of six times the number of switches of the fabric.  A level of the
tree with more switches gets several rows.
"""
NAMED_UP_TO = 130
"""Names are drawn if the fabric has at most this number of switches."""
NAME = 18
"""Maximum number of letters of a name that are drawn."""
NAMED_WIDTH = 1400
"""Width of a picture with names, in pixels, up to which the names can be read without zooming."""
KAMADA_KAWAI_UP_TO = 400
"""Of two graph layouts, the slower and better one is computed if the fabric has at most this number of switches."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Coordinates of all switches.

    Attributes
    ----------
    kind
        "levels" (a tree, leaves at the bottom), "grid" (torus, mesh, HyperX), "groups" (dragonfly), or "graph".
    xy
        int32[S, 2], coordinates in pixels.
    level
        int32[S], level of each switch in a tree; None otherwise.
    cells
        int64[S, dimensions], coordinates of each switch in a grid; None otherwise.
    """

    kind: Kind
    xy: npt.NDArray[np.int32]
    level: npt.NDArray[np.int32] | None = None
    cells: npt.NDArray[np.int64] | None = None


def place(fabric: Fabric) -> Layout:
    """Return coordinates for the switches of a fabric.

    These kinds of layouts are tried in order: levels of a tree, a grid, groups, a graph.  The first kind that fits the
    fabric is used.

    Notes
    -----
    Cost: the cost of :func:`routing.trees.levels.tree_levels`, and of a layout by igraph if no other kind fits.
    """
    if fabric.switches == 0:
        return Layout("graph", np.zeros((0, 2), np.int32))
    scale = _room_for_names(fabric)
    level = tree_levels(fabric, fabric.senders_at.astype(np.float64))
    if level is not None:
        return Layout("levels", _whole(scale * _level_points(fabric, level)), level)
    cells = grid_coordinates(fabric)
    if cells is not None:
        return Layout("grid", _whole(scale * grid_points(cells, GAP)), cells=cells)
    group = _groups(fabric)
    if group is not None:
        return Layout("groups", _whole(scale * _group_points(fabric, group)))
    return Layout("graph", _whole(scale * _graph_points(fabric)))


def _room_for_names(fabric: Fabric) -> float:
    """Return the factor that enlarges the distances between switches, so that their names fit between the switches."""
    if fabric.switches > NAMED_UP_TO:
        return 1.0
    longest = max(len(system_name(name)) for name in fabric.switch_name)
    return float(min(max((6.0 * min(longest, NAME) + 14.0) / GAP, 1.3), 2.6))


def _whole(points: Points) -> npt.NDArray[np.int32]:
    """Shift coordinates so that the smallest coordinates are 0, and round all coordinates to integers.

    Rounding in two steps removes differences in the last bit of sines, so that the result is equal on every machine.
    """
    rounded: npt.NDArray[np.int32] = np.floor(np.round(points - points.min(axis=0), 3) + 0.5).astype(np.int32)
    return rounded


def _level_points(fabric: Fabric, level: npt.NDArray[np.int32]) -> Points:
    """Return the coordinates of the switches of a tree: float64[S, 2].

    Each level of the tree has one or more rows, with the leaves at the bottom.  A switch is placed above the mean
    position of the lower switches to which it is linked.  ``level`` is the level of each switch, int32[S].
    """
    channels = fabric.channels
    top = int(level.max())
    across = np.zeros(fabric.switches)
    pods = _pods(fabric, level)
    for this in range(top + 1):
        members = np.flatnonzero(level == this)
        across[members[np.lexsort(pods[:, members])]] = (np.arange(len(members)) + 0.5) / len(members)
        lower = (level[channels.src] == this) & (level[channels.dst] < this)
        count = np.bincount(channels.src[lower], minlength=fabric.switches)[members]
        total = np.bincount(channels.src[lower], across[channels.dst[lower]], fabric.switches)[members]
        mean = np.where(count > 0, total / np.maximum(count, 1), across[members])
        order = np.argsort(np.round(mean, 9), kind="stable")
        across[members[order]] = (np.arange(len(members)) + 0.5) / len(members)
    sizes = np.bincount(level, minlength=top + 1)
    rows = np.maximum(1, -(-sizes // _switches_in_a_row(fabric)))
    width = GAP * float(np.max(-(-sizes // rows)))
    points, y = np.zeros((fabric.switches, 2)), 0.0
    for this in range(top, -1, -1):
        members = np.flatnonzero(level == this)
        rank = np.argsort(np.argsort(across[members], kind="stable"), kind="stable")
        points[members, 0] = (rank + 0.5) / len(members) * width
        points[members, 1] = y + (rank % rows[this]) * 0.8 * GAP
        y += (rows[this] - 1) * 0.8 * GAP + max(2.5 * GAP, width / (2.6 * max(top, 1)))
    return points


def _switches_in_a_row(fabric: Fabric) -> int:
    """Return how many switches one row of the picture of a tree may have.  A level with more switches gets several
    rows.  If names are drawn, the number is so small that the picture is not too wide for readable names.
    """
    if fabric.switches <= NAMED_UP_TO:
        return max(8, int(NAMED_WIDTH / (GAP * _room_for_names(fabric))))
    return max(ROW, int(math.sqrt(6 * fabric.switches)))


def _pods(fabric: Fabric, level: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the connected component of each switch of a tree if upper levels are removed: int64[N, S] for N levels.

    The last row is for the tree without its top level, the row before is for the tree without its two top levels, and
    so on.  A switch of a removed level is a component of its own.  The order of the rows is the order that
    :func:`numpy.lexsort` needs to sort switches by their largest component first.
    """
    src, dst = fabric.channels.src, fabric.channels.dst
    found = [np.arange(fabric.switches)]
    for cut in range(1, int(level.max()) + 1):
        below = (level[src] < cut) & (level[dst] < cut)
        graph = igraph.Graph(n=fabric.switches, edges=np.column_stack([src[below], dst[below]]))
        found.append(np.asarray(graph.connected_components().membership))
    return np.stack(found)


def _groups(fabric: Fabric) -> npt.NDArray[np.int64] | None:
    """Return int64[S], the group of each switch, as in a dragonfly; None if the fabric has no groups, or more than 6000
    switches.

    The function counts the common neighbours of the two switches of each link.  A link with at least half of the
    largest count is inside a group.  Groups are the connected components of the links inside groups.
    """
    switches = fabric.switches
    if switches > 6000:
        return None
    key = np.unique(fabric.channels.src.astype(np.int64) * switches + fabric.channels.dst)
    src, dst = key // switches, key % switches
    neighbours = np.zeros((switches, switches), np.float32)
    neighbours[src, dst] = 1.0
    common = np.empty(len(key))
    for first in range(0, len(key), 4096):
        part = slice(first, first + 4096)
        common[part] = np.einsum("ij,ij->i", neighbours[src[part]], neighbours[dst[part]])
    most = common.max(initial=0.0)
    if most < 1:
        return None
    inside = common >= most / 2
    graph = igraph.Graph(n=switches, edges=np.column_stack([src[inside], dst[inside]]))
    group = np.asarray(graph.connected_components().membership, np.int64)
    sizes = np.bincount(group)
    found = len(sizes) >= 3 and sizes.max() <= switches / 3 and np.count_nonzero(sizes >= 3) >= 0.9 * len(sizes)
    return group if found else None


def _group_points(fabric: Fabric, group: npt.NDArray[np.int64]) -> Points:
    """Return the coordinates of switches in groups: float64[S, 2].

    The groups are placed on a large circle, and the switches of each group on a small circle.
    """
    sizes = np.bincount(group)
    small = np.maximum(0.7 * GAP, sizes * 0.8 * GAP / (2 * math.pi))
    large = float((2 * small + 1.2 * GAP).sum()) / (2 * math.pi)
    points = np.zeros((fabric.switches, 2))
    angle = (np.cumsum(2 * small + 1.2 * GAP) - small) / (large * 2 * math.pi) * 2 * math.pi - math.pi / 2
    for number, (size, radius, where) in enumerate(zip(sizes.tolist(), small.tolist(), angle.tolist(), strict=True)):
        own = where + 2 * math.pi * np.arange(size) / size
        members = np.flatnonzero(group == number)
        points[members, 0] = large * math.cos(where) + radius * np.cos(own)
        points[members, 1] = large * math.sin(where) + radius * np.sin(own)
    return points


def _graph_points(fabric: Fabric) -> Points:
    """Return the coordinates of the switches, float64[S, 2], which igraph computes from the links alone.

    The connected components of the fabric are placed side by side.
    """
    points, left = np.zeros((fabric.switches, 2)), 0.0
    sizes = np.bincount(fabric.component)
    for part in np.argsort(-sizes, kind="stable").tolist():
        members = np.flatnonzero(fabric.component == part)
        own = _component_points(fabric, members)
        own -= own.min(axis=0)
        points[members] = own + np.array([left, 0.0])
        left += float(own[:, 0].max()) + 2 * GAP
    return points


def _component_points(fabric: Fabric, members: npt.NDArray[np.int64]) -> Points:
    count = len(members)
    if count == 1:
        return np.zeros((1, 2))
    row = np.full(fabric.switches, -1, np.int64)
    row[members] = np.arange(count)
    src, dst = row[fabric.channels.src], row[fabric.channels.dst]
    inside = (src >= 0) & (src < dst)
    pairs = np.unique(src[inside] * count + dst[inside])
    graph = igraph.Graph(n=count, edges=np.column_stack([pairs // count, pairs % count]))
    start = graph.layout_circle()
    # A random number generator with a fixed seed makes the layout reproducible.  All calls of igraph in this process
    # share one generator.  So the default generator is set again after the layout.
    igraph.set_random_number_generator(random.Random(1))
    try:
        if count <= KAMADA_KAWAI_UP_TO:
            found = graph.layout_kamada_kawai(seed=start)
        else:
            found = graph.layout_fruchterman_reingold(seed=start, niter=60, grid="grid")
    finally:
        igraph.set_random_number_generator(random)
    points = np.asarray(found.coords, np.float64)
    span = float(np.max(np.ptp(points, axis=0))) or 1.0
    return points / span * max(3.0, 1.5 * math.sqrt(count)) * GAP
