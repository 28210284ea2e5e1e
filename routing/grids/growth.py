"""Assign coordinates to all switches of a connected component, beginning at one switch."""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from routing.grids.frame import Frame, Neighbours

Position = tuple[int, ...]

MISFIT = 5
"""Cost of a link that does not fit the coordinates of its switches.  A missing link costs less (``MISSING``)."""
MISSING = 2
HOLE = 3
"""Cost of a position without a switch.  This cost counts only when complete coordinates are compared."""
BORDER = 4
"""Largest cost of a position beyond a probable border of the mesh (see :meth:`Growth._border_cost`)."""
CLEAR = 3
"""The best position of a switch is certain if its cost is at least this much below the cost of the second best
position.
"""
MOST_WRONG = 0.25
"""An attempt fails if more than this share of the links between placed switches do not fit the coordinates.  In
addition, ``FEW`` such links are allowed.
"""
MOST_FORCED = 0.15
"""An attempt fails if more than this share of the placed switches had no certain position (:data:`CLEAR`) when
they were placed.  In addition, ``FEW`` such switches are allowed.
"""
FEW = 12
SHORTEST_RING = 3
RADIUS = 4
"""To correct coordinates, badly placed switches are placed again.  If necessary, the switches around them are placed
again, too: only switches at a distance of fewer hops than this number.
"""


