"""Search for two cables of an incomplete grid that complete the grid if they exchange an end."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric
from routing.grids.coordinates import Grid, has_complete_grid

MOST_CABLES = 100
"""Maximum number of cables of a grid for which the search runs."""

Pair = tuple[int, int]


def undone_swaps(fabric: Fabric, grid: Grid) -> npt.NDArray[np.int64]:
    """Return the rows of all cables that complete a grid if they exchange an end with another cable, int64[N].

    A complete grid has a switch at each position, and one cable between all neighbours.  The search runs if some cable
    of the grid is in no square (cycle of four switches), and if the grid has at most :data:`MOST_CABLES` cables.

    Notes
    -----
    Cost: O(d^2) for each pair of cables, for switches of degree d.
    """
    channels, found = fabric.channels, set[int]()
    own = np.flatnonzero(np.isin(channels.src, grid.switches) & (channels.src < channels.dst))
    pairs = zip(channels.src[own].tolist(), channels.dst[own].tolist(), strict=True)
    ends = dict(zip(channels.link[own].tolist(), pairs, strict=True))
    count = Counter(ends.values())
    near = _neighbours(fabric.switches, count)
    doubtful = {pair for pair in count if not _is_in_square(near, pair)}
    for one, other in combinations(ends, 2) if doubtful and len(ends) <= MOST_CABLES else ():
        (a, b), (c, d) = ends[one], ends[other]
        for first, second in ((a, c), (b, d)), ((a, d), (b, c)):
            new = {(min(pair), max(pair)) for pair in (first, second)}
            if len({a, b, c, d}) < 4 or new & count.keys():
                continue
            more = near.copy()
            for x, y in new:
                more[x], more[y] = more[x] | {y}, more[y] | {x}
            if not all(_is_in_square(more, pair) for pair in new | doubtful - {ends[one], ends[other]}):
                continue
            after = count - Counter([(a, b), (c, d)]) + Counter(new)
            near_after = _neighbours(fabric.switches, after)
            if max(after.values()) == 1 and all(_is_in_square(near_after, pair) for pair in after):
                found |= {one, other} if has_complete_grid(near_after, grid.switches.tolist()) else set()
    return np.array(sorted(found), np.int64)


def _neighbours(switches: int, pairs: Counter[Pair]) -> list[frozenset[int]]:
    near: list[set[int]] = [set() for _ in range(switches)]
    for a, b in pairs:
        near[a].add(b)
        near[b].add(a)
    return [frozenset(one) for one in near]


def _is_in_square(near: list[frozenset[int]], pair: Pair) -> bool:
    """Return whether two switches are neighbours in a square, if they have a cable."""
    a, b = pair
    return any((near[c] & near[b]) - {a} for c in near[a] - {b})
