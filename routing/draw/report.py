"""Define a report: a title, a summary, tables and a picture.  Commands write a report as HTML or CSV, and the library
shows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from routing.draw.page import MOST_BYTES, page_text
from routing.draw.picture import Picture
from routing.errors import OptionError
from routing.formats.atomic import write_text_atomically
from routing.formats.csv_table import Table, csv_text


@dataclass(frozen=True, eq=False)
class Report:
    """Contents of a report.

    Attributes
    ----------
    title
        Title of the report.
    summary
        Rows of a name and a text.
    tables
        Tables of the report.  The main table comes first.
    picture
        Function that makes the picture.  The function is called only if the picture is needed.  None: no picture.
    """

    title: str
    summary: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...] = ()
    picture: Callable[[], Picture] | None = None

    def html(self, *, most_bytes: int = MOST_BYTES) -> str:
        """Return the report as an HTML page (:func:`routing.draw.page.page_text`)."""
        picture = None if self.picture is None else self.picture()
        return page_text(self.title, self.summary, self.tables, picture, most_bytes=most_bytes)

    def write(self, path: Path) -> None:
        """Write the report as a page (``.html``), or its main table (``.csv``).

        Raises
        ------
        OptionError
            The file has another suffix, or the report has no table for a CSV file.
        EnvironmentProblem
            The file cannot be written.
        """
        if path.suffix == ".csv" and self.tables:
            write_text_atomically(path, csv_text(self.tables[0]))
        elif path.suffix in (".html", ".htm"):
            write_text_atomically(path, self.html())
        else:
            known = ".html or .csv" if self.tables else ".html"
            raise OptionError(f"{path}: no report has the suffix {path.suffix!r}", remedy=f"use {known}")
