"""Draw the tables of benchmark records as SVG plots: a bar for each new figure, and a mark at the stored figure."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.records import Record, tables

ROW, LABEL, PANEL, GAP, MOST_ROWS, MOST_PANELS = 16, 230, 150, 22, 60, 6
STYLE = (
    "text{font:11px sans-serif;fill:#222}.h{font-weight:bold}.b{fill:#4477aa}.s{stroke:#cc3311;stroke-width:2}"
    "@media(prefers-color-scheme:dark){svg{background:#15181b}text{fill:#dde}.b{fill:#77aadd}}"
)


def plot(record: Record, stored: Record | None) -> str | None:
    """Return the SVG plot of a record, or None if the record has no table with figures.

    Each column of figures has its own panel.  The scale of a panel ends at the largest figure of its column.

    Parameters
    ----------
    record
        The record to plot.  Each of its figures is a bar.
    stored
        An earlier record of the same benchmark, or None.  Each of its figures is a red mark on the bar.
    """
    before = [] if stored is None else [rows for _, rows in tables(stored.output)]
    parts: list[str] = []
    top = 24
    for number, (title, rows) in enumerate(tables(record.output)):
        old = before[number] if number < len(before) and before[number][0] == rows[0] else None
        drawn = list(_table(title, rows, old, top))
        if drawn:
            parts += drawn
            top += ROW * (min(len(rows) - 1, MOST_ROWS) + 3) + GAP
    if not parts:
        return None
    width = LABEL + MOST_PANELS * (PANEL + GAP)
    head = f'<text x="4" y="14" class="h">{_text(record.command)}, {record.date}, {record.commit}</text>'
    body = "\n".join([head, *parts])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" width="{width}" height="{top}">'
        f"<style>{STYLE}</style>\n{body}\n</svg>\n"
    )


def _table(title: str, rows: Sequence[Sequence[str]], old: Sequence[Sequence[str]] | None, top: int) -> Iterator[str]:
    """Yield the SVG elements of a table, or nothing if the table has no column of figures.

    Parameters
    ----------
    title
        Title of the table.
    rows
        Rows of cells.  The first row is the head.
    old
        Rows of the same table in the stored record, or None.
    top
        Vertical coordinate of the upper edge, in pixels.
    """
    head, body = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])][:MOST_ROWS]
    columns = [column for column in range(len(head)) if _is_numeric([row[column] for row in body])]
    labels = [column for column in range(len(head)) if column not in columns]
    columns = columns[:MOST_PANELS]
    if not columns:
        return
    known = {} if old is None else {_label(row, labels): row for row in old[1:] if len(row) == len(head)}
    yield f'<text x="4" y="{top + 12}" class="h">{_text(title)}</text>'
    for place, column in enumerate(columns):
        x = LABEL + place * (PANEL + GAP)
        yield f'<text x="{x}" y="{top + ROW + 12}" class="h">{_text(head[column])}</text>'
    for line, row in enumerate(body):
        y = top + ROW * (line + 2)
        yield f'<text x="4" y="{y + 12}">{_text(_label(row, labels)[:42])}</text>'
        before = known.get(_label(row, labels))
        for place, column in enumerate(columns):
            most = max((value for each in body if (value := _value(each[column])) is not None), default=0.0) or 1.0
            yield from _bar(row[column], None if before is None else before[column], most, (place, y))


def _bar(cell: str, before: str | None, most: float, at: tuple[int, int]) -> Iterator[str]:
    """Yield the SVG elements of a bar: the bar, its figure as text, and the mark of the stored figure.

    Parameters
    ----------
    cell
        The cell with the figure.
    before
        The cell with the stored figure, or None.
    most
        The figure at the end of the scale.
    at
        Coordinates of the upper left corner of the bar, in pixels.
    """
    value, was = _value(cell), None if before is None else _value(before)
    x, y = LABEL + at[0] * (PANEL + GAP), at[1]
    if value is None:
        return
    width = (PANEL - 50) / most
    yield f'<path class="b" d="M{x} {y + 2}h{max(0.5, value * width):.1f}v{ROW - 4}h-{max(0.5, value * width):.1f}z"/>'
    yield f'<text x="{x + max(0.5, value * width) + 4:.1f}" y="{y + 12}">{_text(cell)}</text>'
    if was is not None and was <= most:
        yield f'<path class="s" d="M{x + was * width:.1f} {y}v{ROW}"/>'


def _label(row: Sequence[str], labels: Sequence[int]) -> str:
    return " ".join(row[column] for column in labels).strip()


def _is_numeric(cells: Sequence[str]) -> bool:
    """Return whether each cell of a column has a number or is empty, and at least one cell has a number."""
    values = [_value(cell) for cell in cells if cell]
    return bool(values) and None not in values


def _value(cell: str) -> float | None:
    """Return the number in a cell, which may have a unit.  The result is None for other texts and negative numbers."""
    word = cell.removesuffix("%").strip()
    try:
        value = float(word)
    except ValueError:
        return None
    return value if value >= 0 else None


def _text(text: str) -> str:
    return html.escape(text)


def write_plots(folder: Path, found: dict[str, Record], stored: dict[str, Record]) -> list[str]:
    """Write an SVG plot of each record into a folder, and return the names of the benchmarks that have a plot.

    A record without a table of figures has no plot.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, record in sorted(found.items()):
        picture = plot(record, stored.get(name))
        if picture is not None:
            (folder / f"{name}.svg").write_text(picture, encoding="utf-8")
            drawn.append(name)
    return drawn
