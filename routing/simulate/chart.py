"""Draw line charts of time series as SVG."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from routing.names import escape_control

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#555555", "#bb7733")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, GAP = 760, 190, 56, 190, 50, 46
MOST_LINES = 8

Lines = Mapping[str, npt.NDArray[np.float64]]


def _text(text: str) -> str:
    """Return a text for SVG, with its control characters and its markup characters escaped."""
    return html.escape(escape_control(text))


def _ticks(most: float) -> list[float]:
    """Return round numbers from 0 to about ``most`` as labels of an axis."""
    if most <= 0:
        return [0.0]
    size = 10.0 ** np.floor(np.log10(most))
    step = next(float(size * part) for part in (0.2, 0.5, 1.0, 2.0) if most / (size * part) <= 6)
    return [float(number) for number in np.arange(0.0, most * 1.001, step)]


def _panel(title: str, time: npt.NDArray[np.float64], lines: Lines, top: float) -> list[str]:
    """Draw one chart with its axes and a legend, and return its SVG elements.

    ``time`` has the time of each point, and ``lines`` has the values of each line by the name of the line.  Only the
    first eight lines are drawn.  ``top`` is the y coordinate of the upper edge of the chart.
    """
    shown = list(lines.items())[:MOST_LINES]
    most = max((float(np.nanmax(values, initial=0.0)) for _, values in shown), default=0.0) or 1.0
    end = float(time[-1]) if len(time) and time[-1] > 0 else 1.0

    def x(value: float) -> float:
        return LEFT + value / end * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return top + HEIGHT * (1 - value / most)

    parts = [f'<text x="{LEFT}" y="{top - 8:.1f}" class="title">{_text(title)}</text>']
    for value in _ticks(most):
        parts.append(f'<path class="grid" d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    low = f'y="{top + HEIGHT + 15:.1f}" text-anchor="middle"'
    parts += [f'<text x="{x(value):.1f}" {low}>{value:g}</text>' for value in _ticks(end)]
    for number, (name, values) in enumerate(shown):
        pairs = [(a, b) for a, b in zip(time.tolist(), values.tolist(), strict=True) if not np.isnan(b)]
        points = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in pairs)
        colour, height = COLOURS[number], top + 6 + 18 * number
        parts.append(f'<polyline fill="none" stroke="{colour}" points="{points}"/>')
        parts.append(f'<path stroke="{colour}" stroke-width="3" d="M{WIDTH - RIGHT + 12} {height}h18"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 36}" y="{height + 4}">{_text(name)}</text>')
    return parts


def chart(title: str, note: str, time: npt.NDArray[np.float64], panels: Sequence[tuple[str, Lines]]) -> str:
    """Draw panels stacked over a common time axis, as an SVG document.

    Parameters
    ----------
    title
        Title of the document.
    note
        Line below the title, such as the settings of the run.
    time
        float64[n]: time of each point, in packet times.
    panels
        Title of each panel, and the lines of the panel by name, float64[n] each.  The first eight lines of a panel are
        drawn.  Points that are NaN are left out.
    """
    height = TOP + len(panels) * (HEIGHT + GAP) + 4
    body = [f'<text x="{LEFT}" y="18" class="title">{_text(title)}</text>']
    body.append(f'<text x="{LEFT}" y="34" class="note">{_text(note)}</text>')
    for number, (name, lines) in enumerate(panels):
        body += _panel(name, time, lines, TOP + 20 + number * (HEIGHT + GAP))
    style = "text{font:12px sans-serif}.title{font-weight:bold}.note{font-size:9px}.grid{stroke:#ddd}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
    background = f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
    return "\n".join(
        [head, f"<title>{_text(title)}</title>", f"<style>{style}</style>", background, *body, "</svg>", ""]
    )
