"""Levels of the switches of a tree, and an order of the switches for paths up and then down."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.closed_form import TreeGraph
from routing._kernels.descent import updown_hops
from routing.fabric import Fabric
from routing.trees.switch_orders import breadth_first_orders, hub_orders, torn_leaves

MOST_ACROSS = 0.1
"""Largest share of channels that may join two switches of one level in a tree."""
MOST_ABOVE = 0.25
"""Largest share of all senders of a tree that may be at switches other than leaves."""
MOST_BELOW = 0.5
"""Largest share of all senders of a tree that may be at switches below leaves (:func:`_below_leaves`).  Such switches
are exceptions to the rule that no switch is below a leaf.  An example is a management switch that is cabled to two
leaves.
"""
LEAST_SHORTEST = 0.9
"""Least share of the flow between senders that must have shortest paths.  An order of a tree's switches is not used if
its paths up and then down are shortest paths for a smaller share of this flow.
"""
MOST_ROOTS = 64
"""Maximum number of breadth-first switch orders that are compared.  They are compared only if every order of another
kind makes some paths too long.
"""
MOST_VISITS = 200_000_000
"""Number of channels that the comparison of breadth-first orders may visit.  This takes about a second."""
MOST_LONGER = 2
"""Largest number of hops by which a path between end ports may exceed the shortest path."""
MOST_FAR, FAR_COST = 0.001, 0.6
"""Exception to :data:`MOST_LONGER`.  Some paths of a switch order may exceed that limit if at most this share of the
flow (first value) takes these paths.  The order then has an additional cost (second value).  The cost is so high that
the order is taken only if most leaves are torn in all other orders.
"""


@dataclass(frozen=True, eq=False)
class TreeOrder:
    """Levels of a tree, and an order in which every switch reaches every other switch of its component.

    Attributes
    ----------
    level
        int32[S], level of each switch: 0 for the lowest switches.  These are the leaves, unless switches with few CAs
        or none are linked below leaves.
    position
        int32[S], position of each switch in the order.  A path up leads to lower positions, a path down to higher
        positions.
    longer
        Largest number of hops by which a path between switches with senders exceeds the shortest path.
    far
        Share of the flow between switches with senders that takes paths more than :data:`MOST_LONGER` hops longer than
        the shortest path.
    cost
        The sum of three costs: the share of the flow on paths longer than the shortest; the share of the senders at
        torn leaves (:func:`~routing.trees.switch_orders.torn_leaves`); and the cost of paths that are more than
        :data:`MOST_LONGER` hops longer than the shortest.
    """

    level: npt.NDArray[np.int32]
    position: npt.NDArray[np.int32]
    longer: int
    far: float = 0.0
    cost: float = 0.0


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
    The order begins with one leaf (the hub), and with the switches above the hub from the bottom up.  All other
    switches follow by their levels, from the top down.  Because the hub comes first, all top switches reach each other
    through it.  A path that leads up and then down in the tree also leads up and then down in this order.  One kind of
    path is an exception: a path that leads up over one switch above the hub, and down over another one, if neither of
    these two switches is above the other.

    The order of the closed form (:class:`routing._kernels.closed_form.TreeGraph`) is also compared.  If many links are
    missing, each of these orders can have paths that are more than :data:`MOST_LONGER` hops longer than the shortest.
    In this case, breadth-first orders are compared as well.

    Cost: O(leaves C) for each order that is compared.
    """
    if senders is None:
        senders = fabric.senders_at.astype(np.float64)
    level = tree_levels(fabric, senders)
    if level is None:
        return None
    compared = _Comparison.of(fabric, level, senders)
    best = compared.best(hub_orders(fabric, level, senders))
    if best is None or best.cost > 0.0:
        best = compared.best([closed_form_order(fabric, level).position], best)
    if best is None or best.far > 0.0:
        roots = int(min(MOST_ROOTS, 1 + MOST_VISITS / (1 + len(compared.ends) * len(fabric.channels))))
        best = compared.best(breadth_first_orders(fabric, level, roots), best)
    return best


