"""Apply the administrator's rules for ports in the worker, and return the PortInfo values that the plugin
has to set.
"""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import numpy.typing as npt

from osm_plugin.answer import SharedMemory
from osm_plugin.config import PluginConfig
from osm_plugin.snapshot import PAGE, REQUEST, Snapshot
from routing.errors import FabricError, InputError
from routing.fabric import NO_PORT, Fabric
from routing.numerals import count_noun
from routing.policy import PortPolicies, apply_rules, loop_channels, port_facts, read_policy
from routing.policy.export import stall_life
from routing.tables import Provenance, Routing, identity_sl2vl

_NAMED = 3
"""Maximum number of mismatches that a line of the log describes; further mismatches are only counted.  There is a
mismatch if a rule has a pattern that matches no switch, or a port number that no selected switch has.
"""
REQUEST_MAGIC, ANSWER_MAGIC = 0x31716C7065756E69, 0x31616C7065756E69

POLICY_REQUEST = np.dtype([("magic", "u8"), ("lids", "u4"), ("unused", "u4")])
POLICY_ANSWER = np.dtype([("magic", "u8"), ("sequence", "u8"), ("switches", "u4"), ("unused", "u4"), ("want_at", "u8")])


class PolicyDesk:
    """Answers requests for the PortInfo values of ports.

    The last computed tables are kept, because rules about credit loops need the SLs of paths.  These SLs cannot be read
    from the switches.
    """

    def __init__(self) -> None:
        self._routed: tuple[str, Routing] | None = None

    def routed(self, fabric: Fabric, routing: Routing) -> None:
        """Keep tables that OpenSM gets, for later requests for PortInfo values."""
        self._routed = fabric.digest, routing

    def answer(self, memory: SharedMemory, snapshot: Snapshot, config: PluginConfig) -> str:
        """Write the PortInfo values that the rules demand into the shared memory, and return a line for the log.

        Raises
        ------
        InputError
            The rules cannot be read, or contradict each other on this fabric.
        """
        if config.policies is None:
            raise InputError("no rules are named", remedy='set policies = "FILE" in the file of --config')
        policy = read_policy(Path(config.policies))
        fabric, remark = snapshot.fabric, ""
        on_loop = None
        if any("loop" in rule.select.roles for rule in policy.rules):
            routing, remark = self._tables(fabric, read_lft(memory.view(), fabric))
            on_loop = loop_channels(fabric, routing)
            remark = f", {count_noun(int(on_loop.sum()), 'channel')} on credit loops{remark}"
        found = apply_rules(policy, fabric, port_facts(fabric, on_loop), strict=False)
        write_answer(memory, snapshot.answer_at, found, sequence=snapshot.sequence)
        idle = "".join(f"; without effect: {why}" for why in found.unused[:_NAMED])
        if len(found.unused) > _NAMED:
            idle += f" and {len(found.unused) - _NAMED} more"
        return f"{Path(policy.path).name}: {count_noun(len(policy.rules), 'rule')}{remark}{idle}"

    def _tables(self, fabric: Fabric, lft: npt.NDArray[np.uint8]) -> tuple[Routing, str]:
        """Return the tables in the switches, and a remark for the log.

        The VLs are known only if the switches have the last computed tables.  Otherwise, the remark states the
        assumption that all packets use one VL.  If the VLs are known, the remark is "".
        """
        if self._routed is not None and self._routed[0] == fabric.digest:
            known = self._routed[1]
            if np.array_equal(known.lft, lft):
                return known, ""
        return as_routing(fabric, lft, "opensm"), " (assuming that all packets use one VL)"


def as_routing(fabric: Fabric, lft: npt.NDArray[np.uint8], engine: str) -> Routing:
    """Return forwarding tables as a :class:`~routing.tables.Routing`, in which all paths use one VL."""
    levels = np.zeros(lft.shape[1], np.uint8)
    return Routing(lft, levels, identity_sl2vl(1), 1, 1, Provenance(engine, fabric_digest=fabric.digest))


def read_lft(memory: mmap.mmap | bytes, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """Return the forwarding tables that OpenSM has appended to a request in the shared memory, uint8[S, L].

    Raises
    ------
    FabricError
        The request contains no forwarding tables.
    """
    missing = FabricError("the request has no forwarding tables")
    if len(memory) < REQUEST.itemsize:
        raise missing
    head = np.frombuffer(memory[: REQUEST.itemsize], REQUEST)[0]
    at = -(-(int(head["conf_at"]) + int(head["conf_bytes"])) // 8) * 8
    start = at + POLICY_REQUEST.itemsize
    if len(memory) < start:
        raise missing
    extra = np.frombuffer(memory[at:start], POLICY_REQUEST)[0]
    lids = int(extra["lids"])
    if int(extra["magic"]) != REQUEST_MAGIC or start + fabric.switches * lids > len(memory):
        raise missing
    found = np.full((fabric.switches, len(fabric.lids)), NO_PORT, np.uint8)
    installed = np.frombuffer(memory[start : start + fabric.switches * lids], np.uint8).reshape(fabric.switches, lids)
    width = min(lids, found.shape[1])
    found[:, :width] = installed[:, :width]
    return found


def write_answer(memory: SharedMemory, at: int, found: PortPolicies, *, sequence: int) -> None:
    """Write the PortInfo values that the rules demand into the shared memory, at offset ``at`` in bytes.

    The header is written last, so that a reader never accepts incomplete values.

    ``found`` has the values that the rules set at each port, and ``sequence`` is the number of the request.
    """
    want = stall_life(found)
    head = np.zeros(1, POLICY_ANSWER)
    head["magic"], head["sequence"], head["switches"], head["want_at"] = ANSWER_MAGIC, sequence, len(want), at + PAGE
    target = np.frombuffer(memory.view(at + PAGE + want.nbytes), np.uint8)
    target[at + PAGE : at + PAGE + want.nbytes] = want.view(np.uint8).reshape(-1)
    target[at : at + POLICY_ANSWER.itemsize] = head.view(np.uint8)
