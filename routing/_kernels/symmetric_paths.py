"""Kernel wrapper: compute paths between switches, such that each reply path is the path of the request in reverse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, ffi, grouped, lib, struct_of
from routing.fabric import Channels


@dataclass(frozen=True, eq=False)
class LinkBundles:
    """Bundles of parallel channels: all channels from one switch to another, sorted by both switches.

    Attributes
    ----------
    first
        int32[S+1]: the bundles out of switch ``s`` have the numbers ``first[s]`` to ``first[s+1] - 1``.
    dst, reverse
        int32[N] each: for each of N bundles, the switch where the bundle ends, and the bundle in the opposite
        direction.
    inverse_capacity
        float64[N], inverse capacity of each bundle: 1 / sum of the capacities of its channels.
    of
        int32[C], the bundle of each channel.
    """

    first: npt.NDArray[np.int32]
    dst: npt.NDArray[np.int32]
    reverse: npt.NDArray[np.int32]
    inverse_capacity: npt.NDArray[np.float64]
    of: npt.NDArray[np.int32]

    @classmethod
    def between_switches(cls, channels: Channels, inverse_capacity: npt.NDArray[np.float64]) -> LinkBundles:
        """Return the bundles of a fabric.

        ``inverse_capacity`` is the inverse capacity of each channel.  Cost: O(C log C).
        """
        switches = len(channels.first) - 1
        key = channels.src.astype(np.int64) * max(switches, 1) + channels.dst
        keys, of = np.unique(key, return_inverse=True)
        src, dst = keys // max(switches, 1), keys % max(switches, 1)
        return cls(
            first=np.searchsorted(src, np.arange(switches + 1)).astype(np.int32),
            dst=dst.astype(np.int32),
            reverse=np.searchsorted(keys, dst * switches + src).astype(np.int32),
            inverse_capacity=1.0 / np.bincount(of, 1.0 / inverse_capacity, minlength=len(keys)),
            of=of.astype(np.int32),
        )


def symmetric_paths(
    bundles: LinkBundles, sources: npt.NDArray[np.float64], *, passes: int, seed: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float64], float]:
    """Compute balanced shortest paths between switches.  Wherever possible, the reply path is the path of the request
    in reverse.

    Parameters
    ----------
    bundles
        The fabric, in which each bundle of parallel channels counts as one channel.
    sources
        float64[S]; the flow between two switches is the product of the values of both switches.
    passes, seed
        Number of passes after the first pass; seed of the random numbers by which pairs of switches are shuffled.

    Returns
    -------
    next
        uint8[S, S] by destination and switch: index of the next bundle among the bundles of the switch, 255: none.
    load, worst
        float64[N], flow on each of N bundles; highest utilisation of a bundle (load times ``inverse_capacity``).

    Notes
    -----
    Cost: O(S^2 degree hops) per pass; memory 12 S^2 bytes.
    """
    switches = len(sources)
    following = np.empty((switches, switches), np.uint8)
    load, max_utilisation = np.zeros(len(bundles.dst)), ffi.new("double *")
    graph = bundles.first, bundles.dst, bundles.reverse, bundles.inverse_capacity
    result = following, load, max_utilisation
    call(lib.ibn_trees_symmetric_paths, switches, *graph, sources, passes, seed, *result)
    return following, load, float(max_utilisation[0])


def spread_over_parallel_links(
    channels: Channels,
    bundles: LinkBundles,
    inverse_capacity: npt.NDArray[np.float64],
    sources: npt.NDArray[np.float64],
    *,
    root: npt.NDArray[np.int32],
    share: npt.NDArray[np.float64],
    hop: npt.NDArray[np.uint8],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float64]]:
    """Turn trees towards switches into trees towards LIDs: choose one of several parallel channels for each LID.

    Each LID takes the parallel channel with the lowest utilisation so far.  The LIDs with the largest flows come first.

    Parameters
    ----------
    channels, bundles
        The channels of the fabric, and the bundles of parallel channels.
    inverse_capacity
        float64[C], inverse capacity of each channel.
    sources
        float64[S], flow that each switch sends to every LMC group.
    root
        int32[D], switch that delivers each destination.
    share
        float64[D], part of the flow that goes to each destination.
    hop
        uint8[S, S], the trees towards switches, as :func:`symmetric_paths` returns them (``next``).

    Returns
    -------
    next_channel, load
        uint8[D, S], index of the chosen channel among the channels of the switch (255: none), and float64[C], flow on
        each channel.

    Notes
    -----
    Cost: O(S^2 log S + D S parallel channels); memory 8 S^2 bytes.
    """
    switches = len(sources)
    at_first, at = grouped(root, switches)
    links = struct_of(
        "ibn_link_bundles", channels, switches=switches, channels=len(channels), targets=len(root), root=root,
        bundle=bundles.of, bundle_first=bundles.first, at_first=at_first, at=at, inverse_capacity=inverse_capacity,
        sources=sources, share=share,
    )  # fmt: skip
    following, load = np.empty((len(root), switches), np.uint8), np.empty(len(channels))
    call(lib.ibn_trees_spread_parallel, links, hop, following, load)
    return following, load
