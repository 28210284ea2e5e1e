"""What a lab has to be told to run a fabric with one of our engines, in a plugin built for it, or one of OpenSM's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ibsim_fixtures.opensm import Plugin
from osm_plugin.install import PLUGIN, install
from routing.fabric import Fabric
from routing.formats.fabric_files import write_net


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
    options = ""
    if policies is not None:
        (folder / "ibnue.toml").write_text(f"policies = {json.dumps(str(policies.absolute()))}\n")
        options = f"--config {folder / 'ibnue.toml'}"
    plugin = Plugin(PLUGIN, options=options, folder=folder, environment=built.environment)
    routing_engine = f"{PLUGIN}-{engine}" if opensm_engine is None else opensm_engine
    return {**told, "routing_engine": f"{routing_engine},no_fallback", "plugin": plugin}
