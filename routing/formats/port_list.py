"""Build a fabric from a list of ports.  Each entry names the port at the other end of its cable.

Readers of ``ibnetdiscover -p`` and ``iblinkinfo`` collect :class:`ListedPort` values.  Such lists lack the node GUIDs
of CAs, the LMC, and CAs without a cable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from routing.errors import FabricError, ParseError
from routing.fabric import Fabric, NodeKind
from routing.fabric_builder import FabricBuilder, Location
from routing.formats.statements import PortStatements
from routing.rates import SPEED_OF, WIDTHS, parse_rate

MESSAGES = ("ibwarn: ", "DR path slid ", "src/query_smp.c:", "=~=~=")
"""Beginnings of messages in a list: warnings, progress and errors of infiniband-diags, and the first line of a log file
that a terminal program has written.
"""
IGNORED = ("#", *MESSAGES)
"""Beginnings of lines to ignore: comments and messages."""
INCOMPLETE = "is the list whole, and of the whole subnet?"
"""Remedy in the error message if a list lacks a port."""


@dataclass(frozen=True, slots=True)
class ListedPort:
    """One port of a list.

    Attributes
    ----------
    device
        Key of the port's device; ports with equal keys belong to one device.
    kind, name
        Kind and description of the device.
    guid
        GUID of the port.  For a switch, the GUID of port 0, which is the node GUID.
    lid
        Base LID of the port.  For a switch, the LID of port 0.  0 means that the port has no LID.
    port
        Port number.
    far
        Port GUID and port number at the other end of the cable.  None if there is no cable.
    rate
        Width of the link, and signalling rate of one physical lane in Gb/s; 0 for an unknown number.
    line
        Line number in the file.
    """

    device: int
    kind: NodeKind
    name: str
    guid: int
    lid: int
    port: int
    far: tuple[int, int] | None
    rate: tuple[int, float]
    line: int


def printed_rate(width: str, speed: str, path: str | Path, line: int) -> tuple[int, float]:
    """Return the width and the signalling rate in Gb/s that ``ibnetdiscover`` prints for a link, such as 4 and "EDR".

    The program prints "?" instead of a number that it does not know.  The result then has 0 for this number.

    Raises
    ------
    ParseError
        The text is not a rate.
    """
    rate = parse_rate(f"{width}x{speed}")
    if rate is None and "?" in width + speed:
        return int(width) if width.isdecimal() and int(width) in WIDTHS else 0, SPEED_OF.get(speed, 0.0)
    if rate is None:
        remedy = "rates are 1x, 2x, 4x, 8x or 12x SDR to XDR"
        raise ParseError(f"unknown rate {f'{width}x{speed}'!r}", path=path, line=line, remedy=remedy)
    return rate


def not_printed(program: str, text: str, path: str | Path, line: int) -> ParseError:
    """Return the error for a line (``text``, with line number ``line``) that a program does not print."""
    shown = text if len(text) <= 60 else text[:57] + "..."
    problem = f"{shown!r} is not a line that {program} prints"
    return ParseError(problem, path=path, line=line, remedy="is the file whole and unedited?")


def device_keys(ports: Iterable[tuple[NodeKind, int, int, str]]) -> Iterator[int]:
    """Yield a key for the device of each port.  This function is for lists that do not separate devices.

    ``ports`` has the kind of device, port GUID, port number and device name of each port.  The ports of a switch have
    the same GUID.  Consecutive ports belong to one CA or router if they have equal names, and equal differences between
    GUID and port number.  Each other port belongs to a device of its own.
    """
    before: tuple[int, str] | None = None
    key = 0
    for kind, guid, port, name in ports:
        if kind is NodeKind.SWITCH:
            before, key = None, guid
        elif before != (guid - port, name):
            before, key = (guid - port, name), guid
        yield key


def fabric_of_ports(ports: Sequence[ListedPort], path: str | Path, *, lmc: int) -> Fabric:
    """Return the fabric whose ports a file lists.

    The node GUID of a CA or router is the lowest of its port GUIDs.  The number of ports of a device is its highest
    port number in the list.

    Parameters
    ----------
    ports
        The ports, in the order of the file.
    path
        File name for error messages.
    lmc
        LMC of the subnet's end ports, since the list has base LIDs only.

    Raises
    ------
    ParseError, FabricError
        There is no cable, two lines contradict each other, or a cable leads to a port that is not in the list.
    """
    if not any(port.far for port in ports):
        raise ParseError("this list has no link", path=path, remedy=INCOMPLETE)
    builder = FabricBuilder(name=Path(path).name.split(".")[0])
    node_of = _add_devices(ports, builder, path, lmc)
    statements = PortStatements(path)
    for port in ports:
        if port.far is not None:
            far = node_of.get(port.far[0])
            if far is None:
                problem = f"port {port.port} of {port.name!r} is cabled to {port.far[0]:#x}, which is not in the list"
                raise FabricError(problem, path=path, line=port.line, remedy=INCOMPLETE)
            statements.add((node_of[port.guid], port.port), (far, port.far[1]), port.rate, port.line)
    statements.connect(builder)
    return builder.build(lmc=lmc)


def _add_devices(ports: Sequence[ListedPort], builder: FabricBuilder, path: str | Path, lmc: int) -> dict[int, int]:
    """Add all devices with the LIDs of their ports to the builder.  Return the node GUID of the device of each port, by
    port GUID.

    Raises
    ------
    FabricError
        Two lines describe a device differently, or two devices have the same port GUID.
    """
    of_device: dict[int, list[ListedPort]] = {}
    for port in ports:
        of_device.setdefault(port.device, []).append(port)
    node_of: dict[int, int] = {}
    for own in of_device.values():
        first, location = own[0], Location(path, own[0].line)
        numbers: dict[int, int] = {}
        for port in own:
            if numbers.setdefault(port.port, port.line) != port.line:
                problem = f"port {port.port} of {port.name!r} is listed in line {numbers[port.port]} already"
                raise FabricError(problem, path=path, line=port.line, remedy=INCOMPLETE)
            if (port.kind, port.name) != (first.kind, first.name):
                raise FabricError(
                    f"this port of {port.guid:#x} is on {port.name!r}, and that of line {first.line} on {first.name!r}",
                    path=path, line=port.line, remedy="GUIDs are unique",
                )  # fmt: skip
        node = min(port.guid for port in own)
        handle = builder.add_device(first.kind, node, first.name, max(port.port for port in own), location)
        for port in own:
            if node_of.setdefault(port.guid, node) != node:
                raise FabricError(
                    f"GUID {port.guid:#x} belongs to another device already",
                    path=path, line=port.line, remedy="GUIDs are unique",
                )  # fmt: skip
            _set_port(builder, handle, port, lmc, Location(path, port.line))
    return node_of


def _set_port(builder: FabricBuilder, handle: int, port: ListedPort, lmc: int, location: Location) -> None:
    if port.kind is NodeKind.SWITCH:
        builder.set_port(handle, 0, lid=port.lid, location=location)
    else:
        own_lmc = lmc if port.lid else 0
        builder.set_port(handle, port.port, guid=port.guid, lid=port.lid, lmc=own_lmc, location=location)
