"""Draw a picture as SVG.  All cables of one class are one SVG path, so that a browser can draw thousands of cables
quickly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

import numpy as np
import numpy.typing as npt

from routing.draw.layout import NAME, NAMED_UP_TO
from routing.draw.picture import STEPS, Picture
from routing.fabric import NodeKind
from routing.names import escape_control, system_name
from routing.numerals import count_noun

TERMINALS_UP_TO = 400
"""CAs and routers are drawn only if the fabric has at most this number of CAs and routers."""
THIN_FROM = 1500
"""Number of cables above which the lines of cables with a value above 0 (classes 1 to 4 of :attr:`Picture.classes`) are
thin.  Thick lines would hide the lines of other classes, such as lost cables.
"""
MARGIN = 40
LETTER = 5.8
"""Mean width of a letter of a switch's name, in pixels."""
MOST_LOADED = "most loaded channel"

STYLE = """
.net{background:#fff}
.net path{fill:none;stroke:#5b6b7a;stroke-width:1.2}
.net [class^=l],.net #marks path{vector-effect:non-scaling-stroke}
.net .l0{stroke:#98a3ad;stroke-width:.8;stroke-dasharray:1 3}
.net .l1{stroke:#7ea2c9;stroke-width:.9}
.net .l2{stroke:#4f94cd;stroke-width:1.2}
.net .l3{stroke:#7b52ab;stroke-width:1.6}
.net .l4{stroke:#c2185b;stroke-width:2}
.net.many .l1{stroke-width:.4}.net.many .l2{stroke-width:.5}.net.many .l3{stroke-width:.6}.net.many .l4{stroke-width:.7}
.net .sample.sample{stroke-width:2.5}
.net .l6{stroke:#d32f2f;stroke-width:2;stroke-dasharray:6 4}
.net .l7{stroke:#98a3ad;stroke-width:.8}
.net .e{stroke:#a7b0b8;stroke-width:.8}
.net .ca{stroke:#444;stroke-width:6;stroke-linecap:round}
.net .r{stroke:#b5651d;stroke-width:8;stroke-linecap:round}
.net .loop{stroke:#e65100;stroke-width:4}
.net .loop.under{stroke:#fff;stroke-width:8}
.net .busy{stroke:#111;stroke-width:6}
.net .arrow{fill:#e65100;stroke:none;pointer-events:none}
.net .arrow.of-busy{fill:#111}
.net circle{fill:#d8e8f6;stroke:#27527a;stroke-width:1.2}
.net .gone{fill:#fff;stroke:#d32f2f;stroke-dasharray:2 2}
.net text{font-family:sans-serif;font-size:10px;fill:#123;text-anchor:middle}
.net text{paint-order:stroke;stroke:#fff;stroke-width:3px}
.net .key{text-anchor:start}
@media (prefers-color-scheme:dark){
.net{background:#15191e}
.net .l0,.net .l7{stroke:#6f7a85}.net .l1{stroke:#5f86b3}.net .l2{stroke:#5ba3e0}.net .l3{stroke:#b48ae0}
.net .l4{stroke:#ff5c93}.net .l6{stroke:#ff6b6b}.net .e{stroke:#5a646e}.net .ca{stroke:#c5ccd3}
.net .loop{stroke:#ffa040}.net .loop.under{stroke:#15191e}.net .arrow{fill:#ffa040}
.net .busy{stroke:#fff}.net .arrow.of-busy{fill:#fff}
.net circle{fill:#274057;stroke:#9cc4ea}.net .gone{fill:#15191e;stroke:#ff6b6b}.net text{fill:#dde6ee;stroke:#15191e}}
@media print{.net{background:#fff}}
"""

Points = npt.NDArray[np.float64]


