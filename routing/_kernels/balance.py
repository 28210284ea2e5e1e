"""Kernel wrapper: compute balanced trees of next hops for all destinations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, point, pointer
from routing.fabric import Channels


@dataclass(frozen=True, eq=False)
class Targets:
    """Destinations (LIDs), grouped into LMC groups: all LIDs of one port are one group.

    Attributes
    ----------
    lmc_group_first
        int32[F+1]; the destinations of LMC group ``f`` are ``lmc_group_first[f]:lmc_group_first[f+1]``.
    root
        int32[D], the switch that delivers each destination.
    share
        float64[D], part of a source's flow to the LMC group that goes to this LID.  0: the LID has hardly any traffic,
        so its tree makes a fixed choice among the allowed channels and adds no load.
    layer
        int32[D], the order of the switches that the destination's tree follows (up/down rule only).
    """

    lmc_group_first: npt.NDArray[np.int32]
    root: npt.NDArray[np.int32]
    share: npt.NDArray[np.float64]
    layer: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Balanced:
    """Trees of all destinations.

    Attributes
    ----------
    next_channel
        uint8[D, S], index of the chosen channel among those of the switch, 255 at the root and where there is no path.
    load
        float64[C], flow on each channel.
    max_utilisation
        float64[passes + 1], highest utilisation after each pass.  The trees and loads are those of the best pass.
    """

    next_channel: npt.NDArray[np.uint8]
    load: npt.NDArray[np.float64]
    max_utilisation: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AllowedTurns:
    """Turns (CDG edges) that paths may take.  They must have no cycle.

    Attributes
    ----------
    allowed
        uint8[T], 1 for each allowed edge, in the order of :meth:`~routing.edges.Edges.channels`.
    spanning
        int32[S], channel of each switch to its parent in a spanning tree of each connected component, -1 for the root.
        All edges between channels of the trees, in both directions, must be allowed.  Edges that lead back over the
        same cable are excepted.
    """

    allowed: npt.NDArray[np.uint8]
    spanning: npt.NDArray[np.int32]


def network_of(channels: Channels, inverse_capacity: npt.NDArray[np.float64], sources: npt.NDArray[np.float64]) -> Any:
    """Return the C struct of the channels and the sources.  It points into arrays that the caller must keep alive.

    ``inverse_capacity`` (float64[C]) is the inverse capacity of each channel, and ``sources`` (float64[S]) the flow
    from each switch to every LMC group.
    """
    network = ffi.new("ibn_network *")
    network.switches, network.channels = len(sources), len(channels)
    point(network, first=channels.first, src=channels.src, dst=channels.dst, into=channels.into)
    point(network, into_first=channels.into_first, inverse_capacity=inverse_capacity, sources=sources)
    return network


def targets_of(targets: Targets) -> Any:
    """Return the C struct of the destinations.  It points into arrays that the caller must keep alive."""
    aims = ffi.new("ibn_targets *")
    aims.count, aims.lmc_groups = len(targets.root), len(targets.lmc_group_first) - 1
    point(aims, lmc_group_first=targets.lmc_group_first, root=targets.root, layer=targets.layer, share=targets.share)
    return aims


def balance(
    channels: Channels,
    inverse_capacity: npt.NDArray[np.float64],
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
    turns: AllowedTurns | None = None,
    rank_from: int = 0,
) -> Balanced:
    """Compute balanced trees for all destinations.

    Parameters
    ----------
    channels
        The channels of the fabric.
    inverse_capacity
        float64[C], inverse capacity of each channel (reference capacity / capacity).
    sources
        float64[S], flow that each switch sends to every LMC group.
    targets
        The destinations.
    position
        int32[layers, S], position of each switch in the order of each layer; paths lead up and then down in this
        order.  None: paths are all shortest paths.
    passes
        Refinement passes after the first.
    seed
        Seed of the random order of destinations, and of switches at one distance.
    threads
        Worker threads; they do not change the result.
    bisection
        Whether channels that a destination's tree already uses cost nothing more.  Together with a hop cost, this
        gathers the flow to a destination on few channels.  It suits permutations and bisections, but not all-to-all
        traffic.
    hop_cost
        Cost of every hop beside its load (1 is the cost of the channel with the highest utilisation).
    rank
        int32[C], rank of each channel, for shortest paths only.  Of the channels that lead one hop nearer to the
        destination, a switch uses only channels of the lowest rank.
    rank_from
        Number of hops to the destination from which on ranks are used.
    turns
        The turns that paths may take, instead of an order of the switches.

    Notes
    -----
    Cost: O(D (C + S hops)) per pass, with ``turns`` times log C; memory 2 D S bytes, with shortest paths another
    6 S^2 bytes.
    """
    switches, count = len(sources), len(targets.root)
    network, aims = network_of(channels, inverse_capacity, sources), targets_of(targets)
    options = ffi.new("ibn_balance_options *")
    options.passes, options.threads, options.seed = passes, threads, seed
    options.hop_cost, options.bisection, options.rank_from = hop_cost, int(bisection), rank_from
    point(options, rank=rank, position=position)
    if turns is not None:
        point(options, allowed=turns.allowed, spanning=turns.spanning, reverse=channels.reverse)
    result = Balanced(
        next_channel=np.full((count, switches), 255, np.uint8),
        load=np.zeros(len(channels)),
        max_utilisation=np.zeros(passes + 1),
    )
    check(
        lib.ibn_trees_balance(
            network, aims, options, pointer(result.next_channel), pointer(result.load), pointer(result.max_utilisation)
        )
    )
    return result
