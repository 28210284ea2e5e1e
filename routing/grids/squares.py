"""Find coordinates by squares (cycles of four switches) in one pass, if few links and switches are missing."""

from __future__ import annotations

import itertools

import numpy as np

from routing.grids.frame import Frame, Neighbours
from routing.grids.growth import Growth, Position


def by_squares(near: Neighbours, frame: Frame) -> Growth | None:
    """Return coordinates that all links fit, or None if squares determine no such coordinates.

    ``near`` has the neighbours of each switch.  ``frame`` has the origin and its neighbours, sorted into dimensions.

    Cost: usually O(S d^2) set operations for S switches with d neighbours each.
    """
    grown = Growth.begin(near, frame)
    position, layer, stuck = dict(grown.position), near[frame.origin], set[int]()
    while edge := {other for switch in layer for other in near[switch] if other not in position} | stuck:
        layer = frozenset(switch for switch in sorted(edge) if _place(switch, near, position))
        stuck = edge - layer
        if not layer:
            return None
    fits = len(position) > 1 and _close_rings(grown, position) and not grown.misplaced()
    return grown if fits else None


def _place(switch: int, near: Neighbours, position: dict[int, Position]) -> bool:
    """Add the position of a switch: the fourth corner of a square with three placed corners, or the next position along
    an axis.

    Return whether the placed switches determine a position.
    """
    placed = [other for other in near[switch] if other in position]
    for one, other in itertools.combinations(placed, 2):
        for corner in near[one] & near[other] - near[switch]:
            # A square with linked opposite corners may lie within one dimension, so it does not determine a position.
            if corner != switch and corner in position and other not in near[one]:
                places = zip(position[one], position[other], position[corner], strict=True)
                position[switch] = tuple(a + b - c for a, b, c in places)
                return True
    if any(sum(map(bool, position[other])) > 1 for other in placed):
        return False
    position[switch] = tuple(here + (here > 0) - (here < 0) for here in position[placed[0]])
    return True


def _close_rings(grown: Growth, position: dict[int, Position]) -> bool:
    """Find the dimensions of rings, and number the positions on rings from 0.

    A dimension has rings if at least half of its rows have a link between the first and the last position.

    Return whether all links fit the positions, and each switch has a position of its own.
    """
    place, row = np.array(list(position.values())), np.zeros(len(grown.near), np.int64)
    row[list(position)] = np.arange(len(position))
    degree = [len(grown.near[switch]) for switch in position]
    ends = list(itertools.chain.from_iterable(grown.near[switch] for switch in position))
    gap = np.abs(np.repeat(place, degree, axis=0) - place[row[ends]])
    axis, hops = gap.argmax(axis=1), gap.max(axis=1)
    fits = (hops == 1) | np.array(grown.is_clique)[axis]
    for one in set(axis[~fits].tolist()):
        size = grown.length[one] = int(hops[axis == one].max()) + 1
        closing = (axis == one) & (hops == size - 1)
        place[:, one] %= size
        # `closing` marks the links between the first and the last position of each row.  These links close rings if at
        # least half of the rows have such a link.  Each link is marked twice, once from each end.  So there must be at
        # least as many marks as rows.
        if np.count_nonzero(closing) >= np.count_nonzero(place[:, one] == 0):
            fits |= closing
    grown.position = dict(zip(position, map(tuple, place.tolist()), strict=True))
    grown.at = {there: switch for switch, there in grown.position.items()}
    grown.labels = (1 + place.max(axis=0)).tolist()
    grown.known_misfits = []
    return len(grown.at) == len(position) and bool((fits & (np.count_nonzero(gap, axis=1) == 1)).all())
