"""Compute dimension-ordered trees in a HyperX: minimal trees, and trees that visit a further switch in each
dimension.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from routing._kernels.symmetric_paths import LinkBundles
from routing.grids.coordinates import Grid, axes_inside

NONE = 255
Ints = npt.NDArray[np.int64]
Hops = npt.NDArray[np.uint8]


def clique_trees(
    grid: Grid, order: Sequence[int], bundles: LinkBundles, switches: int, *, root: Ints, port: Ints, offset: Ints
) -> Hops:
    """Return a tree towards each destination in a grid whose dimensions are cliques or have two positions.

    A tree uses the dimensions in the given order, with at most two hops in each dimension.  A minimal tree has two hops
    in a dimension only where the link to the destination's coordinate is missing.

    A row is the switches that differ only in the coordinate of one dimension.  In a tree that is not minimal, one
    switch of each row is the *middle*, if enough links of the row exist.  All other switches of the row that have a
    link to the middle send over the middle.

    Parameters
    ----------
    grid
        The coordinates.
    order
        The dimensions in the order in which paths use them.
    bundles
        The bundles of parallel links.
    switches
        Number of switches of the fabric (S).
    root
        int64[D], index in ``grid.switches`` of the switch that delivers each destination.
    port, offset
        int64[D], number of the port that owns each LID, and offset of the LID from the first LID of the port.  Trees
        with the offset 0 are minimal.

    Returns
    -------
    uint8[D, S]
        Index of the bundle among the bundles of the switch.  The index is 255 at the destination and at switches
        outside of the grid.  It is also 255 where missing links or switches leave no path with at most two hops in the
        dimension.

    Notes
    -----
    Cost: O(D N) per dimension, and O(N size^2) to find the middles, for N switches.
    """
    found = np.full((len(root), len(grid.switches)), NONE, np.uint8)
    is_open = np.ones(found.shape, bool)
    for axis in order:
        rows = _Rows(grid, axis, bundles, switches)
        here, goal = grid.position[:, axis][None, :], grid.position[root, axis][:, None]
        moves = is_open & (here != goal)
        found = np.where(moves, rows.next_bundle(root, port, offset), found)
        is_open &= here == goal
    trees = np.full((len(root), switches), NONE, np.uint8)
    trees[:, grid.switches] = found
    return trees


class _Rows:
    """Rows of one dimension of a grid: sets of switches that differ only in the coordinate of this dimension.

    Attributes
    ----------
    link
        uint8[N, size], bundle from each switch to each coordinate of its row, 255 if there is no bundle.
    row
        int64[N], the row of each switch.
    there
        int64[rows, size], index in the grid of the switch at each coordinate, -1 if the switch is missing.
    """

    def __init__(self, grid: Grid, axis: int, bundles: LinkBundles, switches: int) -> None:
        self.own, self.size = grid.position[:, axis], grid.size[axis]
        others = np.delete(grid.position, axis, axis=1)
        _, self.row = np.unique(others, axis=0, return_inverse=True)
        self.row = self.row.reshape(-1)
        self.there = np.full((int(self.row.max(initial=-1)) + 1, self.size), -1)
        self.there[self.row, self.own] = np.arange(len(self.own))
        src = np.repeat(np.arange(switches), np.diff(bundles.first))
        inside, axes = axes_inside(grid, src, bundles.dst)
        along = inside[axes == axis]
        a, b = (np.searchsorted(grid.switches, ends[along]) for ends in (src, bundles.dst))
        self.link = np.full((len(self.own), self.size), NONE, np.uint8)
        self.link[a, self.own[b]] = along - bundles.first[src[along]]

    def next_bundle(self, root: Ints, port: Ints, offset: Ints) -> Hops:
        """Return uint8[D, N], the bundle by which each switch sends along this dimension towards each destination.

        ``root``, ``port`` and ``offset`` are arguments of :func:`clique_trees`.
        """
        goal = self.own[root]
        rank = _rank_of(port, goal) + offset
        found = self.link.T[goal]
        self._replace_missing_links(found, goal, rank)
        # `middle` is int64[D, N], by destination and switch: the coordinate of the middle in the row of the switch.
        middle = self._middles(goal, rank, offset > 0)[:, self.row]
        over = self.link[np.arange(len(self.own))[None, :], np.maximum(middle, 0)]
        return np.where((middle >= 0) & (middle != self.own) & (over != NONE), over, found)

    def _has_link(self) -> npt.NDArray[np.bool_]:
        """Return bool[rows, size, size], whether a link leads from one coordinate of a row to another coordinate."""
        linked = np.zeros((*self.there.shape, self.size), bool)
        linked[self.row, self.own] = self.link != NONE
        return linked

    def _replace_missing_links(self, found: Hops, goal: Ints, rank: Ints) -> None:
        """Choose a next hop for each switch without a link to the goal, which is the switch of the row that has the
        destination's coordinate.  The next hop is a third switch of the row that has links to both.  If there is no
        such third switch, no next hop is chosen.

        ``found`` (uint8[D, N], changed in place) has the bundle by which each switch sends towards each destination.
        ``goal`` (int64[D]) is the coordinate of each destination along the dimension.  ``rank`` (int64[D]) is a number
        for each destination.  Destinations with successive ranks use different next hops, if there are several.
        """
        linked = self._has_link()
        missing = (self.there[self.row] >= 0) & (self.link == NONE)
        missing[np.arange(len(self.own)), self.own] = False
        for switch, there in zip(*np.nonzero(missing), strict=True):
            over = np.flatnonzero((self.link[switch] != NONE) & linked[self.row[switch], :, there])
            if len(over):
                rows = np.flatnonzero(goal == there)
                turn = (rank[rows] + int(self.own[switch]) + int(there)) % len(over)
                found[rows, switch] = self.link[switch, over[turn]]

    def _middles(self, goal: Ints, rank: Ints, wanted: npt.NDArray[np.bool_]) -> Ints:
        """Choose the middle of each row for each destination.  Return int64[D, rows], the coordinate of the middle; -1
        if the row has no middle.

        The goal is the switch of the row that has the destination's coordinate (``goal``, int64[D]).  A middle is
        linked to the goal, and every other switch of the row is linked to the middle or to the goal.  So no path in the
        row has more than two hops.  Destinations take the possible middles in turn, in the order of ``rank``
        (int64[D]).  ``wanted`` (bool[D]) marks the destinations that get middles.
        """
        linked, present = self._has_link(), self.there >= 0
        lacks = present[:, :, None] & ~linked
        lacks[:, np.arange(self.size), np.arange(self.size)] = False
        neither = np.einsum("rxm,rxt->rmt", lacks.astype(np.float32), lacks.astype(np.float32)) > 0
        # `usable` is bool[rows, size, size], by row, coordinate of a switch in the row, and coordinate of a
        # destination: whether the switch can be the middle of the row for the destination.
        usable = linked & ~neither
        count = usable.sum(axis=1)
        in_turn = np.argsort(~usable, axis=1, kind="stable")
        turn = rank[:, None] % np.maximum(count[:, goal].T, 1)
        middle = in_turn[np.arange(len(count))[None, :], turn, goal[:, None]]
        return np.where(wanted[:, None] & (count[:, goal].T > 0), middle, -1)


def _rank_of(port: Ints, goal: Ints) -> Ints:
    """Return int64[D], a number for the port of each destination, by which several next hops are used in turn.

    The ports of all destinations with equal coordinates along the dimension are numbered 0, 1, 2, and so on, in the
    order of ``port``.  All LIDs of a port get the same number.

    ``port`` (int64[D]) identifies the port that has each destination LID.  ``goal`` (int64[D]) is the coordinate of
    each destination along the dimension.
    """
    by_goal = np.lexsort((port, goal))
    is_new = np.diff(goal[by_goal], prepend=-1) != 0
    is_next = is_new | (np.diff(port[by_goal], prepend=-1) != 0)
    rank = np.cumsum(is_next)
    found = np.empty(len(port), np.int64)
    found[by_goal] = rank - np.maximum.accumulate(np.where(is_new, rank, 0))
    return found
