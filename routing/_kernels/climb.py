"""Kernel wrapper: walk every packet and see that the places of its channels climb."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, pointer
from routing.fabric import Fabric


def climb(
    fabric: Fabric,
    lft: npt.NDArray[np.uint8],
    sl2vl: npt.NDArray[np.uint8],
    order: npt.NDArray[np.int32],
    entries: tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.uint16]],
    *,
    threads: int,
) -> npt.NDArray[np.int32]:
    """Walk all packets that enter at ``entries``: switch int32[N], in-port uint8[N], mask of SLs by LID uint16[N, L].

    Returns
    -------
    int32[N, 4]
        LID, SL, channel and VL of the first packet of each entry that does not climb; LID -1 where all do.
        Cost: O(hops) a packet.
    """
    channels = fabric.channels
    kept = [np.ascontiguousarray(array) for array in (lft, sl2vl, order, *entries)]
    fault = np.empty((len(entries[0]), 4), np.int32)
    tables = ffi.new("climb_tables *")
    tables.lids, tables.channels, tables.vls = lft.shape[1], len(channels), len(order)
    tables.ports = 0 if sl2vl.ndim == 1 else sl2vl.shape[1]
    tables.threads = threads
    tables.lft = pointer("uint8_t *", kept[0], np.uint8)
    tables.at_port = pointer("int32_t *", channels.at_port, np.int32)
    tables.dst = pointer("int32_t *", channels.dst, np.int32)
    tables.dst_port = pointer("uint8_t *", channels.dst_port, np.uint8)
    tables.sl2vl = pointer("uint8_t *", kept[1], np.uint8)
    tables.order = pointer("int32_t *", kept[2], np.int32)
    check(
        lib.ibn_climb(
            tables,
            len(fault),
            pointer("int32_t *", kept[3], np.int32),
            pointer("uint8_t *", kept[4], np.uint8),
            pointer("uint16_t *", kept[5], np.uint16),
            pointer("int32_t *", fault, np.int32),
        )
    )
    return fault
