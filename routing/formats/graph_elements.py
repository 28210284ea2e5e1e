"""Translate a fabric into nodes and edges with attributes, and back.  The formats GraphML and DOT share this module.

Devices are nodes with ``kind``, ``guid``, ``name`` and ``ports``.  Switches also have ``lid``.  A GUID is a string,
because many tools lose bits of 64-bit numbers.

Cables are undirected edges with ``width`` and ``speed`` (Gb/s of one physical lane).  The attributes ``source_port``
and ``target_port`` are the ports at the two ends.  For an end at a CA or router, ``guid``, ``lid`` and ``lmc`` of the
port are stated in the same form (``source_guid``, ``target_lid``, ...).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from routing.errors import FabricError, ParseError
from routing.fabric import Fabric, NodeKind
from routing.fabric_builder import FabricBuilder, Location

NODE_KEYS = {"kind": "string", "guid": "string", "name": "string", "ports": "int", "lid": "int"}
END_KEYS = {"port": "int", "guid": "string", "lid": "int", "lmc": "int"}
EDGE_KEYS = {
    "width": "int",
    "speed": "double",
    **{f"{end}_{key}": kind for end in ("source", "target") for key, kind in END_KEYS.items()},
}
"""Names of the attributes of an edge, each with its type in GraphML."""
ENDS = ("source", "target")
KINDS = {"switch": NodeKind.SWITCH, "ca": NodeKind.CA, "router": NodeKind.ROUTER}
_MAX_NAME = 1000


@dataclass
class Element:
    """Node or edge of a graph file.

    Attributes
    ----------
    location
        Place in the file.
    ends
        Ids of the two nodes of an edge.
    values
        Text of each attribute.
    """

    location: Location
    ends: tuple[str, str] = ("", "")
    values: dict[str, str] = field(default_factory=dict)


@dataclass
class GraphFile:
    """Nodes and edges of a graph file.

    Attributes
    ----------
    path, form
        File name and name of the format, for error messages.
    name, nodes, edges
        Name of the graph, its nodes by id, and its edges.
    """

    path: str | Path
    form: str
    name: str = ""
    nodes: dict[str, Element] = field(default_factory=dict)
    edges: list[Element] = field(default_factory=list)

    def error(self, problem: str, remedy: str, location: Location) -> ParseError:
        """Return an error with the text ``problem`` and a remedy, at a place in the file."""
        return ParseError(problem, path=self.path, line=location.line, remedy=remedy)

    def number(self, element: Element, key: str, default: int | None = None) -> int:
        """Return an attribute as a whole number; ``default`` if the element does not have the attribute.

        Raises
        ------
        ParseError
            The attribute is missing and there is no default, or the text is not a whole number.
        """
        text = element.values.get(key, "").strip()
        if not text and default is not None:
            return default
        try:
            value = float(text) if "." in text else int(text[:30], 0)
            if len(text) <= 30 and value == int(value):
                return int(value)
        except (ValueError, OverflowError):
            pass
        raise self.error(f"{key} {text[:30]!r} is not a number", f"see the {self.form} of ibnue", element.location)


def node_rows(fabric: Fabric) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield one node for each device of a fabric: the node id, which is the GUID of the device, and the attributes."""
    kinds = ["switch"] * fabric.switches + [NodeKind(kind).name.lower() for kind in fabric.terminal_kind.tolist()]
    ports = [*fabric.switch_ports.tolist(), *fabric.terminal_ports.tolist()]
    for device, guid in enumerate(_ids(fabric)):
        values = {"kind": kinds[device], "guid": guid, "name": fabric.device_name(device), "ports": ports[device]}
        if device < fabric.switches:
            values["lid"] = int(fabric.switch_lid[device])
        yield guid, values


def edge_rows(fabric: Fabric) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield one edge for each cable of a fabric: the ids of the two nodes at its ends, and the attributes."""
    guids = _ids(fabric)
    own = {
        (fabric.switches + terminal, port): {"guid": f"{guid:#x}", "lid": lid, "lmc": lmc}
        for terminal, port, guid, lid, lmc in zip(
            fabric.endport_terminal.tolist(), fabric.endport_port.tolist(), fabric.endport_guid.tolist(),
            fabric.endport_lid.tolist(), fabric.endport_lmc.tolist(), strict=True,
        )
    }  # fmt: skip
    for devices, ports, width, speed in fabric.cables():
        values: dict[str, Any] = {"width": width, "speed": speed}
        for end, device, port in zip(ENDS, devices, ports, strict=True):
            values[f"{end}_port"] = port
            values |= {f"{end}_{key}": value for key, value in own.get((device, port), {}).items()}
        yield guids[devices[0]], guids[devices[1]], values


def _ids(fabric: Fabric) -> list[str]:
    return [f"{guid:#x}" for guid in [*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist()]]


def fabric_of_graph(graph: GraphFile, lmc: int) -> Fabric:
    """Return the fabric of a graph file.  ``lmc`` is the LMC of end ports that have no LID in the file.

    Raises
    ------
    ParseError, FabricError
        An attribute is missing or invalid, or the devices and cables contradict each other.
    """
    if not graph.nodes:
        raise ParseError("no node in this file", path=graph.path, remedy=f"is it a {graph.form} file of ibnue?")
    builder = FabricBuilder(name=graph.name or Path(graph.path).name.split(".")[0])
    handle_of = {own: _add_device(graph, builder, element) for own, element in graph.nodes.items()}
    for element in graph.edges:
        _add_cable(graph, builder, element, handle_of)
    try:
        return builder.build(lmc=lmc)
    except FabricError as problem:
        raise FabricError(problem.problem, path=graph.path, line=problem.line, remedy=problem.remedy) from problem


def _add_device(graph: GraphFile, builder: FabricBuilder, element: Element) -> int:
    kind_name = element.values.get("kind", "")
    kind = KINDS.get(kind_name)
    if kind is None:
        raise graph.error(f"kind {kind_name[:30]!r}", "kinds are switch, ca and router", element.location)
    guid = graph.number(element, "guid")
    name = element.values.get("name", f"{guid:#x}")[:_MAX_NAME]
    handle = builder.add_device(kind, guid, name, graph.number(element, "ports"), element.location)
    if kind is NodeKind.SWITCH:
        builder.set_port(handle, 0, lid=graph.number(element, "lid", 0), location=element.location)
    return handle


def _add_cable(graph: GraphFile, builder: FabricBuilder, element: Element, handle_of: dict[str, int]) -> None:
    ends: list[int] = []
    for end, node in zip(ENDS, element.ends, strict=True):
        if node not in handle_of:
            raise graph.error(f"an edge to {node[:60]!r}, which is not a node", "is the file whole?", element.location)
        handle, port = handle_of[node], graph.number(element, f"{end}_port")
        ends += [handle, port]
        if builder.described(handle)[0] is not NodeKind.SWITCH:
            guid = graph.number(element, f"{end}_guid", 0)
            builder.set_port(
                handle,
                port,
                guid=guid or None,
                lid=graph.number(element, f"{end}_lid", 0),
                lmc=graph.number(element, f"{end}_lmc", 0),
                location=element.location,
            )
    try:
        speed = float(element.values.get("speed", "2.5"))
    except ValueError:
        speed = math.nan
    width = graph.number(element, "width", 4)
    builder.connect(ends[0], ends[1], ends[2], ends[3], width=width, speed=speed, location=element.location)