@dataclass(frozen=True, eq=False)
class _Comparison:
    """Comparison of orders of the switches by the length of the paths between switches with senders (ends).

    Attributes
    ----------
    fabric, level, senders
        The fabric, the level of each switch (int32[S]), and the weight of the senders at each switch (float64[S]).
    ends
        int32[ends], the switches with senders.
    shortest
        float64[ends, ends], hops of a shortest path between two ends, 0 if there is no path.
    weight
        float64[ends, ends], flow between two ends, 0 if there is no path.
    """

    fabric: Fabric
    level: npt.NDArray[np.int32]
    senders: npt.NDArray[np.float64]
    ends: npt.NDArray[np.int32]
    shortest: npt.NDArray[np.float64]
    weight: npt.NDArray[np.float64]

    @classmethod
    def of(cls, fabric: Fabric, level: npt.NDArray[np.int32], senders: npt.NDArray[np.float64]) -> _Comparison:
        ends = np.flatnonzero(senders > 0).astype(np.int32)
        shortest = np.asarray(fabric.graph.distances(source=ends.tolist(), target=ends.tolist(), mode="out"), float)
        shortest = shortest.reshape(len(ends), len(ends))
        linked = np.isfinite(shortest)
        weight = np.where(linked, np.outer(senders[ends], senders[ends]), 0.0)
        return cls(fabric, level, senders, ends, np.where(linked, shortest, 0.0), weight)

    def longer(self, position: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """Return float64[ends, ends], the additional hops between each two switches with senders (:attr:`ends`).  These
        are the hops of the shortest path that a switch order (``position``, int32[S]) allows, minus the hops of the
        shortest path in the fabric.

        For a pair without a path in this order, the value is the number of switches of the fabric.
        """
        linked = self.weight > 0
        hops = updown_hops(self.fabric.channels, position, self.ends)[:, self.ends].T
        longer = np.where(linked & (hops >= 0), hops - self.shortest, 0.0)
        longer[linked & (hops < 0)] = self.fabric.switches
        return longer

    def best(self, orders: Iterable[npt.NDArray[np.int32]], best: TreeOrder | None = None) -> TreeOrder | None:
        """Return the order with the lowest cost (:attr:`TreeOrder.cost`) among the given orders (int32[S] each) and
        ``best``.

        Orders in which too many paths are longer than the shortest are left out (:data:`LEAST_SHORTEST`).
        """
        for position in orders:
            if not reaches_all(self.fabric, position):
                continue
            found = self.rated(position)
            if found is not None and (best is None or found.cost < best.cost):
                best = found
            if found is not None and found.cost == 0.0:
                break
        return best

    def rated(self, position: npt.NDArray[np.int32]) -> TreeOrder | None:
        """Return a :class:`TreeOrder` with the given order (``position``, int32[S]), its cost, and figures about paths
        longer than the shortest.  Return None if less than :data:`LEAST_SHORTEST` of the flow has shortest paths.
        """
        longer = self.longer(position)
        share, far = self._share(longer > 0), self._share(longer > MOST_LONGER)
        if share > 1.0 - LEAST_SHORTEST:
            return None
        torn = float(self.senders[torn_leaves(self.fabric, self.level, position)].sum())
        cost = 0.0 if far == 0.0 else FAR_COST if far <= MOST_FAR else float(self.fabric.switches)
        cost += share + torn / max(float(self.senders.sum()), 1e-9)
        return TreeOrder(self.level, position, int(longer.max(initial=0.0)), far, cost)

    def _share(self, marked: npt.NDArray[np.bool_]) -> float:
        """Return the part of all flow that is between the marked pairs of ends (bool[ends, ends]), from 0 to 1."""
        return float((self.weight * marked).sum()) / max(float(self.weight.sum()), 1e-9)


def closed_form_order(fabric: Fabric, level: npt.NDArray[np.int32]) -> TreeOrder:
    """Return the order that tables in closed form follow, for the given levels (int32[S])."""
    return TreeOrder(level, TreeGraph.of(fabric.channels, level, np.ones(len(fabric.channels))).position, 0)


def reaches_all(fabric: Fabric, position: npt.NDArray[np.int32]) -> bool:
    """Return whether every switch, except the first of each component, has a neighbour before it in the order.  In such
    an order each switch reaches all other switches of its component.

    ``position`` (int32[S]) is the position of each switch in the order.
    """
    channels = fabric.channels
    has_earlier = (
        np.bincount(channels.src[position[channels.dst] < position[channels.src]], minlength=len(position)) > 0
    )
    return int(np.count_nonzero(~has_earlier)) == int(fabric.component.max(initial=-1)) + 1


def tree_levels(fabric: Fabric, senders: npt.NDArray[np.float64]) -> npt.NDArray[np.int32] | None:
    """Return int32[S], the level of each switch of a tree; None if the fabric is not a tree.

    Leaves are switches with senders (float64[S]).  If two switches with senders are linked, the switch with more links
    to leaves is a spine.  Management leaves at the top of the tree are left out at first.  Otherwise, the top switches
    would get level 1, as neighbours of leaves.  The management leaves count as leaves once all other leaves have
    determined the levels.

    The level of a switch is its distance from the nearest leaf, so leaves have level 0.  If switches are below a leaf
    (:func:`_below_leaves`), they have the lowest levels, and the levels of all other switches are higher by the number
    of levels below leaves.
    """
    src, dst = fabric.channels.src, fabric.channels.dst
    if len(src) == 0:
        return None
    most, best = float(senders.max(initial=0.0)), None
    tried: list[npt.NDArray[np.bool_]] = []
    for least in (0.0, most / 4, most / 2):
        given = senders > least
        if (best is not None and best[0] == 0) or any(np.array_equal(given, other) for other in tried):
            continue
        tried.append(given)
        below, leaf = _below_leaves(fabric, given, senders), _independent(fabric, given)
        for found in (given & ~below, _independent(fabric, given & ~below), leaf, _without_high_leaves(fabric, leaf)):
            if given.any() and not found.any():
                continue
            level = distances(fabric, found)
            if found.any() and not (found & below).any():
                level[below] *= -1
            across = int(np.count_nonzero(level[src] == level[dst]))
            if best is None or across < best[0]:
                best = across, level
    assert best is not None
    if best[0] > 0 and (even := even_leaves(fabric, senders)) is not None:
        best = 0, distances(fabric, even)
    across, level = best
    level = _lower_high_leaves(fabric, level, senders)
    above = float(senders[_has_below(fabric, np.maximum(level, 0))].sum())
    between = (level[src] == 0) & (level[dst] == 0)
    if between.any() and not _is_joined_without(fabric, between):
        return None
    if across > MOST_ACROSS * len(src) or above > MOST_ABOVE * float(senders.sum()) or not level.any():
        return None
    lowest: np.int32 = level.min()
    return np.subtract(level, lowest, dtype=np.int32)


def _is_joined_without(fabric: Fabric, channels: npt.NDArray[np.bool_]) -> bool:
    """Return whether the components of the fabric stay connected without the marked channels (bool[C]).

    If only links between leaves join two trees, the fabric is not a tree: in any switch order, paths could use only a
    few of these links.
    """
    import igraph  # noqa: PLC0415 - the start of a command without graphs would take a tenth more time

    edges = np.column_stack([fabric.channels.src, fabric.channels.dst])[~channels]
    parts = len(igraph.Graph(n=fabric.switches, edges=edges).connected_components())
    return parts == int(fabric.component.max()) + 1


def _below_leaves(
    fabric: Fabric, given: npt.NDArray[np.bool_], senders: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """Return bool[S], the switches below leaves.  An example is a management switch that is cabled to two leaves.

    A spine is a switch that is not in ``given``.  A switch in ``given`` is below a leaf under three conditions: none of
    its neighbours is a spine; some spine has at least twice as many links as the switch; and another switch in
    ``given``, in the same component, has a spine as a neighbour.  The switches below a leaf may form a chain.

    If more than the share :data:`MOST_BELOW` of all senders would be below leaves, the result has no switches.  In this
    case, the fabric is another kind of tree, or is not a tree.

    Parameters
    ----------
    fabric
        The fabric.
    given
        bool[S], switches with senders that may be leaves.
    senders
        float64[S], weight of the end ports at each switch.
    """
    src, dst = fabric.channels.src, fabric.channels.dst
    has_spine = np.bincount(src[~given[dst]], minlength=fabric.switches) > 0
    links = np.diff(fabric.channels.first)
    few = 2 * links <= links[~given].max(initial=0)
    below: npt.NDArray[np.bool_] = given & ~has_spine & few
    below &= np.isin(fabric.component, fabric.component[given & has_spine])
    if senders[below].sum() > MOST_BELOW * senders.sum():
        return np.zeros_like(below)
    return below


def even_leaves(fabric: Fabric, senders: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_] | None:
    """Return the leaves of a tree as bool[S]: switches with senders, at distances from each other that are even
    numbers.  Return None if there are no such leaves.

    In a tree every link joins two consecutive levels, also if other links are missing.  So each component consists of
    two sets of switches, one on the even levels and one on the odd levels.  Leaves have level 0, so all leaves of a
    component are in one set.  Only management leaves at the top of the tree may be in the other set.

    Parameters
    ----------
    fabric
        The fabric.
    senders
        float64[S], weight of the end ports at each switch.

    Returns
    -------
    leaf : bool[S] or None
        In each component, the switches with senders that are in the set with more senders.  None in three cases: a
        cycle has an odd number of links, so that there are no such sets; a share of more than :data:`MOST_ABOVE` of all
        senders is in the other sets; or there are no senders.

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
    """Return bool[S], whether each switch is linked to a switch of a lower level."""
    src, dst = fabric.channels.src, fabric.channels.dst
    found: npt.NDArray[np.bool_] = np.bincount(src[level[dst] < level[src]], minlength=fabric.switches) > 0
    return found


def _independent(fabric: Fabric, leaf: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return bool[S], leaves of which no two are linked.  The leaf with the most links to other leaves is removed,
    repeatedly, until no two leaves are linked.
    """
    src, dst, leaf = fabric.channels.src, fabric.channels.dst, leaf.copy()
    while True:
        linked = np.bincount(src[leaf[src] & leaf[dst]], minlength=fabric.switches)
        if not linked.any():
            return leaf
        leaf[linked.argmax()] = False


def _without_high_leaves(fabric: Fabric, leaf: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return bool[S], the given leaves without high leaves: leaves at the top of the tree instead of at the bottom.

    The level of a switch is its distance from the nearest leaf.  If a switch of level 1 has more links to switches of
    level 1 than to leaves, the leaves at this switch may be high.  So each leaf has a suspicious share: the share of
    its links that lead to switches of this kind.  Each round finds the largest suspicious share, and removes all leaves
    with more than half of this share.  The rounds end when there are no switches of this kind.
    """
    src, dst, leaf = fabric.channels.src, fabric.channels.dst, leaf.copy()
    while leaf.any():
        level = distances(fabric, leaf)
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
    fabric: Fabric, level: npt.NDArray[np.int32], senders: npt.NDArray[np.float64]
) -> npt.NDArray[np.int32]:
    """Return int32[S], corrected levels: leaves at the top of the tree are moved below their neighbours.

    Such a leaf has senders (``senders``, float64[S], by switch), and all of its neighbours have lower levels.  Switches
    that may be top switches with CAs of their own are not moved.
    """
    channels = fabric.channels
    lowest = np.full(fabric.switches, fabric.switches, np.int32)
    np.minimum.at(lowest, channels.src, level[channels.dst])
    has_above = np.bincount(channels.src[level[channels.dst] >= level[channels.src]], minlength=fabric.switches) > 0
    high = (senders > 0) & (lowest < level) & ~has_above & (lowest > 0)
    # A top switch with CAs of its own has links to several switches of the level below.  So a switch with at most two
    # neighbours does not count as a top switch.
    pairs = np.unique(channels.src.astype(np.int64) * fabric.switches + channels.dst)
    several = np.bincount(pairs // fabric.switches, minlength=fabric.switches)
    leaves = np.bincount(channels.src[level[channels.dst] == 0], minlength=fabric.switches) > 0
    low = high & (several <= 2) & ~leaves
    # A leaf at the top can also have more than two neighbours, which are then the top switches of the tree.  `many`
    # marks leaves of this kind.  These are high leaves with many senders, and the neighbours of such a leaf have links
    # up only to high leaves with many senders.  The leaves in `many` are moved down under one condition: without them,
    # every two leaves of a component still have a common switch above them.
    many = high & ~low & (senders > MOST_ABOVE * senders.max(initial=0.0))
    up = level[channels.dst] > level[channels.src]
    has_other = np.bincount(channels.src[up & ~many[channels.dst]], minlength=fabric.switches) > 0
    many &= np.bincount(channels.src[has_other[channels.dst]], minlength=fabric.switches) == 0
    if many.any() and _share_tops(fabric, level, ~many):
        low |= many
    return np.where(low, lowest - 1, level).astype(np.int32)


def _share_tops(fabric: Fabric, level: npt.NDArray[np.int32], kept: npt.NDArray[np.bool_]) -> bool:
    """Return whether every two leaves of a component reach a common switch by paths that only lead up.

    Leaves and paths count only if all of their switches are in ``kept`` (bool[S]).  ``level`` is int32[S].

    Cost: O(C leaves), and a product of matrices.
    """
    src, dst = fabric.channels.src, fabric.channels.dst
    leaves = np.flatnonzero(kept & ~_has_below(fabric, level))
    upwards = kept[src] & kept[dst] & (level[dst] > level[src])
    # It is enough to compare the uppermost kept switches.  If two leaves have a common switch above them, they also
    # have a common uppermost switch.
    tops = np.flatnonzero(kept & (np.bincount(src[upwards], minlength=fabric.switches) == 0))
    reached = np.zeros((fabric.switches, len(tops)), bool)
    reached[tops, np.arange(len(tops))] = True
    for height in range(int(level.max(initial=0)), int(level.min(initial=0)) - 1, -1):
        step = np.flatnonzero(upwards & (level[src] == height))  # `step` is sorted by source, as `reduceat` requires.
        if len(step):
            rows, first = np.unique(src[step], return_index=True)
            reached[rows] |= np.logical_or.reduceat(reached[dst[step]], first, axis=0)
    above, component = reached[leaves].astype(np.float32), fabric.component[leaves]
    return bool((above @ above.T > 0)[component[:, None] == component].all())


def distances(fabric: Fabric, starts: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Return int32[S], hops of each switch from the nearest switch that is marked in ``starts`` (bool[S]).

    In a connected component without a marked switch, hops are counted from the switch with the lowest number.
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
