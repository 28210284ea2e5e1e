"""Kernel wrapper: assign paths to layers (VLs) such that the dependencies in every layer are acyclic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, grouped, lib, point, pointer
from routing.fabric import Channels

MOST_LAYERS = 32


COUNTS = ("needed", "used", "left", "left_uncounted", "rechosen", "unloaded", "visited")
"""Names of the kernel's counts, which are attributes of :class:`Layers`."""


@dataclass(frozen=True, eq=False)
class Layers:
    """Result of assigning paths to layers (VLs).

    Attributes
    ----------
    next_channel
        uint8[D, S], the trees, with the next hops that were changed.
    load
        float64[C], flow on each channel.
    layer
        uint8[D, S] by target and source; with ``mutual`` uint8[S, S], symmetric.
    needed
        Layers that the counted paths need.
    used
        Layers over which the paths are spread: ``have``, or ``needed`` if that is more.
    left, left_uncounted
        Number of counted paths that found no layer (if there are any, ``layer`` is not valid), and number of other
        paths that found no layer (they are in layer 0).
    rechosen, unloaded, visited
        Number of paths that took another first hop, of next hops that were moved off the channels with the highest
        utilisation, and of channels that searches for cycles visited.
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
    """Assign every path to the first layer (VL) whose dependencies stay acyclic with the path; the longest paths come
    first.

    Parameters
    ----------
    channels, inverse_capacity, sources, root, share
        As for :func:`routing._kernels.balance.balance`: float64[C], float64[S], int32[D], float64[D].
    next_channel, load
        uint8[D, S], float64[C]: the trees and their loads; the arrays are not changed.
    counted
        bool[S]: the counted paths are those with a marked switch at either end.  They are placed first.
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
        int32[S], number of the layer that is tried first for the paths to each switch.  With ``mutual``, it is the sum
        of the numbers of both switches.
    order
        int32[layers, C], initial positions of the channels in the first layers, each a permutation.  It changes only
        the run time.
    budget, spare
        Work limits in visited channels: for the counted paths, and then for the others.  Beyond a limit, no more
        paths are placed.

    Notes
    -----
    The incremental topological order is that of D. J. Pearce, P. H. J. Kelly, "A dynamic topological sort algorithm
    for directed acyclic graphs", ACM J. Exp. Algorithmics 11, 2007.  Memory: 2 D S bytes, 8 bytes per
    CDG edge, 4 per channel and layer.
    """
    request, kept = _path_set(channels, inverse_capacity, sources, root, share, counted, avoid, order, region)
    request.most, request.have, request.mutual, request.rechoose = (
        min(most, MOST_LAYERS),
        have,
        int(mutual),
        int(rechoose),
    )
    request.unload_rounds, request.budget, request.spare = unload_rounds, budget, spare
    result = ffi.new("ibn_layers *")
    trees, loads = next_channel.copy(), load.copy()
    switches = len(sources)
    layer = np.empty((switches, switches) if mutual else (len(root), switches), np.uint8)
    check(lib.ibn_layering_assign(request, pointer(trees), pointer(loads), pointer(layer), result))
    del kept
    return Layers(trees, loads, layer, **{name: getattr(result, name) for name in COUNTS})


@dataclass(frozen=True, eq=False)
class ChangingVls:
    """SLs of all pairs of switches, where packets on some SLs move to higher VLs along their path.

    Attributes
    ----------
    sl
        uint8[S, S], symmetric: the SL of all paths between two switches.
    turn_vl
        uint8[K, T]: for each SL from ``vls`` on and each possible CDG edge, in the order of
        :meth:`~routing.edges.Edges.channels`, the VL of its second channel; 255 where no path uses the edge.  These
        SLs begin on VL 0.
    left, left_uncounted
        1 if a pair of switches that counts found no SL (then ``sl`` is not valid), else 0; and number of other pairs
        that found no SL (they are on SL 0).
    changing, visited
        Pairs of switches on an SL that changes its VL; channels that searches for cycles and attempts visited.
    """

    sl: npt.NDArray[np.uint8]
    turn_vl: npt.NDArray[np.uint8]
    left: int
    left_uncounted: int
    changing: int
    visited: int


def changing_vls(
    channels: Channels,
    inverse_capacity: npt.NDArray[np.float64],
    sources: npt.NDArray[np.float64],
    *,
    root: npt.NDArray[np.int32],
    share: npt.NDArray[np.float64],
    next_channel: npt.NDArray[np.uint8],
    load: npt.NDArray[np.float64],
    counted: npt.NDArray[np.bool_],
    vls: int,
    sls: int,
    avoid: npt.NDArray[np.uint32] | None = None,
    order: npt.NDArray[np.int32] | None = None,
    budget: int = 1 << 62,
    spare: int = 1 << 62,
) -> ChangingVls:
    """Assign one SL to all paths between two switches, in both directions, such that the dependencies on each VL are
    acyclic.

    Packets on the first ``vls`` SLs keep their VL.  Paths that fit on none of these take one of the other SLs.  Packets
    on such an SL move up to the next VL where the dependency on their own VL would close a cycle.  The trees do not
    change.  For the other parameters see :func:`layering`.

    Notes
    -----
    Cost: O(S^2 sls hops), and the searches for cycles.  Memory: 2 D S bytes, and ``sls`` bytes per CDG edge.
    """
    request, kept = _path_set(channels, inverse_capacity, sources, root, share, counted, avoid, order, None)
    request.most, request.have, request.mutual, request.budget, request.spare = vls, 1, 1, budget, spare
    switches, counts = len(sources), ffi.new("ibn_transition_counts *")
    sl = np.empty((switches, switches), np.uint8)
    turn_vl = np.empty((sls - vls, len(channels.edges)), np.uint8)
    trees, loads = next_channel.copy(), load.copy()
    check(
        lib.ibn_layering_assign_transitions(
            request, sls, pointer(trees), pointer(loads), pointer(sl), pointer(turn_vl), counts
        )
    )
    del kept
    return ChangingVls(sl, turn_vl, counts.left, counts.left_uncounted, counts.changing, counts.visited)


def _path_set(  # noqa: PLR0917 - the two callers pass their own parameters on
    channels: Channels,
    inverse_capacity: npt.NDArray[np.float64],
    sources: npt.NDArray[np.float64],
    root: npt.NDArray[np.int32],
    share: npt.NDArray[np.float64],
    counted: npt.NDArray[np.bool_],
    avoid: npt.NDArray[np.uint32] | None,
    order: npt.NDArray[np.int32] | None,
    region: npt.NDArray[np.int32] | None,
) -> tuple[Any, tuple[npt.NDArray[Any], ...]]:
    """Return the C struct of the paths, and the arrays that the caller must keep alive while a kernel reads it."""
    switches = len(sources)
    request = ffi.new("ibn_path_set *")
    request.switches, request.channels, request.targets = switches, len(channels), len(root)
    at_first, at = grouped(root, switches)
    marked = np.ascontiguousarray(counted).astype(np.uint8)
    point(request, first=channels.first, src=channels.src, dst=channels.dst, into=channels.into)
    point(request, into_first=channels.into_first, inverse_capacity=inverse_capacity, sources=sources)
    point(request, root=root, share=share)
    point(request, at_first=at_first, at=at, counted=marked, avoid=avoid, order=order, region=region)
    request.orders = 0 if order is None else len(order)
    return request, (at_first, at, marked)
