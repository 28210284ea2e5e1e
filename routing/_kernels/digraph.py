"""Kernel wrapper: topological order and shortest cycle of a directed graph, given by lists of successors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, ffi, lib


def order(first: npt.NDArray[np.int32], to: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int32], int]:
    """Compute a topological order by Kahn's algorithm (1962).

    Parameters
    ----------
    first, to
        int32[n+1], int32[m]: the successors of vertex ``v`` are ``to[first[v]:first[v+1]]``.

    Returns
    -------
    position : int32[n]
        Position of each vertex, -1 for vertices on a cycle or downstream of a cycle.
    placed : int
        Number of vertices with a position; n if and only if the graph is acyclic.

    Notes
    -----
    Cost: O(n + m).
    """
    n = len(first) - 1
    position, placed = np.empty(n, np.int32), ffi.new("int32_t *")
    call(lib.ibn_core_digraph_sort, n, first, to, position, placed)
    return position, int(placed[0])


def shortest_cycle(first: npt.NDArray[np.int32], to: npt.NDArray[np.int32], *, enough: int = 0) -> list[int]:
    """Return the vertices of a shortest cycle, or an empty list if there is no cycle.

    The successors of vertex ``v`` are ``to[first[v]:first[v+1]]``.  Among several shortest cycles, the cycle with the
    lowest start vertex is returned.  ``enough`` is a lower bound of the length: the search ends at the first cycle of
    this length.  Cost: a breadth-first search from every vertex on a cycle or between cycles, no deeper than the
    shortest cycle found so far.
    """
    n = len(first) - 1
    cycle, length = np.empty(n, np.int32), ffi.new("int32_t *")
    call(lib.ibn_core_digraph_find_cycle, n, first, to, enough, cycle, length)
    return [int(v) for v in cycle[: length[0]]]