@dataclass(eq=False)
class Growth:
    """Coordinates of the switches of a connected component, while they are spread from switch to switch.

    A switch gets the position with which most links to placed switches agree.  Switches whose position is certain are
    placed first.  Coordinates along lines and rings are integers.  A ring is treated as a line until links between its
    first and its last switch show the length of the ring.  In a dimension where all switches of a row are linked,
    coordinates are labels without an order.

    Attributes
    ----------
    near
        Neighbours of each switch.
    is_clique, length
        Two lists with one value for each dimension.  ``is_clique``: whether all switches of a row are linked to each
        other.  ``length``: the length of the rings, 0 if the dimension has no rings.
    position, at
        Position of each placed switch, and the switch at each position.
    labels
        Number of labels in each dimension of cliques.
    box
        Lowest and highest coordinate that a position may have in each dimension; None: any.
    chance
        Source of random choices among positions that are not certain; None: the first position is taken.
    has_failed
        Whether the search ended without success, because too many links do not fit, or too many switches have no
        certain position.
    known_misfits
        Result of :meth:`misfits` once no position changes any more; None: not yet known.
    """

    near: Neighbours
    is_clique: list[bool]
    length: list[int]
    position: dict[int, Position] = field(default_factory=dict)
    at: dict[Position, int] = field(default_factory=dict)
    labels: list[int] = field(default_factory=list)
    box: list[tuple[int, int]] | None = None
    chance: random.Random | None = None
    has_failed: bool = False
    known_misfits: list[tuple[int, int]] | None = None
    _closing: Counter[tuple[int, int]] = field(default_factory=Counter)
    _slices: dict[tuple[int, int], set[int]] = field(default_factory=dict)
    _placed_near: Counter[int] = field(default_factory=Counter)
    _closed: Counter[tuple[int, int]] = field(default_factory=Counter)
    _wrong: int = 0
    _forced: int = 0
    _joined: int = 0
    _around: _Around | None = None
    _possible_links: int | None = None

    @classmethod
    def of(cls, near: Neighbours, frame: Frame, chance: random.Random | None = None) -> Growth:
        """Return the coordinates of all switches that are connected to the origin of a frame.

        For the parameters, see :meth:`begin`.
        """
        made = cls.begin(near, frame, chance)
        made._spread()
        if not made.has_failed:
            made._close_rings(at_end=True)
            made._correct()
            # From here on, no position changes.  So the result of `misfits` stays valid and is stored.
            made.known_misfits = made.misfits()
        return made

    @classmethod
    def begin(cls, near: Neighbours, frame: Frame, chance: random.Random | None = None) -> Growth:
        """Return the coordinates of the switches of a frame.

        ``near`` has the neighbours of each switch.  ``frame`` has the origin, which is a switch, and its neighbours
        sorted into dimensions.  ``chance`` is a source of random choices, or None.
        """
        count, cliques = frame.dimensions, len(frame.cliques)
        made = cls(near, [axis < cliques for axis in range(count)], [0] * count, labels=[1] * count, chance=chance)
        made._put(frame.origin, (0,) * count)
        for axis, members in enumerate(frame.cliques):
            for label, switch in enumerate(members, 1):
                made._put(switch, _unit(count, axis, label))
        lines = [*((low, high) for low, high in frame.opposite), *((None, one) for one in frame.single)]
        for axis, (low, high) in enumerate(lines, cliques):
            made._put(high, _unit(count, axis, 1))
            if low is not None:
                made._put(low, _unit(count, axis, -1))
        return made

    def over(self, near: Neighbours) -> Growth:
        """Return the same coordinates in a fabric with more switches.  ``near`` has all neighbours of each switch.

        The links to switches without a position do not fit.
        """
        return replace(self, near=near, known_misfits=None, _around=None)

    def around(self, position: Position) -> Iterator[Position]:
        """Yield the positions to which links may lead from a position."""
        for axis, here in enumerate(position):
            if self.is_clique[axis]:
                steps: Iterable[int] = (label for label in range(self.labels[axis] + 1) if label != here)
            else:
                length = self.length[axis]
                steps = {(here - 1) % length, (here + 1) % length} if length else (here - 1, here + 1)
            for there in steps:
                if self.box is None or self.box[axis][0] <= there <= self.box[axis][1]:
                    yield (*position[:axis], there, *position[axis + 1 :])

    def _known_around(self) -> _Around:
        """Return a cache of :meth:`around`, which maps a position to the positions around it.  When the shape of the
        grid has changed (see :class:`_Around`), a new cache is made.
        """
        shape: list[object] = [*self.labels, *self.length, self.box]
        if self._around is None or self._around.shape != shape:
            self._around = _Around(self, shape)
        return self._around

    def fits(self, one: Position, other: Position) -> bool:
        """Return whether a link may join two positions of the grid."""
        return self.link_axis(one, other) >= 0

    def link_axis(self, one: Position, other: Position) -> int:
        """Return the dimension of a link between two positions; -1 if no link of the grid joins both positions."""
        found = -1
        for axis, (here, there) in enumerate(zip(one, other, strict=True)):
            if here != there:
                if found >= 0:
                    return -1
                found = axis
        if found < 0:
            return -1
        gap = abs(one[found] - other[found])
        return found if self.is_clique[found] or gap == 1 or gap + 1 == self.length[found] else -1

    def misfits(self) -> list[tuple[int, int]]:
        """Return the pairs of linked switches that do not fit: their positions are not neighbours in the grid, or one
        of the two switches has no position.
        """
        if self.known_misfits is not None:
            return self.known_misfits
        place = self.position
        component = {*place, *(b for a in place for b in self.near[a])}
        return [
            (a, b)
            for a in sorted(component)
            for b in sorted(self.near[a])
            if a < b and not (a in place and b in place and self.fits(place[a], place[b]))
        ]

    def possible_links(self) -> int:
        """Return the number of links that the placed switches would have if no link were missing.

        Once no position changes any more (``known_misfits`` is set), the result is computed once and stored.
        """
        if self._possible_links is not None:
            return self._possible_links
        sizes = [high - low + 1 for low, high in self.extent()]
        volume, axes = math.prod(sizes), zip(sizes, self.is_clique, self.length, strict=True)
        if len(self.at) == volume:  # There is a switch at each position, so all rows of a dimension have equal links.
            found = sum(volume // n * (n * (n - 1) // 2 if clique else n - (n != ring)) for n, clique, ring in axes)
        else:
            found = sum(beside in self.at for position in self.at for beside in self.around(position)) // 2
        if self.known_misfits is not None:
            self._possible_links = found
        return found

    def cost(self) -> int:
        """Return the cost of the coordinates, which is the sum of three costs: for links that do not fit, for missing
        links, and for positions without a switch.
        """
        misfits, place = self.misfits(), self.position
        links = sum(other in place for switch in place for other in self.near[switch]) // 2
        fitting = links - sum(a in place and b in place for a, b in misfits)
        missing, holes = self.possible_links() - fitting, self.volume() - len(place)
        return MISFIT * len(misfits) + MISSING * missing + HOLE * holes

    def volume(self) -> int:
        """Return the number of positions within the extent of all dimensions."""
        return math.prod(high - low + 1 for low, high in self.extent())

    def extent(self) -> list[tuple[int, int]]:
        """Return the lowest and the highest coordinate that is in use in each dimension."""
        return [(min(column), max(column)) for column in zip(*self.at, strict=True)]

    def _put(self, switch: int, position: Position) -> None:
        self.position[switch], self.at[position] = position, switch
        for axis, here in enumerate(position):
            self._slices.setdefault((axis, here), set()).add(switch)
            if self.is_clique[axis] and here >= self.labels[axis]:
                self.labels[axis] = here + 1
        self._count_closed(switch, position)
        for other in self.near[switch]:
            self._placed_near[other] += 1
            there = self.position.get(other)
            if there is not None and self._placed_near[other] == len(self.near[other]):
                self._closed.update(enumerate(there))
            if there is None:
                continue
            self._joined += 1
            if self.fits(position, there):
                continue
            differing = _differing(position, there)
            if len(differing) == 1 and not self.length[differing[0]]:
                axis = differing[0]  # The link may join the ends of a ring, and then shows the ring's length.
                self._closing[axis, abs(position[axis] - there[axis]) + 1] += 1
            else:
                self._wrong += 1
                self.has_failed |= self._wrong > FEW + MOST_WRONG * self._joined

    def _count_closed(self, switch: int, position: Position) -> None:
        """Count a switch as closed if all of its neighbours have positions.

        Each slice of the grid has its own count of closed switches.  A slice is all positions with one value of one
        coordinate.  So the switch counts once in each dimension, in the slice that contains its position.  A slice with
        many closed switches is probably a border of the grid (:meth:`_border_cost`).
        """
        if self._placed_near[switch] == len(self.near[switch]):
            self._closed.update(enumerate(position))

    def _best(self, switch: int) -> tuple[int, Position | None]:
        """Return two values for a switch.  The first is the difference in cost between its second best and its best
        free position.  The second is the best position (None if no position is free).
        """
        around = self._known_around()
        placed = [self.position[other] for other in self.near[switch] if other in self.position]
        votes: Counter[Position] = Counter(
            candidate for position in placed for candidate in around[position] if candidate not in self.at
        )
        if not votes:
            return 0, None
        most = max(votes.values())
        costs = []
        for candidate, fitting in votes.items():
            if fitting >= most - 1:
                linked = sum(map(self.at.__contains__, around[candidate]))
                outside = self._is_outside(candidate)
                costs.append((MISFIT * (len(placed) - fitting) + MISSING * (linked - fitting) + outside, candidate))
        costs.sort()
        if len(costs) > 1 and costs[1][0] - costs[0][0] < CLEAR:
            squares = self._square_costs(switch)
            costs = sorted(
                (cost + self._square_cost(squares, candidate) + self._border_cost(candidate), candidate)
                for cost, candidate in costs
            )
        if self.chance is not None:
            ties = [one for one in costs if one[0] == costs[0][0]]
            costs[: len(ties)] = self.chance.sample(ties, len(ties))
        nowhere = MISFIT * len(placed)
        second = costs[1][0] if len(costs) > 1 else nowhere + CLEAR
        return second - costs[0][0], costs[0][1]

    def _is_outside(self, candidate: Position) -> int:
        """Return 1 if the position would enlarge the grid by a new coordinate in a dimension of cliques, else 0."""
        return int(any(self.is_clique[axis] and here >= self.labels[axis] for axis, here in enumerate(candidate)))

    def _square_costs(self, switch: int) -> list[tuple[Position, list[int]]]:
        """Return a list with a pair for each placed neighbour of a switch: the position of the neighbour, and the costs
        of the link between the neighbour and the switch.

        The costs have one number for each dimension.  The number is high if squares, or the lack of squares, show that
        the link does not lie in this dimension.  Let P be the placed neighbour, and Q another placed switch next to P.
        If the links P-Q and P-switch lie in different dimensions, Q and the switch are opposite corners of a square.
        If both links lie along one line or ring, no such square exists.
        """
        near, position, dimensions = self.near, self.position, range(len(self.length))
        found = []
        for middle in near[switch]:
            centre = position.get(middle)
            if centre is None:
                continue
            with_square, without = [0] * len(dimensions), [0] * len(dimensions)
            for corner in near[middle]:
                there = position.get(corner)
                axis = -1 if there is None else self.link_axis(centre, there)
                if axis >= 0:
                    (with_square if len(near[switch] & near[corner]) > 1 else without)[axis] += 1
            total = sum(without)
            costs = [total - without[a] + (0 if self.is_clique[a] else MISFIT * with_square[a]) for a in dimensions]
            found.append((centre, costs))
        return found

    def _square_cost(self, squares: list[tuple[Position, list[int]]], candidate: Position) -> int:
        """Return the cost that squares add to a candidate for the position of a switch.  The cost is a sum over the
        placed neighbours.  Each neighbour adds the cost of the dimension in which its link to the candidate would lie.

        ``squares`` is the result of :meth:`_square_costs` for the switch.
        """
        axes = ((self.link_axis(centre, candidate), costs) for centre, costs in squares)
        return sum(costs[axis] for axis, costs in axes if axis >= 0)

    def _border_cost(self, candidate: Position) -> int:
        """Return a cost for a position that would begin a new slice of the grid, in a dimension that has no cliques and
        no closed rings.  A slice is all positions with one value of one coordinate.

        If all neighbours of a switch in the adjacent slice have positions already, the grid probably ends at this
        switch.  So the cost rises with the share of such switches in the adjacent slice.
        """
        found = 0
        for axis, here in enumerate(candidate):
            if self.is_clique[axis] or self.length[axis] or self._slices.get((axis, here)):
                continue
            beside = (axis, here - 1), (axis, here + 1)
            border = sum(len(self._slices.get(each, ())) for each in beside)
            closed = sum(self._closed[each] for each in beside)
            found += BORDER * closed // max(border, 1)
        return found

    def _spread(self) -> None:
        """Place all switches that are connected to placed switches.  Switches whose position is certain come first."""
        waiting: dict[int, int] = Counter(
            other for switch in self.position for other in self.near[switch] if other not in self.position
        )
        queue = [(-count, switch) for switch, count in waiting.items()]
        heapq.heapify(queue)
        while waiting and not self.has_failed:
            chosen: tuple[int, Position] | None = None
            while queue and chosen is None:
                count, switch = heapq.heappop(queue)
                if waiting.get(switch) == -count:
                    margin, position = self._best(switch)
                    if position is not None and margin >= CLEAR:
                        chosen = switch, position
            if chosen is None:
                self._forced += 1
                self.has_failed |= self._forced > FEW + MOST_FORCED * len(self.position)
                ranked = [(*self._best(switch), switch) for switch in sorted(waiting)]
                noise = [2 * self.chance.random() if self.chance else 0.0 for _ in ranked]
                possible = [
                    (extra - margin, -waiting[s], s, position)
                    for (margin, position, s), extra in zip(ranked, noise, strict=True)
                    if position is not None
                ]
                if not possible:
                    return
                _, _, switch, position = min(possible)
                chosen = switch, position
            switch, position = chosen
            del waiting[switch]
            self._put(switch, position)
            for other in self.near[switch]:
                if other not in self.position:
                    waiting[other] = waiting.get(other, 0) + 1
                    heapq.heappush(queue, (-waiting[other], other))
            self._close_rings(at_end=False)

    def _close_rings(self, *, at_end: bool) -> None:
        """Close the rows of a dimension to rings if links join the first and the last switch of the rows.

        The distance between the ends of such a link shows the length of the rings.  While switches are placed, the rows
        are closed once two links show the same length.  With ``at_end`` (no more switches will be placed), one link is
        enough, but another condition is added: at least half of the rows that could be rings of this length must have
        such a link.  A row could be a ring if it has switches at the first and at the last position of the ring.
        """
        for (axis, length), votes in sorted(self._closing.items(), key=lambda item: (-item[1], item[0])):
            if self.length[axis] or length < SHORTEST_RING or (votes < 2 and not at_end):
                continue
            if at_end and 2 * votes < self._rows_to_close(axis, length):
                continue
            folded = {switch: _fold(position, axis, length) for switch, position in self.position.items()}
            if len(set(folded.values())) < len(folded):
                continue
            self.length[axis] = length
            self._set_all(folded)
            for other in [key for key in self._closing if key[0] == axis]:
                del self._closing[other]

    def _rows_to_close(self, axis: int, length: int) -> int:
        """Return the number of rows that have both the first and the last switch of a ring of the given length, in
        dimension ``axis``.
        """
        return sum(
            (*position[:axis], position[axis] + length - 1, *position[axis + 1 :]) in self.at for position in self.at
        )

    def _correct(self) -> None:
        """Improve the coordinates: remove the positions of badly placed switches and place these switches again.  A
        switch is badly placed if its links do not fit, or if it is nearly alone at the end of a dimension.

        If the cost does not fall, the switches around the badly placed switches are removed and placed again too, up to
        a growing distance.
        """
        radius = 0
        while radius < RADIUS:
            bad = self.misplaced()
            if not bad:
                return
            for _ in range(radius):
                bad |= {other for switch in bad for other in self.near[switch]}
            before = self.cost(), dict(self.position), list(self.labels), list(self.length)
            self._set_all({switch: place for switch, place in self.position.items() if switch not in bad})
            if self.position:
                self._closing.clear()
                self._keep_inside()
                self._spread()
                self.box = None
                self._spread()
                self._close_rings(at_end=True)
            if not self.position or self.cost() >= before[0]:
                self._restore(before[1:])
                radius += 1

    def _restore(self, state: tuple[dict[int, Position], list[int], list[int]]) -> None:
        position, self.labels, self.length = state
        self._set_all(position)

    def _set_all(self, position: dict[int, Position]) -> None:
        """Replace the positions of all switches."""
        self.position, self.at = position, {place: switch for switch, place in position.items()}
        self._slices = {}
        self._placed_near = Counter(other for switch in position for other in self.near[switch])
        self._closed = Counter()
        for switch, place in position.items():
            self._count_closed(switch, place)
            for axis, here in enumerate(place):
                self._slices.setdefault((axis, here), set()).add(switch)

    def misplaced(self) -> set[int]:
        """Return the badly placed switches: those whose links do not fit, or that are nearly alone at the end of a
        dimension.
        """
        misfits = self.misfits()
        count = Counter(switch for pair in misfits for switch in pair)
        bad = {switch for switch, number in count.items() if 3 * number >= len(self.near[switch])}
        for axis, (low, high) in enumerate(self.extent()):
            if self.length[axis]:
                continue
            slices: dict[int, list[int]] = {}
            for switch, position in self.position.items():
                slices.setdefault(position[axis], []).append(switch)
            usual = sorted(map(len, slices.values()))[len(slices) // 2]
            ends = slices if self.is_clique[axis] else (low, high)
            bad.update(s for end in ends if 2 * len(slices[end]) < usual for s in slices[end])
        return bad

    def _keep_inside(self) -> None:
        """Allow only positions within the coordinates that are in use now, for all further switches."""
        self.box = self.extent()
        for axis, length in enumerate(self.length):
            if length:
                self.box[axis] = (0, length - 1)


class _Around(dict[Position, tuple[Position, ...]]):
    """Cache of the positions to which links may lead from a position, in a grid of a given shape.

    Parameters
    ----------
    grown
        The :class:`Growth` whose method ``around`` computes positions that are not in the cache.
    shape
        Labels, ring lengths and range (box) of the coordinates in the grid.  The cache is valid while the shape does
        not change.
    """

    def __init__(self, grown: Growth, shape: list[object]) -> None:
        super().__init__()
        self.grown, self.shape = grown, shape

    def __missing__(self, position: Position) -> tuple[Position, ...]:
        found = self[position] = tuple(self.grown.around(position))
        return found


def _differing(one: Position, other: Position) -> list[int]:
    return [axis for axis, (here, there) in enumerate(zip(one, other, strict=True)) if here != there]


def _unit(count: int, axis: int, value: int) -> Position:
    return (0,) * axis + (value,) + (0,) * (count - axis - 1)


def _fold(position: Position, axis: int, length: int) -> Position:
    return (*position[:axis], position[axis] % length, *position[axis + 1 :])
