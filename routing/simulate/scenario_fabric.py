"""Make the fabric and routing tables of a scenario: listed in the file, generated, or read from other files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from routing.endports import find_device, find_endport
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import NotEnoughVLs, OptionError
from routing.fabric import Fabric
from routing.faults import apply_faults, parse_fault
from routing.formats.fabric_files import read_fabric
from routing.formats.guid_files import apply_guid2lid, apply_node_names, read_guid2lid, read_node_name_map
from routing.formats.table_files import read_tables
from routing.formats.toml_text import Where
from routing.simulate.dimension_order import dimension_order
from routing.simulate.handmade import d_mod_k, literal_fabric, path_hops, tables_from_paths
from routing.simulate.scenario import Case, Scenario
from routing.simulate.scenario_schema import made_by
from routing.simulate.turn_model import west_first
from routing.tables import DATA_VLS, Routing
from routing.topologies import from_words

RULES = {"d-mod-k": d_mod_k, "dimension-order": dimension_order, "west-first": west_first}
WRITTEN = ("switches", "cables", "cas")
"""Keys of ``[fabric]`` that are required if the scenario lists the devices and cables itself."""
_PLUG = re.compile(r"(.+)(?:/([0-9]{1,3})|\[([0-9]{1,3})\])", re.ASCII | re.DOTALL)
_NAMED = 4


def scenario_fabric(scenario: Scenario) -> Fabric:
    """Return the fabric of a scenario, with failed cables removed and faults applied."""
    table = scenario.tables["fabric"]
    if "file" in table:
        fabric = _from_file(scenario, table)
    elif "generator" in table:
        name, _, rest = table["generator"].partition(":")
        with scenario.placed("fabric", "generator"):
            fabric = from_words(name, [word for word in rest.split(",") if word])
    else:
        fabric = _written(scenario, table)
    where = ("fabric", "failed")
    failed = [
        cable_between(scenario, fabric, pair(scenario, cable, *where, number), *where, number)
        for number, cable in enumerate(table.get("failed", []))
    ]
    if failed:
        fabric = fabric.without_links(failed)
    for number, fault in enumerate(table.get("faults", [])):
        with scenario.placed("fabric", "faults", number):
            fabric = apply_faults(fabric, [parse_fault(str(fault), fabric)])
    return fabric


def _from_file(scenario: Scenario, table: Mapping[str, Any]) -> Fabric:
    """Read the fabric of a scenario from a file in any supported format.

    Results contain names of devices, and names in the file may be ambiguous.  So every device is renamed to its unique
    label.
    """
    lmc = table.get("lmc", 0)
    with scenario.placed("fabric", "file"):
        fabric = read_fabric(relative_to(scenario, table["file"]), lmc=lmc)
    if "guid2lid" in table:
        with scenario.placed("fabric", "guid2lid"):
            fabric = apply_guid2lid(fabric, read_guid2lid(relative_to(scenario, table["guid2lid"])), lmc=lmc)
    if scenario.node_names is not None:
        fabric = apply_node_names(fabric, scenario.node_names)
    elif "node_name_map" in table:
        with scenario.placed("fabric", "node_name_map"):
            fabric = apply_node_names(fabric, read_node_name_map(relative_to(scenario, table["node_name_map"])))
    labels = fabric.labels
    return replace(fabric, switch_name=labels[: fabric.switches], terminal_name=labels[fabric.switches :])


def relative_to(scenario: Scenario, path: str) -> Path:
    """Resolve a path of the scenario file, relative to the folder of that file."""
    return Path(scenario.file.path).parent / path


def _written(scenario: Scenario, table: Mapping[str, Any]) -> Fabric:
    """Build the fabric whose switches, cables and CAs the scenario lists."""
    for key in WRITTEN:
        if key not in table:
            raise scenario.error(f"[fabric] needs a file, a generator, or {key}", "fabric")
    cables = [pair(scenario, cable, "fabric", "cables", number) for number, cable in enumerate(table["cables"])]
    _check_names(scenario, table["switches"], table["cas"])
    with scenario.placed("fabric", "cables"):
        return literal_fabric(scenario.name, table["switches"], cables, table["cas"], lmc=table.get("lmc", 0))


def _check_names(scenario: Scenario, switches: Sequence[object], cas: Mapping[str, object]) -> None:
    """Raise ParseError unless the names of devices are unique, and every CA is attached to a listed switch."""
    seen = set(cas)
    for name in switches:
        if not isinstance(name, str):
            raise scenario.error(f"{name!r} is not a name of a switch", "fabric", "switches", remedy="write a text")
        if name in seen:
            raise scenario.error(f"two devices are called {name!r}", "fabric", "switches", remedy="rename one of them")
        seen.add(name)
    for ca, switch in cas.items():
        if switch not in switches:
            raise scenario.error(f"{switch!r} of CA {ca!r} is not a switch", "fabric", "cas", remedy="name a switch")


def pair(scenario: Scenario, cable: object, *where: str | int) -> tuple[str, str]:
    """Return the names of a cable's two ends.

    Raises
    ------
    ParseError
        ``cable`` is not a list of two strings.
    """
    if not isinstance(cable, list) or len(cable) != 2 or not all(isinstance(end, str) for end in cable):
        raise scenario.error(f"{cable!r} is not a cable", *where, remedy='write ["sw1", "sw2"]')
    return cable[0], cable[1]


def cable_between(scenario: Scenario, fabric: Fabric, ends: tuple[str, str], *where: str | int) -> int:
    """Return the link of the cable between two devices.  If there are several cables, ``ends`` has to name a port.

    Parameters
    ----------
    scenario, fabric
        Scenario, and its fabric.
    ends
        Names of the two devices, each with or without a port, such as ``S1`` or ``S1/3``.
    where
        Location of the cable in the scenario file, for error messages.

    Raises
    ------
    ParseError
        No cable or more than one cable matches.
    """
    with scenario.placed(*where):
        (a, near), (b, far) = (_plug(fabric, end) for end in ends)
    devices = fabric.link_device
    between = np.flatnonzero((devices == (a, b)).all(axis=1) | (devices == (b, a)).all(axis=1)).tolist()
    meant = [link for link in between if {(a, near), (b, far)} in _plugs(fabric, link)]
    if len(meant) == 1:
        return int(meant[0])
    there = ", ".join(_cable_name(fabric, link) for link in (meant or between)[:_NAMED])
    if not meant:
        remedy = f"there is {there}" if between else None
        raise scenario.error(f"there is no cable between {ends[0]} and {ends[1]}", *where, remedy=remedy)
    port = int(fabric.link_port[meant[0]][fabric.link_device[meant[0]].tolist().index(a)])
    raise scenario.error(
        f"there are {len(meant)} cables between {ends[0]} and {ends[1]}: {there}",
        *where,
        remedy=f'name a port, such as ["{fabric.labels[a]}/{port}", "{ends[1]}"]',
    )


def _plug(fabric: Fabric, text: str) -> tuple[int, int | None]:
    """Return device and port of a text such as ``S1/3`` or ``S1[3]``.

    The text may also be the GUID or the LID of a port.  The port is None if the text does not determine it.
    """
    try:
        device = find_device(fabric, text)
    except OptionError:
        found = _PLUG.fullmatch(text)
        if found is None:
            raise
        return find_device(fabric, found[1]), int(found[2] or found[3])
    with suppress(OptionError):  # The text names a switch, or a CA with several ports, so the port stays undetermined.
        return device, int(fabric.endport_port[find_endport(fabric, text)[0]])
    return device, None


def _plugs(fabric: Fabric, link: int) -> Iterator[set[tuple[int, int | None]]]:
    """Yield each form in which a text may name both ends of a cable: two pairs (device, port), where the port may be
    left out (None).
    """
    (a, b), (p, q) = fabric.link_device[link].tolist(), fabric.link_port[link].tolist()
    return ({(a, near), (b, far)} for near in (None, p) for far in (None, q))


def _cable_name(fabric: Fabric, link: int) -> str:
    """Return the name of a cable, such as ``sw1/3 - sw2/4``."""
    ends = zip(fabric.link_device[link].tolist(), fabric.link_port[link].tolist(), strict=True)
    return " - ".join(f"{fabric.labels[device]}/{port}" for device, port in ends)


def scenario_routing(scenario: Scenario, case: Case, fabric: Fabric, flows: Sequence[Mapping[str, Any]]) -> Routing:
    """Return the routing tables of a simulation case.

    The source of the tables is an engine, a rule (such as D-mod-K) or files.  Without a source, the tables contain only
    the paths that the flows list.
    """
    own = {name: case.table[name] for name in ("engine", "vls") if name in case.table}
    table = {**scenario.tables["routing"], **own}

    def stated(key: str) -> Where:
        return (*(case.where if key in own else ("routing",)), key)

    made = made_by(scenario.tables["routing"], case.table)
    if made == "engine":
        return engine_tables(scenario, fabric, table, stated("engine"), stated("vls"))
    if made == "tables":
        position = (*case.where, "routing") if "routing" in case.table else ("routing",)
        return read_scenario_tables(scenario, fabric, case.table.get("routing", table)["tables"], *position, "tables")
    if made == "rule":
        with scenario.placed("routing", "rule"):
            return scenario.choice("rule for tables", table["rule"], RULES)(fabric)
    vls = table.get("vls", 1)
    if not isinstance(vls, int) or not 1 <= vls <= DATA_VLS:
        raise scenario.error(f"{vls!r} is not a number of VLs for paths", *stated("vls"), remedy=f"use 1 to {DATA_VLS}")
    paths = _literal_paths(scenario, fabric, flows, table.get("paths", []))
    sl = {(flow["path"][0], flow["path"][-1]): flow.get("sl", 0) for flow in flows if "path" in flow}
    return tables_from_paths(fabric, paths, vls=vls, sl=sl, fill=table.get("fill", not paths))


def engine_tables(
    scenario: Scenario, fabric: Fabric, table: Mapping[str, Any], stated: Where, vls_stated: Where
) -> Routing:
    """Compute tables with the routing engine that a scenario names.

    ``stated`` and ``vls_stated`` are the locations of the engine and of the number of VLs in the file, for error
    messages.
    """
    engine = table["engine"]
    if engine not in ENGINES:
        raise scenario.error(f"there is no engine {engine!r}", *stated, remedy=f"use {', '.join(ENGINES)}")
    vls = table.get("vls", "auto")
    with enough_vls(scenario, *(vls_stated if "vls" in table else stated)), scenario.placed(*stated):
        return ENGINES[engine].route(fabric, EngineOptions(vls=vls, seed=table.get("seed", 1), threads=1))


@contextmanager
def enough_vls(scenario: Scenario, *where: str | int) -> Iterator[None]:
    """Convert NotEnoughVLs in a ``with`` block to a ParseError that names a location in the scenario file."""
    try:
        yield
    except NotEnoughVLs as error:
        most = f"set vls to {error.needed}, or " if error.needed is not None and error.needed <= DATA_VLS else ""
        raise scenario.error(str(error), *where, remedy=f"{most}use an engine that needs fewer") from None


def read_scenario_tables(scenario: Scenario, fabric: Fabric, path: str, *where: str | int) -> Routing:
    """Read tables from files, and check that they fit the fabric.

    ``where`` is the location of the tables' path in the scenario file, for error messages.
    """
    broken = [key for key in ("failed", "faults") if scenario.tables["fabric"].get(key)]
    remedy = f"use tables for the fabric after {broken[0]}, or let a fault of a case break it" if broken else None
    with scenario.placed(*where, remedy=remedy):
        routing = read_tables(relative_to(scenario, path), fabric)
        routing.check_shapes(fabric)
    return routing


def _literal_paths(
    scenario: Scenario, fabric: Fabric, flows: Sequence[Mapping[str, Any]], more: Sequence[Sequence[str]]
) -> list[Sequence[str]]:
    """Check and return the paths from which the routing tables of a scenario are made.

    The paths are the values of the key ``path`` of the flows in ``flows``, and then the paths in ``more``.  Flows
    without this key are left out.

    Raises
    ------
    ParseError
        A path is too short, or names a device or cable that does not exist.
    """
    placed = [(flow["path"], scenario.flow_at(flow, "path")) for flow in flows if "path" in flow]
    placed += [(path, ("routing", "paths", number)) for number, path in enumerate(more)]
    for path, where in placed:
        check_length(scenario, path, *where)
        with scenario.placed(*where):
            path_hops(fabric, path)
    return [path for path, _ in placed]


def check_length(scenario: Scenario, path: Sequence[str], *where: str | int) -> None:
    """Raise ParseError unless a path consists of two ends and at least one switch between them."""
    if len(path) < 3:
        raise scenario.error("a path is a list of names: a CA, one or more switches, a CA", *where)
