"""Kernel wrappers: channel loads and flow shares under traffic patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, lib, pointer, struct_of
from routing.fabric import Fabric

WHOLE = 128
"""Number of integer units that stand for a flow of 1.  An end port has 1, 2, 4, ... or 128 LIDs, among which the flow
to the end port is divided equally.  So each LID gets a whole number of units.
"""


@dataclass(frozen=True, eq=False)
class Routes:
    """Channels of a fabric and its LFTs, as a C struct for the kernels.

    Attributes
    ----------
    lft
        uint8[S, L], out-port of each switch towards each LID; C-contiguous.
    pointer
        The C struct.
    """

    lft: npt.NDArray[np.uint8]
    pointer: Any


def routes_of(fabric: Fabric, lft: npt.NDArray[np.uint8]) -> Routes:
    """Prepare a fabric and its LFTs (uint8[S, L]) for the kernels of this module.

    Raises
    ------
    TypeError
        ``lft`` is not a C-contiguous array uint8[S, L] for this fabric.
    """
    channels, lids = fabric.channels, fabric.lids
    if lft.shape != (fabric.switches, len(lids)):
        raise TypeError(f"kernel wants an LFT of shape {(fabric.switches, len(lids))}, got {lft.shape}")
    sizes = {"switches": fabric.switches, "lids": len(lids), "channels": len(channels)}
    delivery = {"lid_switch": lids.switch, "lid_port": lids.port}
    return Routes(lft, struct_of("struct ibn_routes", channels, **sizes, **delivery, lft=lft, channel_dst=channels.dst))


def all_to_all(
    routes: Routes,
    lid_weight: npt.NDArray[np.int64],
    sources: npt.NDArray[np.int64],
    threads: int,
    *,
    hops: bool = True,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Compute the flow on every channel for traffic from every source to every LID.

    Parameters
    ----------
    routes
        The fabric and its LFTs.
    lid_weight
        int64[L], flow that each source sends to each LID, in integer units (0: none).
    sources
        int64[S], number of sources at each switch.  An end port does not send to its own LID.
    threads
        Worker threads; they do not change the result.
    hops
        Whether to count hops too, which takes a third more time.

    Returns
    -------
    load : int64[C]
        Flow on each channel, in the units of ``lid_weight``.  Flows that do not arrive are not counted.
    hop_count : int64[S]
        Element n is the flow that uses n channels, in the units of ``lid_weight``; zeros if hops are not counted.

    Raises
    ------
    KernelError
        Out of memory.

    Notes
    -----
    Cost: O(S L) time.  Memory of each thread: 280 bytes for each switch, and 8 bytes for each channel.
    """
    shape = routes.pointer
    if lid_weight.shape != (shape.lids,) or sources.shape != (shape.switches,):
        raise TypeError(f"kernel wants weights [{shape.lids}] and sources [{shape.switches}]")
    load, hop_count = np.zeros(shape.channels, np.int64), np.zeros(shape.switches, np.int64)
    counts = hop_count if hops else None
    call(lib.ibn_trees_load_all_to_all, routes.pointer, lid_weight, sources, threads, load, counts)
    return load, hop_count


@dataclass(frozen=True, eq=False)
class Rates:
    """Data rates of channels and end ports in units of the reference rate, and the switches of the end ports.

    Attributes
    ----------
    channel
        float64[C], data rate of each channel.
    endport
        float64[E], data rate of each end port.
    endport_switch
        int32[E], switch to which each end port is attached.
    lid_endport
        int32[L], end port that owns each LID, -1: none.
    """

    channel: npt.NDArray[np.float64]
    endport: npt.NDArray[np.float64]
    endport_switch: npt.NDArray[np.int32]
    lid_endport: npt.NDArray[np.int32]


def flow_shares(
    routes: Routes, rates: Rates, source: npt.NDArray[np.int32], target_lid: npt.NDArray[np.int32], threads: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Compute the share of the reference rate that each flow of a traffic pattern gets.  Return the mean and the lowest
    share of each pattern.

    Parameters
    ----------
    routes, rates
        The fabric with its LFTs, and the data rates.
    source, target_lid
        int32[N, F] each, for N patterns of F flows: number of the end port that sends each flow, and destination LID of
        the flow.  The sending end port must be cabled to a switch.  A flow to the sender's own LID is left out.
    threads
        Worker threads; they do not change the result.

    Returns
    -------
    mean, least : float64[N]
        Mean and lowest share in each pattern, in units of the reference rate; 0 for a pattern without flows.

    Raises
    ------
    KernelError
        Out of memory.

    Notes
    -----
    Cost: O(N F h) time, where h is the mean number of hops of a path.  Memory of each thread: 4 bytes for each channel,
    and 4 bytes for each switch.
    """
    if source.ndim != 2 or source.shape != target_lid.shape:
        raise TypeError(f"kernel wants two arrays [N, F], got {source.shape} and {target_lid.shape}")
    patterns, flows = source.shape
    mean, least = np.zeros(patterns), np.zeros(patterns)
    links = rates.channel, rates.endport_switch, rates.endport, rates.lid_endport
    traffic = patterns, flows, source, target_lid
    call(lib.ibn_trees_load_shares, routes.pointer, *links, *traffic, threads, mean, least)
    return mean, least


def draw_orders(seed: int, first: int, last: int, n: int) -> npt.NDArray[np.int32]:
    """Return int32[last - first, n]: random permutations of the numbers 0 to n - 1.

    The permutations are number ``first`` to number ``last - 1`` of a sequence.  The seed determines the whole sequence,
    on every machine (SplitMix64, Fisher-Yates).  Each permutation has its own stream of random numbers.
    """
    order = np.zeros((last - first, n), np.int32)
    lib.ibn_trees_draw_orders(seed & (1 << 64) - 1, first, last, n, pointer(order))
    return order
