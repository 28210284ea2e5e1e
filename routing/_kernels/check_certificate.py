"""Kernel wrapper: check a certificate, which means to check that every packet uses channels in topological order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, point, pointer
from routing.fabric import Fabric


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
        The ports at which packets enter the fabric: their switches (int32[N]), their port numbers (uint8[N]), and the
        SLs, as bits, of their packets to each LID (uint16[N, L]).
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
    kept = [np.ascontiguousarray(array) for array in (lft, sl2vl, order, *entries)]
    fault = np.empty((len(entries[0]), 4), np.int32)
    tables = ffi.new("certificate_tables *")
    tables.lids, tables.channels, tables.vls = lft.shape[1], len(channels), len(order)
    tables.ports = 0 if sl2vl.ndim == 1 else sl2vl.shape[1]
    tables.threads = threads
    point(tables, lft=kept[0], sl2vl=kept[1], order=kept[2])
    point(tables, at_port=channels.at_port, dst=channels.dst, dst_port=channels.dst_port)
    check(
        lib.ibn_cdg_check_certificate(
            tables, len(fault), pointer(kept[3]), pointer(kept[4]), pointer(kept[5]), pointer(fault)
        )
    )
    return fault
