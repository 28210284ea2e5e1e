"""Kernel wrapper: compute paths of least weight."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import Balanced, Targets, network_of, targets_of
from routing._kernels.native import call, lib
from routing.fabric import Channels


def weighted(
    channels: Channels,
    inverse_capacity: npt.NDArray[np.float64],
    sources: npt.NDArray[np.float64],
    targets: Targets,
    *,
    first_weight: float = 1.0,
) -> Balanced:
    """Compute trees of least weight, one destination after the other.

    The weight of a channel is inverse capacity * (``first_weight`` + flow).  Here, flow is the channel's flow to the
    destinations routed so far.  So paths make detours around loaded channels.

    Parameters
    ----------
    channels
        The channels of the fabric.
    inverse_capacity
        float64[C], inverse capacity of each channel.
    sources
        float64[S], flow that each switch sends to every LMC group.
    targets
        The destinations.
    first_weight
        Initial weight of a channel with inverse capacity 1, in units of flow; above 0.

    Notes
    -----
    This is the rule of T. Hoefler, T. Schneider, A. Lumsdaine, "Optimized routing for large-scale InfiniBand
    networks", HOTI 2009, with E. W. Dijkstra's algorithm.  Cost: O(D C log C).
    """
    trees = np.full((len(targets.root), len(sources)), 255, np.uint8)
    load = np.zeros(len(channels))
    network, aims = network_of(channels, inverse_capacity, sources), targets_of(targets)
    call(lib.ibn_trees_weighted, network, aims, first_weight, trees, load)
    return Balanced(trees, load, np.array([(load * inverse_capacity).max(initial=0.0)]))
