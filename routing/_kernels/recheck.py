"""Kernel wrapper: prove tables by what has changed in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, grouped, lib, point, pointer
from routing._kernels.slots import slot_numbers
from routing.fabric import Channels, Fabric


@dataclass(frozen=True, eq=False)
class Rechecked:
    """What walking all that has changed shows.

    Attributes
    ----------
    waits
        uint16[slots], VLs on which each turn may be taken.
    hops
        uint8[S, L].
    walked, lost, not_climbing
        Packets walked; those that do not arrive or do not climb; turns that may be taken and do not climb.
    """

    waits: npt.NDArray[np.uint16]
    hops: npt.NDArray[np.uint8]
    walked: int
    lost: int
    not_climbing: int


def recheck(
    fabric: Fabric,
    tables: tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]],
    levels: tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]],
    *,
    vl_bit: npt.NDArray[np.uint16],
    order: npt.NDArray[np.int32],
    replies: bool,
    endports_only: bool,
    waits: npt.NDArray[np.uint16],
    hops: npt.NDArray[np.uint8],
    turns_climb: bool,
) -> Rechecked:
    """See that all climbs, where it is known that what has not changed does.

    ``tables``: the LFT and what it was, uint8[S, L], 255 where an entry of before does not hold; ``levels``: the SLs
    and what they were, both uint8[L] or both uint8[S, L]; ``order``: int32[V, C]; ``waits`` and ``hops`` as they were;
    ``turns_climb``: whether all of ``waits`` is known to climb.

    Cost: one pass over LFT and slots, and the hops of every packet whose way has changed.
    """
    lids, channels = fabric.lids, fabric.channels
    starts, by_switch = grouped(lids.switch, fabric.switches)
    arrays: dict[str, npt.NDArray[Any]] = {
        **{name: getattr(channels, name) for name in ("first", "src", "dst", "port", "into", "into_first", "at_port")},
        "slot": slot_numbers(channels)[0],
        "lid_switch": lids.switch,
        "lid_port": lids.port,
        "lids_at_first": starts,
        "lids_at": by_switch,
        "has_endport": (fabric.terminals_at > 0).astype(np.uint8),
        "vl_bit": vl_bit,
        "lft": np.ascontiguousarray(tables[0]),
        "was": np.ascontiguousarray(tables[1]),
        "sl": np.ascontiguousarray(levels[0]),
        "sl_was": np.ascontiguousarray(levels[1]),
        "order": np.ascontiguousarray(order),
    }
    c = ffi.new("recheck_tables *")
    c.switches, c.lids, c.channels, c.vls = fabric.switches, len(lids), len(channels), len(order)
    c.sl_by_switch, c.replies, c.endports_only = int(levels[0].ndim == 2), int(replies), int(endports_only)
    c.turns_climb = int(turns_climb)
    point(c, **arrays)
    waits, hops, counts = waits.copy(), hops.copy(), np.zeros(3, np.int64)
    check(lib.ibn_recheck(c, pointer(waits), pointer(hops), pointer(counts)))
    return Rechecked(waits, hops, *counts.tolist())


def turns_against(channels: Channels, waits: npt.NDArray[np.uint16], order: npt.NDArray[np.int32]) -> int:
    """How many turns of ``waits`` (uint16[slots]) do not climb in an order (int32[V, C]), counted for each VL.

    Cost: O(turns).
    """
    slot, order = slot_numbers(channels)[0], np.ascontiguousarray(order)
    found: int = lib.ibn_turns_against(
        len(channels),
        len(order),
        pointer(channels.first),
        pointer(channels.dst),
        pointer(slot),
        pointer(waits),
        pointer(order),
    )
    return found
