"""Wrapper of the layering kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, grouped, lib, point, pointer
from routing.fabric import Channels

MOST_LAYERS = 32


COUNTS = ("needed", "used", "left", "left_uncounted", "rechosen", "eased", "visited")
"""What the kernel counts, by the names of :class:`Layers`."""


@dataclass(frozen=True, eq=False)
class Layers:
    """Ways in layers.

    Attributes
    ----------
    next_channel
        uint8[D, S], the trees, with what was chosen anew.
    load
        float64[C], flow on each channel.
    layer
        uint8[D, S] by target and source; both ways uint8[S, S], symmetric.
    needed
        Layers that the ways which count take.
    used
        Layers over which they are spread: ``have``, or ``needed`` if that is more.
    left, left_uncounted
        Ways that found no layer (then ``layer`` says nothing); of those that do not count (they are in layer 0).
    rechosen, eased, visited
        Ways that took another first hop; next hops moved off the fullest channels; channels that
        searches for a cycle came by.
    """

    next_channel: npt.NDArray[np.uint8]
    load: npt.NDArray[np.float64]
    layer: npt.NDArray[np.uint8]
    needed: int
    used: int
    left: int
    left_uncounted: int
    rechosen: int
    eased: int
    visited: int


def turn_first(channels: Channels) -> npt.NDArray[np.int64]:
    """int64[C+1]: the turn from channel ``c`` into the ``k``-th channel of the switch behind has number ``[c] + k``."""
    return np.concatenate([[0], np.cumsum(np.diff(channels.first).astype(np.int64)[channels.dst])])


def turns(channels: Channels) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """int64[T], int32[T]: the channels before and after each turn, by its number."""
    numbers = turn_first(channels)
    before = np.repeat(np.arange(len(channels)), np.diff(numbers))
    after = channels.first[channels.dst[before]] + np.arange(numbers[-1]) - numbers[before]
    return before, after.astype(np.int32)


def layering(
    channels: Channels,
    slowness: npt.NDArray[np.float64],
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
    easing: int = 0,
    region: npt.NDArray[np.int32] | None = None,
    order: npt.NDArray[np.int32] | None = None,
    budget: int = 1 << 62,
    spare: int = 1 << 62,
) -> Layers:
    """Put ways into layers whose dependencies stay acyclic, the longest ways first, each into the first that takes it.

    Parameters
    ----------
    channels, slowness, sources, root, share
        As for :func:`routing._kernels.balance.balance`: float64[C], float64[S], int32[D], float64[D].
    next_channel, load
        uint8[D, S], float64[C]: the trees and their loads.  Not changed.
    counted
        bool[S]: a way counts if the switch at one of its ends is marked.
    avoid
        uint32[T], for each turn (:func:`turn_first`) the layers that a first round keeps it out of; a second round
        places what is left without that.
    most
        Layers to be opened at most, up to 32.
    have
        Layers to spread the load over.
    mutual
        All ways between two switches, there and back, in one layer.
    rechoose
        A way that fits nowhere may take another first hop of equal length, if no longer way runs over it.
    easing
        Rounds in which next hops move off the fullest channels, as far as everyone behind still fits into a layer.
    region
        int32[S], the layer at which the search for the ways to a switch begins (both ways: the sum of both).
    order
        int32[layers, C], places of the channels in which the first layers begin, each a permutation.  Changes nothing
        but the time.
    budget, spare
        Channels that searches may come by, for the ways that count and then for those that do not; after that nothing
        more is placed.

    Notes
    -----
    The incremental topological order is that of D. J. Pearce, P. H. J. Kelly, "A dynamic topological sort algorithm
    for directed acyclic graphs", ACM J. Exp. Algorithmics 11, 2007.  Memory: 2 D S bytes, 8 bytes a possible turn, 4 a
    channel and layer.
    """
    switches, targets = len(sources), len(root)
    ways = ffi.new("ibn_ways *")
    ways.switches, ways.channels, ways.targets = switches, len(channels), targets
    at_first, at = grouped(root, switches)
    marked = np.ascontiguousarray(counted).astype(np.uint8)
    point(ways, first=channels.first, src=channels.src, dst=channels.dst, into=channels.into)
    point(ways, into_first=channels.into_first, slowness=slowness, sources=sources, root=root, share=share)
    point(ways, at_first=at_first, at=at, counted=marked, avoid=avoid, order=order, region=region)
    ways.most, ways.have, ways.mutual, ways.rechoose = min(most, MOST_LAYERS), have, int(mutual), int(rechoose)
    ways.easing, ways.budget = easing, budget
    ways.spare, ways.orders = spare, 0 if order is None else len(order)
    result = ffi.new("ibn_layers *")
    trees, loads = next_channel.copy(), load.copy()
    layer = np.empty((switches, switches) if mutual else (targets, switches), np.uint8)
    check(lib.ibn_layering(ways, pointer(trees), pointer(loads), pointer(layer), result))
    return Layers(trees, loads, layer, **{name: getattr(result, name) for name in COUNTS})
