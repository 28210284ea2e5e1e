"""Kernel wrapper: select a set of CDG edges (turns) without a cycle, to which no further edge can be added."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, lib


def maximal_turns(
    graph: Sequence[npt.NDArray[np.int32]], edges: int, sequence: npt.NDArray[np.int32], order: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """Select CDG edges one after the other.  An edge is left out if it closes a cycle with the edges selected before.

    Parameters
    ----------
    graph
        Five int32 arrays that describe C channels, or C bundles of parallel channels: ``first``, ``src``, ``dst``,
        ``into`` and ``into_first``.  The arrays have the meaning that they have in :class:`~routing.fabric.Channels`.
    edges
        Number of possible CDG edges, M.
    sequence
        int32[N], numbers of N CDG edges in the order of :meth:`~routing.edges.Edges.channels`, each at most once.
        Edges that are not in ``sequence`` are not selected.
    order
        int32[C], position of each channel in an initial order, which changes only the run time.

    Returns
    -------
    allowed : uint8[M]
        For each of the M possible CDG edges: 1 if the edge is selected, else 0.
    order : int32[C]
        Position of each channel in a topological order of the selected edges.  A later call with a similar sequence is
        fastest with this initial order.

    Notes
    -----
    The incremental topological order follows D. J. Pearce, P. H. J. Kelly, "A dynamic topological sort algorithm for
    directed acyclic graphs", ACM J. Exp. Algorithmics 11, 2007.
    """
    allowed, order, (first, src, *_) = np.zeros(edges, np.uint8), order.copy(), graph
    call(lib.ibn_cdg_maximal_turns, len(first) - 1, len(src), *graph, order, sequence, len(sequence), allowed)
    return allowed, order
