"""Find the coordinates of the switches of a grid, torus, hypercube or HyperX from the cables alone."""

from __future__ import annotations

import igraph
import numpy as np
import numpy.typing as npt

from routing.engines.torus_dimensions import directions
from routing.fabric import Fabric

Cells = npt.NDArray[np.int64]


def grid_coordinates(fabric: Fabric) -> Cells | None:
    """Return the coordinates of each switch: int64[S, dimensions].

    The result is None if the fabric is not a grid, torus, hypercube or HyperX.  The dimension with the most switches
    comes first.  Every two dimensions of size 2 are combined into a ring of four switches.

    Notes
    -----
    Cost: the cost of :func:`routing.engines.torus_dimensions.directions`, plus O(C) for each dimension.
    """
    found = directions(fabric)
    if found is None:
        return None
    direction = _with_cliques_joined(fabric, found)
    columns = [_positions(fabric, direction, each) for each in range(int(direction.max()) + 1)]
    columns = [column for column in columns if column.max() > 0]
    pairs = [column for column in columns if column.max() == 1]
    longer = [column for column in columns if column.max() > 1]
    # directions() reports a ring of four switches as two dimensions of size 2.  Both are combined into one dimension,
    # in which the positions 0, 1, 2, 3 follow the ring (a Gray code).
    rings = [2 * a + (a ^ b) for a, b in zip(pairs[::2], pairs[1::2], strict=False)]
    columns = [*longer, *rings, *(pairs[-1:] if len(pairs) % 2 else [])]
    if len(columns) == 0:
        return None
    largest = np.argsort([-int(column.max()) for column in columns], kind="stable")
    cells = np.column_stack(columns)[:, largest]
    return cells if len(np.unique(cells, axis=0)) == fabric.switches else None


def _with_cliques_joined(fabric: Fabric, direction: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Combine the directions of channels that belong to one dimension of a HyperX.

    In a HyperX, all switches of a row are linked to each other, so links of one dimension form triangles.  Two links
    of different dimensions never belong to a triangle.  So if two directions occur in a triangle, they are combined.

    Parameters
    ----------
    fabric
        Fabric.
    direction
        int32[C], direction of each channel.  The links of one triangle may have different directions.

    Returns
    -------
    int32[C]
        Dimension of each channel.
    """
    channels = fabric.channels
    joined = np.arange(int(direction.max()) + 1, dtype=np.int32)
    linked = set(zip(channels.src.tolist(), channels.dst.tolist(), strict=True))
    busiest = int(np.diff(channels.first).argmax())
    own = range(int(channels.first[busiest]), int(channels.first[busiest + 1]))
    for a in own:
        for b in own:
            if (int(channels.dst[a]), int(channels.dst[b])) in linked:
                joined[joined == joined[direction[b]]] = joined[direction[a]]
    return joined[direction]


def _positions(fabric: Fabric, direction: npt.NDArray[np.int32], each: int) -> Cells:
    """Return the position of each switch along one dimension of a grid: int64[S].

    Without the channels of this dimension, the fabric falls into connected components, the slices.  All switches of a
    slice have equal positions.  If the slices form a line or a ring, consecutive slices have consecutive positions.
    ``direction`` is int32[C], the dimension of each channel.  ``each`` is the dimension along which the positions are
    wanted.
    """
    channels = fabric.channels
    ends = np.column_stack([channels.src, channels.dst])
    other = igraph.Graph(n=fabric.switches, edges=ends[direction != each])
    slice_of = np.asarray(other.connected_components().membership, np.int64)
    count = int(slice_of.max()) + 1
    near: list[set[int]] = [set() for _ in range(count)]
    for a, b in zip(*slice_of[ends[direction == each]].T.tolist(), strict=True):
        if a != b:
            near[a].add(b)
    if any(len(some) > 2 for some in near):
        return slice_of
    line = _walk(near)
    if len(line) != count:
        return slice_of
    position = np.empty(count, np.int64)
    position[line] = np.arange(count)
    return position[slice_of]


def _walk(near: list[set[int]]) -> list[int]:
    """Return the numbers of the slices of a grid, in their order along a line or a ring.

    A slice is a set of switches with equal positions in one dimension.  ``near`` has the numbers of the neighbouring
    slices of each slice.  A line begins at one of its ends, and a ring at slice 0.
    """
    here = next((at for at, some in enumerate(near) if len(some) == 1), 0)
    seen, line = {here}, [here]
    while following := sorted(near[here] - seen):
        here = following[0]
        seen.add(here)
        line.append(here)
    return line


def grid_points(cells: Cells, gap: float) -> npt.NDArray[np.float64]:
    """Return the coordinates in the picture for each switch of a grid: float64[S, 2].

    The first two dimensions of the grid lead right and down.  The third dimension leads to the upper right.  Each
    further dimension puts copies of the picture side by side, or one below the other.

    Parameters
    ----------
    cells
        int64[S, N], coordinates of each switch in the N dimensions of the grid.
    gap
        Distance between two neighbouring switches in pixels.
    """
    sizes = cells.max(axis=0) + 1
    depth = int(sizes[2]) if len(sizes) > 2 else 1
    wide, high = (1.0, 1.0) if depth == 1 else (0.45 * depth + 0.9, 0.35 * depth + 0.9)
    x, y = cells[:, 0] * wide, (cells[:, 1] * high if len(sizes) > 1 else np.zeros(len(cells)))
    if depth > 1:
        x, y = x + 0.45 * cells[:, 2], y - 0.35 * cells[:, 2]
    block = [sizes[0] * wide + 1.0, (sizes[1] if len(sizes) > 1 else 1) * high + 1.0]
    for number, column in enumerate(cells[:, 3:].T):
        axis = number % 2
        if axis == 0:
            x = x + column * block[0]
        else:
            y = y + column * block[1]
        block[axis] *= float(column.max() + 1)
    return np.column_stack([x, y]) * gap
