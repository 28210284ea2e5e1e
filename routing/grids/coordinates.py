"""Find coordinates of meshes, tori, HyperX and hypercubes from the cables alone."""

from __future__ import annotations

import enum
import itertools
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from routing.errors import RoutingError
from routing.fabric import Fabric
from routing.grids.attached import MOST_NEIGHBOURS, fitting_switches, grid_switches
from routing.grids.frame import Frame, Neighbours, frames, has_squares
from routing.grids.growth import Growth
from routing.grids.squares import by_squares

STARTS = 80
"""Maximum number of starts.  A start is a switch that gets the first coordinates; an attempt then spreads coordinates
from this switch to all other switches.  Attempts follow one after the other until the links fit the coordinates.
"""
BY_SQUARES = 3
"""Maximum number of frames for which the fast method :func:`~routing.grids.squares.by_squares` is tried, before the
attempts of the search begin.
"""
VISITS = 40_000
"""Limit for the number of starts times the number of links.  So large fabrics have fewer starts than :data:`STARTS`,
but at least ``FEWEST_STARTS`` starts are allowed.
"""
FEWEST_STARTS = 4
AGREEING = 40
"""The search ends when this number of attempts have led to coordinates with the lowest cost that was found."""
AGREEING_MISFITS = 100
"""Number in place of :data:`AGREEING` if more than two links do not fit the best coordinates that were found.  In this
case better coordinates may exist, so the search goes on for longer.
"""
FIRST_ATTEMPTS = 5
"""Number of attempts after which the search ends if no coordinates were found, or if too many links (:data:`BAD`) do
not fit the best coordinates.
"""
FIRST_VISITS = 3_000
"""In small fabrics, one swapped cable misleads many attempts.  So the number of first attempts is this value divided by
the number of links, if the quotient is higher than :data:`FIRST_ATTEMPTS`.
"""
BAD = 0.12
"""The search ends after the first attempts (:data:`FIRST_ATTEMPTS`) if too many links do not fit the best coordinates:
more than this share of all links, plus two links.
"""
IMPLAUSIBLE_ATTEMPTS = 40
"""Number of attempts after which the search ends, if it found no plausible coordinates."""
MOST_RANDOM = 300
"""Maximum number of attempts with random choices, which follow the attempts without random choices."""
GOOD = 0.25
"""No other start is tried if all links fit the coordinates, and the cost (:meth:`Growth.cost`) per link is at most this
value.
"""
MOST_MISFITS = 0.05
"""Largest share of links that may be miscabled; two links may be miscabled in any case.  Coordinates are rejected as
not plausible if more links do not fit them.
"""
FEWEST_INNER = 9
"""Least number of switches of a grid to which switches are attached.  Parts of many other fabrics resemble a smaller
grid.
"""
SMALL = 24
"""In components of up to this number of switches, a single attached switch may be a switch of another grid.  For
example, a 2x6 torus without one switch resembles a 2x5 mesh with an attached switch.
"""
LEAST_PRESENT = 0.7
"""Coordinates are plausible only if at least this share of the positions in the grid have a switch.  At least this
share of the links must also exist, compared with a grid of these switches without missing links.
"""

Columns = npt.NDArray[np.int64]


class NotAGrid(RoutingError):
    """Error: the fabric has no coordinates of a mesh, torus, HyperX or hypercube, even if missing links are allowed."""


