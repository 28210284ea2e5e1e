"""Read and write fabrics in DOT, the language of Graphviz.

The writer uses the attributes of :mod:`routing.formats.graph_elements`, and loses nothing.  The reader also accepts a
plain graph, such as ``graph { node [kind=ca]; a; b; node [kind=switch]; a -- s; b -- s }``:

- A node without ``kind`` is a switch.  A node whose id has the form of ibnetdiscover (``S-``, ``H-`` or ``R-`` and 16
  hexadecimal digits) has the kind and the GUID of this id.
- An edge states its ports as ``s:3 -- t:7``, or as attributes ``source_port`` and ``target_port``.  An end without a
  stated port gets the lowest free port number of its node.
- A node without ``guid`` gets the GUID that ibsim would assign.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from routing.errors import InputWarning, ParseError
from routing.fabric import Fabric
from routing.fabric_builder import Location
from routing.formats.graph_elements import ENDS, Element, GraphFile, edge_rows, fabric_of_graph, node_rows
from routing.names import escape_control

# A comment that begins with // must reach the end of its line.  Without this rule, a line of n comment signs could be
# divided into comments in about 2^n combinations, and a search could try all of them.
_COMMENT = r"//[^\n]*(?![^\n])|/\*(?:[^*]|\*(?!/))*\*/"
_HEAD = re.compile(
    rf'(?:\s|{_COMMENT}|#[^\n]*(?![^\n]))*(?:strict\s+)?(?:di)?graph\b\s*(?:"(?:[^"\\]|\\.)*"|[^\s"\[;=,{{}}]+)?\s*\{{',
    re.DOTALL | re.IGNORECASE,
)
_TOKEN = re.compile(
    rf"(?P<space>\s+|{_COMMENT}|(?:(?<=\n)|\A)#[^\n]*)"
    r'|(?P<quoted>"(?:[^"\\]|\\.)*")'
    r"|(?P<word>[^\W\d]\w*|-?(?:\.\d+|\d+(?:\.\d*)?))"
    r"|(?P<sign>--|->|[{}\[\]=;,:+])",
    re.DOTALL,
)
_DISCOVERED = re.compile(r"([SHR])-([0-9a-fA-F]{16})")
_KIND_OF_LETTER = {"S": "switch", "H": "ca", "R": "router"}
_FIRST_GUID = {"ca": 0x100000, "router": 0x300000, "switch": 0x200000}
_COMPASS = frozenset(("n", "ne", "e", "se", "s", "sw", "w", "nw", "c", "_"))
_MAX_DEPTH, _MAX_NODES, _MAX_EDGES, _MAX_PORTS = 50, 65_536, 1_000_000, 254
"""Maximum depth of nested subgraphs, number of nodes, number of edges, and number of cables of one node.  Without these
limits, a short text could describe more edges than fit into memory.
"""


def dot_text(fabric: Fabric) -> str:
    """Return the fabric as an undirected graph in DOT."""
    return "\n".join(_lines(fabric)) + "\n"


def _lines(fabric: Fabric) -> Iterator[str]:
    yield f"graph {_quoted(fabric.name)} {{"
    for own, values in node_rows(fabric):
        yield f"  {_quoted(own)} [{_attributes(values)}];"
    for source, target, values in edge_rows(fabric):
        yield f"  {_quoted(source)} -- {_quoted(target)} [{_attributes(values)}];"
    yield "}"


def _attributes(values: dict[str, Any]) -> str:
    return ", ".join(f"{key}={_quoted(str(value))}" for key, value in values.items())


def _quoted(text: str) -> str:
    r"""Return a text as a quoted string of DOT.  A backslash becomes ``\\``, and a quotation mark becomes ``\"``."""
    shown = escape_control(text, lambda letter: letter.isprintable() or letter in "\t\n")
    return '"' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"'


def is_dot(text: str) -> bool:
    """Return whether a text begins like a graph in DOT."""
    return _HEAD.match(text) is not None


