"""Write proven tables into the memory that the worker process shares with OpenSM."""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from osm_plugin.multicast import multicast_tree
from osm_plugin.qos import Classes, QosPolicy, classes_of
from osm_plugin.snapshot import PAGE
from routing.deadlock.multicast import MulticastTree
from routing.publish import VerifiedTables
from routing.tables import SlForm

ANSWER_MAGIC = 0x31736E6165756E69

# Record type of the head of an answer: struct `ibnue_answer` in layout.h.
ANSWER = np.dtype(
    [
        ("magic", "u8"), ("sequence", "u8"), ("switches", "u4"), ("lids", "u4"), ("vls", "u4"), ("sl_kind", "u4"),
        ("sl2vl_ports", "u4"), ("certified", "u4"), ("lft_at", "u8"), ("hops_at", "u8"), ("sl_at", "u8"),
        ("switch_of_at", "u8"), ("sl2vl_at", "u8"), ("parent_at", "u8"),
        ("up_port_at", "u8"), ("down_port_at", "u8"),
        ("classes_at", "u8"), ("deferred_at", "u8"), ("plan", "u8"), ("deferred", "u4"), ("round_wait", "u4"),
        ("wait_from", "u4"), ("unused", "u4"), ("end", "u8"),
    ]
)  # fmt: skip

DEFERRED = np.dtype([("row", "u4"), ("lid", "u2"), ("round", "u1"), ("port", "u1")])
"""Record type of an LFT entry that a later round of the update schedule writes (``ibnue_deferred`` in layout.h).

Fields: ``row`` of the switch; ``lid`` of the entry; ``round`` that writes the entry (2 or higher); ``port``, the
out-port that the entry has until this round.
"""

SL_KINDS = {SlForm.BY_LID: 0, SlForm.BY_SWITCH: 1, SlForm.BY_SOURCE_LID: 2}
"""Number that an answer has for each form of an SL table (``enum ibnue_sl_kind`` in layout.h)."""


class SharedMemory:
    """The worker's mapping of the memory that it shares with OpenSM.  The underlying file never shrinks."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._map: mmap.mmap | None = None

    def view(self, least: int = 1) -> mmap.mmap:
        """Return a mapping of the whole shared memory.  The memory is first grown to at least ``least`` bytes."""
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
    tables: VerifiedTables,
    *,
    sequence: int,
    deferred: npt.NDArray[np.void] | None = None,
    plan: int = 0,
    wait: float = 0.0,
    first_draining_round: int = 0,
    multicast: MulticastTree | None = None,
    classes: Classes | None = None,
) -> None:
    """Write proven tables into the shared memory, for the C part of the plugin (the shim) to read.

    The header is written last, so that a reader never accepts an incomplete answer as valid.

    Parameters
    ----------
    memory
        The shared memory.  The memory is grown if it is too small.
    at
        Offset of the answer in bytes, a multiple of the page size.
    tables
        The tables, with one row per switch in the order of the request (by GUID).  The answer also states whether they
        have a certificate.  If so, OpenSM may get these tables again if an engine fails in a later sweep.
    sequence
        Number of the request that is answered.
    deferred
        The entries that later rounds of the update schedule write (:data:`DEFERRED` [N]).
    plan
        Number of the update schedule.
    wait
        Number of seconds that OpenSM waits before a round, so that packets can leave the fabric.  The wait begins when
        all switches have acknowledged the round before.
    first_draining_round
        The first round, counted from 1, that begins with this wait.  All later rounds also begin with the wait.  0: no
        round begins with the wait.
    multicast
        Tree for all multicast groups.  None: the tree formed by the paths of all switches towards a root switch.
    classes
        SLs and VLs of the QoS classes, and the tables that OpenSM gets in place of ``tables``.  None: there is no QoS
        policy.
    """
    fabric, hops = tables.fabric, np.ascontiguousarray(tables.proof.hops)
    classes = classes_of(fabric, tables.routing, QosPolicy(), tables.routing.vls) if classes is None else classes
    routing = classes.routing
    tree = multicast_tree(fabric, routing, hops) if multicast is None else multicast
    parts: dict[str, npt.NDArray[Any]] = {
        "lft_at": routing.lft,
        "hops_at": hops,
        "sl_at": routing.sl,
        "switch_of_at": fabric.lids.switch,
        "sl2vl_at": routing.sl2vl,
        "parent_at": tree.parent,
        "up_port_at": tree.up_port,
        "down_port_at": tree.down_port,
        "classes_at": classes.as_array(),
        "deferred_at": np.zeros(0, DEFERRED) if deferred is None else deferred,
    }
    head = np.zeros(1, ANSWER)
    position = at + PAGE
    for name, part in parts.items():
        head[name] = position
        position += -(-part.nbytes // PAGE) * PAGE
    head["magic"], head["sequence"], head["end"] = ANSWER_MAGIC, sequence, position
    head["switches"], head["lids"], head["vls"] = fabric.switches, len(fabric.lids), routing.vls
    head["certified"] = tables.proof.certified
    head["deferred"], head["plan"], head["round_wait"] = len(parts["deferred_at"]), plan, round(1000 * wait)
    head["wait_from"] = first_draining_round
    head["sl_kind"] = SL_KINDS[routing.service_levels.form]
    head["sl2vl_ports"] = routing.sl_to_vl.ports
    target = np.frombuffer(memory.view(position), np.uint8)
    for name, part in parts.items():
        start = int(head[name][0])
        target[start : start + part.nbytes].view(part.dtype).reshape(part.shape)[...] = part
    target[at : at + ANSWER.itemsize] = head.view(np.uint8)
