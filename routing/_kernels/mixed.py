"""Kernel wrappers: what can wait for what while some switches have their old tables and some the new ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, point, pointer
from routing._kernels.slots import Slots
from routing.fabric import Fabric

Bytes = npt.NDArray[np.uint8]
SMALL = 100_000
"""Entries of tables below which a second thread is not worth its start."""


def trace_mixed(
    slots: Slots,
    ways: tuple[Bytes, Bytes],
    enter: npt.NDArray[np.uint32],
    dep: npt.NDArray[np.uint32],
    *,
    threads: int,
) -> npt.NDArray[np.bool_]:
    """Follow packets over mixed tables, where the VL of a packet stays.

    Parameters
    ----------
    slots
        Of the fabric.
    ways
        uint8[K, S] before and after: out-port of each switch towards each of K LIDs.
    enter
        uint32[K, S]: bits for what enters at each switch (VLs of requests and of replies, as in a trace).
    dep
        uint32[slots], or-ed to: for each turn the bits of what may take it.
    threads
        Worker threads; the result is the same with any number.

    Returns
    -------
    bool[K], whether packets for a LID may run in a circle.  Cost: O(K S).
    """
    tables, kept = _native(slots, ways, threads)
    circles = np.zeros(len(ways[0]), np.uint8)
    check(
        lib.ibn_mixed_trace(
            tables, pointer(_of_shape(enter, ways[0].shape)), pointer(_of_shape(dep, (slots.count,))), pointer(circles)
        )
    )
    del kept
    return circles.astype(bool)


def trace_mixed_lanes(
    fabric: Fabric,
    slots: Slots,
    ways: tuple[Bytes, Bytes],
    enter: npt.NDArray[np.uint16],
    dep: npt.NDArray[np.uint16],
    *,
    sl2vl: tuple[Bytes, Bytes],
    entries: tuple[npt.NDArray[np.int32], Bytes],
    threads: int,
) -> npt.NDArray[np.bool_]:
    """Follow packets over mixed tables, where their VLs may change on the way.

    Parameters
    ----------
    fabric, slots, ways
        The fabric; the rest as in :func:`trace_mixed`.
    enter
        uint16[K, N]: SLs on which each sends to each of the LIDs.
    dep
        uint16[slots, V], or-ed to: for each turn and each VL before it the VLs after it.
    sl2vl
        uint8[S, P, P, 16] before and after.
    entries
        int32[N], uint8[N]: switch and in-port of all that sends.
    threads
        Worker threads.

    Returns
    -------
    bool[K], whether packets for a LID may run in a circle.  Cost: O(K (S + N) k) for k SLs.
    """
    tables, kept = _native(slots, ways, threads)
    lanes, circles = ffi.new("mixed_lanes *"), np.zeros(len(ways[0]), np.uint8)
    channels, x = fabric.channels, np.arange(len(fabric.channels)) + 2 * fabric.channels.src
    xport, xin = np.zeros(len(slots.xdst), np.uint8), np.zeros(len(slots.xdst), np.uint8)
    xport[x], xin[x] = channels.port, channels.dst_port
    whole = [np.ascontiguousarray(table) for table in sl2vl]
    lanes.ports, lanes.vls, lanes.entries = whole[0].shape[1], dep.shape[1], len(entries[0])
    point(lanes, sl2vl_before=whole[0], sl2vl_after=whole[1], xport=xport, xin=xin)
    point(lanes, entry_switch=entries[0], entry_port=entries[1])
    check(
        lib.ibn_mixed_trace_lanes(
            tables,
            lanes,
            pointer(_of_shape(enter, (len(ways[0]), len(entries[0])))),
            pointer(_of_shape(dep, (slots.count, lanes.vls))),
            pointer(circles),
        )
    )
    del kept
    return circles.astype(bool)


def admit_mixed(
    fabric: Fabric,
    slots: Slots,
    ways: tuple[Bytes, Bytes],
    enter: npt.NDArray[np.uint32],
    *,
    waits: npt.NDArray[np.uint32],
    order: npt.NDArray[np.int32],
    rounds: Bytes | None = None,
) -> npt.NDArray[np.bool_]:
    """Take one column after the other, if what its mixture makes wait closes no cycle with all before.

    Parameters
    ----------
    fabric, slots, ways, enter
        As in :func:`trace_mixed`.
    waits
        uint32[slots], what waits already: for each turn the VLs.
    order
        int32[V, C], a topological order of that in each VL.
    rounds
        uint8[K, S], as :func:`write_rounds` gives them; None: every entry is written at any time.

    Returns
    -------
    bool[K], which are taken.  Cost: O(K S V), and what it takes to mend the orders (Pearce and Kelly, 2007).
    """
    tables, kept = _native(slots, ways, 1)
    net, channels, taken = ffi.new("mixed_net *"), fabric.channels, np.zeros(len(ways[0]), np.uint8)
    net.lanes, net.channels = _of_shape(order, (len(order), len(channels))).shape
    point(net, first=channels.first, src=channels.src, dst=channels.dst, into=channels.into)
    point(net, into_first=channels.into_first, order=order, dep=_of_shape(waits, (slots.count,)))
    check(
        lib.ibn_mixed_admit(
            tables,
            net,
            pointer(_of_shape(enter, ways[0].shape)),
            pointer(None if rounds is None else _of_shape(rounds, ways[0].shape)),
            pointer(taken),
        )
    )
    del kept
    return taken.astype(bool)


def write_rounds(slots: Slots, ways: tuple[Bytes, Bytes], *, outward: bool) -> tuple[Bytes, Bytes]:
    """Rounds in which entries can be written so that no packet circles.

    On a circle of old and new entries a switch comes after all that change on its new way; elsewhere not before them.

    Parameters
    ----------
    slots, ways
        As in :func:`trace_mixed`.
    outward
        After all of them everywhere.

    Returns
    -------
    uint8[K, S], the round of each entry that changes, from 1 on (0: it does not); uint8[K], the last of each LID; 255:
    no less, or the new way of some switch never ends.  Cost: O(K S), for LIDs with circles times their length.
    """
    tables, kept = _native(slots, ways, 1)
    rounds, last = np.zeros(ways[0].shape, np.uint8), np.zeros(len(ways[0]), np.uint8)
    check(lib.ibn_mixed_rounds(tables, int(outward), pointer(rounds), pointer(last)))
    del kept
    return rounds, last


def _of_shape(array: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    if array.shape != shape:
        raise TypeError(f"kernel wants {shape}, got {array.shape}")
    return array


def _native(slots: Slots, ways: tuple[Bytes, Bytes], threads: int) -> tuple[Any, list[npt.NDArray[Any]]]:
    """The C view of both tables, and the arrays behind it."""
    before, after = ways
    tables = ffi.new("mixed_tables *")
    tables.columns, tables.switches = before.shape
    tables.slots, tables.threads = slots.count, threads if before.size > SMALL else 1
    kept = [np.ascontiguousarray(before), np.ascontiguousarray(_of_shape(after, before.shape))]
    point(tables, before=kept[0], after=kept[1])
    point(tables, exit=slots.exit, xfirst=slots.xfirst, xdst=slots.xdst, dep_first=slots.dep_first)
    return tables, kept
