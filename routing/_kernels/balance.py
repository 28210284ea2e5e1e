"""Kernel wrapper: compute balanced trees of next hops for all destinations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, lib, struct_of
from routing.fabric import Channels


@dataclass(frozen=True, eq=False)
class Targets:
    """Destinations (LIDs), sorted into LMC groups.  An LMC group is all LIDs of one end port.

    Attributes
    ----------
    lmc_group_first
        int32[F+1]; the destinations of LMC group ``f`` are ``lmc_group_first[f]:lmc_group_first[f+1]``.
    root
        int32[D], the switch that delivers each destination.
    share
        float64[D], part of the flow to an LMC group that goes to each of its LIDs.  0: the LID belongs to a switch, and
        its traffic is neglected.  The tree of a LID with the value 0 adds no load.  If all shortest paths are allowed
        (see :func:`balance`), each switch uses the first of its allowed channels in this tree.
    layer
        int32[D], number of the switch order that each destination's tree follows (not a VL).  It selects a row of
        ``position`` (see :func:`balance`), and is used only by the up/down rule.
    """

    lmc_group_first: npt.NDArray[np.int32]
    root: npt.NDArray[np.int32]
    share: npt.NDArray[np.float64]
    layer: npt.NDArray[np.int32]

    @classmethod
    def single(cls, root: npt.NDArray[np.int32], share: npt.NDArray[np.float64]) -> Targets:
        """Return destinations that all follow switch order 0, each in an LMC group of its own."""
        return cls(np.arange(len(root) + 1, dtype=np.int32), root, share, np.zeros_like(root))


@dataclass(frozen=True, eq=False)
class Balanced:
    """Trees of all destinations, and the loads that these trees cause.

    Attributes
    ----------
    next_channel
        uint8[D, S], index of the chosen channel among the channels of the switch; 255 at the root and where there is no
        path.
    load
        float64[C], flow on each channel.
    max_utilisation
        float64[passes + 1], highest utilisation after each pass.  The trees and loads come from the best pass.
    """

    next_channel: npt.NDArray[np.uint8]
    load: npt.NDArray[np.float64]
    max_utilisation: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AllowedTurns:
    """Turns (CDG edges) that paths may take.  These turns must have no cycle.

    Attributes
    ----------
    allowed
        uint8[N] for the N possible CDG edges: 1 if the edge is allowed, else 0, in the order of
        :meth:`~routing.edges.Edges.channels`.
    spanning
        int32[S], channel from each switch to its parent in a spanning tree of its connected part; -1 for the root.  The
        spanning trees consist of these channels and the opposite channels.  All CDG edges inside the spanning trees
        must be allowed, except edges that lead back over the same link.
    order
        int32[M], position of each of the M bundles of parallel channels in a topological order of the allowed turns.
    """

    allowed: npt.NDArray[np.uint8]
    spanning: npt.NDArray[np.int32]
    order: npt.NDArray[np.int32]


def network_of(channels: Channels, inverse_capacity: npt.NDArray[np.float64], sources: npt.NDArray[np.float64]) -> Any:
    """Return the C struct of the channels and the sources.

    ``inverse_capacity`` (float64[C]) is the inverse capacity of each channel, and ``sources`` (float64[S]) the flow
    that each switch sends to every LMC group.
    """
    sizes = {"switches": len(sources), "channels": len(channels)}
    return struct_of("ibn_network", channels, **sizes, inverse_capacity=inverse_capacity, sources=sources)


def targets_of(targets: Targets) -> Any:
    """Return the C struct of the destinations."""
    return struct_of("ibn_targets", targets, count=len(targets.root), lmc_groups=len(targets.lmc_group_first) - 1)


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

    One of three rules decides which channels a tree may use:

    - If ``position`` is given, the up/down rule decides.
    - If ``turns`` is given, paths may take only the turns in ``turns``.
    - If neither is given, a tree may use all shortest paths.

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
        int32[N, S], position of each switch in each of N switch orders.  The paths to a destination lead up and then
        down in the switch order that ``targets.layer`` selects.
    passes
        Number of refinement passes after the first pass.
    seed
        Seed of the random numbers by which destinations, and switches at equal distance, are shuffled.
    threads
        Worker threads; they do not change the result.
    bisection
        Whether to balance for permutations and bisections instead of all-to-all traffic.  Switches join the tree of a
        destination one after the other.  With ``bisection``, a channel that already carries flow to the destination has
        no cost for the switches that join later.  If ``hop_cost`` is positive too, the flow to each destination then
        uses few channels.
    hop_cost
        Cost of every hop, in addition to the cost of the load on its channel.  The load of the channel with the highest
        utilisation costs 1.
    rank
        int32[C], rank of each channel, for shortest paths only.  Ranks select among shortest paths, for example the
        paths that use one dimension of a grid after the other.  Of the channels that lead one hop nearer to the
        destination, a switch uses only channels of the lowest rank.
    rank_from
        Ranks apply at switches that are at least this number of hops from the destination.  Nearer switches may use any
        channel.
    turns
        The turns (CDG edges) that paths may use, instead of a switch order.

    Notes
    -----
    Cost: O(D (C + S h)) per pass, where h is the mean number of hops of a path; with ``turns``, this is multiplied by
    log C.  Memory: 2 D S bytes; with shortest paths, 6 S^2 bytes more.
    """
    switches, count = len(sources), len(targets.root)
    network, aims = network_of(channels, inverse_capacity, sources), targets_of(targets)
    options = struct_of(
        "ibn_balance_options", channels, *([] if turns is None else [turns]), passes=passes, threads=threads, seed=seed,
        hop_cost=hop_cost, bisection=bisection, rank=rank, rank_from=rank_from, position=position,
    )  # fmt: skip
    result = Balanced(
        next_channel=np.full((count, switches), 255, np.uint8),
        load=np.zeros(len(channels)),
        max_utilisation=np.zeros(passes + 1),
    )
    arrays = result.next_channel, result.load, result.max_utilisation
    call(lib.ibn_trees_balance, network, aims, options, *arrays)
    return result
