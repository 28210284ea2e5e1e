"""Read and write fabrics as GraphML, the format of igraph, networkx, Gephi and other graph tools.

Devices are nodes with ``kind``, ``guid``, ``name`` and ``ports``.  Switches also have ``lid``.  A GUID is a string,
because many tools lose bits of 64-bit numbers.

Cables are undirected edges with ``width``, ``speed`` (Gb/s of one physical lane), and ``port`` for either end.  An end
at a CA or router also has ``guid``, ``lid`` and ``lmc`` of its port (``source_port``, ``target_lid``, ...).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from routing.errors import FabricError, ParseError
from routing.fabric import Fabric, NodeKind
from routing.fabric_builder import FabricBuilder, Location
from routing.names import escape_control

_NODE_KEYS = {"kind": "string", "guid": "string", "name": "string", "ports": "int", "lid": "int"}
_END_KEYS = {"port": "int", "guid": "string", "lid": "int", "lmc": "int"}
_EDGE_KEYS = {
    "width": "int",
    "speed": "double",
    **{f"{end}_{key}": kind for end in ("source", "target") for key, kind in _END_KEYS.items()},
}
_MAX_NAME = 1000


def graphml_text(fabric: Fabric) -> str:
    """Return the fabric as GraphML."""
    return "\n".join(_lines(fabric)) + "\n"


def _lines(fabric: Fabric) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    for target, keys in (("node", _NODE_KEYS), ("edge", _EDGE_KEYS)):
        for key, kind in keys.items():
            yield f'<key id="{target}_{key}" for="{target}" attr.name="{key}" attr.type="{kind}"/>'
    yield f'<graph id={quoteattr(_legal(fabric.name))} edgedefault="undirected">'
    guids = [f"{guid:#x}" for guid in [*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist()]]
    kinds = ["switch"] * fabric.switches + [NodeKind(kind).name.lower() for kind in fabric.terminal_kind.tolist()]
    ports = [*fabric.switch_ports.tolist(), *fabric.terminal_ports.tolist()]
    for device, guid in enumerate(guids):
        values = {"kind": kinds[device], "guid": guid, "name": fabric.device_name(device), "ports": ports[device]}
        if device < fabric.switches:
            values["lid"] = int(fabric.switch_lid[device])
        yield f'<node id="{guid}">{_data("node", values)}</node>'
    yield from _edges(fabric, guids)
    yield "</graph>"
    yield "</graphml>"


def _edges(fabric: Fabric, guids: list[str]) -> Iterator[str]:
    own = {
        (fabric.switches + terminal, port): {"guid": f"{guid:#x}", "lid": lid, "lmc": lmc}
        for terminal, port, guid, lid, lmc in zip(
            fabric.endport_terminal.tolist(), fabric.endport_port.tolist(), fabric.endport_guid.tolist(),
            fabric.endport_lid.tolist(), fabric.endport_lmc.tolist(), strict=True,
        )
    }  # fmt: skip
    rows = zip(
        fabric.link_device.tolist(), fabric.link_port.tolist(), fabric.link_width.tolist(),
        fabric.link_speed.tolist(), strict=True,
    )  # fmt: skip
    for devices, ports, width, speed in rows:
        values: dict[str, Any] = {"width": width, "speed": speed}
        for end, device, port in zip(("source", "target"), devices, ports, strict=True):
            values[f"{end}_port"] = port
            values |= {f"{end}_{key}": value for key, value in own.get((device, port), {}).items()}
        yield f'<edge source="{guids[devices[0]]}" target="{guids[devices[1]]}">{_data("edge", values)}</edge>'


def _data(target: str, values: dict[str, Any]) -> str:
    return "".join(f'<data key="{target}_{key}">{escape(_legal(str(value)))}</data>' for key, value in values.items())


def _legal(text: str) -> str:
    """Escape the characters that XML cannot represent."""
    return escape_control(text, _is_legal_text)


def _is_legal_text(letter: str) -> bool:
    return letter in "\t\n" or " " <= letter < "\ud800" or "\ue000" <= letter < "\ufffe" or letter > "\uffff"


@dataclass
class _Element:
    """Node or edge that is being read, with its attributes."""

    location: Location
    ends: tuple[str, str]
    values: dict[str, str] = field(default_factory=dict)


@dataclass
class _Reader:
    """Handlers that the XML parser expat calls, which works in one pass and knows the line number."""

    path: str | Path
    parser: Any
    name: str = ""
    keys: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, _Element] = field(default_factory=dict)
    edges: list[_Element] = field(default_factory=list)
    current: _Element | None = None
    data_key: str | None = None
    text: list[str] = field(default_factory=list)
    graphs: int = 0

    def location(self) -> Location:
        return Location(self.path, self.parser.CurrentLineNumber)

    def error(self, problem: str, remedy: str, location: Location | None = None) -> ParseError:
        line = (location or self.location()).line
        return ParseError(problem, path=self.path, line=line, remedy=remedy)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "key":
            self.keys[attributes.get("id", "")] = attributes.get("attr.name", "")
        elif tag == "graph":
            self.graphs += 1
            if self.graphs > 1:
                raise self.error("the file has more than one graph", "a file has one fabric")
            self.name = attributes.get("id", "")
        elif tag == "node":
            own = attributes.get("id", "")
            if own in self.nodes:
                raise self.error(f"there is a node {own!r} already", "ids are unique")
            self.current = self.nodes[own] = _Element(self.location(), ("", ""))
        elif tag == "edge":
            ends = attributes.get("source", ""), attributes.get("target", "")
            self.current = _Element(self.location(), ends)
            self.edges.append(self.current)
        elif tag == "data" and self.current is not None:
            self.data_key = self.keys.get(attributes.get("key", ""), "")
            self.text = []

    def characters(self, text: str) -> None:
        if self.data_key is not None:
            self.text.append(text)

    def end(self, tag: str) -> None:
        if tag == "data" and self.current is not None and self.data_key is not None:
            self.current.values[self.data_key] = "".join(self.text)
            self.data_key = None
        elif tag in ("node", "edge"):
            self.current = None

    def doctype(self, *_: Any) -> None:
        raise self.error("the file has a document type declaration", "GraphML needs none; remove it")

    def number(self, element: _Element, key: str, default: int | None = None) -> int:
        text = element.values.get(key, "").strip()
        if not text and default is not None:
            return default
        try:
            value = float(text) if "." in text else int(text[:30], 0)
            if len(text) <= 30 and value == int(value):
                return int(value)
        except (ValueError, OverflowError):
            pass
        raise self.error(f"{key} {text[:30]!r} is not a number", "see the GraphML of ibnue", element.location)


def _add_device(reader: _Reader, builder: FabricBuilder, element: _Element) -> int:
    kind_name = element.values.get("kind", "")
    kind = {"switch": NodeKind.SWITCH, "ca": NodeKind.CA, "router": NodeKind.ROUTER}.get(kind_name)
    if kind is None:
        raise reader.error(f"kind {kind_name[:30]!r}", "kinds are switch, ca and router", element.location)
    guid = reader.number(element, "guid")
    name = element.values.get("name", f"{guid:#x}")[:_MAX_NAME]
    handle = builder.add_device(kind, guid, name, reader.number(element, "ports"), element.location)
    if kind is NodeKind.SWITCH:
        builder.set_port(handle, 0, lid=reader.number(element, "lid", 0), location=element.location)
    return handle


def _add_cable(reader: _Reader, builder: FabricBuilder, element: _Element, handle_of: dict[str, int]) -> None:
    ends: list[int] = []
    for end, node in zip(("source", "target"), element.ends, strict=True):
        if node not in handle_of:
            raise reader.error(f"an edge to {node[:60]!r}, which is not a node", "is the file whole?", element.location)
        handle, port = handle_of[node], reader.number(element, f"{end}_port")
        ends += [handle, port]
        if builder.described(handle)[0] is not NodeKind.SWITCH:
            guid = reader.number(element, f"{end}_guid", 0)
            builder.set_port(
                handle,
                port,
                guid=guid or None,
                lid=reader.number(element, f"{end}_lid", 0),
                lmc=reader.number(element, f"{end}_lmc", 0),
                location=element.location,
            )
    try:
        speed = float(element.values.get("speed", "2.5"))
    except ValueError:
        speed = math.nan
    width = reader.number(element, "width", 4)
    builder.connect(ends[0], ends[1], ends[2], ends[3], width=width, speed=speed, location=element.location)


def parse_graphml(text: str, path: str | Path, *, lmc: int = 0) -> Fabric:
    """Parse the text of a GraphML file, and return the fabric in it.

    Parameters
    ----------
    text
        Content of the file.  The reader finds attributes by name, so it can also read a file that another tool has
        rewritten.
    path
        File name for error messages.
    lmc
        LMC of the end ports that have no LID in the file (LID 0).

    Raises
    ------
    ParseError, FabricError
        The text is invalid.  The message has file, line and remedy.
    """
    parser = expat.ParserCreate(encoding="UTF-8")
    parser.buffer_text = True
    reader = _Reader(path, parser)
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    parser.StartDoctypeDeclHandler = reader.doctype
    try:
        parser.Parse(text.encode("utf-8", errors="replace"), True)
    except expat.ExpatError as problem:
        raise ParseError(
            f"not XML: {expat.ErrorString(problem.code)}", path=path, line=problem.lineno, remedy="is the file whole?"
        ) from None
    finally:  # The parser and its handlers refer to each other.  Removing this cycle frees the memory of both at once.
        parser.StartElementHandler = parser.EndElementHandler = None
        parser.CharacterDataHandler = parser.StartDoctypeDeclHandler = None
    if not reader.nodes:
        raise ParseError("no node in this file", path=path, remedy="is it a GraphML file of ibnue?")
    builder = FabricBuilder(name=reader.name or Path(path).name.split(".")[0])
    handle_of = {own: _add_device(reader, builder, element) for own, element in reader.nodes.items()}
    for element in reader.edges:
        _add_cable(reader, builder, element, handle_of)
    try:
        return builder.build(lmc=lmc)
    except FabricError as problem:
        raise FabricError(problem.problem, path=path, line=problem.line, remedy=problem.remedy) from problem
