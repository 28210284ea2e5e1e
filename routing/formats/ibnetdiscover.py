"""Read the output of ``ibnetdiscover``: topology of a live subnet, with LIDs, LMC, widths, speeds and port GUIDs.

The output may be made with the options ``-f`` (full), ``-g`` (grouping), ``-m`` and ``--node-name-map``.  This module
cannot read the lists and reports of options such as ``-l`` and ``-p``.  :mod:`routing.formats.ibnetdiscover_ports`
reads the report of ``-p``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from routing.errors import ParseError
from routing.fabric import Fabric, NodeKind
from routing.fabric_builder import FabricBuilder, Location
from routing.formats.port_list import MESSAGES, not_printed, printed_rate
from routing.formats.statements import PortStatements
from routing.formats.text import lines_of

_KIND = {"Switch": NodeKind.SWITCH, "Ca": NodeKind.CA, "Rt": NodeKind.ROUTER}
_EXT = r"(?:\[ext \d+\])?"
# ibnetdiscover prints tabs between the parts of a line.  An editor or a terminal may have replaced the tabs by blanks
# or removed them.
_GAP = r"[ \t]*"
_HEADER = re.compile(
    rf'(Switch|Ca|Rt){_GAP}(\d{{1,3}}) "[SHR]-([0-9a-fA-F]{{16}})"{_GAP}# "(.*)"'
    r"(?: (?:enhanced|base) port 0 lid (\d{1,6}) lmc (\d{1,2})| \(scp\))?[ \t]*$"
)
_PORT = re.compile(
    rf'\[(\d{{1,3}})\]{_EXT}(?:\(([0-9a-fA-F]{{1,16}})\))?{_GAP}"[SHR]-([0-9a-fA-F]{{16}})"\[(\d{{1,3}})\]{_EXT}'
    rf" ?(?:\([0-9a-fA-F]{{1,16}}\))?{_GAP}# "
    r'(?:lid (\d{1,6}) lmc (\d{1,2}) )?".*" lid \d{1,6} ([0-9?]{1,2}x?)([A-Z0-9?]+)'
    r"(?: s=\d+ w=\d+ v=\d+)?(?: slot \d+| \(scp\))?[ \t]*$"
)
_PASSED_OVER = re.compile(
    r"(?:vendid|(devid)|sysimgguid|switchguid|caguid|rtguid)=0x([0-9a-fA-F]+)(?:\([0-9a-fA-F]+\))?(?:\s*#.*)?\s*$"
    # The next line of the pattern matches headings of ``ibnetdiscover -g``, lines that begin with ``Hostname:``,
    # messages, the head of a terminal's log, and lines of blanks.
    rf"|Chassis \d+|Non-Chassis Nodes|Hostname: |{'|'.join(map(re.escape, MESSAGES))}|\s*$"
    r"|(?:\r|\[?[\w.-]{1,64}@)[^\r]{0,200}[#$>%] ?(?:ibnetdiscover\b.*)?$"  # The line matches a terminal's prompt.
)
_START = re.compile(r"^# Initiated from node ([0-9a-fA-F]{16})", re.MULTILINE)
_MAX_LINE = 1000
_SIGNATURE = re.compile(r'^(?:Switch|Ca|Rt)\t\d{1,3} "[SHR]-[0-9a-fA-F]{16}"\t\t# "', re.MULTILINE)
_WITHOUT_TABS = re.compile(rf'^(?:Switch|Ca|Rt){_GAP}\d{{1,3}} "[SHR]-[0-9a-fA-F]{{16}}"{_GAP}# "', re.MULTILINE)
_ITS_OWN = re.compile(r"^(?:# Topology file: generated on |switchguid=0x[0-9a-f]+\([0-9a-f]+\))", re.MULTILINE)


def is_ibnetdiscover(text: str) -> bool:
    """Return whether a text is output of ibnetdiscover.

    Node records with tabs occur only in this output.  Without tabs, such records look like the records of ibsim net
    files.  A text without tabs must therefore have the first line that ibnetdiscover prints, or a line such as
    ``switchguid=0x2c9(2c9)``, which only ibnetdiscover prints.
    """
    if _SIGNATURE.search(text) is not None:
        return True
    return _ITS_OWN.search(text) is not None and _WITHOUT_TABS.search(text) is not None


@dataclass
class _Reader:
    """Reads all lines in one pass.  The fields describe the node record that is being read."""

    path: str | Path
    builder: FabricBuilder
    statements: PortStatements
    rates: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)
    guid: int = 0
    handle: int = -1
    kind: NodeKind = NodeKind.SWITCH
    # `device_id` is the device ID of the next node; 0 if the file does not state it.
    device_id: int = 0
    # `grouped` becomes true at the heading of a chassis, which only the option -g prints.  With this option,
    # ibnetdiscover prints the nodes of some chassis twice.
    grouped: bool = False

    def read(self, text: str) -> None:
        for number, line in lines_of(text):
            if line[:1] == "[" and line[1:2].isdecimal():
                self.port(line, number)
            elif line[:1] not in ("", "#"):
                header = _HEADER.match(line) if len(line) <= _MAX_LINE else None
                if header is not None:
                    self.header(header, number)
                else:
                    self.between_nodes(line, number)
        if self.handle < 0:
            raise ParseError("this file has no node", path=self.path, remedy="is the file whole?")

    def between_nodes(self, line: str, number: int) -> None:
        """Read a line between two node records.  Only a device ID, which belongs to the next node, and the heading of a
        chassis have an effect.
        """
        found = _PASSED_OVER.match(line)
        if found is None:
            raise self.wrong(line, number)
        if found[1]:
            self.device_id = int(found[2], 16)
        elif line.startswith("Chassis "):
            self.grouped = True

    def header(self, words: re.Match[str], number: int) -> None:
        location = Location(self.path, number)
        self.kind, self.guid = _KIND[words[1]], int(words[3], 16)
        described = self.kind, words[4], int(words[2])
        again = self.builder.find_guid(self.guid) if self.grouped else None
        if again is not None and self.builder.described(again) == described:
            self.handle = again
        else:
            device_id, self.device_id = self.device_id, 0
            self.handle = self.builder.add_device(
                self.kind, self.guid, words[4], described[2], location, device_id=device_id
            )
        if self.kind is NodeKind.SWITCH and words[5] is not None:
            self.builder.set_port(self.handle, 0, lid=int(words[5]), lmc=int(words[6]), location=location)

    def port(self, line: str, number: int) -> None:
        found = _PORT.match(line) if len(line) <= _MAX_LINE else None
        if found is None or self.handle < 0:
            raise self.wrong(line, number)
        port, port_guid, far, far_port, lid, lmc, width, speed = found.groups()
        rate = self.rates.get((width, speed)) or self.rate(width, speed, number)
        self.statements.add((self.guid, int(port)), (int(far, 16), int(far_port)), rate, number)
        if self.kind is not NodeKind.SWITCH:
            guid = int(port_guid, 16) if port_guid else None
            location = Location(self.path, number)
            self.builder.set_port(
                self.handle, int(port), guid=guid, lid=int(lid or 0), lmc=int(lmc or 0), location=location
            )

    def rate(self, width: str, speed: str, number: int) -> tuple[int, float]:
        rate = self.rates[width, speed] = printed_rate(width.removesuffix("x"), speed, self.path, number)
        return rate

    def wrong(self, line: str, number: int) -> ParseError:
        if self.handle < 0 and line.startswith("["):
            return ParseError(
                "this port is before the first node", path=self.path, line=number, remedy="is the file whole?"
            )
        return not_printed("ibnetdiscover", line, self.path, number)


def parse_ibnetdiscover(text: str, path: str | Path, *, lmc: int = 0) -> Fabric:
    """Parse the output of ``ibnetdiscover``, and return the fabric in it.

    Parameters
    ----------
    text
        Content of the file.
    path
        File name for error messages.
    lmc
        LMC of the end ports that have no LID in the file, as in a subnet that no SM has swept yet.

    Raises
    ------
    ParseError, FabricError
        The text is invalid, or a link leads to a device that has no record.  The message has file, line and remedy.

    Warns
    -----
    InputWarning
        There are ports with LID 65535, or links with an unknown rate ("4x???").  The warning states their number.

    Notes
    -----
    The parser makes one pass over the text, which takes about a second for 10,000 nodes.
    """
    builder = FabricBuilder(name=Path(path).name.split(".")[0])
    statements = PortStatements(path)
    _Reader(path, builder, statements).read(text)
    _check_start(text, builder, path)
    statements.connect(builder)
    return builder.build(lmc=lmc)


def _check_start(text: str, builder: FabricBuilder, path: str | Path) -> None:
    """Check that the file contains the node at which ibnetdiscover started.  Otherwise the file is incomplete."""
    start = _START.search(text)
    if start is not None and builder.find_guid(int(start[1], 16)) is None:
        raise ParseError(
            f"node {start[1]}, which the discovery started from, is not in the file",
            path=path,
            remedy="is the file whole?",
        )
