"""Proven tables, from a :class:`~routing.tables.Routing` into the shared memory."""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from osm_plugin.multicast import multicast_tree
from osm_plugin.snapshot import PAGE
from routing.fabric import Fabric
from routing.tables import Routing

ANSWER_MAGIC = 0x31736E6165756E69

ANSWER = np.dtype(
    [
        ("magic", "u8"), ("sequence", "u8"), ("switches", "u4"), ("lids", "u4"), ("vls", "u4"), ("sl_kind", "u4"),
        ("sl2vl_ports", "u4"), ("certified", "u4"), ("lft_at", "u8"), ("hops_at", "u8"), ("sl_at", "u8"),
        ("switch_of_at", "u8"), ("sl2vl_at", "u8"), ("parent_at", "u8"),
        ("up_port_at", "u8"), ("down_port_at", "u8"),
        ("held_at", "u8"), ("plan", "u8"), ("held", "u4"), ("round_wait", "u4"),
        ("wait_from", "u4"), ("unused", "u4"), ("end", "u8"),
    ]
)  # fmt: skip

HELD = np.dtype([("row", "u4"), ("lid", "u2"), ("round", "u1"), ("port", "u1")])

SL_BY_DESTINATION, SL_BY_SWITCH, SL_BY_LIDS = range(3)


def sl_kind(fabric: Fabric, routing: Routing) -> int:
    """How the SL table is indexed."""
    if routing.sl.ndim == 1:
        return SL_BY_DESTINATION
    return SL_BY_LIDS if routing.sl.shape[0] == len(fabric.lids) else SL_BY_SWITCH


class SharedMemory:
    """The worker's mapping of the memory shared with OpenSM; the file only ever grows."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._map: mmap.mmap | None = None

    def view(self, least: int = 1) -> mmap.mmap:
        """The whole file, which holds at least that many bytes afterwards."""
        size = os.fstat(self._descriptor).st_size
        if size < least:
            os.ftruncate(self._descriptor, least)
            size = least
        if self._map is None or len(self._map) != size:
            self._map = mmap.mmap(self._descriptor, size)
        return self._map


def write_answer(
    memory: SharedMemory,
    at: int,
    fabric: Fabric,
    routing: Routing,
    hops: npt.NDArray[np.uint8],
    *,
    sequence: int,
    certified: bool = False,
    held: npt.NDArray[np.void] | None = None,
    plan: int = 0,
    wait: float = 0.0,
    wait_from: int = 0,
) -> None:
    """Lay the tables into the memory from ``at`` on; the head comes last, so that half an answer is none.

    Parameters
    ----------
    memory
        Grown when it is too small.
    at
        Offset in bytes, a multiple of the page.
    fabric, routing
        The rows of the tables are the switches by GUID, as the shim has them too.
    hops
        uint8[S, L], hops from each switch to the switch that delivers the LID.
    sequence
        Of the request.
    certified
        Whether the tables are proven free of credit loops: only such are published again when an engine fails.
    held, plan
        :data:`HELD` [N], entries that are not written in the first round, and a number for these rounds.
    wait, wait_from
        Seconds for which rounds wait, besides acknowledgements, and the first that does; 0: none.
    """
    tree = multicast_tree(fabric, routing, hops)
    parts: dict[str, npt.NDArray[Any]] = {
        "lft_at": routing.lft,
        "hops_at": hops,
        "sl_at": routing.sl,
        "switch_of_at": fabric.lids.switch,
        "sl2vl_at": routing.sl2vl,
        "parent_at": tree.parent,
        "up_port_at": tree.up_port,
        "down_port_at": tree.down_port,
        "held_at": np.zeros(0, HELD) if held is None else held,
    }
    head = np.zeros(1, ANSWER)
    place = at + PAGE
    for name, part in parts.items():
        head[name] = place
        place += -(-part.nbytes // PAGE) * PAGE
    head["magic"], head["sequence"], head["end"] = ANSWER_MAGIC, sequence, place
    head["switches"], head["lids"], head["vls"] = fabric.switches, len(fabric.lids), routing.vls
    head["certified"] = certified
    head["held"], head["plan"], head["round_wait"] = len(parts["held_at"]), plan, round(1000 * wait)
    head["wait_from"] = wait_from
    head["sl_kind"] = sl_kind(fabric, routing)
    head["sl2vl_ports"] = 0 if routing.sl2vl.ndim == 1 else routing.sl2vl.shape[1]
    target = np.frombuffer(memory.view(place), np.uint8)
    for name, part in parts.items():
        start = int(head[name][0])
        target[start : start + part.nbytes].view(part.dtype).reshape(part.shape)[...] = part
    target[at : at + ANSWER.itemsize] = head.view(np.uint8)
