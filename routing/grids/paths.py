"""Compute dimension-ordered paths over coordinates, with detours where links or switches are missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.symmetric_paths import LinkBundles
from routing.fabric import Fabric
from routing.grids.coordinates import Coordinates, Grid, Kind
from routing.grids.detours import add_detours

NONE = 255
"""Number in place of the index of a bundle if there is no path."""

Hops = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class GridPaths:
    """Paths between switches that use one dimension after the other.

    If the destination is half a ring away, a path can use either side of the ring.  There are two sets of paths, which
    use opposite sides.  So destinations can be spread over both sides.

    Attributes
    ----------
    hop
        uint8[2, S, S] by set, destination and switch: index of the bundle of parallel links among the bundles of the
        switch, 255 at the destination and for switches that are not connected to the destination.
    regular
        bool[2, S, S]: whether the path takes no detour.
    crossing
        uint8[2, S, S] by set, destination and switch: the datelines that the path crosses, as bits.  Bit n belongs to
        the n-th dimension of rings, counted from 0 in the order in which paths use the dimensions.  The dateline of a
        ring is between its last and its first position.
    rings
        Number of dimensions of rings.
    """

    hop: Hops
    regular: npt.NDArray[np.bool_]
    crossing: Hops
    rings: int


def dimension_order(grid: Grid, fabric: Fabric, bundles: LinkBundles) -> list[int]:
    """Return the dimensions of a grid in the order in which paths use them.

    If the grid has an order (``grid.order``), this order is returned.  Otherwise the dimension with the highest
    utilisation comes first.  In the first dimension, the flows towards a destination are still small, and small flows
    are easy to balance.
    """
    if grid.order is not None:
        return list(grid.order)
    load, inverse = [], _mean_inverse_capacity(grid, fabric, bundles)
    for axis, (size, kind) in enumerate(zip(grid.size, grid.kind, strict=True)):
        crossing = {
            Kind.LINE: (size // 2) * ((size + 1) // 2) / size,
            Kind.RING: (size // 2) * ((size + 1) // 2) / (2 * size),
            Kind.CLIQUE: 1.0 / size,
        }[kind]
        load.append((-round(crossing * inverse[axis], 6), axis))
    return [axis for _, axis in sorted(load)]


def _mean_inverse_capacity(grid: Grid, fabric: Fabric, bundles: LinkBundles) -> list[float]:
    """Return the mean inverse capacity of the bundles of each dimension; 1 for a dimension without bundles."""
    row = np.full(fabric.switches, -1)
    row[grid.switches] = np.arange(len(grid.switches))
    src = np.repeat(np.arange(fabric.switches), np.diff(bundles.first))
    inside = np.flatnonzero((row[src] >= 0) & (row[bundles.dst] >= 0))
    differs = grid.position[row[src[inside]]] != grid.position[row[bundles.dst[inside]]]
    differs &= (differs.sum(axis=1) == 1)[:, None]
    along = (bundles.inverse_capacity[inside[column]] for column in differs.T)
    return [float(one.mean()) if len(one) else 1.0 for one in along]


def grid_paths(fabric: Fabric, coordinates: Coordinates, bundles: LinkBundles, *, same_side: bool = False) -> GridPaths:
    """Return dimension-ordered paths between all switches of each component.

    ``same_side`` concerns two switches that are half a ring apart.  Each set of paths has one path between these
    switches in each direction.  With ``same_side``, both paths use the same side of the ring.  Without ``same_side``,
    they use opposite sides if the length of the ring is a multiple of four, so that the load of the ring is more even.
    If the length is not a multiple of four, they use the same side in any case.

    Where a ring is broken, the path takes the other side of the ring.  Where missing links of a dimension leave no path
    along the dimension, the path takes a detour (:func:`routing.grids.detours.add_detours`).

    Cost: O(S^2) for each dimension, and O(S degree) for each destination with detours.
    """
    switches = fabric.switches
    hop = np.full((2, switches, switches), NONE, np.uint8)
    crossing = np.zeros((2, switches, switches), np.uint8)
    most_rings = 0
    for grid in coordinates.grids:
        order = dimension_order(grid, fabric, bundles)
        tables = _row_tables(grid, bundles)
        most_rings = max(most_rings, sum(kind is Kind.RING for kind in grid.kind))
        both = _whole_paths(grid, order, [tables[axis] for axis in order], same_side=same_side)
        if len(grid.switches) == switches:
            hop, crossing = both
        else:
            here = np.ix_(np.arange(2), grid.switches, grid.switches)
            hop[here], crossing[here] = both
    if coordinates.attached:
        _add_attached(fabric, coordinates, bundles, hop, crossing)
    regular = np.ones(hop.shape, bool)
    for side in (0, 1):
        add_detours(fabric, bundles, hop[side], regular[side])
    return GridPaths(hop, regular, crossing, most_rings)


def _add_attached(fabric: Fabric, coordinates: Coordinates, bundles: LinkBundles, hop: Hops, crossing: Hops) -> None:
    """Add the paths from and to switches that are attached to a grid, such as I/O switches, by changing ``hop`` and
    ``crossing`` (see :class:`GridPaths`) in place.

    An attached switch has no coordinates, and one or two neighbours.  Of the two sets of paths in :class:`GridPaths`,
    the first set leads over the switch's first neighbour, and the second set over its last neighbour.  These neighbours
    are the same switch if the attached switch has one neighbour only.  From the neighbour on, a path is the neighbour's
    own path.

    Only paths from and to attached switches pass an attached switch.  So the added dependencies close no cycle, and the
    paths need no further VL.
    """
    near = [part.tolist() for part in np.split(bundles.dst, bundles.first[1:-1])]
    reached = np.zeros(fabric.switches, bool)
    for grid in coordinates.grids:
        reached[grid.switches] = True
    while ready := [switch for switch in coordinates.attached if not reached[switch] and reached[near[switch]].any()]:
        for switch in ready:
            over = [other for other in near[switch] if reached[other]]
            ends = reached & (fabric.component == fabric.component[switch])
            for side, other in enumerate((over[0], over[-1])):
                hop[side, switch], crossing[side, switch] = hop[side, other], crossing[side, other]
                hop[side, switch, other] = near[other].index(switch)
                hop[side, ends, switch], crossing[side, :, switch] = near[switch].index(other), crossing[side, :, other]
            reached[switch] = True


def _row_tables(grid: Grid, bundles: LinkBundles) -> list[tuple[Hops, Hops]]:
    """Return the first hops of the paths along each dimension.

    Returns
    -------
    A list with one pair of arrays for each dimension:

    hop : uint8[N, size]
        By switch of the grid and by coordinate in the dimension: the bundle by which the switch sends to the switch of
        its row that has this coordinate.  255: no path within the row.
    other : uint8[N, size]
        As ``hop``, except that paths to a destination half a ring away use the other side of the ring.
    """
    switches = len(bundles.first) - 1
    # `index` has a row and a column for each switch, and a last row and column for positions without a switch.
    index = np.full((switches + 1, switches + 1), NONE, np.uint8)
    src = np.repeat(np.arange(switches), np.diff(bundles.first))
    index[src, bundles.dst] = np.arange(len(src)) - bundles.first[src]
    # All dimensions of the same size and kind (line, ring or clique) are computed together.
    forms, tables = list(zip(grid.size, grid.kind, strict=True)), dict[int, tuple[Hops, Hops]]()
    for size, kind in dict.fromkeys(forms):
        axes = [axis for axis, form in enumerate(forms) if form == (size, kind)]
        # `place` numbers the positions of the whole grid.  For each dimension in `axes`, `step` has the difference of
        # these numbers between neighbours along the dimension.
        place, volume = np.ravel_multi_index(tuple(grid.position.T), grid.size), math.prod(grid.size)
        step = np.array([[math.prod(grid.size[axis + 1 :])] for axis in axes])
        row = place // (step * size) * step + place % step + np.arange(len(axes))[:, None] * (volume // size)
        here = grid.position.T[axes]
        members = np.full((len(axes) * volume // size, size), switches)
        members[row, here] = grid.switches
        found = _clique_rows(members, index) if kind is Kind.CLIQUE else _line_rows(members, index, kind is Kind.RING)
        tables.update(zip(axes, zip(*(table[row, here] for table in found), strict=True), strict=True))
    return [tables[axis] for axis in range(grid.dimensions)]


def _line_rows(members: npt.NDArray[np.int64], index: Hops, is_ring: bool) -> tuple[Hops, Hops]:
    """Return the first hops of paths along rows that are lines or rings.

    The result is two arrays uint8[R, size, size], by row, coordinate of the switch and coordinate of the destination.
    The arrays differ only for destinations half a ring away: if no link of the ring is missing, paths of the second
    array use the other side of the ring.

    ``members`` (int64[R, size]) has the switch at each position of each row, and ``index`` the bundle of each pair of
    linked switches.
    """
    size = members.shape[1]
    ahead, behind = (index[members, np.roll(members, -step, axis=1)] for step in (1, -1))
    if not is_ring:
        ahead[:, -1] = behind[:, 0] = NONE
    is_whole, here, gap = (ahead != NONE).all(axis=1)[:, None, None], np.arange(size)[:, None], np.arange(1, size)
    hop = np.full((*members.shape, size), NONE, np.uint8)
    other = hop.copy()
    for step, near, far in ((1, ahead, behind), (-1, behind, ahead)):
        # `is_linked` is bool by row, start and gap: whether no link is missing on the path from the start to the
        # position that is `gap` positions away in the direction of `step`.
        is_linked = np.logical_and.accumulate((near != NONE)[:, (here + step * (gap - 1)) % size], axis=2)
        longer = (2 * gap > size) | ((2 * gap == size) & (step < 0))
        row, start, over = np.nonzero(is_linked & ~(is_whole & longer))
        end, is_half = (start + step * gap[over]) % size, is_whole[row, 0, 0] & (2 * gap[over] == size)
        hop[row, start, end] = near[row, start]
        other[row, start, end] = np.where(is_half, far[row, start], near[row, start])
    return hop, other


def _clique_rows(members: npt.NDArray[np.int64], index: Hops) -> tuple[Hops, Hops]:
    """Return the first hops along rows of a HyperX, as two equal arrays in the format of :func:`_line_rows`.

    If the link between two switches is missing, the path has two hops.  The switch between them has a higher coordinate
    than both ends.  If no such switch has links to both ends, the row has no path.

    A path with two hops leads first to a higher and then to a lower coordinate.  So these paths close no cycle of
    dependencies.
    """
    hop = index[members[:, :, None], members[:, None, :]]
    is_linked, here = hop != NONE, members < len(index) - 1
    missing = here[:, :, None] & here[:, None, :] & ~is_linked & ~np.eye(members.shape[1], dtype=bool)
    for row, start, end in np.argwhere(missing).tolist():
        over = np.flatnonzero(is_linked[row, start] & is_linked[row, :, end])
        over = over[over > max(start, end)]
        if len(over):
            hop[row, start, end] = hop[row, start, over[(start + end) % len(over)]]
    return hop, hop


def _by_pair(matrix: npt.NDArray[Any], own: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Return an element of ``matrix`` for each pair (i, j) of switches: ``matrix[own[i], own[j]]``.

    ``own`` has for each switch its row in ``matrix``, which is also its column.
    """
    return matrix.take(own, axis=0).take(own, axis=1)  # Two selections need less memory than an index of all pairs.