def svg_text(picture: Picture, title: str, *, alone: bool = True) -> str:
    """Return a picture as an SVG element, or as a whole SVG document if ``alone``.

    Each switch is an element ``s0``, ``s1``, ... with a title.  One SVG path draws all cables of one class
    (:attr:`~routing.draw.picture.Picture.classes`).  The path has the CSS class ``l0`` to ``l7``, after the number of
    the class.
    """
    drawing = _Drawing(picture)
    lines = [*drawing.links(), *drawing.terminals(), *drawing.marked()]
    body = [*lines, *drawing.switches(), *drawing.arrows()]
    key = list(drawing.legend())
    left, top, width, height = drawing.frame()
    size = f' width="{width}" height="{height}"' if alone else ""
    space = ' xmlns="http://www.w3.org/2000/svg"' if alone else ""
    described = escape(drawing.description())
    many = " many" if len(picture.cables) > THIN_FROM else ""
    head = (
        f'<svg{space} class="net{many}" id="net" role="group" aria-label="{escape(_line(title))}" '
        f'viewBox="{left} {top} {width} {height}"{size}>'
    )
    style = f"<style>{STYLE}</style>" if alone else ""
    words = f"<title>{escape(_line(title))}</title>" if alone else ""
    return "\n".join([head, words, f"<desc>{described}</desc>{style}", *body, *key, "</svg>"]) + "\n"


def _line(text: str) -> str:
    return escape_control(text)