class Kind(enum.Enum):
    """Form of the links within a row.  A row is the switches whose positions differ in one coordinate only."""

    LINE = "line"
    """Each switch is linked to the next switch, as in a mesh."""
    RING = "ring"
    """Each switch is linked to the next switch, and the last switch to the first switch, as in a torus."""
    CLIQUE = "clique"
    """Every two switches are linked, as in a HyperX."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Coordinates of the switches of one connected component.

    Attributes
    ----------
    switches
        int64[N], rows of the switches that have coordinates, ascending.
    position
        int64[N, dimensions], coordinates of these switches, each from 0 to the size of the dimension - 1.
    size, kind
        Size and kind of each dimension.  A ring has at least five switches, and a clique at least three.  A ring of
        four is two lines of two.
    order
        Order in which paths use the dimensions.  None: the load of the links determines the order.
    """

    switches: npt.NDArray[np.int64]
    position: Columns
    size: tuple[int, ...]
    kind: tuple[Kind, ...]
    order: tuple[int, ...] | None = None

    @property
    def dimensions(self) -> int:
        """Number of dimensions."""
        return len(self.size)

    @property
    def text(self) -> str:
        """Kind and size of each dimension, such as ``ring 6 x ring 5``."""
        return " x ".join(f"{kind.value} {size}" for kind, size in zip(self.kind, self.size, strict=True)) or "1 switch"


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Coordinates of a fabric.

    Attributes
    ----------
    grids
        A grid for each connected component; the grid with the most switches comes first.
    miscabled
        int64[M], rows of the fabric's cables: links between switches that are not neighbours by the coordinates of
        any grid.  Links to attached switches are left out.
    attached
        Rows of the switches that are attached to a grid, such as I/O switches.  An attached switch has no
        coordinates, and at most :data:`.attached.MOST_NEIGHBOURS` neighbours.
    """

    grids: tuple[Grid, ...]
    miscabled: npt.NDArray[np.int64]
    attached: tuple[int, ...] = ()


_FOUND: WeakKeyDictionary[Fabric, Coordinates | str] = WeakKeyDictionary()
"""Coordinates of each fabric in use, or the reason why a fabric has no coordinates."""


def find_coordinates(fabric: Fabric) -> Coordinates:
    """Return the coordinates of the switches of a fabric.  Several engines need them, so the result is stored.

    The coordinates follow from the cables alone, not from ports or names.  If symmetry allows several assignments of
    coordinates, the GUIDs decide which assignment is returned.  Links and switches may be missing.

    Raises
    ------
    NotAGrid
        A component of the fabric has no coordinates.

    Notes
    -----
    Coordinates are first assigned to one switch and its neighbours.  From there they are spread to all other switches;
    switches whose coordinates are certain come first.  At the end, every link is compared with the coordinates.
    Squares (cycles of four switches) show which links lie in one dimension, because the opposite links of a square lie
    in one dimension.  This follows D. Djokovic, "Distance-preserving subgraphs of hypercubes", J. Comb. Theory B 14,
    1973.
    Cost: O(S d^2 n) for S switches of degree d in n dimensions, for each switch from which coordinates are spread.
    """
    if fabric not in _FOUND:
        try:
            _FOUND[fabric] = _search(fabric)
        except NotAGrid as problem:
            _FOUND[fabric] = str(problem)
    found = _FOUND[fabric]
    if isinstance(found, str):
        raise NotAGrid(found)
    return found


def _search(fabric: Fabric) -> Coordinates:
    """Search for the coordinates of the switches of a fabric (see :func:`find_coordinates`)."""
    channels = fabric.channels
    near = [
        frozenset(channels.dst[channels.first[switch] : channels.first[switch + 1]].tolist())
        for switch in range(fabric.switches)
    ]
    members = [np.flatnonzero(fabric.component == part) for part in range(int(fabric.component.max(initial=-1)) + 1)]
    grids = [_grid_of(near, part.tolist()) for part in sorted(members, key=lambda part: (-len(part), int(part[0])))]
    placed = {switch for grid in grids for switch in grid.switches.tolist()}
    others = [switch for switch in range(fabric.switches) if switch not in placed]
    attached = tuple(switch for switch in others if len(near[switch]) <= MOST_NEIGHBOURS)
    return Coordinates(tuple(grids), misfitting_links(fabric, grids, attached), attached)


def _grid_of(near: Neighbours, component: Sequence[int]) -> Grid:
    """Return the coordinates of a connected component.  ``near`` has the neighbours of each switch.

    Raises
    ------
    NotAGrid
        The component has no coordinates.
    """
    first, candidates = itertools.tee(_frames(near, component))
    grown = _by_squares(near, component, first)
    if grown is None:
        grown, is_final = _without_attached(near, component)
        # Coordinates of all switches are tried, too, if no final coordinates were found, or if the left-out switches
        # may belong to a grid.  They may if the grid that was found has room for all of them.  A single switch that was
        # left out of a small component may belong to another grid.
        if not (grown and is_final) or len(component) <= max(grown.volume(), min(SMALL, len(grown.position) + 1)):
            whole = _spread(near, component, candidates)
            grown = _better(whole, grown, is_final) if whole and grown else whole or grown
    if grown is None:
        raise NotAGrid(
            f"{len(component)} switches have no coordinates of a mesh, torus, HyperX or hypercube, "
            "not even one with missing links (use updn, nue or dfsssp)"
        )
    return _canonical(grown)


def _better(whole: Growth, grown: Growth, is_final: bool) -> Growth:
    """Return the better of two results: ``whole`` (coordinates of all switches), or ``grown``.

    ``grown`` and ``is_final`` are the results of :func:`_without_attached`.  If ``grown`` is not final, ``whole`` is
    returned.  Otherwise the result is usually the one with the lower cost.
    """
    # A switch of the grid that has only one link left looks like an attached switch.  Then both results are the same
    # grid, and `whole` is returned, in which this switch has a position.
    is_same_grid = whole.volume() == grown.volume() and {*itertools.chain(*whole.misfits())} <= grown.position.keys()
    return whole if is_same_grid or not is_final else min(whole, grown, key=Growth.cost)


def _frames(near: Neighbours, component: Sequence[int]) -> Iterator[Frame]:
    """Yield the frames from which coordinates of a component are spread."""
    return frames(near, component, min(STARTS, _most_starts(near, component)), len(component) / LEAST_PRESENT)


def _most_starts(near: Neighbours, component: Sequence[int]) -> int:
    """Return the number of starts that the limit :data:`VISITS` allows."""
    return max(FEWEST_STARTS, VISITS // max(_links(near, component), 1))


def _links(near: Neighbours, component: Sequence[int]) -> int:
    """Return the number of links of a component.  Parallel links count once."""
    return sum(len(near[switch]) for switch in component) // 2


def _by_squares(
    near: Neighbours, component: Sequence[int], candidates: Iterable[Frame], good: float = GOOD
) -> Growth | None:
    """Return coordinates that all links fit, from the first frames of ``candidates``.  None: squares determine no such
    coordinates, or the cost per link is higher than ``good``.
    """
    most = good * _links(near, component)
    for frame in itertools.islice(candidates, BY_SQUARES):
        grown = by_squares(near, frame)
        if grown is not None and grown.cost() <= most and _is_plausible(near, component, grown):
            return grown
    return None


def _spread(
    near: Neighbours, component: Sequence[int], candidates: Iterable[Frame], good: float = GOOD
) -> Growth | None:
    """Return the coordinates with the lowest cost that several attempts find.  None: they find no plausible
    coordinates.

    The first coordinates that all links fit are returned at once if the cost per link is at most ``good``.
    """
    links, most = _links(near, component), _most_starts(near, component)
    # On a fabric that is not a grid, most attempts fail only after many steps.  A fabric with too few squares is not a
    # grid, so no attempt is made.
    from_these = list(candidates) if has_squares(near, component) else []
    starts = len(from_these)
    best: tuple[tuple[bool, int], Growth] | None = None
    seen = 0
    first = max(FIRST_ATTEMPTS, FIRST_VISITS // max(links, 1))
    for attempt in range(starts + min(MOST_RANDOM, most) if from_these else 0):
        # The first attempts use each start once.  Later attempts use the starts again, and choose at random between
        # positions that are not certain.  Random choices help where many links are missing.
        chance = random.Random(attempt) if attempt >= starts else None
        grown = Growth.of(near, from_these[attempt % len(from_these)], chance)
        if attempt >= first and (best is None or len(best[1].misfits()) > 2 + BAD * links):
            break
        if attempt >= IMPLAUSIBLE_ATTEMPTS and (best is None or best[0][0]):
            break
        if grown.has_failed:
            continue
        cost = not _is_plausible(near, component, grown), grown.cost()
        if best is None or cost < best[0]:
            best = cost, grown
        seen = seen + 1 if cost == best[0] and best[1] is not grown else 1 if best[1] is grown else seen
        agreeing = AGREEING_MISFITS if len(best[1].misfits()) > 2 else AGREEING
        if not cost[0] and (seen >= agreeing or (cost[1] <= good * links and not grown.misfits())):
            break
    return None if best is None or best[0][0] else best[1]


def _without_attached(near: Neighbours, component: Sequence[int], slices: bool = True) -> tuple[Growth | None, bool]:
    """Return coordinates of the switches of a grid to which other switches are attached, and whether the coordinates
    are final.

    A search from all switches would take the attached switches for a further dimension, and would try many starts.  So
    switches with few neighbours are left out of the first search.  If a left-out switch fits the coordinates that a
    search finds, the search is repeated with this switch.  The links of the result include the links to attached
    switches, which do not fit.

    There are four cases:

    - No further switch fits the coordinates of a search: these coordinates are returned, and are final.  Exception: if
      all links fit the coordinates of the first search, but the cost for each link is high, the search is repeated.
    - A repeated search fails: all searches are made once more with ``slices`` false.  Then only switches that fit
      positions inside the grid are added.  The coordinates that these searches find are not final.
    - These searches fail, too, or all switches fit in the end: the result is the last coordinates whose cost for each
      link is low (None if there are none).  They are not final.
    - No switch is left out, more switches are left out than remain, fewer than :data:`FEWEST_INNER` switches remain, or
      the first search fails: there are no coordinates.
    """
    # At first, the cost is not limited, because corners of the grid may be left out.
    inner, good, last = grid_switches(near, component), math.inf, None
    while max(FEWEST_INNER, len(component) / 2) <= len(inner) < len(component):
        linked = [neighbours.intersection(inner) for neighbours in near]
        first, candidates = itertools.tee(_frames(linked, inner))
        grown = _by_squares(linked, inner, first, good) or _spread(linked, inner, candidates, good)
        if grown is None:
            # The search may have failed because attached switches were added as a further slice of the grid.
            again = slices and good == GOOD
            return _without_attached(near, component, slices=False) if again else (last, False)
        fitting = fitting_switches(near, grown, set(component) - set(inner), slices)
        is_good = grown.cost() <= GOOD * _links(linked, inner)
        if not fitting and (good == GOOD or grown.misfits() or is_good):
            return grown.over(near), slices
        last = grown.over(near) if is_good else last
        inner, good = sorted({*inner, *fitting}), GOOD
    return last, False


def has_complete_grid(near: Neighbours, component: Sequence[int]) -> bool:
    """Return whether a component is a complete grid: squares determine its coordinates, and no switch and no link is
    missing.
    """
    links, candidates = _links(near, component), frames(near, component, BY_SQUARES, len(component))
    every = (by_squares(near, frame) for frame in itertools.islice(candidates, BY_SQUARES))
    return any(
        grown is not None
        and (len(component), len(component), links) == (len(grown.position), grown.volume(), grown.possible_links())
        for grown in every
    )


def _is_plausible(near: Neighbours, component: Sequence[int], grown: Growth) -> bool:
    """Return whether coordinates are plausible: few links do not fit the coordinates, and few links and switches are
    missing.
    """
    links, misfits = _links(near, component), len(grown.misfits())
    if misfits > max(2, MOST_MISFITS * links) or len(grown.position) < len(component) - misfits:
        return False
    return (
        links - misfits >= LEAST_PRESENT * grown.possible_links() and len(component) >= LEAST_PRESENT * grown.volume()
    )


def _canonical(grown: Growth) -> Grid:
    """Return the coordinates in a canonical form, which does not depend on the switch from which they were spread."""
    switches = np.array(sorted(grown.position), np.int64)
    every = np.array([grown.position[switch] for switch in switches.tolist()], np.int64).reshape(len(switches), -1)
    columns: list[tuple[Kind, int, Columns]] = []
    for axis in range(every.shape[1]):
        column = every[:, axis] - every[:, axis].min()
        size, length = int(column.max()) + 1, grown.length[axis]
        if grown.is_clique[axis] or length == 3:
            columns.append(_clique(column))
        elif length == 4:
            columns += [_line(np.isin(every[:, axis], pair).astype(np.int64), 2) for pair in ((1, 2), (2, 3))]
        elif length:
            columns.append((Kind.RING, length, _ring(every[:, axis], length)))
        else:
            columns.append(_line(column, size))
    columns = sorted((one for one in columns if one[1] > 1), key=lambda one: (-one[1], one[0].value, _first(one[2])))
    position = np.stack([column for *_, column in columns], axis=1) if columns else every[:, :0]
    return Grid(switches, position, tuple(size for _, size, _ in columns), tuple(kind for kind, *_ in columns))


def _first(column: Columns) -> int:
    """Return the index of the first coordinate in ``column`` that differs from the coordinate at index 0.  By this
    index, dimensions of equal size and kind are sorted.
    """
    return int((column != column[0]).argmax())


def _clique(column: Columns) -> tuple[Kind, int, Columns]:
    _, first, label = np.unique(column, return_index=True, return_inverse=True)
    by_first = np.empty(len(first), np.int64)
    by_first[np.argsort(first)] = np.arange(len(first))
    return (Kind.CLIQUE if len(first) > 2 else Kind.LINE), len(first), by_first[label]


def _line(column: Columns, size: int) -> tuple[Kind, int, Columns]:
    off_centre = np.flatnonzero(2 * column != size - 1)
    if len(off_centre) and 2 * column[off_centre[0]] > size - 1:
        column = size - 1 - column
    return Kind.LINE, size, column


def _ring(column: Columns, length: int) -> Columns:
    column = (column - column[0]) % length
    off_axis = np.flatnonzero(2 * column % length != 0)
    if len(off_axis) and 2 * column[off_axis[0]] > length:
        column = -column % length
    return column


def links_axis(grid: Grid, a: Columns, b: Columns) -> tuple[Columns, Columns]:
    """Return the dimension and the step of links between positions.

    A link fits a dimension if its ends differ only in the coordinate of this dimension, and if the dimension links the
    two coordinates: they are adjacent on a line, adjacent around a ring, or different in a clique.

    Parameters
    ----------
    grid
        The grid.
    a, b
        int64[N, dimensions], positions at both ends of each link.

    Returns
    -------
    axis : int64[N]
        The dimension that each link fits, or -1.
    step : int64[N]
        The step along the dimension: 1 or -1 on lines and rings, the difference on cliques.
    """
    is_ring, is_clique = (np.array([[kind is each] for kind in grid.kind], bool) for each in (Kind.RING, Kind.CLIQUE))
    gap = np.ascontiguousarray((b - a).T)  # NumPy sums the columns of an array in less time than its rows.
    differs = gap != 0
    closes = is_ring & (np.abs(gap) == np.array([[size - 1] for size in grid.size], np.int64))
    step = np.where(closes, -np.sign(gap), gap).sum(axis=0)
    fits = (differs.sum(axis=0) == 1) & ((np.abs(step) == 1) | (differs & is_clique).any(axis=0))
    return np.where(fits, np.arange(grid.dimensions) @ differs, -1), np.where(fits, step, 0)


def axes_inside(grid: Grid, src: npt.NDArray[Any], dst: npt.NDArray[Any]) -> tuple[Columns, Columns]:
    """Return the links between two switches of a grid, and their dimensions.

    Parameters
    ----------
    grid
        The grid.
    src, dst
        int[N], switches at both ends of each of N links.

    Returns
    -------
    inside : int64[M]
        Indices (0 to N - 1) of the links whose switches both have coordinates in the grid.
    axis : int64[M]
        The dimension that each of these links fits (:func:`links_axis`), or -1.
    """
    row = np.full(1 + max(src.max(initial=0), dst.max(initial=0), grid.switches.max(initial=0)), -1)
    row[grid.switches] = np.arange(len(grid.switches))
    inside = np.flatnonzero((row[src] >= 0) & (row[dst] >= 0))
    return inside, links_axis(grid, grid.position[row[src[inside]]], grid.position[row[dst[inside]]])[0]


def misfitting_links(fabric: Fabric, grids: Sequence[Grid], attached: Sequence[int] = ()) -> npt.NDArray[np.int64]:
    """Return the links between switches that fit the coordinates of no grid, int64[M], rows of the fabric's cables.

    A link fits a grid if both of its switches have coordinates in the grid, and are neighbours by these coordinates
    (:func:`links_axis`).  Links to the switches ``attached`` are left out.
    """
    channels = fabric.channels
    fits = np.isin(channels.src, attached) | np.isin(channels.dst, attached)
    for grid in grids:
        inside, axis = axes_inside(grid, channels.src, channels.dst)
        fits[inside] = axis >= 0
    return np.unique(channels.link[~fits]).astype(np.int64)
