"""Read ``ibdiagnet2.db_csv``: the sections NODES, PORTS and LINKS of the database that ibdiagnet 2 writes.

A section is the line ``START_NAME``, a header with the names of the columns, comma-separated rows, and ``END_NAME``.
All other sections and columns are ignored.  The forwarding tables are in other files of ibdiagnet.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from routing.errors import FabricError, InputWarning, ParseError
from routing.fabric import Fabric, NodeKind
from routing.fabric_builder import FabricBuilder, Location
from routing.formats.statements import PortStatements
from routing.formats.text import lines_of
from routing.numerals import count_noun
from routing.rates import SPEED_OF

Rates = dict[tuple[int, int], tuple[int, float]]
"""Width and speed of the link at each port, by (node GUID, port number).  0 means unknown."""
_KIND = {1: NodeKind.CA, 2: NodeKind.SWITCH, 3: NodeKind.ROUTER}
_WIDTH = {1: 1, 2: 4, 4: 8, 8: 12, 16: 2}
_SPEED = {
    1: "SDR", 2: "DDR", 4: "QDR", 1 << 8: "FDR", 2 << 8: "EDR", 4 << 8: "HDR", 8 << 8: "NDR", 1 << 16: "FDR10",
    1 << 24: "XDR",
}  # fmt: skip
"""Names of speeds by the number in the file.  The lowest byte of this number is for SDR to QDR, the second byte for FDR
to NDR, the third byte for speeds of the vendor, and the fourth byte for XDR.
"""
_MARK = re.compile(r"(START|END)_([A-Z0-9_]+)\s*$")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,32}|[0-9]{1,32}")
_SIGNATURE = re.compile(r"^START_(?:NODES|PORTS|LINKS)\s*$", re.MULTILINE)
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "NODES": ("NodeDesc", "NumPorts", "NodeType", "NodeGUID"),
    "PORTS": ("NodeGuid", "PortGuid", "PortNum", "LID"),
    "LINKS": ("NodeGuid1", "PortNum1", "NodeGuid2", "PortNum2"),
}
"""Sections that are read, each with the columns that it must have."""
_LINK_UP = 5
"""Value of PortPhysicalState for a port with a link."""
_MAX_LINE = 1 << 16
_WHOLE = "is the file whole?"


def is_ibdiagnet_csv(text: str) -> bool:
    """Return whether a text is a database of ibdiagnet 2."""
    return _SIGNATURE.search(text) is not None


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of a section of the database."""

    cells: dict[str, str]
    path: str | Path
    line: int

    def text(self, column: str) -> str:
        return self.cells.get(column, "")

    def number(self, column: str) -> int:
        """Return a number of the row.  The number is 0 if the column is missing or the cell is "N/A".

        Raises
        ------
        ParseError
            The cell is not a number.
        """
        text = self.text(column).strip()
        if text in ("", "N/A"):
            return 0
        if not _NUMBER.fullmatch(text):
            raise ParseError(f"{column} is {text[:40]!r}, not a number", path=self.path, line=self.line, remedy=_WHOLE)
        return int(text, 16 if text[:2] in ("0x", "0X") else 10)


def parse_ibdiagnet_csv(text: str, path: str | Path, *, lmc: int = 0) -> Fabric:
    """Parse the text of ``ibdiagnet2.db_csv``, and return the fabric in it.

    Parameters
    ----------
    text
        Content of the file.
    path
        File name for error messages.
    lmc
        LMC of the end ports that have no LID in the file.

    Raises
    ------
    ParseError, FabricError
        The text is invalid or was cut short.  The message has file, line and remedy.

    Warns
    -----
    InputWarning
        There are links with an unknown rate, or ports that are up without a row in LINKS.  The warning states their
        number.
    """
    sections = _sections(text, path)
    builder = FabricBuilder(name=Path(path).name.split(".")[0])
    for row in sections["NODES"]:
        kind = _KIND.get(row.number("NodeType"))
        if kind is None:
            problem = f"node type {row.text('NodeType')[:40]!r} is unknown"
            raise ParseError(problem, path=path, line=row.line, remedy="node types are 1 (CA), 2 (switch), 3 (router)")
        name, ports = row.text("NodeDesc"), row.number("NumPorts")
        location, device_id = Location(path, row.line), row.number("DeviceID")
        builder.add_device(kind, row.number("NodeGUID"), name, ports, location, device_id=device_id)
    rates = _add_ports(sections["PORTS"], builder)
    if not sections["LINKS"]:
        raise ParseError("the section LINKS is empty", path=path, remedy=_WHOLE)
    statements = PortStatements(path)
    for row in sections["LINKS"]:
        _add_link(row, builder, rates, statements)
    _warn_of_lost_links(sections["PORTS"], statements, builder)
    statements.connect(builder)
    return builder.build(lmc=lmc)


