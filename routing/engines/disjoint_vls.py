"""Assign VLs to the paths of the trees of :mod:`routing.engines.disjoint`.

Each order of the switches has a VL.  A path that no order allows gets a VL on which it closes no cycle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.assign_vls import NO_VL, PathGroups, assign_vls
from routing._kernels.disjoint import NO_ORDER, UNREACHED, DisjointTrees, TreeRequest, follow_first
from routing._kernels.up_down import is_increasing
from routing.engines.destinations import ports_by_index
from routing.engines.disjoint_orders import VlOrders

MOST_LEFT = 0.05
"""Limit for the share of groups of paths (:class:`_Groups`) whose paths no switch order allows.  If the share is
larger, the attempt ends without a search for VLs.
"""

ROUNDS = 8
"""Maximum number of rounds.  A round searches VLs for all paths, and then replaces paths without a VL by paths of the
first tree.
"""

VISITS = 200_000_000
"""Number of channels that cycle searches may visit in a round."""

SPARE_VISITS = 1_000_000
"""Number of channels that cycle searches may visit for paths between switches without end ports."""


@dataclass(frozen=True, eq=False)
class Placement:
    """K in-trees towards each destination switch, with a VL for each path.

    Attributes
    ----------
    next_channel
        uint8[S, K, S], by destination, tree and switch: index of the next channel among the channels of the switch.
    vl
        uint8[S, K, S], VL of the path by destination, tree and source.  The array is symmetric in the two switches: a
        path and its reply path in one tree use the same VL.
    by_order
        Whether each path from or to a switch with end ports is allowed by the order of its VL.
    """

    next_channel: npt.NDArray[np.uint8]
    vl: npt.NDArray[np.uint8]
    by_order: bool

    @property
    def used(self) -> int:
        """Number of VLs up to the highest VL in use."""
        return 1 + int(self.vl.max(initial=0))


@dataclass(frozen=True, eq=False)
class _Groups:
    """Groups of paths that share a VL: the paths between two switches, in both directions, in one tree.

    If ``shared`` of the request (:class:`TreeRequest`) is True, a group has the paths between two switches in all
    trees.

    Attributes
    ----------
    high, low
        int64[G], the two switches.
    tree
        int64[G], the tree; 0 if a group has the paths of all trees.
    exists
        bool[G, W], whether each of the W paths of a group exists.
    source, lid
        int32[G, W], first switch of each path, and its column in the table that the kernel gets: destination * K +
        tree, for K trees of each destination.  The kernel takes these columns for LIDs.
    counted
        bool[G], whether one of the switches has end ports.
    """

    high: npt.NDArray[np.int64]
    low: npt.NDArray[np.int64]
    tree: npt.NDArray[np.int64]
    exists: npt.NDArray[np.bool_]
    source: npt.NDArray[np.int32]
    lid: npt.NDArray[np.int32]
    counted: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, request: TreeRequest) -> _Groups:
        """Return one group for each combination of a tree and a pair of switches with a path between them.

        If the request has ``shared``, return one group for each pair, which has the pair's paths in all trees.
        """
        trees, ends = request.trees, request.weight > 0
        high, low = np.nonzero(np.tril(request.distance != UNREACHED, -1))
        tree = np.arange(trees)
        # Each pair of switches has two paths in a tree, one in each direction.  `to` has the destinations of the two
        # paths.
        to = np.stack([high, low], axis=1)[:, None, :]
        exists = ((tree == 0)[None, :, None] | ends[to]) & np.ones((1, trees, 1), bool)
        lid = (to * trees + tree[None, :, None]).astype(np.int32)
        source = np.broadcast_to(to[:, :, ::-1], lid.shape).astype(np.int32)
        counted = ends[high] | ends[low]
        if request.shared:
            width = (len(high), 2 * trees)
            number = np.zeros(len(high), np.int64)
        else:
            width = (len(high) * trees, 2)
            number = np.tile(tree, len(high))
            high, low, counted = np.repeat(high, trees), np.repeat(low, trees), np.repeat(counted, trees)
        exists, source, lid = exists.reshape(width), source.reshape(width), lid.reshape(width)
        some = exists.any(axis=1)
        return cls(high[some], low[some], number[some], exists[some], source[some], lid[some], counted[some])

    def paths(self, chosen: npt.NDArray[np.int64], start: npt.NDArray[np.uint8]) -> PathGroups:
        """Return the groups of paths with the row numbers ``chosen``, as input of the kernel.

        ``start`` (uint8[G]) is the VL that the kernel tries first for each group.
        """
        exists = self.exists[chosen]
        first = np.concatenate([[0], np.cumsum(exists.sum(axis=1))]).astype(np.int32)
        return PathGroups(first, self.source[chosen][exists], self.lid[chosen][exists], start[chosen])


def place(request: TreeRequest, trees: DisjointTrees, orders: VlOrders, vls: int) -> Placement | None:
    """Assign a VL to every path: the VL of a switch order that allows the path.  A path that no order allows gets any
    VL whose CDG stays acyclic.

    ``orders`` has the switch order of each VL.  If some paths between two switches fit on no VL, they are replaced: all
    trees get the first tree's paths between these two switches, which are not link-disjoint.  Then the search for VLs
    is repeated.  If the request gives the first trees (``request.initial``), nothing is replaced, and the result is
    None.  In this case, the caller repeats the whole search without given trees, because this loses fewer link-disjoint
    paths than replacements.

    Returns
    -------
    Placement or None
        None if paths still fit on no VL, after the replacement or because replacement is not allowed.  Also None if
        more than the share :data:`MOST_LEFT` of the groups have paths that no order allows.
    """
    groups = _Groups.of(request)
    start = trees.order[groups.high, groups.tree, groups.low]
    left = groups.counted & (start == NO_ORDER)
    if np.count_nonzero(left) > MOST_LEFT * len(left):
        return None
    if not left.any() and groups.counted.all():
        return Placement(trees.next_channel, _by_pair(request, groups, start), by_order=True)
    next_channel, followed, by_any = trees.next_channel, np.zeros(len(start), bool), False
    for _ in range(ROUNDS):
        found = _assign(request, groups, next_channel, start=start, orders=orders, vls=vls)
        failed = groups.counted & (found == NO_VL)
        if not failed.any():
            by_order = not by_any and bool((found == start)[groups.counted].all())
            return Placement(next_channel, _by_pair(request, groups, found), by_order)
        if request.initial is not None or not (failed & ~followed).any():
            return None
        followed |= failed
        ends = groups.high[failed].astype(np.int32), groups.low[failed].astype(np.int32)
        pair = np.concatenate(ends), np.concatenate(ends[::-1])
        next_channel = follow_first(request, next_channel, *pair)
        start, by_any = np.where(failed, NO_ORDER, found).astype(np.uint8), True
    return None


def _assign(
    request: TreeRequest,
    groups: _Groups,
    next_channel: npt.NDArray[np.uint8],
    *,
    start: npt.NDArray[np.uint8],
    orders: VlOrders,
    vls: int,
) -> npt.NDArray[np.uint8]:
    """Return uint8[G], the VL of each group; ``NO_VL`` for groups that fit on no VL.

    ``next_channel`` holds the trees, and ``orders`` the switch order of each VL.  ``start`` (uint8[G]) is the VL that
    each group tries first; ``NO_ORDER`` if no switch order allows the paths of the group.  Groups with a start VL are
    assigned before other groups.  Groups between switches without end ports are assigned last, with a lower work limit.
    """
    channels = request.channels
    # uint8[S, S * K]: the out-port of each switch for each destination and each of its K trees.
    lft = np.stack([row.take(next_channel[:, :, s]).ravel() for s, row in enumerate(ports_by_index(channels))])
    lid_switch = np.repeat(np.arange(len(request.weight), dtype=np.int32), request.trees)
    by_order = [is_increasing(channels, position) for position in orders.position[:vls]]
    order = np.stack([*by_order, *[np.arange(len(channels), dtype=np.int32)] * (vls - len(by_order))])
    masks = np.zeros(channels.edges.count, np.uint16)
    rank = np.where(start == NO_ORDER, 1, 0)
    begin = np.where(start == NO_ORDER, np.arange(len(start)) % vls, start).astype(np.uint8)
    found = np.full(len(start), NO_VL, np.uint8)
    for counted, budget in ((True, VISITS), (False, SPARE_VISITS)):
        rows = np.flatnonzero(groups.counted == counted)
        rows = rows[np.argsort(rank[rows], kind="stable")]
        found[rows], masks, order, _ = assign_vls(
            channels, lid_switch, lft, groups.paths(rows, begin), masks=masks, order=order,
            allowed_vls=np.ones(vls, bool), budget=budget,
        )  # fmt: skip
    return found


def _by_pair(request: TreeRequest, groups: _Groups, vl: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return uint8[S, K, S]: the VL of each path by destination, tree and source; 0 for paths without a VL.

    ``vl`` is uint8[G], the VL of each group of paths.
    """
    switches = len(request.weight)
    found = np.zeros((switches, request.trees, switches), np.uint8)
    known = np.where(vl == NO_VL, 0, vl).astype(np.uint8)
    trees = range(request.trees) if request.shared else [groups.tree]
    for tree in trees:
        found[groups.high, tree, groups.low] = known
        found[groups.low, tree, groups.high] = known
    return found
