"""Kernel wrapper: fill the holes of tables without closing a credit loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, point, pointer
from routing.fabric import Channels

MEND, LAY_ANEW, LEAVE, CLEAR = 0, 1, 2, 3
"""What to do with a column that has holes."""
NO_HOLE, MENDED, LAID_ANEW, FAILED, COPIED = 0, 1, 2, 3, 4
"""What was done."""


@dataclass(frozen=True, eq=False)
class Ground:
    """Where tables are mended.

    Attributes
    ----------
    channels
        Channels, dead ones among them.
    slot
        int32[C], the first slot of each (:func:`routing._kernels.slots.slot_numbers`).
    alive
        uint8[C].
    part
        int32[S], connected part over the channels that are alive.
    lid_switch, lid_port
        int32[L], uint8[L]: where each LID is delivered, -1: nowhere.
    has_endport
        uint8[S], whether CAs or routers send there.
    slowness
        int64[C], what a unit of flow weighs on each channel.
    sources, weight
        int64[S], int64[L]: flow from each switch is their product.
    """

    channels: Channels
    slot: npt.NDArray[np.int32]
    alive: npt.NDArray[np.uint8]
    part: npt.NDArray[np.int32]
    lid_switch: npt.NDArray[np.int32]
    lid_port: npt.NDArray[np.uint8]
    has_endport: npt.NDArray[np.uint8]
    slowness: npt.NDArray[np.int64]
    sources: npt.NDArray[np.int64]
    weight: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Traffic:
    """On which VLs it goes, and whose counts.

    Attributes
    ----------
    sl
        uint8[L] or uint8[S, L].
    vl_bit
        uint16[16], 1 << VL of each SL, 0 where it is dropped.
    replies
        Whether replies count.
    endports_only
        Whether what switches send to switches does not.
    level
        uint8[V]: an SL for each VL that ways may be moved to, 255: none.
    by_parts
        Whether each part of a tree may be moved by itself.
    """

    sl: npt.NDArray[np.uint8]
    vl_bit: npt.NDArray[np.uint16]
    replies: bool
    endports_only: bool
    level: npt.NDArray[np.uint8]
    by_parts: bool = True


@dataclass(frozen=True, eq=False)
class Waits:
    """What waits for what already.

    Attributes
    ----------
    masks
        uint16[slots], VLs on which each turn may be taken.
    order
        int32[V, C], a topological order of that; V = 0: credit loops are of no concern.
    position
        int32[S], place of each switch in an order such that every turn climbs that leads up, then down, by it; None if
        none is known.  Ways of such turns are looked for first, since whether they are allowed takes no search.
    """

    masks: npt.NDArray[np.uint16]
    order: npt.NDArray[np.int32]
    position: npt.NDArray[np.int32] | None = None


@dataclass(frozen=True, eq=False)
class Repair:
    """What came of it.

    Attributes
    ----------
    lft, waits, load
        As given, with what was filled in.
    sl
        SLs, changed where a way fits on no VL of its own.
    done
        uint8[L]: NO_HOLE, MENDED, LAID_ANEW, COPIED (the ways of another LID) or FAILED (then the column is as it was,
        or empty where it was to be cleared).
    holes, filled, moved
        Entries without a route at first; filled; changed although they held.
    visited
        Channels that searches for cycles came by.
    by_parts
        Trees that went over to other VLs part by part.
    """

    lft: npt.NDArray[np.uint8]
    sl: npt.NDArray[np.uint8]
    waits: Waits
    load: npt.NDArray[np.int64]
    done: npt.NDArray[np.uint8]
    holes: int
    filled: int
    moved: int
    visited: int
    by_parts: int


def repair(
    ground: Ground,
    traffic: Traffic,
    lft: npt.NDArray[np.uint8],
    *,
    wish: npt.NDArray[np.uint8],
    waits: Waits,
    load: npt.NDArray[np.int64],
    lay: npt.NDArray[np.uint8],
) -> Repair:
    """Fill the holes of ``lft`` (uint8[S, L], 255 where a LID of the same part has no route).

    A switch that lost its way takes the channel that ``wish`` (uint8[S, L]) names, or of the ways that are two hops
    longer than the shortest at most the one whose fullest channel carries least (``load``, int64[C]), else the
    shortest, such that no turn closes a cycle; what hangs on it comes along.  Where a column has several holes, or is
    laid anew, hops go first.
    Where none is allowed, another switch that hangs on it, or a neighbour, gives way; then SLs change, of all that goes
    on a VL together or of parts; then those for which that does not do are left behind and look for ways of their own,
    at last all that hangs on it.  ``lay`` (uint8[L]) says MEND, LAY_ANEW (as a whole, whatever ``wish`` says, if that
    can be done) or LEAVE for each column; or CLEAR: turns that nobody takes on its VLs are let go of, so that ``waits``
    has less than was given; a column that finds no way even so is laid from nothing, or takes the ways of another LID.

    Cost: for every hole what hangs on it times the radix, the hops of its ways out, and searches for cycles; one pass
    over the LFT for the holes and over the slots.
    """
    lids_at_first, lids_at = _lids_by_switch(ground)
    kept = [np.ascontiguousarray(a) for a in (traffic.level, traffic.vl_bit, ground.sources, ground.weight, wish)]
    kept.append(np.ascontiguousarray(ground.slowness))
    fabric = _fabric(ground, waits, (lids_at_first, lids_at), kept)
    fabric.sl_by_switch, fabric.replies = int(traffic.sl.ndim == 2), int(traffic.replies)
    fabric.climb_first = int(waits.position is not None)
    fabric.endports_only, fabric.by_parts = int(traffic.endports_only), int(traffic.by_parts)
    lft, load, sl = np.array(lft, order="C"), np.array(load, order="C"), np.array(traffic.sl, order="C")
    masks, order = np.array(waits.masks, order="C"), np.array(waits.order, np.int32, order="C")
    done, counts = np.zeros(lft.shape[1], np.uint8), np.zeros(5, np.int64)
    check(
        lib.ibn_repair(
            fabric,
            pointer(lay),
            pointer(lft),
            pointer(sl),
            pointer(masks),
            pointer(order),
            pointer(load),
            pointer(done),
            pointer(counts),
        )
    )
    return Repair(lft, sl, Waits(masks, order, waits.position), load, done, *counts.tolist())


def _lids_by_switch(ground: Ground) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """LIDs sorted by the switch that delivers them, and where those of each switch begin."""
    here = np.flatnonzero(ground.lid_switch >= 0)
    by_switch = here[np.argsort(ground.lid_switch[here], kind="stable")]
    first = np.searchsorted(ground.lid_switch[by_switch], np.arange(len(ground.part) + 1))
    return first.astype(np.int32), by_switch.astype(np.int32)


def _fabric(
    ground: Ground,
    waits: Waits,
    lids_at: tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]],
    kept: list[npt.NDArray[Any]],
) -> Any:
    channels = ground.channels
    fabric = ffi.new("repair_fabric *")
    fabric.switches, fabric.lids = len(ground.part), len(ground.lid_switch)
    fabric.channels, fabric.slots, fabric.vls = len(channels), len(waits.masks), len(waits.order)
    level, vl_bit, sources, weight, wish, slowness = kept
    point(fabric, first=channels.first, src=channels.src, dst=channels.dst, into=channels.into, port=channels.port)
    point(fabric, into_first=channels.into_first, at_port=channels.at_port)
    point(fabric, slot=ground.slot, alive=ground.alive, has_endport=ground.has_endport, part=ground.part)
    point(fabric, lid_switch=ground.lid_switch, lid_port=ground.lid_port, lids_at_first=lids_at[0], lids_at=lids_at[1])
    point(fabric, level=level, vl_bit=vl_bit, sources=sources, weight=weight, wish=wish, slowness=slowness)
    return fabric
