"""Balance dimension-ordered paths around missing links: move paths away from the channels with the highest load."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from routing._kernels.grid_balance import FlowTrees, balance_trees
from routing._kernels.symmetric_paths import LinkBundles
from routing.engines.grid_flow import tree_flow
from routing.fabric import Fabric
from routing.grids.coordinates import Coordinates, Kind, axes_inside
from routing.grids.detours import count_hops, next_switches
from routing.grids.paths import NONE, GridPaths

VISITS = 150_000_000
"""Number of switches that the search may visit at effort 1, which takes about two seconds."""

LONGER = 2
"""Number of hops by which a new next hop may make a path longer."""

Floats = npt.NDArray[np.float64]


def missing_links(fabric: Fabric, coordinates: Coordinates, bundles: LinkBundles) -> int:
    """Return the number of links and switches that are missing in the grids.

    In each dimension of a grid, every bundle should have as many parallel links as the largest bundle.  The links that
    a bundle lacks to this number count as missing.
    """
    src, size, missing = np.repeat(np.arange(fabric.switches), np.diff(bundles.first)), np.bincount(bundles.of), 0
    for grid in coordinates.grids:
        inside, axis = axes_inside(grid, src, bundles.dst)
        missing += int(np.prod(grid.size)) - len(grid.switches)
        for one, (length, kind) in enumerate(zip(grid.size, grid.kind, strict=True)):
            per_row = {Kind.LINE: length - 1, Kind.RING: length, Kind.CLIQUE: length * (length - 1) // 2}[kind]
            own = size[inside[axis == one]]
            missing += len(grid.switches) * per_row // length * int(own.max(initial=0)) - int(own.sum()) // 2
    return missing


def balance_detours(
    fabric: Fabric, bundles: LinkBundles, paths: GridPaths, weight: Floats, *, visits: int
) -> tuple[GridPaths, int]:
    """Balance paths around missing links.

    If a link of a ring or row is missing, dimension order sends all traffic around the missing link on one side.  Each
    step of this search gives one switch another next hop towards one destination.  This also changes the paths of all
    switches upstream of the switch.  Changed paths count as detours.

    Parameters
    ----------
    fabric, bundles, paths
        The fabric, its bundles of parallel links, and the paths.
    weight
        float64[2, S], traffic by set of paths (0 or 1, see :class:`GridPaths`) and destination.
    visits
        Number of switches that the search may visit.

    Returns
    -------
    paths : GridPaths
        Paths with a lower highest utilisation.
    visits : int
        Number of switches that the search has visited.
    """
    switches = fabric.switches
    roots, hop = np.tile(np.arange(switches), 2), paths.hop.reshape(-1, switches).copy()
    flow = tree_flow(fabric, bundles, hop, roots) * weight.reshape(-1, 1)
    load = np.zeros(len(bundles.dst))
    tree, switch = np.nonzero(hop != NONE)
    np.add.at(load, bundles.first[switch] + hop[tree, switch].astype(np.int64), flow[tree, switch])
    unmoved = paths.regular.reshape(-1, switches).astype(np.uint8)
    hops = count_hops(next_switches(bundles, hop, roots), roots).astype(np.int32)
    trees = FlowTrees(roots.astype(np.int32), hop, unmoved, hops, flow, load)
    visited = balance_trees(bundles, trees, longer=LONGER, visits=visits)
    regular = unmoved.astype(np.bool_).reshape(paths.regular.shape)
    return replace(paths, hop=hop.reshape(paths.hop.shape), regular=regular), visited
