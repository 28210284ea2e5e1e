"""Search for two cables of an incomplete grid that complete the grid if they exchange an end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric
from routing.grids.coordinates import Grid, has_complete_grid

MOST_CABLES = 100
"""Maximum number of cables of a grid for which the search runs."""

Pair = tuple[int, int]
Degrees = Counter[int]
"""The number of switches that have a degree (number of cables to other switches), by degree."""


def undone_swaps(fabric: Fabric, grid: Grid) -> npt.NDArray[np.int64]:
    """Return the rows of all cables that complete a grid if they exchange an end with another cable, int64[N].

    A complete grid has a switch at each position, and one cable between every two neighbours.  The search runs if the
    present grid is incomplete, and has at most :data:`MOST_CABLES` cables.

    A swap does not change the degree (number of cables) of any switch.  So the search ends at once if no complete grid
    has switches of the present degrees.  For most grids that lack a cable, no complete grid has such degrees.

    Notes
    -----
    Cost: O(K) for each pair of the K cables.
    """
    channels, found = fabric.channels, set[int]()
    own = np.flatnonzero(np.isin(channels.src, grid.switches) & (channels.src < channels.dst))
    if len(own) > MOST_CABLES:
        return np.zeros(0, np.int64)
    pairs = zip(channels.src[own].tolist(), channels.dst[own].tolist(), strict=True)
    ends = dict(zip(channels.link[own].tolist(), pairs, strict=True))
    count, switches = Counter(ends.values()), grid.switches.tolist()
    degrees = Counter(Counter(end for pair in ends.values() for end in pair).values())
    is_complete = has_complete_grid(_neighbours(fabric.switches, count), switches)
    if is_complete or degrees not in _degrees_of_grids(len(switches)):
        return np.zeros(0, np.int64)
    for one, other in combinations(ends, 2):
        (a, b), (c, d) = ends[one], ends[other]
        for first, second in ((a, c), (b, d)), ((a, d), (b, c)):
            new = {(min(pair), max(pair)) for pair in (first, second)}
            if len({a, b, c, d}) < 4 or new & count.keys():
                continue
            after = count - Counter([(a, b), (c, d)]) + Counter(new)
            near = _neighbours(fabric.switches, after)
            if max(after.values()) == 1 and all(_is_in_square(near, pair) for pair in (*new, *after)):
                found |= {one, other} if has_complete_grid(near, switches) else set()
    return np.array(sorted(found), np.int64)


def _degrees_of_grids(switches: int, shortest: int = 2) -> Iterator[Degrees]:
    """Yield the number of switches of each degree, for each complete grid with a given number of switches.

    Grids with a row of less than ``shortest`` switches are left out.  Sizes of dimensions ascend, so that 3 x 4 occurs
    but not 4 x 3.  For this purpose, the function calls itself for all dimensions but the first, with the size of the
    first dimension as ``shortest``.
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


def _neighbours(switches: int, pairs: Iterable[Pair]) -> list[frozenset[int]]:
    near: list[set[int]] = [set() for _ in range(switches)]
    for a, b in pairs:
        near[a].add(b)
        near[b].add(a)
    return [frozenset(one) for one in near]


def _is_in_square(near: list[frozenset[int]], pair: Pair) -> bool:
    """Return whether a cable between the two switches of ``pair`` would be a side of a square (a cycle of four
    switches).
    """
    a, b = pair
    return any((near[c] & near[b]) - {a} for c in near[a] - {b})
