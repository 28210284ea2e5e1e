"""Kernel wrappers: channel dependencies while some switches use their old tables and other switches use new tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, lib, struct_of
from routing._kernels.slots import Slots
from routing.fabric import Fabric

Bytes = npt.NDArray[np.uint8]
SMALL = 100_000
"""For at most this number of LFT entries, a single thread is faster than several threads."""


def trace_mixed(
    slots: Slots,
    next_channels: tuple[Bytes, Bytes],
    enter: npt.NDArray[np.uint32],
    dep: npt.NDArray[np.uint32],
    *,
    threads: int,
) -> npt.NDArray[np.bool_]:
    """Collect the dependencies of packets that keep their VL, while old and new tables are mixed.

    Parameters
    ----------
    slots
        Numbers of the CDG edges of the fabric.
    next_channels
        Old and new LFT columns: uint8[K, S] each, out-port of each switch towards each of K LIDs.
    enter
        uint32[K, S], VLs, as bits, of the packets to each LID that enter at each switch.  The low 16 bits are the VLs
        of requests.  The high 16 bits are the VLs of requests and replies together.
    dep
        uint32[edges], changed in place: the VLs, as bits, of the packets that may use each CDG edge are added.  The low
        and the high 16 bits have the same meaning as in ``enter``.
    threads
        Worker threads; they do not change the result.

    Returns
    -------
    bool[K]
        Whether the old and new entries for a LID can form a forwarding loop.

    Notes
    -----
    Cost: O(K S).
    """
    tables = _native(slots, next_channels, threads)
    loops = np.zeros(len(next_channels[0]), np.uint8)
    enter, dep = _of_shape(enter, next_channels[0].shape), _of_shape(dep, (slots.count,))
    call(lib.ibn_transition_trace, tables, enter, dep, loops)
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
    """Collect the dependencies of packets that may change their VL from hop to hop, while old and new tables are mixed.

    Parameters
    ----------
    fabric, slots
        The fabric, and the numbers of its CDG edges.
    next_channels
        Old and new LFT columns: uint8[K, S] each, out-port of each switch towards each of K LIDs.
    enter
        uint16[K, N], the SLs, as bits, with which each of N ports sends to each of the LIDs.
    dep
        uint16[edges, V], changed in place: for each CDG edge and each VL on its first channel, the VLs on its second
        channel are added, as bits.
    sl2vl
        Old and new SL2VL tables, uint8[S, P, P, 16] each.
    entries
        Switch (int32[N]) and number (uint8[N]) of each port at which packets enter the fabric.
    threads
        Worker threads.

    Returns
    -------
    bool[K]
        Whether the old and new entries for a LID can form a forwarding loop.

    Notes
    -----
    Cost: O(K (S + N) k) for k SLs.
    """
    tables = _native(slots, next_channels, threads)
    loops = np.zeros(len(next_channels[0]), np.uint8)
    channels, x = fabric.channels, np.arange(len(fabric.channels)) + 2 * fabric.channels.src
    xport, xin = np.zeros(len(slots.xdst), np.uint8), np.zeros(len(slots.xdst), np.uint8)
    xport[x], xin[x] = channels.port, channels.dst_port
    vls = struct_of(
        "transition_vls", ports=sl2vl[0].shape[1], vls=dep.shape[1], entries=len(entries[0]), sl2vl_before=sl2vl[0],
        sl2vl_after=sl2vl[1], xport=xport, xin=xin, entry_switch=entries[0], entry_port=entries[1],
    )  # fmt: skip
    enter = _of_shape(enter, (len(next_channels[0]), len(entries[0])))
    call(lib.ibn_transition_trace_vls, tables, vls, enter, _of_shape(dep, (slots.count, vls.vls)), loops)
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
    """Decide which LFT columns can change without a cycle in the CDG of any VL.  Columns are decided one after the
    other.

    The CDG has the existing dependencies and the dependencies of the columns that were admitted earlier.  The
    dependencies of a column come from its old and new entries in any mixture.  A column that would close a cycle is
    rejected, and does not change the CDG.

    Parameters
    ----------
    fabric, slots
        The fabric, and the numbers of its CDG edges.
    next_channels
        Old and new LFT columns: uint8[K, S] each, out-port of each switch towards each of K LIDs.
    enter
        uint32[K, S], VLs, as bits, of the packets to each LID that enter at each switch.
    dependencies
        uint32[edges], VLs, as bits, on which each CDG edge is in use already.
    order
        int32[V, C], position of each channel in a topological order of ``dependencies``, for each VL.
    rounds
        uint8[K, S], round in which each entry is written, see :func:`write_rounds`; None: entries may be written in any
        order.

    Returns
    -------
    bool[K]
        Whether each column is admitted.

    Notes
    -----
    Cost: O(K S V), and the updates of the topological orders (Pearce and Kelly, 2007).
    """
    tables = _native(slots, next_channels, 1)
    channels, taken = fabric.channels, np.zeros(len(next_channels[0]), np.uint8)
    order, dep = _of_shape(order, (len(order), len(channels))), _of_shape(dependencies, (slots.count,))
    net = struct_of("transition_net", channels, vls=len(order), channels=len(channels), order=order, dep=dep)
    shape = next_channels[0].shape
    rounds = None if rounds is None else _of_shape(rounds, shape)
    call(lib.ibn_transition_admit, tables, net, _of_shape(enter, shape), rounds, taken)
    return taken.astype(bool)


def write_rounds(slots: Slots, next_channels: tuple[Bytes, Bytes], *, outward: bool) -> tuple[Bytes, Bytes]:
    """Compute rounds in which LFT entries can be written, such that old and new entries never form a forwarding loop.

    Rounds are computed for each LID separately.  A changed switch is a switch whose old and new entries towards the LID
    differ.  The core has the switches on loops of old and new entries, and the switches on paths from one such loop to
    another.  A changed switch of the core is written in a later round than all changed switches of the core on its new
    path.  Any other changed switch is written no earlier than the changed switches on its new path.

    Parameters
    ----------
    slots
        Numbers of the CDG edges of the fabric.
    next_channels
        Old and new LFT columns: uint8[K, S] each, out-port of each switch towards each of K LIDs.
    outward
        True: every changed switch is written in a later round than all changed switches on its new path.  False: the
        rules above apply.

    Returns
    -------
    rounds : uint8[K, S]
        Round of each changed entry, from 1 on; 0 for unchanged entries.
    last : uint8[K]
        Last round in which an entry towards each LID is written.  The value is 255 if the LID needs 255 or more rounds,
        or if the new entries alone have a forwarding loop.

    Notes
    -----
    Cost: O(K S), times the length of paths for LIDs with loops.
    """
    tables = _native(slots, next_channels, 1)
    rounds, last = np.zeros(next_channels[0].shape, np.uint8), np.zeros(len(next_channels[0]), np.uint8)
    call(lib.ibn_transition_rounds, tables, int(outward), rounds, last)
    return rounds, last


def _of_shape(array: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    if array.shape != shape:
        raise TypeError(f"kernel wants {shape}, got {array.shape}")
    return array


def _native(slots: Slots, next_channels: tuple[Bytes, Bytes], threads: int) -> Any:
    """Return the C struct of the old and new LFT columns."""
    before, after = next_channels
    columns, switches = before.shape
    sizes = {"columns": columns, "switches": switches, "slots": slots.count}
    return struct_of(
        "transition_tables",
        slots,
        **sizes,
        threads=threads if before.size > SMALL else 1,
        before=before,
        after=_of_shape(after, before.shape),
    )
