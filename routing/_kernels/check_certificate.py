"""Kernel wrapper: check a certificate, which states that every packet uses channels in topological order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, lib, struct_of
from routing.fabric import Channels, Fabric


def check_orders(
    fabric: Fabric,
    lft: npt.NDArray[np.uint8],
    sl2vl: npt.NDArray[np.uint8],
    order: npt.NDArray[np.int32],
    entries: tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.uint16]],
    *,
    threads: int,
) -> npt.NDArray[np.int32]:
    """Check that every packet uses channels in strictly increasing order.

    Parameters
    ----------
    fabric, lft, sl2vl
        The fabric, its LFTs and its SL2VL tables.
    order
        int32[V, C], position of each channel in the topological order of each VL.
    entries
        The ports at which packets enter the fabric (not LFT entries): their switches (int32[N]), their port numbers
        (uint8[N]), and the SLs, as bits, of their packets to each LID (uint16[N, L]).
    threads
        Worker threads.

    Returns
    -------
    int32[N, 4]
        For each port, the first packet that violates the order: its LID and SL, and the channel and VL where the order
        is violated.  The LID is -1 if no packet of the port violates the order.

    Notes
    -----
    Cost: O(hops) per packet.
    """
    channels = fabric.channels
    switch, port, sls = (np.ascontiguousarray(array) for array in entries)
    fault = np.empty((len(entries[0]), 4), np.int32)
    ports = 0 if sl2vl.ndim == 1 else sl2vl.shape[1]
    tables = _tables(channels, lft, order, threads, ports=ports, sl2vl=sl2vl)
    call(lib.ibn_cdg_check_certificate, tables, len(fault), switch, port, sls, fault)
    return fault


def next_hops_increase(
    fabric: Fabric, lft: npt.NDArray[np.uint8], order: npt.NDArray[np.int32], *, threads: int
) -> npt.NDArray[np.bool_]:
    """Return bool[V], whether the channels of all next hops follow the topological order of each VL.

    A next hop follows the order if the channel of a switch towards a LID comes before the channel of the next switch
    towards this LID.  If all next hops follow the order of a VL, no packet that keeps this VL violates the order.

    Parameters
    ----------
    fabric, lft
        The fabric and its LFTs.
    order
        int32[V, C], position of each channel in the topological order of each VL.
    threads
        Worker threads.

    Notes
    -----
    Cost: O(S L V).  No packet is followed, so the cost does not depend on the lengths of the paths.
    """
    bad = np.zeros((len(lft), len(order)), np.uint8)
    call(lib.ibn_cdg_check_next_hops, _tables(fabric.channels, lft, order, threads), len(lft), bad)
    return np.asarray(~bad.any(axis=0))


def _tables(
    channels: Channels, lft: npt.NDArray[np.uint8], order: npt.NDArray[np.int32], threads: int, **fields: Any
) -> Any:
    """Return the kernel's struct of LFTs and topological orders.  ``fields`` are further fields of the struct."""
    sizes = {"lids": lft.shape[1], "channels": len(channels), "vls": len(order), "threads": threads}
    return struct_of("certificate_tables", channels, **sizes, lft=lft, order=order, **fields)
