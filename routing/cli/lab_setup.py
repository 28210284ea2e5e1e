"""Prepare a lab that runs OpenSM with the plugin and an ibnue engine, or with one of OpenSM's own engines."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ibsim_fixtures.opensm import Plugin
from ibsim_fixtures.processes import TIMEOUT_SECONDS
from ibsim_fixtures.records import with_records
from osm_plugin.install import FOR_ONE_RUN, PLUGIN, install
from osm_plugin.options import SWEEP_EFFORT
from routing.class_settings import PortClass
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import EnvironmentProblem, OptionError, RoutingError
from routing.fabric import Fabric
from routing.formats.fabric_files import write_net
from routing.port_classes import DEFAULT_WEIGHTS, PortClasses
from routing.reroute import FreshRoute
from routing.reroute.budget import LARGEST_SMALL_TABLE
from routing.tables import Routing

AMPLE_TIMEOUTS = f"start_deadline = {TIMEOUT_SECONDS}\ndeadline = {TIMEOUT_SECONDS}\nrebalance = 0\n"
"""Plugin configuration whose deadlines do not expire on a busy machine or a large fabric.

With ``rebalance = 0`` the tables do not change between events.  So the effect of each event can be measured separately.
"""


def opensm_settings(
    folder: Path, fabric: Fabric, engine: str, opensm_engine: str | None, policies: Path | None = None
) -> dict[str, Any]:
    """Prepare a folder for a lab, and return the arguments for :class:`ibsim_fixtures.lab.Lab`.

    The folder gets a net file of the fabric, and the plugin if it is needed.

    OpenSM routes with ``engine`` of the plugin, or with its own engine ``opensm_engine`` if this argument is not None.
    """
    net = folder / "fabric.net"
    write_net(fabric, net)
    report: dict[str, Any] = {"net_path": net, "config": {"qos": True}}
    if opensm_engine is not None and policies is None:
        report["routing_engine"] = f"{opensm_engine},no_fallback"
        # Without a compiler, the plugin that dumps path records cannot be built.  Path records are then queried one by
        # one, which is slower.
        with suppress(EnvironmentProblem):
            report["plugin"] = with_records(None, folder)
        return report
    built = install(libdir=folder, flags=FOR_ONE_RUN)
    config = folder / "ibnue.toml"
    rules = "" if policies is None else f"policies = {json.dumps(str(policies.absolute()))}\n"
    config.write_text(AMPLE_TIMEOUTS + rules + class_tables(fabric, folder))
    plugin = Plugin(PLUGIN, options=f"--config {config}", folder=folder, environment=built.environment)
    plugin = with_records(plugin, folder)
    routing_engine = f"{PLUGIN}-{engine}" if opensm_engine is None else opensm_engine
    return {**report, "routing_engine": f"{routing_engine},no_fallback", "plugin": plugin}


def fresh_route(engine: str) -> FreshRoute:
    """Return a function that computes tables from scratch with an engine of ibnue, as the plugin of a lab does.

    The returned function returns None instead of tables if the LFTs have more entries than
    :data:`routing.reroute.budget.LARGEST_SMALL_TABLE`, or if the engine fails.
    """
    options = EngineOptions(effort=SWEEP_EFFORT, threads=1)

    def route(fabric: Fabric) -> Routing | None:
        if fabric.switches * len(fabric.lids) > LARGEST_SMALL_TABLE:
            return None
        with suppress(OptionError, RoutingError):
            return ENGINES[engine].route(fabric, options)
        return None

    return route


def class_tables(fabric: Fabric, folder: Path) -> str:
    """Return the sections ``[classes.NAME]`` of the plugin's configuration for the end ports of a fabric.

    The plugin derives a class for each end port.  If the fabric gives an end port a class other than the derived one,
    the GUID of the end port is written into a file in ``folder``.  Each class has one such file, if needed.  The
    sections name these files, and state the weights that differ from the defaults.  The result is "" if no section is
    needed.
    """
    devices, rules, tables = fabric.endport_terminal, fabric.port_classes, []
    default = replace(fabric, port_classes=rules.with_rules_of(PortClasses()))
    changed = fabric.endport_class != default.endport_class
    several = np.bincount(devices, minlength=len(fabric.terminal_guid)) > 1
    guids = np.where(several[devices], fabric.endport_guid, fabric.terminal_guid[devices])
    for each in PortClass:
        listed = np.unique(guids[changed & (fabric.endport_class == each)]).tolist()
        lines = []
        if listed:
            path = folder / f"{each.label}.guids"
            path.write_text("".join(f"{guid:#018x}\n" for guid in listed))
            lines.append(f"guid_file = {json.dumps(str(path.absolute()))}\n")
        if (weight := rules.weights[each]) != DEFAULT_WEIGHTS[each]:
            lines.append(f'weight = "{weight.source}:{weight.destination}"\n')
        tables += [f"[classes.{each.label}]\n", *lines] if lines else []
    return "".join(tables)
