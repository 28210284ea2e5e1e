"""Print the output of commands.  Results go to standard output.  Progress goes to standard error if standard error is a
terminal.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from routing.cli.text_layout import fit, hanging, table_lines, terminal_width
from routing.names import escape_control, guid_text

if TYPE_CHECKING:
    from routing.fabric import Fabric

Command = TypeVar("Command", bound=Callable[..., Any])


def echo_lines(*lines: str, err: bool = False) -> None:
    """Print lines of text.  Characters that are not printable, such as a newline in a name, are escaped.

    On a terminal, long lines are broken between words.  With ``err``, the lines go to standard error, and are not
    broken.
    """
    width = None if err else terminal_width()
    for line in map(escape_control, lines or ("",)):
        click.echo("\n".join(fit(line, hanging(line), width)), err=err)


def json_option(command: Command) -> Command:
    """Add the option ``--json`` to a command, as the parameter ``as_json``."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object instead of text (see ibnue schema)."
    )(command)


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
    """Return the list of warnings about the input files of the running command.  Callers may extend the list."""
    context = click.get_current_context(silent=True)
    warnings: list[str] = [] if context is None else context.meta.setdefault("routing.cli.warnings", [])
    return warnings


def print_json(schema: str, value: Mapping[str, Any]) -> None:
    """Print the JSON document of a command on standard output.

    The document has the key ``schema``, then the keys of the results, and at the end the key ``warnings``.  If a
    command reads a fabric, its results usually begin with the key ``fabric`` (:func:`fabric_object`).

    Parameters
    ----------
    schema
        Name and version of the schema.  For example, "ibnue-check/1" is version 1 of the schema in the file
        ``schemas/check.json`` of this package.
    value
        The results, as a mapping from keys to values.
    """
    whole = {"schema": schema, **value, "warnings": input_warnings()}
    click.echo(json.dumps(to_json_types(whole), indent=2, allow_nan=False))


def fabric_object(fabric: Fabric, source: str | None) -> dict[str, Any]:
    """Return the object that identifies a fabric in JSON documents, usually as the value of the key ``fabric``.

    Parameters
    ----------
    fabric
        The fabric.
    source
        File or generator that the user named as the source of the fabric; None if there is no such name.
    """
    inside = int(fabric.aggregation_nodes.sum())
    cas, routers = ((fabric.terminal_kind[~fabric.aggregation_nodes] == kind).sum() for kind in (1, 2))
    return {
        "name": fabric.name,
        "source": source,
        "digest": fabric.digest,
        "switches": fabric.switches,
        "cas": int(cas),
        "routers": int(routers),
        "aggregation_nodes": inside,
        "end_ports": fabric.endports,
        "links": fabric.links,
        "parts": 1 + int(fabric.component.max(initial=-1)),
    }


def channel_object(fabric: Fabric, channel: int) -> dict[str, Any]:
    """Return a channel between two switches as an object for ``--json``: both of its ports."""
    channels = fabric.channels
    source, target = int(channels.src[channel]), int(channels.dst[channel])
    return {
        "switch_guid": guid_text(int(fabric.switch_guid[source])),
        "switch_name": fabric.switch_name[source],
        "port": int(channels.port[channel]),
        "peer_guid": guid_text(int(fabric.switch_guid[target])),
        "peer_name": fabric.switch_name[target],
        "peer_port": int(channels.dst_port[channel]),
    }


def print_rows(summary: Iterable[tuple[str, str]]) -> None:
    """Print rows of a name and a value, with the values aligned."""
    rows = list(summary)
    wide = max((len(name) for name, _ in rows), default=0)
    width = terminal_width()
    for name, value in rows:
        line = escape_control(f"{name:<{wide}}  {value}".rstrip())
        click.echo("\n".join(fit(line, wide + 2, width)))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 1) -> None:
    """Print a table.  The first ``texts`` columns are texts and are aligned left.  All other columns are numbers and
    are aligned right.
    """
    cells = [[escape_control(cell) for cell in row] for row in rows]
    for line in table_lines(columns, cells, texts, terminal_width()):
        click.echo(line)


def error_is_terminal() -> bool:
    """Return whether standard error is a terminal, or is to be treated as a terminal.

    The library rich gives the result.  Loading rich takes longer than many commands.  So rich is loaded only if
    standard error is a terminal, or if an environment variable such as FORCE_COLOR is set.
    """
    if not (sys.stderr.isatty() or os.environ.keys() & {"FORCE_COLOR", "TTY_COMPATIBLE"}):
        return False
    from rich.console import Console

    return Console(stderr=True).is_terminal


def hint(text: str) -> None:
    """Print a hint about a next step on standard error, if standard error is a terminal."""
    if error_is_terminal():
        echo_lines(text, err=True)


@contextmanager
def spinner(text: str, *, slow: bool = False) -> Iterator[None]:
    """Show the current step (``text``) and its elapsed time, if standard error is a terminal.

    If standard error is not a terminal, print ``text`` as one line on standard error if ``slow`` is true.  Otherwise
    print nothing.
    """
    if not error_is_terminal():
        if slow:
            echo_lines(text, err=True)
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        progress.add_task(escape_control(text), total=None)
        yield


@contextmanager
def progress_bar(text: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show on a terminal the number of finished items out of ``total``, the rate and the remaining time.

    The result is a context manager.  Its value is a function, which the caller calls with the number of items that were
    finished since the last call.
    """
    if not error_is_terminal():
        yield lambda done: None
        return
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
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(text, total=total)
        yield lambda done: progress.advance(task, done)
