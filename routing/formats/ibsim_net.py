"""Read net files, the description of fabrics for the InfiniBand simulator ibsim.

Grammar and results agree with ibsim 0.10 to 0.12.  A GUID that is not stated gets the number that ibsim would assign.
A link has the best width and speed that both ends support.  A node name is the node description that OpenSM would see.

Three things differ from ibsim on purpose:
- A line that ibsim silently skips is an error.  Examples are a misspelt directive, or a header that no empty line
  separates from the record before it.
- The file of an ``include`` is relative to the including file, not to the working directory.
- A port GUID in parentheses (``[1](2c9030000a1b2) "sw"[3]``) is used.  ibsim ignores it, and always uses node GUID +
  port number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from routing.errors import ParseError
from routing.fabric import Fabric, NodeKind
from routing.fabric_builder import FabricBuilder, Location
from routing.formats.ibsim_links import DEFAULT_ENABLED, Enabled, Links, Statement, enabled_by_name
from routing.formats.text import c_number, lines_of, read_text

MAX_LINE = 254
MAX_INCLUDES = 9
MAX_FILES = 1000
ID_LENGTH, NAME_LENGTH, PREFIX_LENGTH = 64, 63, 20

_KIND = {"Switch": NodeKind.SWITCH, "Hca": NodeKind.CA, "Ca": NodeKind.CA, "Rt": NodeKind.ROUTER}
_GUID_WORDS = {
    "switchguid": NodeKind.SWITCH,
    "hcaguids": NodeKind.CA,
    "hcaguid": NodeKind.CA,
    "caguids": NodeKind.CA,
    "caguid": NodeKind.CA,
    "rtguid": NodeKind.ROUTER,
}
_HEADER = re.compile(r'(Switch|Hca|Ca|Rt)[ \t]*(\d{1,4})[ \t]*"([^"]*)"(.*)')
_PORT = re.compile(
    r"(@?)\[(\d{1,4})\](?:\(([0-9a-fA-F]{1,16})\))?[ \t]*"
    r'"([^"]*)"(?:\[(\d{1,4})\](?:\([0-9a-fA-F]+\))?)?(.*)'
)
_ASSIGN = re.compile(r'([a-z]+)[ \t]*([=+])[ \t]*("?)(0x[0-9a-fA-F]+|\d+|[^"]*)("?)(.*)')
_OPTION = re.compile(r"([A-Za-z])[^A-Za-z=]*=[ \t]*(0x[0-9a-fA-F]+|\d+)?")
_DESCRIPTION_END = re.compile(r" (?:enhanced port|base port|lid|lmc) ")
_SIGNATURE = re.compile(
    r'^(?:(?:Switch|Hca|Ca|Rt)[ \t]*\d+[ \t]*"|include[ \t]|module[ \t]*=|(?:switch|ca|hca|rt)guids?[ \t]*[=+])',
    re.MULTILINE,
)
_LID, _LMC = re.compile(r"lid (0x[0-9a-fA-F]+|\d+)"), re.compile(r"lmc (0x[0-9a-fA-F]+|\d+)")
_FAR_RATE = re.compile(r'lid +\d+ +(\d+)x *([A-Z0-9]+)[^"]*$')
_OUR_RATE = re.compile(r"# (\d{1,2})x([A-Z0-9]+)$")
_INCLUDE = re.compile(r'include[^"]*"([^"]+)"')
_COMMAND = re.compile(r'do[ \t]+(\w+)(?:[ \t]*"([^"]*)"(?:\[(\d{1,4})\])?[ \t]*(.*))?')
_NO_TOPOLOGY = {"dump", "route", "error", "performanceset", "verbose", "wait", "attached", "start", "help"}


@dataclass
class _Node:
    """Node record that is being read."""

    handle: int
    id: str
    kind: NodeKind
    ports: int
    enabled: Enabled
    left: int
    stated: set[int] = field(default_factory=set)


@dataclass
class _Reader:
    """Reads a net file and the files that it includes in one pass.

    The fields hold the counters and defaults that ibsim would have at the current line.
    """

    builder: FabricBuilder
    links: Links
    first_guid: dict[NodeKind, int] = field(
        default_factory=lambda: {NodeKind.SWITCH: 0x200000, NodeKind.CA: 0x100000, NodeKind.ROUTER: 0}
    )
    next_guid: dict[NodeKind, int] = field(
        default_factory=lambda: {NodeKind.SWITCH: 0x200000, NodeKind.CA: 0x100000, NodeKind.ROUTER: 0}
    )
    prefix: str = ""
    enabled: Enabled = DEFAULT_ENABLED
    nodes: dict[str, _Node] = field(default_factory=dict)
    aliases: dict[str, tuple[str, int]] = field(default_factory=dict)
    open_files: list[Path] = field(default_factory=list)
    files: int = 0
    path: str | Path = ""
    line: int = 0

    def error(self, problem: str, remedy: str | None = None) -> ParseError:
        return ParseError(problem, path=self.path, line=self.line, remedy=remedy)

    def location(self) -> Location:
        return Location(self.path, self.line)

    def read(self, path: str | Path, text: str) -> None:
        """Read one file, and recursively the files that it includes."""
        self.open_files.append(Path(path).resolve())
        self.files += 1
        self.path = path
        record: _Node | None = None
        for number, line in lines_of(text):
            self.line = number
            start = line[:1]
            if start == "#":
                continue
            if len(line) > MAX_LINE:
                raise self.error(f"a line of {len(line)} characters", f"ibsim cuts lines after {MAX_LINE}")
            if start in ("[", "@"):
                if record is None:
                    raise self.error(
                        "this port is outside of a node's record", "ports follow their node without an empty line"
                    )
                self._port(record, line)
            elif not line.strip():
                record = None
            elif record is not None and record.left > 0:
                raise self.error(
                    f"{line.strip()!r} inside the record of {record.id!r}", "end a record with an empty line"
                )
            else:
                record = self._statement(line)
                self.path, self.line = path, number
        self.open_files.pop()

    def _statement(self, line: str) -> _Node | None:
        """Handle a line that is not a port line: the header of a node, a directive or a command.

        The result is the new node if the line is a header, else None.
        """
        header = _HEADER.match(line)
        if header is not None:
            return self._header(_KIND[header[1]], int(header[2]), header[3], header[4])
        if line.startswith("include"):
            self._include(line)
        elif re.match(r"do\b", line):
            self._command(line)
        else:
            self._assign(line)
        return None

    def _header(self, kind: NodeKind, ports: int, base: str, rest: str) -> _Node:
        if "#" in base or "@" in base:
            raise self.error(f"node id {base!r} has a '#' or '@'", "ibsim reserves them for modules and aliases")
        node_id = (f"{self.prefix}#{base}" if self.prefix else base)[:ID_LENGTH]
        if node_id in self.nodes:
            raise self.error(f"there is a node {node_id!r} already", "rename one of the two")
        name, rest = _description(rest)
        guid = self.next_guid[kind]
        if guid == 0:
            raise self.error(f"ibsim would give {node_id!r} the GUID 0", "state rtguid=0x... before the first router")
        handle = self.builder.add_device(kind, guid, (name or node_id)[:NAME_LENGTH], ports, self.location())
        self.next_guid[kind] += 1 if kind is NodeKind.SWITCH else ports + 1
        if kind is NodeKind.SWITCH:
            self._state_lid(handle, 0, rest)
        node = _Node(handle, node_id, kind, ports, self.enabled, left=ports)
        self.nodes[node_id] = node
        return node

    def _state_lid(self, handle: int, port: int, text: str) -> None:
        lid, lmc = _LID.search(text), _LMC.search(text)
        base = 0 if lid is None else self._number(lid[1])
        if base:
            self.builder.set_port(
                handle, port, lid=base, lmc=self._number(lmc[1]) if lmc else 0, location=self.location()
            )

    def _port(self, node: _Node, line: str) -> None:
        found = _PORT.match(line)
        if found is None:
            raise self.error(f"{line.strip()!r} states no link", 'write [port] "remote node"[remote port]')
        port = int(found[2])
        if not 1 <= port <= node.ports:
            raise self.error(f"{node.id!r} has no port {port}", f"its ports are 1 to {node.ports}")
        if port in node.stated:
            raise self.error(f"port {port} of {node.id!r} is stated twice", "a port takes one cable")
        node.stated.add(port)
        node.left -= 1
        enabled = self._options(node, port, found[6])
        if found[3] and node.kind is not NodeKind.SWITCH:
            self.builder.set_port(node.handle, port, guid=int(found[3], 16), location=self.location())
        if found[1]:
            self._alias(node, port, found[4], enabled)
            return
        far_id, far_port, alias = self._expand(found[4])
        if found[5] is not None and not alias:
            far_port = int(found[5])
        if far_port < 1:
            raise self.error(f"remote port {far_port}", "ports count from 1")
        self.links.state(Statement(node.handle, port, far_id, far_port, bool(alias), enabled, self.location()))

    def _alias(self, node: _Node, port: int, base: str, enabled: Enabled) -> None:
        if "#" in base or "@" in base:
            raise self.error(f"alias {base!r} has a '#' or '@'", "ibsim reserves them for modules and aliases")
        alias = f"{self.prefix}@{base}"
        if alias in self.aliases:
            raise self.error(f"there is an alias {alias!r} already", "rename one of the two")
        self.aliases[alias] = (node.id, port)
        self.links.offer(node.handle, port, enabled)

    def _expand(self, base: str) -> tuple[str, int, str]:
        """Resolve a name in quotes: a node of this module, a node of another module, or an alias of a port.

        A module is a part of a net file that begins with a line ``module=``, which sets a prefix for the node ids in
        the module.

        Returns
        -------
        node_id : str
            Id of the node.
        port : int
            Port that the alias stands for; 1 if the name is not an alias.
        alias : str
            The alias; "" if the name is a node id.
        """
        if "@" in base:
            if base[0] == "@" and self.prefix:
                raise self.error(f"alias {base!r} is used in a module", f'there ibsim finds "{self.prefix}{base}" only')
            alias = base
            if alias not in self.aliases:
                raise self.error(f"there is no alias {alias!r} yet", "state the aliased port before it is referred to")
            return (*self.aliases[alias], alias)
        name = f"{self.prefix}#{base}" if self.prefix and "#" not in base else base
        return name[:ID_LENGTH], 1, ""

    def _options(self, node: _Node, port: int, rest: str) -> Enabled:
        """Return the widths and speeds that a port supports.

        The node's defaults come first.  Options ``w=``, ``s=`` and ``e=`` override the defaults, and a rate in the
        comment overrides defaults and options.  ``rest`` is the part of the port line with options and comment.
        """
        if not rest or rest.isspace():
            return node.enabled
        enabled = node.enabled
        if "=" in rest:
            comment = rest.find("#")
            for option in _OPTION.finditer(rest):
                # ibsim reads the options w=, s= and e= even in comments.
                if option[1] in "wse" or option.start() < comment or comment < 0:
                    enabled = self._enable(enabled, option[1], option[2] or "")
        rate = _FAR_RATE.search(rest) if "lid" in rest else _OUR_RATE.search(rest)
        if rate is not None and node.kind is NodeKind.CA:
            self._state_lid(node.handle, port, rest)
        return enabled if rate is None else enabled_by_name(enabled, int(rate[1]), rate[2])

    def _enable(self, enabled: Enabled, letter: str, number: str) -> Enabled:
        known = c_number(number)
        value = -1 if known is None else known
        if letter == "w":
            self._check(1 <= value <= 31, f"w={number or '?'}", "widths are bits: 1x=1, 4x=2, 8x=4, 12x=8, 2x=16")
            return replace(enabled, width=value)
        if letter == "s":
            self._check(0 <= value <= 7, f"s={number or '?'}", "speeds are bits: SDR=1, DDR=2, QDR=4")
            return replace(enabled, speed=value or 4)
        if letter == "e":
            self._check(0 <= value <= 15, f"e={number or '?'}", "bits: FDR=1, EDR=2, HDR=4, NDR=8")
            return replace(enabled, ext=value)
        raise self.error(f"unknown port option {letter!r}", "options are w=, s= and e=")

    def _check(self, good: bool, problem: str, remedy: str) -> None:
        if not good:
            raise self.error(f"{problem} is out of range", remedy)

    def _include(self, line: str) -> None:
        found = _INCLUDE.match(line)
        if found is None:
            raise self.error("include without a file name", 'write include "file"')
        path = Path(self.path).parent / found[1]
        try:
            real, there = path.resolve(), path.is_file()
        # These exceptions are raised if the file name contains a NUL, is too long, or leads to a cycle of symbolic
        # links.
        except (OSError, ValueError, RuntimeError):
            real, there = path, False
        if real in self.open_files:
            raise self.error(f"{found[1]!r} includes itself", "remove one of the includes")
        if len(self.open_files) >= MAX_INCLUDES or self.files >= MAX_FILES:
            raise self.error("too many includes", f"ibsim nests at most {MAX_INCLUDES}")
        if not there:
            raise self.error(f"there is no file {str(path)!r} to include", "name it relative to this file")
        self.read(path, read_text(path))

    def _assign(self, line: str) -> None:
        found = _ASSIGN.match(line)
        word = "" if found is None else found[1]
        if found is None or (found[3] != found[5]):
            raise self.error(f"unknown statement {line.strip()!r}", "see the grammar of net files")
        if word == "module":
            self._check(bool(found[3]) and len(found[4]) <= PREFIX_LENGTH, f"module {found[4]!r}", 'module="name"')
            self.prefix = found[4]
            return
        if word not in (*_GUID_WORDS, "vendid", "devid", "sysimgguid", "width", "speed", "extspeed", "pdebug"):
            raise self.error(f"unknown directive {word!r}", "see the grammar of net files")
        value = self._number(found[4])
        if word in _GUID_WORDS:
            self._guid_base(_GUID_WORDS[word], found[2], value)
        elif word in ("width", "speed", "extspeed"):
            self.enabled = self._enable(self.enabled, word[0], found[4])

    def _guid_base(self, kind: NodeKind, sign: str, value: int) -> None:
        if sign == "=":
            self.first_guid[kind] = self.next_guid[kind] = value
        else:
            self.next_guid[kind] = self.first_guid[kind] + value

    def _number(self, text: str) -> int:
        number = c_number(text)
        if number is None:
            raise self.error(f"{text!r} is not a number", "write 123 or 0x7b")
        return number

    def _command(self, line: str) -> None:
        """Execute a console command that changes the fabric, and ignore known commands that do not change the fabric.

        Raises
        ------
        ParseError
            The command is unknown, or has wrong arguments.
        """
        found = _COMMAND.match(line)
        command = "" if found is None else found[1].lower()
        if found is None or (command not in _NO_TOPOLOGY and command not in ("link", "guid", "baselid")):
            raise self.error(
                f"{line.strip()!r} is not a command that a file may have", "state the fabric in its final form"
            )
        if command in _NO_TOPOLOGY:
            return
        if found[2] is None:
            raise self.error(f"{command} without a node", f'write do {found[1]} "node"[port] ...')
        node, port = self._known(found[2], found[3])
        rest = found[4].split()
        if command == "link":
            far = _PORT.match(f"[1] {found[4]}")
            if far is None:
                raise self.error("link with one end", 'write do Link "node"[port] "node"[port]')
            other, other_port = self._known(far[4], far[5])
            ends = (node.handle, port), (other.handle, other_port)
            self.links.at_once(*ends, (node.enabled, other.enabled), self.location())
        elif command == "baselid" and rest:
            lmc = self._number(rest[1]) if len(rest) > 1 else 0
            self.builder.set_port(node.handle, port, lid=self._number(rest[0]), lmc=lmc, location=self.location())
        # The command is ``do Guid``, which changes the GUID of a node.  ibsim ignores the command if it names a port.
        elif rest and not port:
            self.builder.change_guid(node.handle, self._number(rest[0]), self.location())

    def _known(self, name: str, bracket: str | None) -> tuple[_Node, int]:
        node_id, port, alias = self._expand(name)
        if node_id not in self.nodes:
            raise self.error(f"there is no node {node_id!r} yet", "state a node before a command names it")
        return self.nodes[node_id], port if alias else int(bracket or 0)


def _description(rest: str) -> tuple[str, str]:
    """Split the text after the node id in a header into the node description and the remaining text.

    Returns
    -------
    description : str
        Node description in the comment; "" if there is no description.
    rest : str
        Text after the description.
    """
    _, mark, comment = rest.partition("#")
    if not mark:
        return "", rest
    comment = comment.lstrip()
    if comment.startswith('"'):
        name, _, rest = comment[1:].partition('"')
        return name, rest
    end = _DESCRIPTION_END.search(comment)
    return (comment, "") if end is None else (comment[: end.start()], comment[end.start() + 1 :])


def is_net(text: str) -> bool:
    """Return whether a text may be a net file, which has at least one node or directive."""
    return _SIGNATURE.search(text) is not None


def parse_net(text: str, path: str | Path, *, lmc: int = 0) -> Fabric:
    """Parse the text of a net file, and return the fabric in it.

    Parameters
    ----------
    text
        Content of the file.
    path
        File name for error messages.  A file name in an ``include`` line is relative to the folder of this file.
    lmc
        LMC of the end ports for which the file states no LID.

    Raises
    ------
    ParseError, FabricError
        The text is invalid.  The message has file, line and remedy.
    """
    builder = FabricBuilder(name=Path(path).name.split(".")[0])
    links = Links(builder)
    reader = _Reader(builder, links)
    reader.read(path, text)
    if not reader.nodes:
        raise ParseError("this file has no node", path=path, remedy="is it a net file, and is it whole?")
    links.connect({name: node.handle for name, node in reader.nodes.items()})
    return builder.build(lmc=lmc)