def _whole_paths(
    grid: Grid, order: Sequence[int], tables: Sequence[tuple[Hops, Hops]], *, same_side: bool
) -> tuple[Hops, Hops]:
    """Return two arrays for N switches, uint8[2, N, N] by set of paths (see :class:`GridPaths`), destination and
    switch: the first hops, and the datelines that the paths cross, as bits.

    ``same_side`` is the argument of :func:`grid_paths`.
    """
    count, position = len(grid.switches), grid.position
    hop, crossing = np.full((2, count, count), NONE, np.uint8), np.zeros((2, count, count), np.uint8)
    # `odd` and `later` are bool by destination and switch: whether a sum is odd.  Each sum adds coordinates of the
    # destination and of the switch.  For `later`, these are the coordinates in all dimensions that paths use after
    # dimension `axis`.  For `odd`, the sum also includes dimension `axis`.
    odd = np.zeros((count, count), bool)
    bit = sum(grid.kind[axis] is Kind.RING for axis in order)
    for axis, (nearest, farther) in reversed(list(zip(order, tables, strict=True))):
        size, own = grid.size[axis], position[:, axis]
        # `here` is a row with the coordinates at which paths start.  `goal` is a column with the coordinates at which
        # paths end.  So an expression with both, such as here != goal, is a matrix: element (i, j) belongs to the path
        # from coordinate j to coordinate i.
        here, goal = np.arange(size)[None, :], np.arange(size)[:, None]
        np.copyto(hop, nearest.T[own], where=_by_pair(here != goal, own))
        later, odd = odd, odd ^ _by_pair((here + goal) % 2 == 1, own)
        if grid.kind[axis] is not Kind.RING:
            continue
        bit -= 1
        gap = (goal - here) % size
        crosses = (here != goal) & np.where(2 * gap < size, here > goal, here < goal)
        crossing |= _by_pair(crosses.astype(np.uint8) << np.uint8(bit), own)
        if size % 2 == 1:  # No two switches are half a ring apart.
            continue
        rows, columns = np.nonzero(_by_pair(2 * gap == size, own))
        start, end = own[columns], own[rows]
        # For each pair of switches that are half a ring apart, `rows` has the destination, and `columns` the switch at
        # which the path starts.  Paths from consecutive positions of the ring use different sides of the ring, so that
        # both sides carry equal loads.
        parity = start + later[rows, columns]
        if same_side and size % 4 == 0:
            # On a ring whose length is a multiple of four, the positions of two opposite switches are both even or
            # both odd.  So the two paths between them, one in each direction, would use opposite sides of the ring.
            # The parity is changed for one of these two paths, so that both paths use the same side.
            parity += start < end
        for side in (0, 1):
            forward = (parity + side) % 2 == 0
            hop[side, rows[~forward], columns[~forward]] = farther.T[end[~forward], columns[~forward]]
            crosses_here = np.where(forward, start > end, start < end).astype(np.uint8) << np.uint8(bit)
            crossing[side, rows, columns] = crossing[side, rows, columns] & ~np.uint8(1 << bit) | crosses_here
    return hop, crossing
