"""Read ``opensm-subnet.lst`` of OpenSM and ``ibdiagnet2.lst``, which have one line for each direction of each link.

The format has neither devices without a link nor the LMC.  The parameter ``lmc`` states the LMC.  Vendor and device IDs
are ignored, because OpenSM prints wrong ones for the remote port.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from routing.errors import FabricError, ParseError
from routing.fabric import Fabric, NodeKind
from routing.fabric_builder import FabricBuilder, Location
from routing.formats.statements import PortStatements
from routing.formats.text import lines_of
from routing.numerals import count_noun
from routing.rates import WIDTHS, lane_speed

_KIND = {"SW": NodeKind.SWITCH, "CA": NodeKind.CA, "RT": NodeKind.ROUTER, "RTR": NodeKind.ROUTER}
_HALF = (
    r"\{ (SW|CA|RTR?)(?:-SM)? Ports:([0-9A-F]{2}) SystemGUID:[0-9A-F]{16} "
    r"NodeGUID:([0-9A-F]{16}) PortGUID:([0-9A-F]{16}) VenID:[0-9A-F]+ DevID:[0-9A-F]+ Rev:[0-9A-F]+ "
    r"\{(.*)\} LID:([0-9A-F]{4}) PN:([0-9A-F]{2}) \}"
)
_LINE = re.compile(rf"{_HALF} {_HALF} PHY=(\d{{1,2}})x LOG=\w+(?: SPD=([A-Z0-9.]+))?\s*$", re.IGNORECASE)
_MAX_LINE = 1000


def is_subnet_lst(text: str) -> bool:
    """Return whether a text is ``opensm-subnet.lst`` or ``ibdiagnet2.lst``.

    The first line that is neither empty nor a comment (``#``) decides.
    """
    return re.match(r"\s*(?:#[^\n]*\n\s*)*\{ \S+ Ports:", text) is not None


@dataclass
class _Half:
    """One of the two ports that a line describes, with its device."""

    kind: NodeKind
    ports: int
    guid: int
    port_guid: int
    name: str
    lid: int
    port: int

    @classmethod
    def of(cls, words: tuple[str, ...]) -> _Half:
        kind, ports, guid, port_guid, name, lid, port = words
        return cls(
            _KIND[kind.upper()], int(ports, 16), int(guid, 16), int(port_guid, 16), name, int(lid, 16), int(port, 16)
        )


def parse_subnet_lst(text: str, path: str | Path, *, lmc: int = 0) -> Fabric:
    """Parse the text of ``opensm-subnet.lst`` or ``ibdiagnet2.lst``, and return the fabric in it.

    Parameters
    ----------
    text
        Content of the file.
    path
        File name for error messages.
    lmc
        LMC of the subnet's end ports, since the file has base LIDs only.

    Raises
    ------
    ParseError, FabricError
        The text is invalid.  The message has file, line and remedy.
    """
    builder = FabricBuilder(name=Path(path).name.split(".")[0])
    statements = PortStatements(path)
    for number, line in lines_of(text):
        if not line.strip() or line[0] == "#":
            continue
        found = _LINE.match(line) if len(line) <= _MAX_LINE else None
        if found is None:
            raise ParseError(
                "this is not a line of opensm-subnet.lst or ibdiagnet2.lst",
                path=path,
                line=number,
                remedy="is the file whole?",
            )
        words = found.groups()
        near, far = _Half.of(words[:7]), _Half.of(words[7:14])
        width, speed = int(words[14]), lane_speed(words[15] or "2.5")
        if width not in WIDTHS or speed is None:
            raise ParseError(
                f"unknown rate {words[14]}x at {words[15]}", path=path, line=number, remedy="speeds are 2.5 to 200"
            )
        location = Location(path, number)
        for half in (near, far):
            _regard(builder, half, lmc, location)
        statements.add((near.guid, near.port), (far.guid, far.port), (width, speed), number)
    if not statements.stated:
        raise ParseError("this file has no link", path=path, remedy="is it opensm-subnet.lst, and is it whole?")
    statements.connect(builder)
    return builder.build(lmc=lmc)


def _regard(builder: FabricBuilder, half: _Half, lmc: int, location: Location) -> None:
    """Add the device of a port if the device is not known yet, and set the GUID and LID of the port.

    Raises
    ------
    FabricError
        An earlier line describes the device differently.
    """
    device = builder.find_guid(half.guid)
    if device is None:
        device = builder.add_device(half.kind, half.guid, half.name, half.ports, location)
    elif (known := builder.described(device)) != (half.kind, half.name, half.ports):
        raise FabricError(
            f"node {half.guid:#x} is {half.name!r} with {count_noun(half.ports, 'port')} here,"
            f" {known[1]!r} with {known[2]} before",
            path=location.path,
            line=location.line,
            remedy="GUIDs are unique",
        )
    if half.kind is NodeKind.SWITCH:
        builder.set_port(device, 0, lid=half.lid, location=location)
    else:
        builder.set_port(
            device, half.port, guid=half.port_guid, lid=half.lid, lmc=lmc if half.lid else 0, location=location
        )