@dataclass
class _Tokens:
    """Tokens of a DOT file, one at a time.

    Attributes
    ----------
    text, graph
        Content of the file, and the graph that is under construction.
    place, reached
        Position in the text directly after the current token, and the line number of this position.
    line
        Number of the line in which the current token begins.
    kind, value
        Kind of the current token: "word" for an id, the sign itself for a sign, "" at the end of the file.  For an id,
        ``value`` is its text.
    bare
        Whether the current token is an id without quotes, so that it may be a keyword.
    """

    text: str
    graph: GraphFile
    place: int = 0
    reached: int = 1
    line: int = 1
    kind: str = ""
    value: str = ""
    bare: bool = False

    def location(self) -> Location:
        return Location(self.graph.path, self.line)

    def error(self, problem: str, remedy: str) -> ParseError:
        return self.graph.error(problem, remedy, self.location())

    def shown(self) -> str:
        """Return the text of the current token for an error message."""
        return repr(self.value[:30]) if self.kind else "the end of the file"

    def step(self) -> None:
        """Go on to the next token."""
        self.kind, self.value, self.bare = "", "", False
        while self.place < len(self.text):
            found, self.line = _TOKEN.match(self.text, self.place), self.reached
            if found is None:
                remedy = "HTML labels are not supported" if self.text[self.place] == "<" else "is the file whole?"
                raise self.error(f"unexpected {self.text[self.place]!r}", remedy)
            self.reached += found[0].count("\n")
            self.place = found.end()
            if found.lastgroup == "space":
                continue
            self.value, self.bare = found[0], found.lastgroup == "word"
            self.kind = found[0] if found.lastgroup == "sign" else "word"
            if found.lastgroup == "quoted":
                self.value = re.sub(r"\\(.)", _unescaped, found[0][1:-1], flags=re.DOTALL)
            return

    def takes(self, *signs: str) -> bool:
        """Return whether the current token is one of the given signs.  If it is, go on to the next token."""
        found = self.kind in signs and self.kind != ""
        if found:
            self.step()
        return found

    def needs(self, sign: str) -> None:
        """Go on to the next token if the current token is the given sign.  Otherwise raise ParseError."""
        if not self.takes(sign):
            raise self.error(f"{self.shown()} in place of {sign!r}", "is the file whole?")

    def identifier(self) -> str:
        """Return the current id, and go on to the token after the id.  Ids joined by ``+`` are one id: ``"a" + "b"`` is
        ``ab``.
        """
        if self.kind != "word":
            raise self.error(f"{self.shown()} in place of a name", "is the file whole?")
        found = self.value
        self.step()
        while self.takes("+"):
            found += self.value
            self.step()
        return found

    def keyword(self) -> str:
        """Return the current token in lower case if the token is an id without quotes, else an empty text."""
        return self.value.lower() if self.kind == "word" and self.bare else ""


def _unescaped(found: re.Match[str]) -> str:
    return found[1] if found[1] in '\\"' else "" if found[1] == "\n" else found[0]


@dataclass
class _Scope:
    """Default attributes of the nodes and edges of a graph or subgraph."""

    node: dict[str, str] = field(default_factory=dict)
    edge: dict[str, str] = field(default_factory=dict)

    def inner(self) -> _Scope:
        return _Scope(dict(self.node), dict(self.edge))


