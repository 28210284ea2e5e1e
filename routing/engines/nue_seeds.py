"""Seeds of Nue's layers: an escape tree and an initial order of the channels for each layer.

Each dependency that a layer uses excludes other dependencies, so the seed determines most of the result.  There are two
kinds:

*region*: the escape tree is a breadth-first tree of the switch nearest to all destinations of the layer.  Channels are
ordered by their distance from these destinations.  Paths towards a region of the fabric then agree with the
initial order, and only dependencies inside the region can conflict with it.

*updn*: the escape tree and the order of the channels come from one order of the switches.  In the escape tree, each
switch uses the channel to its first neighbour in the order.  The seed also has Up*/Down* trees for this order of the
switches.  The passes of the engine then change these trees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.order import mean_distance
from routing.engines.destinations import Destinations
from routing.fabric import Fabric


@dataclass(frozen=True, eq=False)
class Seeds:
    """Seeds of all layers: escape trees and initial orders of the channels.

    Attributes
    ----------
    name
        Kind of the seeds.
    parent
        int32[layers, S], channel of each switch towards the root of the escape tree; -1 at a root.
    rank
        float64[layers, C], sort key of the initial order: smaller for channels that come earlier on paths.
    start
        uint8[D, S], initial trees, or None.
    """

    name: str
    parent: npt.NDArray[np.int32]
    rank: npt.NDArray[np.float64]
    start: npt.NDArray[np.uint8] | None = None


def by_region(
    fabric: Fabric, destinations: Destinations, layer: npt.NDArray[np.int32], layers: int, threads: int
) -> Seeds:
    """Return seeds in which channels are ordered by their distance from the destinations of each layer.

    ``layer`` (int32[D]) is the layer of each destination, and ``layers`` the number of layers.

    Cost: O(C) for each switch that delivers a destination.
    """
    channels = fabric.channels
    mean = mean_distance(channels, _weights(fabric, destinations, layer, layers), threads=threads)
    rank = -(mean[:, channels.src] + mean[:, channels.dst])
    parent = [_tree_towards(fabric, _nearest_of_each_part(fabric, row)) for row in mean]
    return Seeds("region", np.stack(parent), np.ascontiguousarray(rank))


def by_order(fabric: Fabric, position: npt.NDArray[np.int32]) -> Seeds:
    """Return seeds that follow an order of the switches in each layer.

    ``position`` (int32[layers, S]) is the position of each switch in the order of each layer.
    """
    src, dst = fabric.channels.src, fabric.channels.dst
    before, after = position[:, src].astype(np.float64), position[:, dst].astype(np.float64)
    rank = np.where(after < before, -before, fabric.switches + before)
    parent = [_first(fabric, np.flatnonzero(row[dst] < row[src]), row[dst]) for row in position]
    return Seeds("order", np.stack(parent), np.ascontiguousarray(rank))


def _weights(
    fabric: Fabric, destinations: Destinations, layer: npt.NDArray[np.int32], layers: int
) -> npt.NDArray[np.int64]:
    """Return int64[layers, S], for each layer the number of LIDs with flow that each switch delivers.  In a layer
    without flow, all LIDs of the layer count.
    """
    weight = np.zeros((layers, fabric.switches), np.int64)
    idle = np.zeros_like(weight)
    flow = destinations.share > 0.0
    np.add.at(weight, (layer[flow], destinations.root[flow]), 1)
    np.add.at(idle, (layer, destinations.root), 1)
    return np.where(weight.any(axis=1, keepdims=True), weight, idle)


def _nearest_of_each_part(fabric: Fabric, mean: npt.NDArray[np.float64]) -> list[int]:
    """Return, for each connected component, the switch with the least mean distance to the destinations of a layer.

    ``mean`` (float64[S]) is this mean distance of each switch.  Switches that have no channel are left out.
    """
    cabled = np.flatnonzero(np.diff(fabric.channels.first))
    nearest_first = cabled[np.lexsort((cabled, mean[cabled]))]
    _, positions = np.unique(fabric.component[nearest_first], return_index=True)
    return [int(switch) for switch in nearest_first[positions]]


def _tree_towards(fabric: Fabric, roots: list[int]) -> npt.NDArray[np.int32]:
    """Return int32[S], the channel from each switch that leads one hop nearer to the nearest root; -1 at the roots.

    If several channels lead nearer to this root, the channel with the lowest number is taken.
    """
    if not roots:
        return np.full(fabric.switches, -1, np.int32)
    src, dst = fabric.channels.src, fabric.channels.dst
    distance = np.asarray(fabric.graph.distances(source=roots, mode="out"), float).min(axis=0)
    return _first(fabric, np.flatnonzero(distance[dst] < distance[src]), np.zeros(len(src)))


def _first(
    fabric: Fabric, allowed: npt.NDArray[np.intp], key: npt.NDArray[np.floating] | npt.NDArray[np.integer]
) -> npt.NDArray[np.int32]:
    """Return int32[S], for each switch the allowed channel with the smallest key; -1 if no channel is allowed."""
    src = fabric.channels.src
    ordered = allowed[np.lexsort((allowed, key[allowed], src[allowed]))]
    switch, positions = np.unique(src[ordered], return_index=True)
    parent = np.full(fabric.switches, -1, np.int32)
    parent[switch] = ordered[positions]
    return parent
