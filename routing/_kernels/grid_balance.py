"""Kernel wrapper: balance the trees of a grid by moving single switches to other next hops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, ffi, lib, struct_of
from routing._kernels.symmetric_paths import LinkBundles


@dataclass(frozen=True, eq=False)
class FlowTrees:
    """Trees of paths towards switches, and the traffic on these trees.

    Attributes
    ----------
    roots
        int32[T], destination of each tree.
    hop, regular
        uint8[T, S] each, by tree and switch.  ``hop`` is the index of the bundle by which the switch sends, 255 if
        there is no path.  ``regular`` is 1 if the path is a regular path, else 0.
    hops
        int32[T, S], number of hops to the destination, -1 for no path.
    flow, load
        ``flow`` is float64[T, S], the traffic through each switch in each tree.  ``load`` is float64[N], the traffic on
        each of the N bundles of parallel links.
    """

    roots: npt.NDArray[np.int32]
    hop: npt.NDArray[np.uint8]
    regular: npt.NDArray[np.uint8]
    hops: npt.NDArray[np.int32]
    flow: npt.NDArray[np.float64]
    load: npt.NDArray[np.float64]


def balance_trees(bundles: LinkBundles, trees: FlowTrees, *, longer: int, visits: int) -> int:
    """Lower the highest utilisation of the bundles, by changing the arrays of ``trees`` in place.

    A move gives a switch another next hop in one tree.  After a move, the paths of this switch, and of all switches
    that send through it, count as irregular: their ``regular`` is set to 0.

    Parameters
    ----------
    bundles, trees
        Bundles of parallel links, and the trees.
    longer
        Number of hops by which a move may make a path longer.
    visits
        Number of switches that the search may visit.

    Returns
    -------
    int
        Number of switches that the search has visited.

    Notes
    -----
    Cost of a move: O(T + N), and O(S degree) for each examined tree.
    """
    switches = len(bundles.first) - 1
    src = np.repeat(np.arange(switches, dtype=np.int32), np.diff(bundles.first))
    sizes = {"switches": switches, "bundles": len(bundles.dst), "trees": len(trees.roots)}
    struct = struct_of("ibn_grid_trees", bundles, trees, **sizes, longer=longer, src=src, root=trees.roots)
    count = ffi.new("int64_t *", max(visits, 0))
    call(lib.ibn_trees_balance_grid, struct, count)
    return int(count[0])
