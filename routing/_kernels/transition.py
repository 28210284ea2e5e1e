"""Kernel wrappers: channel dependencies while some switches have their old tables and others the new ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, point, pointer
from routing._kernels.slots import Slots
from routing.fabric import Fabric

Bytes = npt.NDArray[np.uint8]
SMALL = 100_000
"""LFT entries up to which starting a second thread does not pay."""


def trace_mixed(
    slots: Slots,
    next_channels: tuple[Bytes, Bytes],
    enter: npt.NDArray[np.uint32],
    dep: npt.NDArray[np.uint32],
    *,
    threads: int,
) -> npt.NDArray[np.bool_]:
    """Collect the dependencies of mixed tables, where the VL of a packet does not change.

    Parameters
    ----------
    slots
        Numbers of the CDG edges of the fabric.
    next_channels
        Old and new LFT columns: uint8[K, S], out-port of each switch towards each of K LIDs.
    enter
        uint32[K, S]: mask of the traffic injected at each switch (VLs of requests and of replies, see
        :class:`~routing._kernels.cdg.Trace`).
    dep
        uint32[edges], OR-ed to: for each dependency the bits of the traffic that may have it.
    threads
        Worker threads; the result is the same with any number.

    Returns
    -------
    bool[K]
        Whether mixed entries for a LID can form a forwarding loop.

    Notes
    -----
    Cost: O(K S).
    """
    tables, kept = _native(slots, next_channels, threads)
    loops = np.zeros(len(next_channels[0]), np.uint8)
    check(
        lib.ibn_transition_trace(
            tables,
            pointer(_of_shape(enter, next_channels[0].shape)),
            pointer(_of_shape(dep, (slots.count,))),
            pointer(loops),
        )
    )
    del kept
    return loops.astype(bool)


def trace_mixed_vls(
    fabric: Fabric,
    slots: Slots,
    next_channels: tuple[Bytes, Bytes],
    enter: npt.NDArray[np.uint16],
    dep: npt.NDArray[np.uint16],
    *,
    sl2vl: tuple[Bytes, Bytes],
    entries: tuple[npt.NDArray[np.int32], Bytes],
    threads: int,
) -> npt.NDArray[np.bool_]:
    """Collect the dependencies of mixed tables, where the VL of a packet may change from hop to hop.

    Parameters
    ----------
    fabric, slots, next_channels
        The fabric; for the others see :func:`trace_mixed`.
    enter
        uint16[K, N]: mask of the SLs on which each port sends to each of the LIDs.
    dep
        uint16[edges, V], OR-ed to: for each dependency and each VL on its first channel, the VLs on its second channel.
    sl2vl
        Old and new SL2VL tables, uint8[S, P, P, 16].
    entries
        int32[N], uint8[N]: switch and in-port of all ports that inject traffic.
    threads
        Worker threads.

    Returns
    -------
    bool[K]
        Whether mixed entries for a LID can form a forwarding loop.

    Notes
    -----
    Cost: O(K (S + N) k) for k SLs.
    """
    tables, kept = _native(slots, next_channels, threads)
    vls, loops = ffi.new("transition_vls *"), np.zeros(len(next_channels[0]), np.uint8)
    channels, x = fabric.channels, np.arange(len(fabric.channels)) + 2 * fabric.channels.src
    xport, xin = np.zeros(len(slots.xdst), np.uint8), np.zeros(len(slots.xdst), np.uint8)
    xport[x], xin[x] = channels.port, channels.dst_port
    whole = [np.ascontiguousarray(table) for table in sl2vl]
    vls.ports, vls.vls, vls.entries = whole[0].shape[1], dep.shape[1], len(entries[0])
    point(vls, sl2vl_before=whole[0], sl2vl_after=whole[1], xport=xport, xin=xin)
    point(vls, entry_switch=entries[0], entry_port=entries[1])
    check(
        lib.ibn_transition_trace_vls(
            tables,
            vls,
            pointer(_of_shape(enter, (len(next_channels[0]), len(entries[0])))),
            pointer(_of_shape(dep, (slots.count, vls.vls))),
            pointer(loops),
        )
    )
    del kept
    return loops.astype(bool)


def admit_mixed(
    fabric: Fabric,
    slots: Slots,
    next_channels: tuple[Bytes, Bytes],
    enter: npt.NDArray[np.uint32],
    *,
    dependencies: npt.NDArray[np.uint32],
    order: npt.NDArray[np.int32],
    rounds: Bytes | None = None,
) -> npt.NDArray[np.bool_]:
    """Admit LFT columns one by one, if their mixed entries keep the CDG of every VL acyclic.

    The CDG contains the existing dependencies and those of the columns admitted before.

    Parameters
    ----------
    fabric, slots, next_channels, enter
        See :func:`trace_mixed`.
    dependencies
        uint32[edges], existing dependencies: for each the mask of its VLs.
    order
        int32[V, C], a topological order of these for each VL.
    rounds
        uint8[K, S], see :func:`write_rounds`; None: entries may be written in any order.

    Returns
    -------
    bool[K]
        Whether each column is admitted.

    Notes
    -----
    Cost: O(K S V), and the updates of the topological orders (Pearce and Kelly, 2007).
    """
    tables, kept = _native(slots, next_channels, 1)
    net, channels, taken = ffi.new("transition_net *"), fabric.channels, np.zeros(len(next_channels[0]), np.uint8)
    net.vls, net.channels = _of_shape(order, (len(order), len(channels))).shape
    point(net, first=channels.first, src=channels.src, dst=channels.dst, into=channels.into)
    point(net, into_first=channels.into_first, order=order, dep=_of_shape(dependencies, (slots.count,)))
    check(
        lib.ibn_transition_admit(
            tables,
            net,
            pointer(_of_shape(enter, next_channels[0].shape)),
            pointer(None if rounds is None else _of_shape(rounds, next_channels[0].shape)),
            pointer(taken),
        )
    )
    del kept
    return taken.astype(bool)


def write_rounds(slots: Slots, next_channels: tuple[Bytes, Bytes], *, outward: bool) -> tuple[Bytes, Bytes]:
    """Compute rounds in which entries can be written so that no mixture of them forms a forwarding loop.

    A changed switch on a loop of old and new entries, or between loops, is written in a later round than all such
    switches on its new path.  Any other changed switch is written no earlier than the changed switches on its new path.

    Parameters
    ----------
    slots, next_channels
        See :func:`trace_mixed`.
    outward
        Write every changed switch in a later round than all changed switches on its new path.

    Returns
    -------
    rounds : uint8[K, S]
        Round of each entry that changes, from 1 on; 0 for the others.
    last : uint8[K]
        Last round of each LID; 255: 255 or more, or the new path of some switch never ends.

    Notes
    -----
    Cost: O(K S), times the length of paths for LIDs with loops.
    """
    tables, kept = _native(slots, next_channels, 1)
    rounds, last = np.zeros(next_channels[0].shape, np.uint8), np.zeros(len(next_channels[0]), np.uint8)
    check(lib.ibn_transition_rounds(tables, int(outward), pointer(rounds), pointer(last)))
    del kept
    return rounds, last


def _of_shape(array: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    if array.shape != shape:
        raise TypeError(f"kernel wants {shape}, got {array.shape}")
    return array


def _native(slots: Slots, next_channels: tuple[Bytes, Bytes], threads: int) -> tuple[Any, list[npt.NDArray[Any]]]:
    """Return the C struct of both tables, and the arrays that it points to."""
    before, after = next_channels
    tables = ffi.new("transition_tables *")
    tables.columns, tables.switches = before.shape
    tables.slots, tables.threads = slots.count, threads if before.size > SMALL else 1
    kept = [np.ascontiguousarray(before), np.ascontiguousarray(_of_shape(after, before.shape))]
    point(tables, before=kept[0], after=kept[1])
    point(tables, exit=slots.exit, xfirst=slots.xfirst, xdst=slots.xdst, dep_first=slots.dep_first)
    return tables, kept
