"""Levels of the switches of a tree, and an order of the switches for paths up and then down."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.descent import updown_hops
from routing.fabric import Fabric

MOST_ACROSS = 0.1
"""Largest share of channels that may join two switches of one level in a tree."""
MOST_ABOVE = 0.25
"""Largest share of senders that may be at switches other than leaves in a tree."""
LEAST_SHORTEST = 0.9
"""Smallest share of pairs of senders in a tree whose path up and then down is a shortest path."""
MOST_HUBS = 6
"""Maximum number of orders that are compared."""


@dataclass(frozen=True, eq=False)
class TreeOrder:
    """Levels of a tree, and an order in which every switch reaches every other one of its component.

    Attributes
    ----------
    level
        int32[S], level of each switch: 0 for leaves.
    position
        int32[S], position of each switch in the order.  A path up leads to lower positions, a path down to higher ones.
    longer
        Most hops by which a path between switches with senders exceeds the shortest.
    """

    level: npt.NDArray[np.int32]
    position: npt.NDArray[np.int32]
    longer: int


def tree_order(fabric: Fabric, senders: npt.NDArray[np.float64] | None = None) -> TreeOrder | None:
    """Return levels and an order of a tree; None if the fabric is not a tree.

    Links may be missing, and leaves may be linked to switches of any level.

    Parameters
    ----------
    fabric
        The fabric.
    senders
        float64[S], weight of the end ports at each switch; None: the number of end ports that count in traffic.

    Notes
    -----
    The order is that of the levels from the top down, except for one leaf (the hub).  The hub comes first, and the
    switches above the hub follow from the bottom up.  Each path up and then down keeps its rule, unless it passes two
    switches above the hub on different branches.  But all top switches now reach each other through the hub.

    Cost: O(leaves C) for each order that is compared.
    """
    if senders is None:
        senders = fabric.senders_at.astype(np.float64)
    level = tree_levels(fabric, senders)
    if level is None:
        return None
    ends = np.flatnonzero(senders > 0).astype(np.int32)
    shortest = np.asarray(fabric.graph.distances(source=ends.tolist(), target=ends.tolist(), mode="out"), float)
    linked = np.isfinite(shortest)
    weight = np.where(linked, np.outer(senders[ends], senders[ends]), 0.0)
    shortest[~linked] = 0.0
    best: tuple[tuple[bool, float, float], npt.NDArray[np.int32], int] | None = None
    for position in _orders(fabric, level, senders):
        if not reaches_all(fabric, position):
            continue
        hops = updown_hops(fabric.channels, position, ends)[:, ends].T
        longer = np.where(linked & (hops >= 0), hops - shortest, 0.0)
        longer[linked & (hops < 0)] = fabric.switches
        excess = int(longer.max(initial=0.0))
        torn = float(senders[_torn_leaves(fabric, level, position)].sum())
        rank = excess > 2, float((weight * (longer > 0)).sum()), torn
        if best is None or rank < best[0]:
            best = rank, position, excess
        if excess == 0 and torn == 0:
            break
    if best is None or best[0][1] > (1.0 - LEAST_SHORTEST) * float(weight.sum()):
        return None
    return TreeOrder(level, best[1], best[2])


def reaches_all(fabric: Fabric, position: npt.NDArray[np.int32]) -> bool:
    """Return whether every switch, except the first of each component, has a neighbour before it in the order.  Then
    each switch reaches all others of its component.

    ``position`` (int32[S]) is the position of each switch in the order.
    """
    channels = fabric.channels
    has_earlier = (
        np.bincount(channels.src[position[channels.dst] < position[channels.src]], minlength=len(position)) > 0
    )
    return int(np.count_nonzero(~has_earlier)) == int(fabric.component.max(initial=-1)) + 1


def tree_levels(fabric: Fabric, senders: npt.NDArray[np.float64]) -> npt.NDArray[np.int32] | None:
    """Return int32[S], the distance of each switch from the nearest leaf; None if the fabric is not a tree.

    Leaves are switches with senders (float64[S]).  If two switches with senders are linked, the one with more links to
    leaves is a spine.  Management leaves at the top of the tree are left out at first, because they would give the top
    level 1.  They count as leaves once the other leaves have determined the levels.
    """
    src, dst = fabric.channels.src, fabric.channels.dst
    if len(src) == 0:
        return None
    most, best = float(senders.max(initial=0.0)), None
    for least in (0.0, most / 4, most / 2):
        leaf = _independent(fabric, senders > least)
        for found in (leaf, _without_high_leaves(fabric, leaf)):
            level = _distances(fabric, found)
            across = int(np.count_nonzero(level[src] == level[dst]))
            if best is None or across < best[0]:
                best = across, found, level
    assert best is not None
    if best[0] > 0 and (even := even_leaves(fabric, senders)) is not None:
        best = 0, even, _distances(fabric, even)
    across, leaf, level = best
    level = _lower_high_leaves(fabric, level, senders > 0)
    above = float(senders[_has_below(fabric, level)].sum())
    if across > MOST_ACROSS * len(src) or above > MOST_ABOVE * float(senders.sum()) or not level.any():
        return None
    return level


def even_leaves(fabric: Fabric, senders: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_] | None:
    """Return bool[S], leaves: the switches with senders that are at an even distance from each other.  None if there
    are no such leaves.

    In a tree every link joins two consecutive levels, so the levels of neighbours are even and odd in turn.  Leaves
    have level 0.  A management leaf at the top may be on an odd level, whatever links are missing.

    Parameters
    ----------
    fabric
        The fabric.
    senders
        float64[S], weight of the end ports at each switch.

    Returns
    -------
    leaf : bool[S] or None
        In each component the side with the most senders.  None if a cycle of links is odd, or if over
        :data:`MOST_ABOVE` of all senders are on the other sides.

    Notes
    -----
    Cost: O(C).
    """
    bipartite, odd = fabric.graph.is_bipartite(return_types=True)
    if not bipartite:
        return None
    side = np.asarray(odd, np.int64)
    weight = np.zeros((int(fabric.component.max(initial=0)) + 1, 2))
    np.add.at(weight, (fabric.component, side), senders)
    leaf: npt.NDArray[np.bool_] = (senders > 0) & (side == weight.argmax(axis=1)[fabric.component])
    if senders[~leaf].sum() > MOST_ABOVE * senders.sum() or not leaf.any():
        return None
    return leaf


def _has_below(fabric: Fabric, level: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return bool[S], whether a switch is linked to a switch of a lower level."""
    src, dst = fabric.channels.src, fabric.channels.dst
    found: npt.NDArray[np.bool_] = np.bincount(src[level[dst] < level[src]], minlength=fabric.switches) > 0
    return found


