"""Wrapper of the balancing kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, point, pointer
from routing.fabric import Channels


@dataclass(frozen=True, eq=False)
class Targets:
    """Destinations, grouped into families (the LIDs of one port).

    Attributes
    ----------
    family_first
        int32[F+1]; the destinations of family ``f`` are ``family_first[f]:family_first[f+1]``.
    root
        int32[D], the switch that delivers each destination.
    share
        float64[D], part of a source's flow towards the family that takes this LID; 0: carries next to nothing, so
        that its tree takes a fixed choice among the allowed channels and adds no load.
    layer
        int32[D], which order of the switches the destination is laid in (up/down rule only).
    """

    family_first: npt.NDArray[np.int32]
    root: npt.NDArray[np.int32]
    share: npt.NDArray[np.float64]
    layer: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Balanced:
    """Trees for all destinations.

    Attributes
    ----------
    next_channel
        uint8[D, S], index of the chosen channel among those of the switch, 255 at the root and where there is no way.
    load
        float64[C], flow on each channel.
    worst
        float64[passes + 1], load over capacity of the fullest channel after each pass; the best pass is returned.
    """

    next_channel: npt.NDArray[np.uint8]
    load: npt.NDArray[np.float64]
    worst: npt.NDArray[np.float64]


def network_of(channels: Channels, slowness: npt.NDArray[np.float64], sources: npt.NDArray[np.float64]) -> Any:
    """The channels and who sends, for the kernels; the caller keeps the arrays alive."""
    network = ffi.new("ibn_network *")
    network.switches, network.channels = len(sources), len(channels)
    point(network, first=channels.first, src=channels.src, dst=channels.dst, into=channels.into)
    point(network, into_first=channels.into_first, slowness=slowness, sources=sources)
    return network


def targets_of(targets: Targets) -> Any:
    """The destinations, for the kernels; the caller keeps the arrays alive."""
    aims = ffi.new("ibn_targets *")
    aims.count, aims.families = len(targets.root), len(targets.family_first) - 1
    point(aims, family_first=targets.family_first, root=targets.root, layer=targets.layer, share=targets.share)
    return aims


def balance(
    channels: Channels,
    slowness: npt.NDArray[np.float64],
    sources: npt.NDArray[np.float64],
    targets: Targets,
    *,
    position: npt.NDArray[np.int32] | None = None,
    passes: int,
    seed: int,
    threads: int,
    hop_cost: float = 0.0,
    bisection: bool = False,
    rank: npt.NDArray[np.int32] | None = None,
) -> Balanced:
    """Lay balanced trees for all destinations.

    Parameters
    ----------
    channels
        The channels of the fabric.
    slowness
        float64[C], what a unit of load weighs on each channel (reference capacity / capacity).
    sources
        float64[S], flow that each switch sends towards a family.
    targets
        The destinations.
    position
        int32[layers, S], place of each switch in the order of each layer: the up/down rule.  None: all shortest paths.
    passes
        Refinement passes after the first.
    seed
        Of the order in which destinations, and switches at one distance, are laid.
    threads
        Worker threads; no influence on the result.
    bisection
        Channels that a destination's tree has already cost nothing, so that each destination is gathered on few
        channels (with a hop cost, which makes new ones dear).  Permutations and bisections want that, all-to-all does
        not.
    hop_cost
        What every hop costs beside (up/down rule; 1 is the cost of the fullest channel).
    rank
        int32[C], shortest paths only: of the channels that lead nearer, a switch takes one of the lowest rank.

    Notes
    -----
    Cost: O(D (C + S hops)) a pass; memory 2 D S bytes, with shortest paths 6 S^2 bytes beside.
    """
    switches, count = len(sources), len(targets.root)
    network, aims = network_of(channels, slowness, sources), targets_of(targets)
    options = ffi.new("ibn_balance_options *")
    options.passes, options.threads, options.seed = passes, threads, seed
    options.hop_cost, options.bisection = hop_cost, int(bisection)
    point(options, rank=rank, position=position)
    result = Balanced(
        next_channel=np.full((count, switches), 255, np.uint8), load=np.zeros(len(channels)), worst=np.zeros(passes + 1)
    )
    check(
        lib.ibn_balance(
            network, aims, options, pointer(result.next_channel), pointer(result.load), pointer(result.worst)
        )
    )
    return result