def parse_dot(text: str, path: str | Path, *, lmc: int = 0) -> Fabric:
    """Parse the text of a DOT file, and return the fabric in it.

    Parameters
    ----------
    text
        Content of the file: one undirected graph.
    path
        File name for error messages.
    lmc
        LMC of the end ports that have no LID in the file.

    Raises
    ------
    ParseError, FabricError
        The text is invalid.  The message has file, line and remedy.

    Warns
    -----
    InputWarning
        All nodes of the fabric are switches, and at least one node has no attribute ``kind`` in the file.
    """
    graph = GraphFile(path, "DOT")
    tokens = _Tokens(text, graph)
    tokens.step()
    if tokens.keyword() == "strict":
        tokens.step()
    if tokens.keyword() == "digraph":
        raise tokens.error("a directed graph", "a cable has no direction: write `graph` and `--`")
    if tokens.keyword() != "graph":
        raise tokens.error(f"{tokens.shown()} in place of `graph`", "is it a DOT file?")
    tokens.step()
    if tokens.kind == "word":
        graph.name = tokens.identifier()
    _read_block(tokens, _Scope(), 0)
    if tokens.kind:
        raise tokens.error("the file has more than one graph", "a file has one fabric")
    stated = all("kind" in element.values for element in graph.nodes.values())
    _complete(graph)
    if not stated and all(element.values["kind"] == "switch" for element in graph.nodes.values()):
        message = f"{path}: no CA in this file: a node is a switch, unless it has kind=ca"
        warnings.warn(message, InputWarning, stacklevel=2)
    return fabric_of_graph(graph, lmc)


def _read_block(tokens: _Tokens, scope: _Scope, depth: int) -> dict[str, str]:
    """Read ``{ statements }``, and return ``{id: port}`` with all nodes in the braces.

    The port of a node is stated by a statement ``id:port``.  If several statements have the node, the last one counts.
    If this statement states no port, or is an edge, the port is an empty text.

    ``scope`` has the default attributes, and ``depth`` is the number of subgraphs around the braces.
    """
    if depth > _MAX_DEPTH:
        raise tokens.error("too many nested subgraphs", f"at most {_MAX_DEPTH}")
    tokens.needs("{")
    found: dict[str, str] = {}
    while not tokens.takes("}"):
        if not tokens.takes(";"):
            found.update(_read_statement(tokens, scope, depth))
    return found


def _read_statement(tokens: _Tokens, scope: _Scope, depth: int) -> dict[str, str]:
    """Read a statement, and return ``{id: port}`` with its nodes.

    The port is an empty text for all nodes of an edge, and for a node without a port.

    ``scope`` has the default attributes, and ``depth`` is the number of subgraphs around the statement.
    """
    word = tokens.keyword()
    if word in ("graph", "node", "edge"):
        tokens.step()
        values = _read_attributes(tokens)
        if word != "graph":
            getattr(scope, word).update(values)
        return {}
    location = tokens.location()
    if tokens.kind == "word" and word != "subgraph":
        own = tokens.identifier()
        if tokens.takes("="):  # The statement sets an attribute of the graph, such as rankdir=LR.
            tokens.identifier()
            return {}
        ends = [_read_node(tokens, scope, own, location)]
    else:
        ends = [_read_end(tokens, scope, depth)]
    while tokens.takes("--"):
        ends.append(_read_end(tokens, scope, depth))
    if tokens.kind == "->":
        raise tokens.error("a directed edge", "a cable has no direction: write `--`")
    values = _read_attributes(tokens)
    if len(ends) == 1:
        for own in ends[0]:
            tokens.graph.nodes[own].values.update(values)
    for nodes, others in itertools.pairwise(ends):
        if len(tokens.graph.edges) + len(nodes) * len(others) > _MAX_EDGES:
            raise tokens.error("too many edges", f"at most {_MAX_EDGES}")
        tokens.graph.edges += [
            Element(location, (a, b), {**scope.edge, **_port("source", p), **_port("target", q), **values})
            for a, p in nodes.items()
            for b, q in others.items()
        ]
    return ends[0] if len(ends) == 1 else {own: "" for nodes in ends for own in nodes}


def _port(end: str, number: str) -> dict[str, str]:
    return {f"{end}_port": number} if number else {}


