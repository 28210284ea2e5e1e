"""What a lab has to be told to run a fabric with one of our engines, in a plugin built for it, or one of OpenSM's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ibsim_fixtures.opensm import Plugin
from ibsim_fixtures.processes import PATIENCE
from osm_plugin.install import PLUGIN, install
from routing.fabric import Fabric
from routing.formats.fabric_files import write_net

UNHURRIED = f"start_deadline = {PATIENCE}\ndeadline = {PATIENCE}\n"
"""Configuration of a plugin whose engine is to be seen at work, however busy the machine is and large the fabric."""


def settings(
    folder: Path, fabric: Fabric, engine: str, opensm_engine: str | None, policies: Path | None = None
) -> dict[str, Any]:
    """Write the fabric, build the plugin; what the lab has to be told."""
    net = folder / "fabric.net"
    write_net(fabric, net)
    told: dict[str, Any] = {"net_path": net, "config": {"qos": True}}
    if opensm_engine is not None and policies is None:
        return {**told, "routing_engine": f"{opensm_engine},no_fallback"}
    built = install(libdir=folder)
    config = folder / "ibnue.toml"
    rules = "" if policies is None else f"policies = {json.dumps(str(policies.absolute()))}\n"
    config.write_text(UNHURRIED + rules)
    plugin = Plugin(PLUGIN, options=f"--config {config}", folder=folder, environment=built.environment)
    routing_engine = f"{PLUGIN}-{engine}" if opensm_engine is None else opensm_engine
    return {**told, "routing_engine": f"{routing_engine},no_fallback", "plugin": plugin}
