"""Read ``opensm.mcfdbs``: OpenSM's dump of the multicast forwarding tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from routing.errors import ParseError
from routing.fabric import NO_PORT, Fabric
from routing.formats.text import read_text

FIRST_MLID, LAST_MLID = 0xC000, 0xFFFE
_SWITCH = re.compile(r"Switch 0x([0-9a-fA-F]{1,16})\s*$")
_ENTRY = re.compile(r"0x([0-9a-fA-F]{4})\s*:((?:\s+0x[0-9a-fA-F]{1,3})*)\s*$")
_NOISE = re.compile(r"\s*(?:#|$|LID\s+: Out Port)")

Groups = Mapping[int, Mapping[int, tuple[int, ...]]]
"""For each switch, given by its row in the fabric: the out-ports of each multicast group, by the LID of the group."""


def read_mcfdbs(path: str | Path, fabric: Fabric) -> Groups:
    """Read the out-ports of every multicast group at every switch.

    Raises
    ------
    EnvironmentProblem
        The file cannot be read.
    ParseError
        A line is not as OpenSM writes it, a switch is not in the fabric, or a switch has a group twice.
    """
    row_of = {guid: row for row, guid in enumerate(fabric.switch_guid.tolist())}
    groups: dict[int, dict[int, tuple[int, ...]]] = {}
    row: int | None = None
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if _NOISE.match(line):
            continue
        if switch := _SWITCH.match(line):
            row = row_of.get(int(switch[1], 16))
            if row is None:
                problem = f"switch 0x{int(switch[1], 16):016x} is not in the fabric"
                raise ParseError(problem, path=path, line=number, remedy="give the fabric of this dump")
            continue
        entry = _ENTRY.match(line)
        if entry is None or row is None:
            raise ParseError(
                f"{line.strip()[:60]!r} is not a line of multicast tables", path=path, line=number,
                remedy="'Switch 0x...' and '0xC000 : 0x001  0x002', as OpenSM writes opensm.mcfdbs",
            )  # fmt: skip
        mlid, ports = int(entry[1], 16), tuple(int(port, 16) for port in entry[2].split())
        if not FIRST_MLID <= mlid <= LAST_MLID or any(port >= NO_PORT for port in ports):
            raise ParseError(
                f"{line.strip()[:60]!r} has no multicast LID or a port over 254", path=path, line=number,
                remedy="multicast LIDs are 0xC000 to 0xFFFE",
            )  # fmt: skip
        if row in groups.setdefault(mlid, {}):
            raise ParseError(f"the switch has group 0x{mlid:04X} twice", path=path, line=number)
        groups[mlid][row] = ports
    return groups
