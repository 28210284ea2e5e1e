"""Load of channels under traffic patterns: arrays in, arrays out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, point, pointer
from routing.fabric import Fabric

WHOLE = 128
"""Units of one flow of 1: a flow splits over up to 2^7 LIDs, so whole numbers are exact."""


@dataclass(frozen=True, eq=False)
class Routes:
    """A fabric's channels and one table, as the kernels take them; keeps the arrays alive.

    Attributes
    ----------
    lft
        uint8[S, L], C-contiguous.
    arrays
        The other arrays the kernels look at.
    pointer
        The C structure.
    """

    lft: npt.NDArray[np.uint8]
    arrays: tuple[npt.NDArray[Any], ...]
    pointer: Any


def routes_of(fabric: Fabric, lft: npt.NDArray[np.uint8]) -> Routes:
    """Prepare a table for the kernels.

    Raises
    ------
    TypeError
        A table that is not C-contiguous uint8[S, L] of this fabric.
    """
    channels, lids = fabric.channels, fabric.lids
    if lft.shape != (fabric.switches, len(lids)):
        raise TypeError(f"kernel wants an LFT of shape {(fabric.switches, len(lids))}, got {lft.shape}")
    struct = ffi.new("struct ibn_routes *")
    struct.switches, struct.lids, struct.channels = fabric.switches, len(lids), len(channels)
    point(struct, lft=lft, at_port=channels.at_port, channel_dst=channels.dst)
    point(struct, lid_switch=lids.switch, lid_port=lids.port)
    return Routes(lft, (channels.at_port, channels.dst, lids.switch, lids.port), struct)


def all_to_all(
    routes: Routes,
    lid_weight: npt.NDArray[np.int64],
    sources: npt.NDArray[np.int64],
    threads: int,
    *,
    hops: bool = True,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Flow on every channel when every source sends to every LID.

    Parameters
    ----------
    routes
        The tables.
    lid_weight
        int64[L], units that each source sends to each LID (0: none).
    sources
        int64[S], number of sources at each switch.  A LID's own end port, at the switch that delivers it, sends
        nothing.
    threads
        Never changes the result.
    hops
        Count hops too (a third more time).

    Returns
    -------
    load : int64[C]
        Units on each channel; flows that do not arrive load nothing.
    hop_count : int64[S]
        Units that take 0, 1, 2, ... channels; zeros when they are not counted.

    Raises
    ------
    KernelError
        Out of memory.

    Notes
    -----
    Cost: O(S L) time; 280 bytes a switch and 8 a channel for each thread.
    """
    shape = routes.pointer
    if lid_weight.shape != (shape.lids,) or sources.shape != (shape.switches,):
        raise TypeError(f"kernel wants weights [{shape.lids}] and sources [{shape.switches}]")
    load, hop_count = np.zeros(shape.channels, np.int64), np.zeros(shape.switches, np.int64)
    check(
        lib.ibn_all_to_all(
            routes.pointer,
            pointer(lid_weight),
            pointer(sources),
            threads,
            pointer(load),
            pointer(hop_count if hops else None),
        )
    )
    return load, hop_count


@dataclass(frozen=True, eq=False)
class Rates:
    """Speeds in units of the reference rate, and where the end ports are.

    Attributes
    ----------
    channel
        float64[C].
    endport
        float64[E].
    endport_switch
        int32[E].
    lid_endport
        int32[L], -1 for LIDs of no end port.
    """

    channel: npt.NDArray[np.float64]
    endport: npt.NDArray[np.float64]
    endport_switch: npt.NDArray[np.int32]
    lid_endport: npt.NDArray[np.int32]


def flow_shares(
    routes: Routes, rates: Rates, source: npt.NDArray[np.int32], target_lid: npt.NDArray[np.int32], threads: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Mean and least share of the flows of each pattern.

    Parameters
    ----------
    routes, rates
        The tables and the speeds.
    source, target_lid
        int32[P, F], row of the sending end port (cabled to a switch) and LID of an end port that it sends to; a flow to
        itself is left out.
    threads
        Never changes the result.

    Returns
    -------
    mean, least : float64[P]
        In units of the reference rate; 0 for a pattern without flows.

    Raises
    ------
    KernelError
        Out of memory.

    Notes
    -----
    Cost: O(P F hops) time, and 4 bytes a channel and a switch for each thread.
    """
    if source.ndim != 2 or source.shape != target_lid.shape:
        raise TypeError(f"kernel wants two arrays [P, F], got {source.shape} and {target_lid.shape}")
    patterns, flows = source.shape
    mean, least = np.zeros(patterns), np.zeros(patterns)
    check(
        lib.ibn_flow_shares(
            routes.pointer,
            pointer(rates.channel),
            pointer(rates.endport_switch),
            pointer(rates.endport),
            pointer(rates.lid_endport),
            patterns,
            flows,
            pointer(source),
            pointer(target_lid),
            threads,
            pointer(mean),
            pointer(least),
        )
    )
    return mean, least


def draw_orders(seed: int, first: int, last: int, n: int) -> npt.NDArray[np.int32]:
    """int32[last - first, n]: random orders of 0..n-1, numbers ``first`` to ``last - 1`` of the seed's sequence.

    The same on every machine (SplitMix64, Fisher-Yates); each order has a stream of its own.
    """
    order = np.zeros((last - first, n), np.int32)
    lib.ibn_draw_orders(seed & (1 << 64) - 1, first, last, n, pointer(order))
    return order
