"""Print the output of commands: results on standard output, and progress on standard error if it is a terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from routing.names import escape_control

if TYPE_CHECKING:
    from rich.table import Table

Command = TypeVar("Command", bound=Callable[..., Any])
PIPE_WIDTH = 200
"""Width in columns of a table that is not printed on a terminal."""


def echo_lines(*lines: str, err: bool = False) -> None:
    """Print lines of text.  Characters that are not printable, such as a newline in a name, are escaped."""
    click.echo("\n".join(map(escape_control, lines)), err=err)


def json_option(command: Command) -> Command:
    """Add the option ``--json`` to a command, as the parameter ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")(command)


def to_json_types(value: Any) -> Any:
    """Convert a value to types that JSON has.

    Arrays become lists, NumPy scalars become Python numbers, and infinity and NaN become None.
    """
    if isinstance(value, Mapping):
        return {str(key): to_json_types(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json_types(item) for item in value]
    if hasattr(value, "tolist"):
        return to_json_types(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def input_warnings() -> list[str]:
    """Return the warnings about input files of the running command, as a list that callers may extend."""
    context = click.get_current_context(silent=True)
    warnings: list[str] = [] if context is None else context.meta.setdefault("routing.cli.warnings", [])
    return warnings


def print_json(value: Mapping[str, Any]) -> None:
    """Print an object as JSON on standard output.  The key ``warnings`` is added if there were warnings."""
    warnings = input_warnings()
    whole = {**value, "warnings": warnings} if warnings else value
    click.echo(json.dumps(to_json_types(whole), indent=2, allow_nan=False))


def print_rows(summary: Iterable[tuple[str, str]]) -> None:
    """Print rows of a name and a value, with the values aligned."""
    rows = list(summary)
    wide = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        echo_lines(f"{name:<{wide}}  {value}".rstrip())


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 1) -> None:
    """Print a table.  The first ``texts`` columns are text, aligned left, and the others numbers, aligned right."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table: Table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < texts else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(escape_control, row))
    width = None if Console().is_terminal else PIPE_WIDTH
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    with console.capture() as printed:
        console.print(table)
    for line in printed.get().strip("\n").split("\n"):
        click.echo(line.rstrip())


def hint(text: str) -> None:
    """Print a hint about a next step on standard error, if that is a terminal."""
    from rich.console import Console

    if Console(stderr=True).is_terminal:
        echo_lines(text, err=True)


@contextmanager
def spinner(text: str) -> Iterator[None]:
    """Show on a terminal the current step (``text``) and its elapsed time.  If standard error is not a terminal, show
    nothing.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        progress.add_task(escape_control(text), total=None)
        yield


@contextmanager
def progress_bar(text: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show on a terminal the number of finished items out of ``total``, the rate and the remaining time.

    The context's value is a function to call with the number of items that were completed since the last call.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        """Column of the progress bar that shows the number of items per second."""

        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:.1f}/s" if task.speed else "")

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(text, total=total)
        yield lambda done: progress.advance(task, done)
