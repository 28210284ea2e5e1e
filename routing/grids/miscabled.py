"""Report the coordinates of a fabric, and the links that may be miscabled."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric
from routing.grids.coordinates import Coordinates, Grid, Kind, axes_inside, misfitting_links
from routing.grids.undone_swaps import undone_swaps
from routing.numerals import count_noun

MOST_GRIDS = 4
"""Maximum number of grids that :func:`facts` describes.  Further grids are only counted."""

MOST_ENDS = 8
"""Limit for the switches at miscabled links of a grid.  If a grid has more such switches, :func:`alternative_links`
exchanges no coordinates in this grid.
"""

Ints = npt.NDArray[np.int64]


def link_names(fabric: Fabric, links: Ints) -> list[str]:
    """Return both ends of each link with their ports, such as ``s1/3 - s7/2``."""
    names, ends, ports = fabric.labels, fabric.link_device, fabric.link_port
    return [
        " - ".join(f"{names[int(ends[link, side])]}/{int(ports[link, side])}" for side in (0, 1))
        for link in links.tolist()
    ]


def facts(fabric: Fabric, coordinates: Coordinates) -> dict[str, object]:
    """Return facts for the provenance of tables: the coordinates of the fabric, and the names of suspicious links.

    The result has the key ``coordinates``, and up to four keys with lists of links:

    - ``attached``: links to attached switches (:attr:`.Coordinates.attached`).
    - ``miscabled``: other links that contradict the coordinates.
    - ``miscabled_instead``: other links, of which some may be miscabled instead (:func:`alternative_links`).
    - ``surplus``: links of bundles that have more links than usual (:func:`surplus_links`).
    """
    grids = coordinates.grids
    found: dict[str, object] = {"coordinates": "; ".join(grid.text for grid in grids[:MOST_GRIDS])}
    if len(grids) > MOST_GRIDS:
        found["coordinates"] = f"{found['coordinates']}; {count_noun(len(grids) - MOST_GRIDS, 'more part')}"
    misfits = misfitting_links(fabric, grids) if coordinates.attached else coordinates.miscabled
    for key, links in (
        ("attached", np.setdiff1d(misfits, coordinates.miscabled)),
        ("miscabled", coordinates.miscabled),
        ("miscabled_instead", alternative_links(fabric, coordinates)),
        ("surplus", surplus_links(fabric, coordinates)),
    ):
        if len(links):
            found[key] = link_names(fabric, links)
    return found


def alternative_links(fabric: Fabric, coordinates: Coordinates) -> Ints:
    """Return further links that may be miscabled, because a swap of two cables can have two explanations.

    Example: the switches A and B of a two-dimensional torus are diagonal to each other, so they share two neighbours.
    Besides the cables to these neighbours, A has the cables A1 and A2, and B has the cables B1 and B2.  Suppose that A1
    and B1 were swapped.  The cabling is then the same as if A and B had exchanged their places in the torus, and A2 and
    B2 had been swapped.

    Therefore this function exchanges the coordinates of two switches at miscabled links, for one pair of switches after
    the other.  After an exchange, other links do not fit the coordinates.  These links are returned if the exchanged
    coordinates are as good as before: at least as many pairs of switches have a link that fits.

    If at most one link does not fit the coordinates, the function also returns the swapped cables that
    :func:`.undone_swaps.undone_swaps` finds.

    Returns
    -------
    int64[M]
        Rows of the fabric's cables, ascending.  Links that are miscabled by the present coordinates are left out.

    Notes
    -----
    No coordinates are exchanged in a grid with more than :data:`MOST_ENDS` switches at miscabled links.  Cost: O(C) for
    each pair of these switches, C channels.
    """
    ends = np.unique(fabric.link_device[coordinates.miscabled])
    found: list[Ints] = [np.zeros(0, np.int64)]
    for number, grid in enumerate(coordinates.grids):
        inside = np.searchsorted(grid.switches, np.intersect1d(ends, grid.switches))
        if not 0 < len(inside) <= MOST_ENDS:
            continue
        most = _fitting_pairs(fabric, coordinates.miscabled)
        for a, b in combinations(inside.tolist(), 2):
            position = grid.position.copy()
            position[[a, b]] = position[[b, a]]
            grids = list(coordinates.grids)
            grids[number] = replace(grid, position=position)
            misfits = misfitting_links(fabric, grids, coordinates.attached)
            if _fitting_pairs(fabric, misfits) >= most:
                found.append(misfits)
    # Two links that do not fit already explain a swap of two cables.  Swapped cables are searched for only if fewer
    # links do not fit.
    if len(coordinates.miscabled) < 2:
        found += [undone_swaps(fabric, grid) for grid in coordinates.grids]
    return np.setdiff1d(np.concatenate(found), coordinates.miscabled)


def _fitting_pairs(fabric: Fabric, misfits: Ints) -> int:
    """Return the number of pairs of switches that have a link which is not in ``misfits``, rows of the cables."""
    fits = np.setdiff1d(np.unique(fabric.channels.link), misfits)
    return len(np.unique(np.sort(fabric.link_device[fits], axis=1), axis=0))


def surplus_links(fabric: Fabric, coordinates: Coordinates) -> Ints:
    """Return the links of all bundles that have more links than usual, as they may be miscabled.

    A bundle is all parallel links of two neighbours.  The usual number of links is the median over the bundles of the
    same dimension.  A cable in the wrong port may by chance join two neighbours, so that it fits the coordinates.  Then
    one bundle has too many links, and another bundle lacks a link.  If no bundle of a grid lacks a link, large bundles
    are intended, and no links of this grid are returned.

    Returns
    -------
    int64[M]
        Rows of the fabric's cables, ascending.

    Notes
    -----
    Cost: O(C log C) for C channels.
    """
    found: list[Ints] = []
    for grid in coordinates.grids:
        links, axis, bundle, size = _bundles(fabric, grid)
        if (size == size[:1]).all():
            continue
        missing, surplus = False, np.zeros(len(links), bool)
        for one in range(grid.dimensions):
            along = axis == one
            if not along.any():
                continue
            sizes = size[along][np.unique(bundle[along], return_index=True)[1]]
            usual = int(np.median(sizes))
            missing |= bool((sizes < usual).any()) or len(sizes) < _neighbours(grid, one)
            surplus |= along & (size > usual)
        if missing:
            found.append(links[surplus])
    return np.sort(np.concatenate(found)) if found else np.zeros(0, np.int64)


def _bundles(fabric: Fabric, grid: Grid) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the links that fit a grid, with three numbers for each link: its dimension, its bundle, and the number of
    links in this bundle.
    """
    channels = fabric.channels
    inside, axis = axes_inside(grid, channels.src, channels.dst)
    fits = (axis >= 0) & (channels.src[inside] < channels.dst[inside])
    fitting = inside[fits]
    pair = channels.src[fitting].astype(np.int64) * fabric.switches + channels.dst[fitting]
    _, bundle, size = np.unique(pair, return_inverse=True, return_counts=True)
    return channels.link[fitting].astype(np.int64), axis[fits], bundle, size[bundle]


def _neighbours(grid: Grid, axis: int) -> int:
    """Return the number of pairs of switches whose positions are neighbours along a dimension, linked or not."""
    present = np.zeros(grid.size, bool)
    present[tuple(grid.position.T)] = True
    rows = np.moveaxis(present, axis, -1)
    if grid.kind[axis] is Kind.CLIQUE:
        count = rows.sum(axis=-1)
        return int((count * (count - 1) // 2).sum())
    closing = np.count_nonzero(rows[..., 0] & rows[..., -1]) if grid.kind[axis] is Kind.RING else 0
    return int(np.count_nonzero(rows[..., 1:] & rows[..., :-1]) + closing)