def _read_end(tokens: _Tokens, scope: _Scope, depth: int) -> dict[str, str]:
    """Read a node or a subgraph, which may be one end of an edge.  Return ``{id: port}`` with all nodes that were read.

    The port is an empty text for a node without a port.

    ``scope`` has the default attributes, and ``depth`` is the number of subgraphs around the node or subgraph.
    """
    word = tokens.keyword()
    if word == "subgraph" or tokens.kind == "{":
        if word:
            tokens.step()
            if tokens.kind == "word":
                tokens.identifier()
        return _read_block(tokens, scope.inner(), depth + 1)
    location = tokens.location()
    return _read_node(tokens, scope, tokens.identifier(), location)


def _read_node(tokens: _Tokens, scope: _Scope, own: str, location: Location) -> dict[str, str]:
    """Read the port that may follow the node id ``own``, as in ``id:port``, and add the node to the graph if it is new.

    Return ``{id: port}``.  Without a port, the port is an empty text.
    """
    port = ""
    while tokens.takes(":"):
        text = tokens.identifier()
        port = port if text in _COMPASS else text
    if own not in tokens.graph.nodes:
        if len(tokens.graph.nodes) == _MAX_NODES:
            raise tokens.error("too many nodes", f"at most {_MAX_NODES}")
        tokens.graph.nodes[own] = Element(location, values=dict(scope.node))
    return {own: port}


def _read_attributes(tokens: _Tokens) -> dict[str, str]:
    """Read all lists ``[key=value, ...]`` that follow, and return the attributes."""
    values: dict[str, str] = {}
    while tokens.takes("["):
        while not tokens.takes("]"):
            key = tokens.identifier()
            values[key] = tokens.identifier() if tokens.takes("=") else "true"
            tokens.takes(",", ";")
    return values


def _complete(graph: GraphFile) -> None:
    """Fill in what a plain graph leaves out: kinds, GUIDs, names, port numbers, and the number of ports."""
    used = _ports_in_use(graph)
    for element in graph.edges:
        for end, node in zip(ENDS, element.ends, strict=True):
            if f"{end}_port" not in element.values:
                free = next((port for port in range(1, _MAX_PORTS + 1) if port not in used[node]), None)
                if free is None:
                    raise graph.error(f"{node[:60]!r} has too many cables", f"at most {_MAX_PORTS}", element.location)
                used[node].add(free)
                element.values[f"{end}_port"] = str(free)
    for own, element in graph.nodes.items():
        discovered = _DISCOVERED.fullmatch(own)
        if discovered is not None:
            element.values.setdefault("kind", _KIND_OF_LETTER[discovered[1]])
            element.values.setdefault("guid", f"0x{discovered[2]}")
        element.values.setdefault("kind", "switch")
        element.values.setdefault("name", element.values.get("label", own))
        element.values.setdefault("ports", str(max(used[own], default=1)))
    _give_guids(graph)


def _ports_in_use(graph: GraphFile) -> dict[str, set[int]]:
    """Return the port numbers that the edges state, by node id."""
    used: dict[str, set[int]] = defaultdict(set)
    for element in graph.edges:
        for end, node in zip(ENDS, element.ends, strict=True):
            if f"{end}_port" in element.values:
                used[node].add(graph.number(element, f"{end}_port"))
    return used


def _give_guids(graph: GraphFile) -> None:
    """Give each node without a GUID the next free GUID of its kind.

    For a CA or router, the numbers directly after the node GUID are kept free for its port GUIDs.
    """
    taken = {graph.number(element, "guid") for element in graph.nodes.values() if "guid" in element.values}
    following = dict(_FIRST_GUID)
    for element in graph.nodes.values():
        kind = element.values["kind"]
        if "guid" in element.values or kind not in following:
            continue
        size = 1 if kind == "switch" else 1 + min(graph.number(element, "ports"), 255)
        while any(guid in taken for guid in range(following[kind], following[kind] + size)):
            following[kind] += 1
        element.values["guid"] = f"{following[kind]:#x}"
        following[kind] += size
