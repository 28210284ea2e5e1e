"""Kernel wrapper: put paths into layers (VLs) with acyclic dependencies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, grouped, lib, point, pointer
from routing.fabric import Channels

MOST_LAYERS = 32


COUNTS = ("needed", "used", "left", "left_uncounted", "rechosen", "unloaded", "visited")
"""Counts of the kernel, by their names in :class:`Layers`."""


@dataclass(frozen=True, eq=False)
class Layers:
    """Paths in layers.

    Attributes
    ----------
    next_channel
        uint8[D, S], the trees, with the next hops that were changed.
    load
        float64[C], flow on each channel.
    layer
        uint8[D, S] by target and source; with ``mutual`` uint8[S, S], symmetric.
    needed
        Layers that the paths which count need.
    used
        Layers over which the paths are spread: ``have``, or ``needed`` if that is more.
    left, left_uncounted
        Paths that count and found no layer (then ``layer`` is not valid); other paths that found no layer (they are in
        layer 0).
    rechosen, unloaded, visited
        Paths that took another first hop; next hops moved off the channels with the highest utilisation; channels that
        searches for cycles visited.
    """

    next_channel: npt.NDArray[np.uint8]
    load: npt.NDArray[np.float64]
    layer: npt.NDArray[np.uint8]
    needed: int
    used: int
    left: int
    left_uncounted: int
    rechosen: int
    unloaded: int
    visited: int


def layering(
    channels: Channels,
    inverse_capacity: npt.NDArray[np.float64],
    sources: npt.NDArray[np.float64],
    *,
    root: npt.NDArray[np.int32],
    share: npt.NDArray[np.float64],
    next_channel: npt.NDArray[np.uint8],
    load: npt.NDArray[np.float64],
    counted: npt.NDArray[np.bool_],
    avoid: npt.NDArray[np.uint32] | None = None,
    most: int = MOST_LAYERS,
    have: int = 1,
    mutual: bool = False,
    rechoose: bool = False,
    unload_rounds: int = 0,
    region: npt.NDArray[np.int32] | None = None,
    order: npt.NDArray[np.int32] | None = None,
    budget: int = 1 << 62,
    spare: int = 1 << 62,
) -> Layers:
    """Put paths into layers whose dependencies stay acyclic, longest paths first, each into the first that admits it.

    Parameters
    ----------
    channels, inverse_capacity, sources, root, share
        As for :func:`routing._kernels.balance.balance`: float64[C], float64[S], int32[D], float64[D].
    next_channel, load
        uint8[D, S], float64[C]: the trees and their loads; the arrays are not changed.
    counted
        bool[S]: a path counts if the switch at one of its ends is marked.
    avoid
        uint32[T], for each CDG edge, ordered as in :meth:`~routing.edges.Edges.channels`, the mask of the layers that a
        first round does not use for it.  A second round places the remaining paths without this restriction.
    most
        Maximum number of layers, up to 32.
    have
        Layers to spread the load over.
    mutual
        Whether all paths between two switches, in both directions, get one layer.
    rechoose
        Whether a path that fits nowhere may take another first hop of equal length, if no longer path contains it.
    unload_rounds
        Rounds in which next hops move off the channels with the highest utilisation, as far as all upstream paths still
        fit into a layer.
    region
        int32[S], the layer at which the search for the paths to a switch begins (with ``mutual``: the sum of both).
    order
        int32[layers, C], initial positions of the channels in the first layers, each a permutation.  It changes only
        the run time.
    budget, spare
        Work limits in visited channels: for the paths that count, and then for the others.  Beyond a limit, no more
        paths are placed.

    Notes
    -----
    The incremental topological order is that of D. J. Pearce, P. H. J. Kelly, "A dynamic topological sort algorithm
    for directed acyclic graphs", ACM J. Exp. Algorithmics 11, 2007.  Memory: 2 D S bytes, 8 bytes per
    CDG edge, 4 per channel and layer.
    """
    switches, targets = len(sources), len(root)
    request = ffi.new("ibn_path_set *")
    request.switches, request.channels, request.targets = switches, len(channels), targets
    at_first, at = grouped(root, switches)
    marked = np.ascontiguousarray(counted).astype(np.uint8)
    point(request, first=channels.first, src=channels.src, dst=channels.dst, into=channels.into)
    point(
        request,
        into_first=channels.into_first,
        inverse_capacity=inverse_capacity,
        sources=sources,
        root=root,
        share=share,
    )
    point(request, at_first=at_first, at=at, counted=marked, avoid=avoid, order=order, region=region)
    request.most, request.have, request.mutual, request.rechoose = (
        min(most, MOST_LAYERS),
        have,
        int(mutual),
        int(rechoose),
    )
    request.unload_rounds, request.budget = unload_rounds, budget
    request.spare, request.orders = spare, 0 if order is None else len(order)
    result = ffi.new("ibn_layers *")
    trees, loads = next_channel.copy(), load.copy()
    layer = np.empty((switches, switches) if mutual else (targets, switches), np.uint8)
    check(lib.ibn_layering_assign(request, pointer(trees), pointer(loads), pointer(layer), result))
    return Layers(trees, loads, layer, **{name: getattr(result, name) for name in COUNTS})
