"""Export a policy as files for switch agents, or as the four values of OpenSM that apply to all ports."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric
from routing.formats.atomic import make_folder, write_text_atomically
from routing.policy.facts import PortFacts
from routing.policy.model import OPENSM_HOQ, OPENSM_LEAF_HOQ, OPENSM_STALL, PROPERTIES, Breaker, hoq_seconds
from routing.policy.ports import PortPolicies

SCHEMA = "ibnue-switch-policy/2"


def switch_object(found: PortPolicies, fabric: Fabric, switch: int) -> dict[str, Any]:
    """Return the policy of one switch as an object for JSON, which an agent on the switch can apply.

    The object contains only ports and properties that a rule sets.  ``found`` has the policy values of all switches,
    and ``switch`` is the row of the switch.
    """
    ports: dict[str, Any] = {}
    for port in np.flatnonzero(found.touched[switch]).tolist():
        summary: dict[str, Any] = {}
        rules = [found.rule(what, switch, port) for what in PROPERTIES]
        summary["rules"] = sorted({rule.name for rule in rules if rule is not None})
        if found.hoq_life[switch, port] >= 0:
            life = hoq_seconds(int(found.hoq_life[switch, port]))
            summary["hoq_life"] = int(found.hoq_life[switch, port])
            summary["hoq_seconds"] = None if math.isinf(life) else life
        if found.vl_stall_count[switch, port] >= 0:
            summary["vl_stall_count"] = int(found.vl_stall_count[switch, port])
        if found.number["breaker"][switch, port] >= 0:
            summary["breaker"] = _breaker_object(found.breaker(switch, port))
        ports[str(port)] = summary
    return {
        "schema": SCHEMA,
        "switch_guid": f"0x{int(fabric.switch_guid[switch]):016x}",
        "switch_name": fabric.switch_name[switch],
        "policy": Path(found.policy.path).name,
        "fabric_digest": fabric.digest,
        "settings_by_port": ports,
    }


def _breaker_object(breaker: Breaker) -> dict[str, Any]:
    summary: dict[str, Any] = {"kind": breaker.kind}
    if breaker.kind != "none":
        summary |= {"detect_seconds": breaker.detect_time, "check_seconds": breaker.check_period}
    if breaker.kind == "deadlock":
        summary |= {"release_seconds": breaker.release_period, "extra_mtus": breaker.extra_mtus}
    return summary


def write_switch_files(found: PortPolicies, fabric: Fabric, folder: str | Path) -> list[Path]:
    """Write the policy of every switch to a file ``0x<GUID>.json``, even if no rule applies to the switch.

    Each file is written atomically.  Other files in the folder are not changed.

    Raises
    ------
    EnvironmentProblem
        The folder cannot be created, or a file cannot be written.
    """
    position = make_folder(folder)
    written = []
    for switch, guid in enumerate(fabric.switch_guid.tolist()):
        path = position / f"0x{guid:016x}.json"
        write_text_atomically(path, json.dumps(switch_object(found, fabric, switch), indent=1) + "\n")
        written.append(path)
    return written


def opensm_lines(found: PortPolicies, facts: PortFacts) -> list[str]:
    """Return lines for opensm.conf that set OpenSM's four global values.

    The values are HOQLife and VLStallCount of ports to CAs and routers, and HOQLife and VLStallCount of ports to
    switches.  Each value is the most frequent value of the policy for such ports.  A port whose value no rule sets
    counts with OpenSM's default value.  OpenSM writes the four values to the ports in every heavy sweep.  The plugin
    then has to rewrite each port for which the policy sets another value.  With the most frequent values, there are
    usually few such ports.

    ``found`` has the policy values of all ports, and ``facts`` the roles of the ports.
    """

    def usual(values: npt.NDArray[np.int16], ports: npt.NDArray[np.bool_], default: int) -> int:
        chosen = values[ports]
        counts = np.bincount(np.where(chosen < 0, default, chosen), minlength=32)
        return int(counts.argmax()) if len(chosen) else default

    inner, outer = facts.role["switch-facing"], facts.role["ca-facing"]
    return [
        f"head_of_queue_lifetime 0x{usual(found.hoq_life, inner, OPENSM_HOQ):02x}",
        f"leaf_head_of_queue_lifetime 0x{usual(found.hoq_life, outer, OPENSM_LEAF_HOQ):02x}",
        f"vl_stall_count 0x{usual(found.vl_stall_count, inner, OPENSM_STALL):02x}",
        f"leaf_vl_stall_count 0x{usual(found.vl_stall_count, outer, OPENSM_STALL):02x}",
    ]


def stall_life(found: PortPolicies) -> npt.NDArray[np.uint16]:
    """Return the policy values of all ports, encoded for the plugin: uint16[S, 256].

    The lower byte is encoded as in PortInfo: VLStallCount << 5 | HOQLife.  The upper byte is a mask of the lower byte.
    It has the bits of the values that a rule sets.
    """
    life, stall = found.hoq_life.astype(np.int32), found.vl_stall_count.astype(np.int32)
    value = np.where(life >= 0, life, 0) | np.where(stall >= 0, stall, 0) << 5
    mask = np.where(life >= 0, 0x1F, 0) | np.where(stall >= 0, 0xE0, 0)
    return np.asarray(value | mask << 8, np.uint16)
