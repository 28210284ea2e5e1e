"""Read topology files of IBDM (``.topo``), which ibdiagnet and UFM write.  Topology files list systems, and the cables
at the ports of the systems.

The file contains no GUIDs and no LIDs.  Links inside a chassis are in another file, the IBNL file for this type of
chassis.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from routing.errors import InputWarning, ParseError
from routing.fabric import Fabric
from routing.formats.named_cables import NamedCable, fabric_of_cables
from routing.formats.text import lines_of
from routing.numerals import count_noun
from routing.rates import WIDTHS, lane_speed

_SYSTEM = re.compile(r"(\S+)[ \t]+(\S+)(?:[ \t]+CFG:.*)?[ \t]*$")
_RATE = r"(?:(\d{1,2})x|UNKNOWN)(?:-([A-Z0-9.]{1,8}?)G?)?-"
_CABLE = re.compile(rf"[ \t]+(\S+)[ \t]+-(?:{_RATE})?>[ \t]+(\S+)[ \t]+(\S+)[ \t]+(\S+)[ \t]*$")
_PORT = re.compile(r"(?:(.+)/)?P(\d{1,3})$")
_SIGNATURE = re.compile(rf"^{_CABLE.pattern}", re.MULTILINE)
_MAX_LINE = 1000
_MOST_CA_PORTS = 2
_UNKNOWN = "DEV0"
"""Type that IBDM gives to every switch or CA without a device ID."""
_MAIN = ("", "U1")
"""Names of boards that are not part of the node description.  A device on one of these boards has the name of its
system alone.  The empty name stands for a line that states no board.
"""
_CHIP = re.compile(r"(?:^|/)U\d+$")
"""Pattern for the end of a board's name if it names a chip, such as U3.  Other boards have a single chip, U1."""


def is_ibdm_topo(text: str) -> bool:
    """Return whether a text is a topology file of IBDM."""
    return _SIGNATURE.search(text) is not None


def parse_ibdm_topo(text: str, path: str | Path, *, lmc: int = 0) -> Fabric:
    """Parse the text of a topology file of IBDM, and return the fabric in it.

    The file states a type for each system, but not which types are switches.  A type counts as a switch if a system of
    this type has a cable at a port above 2.  If a cable connects two systems whose types have no cable at a port above
    2, these types count as switches, too.  All other types count as CAs.

    IBDM gives the type ``DEV0`` to switches and CAs without a device ID.  A device of type ``DEV0`` counts as a CA if
    it has a single cable, at port 1 or port 2.

    Parameters
    ----------
    text
        Content of the file.
    path
        File name for error messages.
    lmc
        LMC of the end ports.  The file has no LIDs.

    Raises
    ------
    ParseError, FabricError
        The text is invalid.  The message has file, line and remedy.

    Warns
    -----
    InputWarning
        There are links with an unknown rate, or switches inside a chassis.  The warning states their number.  Another
        warning is for devices without a device ID, because the reader guesses whether they are switches or CAs.
    """
    lines = list(_lines(text, path))
    switch_types, single = _switch_types(lines), _single_cables(lines)
    if _UNKNOWN in switch_types:
        what = f"{path}: devices of type {_UNKNOWN} have no device ID; those with one cable at port 1 or 2 count as CAs"
        warnings.warn(what, InputWarning, stacklevel=2)
    names: dict[str, str] = {}
    switches: set[str] = set()
    boards: set[str] = set()
    cables = []
    for ends, rate, number in lines:
        keys = []
        for kind, system, board, port in ends:
            key = f"{system} {board}" if board not in _MAIN else system
            if kind in switch_types and not (kind == _UNKNOWN and (system, board) in single):
                if board not in _MAIN:
                    boards.add(key)
                    names.setdefault(key, f"{system}/{board if _CHIP.search(board) else f'{board}/U1'}")
                switches.add(key)
            names.setdefault(key, _name(system, board))
            keys.append((key, port))
        cables.append(NamedCable((keys[0], keys[1]), rate, number))
    if boards:
        chips = count_noun(len(boards), "switch is", "switches are")
        what = f"{path}: {chips} inside of a chassis; the file lacks the links between these"
        warnings.warn(what, InputWarning, stacklevel=2)
    return fabric_of_cables(cables, names, switches, path, lmc=lmc)