class _Drawing:
    """Generator of the SVG elements of a picture."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.points = picture.layout.xy.astype(np.float64)
        self.extent: list[tuple[float, float]] = [(0.0, 0.0)]
        self.radius = 7 if picture.fabric.switches <= NAMED_UP_TO else 5
        if len(self.points):
            self.extent = [tuple(self.points.min(axis=0)), tuple(self.points.max(axis=0))]
        self._lines_width = self.frame()[2]
        self._middle_points = self._middles()
        self._busiest = picture.busiest if picture.colouring is None else None

    def frame(self) -> tuple[int, int, int, int]:
        """Return left, top, width and height of the box around all elements drawn so far."""
        corners = np.array(self.extent)
        left, top = np.floor(corners.min(axis=0)).astype(int) - MARGIN
        right, bottom = np.ceil(corners.max(axis=0)).astype(int) + MARGIN
        return int(left), int(top), int(right - left), int(bottom - top)

    def description(self) -> str:
        """Describe the picture in a sentence, for readers who cannot see it."""
        fabric, layout = self.picture.fabric, self.picture.layout
        kinds = {"levels": "levels of a tree", "grid": "a grid", "groups": "groups", "graph": "a graph"}
        lost = int(np.count_nonzero(self.picture.cables.lost))
        parts = [
            f"{count_noun(fabric.switches, 'switch', 'switches')} as {kinds[layout.kind]}",
            f"{count_noun(len(self.picture.cables), 'cable')} between switches",
            *([f"{lost} of them lost"] if lost else []),
            *([f"a credit loop of {count_noun(len(self.picture.loop), 'channel')}"] if self.picture.loop else []),
        ]
        return ", ".join(parts) + "."

    def links(self) -> Iterator[str]:
        """Draw the cables between switches.  All cables of one class (:attr:`Picture.classes`) are one SVG path.

        Parallel cables are drawn side by side.
        """
        classes, paths = self.picture.classes, self._segments()
        for each in sorted(set(classes.tolist()), key=lambda number: (number != 7, number)):
            data = "".join(paths[row] for row in np.flatnonzero(classes == each).tolist())
            yield f'<path class="l{each}" d="{data}"/>'

    def _segments(self) -> list[str]:
        """Return the SVG path data of each cable between switches: a straight line, or a curve around other cables."""
        middle = self._middle_points
        (ax, ay), (bx, by) = (self.points[self.picture.cables.ends[:, end]].T for end in (0, 1))
        straight = (np.abs(middle[:, 0] - (ax + bx) / 2) < 0.5) & (np.abs(middle[:, 1] - (ay + by) / 2) < 0.5)
        if len(middle):
            curved = middle[~straight]
            self.extent += [tuple(point) for point in curved.tolist()]
        found = []
        whole = [np.floor(value + 0.5).astype(int).tolist() for value in (ax, ay, bx, by, *(2 * middle.T))]
        for x, y, u, v, px, py, plain in zip(*whole, straight.tolist(), strict=True):
            # With the control point that is computed here, the quadratic curve passes through the cable's middle point.
            found.append(f"M{x} {y}L{u} {v}" if plain else f"M{x} {y}Q{px - (x + u) // 2} {py - (y + v) // 2} {u} {v}")
        return found

    def _middles(self) -> Points:
        """Return the middle point of each cable in the picture: float64[N, 2].

        The middle point of a parallel cable lies beside the straight line.  In a grid, so does the middle point of a
        cable that skips switches, such as the cable that closes a ring.
        """
        ends = self.picture.cables.ends
        a, b = self.points[ends[:, 0]], self.points[ends[:, 1]]
        along = b - a
        length = np.maximum(np.hypot(along[:, 0], along[:, 1]), 1e-9)
        across = np.column_stack([along[:, 1], -along[:, 0]]) / length[:, None]
        aside = _places_among_parallels(ends) * 5.0
        if self.picture.layout.kind == "grid":
            cells = self.picture.layout.cells
            assert cells is not None
            far = np.abs(cells[ends[:, 0]] - cells[ends[:, 1]]).max(axis=1, initial=0) > 1
            # A cable that skips switches, such as the cable that closes a ring, is drawn beside these switches and
            # their names.
            aside = aside + np.where(far, 14.0 + 0.08 * length, 0.0)
        return np.asarray((a + b) / 2 + across * aside[:, None])

    def terminals(self) -> Iterator[str]:
        """Draw the CAs and routers and their cables, if the numbers of terminals and of switches are small enough."""
        fabric = self.picture.fabric
        if not fabric.endports or fabric.terminals > TERMINALS_UP_TO or not 0 < fabric.switches <= NAMED_UP_TO:
            return
        points = self._terminal_points()
        if len(points) == 0:
            return
        cables: list[str] = []
        dots: list[str] = []
        routers: list[str] = []
        for terminal, switch in zip(fabric.endport_terminal.tolist(), fabric.endport_switch.tolist(), strict=True):
            if switch >= 0 and terminal in points:
                (x, y), (u, v) = points[terminal], self.points[switch].tolist()
                cables.append(f"M{_round(u)} {_round(v)}L{_round(x)} {_round(y)}")
        for terminal, (x, y) in points.items():
            kind = routers if fabric.terminal_kind[terminal] == NodeKind.ROUTER else dots
            kind.append(f"M{_round(x)} {_round(y)}h0")
            self.extent.append((x, y))
        yield f'<path class="e" d="{"".join(cables)}"/>'
        yield from (
            f'<path class="{name}" d="{"".join(some)}"/>' for name, some in (("ca", dots), ("r", routers)) if some
        )

    def _terminal_points(self) -> dict[int, tuple[float, float]]:
        """Return the point of each terminal that is cabled to a switch.  The terminals of a switch form a fan."""
        fabric, kind = self.picture.fabric, self.picture.layout.kind
        at: dict[int, list[int]] = {}
        seen: set[int] = set()
        for terminal, switch in zip(fabric.endport_terminal.tolist(), fabric.endport_switch.tolist(), strict=True):
            if switch >= 0 and terminal not in seen:
                seen.add(terminal)
                at.setdefault(switch, []).append(terminal)
        cx, cy = self.points.mean(axis=0).tolist()
        points = {}
        for switch, terminals in at.items():
            x, y = self.points[switch].tolist()
            away = math.atan2(y - cy, x - cx) if math.hypot(x - cx, y - cy) > 1 else math.pi / 2
            towards = {"levels": math.pi / 2, "grid": math.pi / 4}.get(kind, away)
            step = min(0.6, 2.6 / max(len(terminals), 1))
            for number, terminal in enumerate(terminals):
                angle = towards + step * (number - (len(terminals) - 1) / 2)
                reach = 18.0 if kind == "grid" else 24.0
                points[terminal] = (x + reach * math.cos(angle), y + reach * math.sin(angle))
        return points

    def marked(self) -> Iterator[str]:
        """Draw the most loaded channel, and on top of it the channels of the credit loop."""
        data = "".join(self._curve(cable, direction) for cable, direction in self.picture.loop)
        if data:
            yield f'<path class="loop under" d="{data}"/>'
        if self._busiest is not None:
            yield f'<path class="busy" d="{self._curve(*self._busiest)}"><title>{MOST_LOADED}</title></path>'
        if data:
            words = escape(_line(self.picture.loop_lines[0])) if self.picture.loop_lines else "credit loop"
            yield f'<path class="loop" d="{data}"><title>{words}</title></path>'

    def arrows(self) -> Iterator[str]:
        """Draw arrows in the directions of the most loaded channel and of the channels of the credit loop."""
        if self._busiest is not None and self._busiest not in self.picture.loop:
            yield f'<path class="arrow of-busy" d="{self._arrow(*self._busiest, 1.5)}"/>'
        if self.picture.loop:
            data = "".join(self._arrow(cable, direction) for cable, direction in self.picture.loop)
            yield f'<path class="arrow" d="{data}"/>'

    def _ends_and_control(self, cable: int, direction: int) -> tuple[Points, Points, Points]:
        """Return both ends of a channel, and the control point of its quadratic curve."""
        ends = self.picture.cables.ends[cable].tolist()
        a, b = self.points[ends[direction]], self.points[ends[1 - direction]]
        return a, b, 2 * self._middle_points[cable] - (a + b) / 2

    def _curve(self, cable: int, direction: int) -> str:
        """Return the SVG path data of a channel."""
        a, b, control = self._ends_and_control(cable, direction)
        return f"M{_pair(a)}Q{_pair(control)} {_pair(b)}"

    def _arrow(self, cable: int, direction: int, scale: float = 1.0) -> str:
        """Return the SVG path data of an arrow in the direction of a channel."""
        # In large pictures, arrows have to be larger than switches.
        size = scale * min(4.0, max(1.0, self._lines_width / 500))
        a, b, control = self._ends_and_control(cable, direction)
        at = 0.3025 * a + 0.495 * control + 0.2025 * b  # The point at parameter 0.45 of the quadratic curve.
        heading = (b - a) / max(float(np.hypot(*(b - a))), 1e-9)
        side = np.array([-heading[1], heading[0]])
        corners = (at + 7 * size * heading, *(at - 3 * size * heading + turn * size * side for turn in (4, -4)))
        return "M" + "L".join(map(_pair, corners)) + "Z"

    def switches(self) -> Iterator[str]:
        """Draw the switches, each with its title.  Their names are drawn if there are few enough switches."""
        fabric, lost = self.picture.fabric, self.picture.lost_switches
        cabled = np.bincount(fabric.link_device.reshape(-1), minlength=fabric.switches)
        points = self.picture.layout.xy.tolist()
        yield '<g id="switches">'
        for row, (x, y) in enumerate(points):
            words = escape(_line(f"{fabric.labels[row]}: {switch_facts(self.picture, row, int(cabled[row]))}"))
            gone = ' class="gone"' if lost[row] else ""
            first = ' tabindex="0"' if row == 0 else ""
            where = f'cx="{x}" cy="{y}" r="{self.radius}"'
            yield f'<circle id="s{row}"{gone} {where}{first}><title>{words}</title></circle>'
        yield "</g>"
        yield from self._names()

    def _names(self) -> Iterator[str]:
        """Draw the names of the switches, except for names that would cover another name."""
        fabric, drawn = self.picture.fabric, np.zeros((0, 2))
        if fabric.switches > NAMED_UP_TO:
            return
        for row, (x, y) in enumerate(self.picture.layout.xy.tolist()):
            text = _line(system_name(fabric.switch_name[row]) or fabric.labels[row])
            # A long name is cut at its beginning, because names often differ only at the end.
            shown = text if len(text) <= NAME else "…" + text[1 - NAME :]
            near = np.abs(drawn - (x, y)) < (LETTER * len(shown), 12)
            if not near.all(axis=1).any():
                drawn = np.vstack([drawn, (x, y)])
                half = LETTER * len(shown) / 2
                self.extent += [(x - half, y), (x + half, y)]
                yield f'<text x="{x}" y="{y - 11}">{escape(shown)}</text>'

    def legend(self) -> Iterator[str]:
        """Draw the legend below the picture.  Each row of the legend explains one kind of line."""
        left, top, width, height = self.frame()
        size = max(10, width // 105, height // 60)
        rows = list(self._legend_rows())
        y = top + height - MARGIN + 2 * size
        for number, (kind, text) in enumerate(rows):
            line = y + number * round(1.6 * size)
            x = left + MARGIN // 2
            if kind:
                yield f'<path class="{kind} sample" d="M{x} {line - size // 3}h{3 * size}"/>'
            left_of_text = x + 4 * size if kind else x
            yield f'<text class="key" style="font-size:{size}px" x="{left_of_text}" y="{line}">{escape(text)}</text>'
            self.extent.append((x + 4 * size + 0.55 * size * len(text) - MARGIN, line))

    def _legend_rows(self) -> Iterator[tuple[str, str]]:
        """Yield the rows of the legend: the SVG class of each kind of line in the picture, and its meaning."""
        found = set(self.picture.classes.tolist())
        percent = [f"{100 * step:.0f}" for step in (0.0, *STEPS)]
        meanings = {
            0: ("l0", f"{self.picture.values_title}: none"),
            **{
                number: (f"l{number}", f"{percent[number - 1]} to {percent[number]} % of the largest")
                for number in range(1, 5)
            },
            5: ("l5", "cable between switches"),
            6: ("l6", "lost cable"),
            7: ("l7", f"{self.picture.values_title}: unknown"),
        }
        if found & set(range(1, 5)):
            yield "", f"{self.picture.values_title}:"
        yield from (meaning for number, meaning in meanings.items() if number in found)
        if self._busiest is not None:
            yield "busy", MOST_LOADED
        if self.picture.loop:
            yield "loop", "credit loop"


def _places_among_parallels(ends: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the offset of each cable from the straight line between its switches: float64[N].

    The unit of the offset is the distance between two parallel cables that are drawn side by side.
    A single cable has the offset 0, two parallel cables have -0.5 and 0.5, three parallel cables have -1, 0 and 1.
    """
    if len(ends) == 0:
        return np.zeros(0)
    pair = ends.min(axis=1) * (int(ends.max()) + 1) + ends.max(axis=1)
    order = np.argsort(pair, kind="stable")
    _, first, count = np.unique(pair[order], return_index=True, return_counts=True)
    rank = np.empty(len(ends))
    rank[order] = np.arange(len(ends)) - np.repeat(first, count) - np.repeat((count - 1) / 2, count)
    return rank


def switch_facts(picture: Picture, row: int, cabled: int) -> str:
    """Describe a switch in a few words: ports, end ports, and its level in a tree.

    ``row`` is the row of the switch, and ``cabled`` the number of its ports with a cable.
    """
    fabric, level = picture.fabric, picture.layout.level
    cas = int(fabric.terminals_at[row])
    return ", ".join([
        f"{cabled} of {count_noun(int(fabric.switch_ports[row]), 'port')} cabled",
        *([count_noun(cas, "end port")] if cas else []),
        *([f"level {int(level[row])}"] if level is not None else []),
        *(["lost"] if picture.lost_switches[row] else []),
    ])  # fmt: skip


def _round(value: float) -> int:
    return math.floor(round(float(value), 3) + 0.5)


def _pair(point: npt.NDArray[np.float64]) -> str:
    return f"{_round(point[0])} {_round(point[1])}"
