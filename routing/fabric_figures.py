"""Figures of a fabric that do not depend on tables: cables, ports, diameter, levels, and upper bounds of the all-to-all
rate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.endports import attached, reference_rate
from routing.fabric import Fabric, NodeKind
from routing.numerals import count_noun
from routing.partition import regions
from routing.rates import rate_name
from routing.trees.levels import distances, tree_levels

DISTANCES_UP_TO = 3000
"""Number of switches up to which the distances between all switches are computed."""
SEED = 1


@dataclass(frozen=True)
class Bound:
    """Upper bound of the all-to-all share that any tables can reach.

    Attributes
    ----------
    all_to_all
        The share of the reference rate that no tables exceed, as ``all_to_all`` in :class:`routing.quality.Quality`.
    reason
        The cut or the length of the paths from which the bound follows.
    """

    all_to_all: float
    reason: str


@dataclass(frozen=True)
class FabricFigures:
    """Figures of a fabric.

    Attributes
    ----------
    diameter
        Largest number of channels of a shortest path between two connected switches; None in fabrics of more than
        :data:`DISTANCES_UP_TO` switches.
    ports, ports_used
        Number of external ports of all switches, and number of such ports with a cable.
    cables
        Number of cables of each kind, such as "switch to switch 4xEDR", the most frequent kind first.
    levels
        Number of switches of each level of a tree, the lowest level first; empty for other fabrics.  The lowest level
        has the leaves.  If switches are cabled below leaves, these switches form the lowest levels instead.
    oversubscription
        Ratio of the capacity of the links down to the capacity of the links up, for each level of a tree except the
        top.
    bound
        The smallest of all upper bounds of the all-to-all share that were found.  None with fewer than two end ports,
        without links between switches, or if the fabric is split.
    """

    diameter: int | None
    ports: int
    ports_used: int
    cables: tuple[tuple[str, int], ...]
    levels: tuple[int, ...]
    oversubscription: tuple[float, ...]
    bound: Bound | None


def fabric_figures(fabric: Fabric) -> FabricFigures:
    """Return the figures of a fabric.

    Notes
    -----
    Cost: O(S C) for the diameter and the distances, and the cost of METIS.
    """
    level = tree_levels(fabric, fabric.senders_at.astype(np.float64))
    cabled = int(np.count_nonzero(fabric.link_device < fabric.switches))
    return FabricFigures(
        diameter=diameter(fabric),
        ports=int(fabric.switch_ports.sum(dtype=np.int64)),
        ports_used=cabled,
        cables=tuple(_cables(fabric)),
        levels=() if level is None else tuple(np.bincount(level).tolist()),
        oversubscription=() if level is None else tuple(_oversubscription(fabric, level)),
        bound=min(_bounds(fabric, level), key=lambda bound: bound.all_to_all, default=None),
    )


def bisection_bound(fabric: Fabric) -> float | None:
    """Return an upper bound of the bisection rate, as a share of the reference rate.

    The bisection rate is the rate at which each CA of one half of the fabric can send to its partner in the other half.

    The bound follows from the cables between two halves that METIS has found, and from the cables of each switch.
    The true rate may be lower, because other halves of the fabric may have fewer cables between them.

    Returns
    -------
    float or None
        The bound; None if the fabric has fewer than two switches with end ports.
    """
    rows, channels = attached(fabric), fabric.channels
    endports = np.bincount(fabric.endport_switch[rows], minlength=fabric.switches)
    half = regions(fabric, 2, seed=SEED) == 0
    pairs = min(int(endports[half].sum()), int(endports[~half].sum()))
    if not pairs:
        return None
    capacity = float(channels.capacity[half[channels.src] & ~half[channels.dst]].sum()) / pairs
    # Suppose that a switch has at most half of all end ports.  Then there are two halves such that one half has all end
    # ports of this switch.  All traffic of these end ports with the other half crosses the links of the switch.
    alone = (endports > 0) & (2 * endports <= len(rows))
    out = np.bincount(channels.src, weights=channels.capacity, minlength=fabric.switches)
    capacity = float(min(capacity, np.min(out[alone] / endports[alone], initial=np.inf)))
    return capacity / reference_rate(fabric)


def diameter(fabric: Fabric) -> int | None:
    """Return the diameter: the number of channels of the longest of all shortest paths between connected switches.

    Return None if the fabric has more than :data:`DISTANCES_UP_TO` switches.
    """
    if fabric.switches > DISTANCES_UP_TO:
        return None
    return int(fabric.graph.diameter(directed=True, unconn=True)) if len(fabric.channels) else 0


def _cables(fabric: Fabric) -> list[tuple[str, int]]:
    """Return the kinds of cables with the number of cables of each kind, the most frequent kind first."""
    where = ("CA to CA", "switch to CA", "switch to switch", "switch to aggregation node", "switch to router")
    inside = (fabric.link_device < fabric.switches).sum(axis=1)
    inside[fabric.endport_link[fabric.aggregation]] = 3
    router = fabric.terminal_kind[fabric.endport_terminal] == NodeKind.ROUTER
    inside[fabric.endport_link[router & (fabric.endport_switch >= 0)]] = 4
    kinds = Counter(
        f"{where[ends]} {rate_name(width, speed)}"
        for ends, width, speed in zip(
            inside.tolist(), fabric.link_width.tolist(), fabric.link_speed.tolist(), strict=True
        )
    )
    return sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))


def _oversubscription(fabric: Fabric, level: npt.NDArray[np.int32]) -> Iterator[float]:
    """Yield the downward capacity divided by the upward capacity, for each level except the top.

    The lowest level comes first.  Aggregation nodes, which are parts of switches, do not count.
    """
    channels, top = fabric.channels, int(level.max())
    cabled = (fabric.endport_switch >= 0) & ~fabric.aggregation
    at_ports = np.zeros(fabric.switches)
    np.add.at(at_ports, fabric.endport_switch[cabled], fabric.link_capacity[fabric.endport_link[cabled]])
    for this in range(top):
        own = level[channels.src] == this
        up = float(channels.capacity[own & (level[channels.dst] > this)].sum())
        down = float(channels.capacity[own & (level[channels.dst] < this)].sum() + at_ports[level == this].sum())
        yield down / up if up else 0.0


def _bounds(fabric: Fabric, level: npt.NDArray[np.int32] | None) -> Iterator[Bound]:
    """Yield upper bounds of the all-to-all share.

    Most bounds follow from cuts: around each switch with end ports, between two halves of the fabric, and around other
    sets of switches (:func:`_tree_cuts`).  The last bound follows from the length of the paths.
    """
    rows = attached(fabric)
    endports = np.bincount(fabric.endport_switch[rows], minlength=fabric.switches).astype(np.int64)
    if len(rows) < 2 or fabric.component.max(initial=0) > 0 or len(fabric.channels) == 0:
        return
    for number, what in ((number, "switch " + fabric.labels[number]) for number in np.flatnonzero(endports).tolist()):
        yield from _cut(fabric, endports, np.arange(fabric.switches) == number, what)
    half = regions(fabric, 2, seed=SEED) == 0
    yield from _cut(fabric, endports, half, "a half of the fabric")
    for side, what in _tree_cuts(fabric, level):
        yield from _cut(fabric, endports, side, what)
    yield from _path_bound(fabric, endports)


def _tree_cuts(fabric: Fabric, level: npt.NDArray[np.int32] | None) -> Iterator[tuple[npt.NDArray[np.bool_], str]]:
    """Yield sets of switches (bool[S]), each with a text that describes the set.

    There are two kinds of sets.  The first kind is switches that stay connected if the levels above them are removed: a
    pod or a part of a pod.  The second kind is switches that stay connected if all links between switches of equal
    height are removed, such as the switches of one tree if several trees are joined.  The height of a switch is its
    level, or its distance from the nearest switch with end ports; both heights are tried.  ``level`` is int32[S], the
    levels of a tree; None if the fabric is not a tree.
    """
    height = distances(fabric, fabric.senders_at > 0)
    for each in (height,) if level is None else (level, height):
        low, high = each[fabric.channels.src], each[fabric.channels.dst]
        for group in _groups(fabric, low != high):
            yield group, "a tree that is joined to others"
    if level is None:
        return
    low, high = level[fabric.channels.src], level[fabric.channels.dst]
    for top in range(int(level.max())):
        what = "a pod" if top == level.max() - 1 else "the switches below a pod"
        for group in _groups(fabric, (low <= top) & (high <= top)):
            if (level[group] <= top).all():
                yield group, what


def _groups(fabric: Fabric, kept: npt.NDArray[np.bool_]) -> Iterator[npt.NDArray[np.bool_]]:
    """Yield as bool[S] each set of switches that the channels marked in ``kept`` (bool[C]) connect.

    Sets of one switch and the set of all switches are left out.
    """
    import igraph  # noqa: PLC0415 - the start of a command without graphs would take a tenth more time

    edges = np.column_stack([fabric.channels.src, fabric.channels.dst])[kept]
    number = np.asarray(igraph.Graph(n=fabric.switches, edges=edges).connected_components().membership)
    sizes = np.bincount(number)
    for group in np.flatnonzero((sizes > 1) & (sizes < fabric.switches)).tolist():
        yield number == group


def _cut(fabric: Fabric, endports: npt.NDArray[np.int64], side: npt.NDArray[np.bool_], what: str) -> Iterator[Bound]:
    """Yield the upper bound of the all-to-all rate that follows from a cut between two sets of switches.

    ``side`` (bool[S]) marks the first set, and all other switches are the second set.  The cut is all cables between
    the two sets.  These cables must carry all traffic between the sets.  ``endports`` (int64[S]) is the number of end
    ports at each switch.  ``what`` names the first set, such as "a pod", in the text that explains the bound.  Nothing
    is yielded if one of the sets has no end port.
    """
    inside = int(endports[side].sum())
    outside = int(endports.sum()) - inside
    if not inside or not outside:
        return
    channels = fabric.channels
    out = side[channels.src] & ~side[channels.dst]
    share = float(channels.capacity[out].sum()) / reference_rate(fabric) * (inside + outside - 1) / (inside * outside)
    cables = count_noun(int(np.count_nonzero(out)), "cable")
    yield Bound(share, f"{cables} out of {what} with {inside} of {count_noun(inside + outside, 'end port')}")


def _path_bound(fabric: Fabric, endports: npt.NDArray[np.int64]) -> Iterator[Bound]:
    """Yield the bound that follows from the lengths of the shortest paths and the total capacity of the channels.

    Each hop of a path uses capacity of a channel.  ``endports`` (int64[S]) is the number of end ports at each switch.
    """
    if fabric.switches > DISTANCES_UP_TO:
        return
    used = np.flatnonzero(endports)
    hops = np.asarray(fabric.graph.distances(source=used.tolist(), target=used.tolist(), mode="out"), np.float64)
    total = float(endports[used] @ hops @ endports[used])
    if total > 0:
        capacity = float(fabric.channels.capacity.sum()) / reference_rate(fabric)
        mean = total / int(endports.sum()) ** 2
        yield Bound(capacity * (int(endports.sum()) - 1) / total, f"shortest paths of {mean:.2f} hops in the mean")
