"""Define ``--html`` and ``--csv``, by which a command writes its report into a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from routing.cli.output import spinner
from routing.errors import OptionError

if TYPE_CHECKING:
    from routing.draw.report import Report

Command = TypeVar("Command", bound=Callable[..., Any])
_FILES = "routing.cli.report_options.files"


def report_options(command: Command) -> Command:
    """Add ``--html`` and ``--csv`` to a command, which then calls :func:`write_reports`."""

    def keep(ctx: click.Context, param: click.Parameter, path: Path | None) -> None:
        if path is None:
            return
        if path.suffix != f".{param.name}":
            raise OptionError(
                f"--{param.name} {path} has another suffix", remedy=f"name a file that ends in .{param.name}"
            )
        ctx.meta.setdefault(_FILES, []).append(path)

    kind = click.Path(path_type=Path, dir_okay=False)
    for option in (
        click.option("--csv", type=kind, metavar="FILE", expose_value=False, callback=keep,
                     help="Write the table of the report as CSV."),
        click.option("--html", type=kind, metavar="FILE", expose_value=False, callback=keep,
                     help="Write the report as one HTML page, with a picture if there is a fabric."),
    ):  # fmt: skip
        command = option(command)
    return command


def write_reports(make: Callable[[], Report]) -> None:
    """Write the report that ``make`` returns into the files that ``--html`` and ``--csv`` name.

    If the user gave neither option, nothing is written, and ``make`` is not called.
    """
    wanted: list[Path] = click.get_current_context().meta.get(_FILES, [])
    if not wanted:
        return
    with spinner("writing the report"):
        report = make()
        for path in wanted:
            report.write(path)
