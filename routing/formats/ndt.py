"""Read cabling plans as CSV: NDT files of UFM, with the columns StartDevice, StartPort, EndDevice and EndPort.

A plan contains no GUIDs, no LIDs, and no links inside a chassis.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from routing.errors import InputWarning, ParseError
from routing.fabric import Fabric
from routing.formats.named_cables import NamedCable, fabric_of_cables
from routing.formats.port_labels import HCA, Label, read_label
from routing.formats.text import lines_of
from routing.numerals import count_noun
from routing.rates import NOMINAL, SPEED_OF

_DEVICES = {
    "start": {"startdevice", "sourcedevice", "anodename"},
    "end": {"enddevice", "destinationdevice", "znodename"},
}
_PORTS = {"start": {"startport", "sourceport", "aport"}, "end": {"endport", "destinationport", "zport"}}
_COLUMNS = (
    ("StartDevice", _DEVICES["start"]), ("StartPort", _PORTS["start"]),
    ("EndDevice", _DEVICES["end"]), ("EndPort", _PORTS["end"]),
)  # fmt: skip
"""The columns that a plan must have, each with its possible names (without blanks and punctuation, in lower case)."""
_SPEED, _LINK_TYPE = {"speed", "bandwidth"}, {"linktype"}
_DATA = ("", "data", "infiniband", "ib")
_IS_HCA = re.compile(rf"(?:^|[ _]){HCA}$", re.IGNORECASE)
"""Pattern of a device name that ends with the name of an HCA."""
_MOST_CA_PORTS = 2
_MAX_LINE = 1 << 14


def is_ndt(text: str) -> bool:
    """Return whether a text begins with the header of a cabling plan.

    The header may lack one of the necessary columns.  :func:`parse_ndt` then raises an error that names this column.
    """
    return _header_of(text) is not None


def _header_of(text: str) -> tuple[str, list[str], int] | None:
    """Return the delimiter of the cells, the names of the columns, and the line number of the header.

    The names are in lower case and without punctuation.  The result is None if there is no header.
    """
    number, line = next((pair for pair in lines_of(text[: 4 * _MAX_LINE]) if pair[1].strip()), (0, ""))
    for delimiter in ",;\t":
        names = [re.sub(r"[^a-z]", "", cell.lower().removeprefix("#fields:")) for cell in line.split(delimiter)]
        if sum(any(name in known for name in names) for _, known in _COLUMNS) >= len(_COLUMNS) - 1:
            return delimiter, names, number
    return None


def parse_ndt(text: str, path: str | Path, *, lmc: int = 0) -> Fabric:
    """Parse a cabling plan, and return the fabric in it.

    A device is a CA if it uses only one port, and this is port 1 or 2.  A device is also a CA if its name ends with the
    name of an HCA (``mlx5_0``, ``HCA-1``, ``ibp11s0``).  If a port has the name of an HCA, this HCA is a separate CA.
    All other devices are switches.

    A port such as ``Blade 3_Port 1/20`` belongs to a leaf switch of a chassis.  This leaf switch is a separate device.
    Upper and lower case in names are not distinguished.

    Parameters
    ----------
    text
        Content of the file.
    path
        File name for error messages.
    lmc
        LMC of the end ports.  The plan has no LIDs.

    Raises
    ------
    ParseError, FabricError
        The text is invalid.  The message has file, line and remedy.

    Warns
    -----
    InputWarning
        There are switches inside a chassis, rows whose type of link is not InfiniBand, or links with an unknown rate.
        Or there are devices that may be switches or CAs.  Each warning states their number.
    """
    found = _header_of(text)
    if found is None:
        raise ParseError("this is not a cabling plan", path=path, remedy=_wanted())
    plan = _Plan(path, *found)
    plan.read(text)
    plan.warn()
    return fabric_of_cables(plan.cables, plan.names, plan.switches(), path, lmc=lmc)


def _wanted() -> str:
    return f"the header has {', '.join(name for name, _ in _COLUMNS)}"


@dataclass
class _Plan:
    """The cables and devices of a plan while it is read."""

    path: str | Path
    delimiter: str
    header: list[str]
    header_line: int
    cables: list[NamedCable] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    hcas: set[str] = field(default_factory=set)
    boards: set[str] = field(default_factory=set)
    other_links: int = 0

    def read(self, text: str) -> None:
        columns = [self.column(known) for _, known in _COLUMNS]
        for (name, _), column in zip(_COLUMNS, columns, strict=True):
            if column is None:
                raise ParseError(f"there is no column {name}", path=self.path, line=self.header_line, remedy=_wanted())
        needed = [column for column in columns if column is not None]
        speed, link_type = self.column(_SPEED), self.column(_LINK_TYPE)
        for number, row in self.rows(text):
            if len(row) <= max(needed):
                problem = f"this row has {count_noun(len(row), 'cell')}, and needs {max(needed) + 1}"
                raise ParseError(problem, path=self.path, line=number, remedy="is the file whole?")
            cells = [row[column].strip() for column in needed]
            if not any(cells[2:]) or not any(cells[:2]):  # A row that names only one end is a port without a cable.
                continue
            if self.cell(row, link_type).lower() not in _DATA:
                self.other_links += 1
                continue
            ends = self.end(cells[0], cells[1], number), self.end(cells[2], cells[3], number)
            self.cables.append(NamedCable(ends, self.rate(self.cell(row, speed), number), number))

    def rows(self, text: str) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows after the header, each with its line number.

        Raises
        ------
        ParseError
            A row is not valid CSV.
        """
        for number, line in lines_of(text):
            if number <= self.header_line or not line.strip() or line[0] == "#":
                continue
            try:
                if len(line) > _MAX_LINE:
                    raise ValueError("the line is too long")
                yield number, next(csv.reader([line], delimiter=self.delimiter, strict=True), [])
            except (csv.Error, ValueError) as error:
                problem = f"not a row of cells: {error}"
                raise ParseError(problem, path=self.path, line=number, remedy="is the file whole?") from None

    def column(self, known: set[str]) -> int | None:
        return next((number for number, name in enumerate(self.header) if name in known), None)

    @staticmethod
    def cell(row: Sequence[str], column: int | None) -> str:
        return row[column].strip() if column is not None and column < len(row) else ""

    def end(self, device: str, port: str, line: int) -> tuple[str, int]:
        """Return the device key and the port number of one end of a cable.

        Raises
        ------
        ParseError
            The device or the port is missing, or the port is not understood.
        """
        label = read_label(port) if device else None
        if label is None or not 0 < label.port <= 255:
            what = f"port {port[:40]!r} of {device[:40]!r} is not understood" if device else "a device is missing"
            remedy = "ports are written like Port 21, 1/16/1, Blade 3_Port 1/20 or mlx5_0"
            raise ParseError(what, path=self.path, line=line, remedy=remedy)
        name = self.name(device, label)
        key = name.casefold()
        self.names.setdefault(key, name)
        if label.is_hca or _IS_HCA.search(name):
            self.hcas.add(key)
        elif label.part:
            self.boards.add(key)
        return key, label.port

    @staticmethod
    def name(device: str, label: Label) -> str:
        if not label.part:
            return device
        return f"{device} {label.part}" if label.is_hca else f"{device}/{label.part}"

    def rate(self, text: str, line: int) -> tuple[int, float]:
        """Return the rate of a link as width and speed.

        ``text`` is the rate in Mb/s (``200000``), the nominal rate (``200G``) or the name of the speed (``HDR``).
        Width and speed are 0 if ``text`` is empty.

        Raises
        ------
        ParseError
            InfiniBand does not have this speed.
        """
        word = text.upper().removeprefix("4X")
        if not word:
            return 0, 0.0
        if re.fullmatch(r"\d{4,6}", word):
            word = f"{int(word) // 1000}G"
        speed = SPEED_OF.get(NOMINAL.get(word.removesuffix("B/S"), word))
        if speed is None:
            remedy = "speeds are Mb/s of 4x links such as 200000, or names such as 200G and HDR"
            raise ParseError(f"unknown speed {text[:40]!r}", path=self.path, line=line, remedy=remedy)
        return 4, speed

    def switches(self) -> set[str]:
        """Return the keys of the devices that are switches.

        Warns
        -----
        InputWarning
            There are devices that may be switches or CAs with two ports.  The warning states their number.
        """
        ports: dict[str, set[int]] = {}
        for cable in self.cables:
            for key, port in cable.ends:
                ports.setdefault(key, set()).add(port)
        several = {key for key, used in ports.items() if len(used) > 1 or max(used) > _MOST_CA_PORTS}
        switches = (several | self.boards) - self.hcas
        doubtful = sorted(key for key in switches - self.boards if max(ports[key]) <= _MOST_CA_PORTS)
        if doubtful:
            devices = count_noun(len(doubtful), "device uses", "devices use")
            what = f"{devices} ports 1 and 2 alone, such as {self.names[doubtful[0]]!r}; taken as switches, not CAs"
            warnings.warn(f"{self.path}: {what}", InputWarning, stacklevel=3)
        return switches

    def warn(self) -> None:
        if self.boards:
            chips = count_noun(len(self.boards), "switch is", "switches are")
            what = f"{self.path}: {chips} inside of a chassis; the plan lacks the links between these"
            warnings.warn(what, InputWarning, stacklevel=3)
        if self.other_links:
            rows = count_noun(self.other_links, "row has", "rows have")
            warnings.warn(
                f"{self.path}: {rows} a link type other than Data, and no part in the fabric",
                InputWarning,
                stacklevel=3,
            )
