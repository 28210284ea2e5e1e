"""Fit lines and tables of a command to the width of a terminal."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence

PIPE_WIDTH = 200
"""Width in columns of a table that is not printed on a terminal."""
GAP = 2
"""Number of blanks between the columns of a table in which each row takes several lines."""


def terminal_width() -> int | None:
    """Return the width of the terminal on standard output in columns; None if standard output is not a terminal."""
    # If the environment variable FORCE_COLOR is set, any output counts as a terminal, as in the library rich.
    if not sys.stdout.isatty() and not os.environ.get("FORCE_COLOR"):
        return None
    from rich.console import Console

    return Console().width


def fit(line: str, indent: int, width: int | None) -> list[str]:
    """Break a line between words into lines of at most ``width`` columns, with ``indent`` blanks before all lines but
    the first line.  A word that is longer than ``width`` is not broken.  If ``width`` is None, no line is broken.
    """
    if width is None or len(line) <= width:
        return [line]
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
        replace_whitespace=False,
    ) or [line]


def hanging(line: str) -> int:
    """Return the indent of the continuation of a line: two blanks more than the indent of the line itself."""
    return len(line) - len(line.lstrip(" ")) + 2


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]], texts: int, width: int | None) -> Iterator[str]:
    """Yield the lines of a table.  The first ``texts`` columns are texts, aligned left.  All other columns are numbers,
    aligned right.

    In a table that is wider than the terminal, cells are broken between words.  If the terminal is even too narrow for
    the longest word of each column, each row takes several lines: first its texts, then its numbers.
    """
    if width is not None and _narrowest(columns, rows) > width and texts < len(columns):
        stacked = _stacked(columns, rows, texts, width)
        if stacked is not None:
            yield from stacked
            return
    yield from _folded(columns, rows, texts, width or PIPE_WIDTH)


def _longest_word(cells: Sequence[str]) -> int:
    return max((len(word) for cell in cells for word in cell.split()), default=0)


def _narrowest(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return the width of a table in which every column is as wide as its longest word."""
    return sum(3 + _longest_word([columns[number], *(row[number] for row in rows)]) for number in range(len(columns)))


def _folded(columns: Sequence[str], rows: Sequence[Sequence[str]], texts: int, width: int) -> Iterator[str]:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table: Table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < texts else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = Console(highlight=False, markup=False, emoji=False, width=width, no_color=True, force_terminal=False)
    with console.capture() as printed:
        console.print(table)
    for line in printed.get().strip("\n").split("\n"):
        yield line.rstrip()


def _stacked(columns: Sequence[str], rows: Sequence[Sequence[str]], texts: int, width: int) -> list[str] | None:
    """Return the lines of a table in which the texts and the numbers of a row are on separate lines.

    If the numbers of a row do not fit on one line, they take several lines.  The names of their columns, at the top of
    the table, are then divided in the same manner.  Return None if a single number does not fit into ``width``
    characters.
    """
    wide = [
        max(_longest_word([columns[number]]), *(len(row[number]) for row in rows), 1)
        for number in range(texts, len(columns))
    ]
    if GAP + max(wide) > width:
        return None
    groups = _side_by_side(wide, width)

    def line(cells: Sequence[str], group: slice) -> str:
        return "".join(f"{'':{GAP}}{cell:>{size}}" for cell, size in zip(cells, wide[group], strict=True)).rstrip()

    lines = ["", ", ".join(filter(None, columns[:texts]))]
    for group in groups:
        heads = [re.split(r"[ ]+", column) for column in columns[texts:][group]]
        height = max(map(len, heads))
        lines += [
            line(words, group) for words in zip(*([""] * (height - len(head)) + head for head in heads), strict=True)
        ]
    lines.append(" " * GAP + "─" * (max(GAP * len(wide[group]) + sum(wide[group]) for group in groups) - GAP))
    for row in rows:
        lines += fit(", ".join(cell for cell in row[:texts] if cell), 4, width)
        lines += [line(row[texts:][group], group) for group in groups]
    return [*lines, ""]


def _side_by_side(wide: Sequence[int], width: int) -> list[slice]:
    """Divide the columns of a table into groups of neighbouring columns that fit on a line of ``width`` characters.

    ``wide`` has the width of each column.
    """
    groups, first, used = [], 0, 0
    for number, size in enumerate(wide):
        if used + GAP + size > width:
            groups.append(slice(first, number))
            first, used = number, 0
        used += GAP + size
    return [*groups, slice(first, len(wide))]
