"""Read and write fabrics as JSON, in the schema ``ibnue-fabric/1``, which has all data of a fabric.

GUIDs are strings (``"0x200000"``), because many JSON readers represent numbers exactly only up to 2^53.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from routing.errors import FabricError, InputError, ParseError
from routing.fabric import Fabric, NodeKind
from routing.fabric_builder import FabricBuilder
from routing.formats.toml_text import type_names
from routing.rates import SPEED_OF, speed_name

SCHEMA = "ibnue-fabric/1"


def json_text(fabric: Fabric) -> str:
    """Return the fabric as JSON text, with one device or one cable per line."""
    parts = [
        '{"schema": ' + json.dumps(SCHEMA),
        '"name": ' + json.dumps(_printable(fabric.name)),
        _array("switches", _switches(fabric)),
        _array("terminals", _terminals(fabric)),
        _array("links", _links(fabric)),
    ]
    return ",\n".join(parts) + "}\n"


def _array(key: str, rows: Iterator[Any]) -> str:
    return f'"{key}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]"


def _switches(fabric: Fabric) -> Iterator[Any]:
    rows = zip(
        fabric.switch_guid.tolist(), fabric.switch_name, fabric.switch_ports.tolist(), fabric.switch_lid.tolist(),
        strict=True,
    )  # fmt: skip
    for guid, name, ports, lid in rows:
        yield {"guid": f"{guid:#x}", "name": _printable(name), "ports": ports, "lid": lid}


def _terminals(fabric: Fabric) -> Iterator[Any]:
    endports: list[list[Any]] = [[] for _ in range(fabric.terminals)]
    rows = zip(
        fabric.endport_terminal.tolist(), fabric.endport_port.tolist(), fabric.endport_guid.tolist(),
        fabric.endport_lid.tolist(), fabric.endport_lmc.tolist(), strict=True,
    )  # fmt: skip
    for terminal, port, guid, lid, lmc in rows:
        endports[terminal].append({"port": port, "guid": f"{guid:#x}", "lid": lid, "lmc": lmc})
    for row, guid in enumerate(fabric.terminal_guid.tolist()):
        yield {
            "guid": f"{guid:#x}",
            "name": _printable(fabric.terminal_name[row]),
            "kind": NodeKind(int(fabric.terminal_kind[row])).name.lower(),
            "ports": int(fabric.terminal_ports[row]),
            "endports": endports[row],
        }


def _links(fabric: Fabric) -> Iterator[Any]:
    guids = [f"{guid:#x}" for guid in [*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist()]]
    for (a, b), (p, q), width, speed in fabric.cables():
        called = speed_name(speed)
        exact = called is not None and SPEED_OF[called] == speed
        yield {"ends": [[guids[a], p], [guids[b], q]], "width": width, "speed": called if exact else speed}


def _printable(text: str) -> str:
    """Escape lone surrogates, which cannot be encoded as UTF-8."""
    return text.encode("utf-8", errors="backslashreplace").decode("utf-8")


class _Reader:
    """Builds a fabric from parsed JSON.

    Errors name the position in the JSON value, such as ``links[3]``, because the parser records no line numbers.
    """

    def __init__(self, path: str | Path, lmc: int) -> None:
        self.path = path
        self.lmc = lmc

    def error(self, spot: str, problem: str) -> ParseError:
        return ParseError(f"{spot}: {problem}", path=self.path, remedy=f"see the schema {SCHEMA}")

    def take(self, row: Any, spot: str, key: str, kind: type, default: Any = None) -> Any:
        """Return the member ``key`` of the JSON object ``row``, after a check that its type is ``kind``.

        If the member is missing, ``default`` takes its place.  ``spot`` is the position of the object, for the error
        message.

        Raises
        ------
        ParseError
            The member is missing and has no default, or has another type.
        """
        if not isinstance(row, dict):
            raise self.error(spot, "not an object")
        value = row.get(key, default)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(spot, f"{key!r} is missing or not {type_names([kind])}")
        return _printable(value) if isinstance(value, str) else value

    def guid(self, value: Any, spot: str) -> int:
        try:
            if isinstance(value, str) and len(value) <= 20:
                return int(value, 0)
        except ValueError:
            pass
        raise self.error(spot, "a GUID is missing or not a string like '0x200000'")

    def fabric(self, value: Any) -> Fabric:
        if not isinstance(value, dict) or value.get("schema") != SCHEMA:
            raise self.error("schema", f"not {SCHEMA!r}")
        builder = FabricBuilder(name=self.take(value, "fabric", "name", str, "fabric"))
        for key, add in (("switches", self.switch), ("terminals", self.terminal), ("links", self.link)):
            for number, row in enumerate(self.take(value, "fabric", key, list)):
                spot = f"{key}[{number}]"
                try:
                    add(builder, row, spot)
                except FabricError as problem:
                    raise self._at(spot, problem) from problem
        try:
            return builder.build(lmc=self.lmc)
        except FabricError as problem:
            raise self._at("", problem) from problem

    def _at(self, spot: str, problem: FabricError) -> FabricError:
        where = f"{spot}: " if spot else ""
        return FabricError(f"{where}{problem.problem}", path=self.path, remedy=problem.remedy)

    def switch(self, builder: FabricBuilder, row: Any, spot: str) -> None:
        name = self.take(row, spot, "name", str)
        guid = self.guid(row.get("guid"), spot)
        handle = builder.add_device(NodeKind.SWITCH, guid, name, self.take(row, spot, "ports", int))
        builder.set_port(handle, 0, lid=self.take(row, spot, "lid", int, 0))

    def terminal(self, builder: FabricBuilder, row: Any, spot: str) -> None:
        kind = {"ca": NodeKind.CA, "router": NodeKind.ROUTER}.get(self.take(row, spot, "kind", str, "ca"))
        if kind is None:
            raise self.error(spot, "'kind' is neither 'ca' nor 'router'")
        guid = self.guid(row.get("guid"), spot)
        handle = builder.add_device(kind, guid, self.take(row, spot, "name", str), self.take(row, spot, "ports", int))
        for number, port in enumerate(self.take(row, spot, "endports", list, [])):
            inner = f"{spot}.endports[{number}]"
            builder.set_port(
                handle,
                self.take(port, inner, "port", int),
                guid=self.guid(port["guid"], inner) if "guid" in port else None,
                lid=self.take(port, inner, "lid", int, 0),
                lmc=self.take(port, inner, "lmc", int, 0),
            )

    def link(self, builder: FabricBuilder, row: Any, spot: str) -> None:
        ends = self.take(row, spot, "ends", list)
        if len(ends) != 2 or not all(isinstance(end, list) and len(end) == 2 for end in ends):
            raise self.error(spot, "'ends' is not a pair of [GUID, port]")
        handles, ports = [], []
        for guid, port in ends:
            handle = builder.find_guid(self.guid(guid, spot))
            if handle is None:
                raise self.error(spot, f"there is no device {guid}")
            if not isinstance(port, int) or isinstance(port, bool):
                raise self.error(spot, f"{port!r} is not a port number")
            handles.append(handle)
            ports.append(port)
        builder.connect(
            handles[0], ports[0], handles[1], ports[1],
            width=self.take(row, spot, "width", int, 4), speed=self.speed(row.get("speed", "SDR"), spot),
        )  # fmt: skip

    def speed(self, value: Any, spot: str) -> float:
        if isinstance(value, str) and value in SPEED_OF:
            return SPEED_OF[value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        raise self.error(spot, "'speed' is neither a name (SDR to XDR) nor a number of Gb/s per lane")


def parse_json(text: str, path: str | Path, *, lmc: int = 0) -> Fabric:
    """Parse the text of a JSON file, and return the fabric in it.

    Parameters
    ----------
    text
        Content of the file.
    path
        File name for error messages.
    lmc
        LMC of the end ports without a LID: the file states no LID for them, or LID 0.

    Raises
    ------
    ParseError, FabricError, InputError
        The text is invalid, or a number is out of range.  The message names the file and the position (``links[3]``),
        or the line of a syntax error.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as problem:
        raise ParseError(problem.msg, path=path, line=problem.lineno, remedy="is the file whole?") from problem
    except (ValueError, RecursionError) as problem:
        raise ParseError(f"not readable as JSON: {problem}", path=path, remedy=f"see the schema {SCHEMA}") from None
    try:
        return _Reader(path, lmc).fabric(value)
    except OverflowError as problem:
        raise InputError(f"a number is out of range: {problem}", path=path) from None
