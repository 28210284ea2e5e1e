"""Write a picture in the DOT format of Graphviz.  ``neato -n2`` keeps the coordinates of :mod:`routing.draw.layout`."""

from __future__ import annotations

import json

from routing.draw.picture import Picture
from routing.names import escape_control

COLOURS = ("#b9c2ca", "#9db7d5", "#4f94cd", "#7b52ab", "#c2185b", "#5b6b7a", "#d32f2f", "#b9c2ca")
"""Colour of each class of cables (:attr:`routing.draw.picture.Picture.classes`)."""


def dot_text(picture: Picture, title: str) -> str:
    """Return a picture as text in the DOT format.

    The graph is undirected.  Its vertices are switches, and its edges are cables with their ports, data rate and load
    as attributes.
    """
    fabric, cables, classes = picture.fabric, picture.cables, picture.classes.tolist()
    on_loop = {cable for cable, _ in picture.loop}
    lines = [f"graph {_quoted(title)} {{", "  node [shape=box, style=rounded, fontname=sans];"]
    for row, (x, y) in enumerate(picture.layout.xy.tolist()):
        lost = ", style=dashed, color=red" if picture.lost_switches[row] else ""
        lines.append(f'  s{row} [label={_quoted(fabric.labels[row])}, pos="{2 * x},{-2 * y}"{lost}];')
    load = None if cables.load is None else cables.load.tolist()
    for row, ((a, b), (p, q)) in enumerate(zip(cables.ends.tolist(), cables.ports.tolist(), strict=True)):
        more = "" if load is None else f", load={_quoted(f'{load[row][0]:g} {load[row][1]:g}')}"
        more += ", style=dashed" if cables.lost[row] else ", penwidth=4" if row in on_loop else ""
        ports = _quoted(f"{p} - {q}")
        lines.append(
            f'  s{a} -- s{b} [ports={ports}, rate="{cables.rate[row]:g}", color="{COLOURS[classes[row]]}"{more}];'
        )
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    """Return a text as a quoted DOT string."""
    return json.dumps(escape_control(text), ensure_ascii=False)
