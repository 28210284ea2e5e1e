"""Draw SVG pictures of small fabrics, with identical bytes on every machine."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import escape

from fixture_layout import Point, switch_places, terminal_places

from routing.fabric import Fabric, NodeKind

BOX = (30, 18)
MARGIN = 14
SLOWEST = 8.0
"""Capacity in Gb/s of a 4xSDR link, which is drawn with the default stroke width."""
STYLE = (
    "text{font:9px sans-serif;text-anchor:middle;fill:#123}"
    ".s{fill:#d8e8f6;stroke:#27527a}.c{fill:#444}.r{fill:#b5651d}"
    "path{fill:none;stroke:#5b6b7a;stroke-width:1.3}.e{stroke:#aab}.x{stroke:#d33;stroke-dasharray:3 3}"
)


def picture(fabric: Fabric, layout: str, title: str, pulled: Sequence[tuple[int, int]] = ()) -> str:
    """Draw a fabric as an SVG document.

    Switches are boxes, CAs are dots, routers are diamonds.  Faster links are thicker.  A red dashed line is a link that
    was removed.

    Parameters
    ----------
    fabric, layout
        Fabric to draw, and its layout (:func:`fixture_layout.switch_places`).
    title
        Title of the document, for readers who cannot see the picture.
    pulled
        Pairs of switch rows between which a link was removed.
    """
    switches = switch_places(fabric, layout)
    drawing = _Drawing(fabric, switches, [*switches, *terminal_places(fabric, layout, switches)])
    body = [*drawing.links(), *drawing.missing(pulled), *drawing.terminals(), *drawing.boxes()]
    left, top, width, height = drawing.frame()
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left} {top} {width} {height}" '
        f'width="{width}" height="{height}">'
    )
    background = f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="#fff"/>'
    return "\n".join(
        [head, f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>", background, *body, "</svg>", ""]
    )


def _whole(number: float) -> int:
    """Round a coordinate to three decimals first, and then to an integer.

    Machines may compute sines that differ in the last bit.  Near a half, rounding directly to an integer could then
    give two different results.  The first step removes the difference.
    """
    return math.floor(round(number, 3) + 0.5)


class _Drawing:
    """Generator of the SVG elements of a picture, given the coordinates of all devices."""

    def __init__(self, fabric: Fabric, switches: Sequence[Point], positions: Sequence[Point]) -> None:
        self.fabric = fabric
        self.places = positions
        self.middle = (
            sum(x for x, _ in positions) / max(len(positions), 1),
            sum(y for _, y in positions) / max(len(positions), 1),
        )
        self.switches = switches
        self.extent = [point for x, y in positions for point in ((x - 18, y - 14), (x + 18, y + 14))]

    def frame(self) -> tuple[int, int, int, int]:
        """Return left, top, width and height of the box around all elements drawn so far."""
        xs, ys = [x for x, _ in self.extent], [y for _, y in self.extent]
        left, top = _whole(min(xs)) - MARGIN, _whole(min(ys)) - MARGIN
        return left, top, _whole(max(xs)) + MARGIN - left, _whole(max(ys)) + MARGIN - top

    def links(self) -> Iterator[str]:
        """Draw every cable.  Parallel cables are side by side, and a cable that would cross a switch is a curve around
        the switch.
        """
        together: dict[tuple[int, int], list[int]] = defaultdict(list)
        for link, (a, b) in enumerate(self.fabric.link_device.tolist()):
            together[a, b].append(link)
        for (a, b), links in together.items():
            bow = self._bow(a, b)
            for i, link in enumerate(links):
                shift = 9.0 * (i - (len(links) - 1) / 2)
                kind = ' class="e"' if b >= self.fabric.switches else ""
                speed = float(self.fabric.link_capacity[link]) / SLOWEST
                thick = f' style="stroke-width:{1.3 * speed**0.4:.1f}"' if speed != 1 else ""
                path = self._loop(a, i) if a == b else self._curve(a, b, bow + shift)
                yield f'<path{kind} d="{path}"{thick}/>'

    def missing(self, pulled: Sequence[tuple[int, int]]) -> Iterator[str]:
        """Draw the links that were removed, as dashed lines.

        ``pulled`` lists the rows of the switches at both ends of each link.
        """
        left = {tuple(sorted(ends)) for ends in self.fabric.link_device.tolist()}
        for a, b in pulled:
            beside = 6.0 if tuple(sorted((a, b))) in left else 0.0
            yield f'<path class="x" d="{self._curve(a, b, self._bow(a, b) + beside)}"/>'

    def terminals(self) -> Iterator[str]:
        """Draw the CAs and routers."""
        for row in range(self.fabric.terminals):
            x, y = map(_whole, self.places[self.fabric.switches + row])
            if self.fabric.terminal_kind[row] == NodeKind.ROUTER:
                yield f'<path class="r" style="fill:#b5651d" d="M{x - 6} {y}l6 -6l6 6l-6 6z"/>'
            else:
                yield f'<circle class="c" cx="{x}" cy="{y}" r="4"/>'

    def boxes(self) -> Iterator[str]:
        """Draw the switches and their names.  The prefix ``sw`` of a name is left out."""
        width, height = BOX
        for name, position in zip(self.fabric.switch_name, self.places, strict=False):
            x, y = map(_whole, position)
            label = name.removeprefix("sw")
            under = y + 3 if len(label) <= 6 else y + 20
            if under != y + 3:
                half = 2.6 * len(label)
                self.extent += [(x - half, y), (x + half, y + 22)]
            yield (
                f'<rect class="s" x="{x - width // 2}" y="{y - height // 2}" width="{width}" height="{height}" rx="3"/>'
            )
            yield f'<text x="{x}" y="{under}">{escape(label)}</text>'

    def _bow(self, a: int, b: int) -> float:
        """Return the distance by which the middle of a link must move aside, so that the link crosses no switch.

        The distance is 0 if the straight line between switches ``a`` and ``b`` crosses no switch.
        """
        (ax, ay), (bx, by) = self.places[a], self.places[b]
        length = math.hypot(bx - ax, by - ay)
        for row, (x, y) in enumerate(self.switches):
            if row in (a, b) or not length:
                continue
            along = ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length**2
            aside = abs((x - ax) * (by - ay) - (y - ay) * (bx - ax)) / length
            if 0.02 < along < 0.98 and aside < 0.5 * BOX[1]:
                return 22.0 + 0.07 * length
        return 0.0

    def _curve(self, a: int, b: int, aside: float) -> str:
        (ax, ay), (bx, by) = self.places[a], self.places[b]
        start, end = f"{_whole(ax)} {_whole(ay)}", f"{_whole(bx)} {_whole(by)}"
        length = math.hypot(bx - ax, by - ay)
        if not aside or not length:
            return f"M{start}L{end}"
        # `aside` is the distance of the curve's middle from the straight line.  The control point of a quadratic Bezier
        # curve is twice as far from the straight line as the curve's middle.
        px, py = 2 * aside * (by - ay) / length, -2 * aside * (bx - ax) / length
        middle = ((ax + bx) / 2 + px, (ay + by) / 2 + py)
        self.extent.append(((ax + bx + px) / 2, (ay + by + py) / 2))
        return f"M{start}Q{_whole(middle[0])} {_whole(middle[1])} {end}"

    def _loop(self, switch: int, number: int) -> str:
        x, y = map(_whole, self.places[switch])
        rise = 26 + 10 * number
        self.extent.append((x - 20, y - rise))
        return f"M{x - 8} {y}C{x - 22} {y - rise} {x + 22} {y - rise} {x + 8} {y}"
