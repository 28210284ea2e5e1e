"""Compute dimension-order tables of a torus.  The cycle of each ring is broken by a dateline and a second VL."""

from __future__ import annotations

import re

import numpy as np

from routing.errors import OptionError
from routing.fabric import NO_PORT, Fabric
from routing.tables import Provenance, Routing

MOST_DIMENSIONS = 4


def switch_positions(fabric: Fabric) -> tuple[list[tuple[int, ...]], tuple[int, ...]]:
    """Return the coordinates of all switches of a torus, which the names of the switches state.

    Returns
    -------
    positions
        Coordinates of each switch.
    sizes
        Number of switches along each dimension.

    Raises
    ------
    OptionError
        The names of the switches are not coordinates of a torus, or the torus has too many dimensions.
    """
    names = [re.fullmatch(r"sw(\d+(?:\.\d+)*)", name) for name in fabric.switch_name]
    positions = [tuple(map(int, found[1].split("."))) for found in names if found]
    sizes = tuple(1 + max(column) for column in zip(*positions, strict=True)) if positions else ()
    if len(positions) < len(names) or len(set(map(len, positions))) != 1 or len(set(positions)) != int(np.prod(sizes)):
        raise OptionError("the switches have no coordinates", remedy="use a generated grid, or an engine")
    if len(sizes) > MOST_DIMENSIONS:
        raise OptionError(f"a torus of {len(sizes)} dimensions needs more SLs than there are")
    return positions, sizes


def dimension_order(fabric: Fabric) -> Routing:
    """Compute dimension-order tables of a torus, which are deadlock-free with 2 VLs.

    A path takes the shorter direction around each ring, one dimension after the other.  Of two directions of equal
    length, it takes the direction with ascending coordinates.  The dateline is the link from the last switch of a ring
    to the first.  A path that crosses the dateline of a dimension uses VL 1 in that dimension, other paths use VL 0.
    Bit d of the SL is the VL in dimension d.

    Raises
    ------
    OptionError
        The fabric is not a torus of :func:`routing.topologies.grids.torus`, or has more than four dimensions.

    Notes
    -----
    Dally and Seitz, Deadlock-free message routing in multiprocessor interconnection networks (1987).
    Cost: O(S L) steps of Python.
    """
    (positions, sizes), channels, lids = switch_positions(fabric), fabric.channels, fabric.lids
    row = {position: switch for switch, position in enumerate(positions)}
    port: dict[tuple[int, int], int] = {}
    for near, far, number in zip(channels.src.tolist(), channels.dst.tolist(), channels.port.tolist(), strict=True):
        port.setdefault((near, far), number)

    def port_to(switch: int, dim: int, step: int) -> int:
        position = positions[switch]
        there = (*position[:dim], (position[dim] + step) % sizes[dim], *position[dim + 1 :])
        if (switch, row[there]) not in port:
            raise OptionError(f"{fabric.labels[switch]} has no cable to {fabric.labels[row[there]]}")
        return port[switch, row[there]]

    shape, ports = (fabric.switches, len(lids)), 1 + int(fabric.switch_ports.max(initial=0))
    lft, sl = np.full(shape, NO_PORT, np.uint8), np.zeros(shape, np.uint8)
    sl2vl = np.zeros((fabric.switches, ports, ports, 16), np.uint8)
    for switch, position in enumerate(positions):
        for dim, size in enumerate(sizes):
            for step in (1, -1) if size > 1 else ():
                sl2vl[switch, :, port_to(switch, dim, step)] = (np.arange(16) >> dim) & 1
        for lid in np.flatnonzero(lids.switch >= 0).tolist():
            goal = positions[int(lids.switch[lid])]
            ahead = [(b - a) % size for a, b, size in zip(position, goal, sizes, strict=True)]
            steps = [0 if not d else 1 if d <= size // 2 else -1 for d, size in zip(ahead, sizes, strict=True)]
            sl[switch, lid] = sum(((goal[d] - position[d]) * steps[d] < 0) << d for d in range(len(sizes)))
            first = next((d for d, step in enumerate(steps) if step), None)
            lft[switch, lid] = lids.port[lid] if first is None else port_to(switch, first, steps[first])
    return Routing(lft, sl, sl2vl, 2, 2, Provenance("dimension-order"))
