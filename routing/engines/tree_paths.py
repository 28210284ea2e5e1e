"""Paths up and then down on trees, for the engines whose rules allow such paths."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import Balanced
from routing._kernels.closed_form import TreeGraph
from routing._kernels.descent import NO_CHANNEL
from routing.engines.base import EngineOptions
from routing.engines.destinations import Destinations, inverse_capacity
from routing.fabric import Fabric
from routing.quality import channel_loads
from routing.trees.closed_form import Leaves, NotATree, channel_indices, route_tree
from routing.trees.descent import LEAST_SWEEPS, affordable_sweeps, ceilings, tree_tables
from routing.trees.levels import TreeOrder, tree_order

OBJECTIVE_REFUSAL = (
    "balances trees for all-to-all traffic and bisections at once",
    "leave the objective out, or use minhop",
)
"""Problem and remedy in the error for an objective other than all-to-all."""

MOST_LONGER = 2
"""Maximum number of hops by which a path may exceed the shortest path."""
MOST_VISITS = 600_000_000
"""Number of allowed channels that the least number of sweeps of the descent may compare, at effort 1: about two
seconds.
"""
TOLERANCE = 0.02
"""Utilisation above a ceiling, relative to the ceiling, up to which the closed form is kept."""
MOST_EXCESS = 0.05
"""Utilisation above a ceiling, relative to the ceiling, up to which the closed form replaces a long descent."""
CLOSED_FORM_PASSES = 2
"""Number of passes of the closed form over entries that it leaves open."""


@dataclass(frozen=True, eq=False)
class TreePaths:
    """Trees of all destinations that follow one order of the switches, so that they are free of credit loops on one VL.

    Attributes
    ----------
    order
        Levels and order of the switches.
    trees
        The trees.
    """

    order: TreeOrder
    trees: Balanced


def tree_paths(fabric: Fabric, destinations: Destinations, options: EngineOptions) -> TreePaths | None:
    """Return paths that suit both all-to-all traffic and bisections; None if the fabric is not a tree, or is too large.

    Cost: see :func:`routing.trees.descent.tree_tables`.
    """
    order = tree_order(fabric)
    if order is None or order.longer > MOST_LONGER:
        return None
    sweeps = affordable_sweeps(fabric, len(destinations.lid), options.effort)
    if sweeps == 0:
        return None
    if options.passes is not None:
        sweeps = options.passes + 1
    elif not may_descend(fabric, destinations, options):
        closed = _closed_form_paths(fabric, destinations, order, options)
        if closed is not None:
            return closed
    trees = tree_tables(
        fabric,
        order,
        destinations.targets(),
        lid=destinations.lid,
        inverse_capacity=inverse_capacity(fabric, options.link_weights),
        sources=fabric.source_weight_at.astype(np.float64),
        sweeps=sweeps,
        seed=options.seed,
    )
    return TreePaths(order, trees)


def may_descend(fabric: Fabric, destinations: Destinations, options: EngineOptions) -> bool:
    """Return whether the effort allows even the least number of sweeps of the descent."""
    return LEAST_SWEEPS * len(destinations.lid) * len(fabric.channels) / 2 <= MOST_VISITS * options.effort


def excess_utilisation(
    fabric: Fabric,
    destinations: Destinations,
    lft: npt.NDArray[np.uint8],
    level: npt.NDArray[np.int32],
    options: EngineOptions,
) -> npt.NDArray[np.float64]:
    """Return float64[C], the utilisation of each channel above its ceiling, relative to the ceiling; 0 below it.

    Parameters
    ----------
    fabric, destinations, options
        The fabric, its destinations, and the options of the engine.
    lft, level
        The tables (uint8[S, L]), and the level of each switch (int32[S]).
    """
    inverse_rate = inverse_capacity(fabric, options.link_weights)
    mass = np.bincount(destinations.root, destinations.share, fabric.switches).astype(np.float64)
    limit = ceilings(fabric, level, inverse_rate, fabric.source_weight_at.astype(np.float64), mass)[0]
    return np.maximum(channel_loads(fabric, lft, threads=options.threads) * inverse_rate / limit - 1.0, 0.0)


def _closed_form_paths(
    fabric: Fabric, destinations: Destinations, order: TreeOrder, options: EngineOptions
) -> TreePaths | None:
    """Return the paths of the closed form, if they are as good as those of a long descent would be.

    The paths must be shortest, go up and then down the levels of the order, and keep all channels under their ceilings.
    On a tree with 27,648 CAs the descent takes a minute, and the closed form a few seconds.
    """
    inverse_rate = inverse_capacity(fabric, options.link_weights)
    leaves = Leaves(np.ones(fabric.endports, bool))
    try:
        tables, level = route_tree(fabric, leaves, inverse_rate, passes=CLOSED_FORM_PASSES, threads=options.threads)
    except NotATree:
        return None
    if order.longer > 0 or not np.array_equal(level, order.level):
        return None
    if excess_utilisation(fabric, destinations, tables.lft, level, options).max(initial=0.0) > MOST_EXCESS:
        return None
    load = channel_loads(fabric, tables.lft, threads=options.threads)
    position = TreeGraph.of(fabric.channels, level, inverse_rate).position
    found = channel_indices(fabric, tables.lft, destinations.lid)
    if not _all_shortest(fabric, destinations, load) or not _up_then_down(fabric, found, position):
        return None
    trees = Balanced(found, load, np.array([float((load * inverse_rate).max(initial=0.0))]))
    return TreePaths(TreeOrder(level, position, 0), trees)


def _all_shortest(fabric: Fabric, destinations: Destinations, load: npt.NDArray[np.float64]) -> bool:
    """Return whether all flows have shortest paths.  This is the case if the loads add up to the sum of the flows times
    their distances.
    """
    sources = fabric.source_weight_at.astype(np.float64)
    mass = np.bincount(destinations.root, destinations.share, fabric.switches).astype(np.float64)
    senders, receivers = np.flatnonzero(sources), np.flatnonzero(mass)
    distance = np.asarray(fabric.graph.distances(senders.tolist(), receivers.tolist()), float)
    # If there are no senders, the graph returns a list without rows.
    distance = distance.reshape(len(senders), len(receivers))
    distance[~np.isfinite(distance)] = 0.0  # Two switches in different connected components exchange no flow.
    return bool(np.isclose(float(load.sum()), float(sources[senders] @ distance @ mass[receivers]), rtol=1e-9))


def _up_then_down(fabric: Fabric, next_channel: npt.NDArray[np.uint8], position: npt.NDArray[np.int32]) -> bool:
    """Return whether no path goes down, to a higher position (int32[S]), and then up.

    ``next_channel`` is uint8[D, S], the index of each switch's channel.  Cost: O(D S).
    """
    channels = fabric.channels
    # The last element stands for the end of a path, which counts as a channel down.
    is_down = np.append(position[channels.dst] > position[channels.src], True)
    first, none = channels.first.astype(np.int64), len(channels)
    for switch in range(fabric.switches):
        own = np.zeros(256, bool)
        own[: first[switch + 1] - first[switch]] = is_down[first[switch] : first[switch + 1]]
        rows = np.flatnonzero(own[next_channel[:, switch]])
        after = channels.dst[first[switch] + next_channel[rows, switch]]
        index = next_channel[rows, after]
        if not is_down[np.where(index == NO_CHANNEL, none, first[after] + index)].all():
            return False
    return True


def only_shortest(
    fabric: Fabric, destinations: Destinations, paths: TreePaths, idle: npt.NDArray[np.uint8]
) -> Balanced | None:
    """Return the trees with shortest paths from all switches; None if a path between end ports is longer.

    Trees of destinations without flow are those of ``idle``, uint8[D, S].
    """
    if paths.order.longer > 0:
        return None
    channels = fabric.channels
    roots, row = np.unique(destinations.root, return_inverse=True)
    shortest = np.asarray(fabric.graph.distances(source=roots.tolist(), mode="in"), float)
    next_channel = np.where(destinations.share[:, None] > 0, paths.trees.next_channel, idle)
    for target in np.flatnonzero(destinations.share > 0).tolist():
        _shorten(channels.first, channels.dst, shortest[row[target]], next_channel[target])
    return replace(paths.trees, next_channel=next_channel)


def _shorten(
    first: npt.NDArray[np.int32],
    dst: npt.NDArray[np.int32],
    distance: npt.NDArray[np.float64],
    next_channel: npt.NDArray[np.uint8],
) -> None:
    """Replace next hops that do not lead one hop nearer (``distance``: float64[S]) by the switch's first channel that
    does.
    """
    routed = np.flatnonzero(np.isfinite(distance) & (distance > 0))
    found = dst[first[routed] + next_channel[routed]]
    for switch in routed[distance[found] != distance[routed] - 1].tolist():
        nearer = distance[dst[first[switch] : first[switch + 1]]] == distance[switch] - 1
        next_channel[switch] = int(nearer.argmax())
