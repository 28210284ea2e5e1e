"""Paths up and then down on trees, for the engines whose rules allow them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import Balanced
from routing.engines.base import EngineOptions
from routing.engines.destinations import Destinations, inverse_capacity
from routing.fabric import Fabric
from routing.trees.descent import affordable_sweeps, tree_tables
from routing.trees.levels import TreeOrder, tree_order

OBJECTIVE_REFUSAL = (
    "balances trees for all-to-all traffic and bisections at once",
    "leave the objective out, or use minhop",
)
"""Problem and remedy of the error for another objective than all-to-all."""

MOST_LONGER = 2
"""Most hops by which a path may exceed the shortest."""


@dataclass(frozen=True, eq=False)
class TreePaths:
    """Trees of all destinations in one order of the switches, so that one VL is free of credit loops.

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
    """Return paths that suit all-to-all traffic and bisections; None if the fabric is not a tree, or too large.

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
    """Give each switch whose next hop is not one hop nearer (distance: float64[S]) its first channel that is."""
    routed = np.flatnonzero(np.isfinite(distance) & (distance > 0))
    found = dst[first[routed] + next_channel[routed]]
    for switch in routed[distance[found] != distance[routed] - 1].tolist():
        nearer = distance[dst[first[switch] : first[switch + 1]]] == distance[switch] - 1
        next_channel[switch] = int(nearer.argmax())
