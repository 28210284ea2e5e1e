"""Combine the engine options of the configuration with OpenSM's limits, and check that tables may be given to
OpenSM.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from osm_plugin.config import PluginConfig
from osm_plugin.qos import QosPolicy
from osm_plugin.snapshot import Snapshot
from routing.deadlock.proof import Proof
from routing.engines.base import EngineOptions
from routing.engines.budget import effort_within
from routing.errors import NotEnoughVLs, OptionError, RoutingError
from routing.fabric import Fabric
from routing.formats.guid_files import read_guid_lines, read_guid_list
from routing.numerals import count_noun
from routing.port_classes import PortClasses, port_classes_of
from routing.publish import Demand, Shortfall, VerifiedTables, admit

SWEEP_EFFORT = 0.1
"""Default optimisation effort in a sweep.  The effort is low, because OpenSM answers no path queries while it
routes.
"""


def threads_of(config: PluginConfig) -> int:
    """Return the number of threads that the C kernels may use."""
    return config.threads or min(8, len(os.sched_getaffinity(0)))


def options_of(
    engine: str, config: PluginConfig, snapshot: Snapshot, found: Mapping[str, Any] | None = None
) -> EngineOptions:
    """Return the engine options of a run, after a check against the limits of OpenSM.

    Parameters
    ----------
    engine
        Name of the engine, without the prefix "ibnue-".
    config
        The plugin's configuration.
    snapshot
        The request, which states how many data VLs OpenSM sets up.  The engine may not use more VLs.
    found
        Engine options to use; None for the options of the configuration.

    Raises
    ------
    OptionError
        An option has an unknown value, or needs more VLs than OpenSM sets up.
    """
    found = dict(config.options_of(engine) if found is None else found)
    if "budget" in found:
        if "effort" in found:
            raise OptionError("effort and budget both set the effort", option="budget", remedy="leave one out")
        found["effort"] = effort_within(snapshot.fabric, found.pop("budget"))
    found.setdefault("effort", SWEEP_EFFORT)
    _check_vls(found, snapshot)
    _leave_vls(found, QosPolicy.of(snapshot.conf))
    port_vls = min(snapshot.data_vls, found.get("first_vl", 0) + found.pop("most_vls", snapshot.data_vls))
    return EngineOptions.of(found, threads=threads_of(config), port_vls=port_vls)


def port_classes(config: PluginConfig) -> PortClasses:
    """Return the rules for the classes of end ports.

    Raises
    ------
    InputError
        A value is not a weight, a GUID has two classes, or a GUID file cannot be read.
    """
    settings = [(key, label, value) for label, table in config.classes.items() for key, value in table.items()]
    return port_classes_of(settings, read_guid_list)


def roots_there(options: EngineOptions, fabric: Fabric) -> EngineOptions:
    """Return options with a list of root switches instead of a file of root switches.  The list has those switches of
    the file that are in the fabric.  If there are none, the engine chooses roots.
    """
    if options.root_guid_file is None:
        return options
    there = set(fabric.switch_guid.tolist())
    roots = tuple(f"{guid:#018x}" for guid in read_guid_list(options.root_guid_file) if guid in there)
    return replace(options, roots=roots, root_guid_file=None)


def ignored_roots(path: str | Path, fabric: Fabric) -> str:
    """Return a text that names those lines of a file of root switches whose GUID belongs to no switch of the fabric.
    Return "" if there are none.
    """
    there = set(fabric.switch_guid.tolist())
    gone = [f"{each.line} ({each.guid:#x})" for each in read_guid_lines(path) if each.guid not in there]
    more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
    return f"no switch has the GUID of line {', '.join(gone[:3])}{more}" if gone else ""


def _leave_vls(found: dict[str, Any], policy: QosPolicy) -> None:
    """Limit the number of VLs if there is a QoS policy, so that every QoS class gets SLs and VLs.

    ``found`` has the engine options, and is changed in place.  If the option "vls" is "auto", it becomes "min": the
    fewest VLs that the engine needs.  If the option is a number, it is limited to the number of layers for which every
    QoS class can have an SL.
    """
    if not policy.sls:
        return
    wanted = found.get("vls", "auto")
    if wanted == "auto":
        found["vls"] = "min"
    elif isinstance(wanted, int):
        found["vls"] = min(wanted, policy.most_layers)


def _check_vls(found: Mapping[str, Any], snapshot: Snapshot) -> None:
    """Raise OptionError if the options ``found`` ask for more data VLs, or a higher first VL, than OpenSM sets up."""
    remedy = "raise OpenSM's limits" if snapshot.qos else "set 'qos TRUE' in opensm.conf"
    for name, smallest, options in (("vls", 1, "vls"), ("first_vl", 0, "first_vl or lash_start_vl")):
        value = found.get(name)
        if isinstance(value, int) and value >= snapshot.data_vls + smallest:
            raise OptionError(
                f"{name} = {value}, but OpenSM sets up {count_noun(snapshot.data_vls, 'data VL')} on this fabric",
                option=name,
                remedy=f"{remedy}, or lower {options}",
            )


def admit_to_opensm(tables: VerifiedTables, snapshot: Snapshot, config: PluginConfig) -> VerifiedTables:
    """Check that tables may be given to OpenSM.  Tables need a certificate, unless the configuration allows credit
    loops.

    ``snapshot`` is the request, which states how many data VLs OpenSM sets up.

    Raises
    ------
    RoutingError
        The tables use more VLs than OpenSM sets up, or have a credit loop although the configuration does not allow it.
    """
    demand = Demand(None if config.allow_credit_loops else "forward", vls=snapshot.data_vls)
    found = admit(snapshot.fabric, tables.routing, tables.proof, demand)
    if isinstance(found, VerifiedTables):
        return found
    if found is Shortfall.VLS:
        raise NotEnoughVLs(tables.routing.vls, snapshot.data_vls)
    loop = loop_line(tables.proof)
    raise RoutingError(f"the tables have {found.value}, and allow_credit_loops is not set: {loop}")


def describe_proof(proof: Proof) -> str:
    """Describe the proof of tables in a few words for OpenSM's log."""
    if proof.certified:
        scope = "switch-to-switch traffic included" if proof.scope == "all" else "from or to CAs and routers"
        return f"proven free of credit loops ({proof.strength}, {scope})"
    return f"NOT free of credit loops, as allowed: {loop_line(proof)}"


def loop_line(proof: Proof) -> str:
    """Describe a credit loop by its first channels in one line."""
    lines = [line.strip() for line in proof.credit_loop.describe()] if proof.credit_loop is not None else ["no proof"]
    return " ".join([lines[0], "; ".join(lines[1:3]), *(["..."] if len(lines) > 3 else [])])
