"""Compute the traffic through each switch of a grid, for the routing tree of each destination."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.symmetric_paths import LinkBundles
from routing.fabric import Fabric
from routing.grids.detours import count_hops, next_switches

Rows = npt.NDArray[np.int64]


def tree_flow(fabric: Fabric, bundles: LinkBundles, hop: npt.NDArray[np.uint8], roots: Rows) -> npt.NDArray[np.float64]:
    """Return float64[D, S], the traffic of all end ports that passes each switch towards each destination.

    ``hop`` (uint8[D, S]) is the bundle by which each switch sends to each destination, as an index among the bundles of
    the switch.  ``roots`` (int64[D]) has the switches of the destinations.
    """
    switches = fabric.switches
    flow = np.tile(fabric.source_weight_at.astype(np.float64), (len(roots), 1))
    following = next_switches(bundles, hop, roots)
    hops = count_hops(following, roots)
    by_hops = np.argsort(-hops, axis=None, kind="stable")
    trees, rows = np.divmod(by_hops, switches)
    distance = hops.ravel()[by_hops]
    for level in range(int(hops.max(initial=0)), 0, -1):
        low, high = np.searchsorted(-distance, [-level, -level + 1])
        tree, row = trees[low:high], rows[low:high]
        np.add.at(flow, (tree, following[tree, row]), flow[tree, row])
    return flow
