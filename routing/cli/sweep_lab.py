"""Run cases of a sweep with a real OpenSM.  The plugin routes the faulty fabric, and ibdmchk also checks the tables.

Every case runs with a new OpenSM and a new ibsim, so that its result does not depend on earlier cases.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ibsim_fixtures.lab import Lab
from ibsim_fixtures.opensm import Plugin
from ibsim_fixtures.processes import LabError, find_program
from osm_plugin.config import ENGINE_KEYS
from osm_plugin.install import FOR_ONE_RUN, PLUGIN, install
from routing.cli.lab_report import LabState, inspect_lab
from routing.cli.lab_setup import AMPLE_TIMEOUTS, class_tables
from routing.engines import ENGINES
from routing.errors import OptionError
from routing.fabric import Fabric, NodeKind
from routing.faults import Fault, FaultKind, apply_faults
from routing.formats.fabric_files import write_net
from routing.reroute import Published, capacity_kept
from routing.sweep.cases import faults_of
from routing.sweep.results import Result
from routing.sweep.tasks import Task
from routing.sweep.work import changes, classify_outcome, described, guarded, with_kept
from routing.whatif.connectivity import connectivity_loss

if TYPE_CHECKING:
    from ibsim_fixtures.opensm_log import Sweep

CANNOT = (FaultKind.DEGRADE, FaultKind.SWAP)
"""Kinds of faults that ibsim cannot simulate: degraded and swapped cables."""


def prepare(folder: Path) -> tuple[tuple[str, str], ...]:
    """Build the plugin in a folder, and return the settings that :func:`run` needs in the worker processes.

    Raises
    ------
    EnvironmentProblem
        A required program or package is not installed.
    """
    find_program("ibdmchk")
    built = install(libdir=folder, flags=FOR_ONE_RUN)
    return (("folder", str(folder)), ("environment", json.dumps(built.environment)))


def run(fabric: Fabric, tasks: Sequence[Task], settings: Mapping[str, str]) -> list[Result]:
    """Run each case with a separate OpenSM and a separate ibsim, and return the results."""
    with tempfile.TemporaryDirectory(prefix="ibnue-sweep-") as folder:
        net = Path(folder) / "fabric.net"
        write_net(fabric, net)
        return [guarded(task, lambda task=task: live(fabric, net, task, settings)) for task in tasks]  # type: ignore[misc]


def live(fabric: Fabric, net: Path, task: Task, settings: Mapping[str, str]) -> Result:
    """Run one case with a separate OpenSM and a separate ibsim, and return its result.  ``net`` is the net file of the
    fabric.

    Raises
    ------
    OptionError
        ibsim cannot simulate the fault.
    LabError
        OpenSM or ibsim failed.
    """
    faults = faults_of(task.fault, fabric)
    if any(fault.kind in CANNOT for fault in faults):
        raise OptionError("ibsim cannot simulate degraded or swapped cables", remedy="leave out --lab")
    broken = apply_faults(fabric, faults)
    config = net.with_name("plugin.toml")
    config.write_text(plugin_config(task) + class_tables(fabric, config.parent))
    plugin = Plugin(
        PLUGIN,
        options=f"--config {config}",
        folder=Path(settings["folder"]),
        environment=json.loads(settings["environment"]),
    )
    engine = f"{PLUGIN}-{task.target.engine}"
    with Lab(
        net, routing_engine=f"{engine},no_fallback", plugin=plugin, config={"qos": True}, sm_host=host(broken)
    ) as lab:
        before = inspect_lab(lab, fabric, "start", opensm_events(lab.sweep), None)
        for fault in faults:
            pull(lab, fault)
        after = inspect_lab(lab, fabric, task.fault, lab.opensm.resweep() if faults else opensm_events(lab.sweep), None)
        second = second_opinion(lab, after.fabric)
    found = verdict(task, fabric, before, after, second)
    if after.sweep.engine not in (engine, None):
        found = replace(found, outcome="wrong", error=f"OpenSM routed with {after.sweep.engine}")
    apart = connectivity_loss(fabric, broken)
    return replace(found, faults=len(faults), parts=apart.parts, cut_off=len(apart.cut_off))


def plugin_config(task: Task) -> str:
    """Return the text of the plugin's configuration for a case."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in task.target.options if key in ENGINE_KEYS]
    return AMPLE_TIMEOUTS + "\n".join(
        ["threads = 1", "allow_credit_loops = true", "[engine]", f"seed = {task.seed}", *lines, ""]
    )


