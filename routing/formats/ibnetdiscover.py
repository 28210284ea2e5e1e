"""What ``ibnetdiscover`` prints: the topology of a live subnet, with LIDs, LMC, widths, speeds and port GUIDs.

The options ``-f`` (full), ``-g`` (grouping), ``-m`` and ``--node-name-map`` may have been given; the lists and reports
of ``-l``, ``-p`` and the like are other formats.
"""

from __future__ import annotations

import re
from pathlib import Path

from routing.errors import ParseError
from routing.fabric import Fabric, NodeKind
from routing.fabric_builder import FabricBuilder, Place
from routing.formats.rates import parse_rate
from routing.formats.statements import PortStatements
from routing.formats.text import read_text

_KIND = {"Switch": NodeKind.SWITCH, "Ca": NodeKind.CA, "Rt": NodeKind.ROUTER}
_EXT = r"(?:\[ext \d+\])?"
_HEADER = re.compile(
    r'(Switch|Ca|Rt)\t(\d{1,3}) "[SHR]-([0-9a-fA-F]{16})"\t\t# "(.*)"'
    r"(?: (?:enhanced|base) port 0 lid (\d{1,6}) lmc (\d{1,2})| \(scp\))?$"
)
_PORT = re.compile(
    rf'\[(\d{{1,3}})\]{_EXT}(?:\(([0-9a-fA-F]{{1,16}})\) ?)?\t"[SHR]-([0-9a-fA-F]{{16}})"\[(\d{{1,3}})\]{_EXT}'
    r" ?(?:\([0-9a-fA-F]{1,16}\) )?\t\t# "
    r'(?:lid (\d{1,6}) lmc (\d{1,2}) )?".*" lid \d{1,6} ([0-9?]{1,2}x?)([A-Z0-9?]+)'
    r"(?: s=\d+ w=\d+ v=\d+)?(?: slot \d+| \(scp\))?$"
)
_PASSED_OVER = re.compile(
    r"(?:vendid|devid|sysimgguid|switchguid|caguid|rtguid)=0x[0-9a-fA-F]+(?:\([0-9a-fA-F]+\))?(?:\s*#.*)?\s*$"
    r"|Chassis \d+|Non-Chassis Nodes|Hostname: |\s*$"
)
_START = re.compile(r"^# Initiated from node ([0-9a-fA-F]{16})", re.MULTILINE)
_MAX_LINE = 1000
_SIGNATURE = re.compile(r'^(?:Switch|Ca|Rt)\t\d{1,3} "[SHR]-[0-9a-fA-F]{16}"\t\t# "', re.MULTILINE)


def is_ibnetdiscover(text: str) -> bool:
    """Whether the text is ibnetdiscover's: the way it writes node records is its own."""
    return _SIGNATURE.search(text) is not None


def parse_ibnetdiscover(text: str, path: str | Path, *, lmc: int = 0) -> Fabric:
    """The fabric of an ibnetdiscover file that has been read already; see :func:`read_ibnetdiscover`."""
    builder = FabricBuilder(name=Path(path).name.split(".")[0])
    statements = PortStatements(path)
    rates: dict[tuple[str, str], tuple[int, float]] = {}
    guid, handle, kind = 0, -1, NodeKind.SWITCH
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("["):
            found = _PORT.match(line) if len(line) <= _MAX_LINE else None
            if found is None or handle < 0:
                raise _wrong(line, path, number, handle)
            port, port_guid, far, far_port, lid, own_lmc, width, speed = found.groups()
            rate = rates.get((width, speed))
            if rate is None:
                rate = rates[width, speed] = _rate(width, speed, path, number)
            near = (guid, int(port))
            statements.add(near, (int(far, 16), int(far_port)), rate, number)
            if kind is not NodeKind.SWITCH:
                builder.set_port(
                    handle,
                    near[1],
                    guid=int(port_guid, 16) if port_guid else None,
                    lid=int(lid or 0),
                    lmc=int(own_lmc or 0),
                    place=Place(path, number),
                )
        elif line[:1] not in ("", "#"):
            header = _HEADER.match(line) if len(line) <= _MAX_LINE else None
            if header is None:
                if _PASSED_OVER.match(line) is None:
                    raise _wrong(line, path, number, 0)
                continue
            kind, guid = _KIND[header[1]], int(header[3], 16)
            handle = builder.add_device(kind, guid, header[4], int(header[2]), Place(path, number))
            if kind is NodeKind.SWITCH and header[5] is not None:
                builder.set_port(handle, 0, lid=int(header[5]), lmc=int(header[6]), place=Place(path, number))
    if handle < 0:
        raise ParseError("no node in this file", path=path, remedy="is it ibnetdiscover's output, and is it whole?")
    _check_start(text, builder, path)
    statements.connect(builder)
    return builder.build(lmc=lmc)


def _check_start(text: str, builder: FabricBuilder, path: str | Path) -> None:
    """The node that ibnetdiscover started from is in every whole file."""
    start = _START.search(text)
    if start is not None and builder.find_guid(int(start[1], 16)) is None:
        raise ParseError(
            f"node {start[1]}, which the discovery started from, is not in the file",
            path=path,
            remedy="is the file whole?",
        )


def _rate(width: str, speed: str, path: str | Path, line: int) -> tuple[int, float]:
    rate = parse_rate(width + speed)
    if rate is None:
        raise ParseError(
            f"unknown rate {width + speed!r}", path=path, line=line, remedy="rates are 1x, 2x, 4x, 8x or 12x SDR to XDR"
        )
    return rate


def _wrong(line: str, path: str | Path, number: int, handle: int) -> ParseError:
    if handle < 0:
        return ParseError("a port before the first node", path=path, line=number, remedy="is the file whole?")
    shown = line if len(line) <= 60 else line[:57] + "..."
    return ParseError(
        f"{shown!r} is no line of ibnetdiscover", path=path, line=number, remedy="is the file whole and unedited?"
    )


def read_ibnetdiscover(path: str | Path, *, lmc: int = 0) -> Fabric:
    """Read the output of ``ibnetdiscover``, plain or gzip.

    Parameters
    ----------
    path
        The file.
    lmc
        LMC of the end ports that have no LID in the file (a subnet no SM has swept yet).

    Raises
    ------
    ParseError, FabricError
        With file, line and remedy; a record that is missing shows in the links that lead to it.

    Notes
    -----
    Cost: one pass; 10,000 nodes in about a second.
    """
    return parse_ibnetdiscover(read_text(path), path, lmc=lmc)
