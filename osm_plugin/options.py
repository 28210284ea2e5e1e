"""What the configuration, and what OpenSM sets up, allow the engines and their tables."""

from __future__ import annotations

import os
from pathlib import Path

from osm_plugin.config import PluginConfig
from osm_plugin.snapshot import Snapshot
from routing.deadlock.proof import Proof
from routing.engines.base import EngineOptions, Objective
from routing.engines.budget import effort_within
from routing.errors import NotEnoughVLs, OptionError, RoutingError
from routing.numerals import number_of
from routing.tables import Routing

SWEEP_EFFORT = 0.1
"""Effort where the configuration states none: OpenSM answers no path query while it routes."""


def threads_of(config: PluginConfig) -> int:
    """How many threads the kernels may have."""
    return config.threads or min(8, len(os.sched_getaffinity(0)))


def options_of(engine: str, config: PluginConfig, snapshot: Snapshot) -> EngineOptions:
    """The engine's options: the configuration's, and as many VLs for "auto" as OpenSM sets up.

    Raises
    ------
    OptionError
        A value that does not exist, or more VLs than OpenSM will set up.
    """
    found = config.options_of(engine)
    if "objective" in found:
        try:
            found["objective"] = Objective(found["objective"])
        except ValueError:
            known = ", ".join(objective.value for objective in Objective)
            raise OptionError(f"unknown objective {found['objective']!r}", remedy=f"one of {known}") from None
    if "root_guid_file" in found:
        found["root_guid_file"] = Path(found["root_guid_file"])
    if "roots" in found:
        found["roots"] = tuple(str(root) for root in found["roots"])
    if "budget" in found:
        if "effort" in found:
            raise OptionError("effort and budget say the same thing in two ways", remedy="leave one out")
        found["effort"] = effort_within(snapshot.fabric, found.pop("budget"))
    found.setdefault("effort", SWEEP_EFFORT)
    _check_vls(found.get("vls", "auto"), snapshot)
    return EngineOptions(**found, threads=threads_of(config), port_vls=snapshot.data_vls)


def _check_vls(wanted: int | str, snapshot: Snapshot) -> None:
    have = snapshot.data_vls
    if isinstance(wanted, int) and wanted > have:
        remedy = "lower vls, or OpenSM's limits" if snapshot.qos else "set 'qos TRUE' in opensm.conf, or vls = 1"
        raise OptionError(
            f"vls = {wanted}, but OpenSM sets up {number_of(have, 'data VL')} on this fabric", remedy=remedy
        )


def check_published(proof: Proof, routing: Routing, snapshot: Snapshot, config: PluginConfig) -> str:
    """What the proof says, in a few words, if it allows publishing.

    Raises
    ------
    RoutingError
        More VLs than OpenSM sets up, or a credit loop that was not allowed.
    """
    if routing.vls > snapshot.data_vls:
        raise NotEnoughVLs(routing.vls, snapshot.data_vls)
    if proof.certified:
        scope = "switch-to-switch traffic included" if proof.scope == "all" else "from or to CAs and routers"
        return f"proven free of credit loops ({proof.strength}, {scope})"
    lines = [line.strip() for line in proof.credit_loop.describe()] if proof.credit_loop is not None else ["no proof"]
    loop = " ".join([lines[0], "; ".join(lines[1:3]), *(["..."] if len(lines) > 3 else [])])
    if not config.allow_credit_loops:
        raise RoutingError(f"the tables have a credit loop, and allow_credit_loops is not set: {loop}")
    return f"NOT free of credit loops, as allowed: {loop}"
