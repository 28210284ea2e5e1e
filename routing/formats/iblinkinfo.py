"""Read the output of ``iblinkinfo``: the state of all links, device by device, or with ``-l`` line by line.

The option ``-p`` of iblinkinfo does not change the format.  By default the output names the other end of a link by LID
and port.  With ``-l`` the output names the GUID of the other end, but not the kind of a device.  In this case a GUID
with several ports is taken as a switch, and every other GUID as a CA.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from routing.errors import FabricError, ParseError
from routing.fabric import Fabric, NodeKind
from routing.formats.port_list import IGNORED, INCOMPLETE, ListedPort, device_keys, fabric_of_ports, not_printed
from routing.formats.text import lines_of
from routing.rates import SPEED_OF, WIDTHS, speed_name

_KIND = {"Switch": NodeKind.SWITCH, "CA": NodeKind.CA, "Router": NodeKind.ROUTER}
_GUID = r"0x([0-9a-fA-F]{1,16})"
_DEVICE = re.compile(rf"(Switch|CA|Router): (?:{_GUID} )?(.*):[ \t]*$")
_PORT = re.compile(
    rf'[ \t]*(?:{_GUID}[ \t]+)?(?:"[ \t]*(.*)"[ \t]+)?(\d{{1,5}})[ \t]+(\d{{1,3}})\[[^\]]{{0,4}}\] ==\((.*?)==>(.*)$'
)
_STATE = re.compile(r"[ \t]*(\d{1,2})X[ \t]+(?:(\d{1,3}\.\d{1,5}) Gbps)?(.*)")
_FAR = re.compile(rf'[ \t]*(?:{_GUID}[ \t]+)?(\d{{1,5}})[ \t]+(\d{{1,3}})\[[^\]]{{0,4}}\] "(.*)" \(')
_SIGNATURE = re.compile(
    rf'^(?:[ \t]+(?:{_GUID}[ \t]+)?|{_GUID} "[^\n]*"[ \t]+)\d+[ \t]+\d+\[[^\]\n]*\] ==\(', re.MULTILINE
)
_MAX_LINE = 1000
_NO_LID = (0, 0xFFFF)


def is_iblinkinfo(text: str) -> bool:
    """Return whether a text is output of ``iblinkinfo``."""
    return _SIGNATURE.search(text) is not None


@dataclass(frozen=True, slots=True)
class _Port:
    """A port in the output, with LID and port number of the port at the other end of its cable (0 without a cable)."""

    port: ListedPort
    far_lid: int
    far_port: int


def parse_iblinkinfo(text: str, path: str | Path, *, lmc: int = 0) -> Fabric:
    """Parse the output of ``iblinkinfo``, and return the fabric in it.

    Parameters
    ----------
    text
        Content of the file.
    path
        File name for error messages.
    lmc
        LMC of the subnet's end ports, since the output has base LIDs only.

    Raises
    ------
    ParseError, FabricError
        The text is invalid, or contains only a part of the subnet.  The message has file, line and remedy.

    Warns
    -----
    InputWarning
        There are ports with LID 65535, or links with an unknown rate.  The warning states their number.
    """
    found = _Reader(path).read(text)
    by_line = any(each.port.device == 0 for each in found)
    ports = _with_kinds([each.port for each in found]) if by_line else _with_far_guids(found, path)
    return fabric_of_ports(ports, path, lmc=lmc)


@dataclass
class _Reader:
    """Reads the lines of iblinkinfo's output in order.

    Without the option ``-l``, iblinkinfo prints a heading for each device above the ports of this device.  The
    attributes of this class then describe the device of the last heading that was read.
    """

    path: str | Path
    device: int = 0
    kind: NodeKind = NodeKind.CA
    guid: int = 0
    name: str = ""

    def read(self, text: str) -> list[_Port]:
        ports = []
        for number, line in lines_of(text):
            if not line.strip() or line.startswith(IGNORED):
                continue
            short = len(line) <= _MAX_LINE
            if short and (device := _DEVICE.match(line)):
                self.device, self.kind, self.name = number, _KIND[device[1]], device[3]
                self.guid = int(device[2], 16) if device[2] else 0
            elif short and (port := _PORT.match(line)) and (port[2] is not None) != bool(self.device):
                ports.append(self.port(port, number, line))
            else:
                raise not_printed("iblinkinfo", line, self.path, number)
        return ports

    def port(self, words: re.Match[str], number: int, line: str) -> _Port:
        """Return the port that a line describes.

        ``words`` are the parts of the line, ``number`` its line number, and ``line`` its text.

        Raises
        ------
        ParseError
            Neither the line nor its device has a GUID, or the rate or the other end is invalid.
        """
        guid = int(words[1], 16) if words[1] else self.guid
        far = _FAR.match(words[6])
        state = _STATE.match(words[5])
        if (
            not guid
            or (self.guid and words[1])
            or (words[6].strip()[:1] != "[" and far is None)
            or (far and state is None)
        ):
            raise not_printed("iblinkinfo", line, self.path, number)
        port = ListedPort(
            device=self.device,
            kind=self.kind,
            name=self.name if words[2] is None else words[2],
            guid=guid,
            lid=int(words[3]),
            port=int(words[4]),
            far=(int(far[1] or "0", 16), int(far[3])) if far else None,
            rate=self.rate(state, number) if far and state else (0, 0.0),
            line=number,
        )
        return _Port(port, int(far[2]) if far else 0, int(far[3]) if far else 0)

    def rate(self, state: re.Match[str], number: int) -> tuple[int, float]:
        """Return the rate of a link as width and speed.  The speed is 0 if iblinkinfo did not know the speed."""
        name = speed_name(float(state[2])) if state[2] else ""
        if int(state[1]) not in WIDTHS or name is None:
            shown = f"{state[1]}X {state[2] or ''}"
            raise ParseError(
                f"unknown rate {shown!r}", path=self.path, line=number, remedy="rates are 1X to 12X, 2.5 to 212.5 Gbps"
            )
        if "FDR10" in state[3]:
            name = "FDR10"
        return int(state[1]), SPEED_OF[name] if name else 0.0


def _with_kinds(ports: list[ListedPort]) -> list[ListedPort]:
    """Return the ports of ``iblinkinfo -l``, each with the kind (switch or CA) and a key of its device.

    Ports of one device have equal keys.
    """
    lines = Counter(port.guid for port in ports)
    kinds = [NodeKind.SWITCH if lines[port.guid] > 1 else NodeKind.CA for port in ports]
    described = ((kind, port.guid, port.port, port.name) for kind, port in zip(kinds, ports, strict=True))
    return [
        dataclasses.replace(port, device=key, kind=kind)
        for key, kind, port in zip(device_keys(described), kinds, ports, strict=True)
    ]


def _with_far_guids(found: list[_Port], path: str | Path) -> list[ListedPort]:
    """Add the port GUID at the other end of the cable to each port of the default output, and return the ports.

    The default output names the other end only by LID and port number.

    Raises
    ------
    FabricError
        A line states a LID and a port number for the other end, but no port or several ports have these numbers.
    """
    at: dict[tuple[int, int], list[int]] = {}
    for each in found:
        at.setdefault((each.port.lid, each.port.port), []).append(each.port.guid)
    ports = []
    for each in found:
        port = each.port
        if port.far is not None:
            guids = at.get((each.far_lid, each.far_port), [])
            if each.far_lid in _NO_LID or len(guids) > 1:
                problem = f"LID {each.far_lid} does not identify what is cabled to port {port.port} of {port.name!r}"
                raise FabricError(problem, path=path, line=port.line, remedy="run iblinkinfo -l, which prints GUIDs")
            if not guids:
                problem = f"port {port.port} of {port.name!r} is cabled to LID {each.far_lid}, which is not in the list"
                raise FabricError(problem, path=path, line=port.line, remedy=INCOMPLETE)
            port = dataclasses.replace(port, far=(guids[0], each.far_port))
        ports.append(port)
    return ports
