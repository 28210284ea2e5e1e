"""Wrapper of the Nue kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import Targets, network_of, targets_of
from routing._kernels.native import check, ffi, lib, point, pointer
from routing.fabric import Channels


@dataclass(frozen=True, eq=False)
class Grown:
    """Trees for all destinations, each in its layer.

    Attributes
    ----------
    next_channel
        uint8[D, S], index of the chosen channel among those of the switch, 255 at the root and where there is no way.
    layer
        int32[D], the layer of each destination.
    escaped
        int32[D], switches that had to take the escape tree towards each destination.
    load
        float64[C], flow on each channel.
    worst
        float64[passes + 1], load over capacity of the fullest channel after each pass, 0 for passes left
        out because the last ones had gained nothing; the best pass is returned.
    """

    next_channel: npt.NDArray[np.uint8]
    layer: npt.NDArray[np.int32]
    escaped: npt.NDArray[np.int32]
    load: npt.NDArray[np.float64]
    worst: npt.NDArray[np.float64]


def grow(
    channels: Channels,
    slowness: npt.NDArray[np.float64],
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
) -> Grown:
    """Lay trees without a cycle of channel dependencies in any layer.

    Parameters
    ----------
    channels, slowness, sources, targets
        As for :func:`routing._kernels.balance.balance`; ``targets.layer`` is the layer of each destination, the same
        for all of a family.
    parent
        int32[layers, S], the escape tree of each layer: the channel of each switch towards the root, -1 at the root.
    rank
        float64[layers, C], the first order of the channels: smaller ones are better taken first on a way.
    start
        uint8[D, S], trees to begin with: of the same layers, free of cycles.
    passes
        Refinement passes after the first (or after the start).
    full_passes
        Passes, the first among them, that lay every tree; the others lay those over the fullest channels.
    seed
        Of the order in which destinations, and switches of one wave, are laid.
    threads
        Worker threads; no influence on the result.
    hop_cost
        What every hop costs beside the load (1 is the cost of the fullest channel).

    Notes
    -----
    Cost: O(D (C + S hops)) a pass and the searches for cycles; memory D S bytes and 6 C radix bytes a layer.
    """
    switches, count = len(sources), len(targets.root)
    network, aims = network_of(channels, slowness, sources), targets_of(targets)
    aims.layer = ffi.NULL  # the layers are those of the result, where Nue may change them
    options = ffi.new("ibn_nue_options *")
    options.layers, options.passes, options.threads, options.seed = len(parent), passes, threads, seed
    options.started, options.hop_cost = int(start is not None), hop_cost
    options.full_passes = full_passes
    point(options, parent=parent, rank=rank, reverse=channels.reverse)
    result = Grown(
        next_channel=np.full((count, switches), 255, np.uint8) if start is None else start.copy(),
        layer=targets.layer.copy(),
        escaped=np.zeros(count, np.int32),
        load=np.zeros(len(channels)),
        worst=np.zeros(passes + 1),
    )
    check(
        lib.ibn_nue(
            network,
            aims,
            options,
            pointer(result.next_channel),
            pointer(result.layer),
            pointer(result.escaped),
            pointer(result.load),
            pointer(result.worst),
        )
    )
    return result
