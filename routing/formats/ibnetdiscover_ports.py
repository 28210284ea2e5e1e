"""Read the ports report of ``ibnetdiscover -p``.  The report has one line for each port, with the port at the other end
of the cable.
"""

from __future__ import annotations

import re
from pathlib import Path

from routing.fabric import Fabric, NodeKind
from routing.formats.port_list import IGNORED, ListedPort, device_keys, fabric_of_ports, not_printed, printed_rate
from routing.formats.text import lines_of

_KIND = {"SW": NodeKind.SWITCH, "CA": NodeKind.CA, "RT": NodeKind.ROUTER}
_END = r"(SW|CA|RT)[ \t]+(\d{1,5})[ \t]+(\d{1,3})[ \t]+0x([0-9a-fA-F]{1,16})"
_NEAR = re.compile(rf"{_END}[ \t]+(\d{{1,3}}(?=x)|\?{{1,3}})x?[ \t]+([A-Z0-9?]+)[ \t]+")
_FAR = re.compile(rf"- {_END}[ \t]+\( '(.*?)' - '.*' \)[ \t]*$")
_ALONE = re.compile(r"'(.*)'[ \t]*$")
_SIGNATURE = re.compile(rf"^{_NEAR.pattern}(?:- {_END}|')", re.MULTILINE)
_MAX_LINE = 1000


def is_ports_report(text: str) -> bool:
    """Return whether a text is output of ``ibnetdiscover -p``."""
    return _SIGNATURE.search(text) is not None


def parse_ports_report(text: str, path: str | Path, *, lmc: int = 0) -> Fabric:
    """Parse the output of ``ibnetdiscover -p``, and return the fabric in it.

    Parameters
    ----------
    text
        Content of the file.
    path
        File name for error messages.
    lmc
        LMC of the subnet's end ports, since the report has base LIDs only.

    Raises
    ------
    ParseError, FabricError
        The text is invalid.  The message has file, line and remedy.

    Warns
    -----
    InputWarning
        See :func:`routing.formats.ibnetdiscover.parse_ibnetdiscover`.
    """
    lines = ((number, line) for number, line in lines_of(text) if line.strip() and not line.startswith(IGNORED))
    found = [_port(line, number, path) for number, line in lines]
    keys = device_keys((port.kind, port.guid, port.port, port.name) for port in found)
    ports = [
        ListedPort(key, port.kind, port.name, port.guid, port.lid, port.port, port.far, port.rate, port.line)
        for key, port in zip(keys, found, strict=True)
    ]
    return fabric_of_ports(ports, path, lmc=lmc)


def _port(line: str, number: int, path: str | Path) -> ListedPort:
    near = _NEAR.match(line) if len(line) <= _MAX_LINE else None
    rest = (_FAR if near and line.startswith("- ", near.end()) else _ALONE).match(line, near.end()) if near else None
    if near is None or rest is None:
        raise not_printed("ibnetdiscover -p", line, path, number)
    far = (int(rest[4], 16), int(rest[3])) if rest.re is _FAR else None
    return ListedPort(
        device=0,
        kind=_KIND[near[1]],
        name=rest[5] if far else rest[1],
        guid=int(near[4], 16),
        lid=int(near[2]),
        port=int(near[3]),
        far=far,
        rate=printed_rate(near[5], near[6], path, number) if far else (0, 0.0),
        line=number,
    )
