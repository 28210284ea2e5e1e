"""Read and write fabrics as GraphML, the format of igraph, networkx, Gephi and other graph tools.

:mod:`routing.formats.graph_elements` describes the attributes of nodes and edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from routing.errors import ParseError
from routing.fabric import Fabric
from routing.fabric_builder import Location
from routing.formats.graph_elements import (
    EDGE_KEYS,
    NODE_KEYS,
    Element,
    GraphFile,
    edge_rows,
    fabric_of_graph,
    node_rows,
)
from routing.names import escape_control


def graphml_text(fabric: Fabric) -> str:
    """Return the fabric as GraphML."""
    return "\n".join(_lines(fabric)) + "\n"


def _lines(fabric: Fabric) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    for target, keys in (("node", NODE_KEYS), ("edge", EDGE_KEYS)):
        for key, kind in keys.items():
            yield f'<key id="{target}_{key}" for="{target}" attr.name="{key}" attr.type="{kind}"/>'
    yield f'<graph id={quoteattr(_legal(fabric.name))} edgedefault="undirected">'
    for own, values in node_rows(fabric):
        yield f'<node id="{own}">{_data("node", values)}</node>'
    for source, target, values in edge_rows(fabric):
        yield f'<edge source="{source}" target="{target}">{_data("edge", values)}</edge>'
    yield "</graph>"
    yield "</graphml>"


def _data(target: str, values: dict[str, Any]) -> str:
    return "".join(f'<data key="{target}_{key}">{escape(_legal(str(value)))}</data>' for key, value in values.items())


def _legal(text: str) -> str:
    """Escape the characters that XML cannot represent."""
    return escape_control(text, _is_legal_text)


def _is_legal_text(letter: str) -> bool:
    return letter in "\t\n" or " " <= letter < "\ud800" or "\ue000" <= letter < "\ufffe" or letter > "\uffff"


@dataclass
class _Reader:
    """Functions that the XML parser expat calls for each XML element of the file.

    The functions add the nodes and edges to ``graph``, each with its line number in the file.
    """

    graph: GraphFile
    parser: Any
    keys: dict[str, str] = field(default_factory=dict)
    current: Element | None = None
    data_key: str | None = None
    text: list[str] = field(default_factory=list)
    graphs: int = 0

    def location(self) -> Location:
        return Location(self.graph.path, self.parser.CurrentLineNumber)

    def error(self, problem: str, remedy: str) -> ParseError:
        return self.graph.error(problem, remedy, self.location())

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "key":
            self.keys[attributes.get("id", "")] = attributes.get("attr.name", "")
        elif tag == "graph":
            self.graphs += 1
            if self.graphs > 1:
                raise self.error("the file has more than one graph", "a file has one fabric")
            self.graph.name = attributes.get("id", "")
        elif tag == "node":
            own = attributes.get("id", "")
            if own in self.graph.nodes:
                raise self.error(f"there is a node {own!r} already", "ids are unique")
            self.current = self.graph.nodes[own] = Element(self.location())
        elif tag == "edge":
            ends = attributes.get("source", ""), attributes.get("target", "")
            self.current = Element(self.location(), ends)
            self.graph.edges.append(self.current)
        elif tag == "data" and self.current is not None:
            self.data_key = self.keys.get(attributes.get("key", ""), "")
            self.text = []

    def characters(self, text: str) -> None:
        if self.data_key is not None:
            self.text.append(text)

    def end(self, tag: str) -> None:
        if tag == "data" and self.current is not None and self.data_key is not None:
            self.current.values[self.data_key] = "".join(self.text)
            self.data_key = None
        elif tag in ("node", "edge"):
            self.current = None

    def doctype(self, *_: Any) -> None:
        raise self.error("the file has a document type declaration", "GraphML needs none; remove it")


def parse_graphml(text: str, path: str | Path, *, lmc: int = 0) -> Fabric:
    """Parse the text of a GraphML file, and return the fabric in it.

    Parameters
    ----------
    text
        Content of the file.  The reader finds attributes by name, so it can also read a file that another tool has
        rewritten.
    path
        File name for error messages.
    lmc
        LMC of the end ports without a LID: the file states no LID for them, or LID 0.

    Raises
    ------
    ParseError, FabricError
        The text is invalid.  The message has file, line and remedy.
    """
    parser = expat.ParserCreate(encoding="UTF-8")
    parser.buffer_text = True
    reader = _Reader(GraphFile(path, "GraphML"), parser)
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    parser.StartDoctypeDeclHandler = reader.doctype
    try:
        parser.Parse(text.encode("utf-8", errors="replace"), True)
    except expat.ExpatError as problem:
        raise ParseError(
            f"not XML: {expat.ErrorString(problem.code)}", path=path, line=problem.lineno, remedy="is the file whole?"
        ) from None
    finally:  # The parser and its handlers refer to each other.  Removing this cycle frees the memory of both at once.
        parser.StartElementHandler = parser.EndElementHandler = None
        parser.CharacterDataHandler = parser.StartDoctypeDeclHandler = None
    return fabric_of_graph(reader.graph, lmc)