def _independent(fabric: Fabric, leaf: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return bool[S], leaves of which no two are linked.  The leaf with the most links to other leaves is removed again
    and again until this is the case.
    """
    src, dst, leaf = fabric.channels.src, fabric.channels.dst, leaf.copy()
    while True:
        linked = np.bincount(src[leaf[src] & leaf[dst]], minlength=fabric.switches)
        if not linked.any():
            return leaf
        leaf[linked.argmax()] = False


def _without_high_leaves(fabric: Fabric, leaf: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return bool[S], the leaves without high ones.  A leaf is high if it is next to a switch with more links within
    its level than to leaves.
    """
    src, dst, leaf = fabric.channels.src, fabric.channels.dst, leaf.copy()
    while leaf.any():
        level = _distances(fabric, leaf)
        first = level[src] == 1
        balance = np.bincount(src[first & (level[dst] == 1)], minlength=fabric.switches)
        balance -= np.bincount(src[first & (level[dst] == 0)], minlength=fabric.switches)
        high = dst[(balance[src] > 0) & leaf[dst]]
        if len(high) == 0:
            break
        links = np.bincount(high, minlength=fabric.switches) / np.maximum(np.diff(fabric.channels.first), 1)
        leaf[links > links.max() / 2] = False
    return leaf


def _lower_high_leaves(
    fabric: Fabric, level: npt.NDArray[np.int32], has_senders: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int32]:
    """Return int32[S], the levels after switches with senders that are above all of their neighbours were moved below
    them.
    """
    channels = fabric.channels
    lowest = np.full(fabric.switches, fabric.switches, np.int32)
    np.minimum.at(lowest, channels.src, level[channels.dst])
    high = has_senders & (lowest < level) & ~_has_above(fabric, level)
    # A top switch with CAs of its own is not moved: it has links to several switches of the level below.
    several = np.bincount(np.unique(channels.src.astype(np.int64) * fabric.switches + channels.dst) // fabric.switches)
    several = np.concatenate([several, np.zeros(fabric.switches - len(several), np.int64)])
    leaves = np.bincount(channels.src[level[channels.dst] == 0], minlength=fabric.switches) > 0
    high &= (several <= 2) & ~leaves & (lowest > 0)
    found = level.copy()
    found[high] = lowest[high] - 1
    return found


def _has_above(fabric: Fabric, level: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return bool[S], whether a switch is linked to a switch of its own level or of a higher level."""
    src, dst = fabric.channels.src, fabric.channels.dst
    return np.asarray(np.bincount(src[level[dst] >= level[src]], minlength=fabric.switches) > 0)


def _distances(fabric: Fabric, starts: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Return int32[S], hops of each switch from the nearest switch that is marked in ``starts`` (bool[S]).

    In a connected component without a marked switch, hops are counted from its first switch.
    """
    channels = fabric.channels
    _, first = np.unique(fabric.component, return_index=True)
    near = starts.copy()
    near[first[~np.isin(fabric.component[first], fabric.component[starts])]] = True
    distance = np.full(fabric.switches, -1, np.int32)
    hops = 0
    while near.any():
        distance[near] = hops
        found = channels.dst[near[channels.src]]
        near = np.zeros(fabric.switches, bool)
        near[found] = True
        near &= distance < 0
        hops += 1
    return distance


def _torn_leaves(
    fabric: Fabric, level: npt.NDArray[np.int32], position: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    """Return bool[S], the torn switches: some, but not all, of their upper neighbours are turned over.  A switch is
    turned over if it comes before a switch above it in the order, on account of the hub.

    From a top switch, the channel to a turned-over switch leads up in the order, and the channel to any other lower
    switch leads down.  A switch prefers paths down.  So traffic from the top to a torn leaf passes only those of its
    upper neighbours that are not turned over.
    """
    src, dst = fabric.channels.src, fabric.channels.dst
    up = level[dst] > level[src]
    turned: npt.NDArray[np.bool_] = np.zeros(fabric.switches, np.bool_)
    turned[src[up & (position[dst] > position[src])]] = True
    inner = up & _has_above_of(fabric, level)[dst]
    over = np.bincount(src[inner & turned[dst]], minlength=fabric.switches) > 0
    usual = np.bincount(src[inner & ~turned[dst]], minlength=fabric.switches) > 0
    return np.asarray(over & usual)


def _has_above_of(fabric: Fabric, level: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return bool[S], whether a switch is linked to a switch of a higher level."""
    src, dst = fabric.channels.src, fabric.channels.dst
    return np.asarray(np.bincount(src[level[dst] > level[src]], minlength=fabric.switches) > 0)


def _orders(
    fabric: Fabric, level: npt.NDArray[np.int32], senders: npt.NDArray[np.float64]
) -> Iterator[npt.NDArray[np.int32]]:
    """Yield orders of the switches, int32[S].  Each order begins with another leaf, its hub.

    Hubs with the most top switches above them come first.  Leaves that are torn in the first order
    (:func:`_torn_leaves`) are the hubs of further orders.
    """
    below = _below(fabric, level)
    hubs: list[list[int]] = []
    for component in range(int(fabric.component.max(initial=0)) + 1):
        members = np.flatnonzero(fabric.component == component)
        leaves = members[level[members] == level[members].min()]
        top = members[level[members] == level[members].max()]
        count = below[np.ix_(top, leaves)].sum(axis=0)
        seen, chosen = set(), list[int]()
        for leaf in leaves[np.argsort(-count, kind="stable")].tolist():
            above = below[:, leaf].copy()
            above[leaf] = False
            # Leaves of one pod have equal switches above them, so one leaf of each pod is enough.
            if above.tobytes() not in seen:
                seen.add(above.tobytes())
                chosen.append(leaf)
            if len(chosen) == MOST_HUBS:
                break
        hubs.append(chosen)
    torn: npt.NDArray[np.bool_] | None = None
    for rank in range(max(map(len, hubs), default=0)):
        position = _order(fabric, level, below, [chosen[min(rank, len(chosen) - 1)] for chosen in hubs])
        torn = _torn_leaves(fabric, level, position) & (senders > 0) if torn is None else torn
        yield position
    for leaf in [] if torn is None else np.flatnonzero(torn)[:MOST_HUBS].tolist():
        part = int(fabric.component[leaf])
        yield _order(fabric, level, below, [leaf if n == part else chosen[0] for n, chosen in enumerate(hubs)])


def _below(fabric: Fabric, level: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return bool[S, S], whether a path that only goes down leads from the first switch to the second."""
    channels = fabric.channels
    below: npt.NDArray[np.bool_] = np.eye(fabric.switches, dtype=np.bool_)
    for switch in np.argsort(level, kind="stable").tolist():
        next_switches = np.unique(channels.dst[channels.first[switch] : channels.first[switch + 1]])
        lower = next_switches[level[next_switches] < level[switch]]
        if len(lower):
            below[switch] |= below[lower].any(axis=0)
    return below


def _order(
    fabric: Fabric, level: npt.NDArray[np.int32], below: npt.NDArray[np.bool_], hubs: list[int]
) -> npt.NDArray[np.int32]:
    """Return int32[S], positions of the switches.  First come the hubs with the switches above them, from the bottom
    up; then all other switches, from the top down.

    Every switch needs a path up to one of these first switches.  If some switch has none, more switches are placed
    after the first ones: the highest switch that is linked to it and has such a path, with the switches above that
    switch, also from the bottom up.
    """
    channels, switches = fabric.channels, fabric.switches
    placed: npt.NDArray[np.bool_] = np.zeros(switches, np.bool_)
    order: list[int] = []

    def turn_over(start: int) -> None:
        above = np.flatnonzero(below[:, start] & ~placed)
        above = above[np.argsort(level[above], kind="stable")]
        order.extend(above.tolist())
        placed[above] = True

    for hub in hubs:
        turn_over(hub)
    while True:
        joined: npt.NDArray[np.bool_] = np.logical_or.reduce(
            below[placed]
        )  # A switch is joined if a path up leads from it to one of the switches placed so far.
        apart = ~joined
        if not apart.any():
            break
        linked = joined & ~placed & (np.bincount(channels.src[apart[channels.dst]], minlength=switches) > 0)
        rows = np.flatnonzero(linked)
        if len(rows) == 0:
            break
        rows = rows[level[rows] == level[rows].max()]
        turn_over(int(rows[below[np.ix_(apart, rows)].sum(axis=0).argmax()]))
    rest = np.flatnonzero(~placed)
    order.extend(rest[np.argsort(-level[rest], kind="stable")].tolist())
    position = np.empty(switches, np.int32)
    position[order] = np.arange(switches, dtype=np.int32)
    return position
