"""Find the directions of grids, tori and hypercubes from the cables alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric

Rows = npt.NDArray[np.int64]

CORNERS_UP_TO = 4_000_000
"""Largest sum of squared switch degrees for which the fabric is searched for squares (cycles of four switches)."""


FEWEST_OPPOSITE, MOST_OPPOSITE = 3, 0.5
"""Limits for sets of opposite links (see :data:`SQUARED`).  A set with at least the first number of links is large.  If
a set has a larger share of all links than the second value, the fabric does not resemble a grid.
"""
SQUARED = 0.6
"""A fabric resembles a grid only if at least this share of all links is in large sets of opposite links.

Opposite links are opposite sides of a square (a cycle of four switches).  A set with only two links is a pair: two
opposite sides of one square.  If the other two sides of this square are in a large set, this large set joins the pair.
The large set that joins the most pairs is selected, and the links of these pairs count like links in large sets.
"""


def resembles_grid(fabric: Fabric) -> bool:
    """Return whether most links are in large sets of opposite links, as in a mesh, torus or HyperX.

    Opposite links are opposite sides of a square of four switches.  A few missing links or switches hardly change the
    result.  So a fabric may resemble a grid although :func:`directions` finds no directions.  Cost: the cost of
    :func:`directions`.
    """
    bundles = _bundles(fabric)
    if bundles is None:
        return False
    squares, links = _squares(*_corners(bundles, fabric.switches), fabric.switches), len(bundles) // 2
    opposite = _opposite_links(bundles, squares, fabric.switches)
    size = np.bincount(opposite)
    large = size[size >= FEWEST_OPPOSITE]
    in_large = large.sum() + 2 * _most_pairs_joined(bundles, squares, opposite, fabric.switches)
    # A set with nearly all links does not show a grid: in a random network with many links, a few squares are enough to
    # join nearly all links to one set.
    return bool(in_large >= SQUARED * links and large.max(initial=0) <= MOST_OPPOSITE * links)


def _most_pairs_joined(bundles: Rows, squares: Rows, opposite: Rows, switches: int) -> int:
    """Return the largest number of pairs of opposite links that one large set of opposite links joins.

    A pair is a set of exactly two opposite links.  The two links of a pair are opposite sides of a square.  A large set
    joins the pair if the other two sides of the square belong to the large set.

    In a grid of 2 x n switches, for example, the n links of the first dimension are a large set.  This set joins all
    pairs of opposite links in the second dimension.
    """
    size, link = np.bincount(opposite), _link_numbers(bundles, switches)
    u, v, _, w = squares.T
    one, other = opposite[link(u, v)], opposite[link(u, w)]
    pair, joining = np.unique(np.concatenate([np.column_stack([one, other]), np.column_stack([other, one])]), axis=0).T
    return int(np.bincount(joining[(size[pair] == 2) & (size[joining] >= FEWEST_OPPOSITE)]).max(initial=0))


def directions(fabric: Fabric) -> npt.NDArray[np.int32] | None:
    """Return int32[C], the direction of each channel (0, 1, ...), or None if the fabric has no directions.

    Both channels of a link, and parallel links, have the same direction.  Two links have the same direction if they are
    opposite sides of a square in which two diagonal corners have no further common neighbours, as in a product of
    graphs.

    A torus has one direction per dimension.  A ring of four is a square itself and counts as two directions, so a 4x4x4
    torus is the hypercube with six directions.  A fabric without such squares has no directions.  Missing links and
    switches change nothing as long as squares still connect the remaining links of a direction.  Links to switches that
    have one neighbour only, such as I/O switches beside a torus, share a direction of their own.

    Notes
    -----
    After the relation between links of D. Djokovic, "Distance-preserving subgraphs of hypercubes", J. Comb. Theory B
    14, 1973.  Here, this relation is tested only within squares.

    Cost: O(S degree^2 log S).
    """
    channels, switches = fabric.channels, fabric.switches
    bundles = _bundles(fabric)
    if bundles is None:
        return None
    corners = _corners(bundles, switches)
    squares = _squares(*corners, switches)
    slab = _opposite_links(bundles, squares, switches)
    link = _link_numbers(bundles, switches)
    u, v, _, w = squares.T
    # A slab is a set of opposite links.  The links along a ring are in several slabs.  If links of two slabs meet at a
    # switch, but no links of these two slabs span a square, the links follow each other along a ring.  So both slabs
    # get one direction.
    is_end = np.bincount(bundles // switches, minlength=switches) == 1
    middle, v_, w_ = (corner[~is_end[corners[1]] & ~is_end[corners[2]]] for corner in corners)
    meeting = _pairs(slab[link(middle, v_)], slab[link(middle, w_)])
    spanning = _pairs(slab[link(u, v)], slab[link(u, w)])
    slabs = int(slab.max()) + 1
    in_line = np.setdiff1d(meeting @ [slabs, 1], spanning @ [slabs, 1])
    found = _joined(slabs, np.column_stack([in_line // slabs, in_line % slabs]))[slab]
    of_channel = found[link(channels.src.astype(np.int64), channels.dst.astype(np.int64))]
    leads_to_end = is_end[channels.src] | is_end[channels.dst]
    numbers, of_channel[~leads_to_end] = np.unique(of_channel[~leads_to_end], return_inverse=True)
    of_channel[leads_to_end] = len(numbers)
    return of_channel.astype(np.int32) if len(numbers) > 1 else None


def _bundles(fabric: Fabric) -> Rows | None:
    """Return int64[N], all pairs of a switch and a neighbour (switch * S + neighbour), ascending.

    The result is None if no switches are linked, or if a search for squares would take too long
    (:data:`CORNERS_UP_TO`).
    """
    channels, switches = fabric.channels, fabric.switches
    bundles = np.unique(channels.src.astype(np.int64) * max(switches, 1) + channels.dst)
    if len(bundles) == 0 or int((np.bincount(bundles // switches) ** 2).sum()) > CORNERS_UP_TO:
        return None
    return bundles


def _link_numbers(bundles: Rows, switches: int) -> Callable[[Rows, Rows], Rows]:
    """Return a function that finds the number of the link between two switches.  The function takes the two ends of N
    links, int64[N] each, and returns the numbers of these links, int64[N].
    """
    links = bundles[bundles // switches < bundles % switches]
    return lambda a, b: np.searchsorted(links, np.minimum(a, b) * switches + np.maximum(a, b))


def _opposite_links(bundles: Rows, squares: Rows, switches: int) -> Rows:
    """Divide the links into sets, such that opposite sides of a square are in one set.  Parallel links count as one.

    Returns int64[N], the number of the set of each link.
    ``bundles`` is the result of :func:`_bundles`, and ``squares`` the result of :func:`_squares`.
    """
    link = _link_numbers(bundles, switches)
    u, v, x, w = squares.T
    return _joined(len(bundles) // 2, np.concatenate([_pairs(link(u, v), link(w, x)), _pairs(link(u, w), link(v, x))]))


def _pairs(a: Rows, b: Rows) -> Rows:
    return np.column_stack([np.minimum(a, b), np.maximum(a, b)])


def _joined(count: int, pairs: Rows) -> Rows:
    """Return int64[count], the number of the connected component of each vertex in a graph with ``count`` vertices.

    ``pairs`` (int64[N, 2]) are the edges of the graph.
    """
    import igraph  # noqa: PLC0415 - the start of a command without graphs would take a tenth more time

    # Pairs are encoded as single numbers, because these sort far faster than rows of two.
    once = np.unique(pairs @ [count, 1])
    graph = igraph.Graph(n=count, edges=np.column_stack([once // count, once % count]))
    return np.asarray(graph.connected_components().membership, np.int64)


def _corners(bundles: Rows, switches: int) -> tuple[Rows, Rows, Rows]:
    """Return all combinations of a switch with two of its neighbours, as three arrays int64[N]: switch, one neighbour,
    other neighbour.
    """
    src, dst = bundles // switches, bundles % switches
    degree = np.bincount(src, minlength=switches)
    size = degree[src]
    row = np.repeat(np.arange(len(src)), size)
    other = (np.cumsum(degree) - degree)[src[row]] + np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)
    keep = dst[row] < dst[other]
    return src[row[keep]], dst[row[keep]], dst[other[keep]]


def _squares(middle: Rows, v: Rows, w: Rows, switches: int) -> Rows:
    """Return int64[N, 4], the corners of each square in cyclic order: (u, v, x, w).

    ``middle``, ``v`` and ``w`` are the result of :func:`_corners`: ``middle`` is a common neighbour of ``v`` and ``w``.
    Two opposite corners ``v`` and ``w`` of a square have exactly two common neighbours, the corners u and x.
    """
    key = v * switches + w
    by_ends = np.argsort(key, kind="stable")
    key, middle = key[by_ends], middle[by_ends]
    _, first, count = np.unique(key, return_index=True, return_counts=True)
    first = first[count == 2]
    return np.column_stack([middle[first], key[first] // switches, middle[first + 1], key[first] % switches])
