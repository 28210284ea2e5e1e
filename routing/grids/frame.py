"""Find the dimensions at one switch: which of its neighbours lie in one dimension, and which are on opposite sides."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Neighbours = Sequence[frozenset[int]]
"""The neighbours of each switch.  Parallel links count once."""

FRUITLESS = 20
"""The search for frames ends if more than this number of switches were examined, and none of them has a usable frame
(:func:`frames`).
"""

SAMPLE, FEWEST_PAIRS = 32, 100
"""Limits for the sample of switches in :func:`has_squares`.

``SAMPLE`` has two uses.  The sample has at least this number of switches; a smaller component is in the sample as a
whole.  At each switch of the sample, at most this number of neighbours are examined.  The sample is too small for a
conclusion if it has fewer than ``FEWEST_PAIRS`` unlinked pairs.  An unlinked pair is two of these neighbours of one
switch that are not linked to each other.
"""
SPANNING = 0.3
"""Least share of the unlinked pairs of neighbours in the sample that span a square in a grid.

Measured in tori of 36 to 125 switches, with 100 random choices of missing links: at least 45 % of these pairs span a
square if a tenth of the links is missing.  If a fifth of the links is missing, at least 32 % span a square.  In a
random network of 125 switches with 8 links each, 29 % of these pairs span a square.
"""


@dataclass(frozen=True)
class Frame:
    """Frame: a switch (the origin of coordinates) and its neighbours, sorted into dimensions.

    Attributes
    ----------
    origin
        The switch that gets coordinate 0 in all dimensions.
    cliques
        The neighbours in each dimension in which all switches of a row are linked to each other.
    opposite
        Pairs of neighbours on opposite sides of the origin; each pair lies in a dimension of its own.
    single
        Neighbours that are alone in their dimension.
    doubtful
        Number of neighbours that could be opposite to several other neighbours.
    """

    origin: int
    cliques: tuple[tuple[int, ...], ...]
    opposite: tuple[tuple[int, int], ...]
    single: tuple[int, ...]
    doubtful: int

    @property
    def dimensions(self) -> int:
        """Number of dimensions at the origin."""
        return len(self.cliques) + len(self.opposite) + len(self.single)

    @property
    def least_volume(self) -> int:
        """Lower bound of the number of positions of the grid, from the lengths that are known at the origin."""
        cliques = math.prod(len(members) + 1 for members in self.cliques)
        return int(cliques * 3 ** len(self.opposite) * 2 ** len(self.single))


def frame_at(near: Neighbours, origin: int) -> Frame:
    """Return the dimensions at the switch ``origin``.  ``near`` has the neighbours of each switch.

    Two neighbours lie in different dimensions if they have a second common neighbour, which is the fourth corner of a
    square.  If a link of this square is missing, a parallel square can show the same (:func:`_spans_square`).
    Neighbours that are linked to each other lie in one dimension.

    Cost: O(d^2) set operations for d neighbours, O(d^3) where squares are missing.
    """
    around = sorted(near[origin])
    group = {one: one for one in around}
    for a, b in itertools.combinations(around, 2):
        if b in near[a] or _is_linked_elsewhere(near, origin, a, b):
            low, high = sorted((group[a], group[b]))
            group = {one: low if root == high else root for one, root in group.items()}
    by_root: dict[int, list[int]] = {}
    for one, root in group.items():
        by_root.setdefault(root, []).append(one)
    cliques = tuple(tuple(members) for members in by_root.values() if len(members) > 1)
    lone = [members[0] for members in by_root.values() if len(members) == 1]
    partners: dict[int, list[int]] = {one: [] for one in lone}
    for a, b in itertools.combinations(lone, 2):
        if not _spans_square(near, origin, a, b):
            partners[a].append(b)
            partners[b].append(a)
    opposite = _pair_up(partners)
    paired = {one for pair in opposite for one in pair}
    doubtful = sum(len(others) > 1 for others in partners.values())
    return Frame(origin, cliques, opposite, tuple(one for one in lone if one not in paired), doubtful)


def frames(near: Neighbours, component: Sequence[int], most: int, volume: float) -> Iterator[Frame]:
    """Yield frames (:class:`Frame`) at up to ``most`` switches of a component; the most promising frame comes first.

    A frame is promising if its origin has many neighbours, and if each neighbour has at most one possible partner on
    the opposite side of the origin (:attr:`Frame.doubtful`).  A frame is left out if even the smallest grid with the
    dimensions of the frame has more than ``volume`` positions (:attr:`Frame.least_volume`).
    """
    by_degree = sorted(component, key=lambda switch: (-len(near[switch]), switch))
    clear, found = 0, list[Frame]()
    for number, switch in enumerate(by_degree[: 5 * most]):
        frame = frame_at(near, switch)
        if frame.least_volume > volume:
            if number >= FRUITLESS and clear + len(found) == 0:
                return
        elif frame.doubtful == 0 and len(near[switch]) == len(near[by_degree[0]]) and clear < most:
            clear += 1
            yield frame  # No later frame is more promising.
        else:
            found.append(frame)
    found.sort(key=lambda one: (one.doubtful - 2 * len(near[one.origin]), one.origin))
    yield from found[: most - clear]


def has_squares(near: Neighbours, component: Sequence[int]) -> bool:
    """Return whether the switches of a component have enough squares for a grid.

    Two neighbours of a switch that are not linked to each other span a square if they have another common neighbour.
    Such pairs are counted at a sample of the switches, and compared with :data:`SPANNING`.  The result is also True for
    small components, and for lines and rings, which have no squares.
    """
    sample = component[:: max(1, len(component) // SAMPLE)]
    pairs = [pair for switch in sample for pair in itertools.combinations(sorted(near[switch])[:SAMPLE], 2)]
    unlinked = [(a, b) for a, b in pairs if b not in near[a]]
    if len(unlinked) < FEWEST_PAIRS or 2 * len(pairs) < 3 * len(sample):
        return True
    return sum(len(near[a] & near[b]) > 1 for a, b in unlinked) >= SPANNING * len(unlinked)


def _spans_square(near: Neighbours, origin: int, a: int, b: int) -> bool:
    """Return whether a square of links shows that two neighbours of a switch lie in different dimensions.

    The square contains ``origin`` and both neighbours ``a`` and ``b``, or it is parallel to such a square.  A parallel
    square contains the switches next to ``a`` and ``b`` in the direction of a third neighbour of ``origin``.
    """
    if len(near[a] & near[b]) > 1:
        return True
    return any(
        len(near[x] & near[y]) > 1
        for c in near[origin] - {a, b}
        for x, y in _shifted(near, origin, (a, b), c)
        if x != y
    )


def _is_linked_elsewhere(near: Neighbours, origin: int, a: int, b: int) -> bool:
    """Return whether two neighbours (``a``, ``b``) of a switch lie in one dimension although no link joins them.

    Parallel rows show this: for at least two other neighbours ``c`` of the switch, a link joins the two switches next
    to ``a`` and ``b`` in the direction of ``c``.  The result is False if ``a`` and ``b`` have another common neighbour
    besides the switch.
    """
    if len(near[a] & near[b]) > 1:
        return False
    shifted = (pair for c in near[origin] - {a, b} for pair in _shifted(near, origin, (a, b), c))
    return sum(y in near[x] for x, y in shifted) > 1


def _shifted(near: Neighbours, origin: int, pair: tuple[int, int], c: int) -> list[tuple[int, int]]:
    """Return the fourth corners of two squares that both contain the switch ``origin`` and its neighbour ``c``.

    One square contains the first switch of ``pair``, the other square the second switch of ``pair``.  Both switches of
    ``pair`` are neighbours of ``origin``.  The result is a list with one pair of corners.  The list is empty if one of
    the squares has no possible fourth corner, or several.
    """
    one, other = (near[neighbour] & near[c] - {origin} for neighbour in pair)
    if len(one) != 1 or len(other) != 1:
        return []
    return [(min(one), min(other))]


def _pair_up(partners: dict[int, list[int]]) -> tuple[tuple[int, int], ...]:
    """Return pairs of opposite neighbours.  ``partners`` lists the possible partners of each neighbour.  Neighbours
    with the fewest possible partners are paired first.
    """
    rest = {one: set(others) for one, others in partners.items()}
    pairs: list[tuple[int, int]] = []
    while True:
        open_ones = [one for one, others in rest.items() if others]
        if not open_ones:
            return tuple(sorted(pairs))
        one = min(open_ones, key=lambda each: (len(rest[each]), each))
        other = min(rest[one], key=lambda each: (len(rest[each]), each))
        pairs.append((min(one, other), max(one, other)))
        for gone in (one, other):
            del rest[gone]
        for others in rest.values():
            others -= {one, other}
