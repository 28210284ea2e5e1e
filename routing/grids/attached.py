"""Distinguish switches that are attached to a grid, such as I/O switches, from the switches of the grid."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from routing.grids.frame import Neighbours
from routing.grids.growth import MISFIT, MISSING, Growth, Position


def grid_switches(near: Neighbours, component: Sequence[int]) -> list[int]:
    """Return the switches of a component that can be switches of a grid, ascending.

    ``near`` has the neighbours of each switch.  In a grid without missing links, each switch has at least half as many
    neighbours as any other switch: at the end of a line, a switch has one neighbour in this dimension instead of two.
    So a switch is left out if it has less than half of the median number of neighbours.  The links to such a switch no
    longer count for its neighbours, so that these may be left out, too.
    """
    degree = {switch: len(near[switch]) for switch in component}
    least = statistics.median(degree.values()) / 2
    left_out = [switch for switch in component if degree[switch] < least]
    for switch in left_out:  # The loop also visits the switches that it appends.
        for other in near[switch]:
            degree[other] -= 1
            if degree[other] < least <= degree[other] + 1:
                left_out.append(other)
    return sorted(set(component) - set(left_out))


def may_belong(near: Neighbours, grown: Growth, left_out: int) -> bool:
    """Return whether switches without a position may belong to a grid.

    ``near`` has the neighbours of each switch, ``grown`` has the coordinates of the other switches, and ``left_out`` is
    the number of switches without a position.  These switches may belong to the grid in three cases:

    - The grid has at least as many free positions as there are such switches.
    - One of the switches would lower the cost (:meth:`Growth.cost`) at some free position inside the grid.  Without a
      position, its links to the grid are links that do not fit.  At the position, some links fit, and others are
      missing.
    - The switches could fill at least half of a further slice of the grid.  A slice is all positions with one value of
      one coordinate.
    """
    place, box = grown.position, grown.extent()
    if grown.volume() - len(place) >= left_out:
        return True
    beyond: dict[tuple[int, int], set[Position]] = {}
    beside = {other for one in place for other in near[one] if other not in place}
    for switch in beside:
        placed = [place[other] for other in near[switch] if other in place]
        votes = Counter(free for position in placed for free in grown.around(position) if free not in grown.at)
        for free, fitting in votes.items():
            outside = [(a, here) for a, here in enumerate(free) if not box[a][0] <= here <= box[a][1]]
            for side in outside:
                beyond.setdefault(side, set()).add(free)
            linked = sum(next_to in grown.at for next_to in grown.around(free))
            if not outside and MISSING * (linked - fitting) < MISFIT * fitting:
                return True
    farther = left_out - len(beside)
    slices = (grown.volume() // (box[axis][1] - box[axis][0] + 1) for axis, _ in beyond)
    return any(2 * (len(free) + farther) >= size for free, size in zip(beyond.values(), slices, strict=True))
