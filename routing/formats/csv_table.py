"""Tables of reports, and their text as CSV (RFC 4180)."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Table:
    """A table of a report.

    Attributes
    ----------
    title
        Noun for the rows, such as "channels", as title of the table.
    columns
        Names of the columns.
    rows
        The cells; None where a value is unknown.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @classmethod
    def of(cls, title: str, records: Sequence[Mapping[str, object]], columns: Sequence[str] | None = None) -> Table:
        """Return a table with one row for each record.

        The columns are ``columns``, or all keys of the records if ``columns`` is None.  A list in a cell becomes a text
        with ``; `` between the items.
        """
        names = tuple(columns if columns is not None else dict.fromkeys(name for each in records for name in each))
        return cls(title, names, tuple(tuple(plain_cell(each.get(name)) for name in names) for each in records))

    def records(self) -> list[dict[str, Cell]]:
        """Return the rows as mappings from column to cell."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def plain_cell(value: object) -> Cell:
    """Return a value as the cell of a table.  Infinity and NaN become None, and lists become text."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return "; ".join(f"{key} {plain_cell(item)}" for key, item in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return "; ".join(str(plain_cell(item)) for item in value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def csv_text(table: Table) -> str:
    """Return a table as CSV with a header line.

    An unknown value becomes an empty cell.  True becomes "yes", and False becomes "no".
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_csv_cell(cell) for cell in row] for row in table.rows)
    return text.getvalue()


def _csv_cell(cell: Cell) -> str | int | float | None:
    return ("yes" if cell else "no") if isinstance(cell, bool) else cell
