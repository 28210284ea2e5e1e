"""Kernel wrapper: compute an order of the switches for Up*/Down* routing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, lib
from routing.fabric import Channels


def build_order(channels: Channels, key: npt.NDArray[np.float64], *, pull: float) -> npt.NDArray[np.int32]:
    """Return int32[S], the position of each switch in a switch order.  Each switch, except the first one of each
    connected part, has a neighbour before it in the order.

    Each connected part begins with its switch of the smallest ``key`` (float64[S]).  Each further switch is one of the
    neighbours of the switches placed so far: the neighbour with the smallest value of ``key - pull * n``.  Here, ``n``
    is the number of channels from placed switches to the neighbour.  If ``pull`` is 0, the keys alone decide.  If
    ``pull`` is 1 and all keys are in [0, 1), this is maximum cardinality search, and the keys break ties (R. E. Tarjan,
    M. Yannakakis, SIAM J. Comput. 13, 1984).  Cost: O(C log C).
    """
    position = np.empty(len(key), np.int32)
    call(lib.ibn_trees_grow_order, len(key), channels.first, channels.dst, key, pull, position)
    return position


def mean_distance(channels: Channels, weight: npt.NDArray[np.int64], *, threads: int) -> npt.NDArray[np.float64]:
    """Compute the weighted mean number of hops from each switch to several sets of switches.

    Each row of ``weight`` (int64[layers, S]) stands for one set, and has the weight of each switch in the set.  The
    result is float64[layers, S].  A switch in another connected part counts as S hops away.  Cost: O(C) for each set
    and each switch with a weight.
    """
    layers, switches = weight.shape
    mean = np.empty((layers, switches))
    graph = switches, channels.first, channels.dst
    call(lib.ibn_trees_mean_distance, *graph, layers, weight, threads, mean)
    return mean
