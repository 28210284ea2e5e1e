"""Distinguish switches that are attached to a grid, such as I/O switches, from the switches of the grid."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence

from routing.grids.frame import Neighbours
from routing.grids.growth import HOLE, MISFIT, MISSING, Growth, Position

MOST_NEIGHBOURS = 2
"""Largest number of neighbours of a switch that is attached to a grid."""


def grid_switches(near: Neighbours, component: Sequence[int]) -> list[int]:
    """Return the switches of a component that cannot be attached to a grid, ascending.

    ``near`` has the neighbours of each switch.  Neighbours without a further neighbour do not count here.  Switches
    with at most :data:`MOST_NEIGHBOURS` neighbours are left out, unless most switches of the component have so few
    neighbours, as in a ring.  Corners of a grid may be left out, too.
    """
    count = {switch: sum(len(near[other]) > 1 for other in near[switch]) for switch in component}
    least = min(MOST_NEIGHBOURS + 1, math.ceil(statistics.median(count.values())))
    return [switch for switch in component if count[switch] >= least]


def fitting_switches(near: Neighbours, grown: Growth, left_out: set[int], slices: bool) -> set[int]:
    """Return the switches without a position that may belong to a grid.

    ``near`` has the neighbours of each switch, ``grown`` has the coordinates of the other switches, and ``left_out``
    has the switches without a position.  Switches may belong to the grid in two cases:

    - The cost (see :meth:`Growth.cost`) falls if the switch gets a free position inside the grid.
    - The switch and other switches without a position could fill more than half of a further slice of the grid.  A
      slice is all positions with one value of one coordinate.  Switches without a link to a switch with a position
      could be in any slice.

    If several switches fit a position, the switch with the lowest cost gets the position.  If ``slices`` is
    false, the second case does not count.
    """
    box = grown.extent()
    farther = {switch for switch in left_out if near[switch] <= left_out}
    costs: dict[tuple[int, int] | None, list[tuple[int, int, Position]]] = defaultdict(list)
    for switch in left_out:
        places = (grown.position[other] for other in near[switch] if other in grown.position)
        votes = Counter(free for place in places for free in grown.around(place) if free not in grown.at)
        for free, fitting in votes.items():
            side = next(((a, at) for a, at in enumerate(free) if not box[a][0] <= at <= box[a][1]), None)
            linked = sum(beside in grown.at for beside in grown.around(free))
            costs[side].append((MISSING * (linked - fitting) - MISFIT * fitting, switch, free))
    found = set[int]()
    # In `costs`, positions inside the grid have the key None, and come first.  All other positions have the key of the
    # further slice to which they belong.
    for side in sorted(costs if slices else costs.keys() & {None}, key=lambda side: side or ()):
        chosen: dict[int, Position] = {}
        for cost, switch, free in sorted(costs[side]):
            if cost < (0 if side else HOLE) and switch not in found | chosen.keys() and free not in chosen.values():
                chosen[switch] = free
        for filled in (chosen.keys(), chosen.keys() | farther):
            if not side or 2 * len(filled) * (box[side[0]][1] - box[side[0]][0] + 1) > grown.volume():
                found |= filled
                break
    return found
