"""Kernel wrappers: compute in-trees with link-disjoint paths, and count the link-disjoint paths in given tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, lib, struct_of
from routing.fabric import Channels

MOST_TREES = 8
"""Maximum number of in-trees of a destination.  The kernel stores a set of trees in one byte."""

MOST_ORDERS = 8
"""Maximum number of switch orders.  The kernel stores a set of switch orders in one byte."""

UNREACHED = 65535
"""Value that stands for "no path", in place of the number of hops between two switches."""

NO_CHANNEL = 255
NO_ORDER = 255


@dataclass(frozen=True, eq=False)
class Reach:
    """Properties of the paths that lead up and then down in one switch order.

    Attributes
    ----------
    hops
        uint16[S, S] by destination and source: the fewest hops, :data:`UNREACHED` if there is no path.
    degree
        uint8[S, S] by destination and source: the number of different first channels of these paths.  Only paths of at
        most ``most_hops`` hops count (see :func:`reach`).  Numbers above 255 are given as 255.
    """

    hops: npt.NDArray[np.uint16]
    degree: npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class TreeRequest:
    """Input of the search for in-trees with link-disjoint paths.

    Attributes
    ----------
    channels
        Channels of the fabric (C).
    weight
        float64[S], number of end ports of each switch.  A destination without end ports gets only one tree.
    inverse_capacity
        float64[C], inverse capacity of each channel; 1 for the slowest channel.
    distance
        uint16[S, S], hops by destination and source, :data:`UNREACHED` if there is no path.
    allowed
        uint8[edges], switch orders, as bits, that allow each CDG edge.
    degree
        uint8[orders, S, S], by switch order, destination and source: number of different first channels of the paths
        that the order allows, at most 255.
    initial
        uint8[S, S] by destination and source: index of the next channel in the first tree of the destination.  The
        paths in these trees are shortest paths.  None: the kernel computes the first trees.
    trees
        Number of trees of each destination, K, at most :data:`MOST_TREES`.
    wanted
        Number of link-disjoint paths that each pair of switches should have.
    most_hops
        Limit of the hops of a path.  A path above the limit is used only if the search finds no path within the limit.
        In the local search, a new path may be above the limit only if it replaces a longer path.
    balance_sweeps
        Maximum number of passes ("sweeps") that balance the first trees.
    sweeps
        Number of passes of the local search over all trees.
    shared
        Whether one switch order has to allow the paths between two switches in all trees.  If False, the switch order
        may differ from tree to tree.
    concentrate
        Whether the first tree of each destination uses few channels, instead of balancing the load.
    seed
        Seed of all random choices.
    """

    channels: Channels
    weight: npt.NDArray[np.float64]
    inverse_capacity: npt.NDArray[np.float64]
    distance: npt.NDArray[np.uint16]
    allowed: npt.NDArray[np.uint8]
    degree: npt.NDArray[np.uint8]
    initial: npt.NDArray[np.uint8] | None
    trees: int
    wanted: int
    most_hops: int
    balance_sweeps: int
    sweeps: int
    shared: bool
    concentrate: bool
    seed: int


@dataclass(frozen=True, eq=False)
class DisjointTrees:
    """K in-trees of each destination.

    Attributes
    ----------
    next_channel
        uint8[S, K, S], by destination, tree and switch: index of the next channel among the channels of the switch, or
        :data:`NO_CHANNEL`.  Destinations without end ports have only the first tree.
    order
        uint8[S, K, S], by destination, tree and source: number of a switch order that allows both the path and its
        reply path.  If ``shared`` is set in the request, the paths between two switches have the same number in all
        trees.  The value is :data:`NO_ORDER` in three cases: no switch order allows both paths, the two switches are in
        different connected parts, or neither of them has end ports.
    load
        float64[2, C], utilisation (flow times inverse capacity) of each channel in all-to-all traffic, for the first
        trees alone, and for all trees together.  In the second case, each flow is added to the channels of its path in
        every tree.
    """

    next_channel: npt.NDArray[np.uint8]
    order: npt.NDArray[np.uint8]
    load: npt.NDArray[np.float64]


def balance_order(channels: Channels, position: npt.NDArray[np.int32], *, steps: int, seed: int) -> None:
    """Improve a switch order, so that more switches have about as many neighbours before them in the order as after
    them.

    Parameters
    ----------
    channels
        Channels of the fabric.
    position
        int32[S], position of each switch; changed in place.
    steps
        Number of attempts to move a switch.
    seed
        Seed of the random choices.

    Notes
    -----
    An attempt takes time in proportion to the number of channels of the switch.  A move also takes time in proportion
    to the number of positions by which the switch moves.
    """
    call(lib.ibn_disjoint_balance_order, len(position), channels.first, channels.dst, steps, seed, position)


def reach(channels: Channels, position: npt.NDArray[np.int32], *, most_hops: int) -> Reach:
    """Return the hops of the shortest paths that lead up and then down in a switch order.

    For each pair of switches, also return the number of different channels with which paths begin.  All paths count
    that lead up and then down and have at most ``most_hops`` hops.  These paths need not be shortest paths.

    ``position`` (int32[S]) is the position of each switch in the order.  Cost: O(S C).
    """
    switches = len(position)
    found = Reach(np.empty((switches, switches), np.uint16), np.empty((switches, switches), np.uint8))
    graph = switches, channels.first, channels.dst
    call(lib.ibn_disjoint_reach, *graph, position, most_hops, found.hops, found.degree)
    return found


def distances(channels: Channels) -> npt.NDArray[np.uint16]:
    """Return the hops between switches, uint16[S, S] by destination and source; :data:`UNREACHED` if there is no path.
    Cost: O(S C).
    """
    switches = len(channels.first) - 1
    hops = np.empty((switches, switches), np.uint16)
    call(lib.ibn_disjoint_distances, switches, channels.first, channels.dst, hops)
    return hops


def _link(channels: Channels) -> npt.NDArray[np.int32]:
    """Return int32[C], the number of each channel's cable.  The numbers are below C, and both channels of a cable have
    the same number.
    """
    return np.minimum(np.arange(len(channels), dtype=np.int32), channels.reverse).astype(np.int32)


def _struct(request: TreeRequest) -> Any:
    """Return the C struct of a request."""
    channels = request.channels
    sizes = {"switches": len(request.weight), "channels": len(channels), "orders": len(request.degree)}
    slot = channels.edges.first.astype(np.int32)
    return struct_of("disjoint_request", request, channels, **sizes, link=_link(channels), slot=slot)


def disjoint_trees(request: TreeRequest) -> DisjointTrees:
    """Compute in-trees for every destination, such that as many paths as possible from a switch to a destination share
    no link.

    Notes
    -----
    Cost: there are S^2 K subtrees, one for each destination, tree and switch.  For each subtree and each channel out of
    its first switch, a pass compares K paths of every switch in the subtree.  Memory: 5 S^2 K bytes.
    """
    switches, trees = len(request.weight), request.trees
    found = DisjointTrees(
        np.empty((switches, trees, switches), np.uint8),
        np.empty((switches, trees, switches), np.uint8),
        np.empty((2, len(request.channels))),
    )
    result = struct_of("disjoint_trees", next=found.next_channel, order=found.order, load=found.load)
    call(lib.ibn_disjoint_trees, _struct(request), result)
    return found


def follow_first(
    request: TreeRequest,
    next_channel: npt.NDArray[np.uint8],
    source: npt.NDArray[np.int32],
    target: npt.NDArray[np.int32],
) -> npt.NDArray[np.uint8]:
    """Replace the paths from given switches to given destinations, in all trees of each destination.  The new path is
    the path in the destination's first tree.

    ``next_channel`` is uint8[S, K, S], the next channels by destination, tree (of K) and switch.  ``source`` and
    ``target`` (int32[pairs] each) are the first switch and the destination of each path.  The result is a new array of
    next channels.
    """
    changed = next_channel.copy()
    call(lib.ibn_disjoint_follow_first, _struct(request), len(source), source, target, changed)
    return changed


def count_disjoint(
    channels: Channels,
    lft: npt.NDArray[np.uint8],
    lid_switch: npt.NDArray[np.int32],
    *,
    group_first: npt.NDArray[np.int32],
    group_lid: npt.NDArray[np.int32],
    source: npt.NDArray[np.bool_],
    most: int,
) -> npt.NDArray[np.uint8]:
    """Count the link-disjoint paths from switches to groups of LIDs.

    Parameters
    ----------
    channels
        Channels of the fabric.
    lft
        uint8[S, L], the forwarding tables.
    lid_switch
        int32[L], switch that delivers each LID.
    group_first, group_lid
        int32[G + 1], int32[N]: the LIDs of group ``g`` are ``group_lid[group_first[g]:group_first[g + 1]]``.  A group
        has 1 to 128 LIDs.
    source
        bool[S], the switches that send.
    most
        Number at which the count stops, at most 8.

    Returns
    -------
    uint8[G, S]
        Size of the largest set of paths of which no two share a link, at most ``most``.  The size is 0 in three cases:
        a path from the switch to the group does not arrive, the switch does not send, or it delivers the group.

    Notes
    -----
    The size is exact.  Cost: O(hops) for each path; at worst, binomial(group size, ``most``) for each pair of switch
    and group.
    """
    found = np.zeros((len(group_first) - 1, len(lft)), np.uint8)
    sends = np.ascontiguousarray(source).astype(np.uint8)
    tables = channels.dst, channels.at_port, _link(channels), np.ascontiguousarray(lft), lid_switch
    groups = len(found), group_first, group_lid
    call(lib.ibn_disjoint_count, len(lft), len(channels), lft.shape[1], *tables, *groups, sends, most, found)
    return found
