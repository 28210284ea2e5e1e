"""How commands talk: facts on standard output, progress on standard error if somebody is watching."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from routing.names import escaped

if TYPE_CHECKING:
    from rich.table import Table

Command = TypeVar("Command", bound=Callable[..., Any])
PIPE_WIDTH = 200
"""Columns of a table that no terminal limits."""


def tell(*lines: str, err: bool = False) -> None:
    """Print lines for people; a line end within one, as names may have, is an escape like all that is not printable."""
    click.echo("\n".join(map(escaped, lines)), err=err)


def json_option(command: Command) -> Command:
    """Give a command the option ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON object instead of text.")(command)


def plain(value: Any) -> Any:
    """The value in types that JSON knows: arrays as lists, numpy's numbers as Python's, None for infinite ones."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on standard output."""
    click.echo(json.dumps(plain(value), indent=2, allow_nan=False))


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Lines of a name and a value, the values aligned."""
    rows = list(facts)
    wide = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        tell(f"{name:<{wide}}  {value}".rstrip())


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 1) -> None:
    """A table whose first ``texts`` columns are text and whose others are numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table: Table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < texts else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(escaped, row))
    width = None if Console().is_terminal else PIPE_WIDTH
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    with console.capture() as printed:
        console.print(table)
    for line in printed.get().strip("\n").split("\n"):
        click.echo(line.rstrip())


@contextmanager
def phase(text: str) -> Iterator[None]:
    """Show what is going on and for how long, on a terminal only."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        progress.add_task(escaped(text), total=None)
        yield


@contextmanager
def counted(text: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show how many of a number of things are done, how fast it goes and how long it will take, on a terminal only.

    Gives a function that is to be told how many more are done.
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
        """Things a second."""

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
