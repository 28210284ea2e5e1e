"""Kernel wrapper: topological order and shortest cycle of a directed graph in compressed rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, pointer


def order(first: npt.NDArray[np.int32], to: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int32], int]:
    """Topological order by Kahn's algorithm (1962).

    Parameters
    ----------
    first, to
        int32[n+1], int32[m]: what follows ``v`` is ``to[first[v]:first[v+1]]``.

    Returns
    -------
    place
        int32[n], -1 for what lies on a cycle or behind one.
    placed
        How many have a place; n if and only if there is no cycle.  Cost: O(n + m).
    """
    n = len(first) - 1
    place, placed = np.empty(n, np.int32), ffi.new("int32_t *")
    check(lib.ibn_digraph_order(n, pointer(first), pointer(to), pointer(place), placed))
    return place, int(placed[0])


def shortest_cycle(first: npt.NDArray[np.int32], to: npt.NDArray[np.int32], *, enough: int = 0) -> list[int]:
    """A shortest cycle (the one found from the lowest vertex), or nothing.

    ``enough`` is a length known to be the least that there can be, at which the search may end.  Cost: a breadth-first
    search from every vertex between cycles, no deeper than the best so far.
    """
    n = len(first) - 1
    cycle, length = np.empty(n, np.int32), ffi.new("int32_t *")
    check(lib.ibn_digraph_cycle(n, pointer(first), pointer(to), enough, pointer(cycle), length))
    return [int(v) for v in cycle[: length[0]]]