def _sections(text: str, path: str | Path) -> dict[str, list[_Row]]:
    """Return the rows of the sections that a fabric needs.

    Raises
    ------
    ParseError
        A section is missing, was cut short, or lacks a column, or a row has too few cells.
    """
    found: dict[str, list[_Row]] = {}
    section, header = "", list[str]()
    for number, line in lines_of(text):
        mark = _MARK.match(line) if line.startswith(("START_", "END_")) else None
        if mark is not None:
            _check_mark(mark, section, path, number)
            section, header = (mark[2], []) if mark[1] == "START" else ("", [])
            if section in _COLUMNS and found.setdefault(section, []):
                raise ParseError(f"a second section {section}", path=path, line=number, remedy="delete one of the two")
        elif section in _COLUMNS and line.strip():
            cells = _cells(line, path, number)
            if not header:
                header = [cell.strip() for cell in cells]
                _check_header(section, header, path, number)
            elif len(cells) < len(header):
                problem = f"this row has {len(cells)} cells, and the header {len(header)}"
                raise ParseError(problem, path=path, line=number, remedy=_WHOLE)
            else:
                found[section].append(_Row(dict(zip(header, cells, strict=False)), path, number))
    if section:
        raise ParseError(f"the section {section} has no last line (END_{section})", path=path, remedy=_WHOLE)
    for name in _COLUMNS:
        if name not in found:
            raise ParseError(f"there is no section {name}", path=path, remedy="run ibdiagnet with all stages")
    return found


def _check_mark(mark: re.Match[str], section: str, path: str | Path, line: int) -> None:
    """Raise ParseError if a section begins inside another section, or if a section ends that has not begun.

    ``mark`` is the line that begins or ends a section.  ``section`` is the name of the section that is open before this
    line, or an empty text.
    """
    if (mark[1] == "START" and section) or (mark[1] == "END" and section != mark[2]):
        problem = (
            f"{mark[0].strip()[:60]!r} is inside of section {section}"
            if section
            else f"{mark[0].strip()[:60]!r} ends nothing"
        )
        raise ParseError(problem, path=path, line=line, remedy=_WHOLE)


def _check_header(section: str, header: list[str], path: str | Path, line: int) -> None:
    missing = [column for column in _COLUMNS[section] if column not in header]
    if missing:
        remedy = f"the section has {', '.join(_COLUMNS[section])}"
        raise ParseError(f"{section} has no column {missing[0]}", path=path, line=line, remedy=remedy)


def _cells(line: str, path: str | Path, number: int) -> list[str]:
    try:
        if len(line) > _MAX_LINE:
            raise ValueError("the line is too long")
        return next(csv.reader([line], strict=True), [])
    except (csv.Error, ValueError) as error:
        raise ParseError(
            f"not a row of comma-separated cells: {error}", path=path, line=number, remedy=_WHOLE
        ) from None


def _add_ports(rows: list[_Row], builder: FabricBuilder) -> Rates:
    """Set the GUIDs and LIDs of the ports, and return width and speed of the link at each port (0 if unknown).

    Raises
    ------
    ParseError, FabricError
        A node is missing in the section NODES, or a number is invalid.
    """
    rates: Rates = {}
    for row in rows:
        guid, port = row.number("NodeGuid"), row.number("PortNum")
        device, location = _device(row, guid, builder), Location(row.path, row.line)
        kind = builder.described(device)[0]
        if kind is NodeKind.SWITCH and port == 0:
            builder.set_port(device, 0, lid=row.number("LID"), location=location)
        elif kind is not NodeKind.SWITCH:
            builder.set_port(
                device,
                port,
                guid=row.number("PortGuid") or None,
                lid=row.number("LID"),
                lmc=row.number("LMC"),
                location=location,
            )
        speed = _SPEED.get(row.number("LinkSpeedActv"))
        rates[guid, port] = _WIDTH.get(row.number("LinkWidthActv"), 0), SPEED_OF[speed] if speed else 0.0
    return rates


def _add_link(row: _Row, builder: FabricBuilder, rates: Rates, statements: PortStatements) -> None:
    """Record the cable of a row of LINKS at both ends, with the rates that PORTS states for these ends.

    Raises
    ------
    ParseError, FabricError
        A node is missing, a number is invalid, or a port has two cables.
    """
    near, far = [(row.number(f"NodeGuid{end}"), row.number(f"PortNum{end}")) for end in (1, 2)]
    for guid, _ in (near, far):
        _device(row, guid, builder)
    statements.add(near, far, rates.get(near, (0, 0.0)), row.line)
    statements.add(far, near, rates.get(far, (0, 0.0)), row.line)


def _warn_of_lost_links(rows: list[_Row], statements: PortStatements, builder: FabricBuilder) -> None:
    """Issue a warning with the number of ports that are up, but have no row in LINKS."""
    lost = [
        row
        for row in rows
        if row.number("PortPhyState") == _LINK_UP
        and row.number("PortNum")
        and (row.number("NodeGuid"), row.number("PortNum")) not in statements.stated
    ]
    if lost:
        name = builder.described(_device(lost[0], lost[0].number("NodeGuid"), builder))[1]
        ports = count_noun(len(lost), "port is", "ports are")
        what = f"{ports} up without a row in LINKS, such as port {lost[0].number('PortNum')} of {name!r}"
        warnings.warn(f"{lost[0].path}: {what}", InputWarning, stacklevel=3)


def _device(row: _Row, guid: int, builder: FabricBuilder) -> int:
    device = builder.find_guid(guid)
    if device is None:
        raise FabricError(f"node {guid:#x} is not in the section NODES", path=row.path, line=row.line, remedy=_WHOLE)
    return device
