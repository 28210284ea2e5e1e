"""Write the plan of a transition as JSON: which LFT blocks to write on which switch, in which order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from routing.deadlock.double_scheme import DoubleScheme
from routing.deadlock.transition import Transition
from routing.deadlock.update_schedule import BLOCK
from routing.fabric import Fabric
from routing.formats.atomic import write_text_atomically
from routing.tables import Routing

SCHEMA = "ibnue-plan/2"
WAIT = "until every packet that was in the fabric when the last block was acknowledged has left it"
ACKNOWLEDGED = "until every block is acknowledged"

Bytes = npt.NDArray[np.uint8]


def plan_object(fabric: Fabric, old: Routing, new: Routing, transition: Transition) -> dict[str, Any]:
    """Return the plan of a transition as an object for JSON.

    A plan has either ``rounds`` or ``steps``.  A round lists the LFT blocks that may be written in any order, with port
    255 for entries that are removed.  A step belongs to the Double Scheme, which drains traffic.  A step lists the LIDs
    to send to, the LIDs to drain, and the blocks to write before the step is complete.

    Each block has the GUID and name of its switch, its number, and the new port for each of its LIDs whose entry
    changes.
    """
    plan: dict[str, Any] = {
        "schema": SCHEMA,
        "fabric_digest": fabric.digest,
        "verdict": transition.verdict,
        "reason": transition.reason,
        "rounds": [],
        "steps": [],
        "service_levels": {},
        "virtual_lanes_above": None,
    }
    if transition.plan is not None:
        before, draining = old.lft, transition.plan.first_draining_round
        for number, after in enumerate(transition.plan.states(old.lft, new.lft), 2):
            wait = WAIT if 0 < draining <= number else ACKNOWLEDGED
            plan["rounds"].append({"write": list(_blocks(fabric, before, after)), "wait": wait})
            before = after
    elif transition.drain is not None and transition.drain.safe:
        plan["steps"] = list(_steps(fabric, old.lft, transition.drain))
        plan["service_levels"] = {str(sl): stand_in for sl, stand_in in transition.drain.shifted.items()}
        plan["virtual_lanes_above"] = transition.drain.above
    return plan


def write_plan(path: str | Path, fabric: Fabric, old: Routing, new: Routing, transition: Transition) -> None:
    """Write the plan of a transition as a JSON file, atomically.

    Raises
    ------
    EnvironmentProblem
        The file cannot be written.
    """
    write_text_atomically(path, json.dumps(plan_object(fabric, old, new, transition), indent=1) + "\n")


def _steps(fabric: Fabric, before: Bytes, drain: DoubleScheme) -> Iterator[dict[str, Any]]:
    for step in drain.steps:
        yield {
            "number": step.number,
            "title": step.title,
            "send_to": np.flatnonzero(step.inject).tolist(),
            "drained": np.flatnonzero(step.drained).tolist(),
            "write": list(_blocks(fabric, before, step.tables.lft)),
            "wait": step.wait,
        }
        before = step.tables.lft


def _blocks(fabric: Fabric, before: Bytes, after: Bytes) -> Iterator[dict[str, Any]]:
    """Yield the LFT blocks in which the tables ``before`` and ``after`` differ, by switch, then by block number."""
    differs = before != after
    for switch in np.flatnonzero(differs.any(axis=1)).tolist():
        lids = np.flatnonzero(differs[switch])
        for block in np.unique(lids // BLOCK).tolist():
            ports = {str(lid): int(after[switch, lid]) for lid in lids[lids // BLOCK == block].tolist()}
            guid = f"0x{int(fabric.switch_guid[switch]):016x}"
            yield {"switch_guid": guid, "switch_name": fabric.switch_name[switch], "block": block, "port_by_lid": ports}