def host(fabric: Fabric) -> int | None:
    """Return the GUID of the CA on which OpenSM will run; None if no CA is attached to a switch.

    If faults have split the fabric into parts, the CA is in the part with the most end ports of CAs.
    """
    ca = (fabric.endport_switch >= 0) & (fabric.terminal_kind[fabric.endport_terminal] == NodeKind.CA)
    if not ca.any():
        return None
    part = fabric.component[fabric.endport_switch]
    counts = [int((part[ca] == number).sum()) for number in range(int(part.max()) + 1)]
    first = next(row for row in ca.nonzero()[0] if part[row] == counts.index(max(counts)))
    return int(fabric.terminal_guid[fabric.endport_terminal[first]])


def pull(lab: Lab, fault: Fault) -> None:
    """Apply a fault to the running ibsim."""
    for guid in fault.devices:
        lab.ibsim.unlink(guid)
    # A link fault names the ports at both ends of the link.  The command "unlink" at one end already removes the link,
    # so only the first port is used.
    ports = fault.ports[:1] if fault.kind is FaultKind.LINK else fault.ports
    cabled = {(lab.ibsim.device(port.device).guid, port.port) for port in lab.ibsim.ports() if port.peer}
    for guid, port in ports:
        if (guid, port) in cabled:
            lab.ibsim.unlink(guid, port)


def opensm_events(sweep: Sweep | None) -> Sweep:
    """Return ``sweep``, the latest sweep of a lab.  ``sweep`` is not None, because a lab waits for its first sweep."""
    assert sweep is not None
    return sweep


def second_opinion(lab: Lab, fabric: Fabric) -> bool | None:
    """Check the tables in the lab with ibdmchk, and return whether ibdmchk reports a credit loop between CAs.

    Returns
    -------
    bool or None
        None if ibdmchk cannot decide: there are routers, an LMC above 0, or fewer than two end ports.

    Raises
    ------
    LabError
        ibdmchk reports another error, so that its verdict means nothing.
    """
    kinds = fabric.terminal_kind[fabric.endport_terminal]
    if (kinds != NodeKind.CA).any() or fabric.endport_lmc.any() or len(kinds) < 2:
        return None
    found = lab.ibdmchk(sls=lab.ca_sls())
    if found.errors:
        raise LabError(f"ibdmchk: {found.errors[0]}")
    return found.credit_loop


def verdict(task: Task, fabric: Fabric, before: LabState, after: LabState, second: bool | None) -> Result:
    """Return the result of a case from the states before and after the faults, and from ibdmchk's verdict
    ``second``.
    """
    outcome, report = classify_outcome(ENGINES[task.target.engine], after.proof)
    if not after.as_dumped:
        outcome, report = "wrong", "the tables in the switches differ from OpenSM's dump"
    elif second and outcome == "certified":
        outcome, report = "wrong", "proven free of credit loops, but ibdmchk reports one"
    published = Published(after.fabric, after.routing, after.proof)
    earlier = Published(before.fabric, before.routing, before.proof)
    entries, changed, gone = changes(earlier, published)
    return replace(
        with_kept(described(task, fabric, published), capacity_kept(earlier, published)),
        outcome=outcome,
        error=report,
        vls=after.proof.vls,
        vls_needed=None,
        entries=entries,
        changed=changed,
        broken=gone,
        how=after.sweep.engine,
        seconds=after.sweep.seconds,
    )
