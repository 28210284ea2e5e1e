"""The worker's part of policies per port: rules laid over the subnet as OpenSM sees it, and what PortInfo is to say."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import numpy.typing as npt

from osm_plugin.answer import SharedMemory
from osm_plugin.config import PluginConfig
from osm_plugin.snapshot import CABLE, PAGE, REQUEST, Snapshot
from routing.errors import FabricError, InputError
from routing.fabric import NO_PORT, Fabric
from routing.numerals import number_of
from routing.policy import PortPolicies, lay_over, loop_channels, port_facts, read_policy
from routing.policy.export import stall_life
from routing.tables import Provenance, Routing, identity_sl2vl

POLICIES = "policies"
"""What the shim asks for instead of an engine."""
_NAMED = 3
"""So many of the idle parts of rules are named in a line."""
REQUEST_MAGIC, ANSWER_MAGIC = 0x31716C7065756E69, 0x31616C7065756E69

POLICY_REQUEST = np.dtype([("magic", "u8"), ("lids", "u4"), ("unused", "u4")])
POLICY_ANSWER = np.dtype([("magic", "u8"), ("sequence", "u8"), ("switches", "u4"), ("unused", "u4"), ("want_at", "u8")])


class PolicyDesk:
    """Answers for policies; remembers the tables of engines, whose service levels the switches do not tell."""

    def __init__(self) -> None:
        self._routed: tuple[str, Routing] | None = None

    def routed(self, fabric: Fabric, routing: Routing) -> None:
        """Take note of tables that go to OpenSM."""
        self._routed = fabric.digest, routing

    def answer(self, memory: SharedMemory, snapshot: Snapshot, config: PluginConfig) -> str:
        """Lay what is wanted of every port into the memory; a line for the log.

        Raises
        ------
        InputError
            The rules are unreadable, or contradict one another on this fabric.
        """
        if config.policies is None:
            raise InputError("no rules are named", remedy='set policies = "FILE" in the file of --config')
        policy = read_policy(Path(config.policies))
        fabric, remark = snapshot.fabric, ""
        on_loop = None
        if any("loop" in rule.select.roles for rule in policy.rules):
            routing, remark = self._tables(fabric, read_lft(memory.view(), fabric))
            on_loop = loop_channels(fabric, routing)
            remark = f", {number_of(int(on_loop.sum()), 'channel')} on credit loops{remark}"
        found = lay_over(policy, fabric, port_facts(fabric, on_loop), strict=False)
        write_answer(memory, snapshot.answer_at, found, sequence=snapshot.sequence)
        idle = "".join(f"; idle: {why}" for why in found.idle[:_NAMED])
        if len(found.idle) > _NAMED:
            idle += f" and {len(found.idle) - _NAMED} more"
        return f"{Path(policy.path).name}: {number_of(len(policy.rules), 'rule')}{remark}{idle}"

    def _tables(self, fabric: Fabric, lft: npt.NDArray[np.uint8]) -> tuple[Routing, str]:
        """The tables that the switches have, and what was assumed of them."""
        if self._routed is not None and self._routed[0] == fabric.digest:
            known = self._routed[1]
            if np.array_equal(known.lft, lft):
                return known, ""
        levels = np.zeros(lft.shape[1], np.uint8)
        plain = Routing(lft, levels, identity_sl2vl(1), 1, 1, Provenance("opensm", fabric_digest=fabric.digest))
        return plain, " (taking all to ride on one VL)"


def read_lft(memory: mmap.mmap | bytes, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """uint8[S, L]: the forwarding tables behind a request.

    Raises
    ------
    FabricError
        There are none.
    """
    missing = FabricError("the request carries no forwarding tables")
    if len(memory) < REQUEST.itemsize:
        raise missing
    head = np.frombuffer(memory[: REQUEST.itemsize], REQUEST)[0]
    devices_end = int(head["cable_at"]) + int(head["cables"]) * CABLE.itemsize
    at = -(-devices_end // 8) * 8
    start = at + POLICY_REQUEST.itemsize
    if len(memory) < start:
        raise missing
    extra = np.frombuffer(memory[at:start], POLICY_REQUEST)[0]
    lids = int(extra["lids"])
    if int(extra["magic"]) != REQUEST_MAGIC or start + fabric.switches * lids > len(memory):
        raise missing
    found = np.full((fabric.switches, len(fabric.lids)), NO_PORT, np.uint8)
    held = np.frombuffer(memory[start : start + fabric.switches * lids], np.uint8).reshape(fabric.switches, lids)
    width = min(lids, found.shape[1])
    found[:, :width] = held[:, :width]
    return found


def write_answer(memory: SharedMemory, at: int, found: PortPolicies, *, sequence: int) -> None:
    """Lay what PortInfo is to say into the memory from ``at`` on, the head last."""
    want = stall_life(found)
    head = np.zeros(1, POLICY_ANSWER)
    head["magic"], head["sequence"], head["switches"], head["want_at"] = ANSWER_MAGIC, sequence, len(want), at + PAGE
    target = np.frombuffer(memory.view(at + PAGE + want.nbytes), np.uint8)
    target[at + PAGE : at + PAGE + want.nbytes] = want.view(np.uint8).reshape(-1)
    target[at : at + POLICY_ANSWER.itemsize] = head.view(np.uint8)