_End = tuple[str, str, str, int]
"""One end of a cable: type, system, board and port number."""
_Line = tuple[tuple[_End, _End], tuple[int, float], int]
"""A line of the file that states a cable: both ends, the rate and the line number."""


def _switch_types(lines: Sequence[_Line]) -> set[str]:
    """Return the types of systems that are switches."""
    types = {kind for ends, _, _ in lines for kind, _, _, port in ends if port > _MOST_CA_PORTS}
    peers = [{kind for kind, _, _, _ in ends} for ends, _, _ in lines]
    return types.union(*(both for both in peers if not both & types))


def _single_cables(lines: Sequence[_Line]) -> set[tuple[str, str]]:
    """Return the devices (system and board) that have a cable only at port 1 or only at port 2."""
    ports: dict[tuple[str, str], set[int]] = {}
    for ends, _, _ in lines:
        for _, system, board, port in ends:
            ports.setdefault((system, board), set()).add(port)
    return {device for device, used in ports.items() if len(used) == 1 and max(used) <= _MOST_CA_PORTS}


def _lines(text: str, path: str | Path) -> Iterator[_Line]:
    """Yield the two ends, the rate and the line number of each cable.

    Raises
    ------
    ParseError
        A line is neither a system nor a cable, or a system occurs with two types.
    """
    system: tuple[str, str] | None = None
    type_of: dict[str, tuple[str, int]] = {}
    for number, line in lines_of(text):
        if not line.strip() or line.lstrip().startswith("#"):
            system = system if line.strip() else None
            continue
        cable = _CABLE.match(line) if len(line) <= _MAX_LINE else None
        head = _SYSTEM.match(line) if cable is None and len(line) <= _MAX_LINE else None
        if head is not None:
            system = head[1], head[2]
            _check_type(*system, type_of, path, number)
        elif cable is not None and system is not None:
            _check_type(cable[4], cable[5], type_of, path, number)
            near = (*system, *_board_and_port(cable[1], path, number))
            far = (cable[4], cable[5], *_board_and_port(cable[6], path, number))
            yield (near, far), _rate(cable, path, number), number
        else:
            problem = "this cable belongs to no system" if cable else "this is not a line of a topology file of IBDM"
            raise ParseError(problem, path=path, line=number, remedy="is the file whole?")


def _check_type(kind: str, system: str, type_of: dict[str, tuple[str, int]], path: str | Path, line: int) -> None:
    known, before = type_of.setdefault(system, (kind, line))
    if known != kind:
        problem = f"{system!r} is of type {kind} here, and of type {known} in line {before}"
        raise ParseError(problem, path=path, line=line, remedy="a system has one type")


def _board_and_port(label: str, path: str | Path, line: int) -> tuple[str, int]:
    found = _PORT.match(label)
    if found is None:
        remedy = "ports are P1, U1/P1 or mlx5_0/P1"
        raise ParseError(f"port {label[:40]!r} is not understood", path=path, line=line, remedy=remedy)
    return found[1] or "", int(found[2])


def _rate(cable: re.Match[str], path: str | Path, line: int) -> tuple[int, float]:
    """Return the rate of a cable as width and speed.  A number that the line does not state is 0."""
    width, speed = int(cable[2] or 0), lane_speed(cable[3]) if cable[3] else 0.0
    if speed is None or (width and width not in WIDTHS):
        remedy = "rates are written like 4x-50G"
        raise ParseError(f"unknown rate {cable[2]}x-{cable[3]}G", path=path, line=line, remedy=remedy)
    return width, speed


def _name(system: str, board: str) -> str:
    """Return the node description of a device.  For an HCA of a host, the name has the usual form "host mlx5_0" or
    "host HCA-2".
    """
    if board in _MAIN:
        return system
    return f"{system} HCA-{board[1:]}" if re.fullmatch(r"U\d+", board) else f"{system} {board}"
