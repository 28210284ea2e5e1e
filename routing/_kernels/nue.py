"""Kernel wrapper: compute the trees of the Nue engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import Targets, network_of, targets_of
from routing._kernels.native import call, ffi, lib, struct_of
from routing.fabric import Channels


@dataclass(frozen=True, eq=False)
class NueTrees:
    """Trees of all destinations, each in its layer.

    Attributes
    ----------
    next_channel
        uint8[D, S], index of the chosen channel among the channels of the switch; 255 at the root and where there is no
        path.
    layer
        int32[D], the layer of each destination.
    escaped
        int32[D], number of switches that use the escape tree towards each destination.
    load
        float64[C], flow on each channel.
    max_utilisation
        float64[passes + 1], highest utilisation after each pass.  If several passes in succession do not lower the
        highest utilisation, no further pass is made; the values of the omitted passes are 0.  The trees and loads
        come from the best pass.
    """

    next_channel: npt.NDArray[np.uint8]
    layer: npt.NDArray[np.int32]
    escaped: npt.NDArray[np.int32]
    load: npt.NDArray[np.float64]
    max_utilisation: npt.NDArray[np.float64]


def nue_trees(
    channels: Channels,
    inverse_capacity: npt.NDArray[np.float64],
    sources: npt.NDArray[np.float64],
    targets: Targets,
    *,
    parent: npt.NDArray[np.int32],
    rank: npt.NDArray[np.float64],
    start: npt.NDArray[np.uint8] | None = None,
    passes: int,
    full_passes: int = 2,
    seed: int,
    threads: int,
    hop_cost: float = 0.0,
) -> NueTrees:
    """Compute trees whose channel dependencies are acyclic in every layer.

    Parameters
    ----------
    channels
        The channels of the fabric.
    inverse_capacity
        float64[C], inverse capacity of each channel.
    sources
        float64[S], flow that each switch sends to every LMC group.
    targets
        The destinations.  ``targets.layer`` is the layer of each destination, equal for all LIDs of an LMC group.
    parent
        int32[layers, S], the escape tree of each layer: the channel from each switch to its parent, -1 at the root.
    rank
        float64[layers, C], rank of each channel in the initial order of each layer; paths should use channels in the
        order of their ranks.
    start
        uint8[D, S], trees to begin with; their dependencies must be acyclic in the layers of ``targets``.
    passes
        Number of refinement passes, which follow the first pass (or the trees in ``start``).
    full_passes
        Number of passes, including the first pass, that compute every tree.  Later passes recompute only trees that use
        a channel close to the highest utilisation.
    seed
        Seed of the random numbers by which destinations, and switches at equal distance, are shuffled.
    threads
        Worker threads; they do not change the result.
    hop_cost
        Cost of every hop, in addition to the cost of the load on its channel.  The load of the channel with the highest
        utilisation costs 1.

    Notes
    -----
    Cost: O(D (C + S hops)) per pass, and the searches for cycles; memory D S bytes, and 6 C radix bytes per layer.
    """
    switches, count = len(sources), len(targets.root)
    network, aims = network_of(channels, inverse_capacity, sources), targets_of(targets)
    # The kernel overwrites the layers of the destinations.  So a separate argument passes a copy of the layers.
    aims.layer = ffi.NULL
    work = {"passes": passes, "full_passes": full_passes, "threads": threads, "seed": seed, "hop_cost": hop_cost}
    options = struct_of(
        "ibn_nue_options", channels, **work, layers=len(parent), started=start is not None, parent=parent, rank=rank
    )
    result = NueTrees(
        next_channel=np.full((count, switches), 255, np.uint8) if start is None else start.copy(),
        layer=targets.layer.copy(),
        escaped=np.zeros(count, np.int32),
        load=np.zeros(len(channels)),
        max_utilisation=np.zeros(passes + 1),
    )
    trees = result.next_channel, result.layer, result.escaped, result.load, result.max_utilisation
    call(lib.ibn_nue_route, network, aims, options, *trees)
    return result
