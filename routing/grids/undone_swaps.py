"""Search for two cables of an incomplete grid that complete the grid if they exchange an end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric
from routing.grids.coordinates import Grid, axes_inside, has_complete_grid

MOST_CABLES, MOST_CHECKS = 100, 400
"""Two limits.  The search runs only for grids with at most MOST_CABLES cables.  It checks for at most MOST_CHECKS swaps
whether the grid is complete after the swap.
"""

Pair = tuple[int, int]
Degrees = Counter[int]
"""Number of switches of each degree.  The degree of a switch is the number of its cables to other switches."""


def undone_swaps(fabric: Fabric, grid: Grid) -> npt.NDArray[np.int64]:
    """Return int64[N], rows of the cables in swaps that complete the grid.  In a swap, two cables exchange one end
    each.

    A complete grid has a switch at each position, and one cable between every two neighbours.  The search runs only if
    the grid is incomplete, and has at most :data:`MOST_CABLES` cables.

    A swap does not change the degree (number of cables) of any switch.  So the search ends at once if no complete grid
    has switches with the degrees of this grid.  This is the case for most grids that lack a cable.

    Cost: O(K) for each pair of the K cables, and a search for coordinates for up to :data:`MOST_CHECKS` pairs.
    """
    channels, found = fabric.channels, set[int]()
    inside, _ = axes_inside(grid, channels.src, channels.dst)
    own = inside[channels.src[inside] < channels.dst[inside]]
    if len(own) > MOST_CABLES:
        return np.zeros(0, np.int64)
    pairs = zip(channels.src[own].tolist(), channels.dst[own].tolist(), strict=True)
    ends = dict(zip(channels.link[own].tolist(), pairs, strict=True))
    count, switches = Counter(ends.values()), grid.switches.tolist()
    degrees = Counter(Counter(end for pair in ends.values() for end in pair).values())
    near = _toggled([frozenset()] * fabric.switches, count)
    several = {pair: number for pair, number in count.items() if number > 1}
    if degrees not in _degrees_of_grids(len(switches)) or has_complete_grid(near, switches):
        return np.zeros(0, np.int64)
    # Cables that are in too few squares before the swaps come first.  Most swaps leave one of these cables in too few
    # squares, so the check of the swap ends early.
    by_doubt = sorted(count, key=lambda pair: _has_squares(near, pair))
    checks = 0
    for one, other in combinations(ends, 2):
        (a, b), (c, d) = old = ends[one], ends[other]
        if {one, other} <= found or len({a, b, c, d}) < 4 or any(n - (pair in old) > 1 for pair, n in several.items()):
            continue
        for new in ((min(a, c), max(a, c)), (min(b, d), max(b, d))), ((min(a, d), max(a, d)), (min(b, c), max(b, c))):
            after = _toggled(near, {*old, *new} - several.keys())
            kept = (pair for pair in by_doubt if pair[1] in after[pair[0]])
            fits = not {*new} & count.keys() and all(_has_squares(after, pair) for pair in (*new, *kept))
            if checks == MOST_CHECKS or not fits:
                continue
            checks += 1
            found |= {one, other} if has_complete_grid(after, switches) else set()
    return np.array(sorted(found), np.int64)


def _toggled(near: Sequence[frozenset[int]], pairs: Iterable[Pair]) -> list[frozenset[int]]:
    """Return ``near``, the neighbours of each switch, after a change at each pair of switches in ``pairs``.

    A pair of linked switches loses its link, and any other pair gets a link.
    """
    after = list(near)
    for a, b in pairs:
        after[a], after[b] = after[a] ^ {b}, after[b] ^ {a}
    return after


def _degrees_of_grids(switches: int, shortest: int = 2) -> Iterator[Degrees]:
    """Yield the number of switches of each degree, for each complete grid with a given number of switches.

    No dimension is smaller than ``shortest``.  The sizes of the dimensions ascend, so that 3 x 4 occurs but not 4 x 3.
    The function chooses the size of the first dimension, and calls itself for the other dimensions, with this size as
    ``shortest``.
    """
    if switches == 1:
        yield Counter({0: 1})
    for size in range(shortest, switches + 1):
        line, ring, clique = Counter({1: 2}) + Counter({2: size - 2}), Counter({2: size}), Counter({size - 1: size})
        for rest in _degrees_of_grids(switches // size, size) if switches % size == 0 else ():
            for row in (line, ring, clique) if size > 2 else (line,):
                found = Degrees()
                for (one, count), (other, times) in product(row.items(), rest.items()):
                    found[one + other] += count * times
                yield found


def _has_squares(near: Sequence[frozenset[int]], pair: Pair) -> bool:
    """Return whether the cable between two switches has squares and common neighbours as in a complete grid.

    A square is a cycle of four switches.  In a complete grid, each neighbour of a switch in another dimension gives one
    square with the cable.  In the dimension of the cable, a switch of a line or ring has at most two neighbours.  A
    switch of a clique can have more neighbours in this dimension, but these give squares, too.  So the cable must have
    at least n - 2 squares, if n is the number of neighbours of the switch with more neighbours.  It must also have at
    least one square, as in every grid of several dimensions.

    All common neighbours of the two switches must be linked to each other, because in a grid they are in one clique.
    """
    a, b = pair
    common, squares = near[a] & near[b], sum(len(near[c] & near[b]) - (a in near[c]) for c in near[a] - {b})
    return squares >= max(1, len(near[a]) - 2, len(near[b]) - 2) and all(common - {c} <= near[c] for c in common)
