"""Define the command group, which imports the module of a command only when the command is called.  The group also
turns results into exit statuses.

A command returns its exit status: 0 or None if all is well, or 1 for a finding.  The group turns an exception in a
command into one line on standard error and an exit status.  So commands need no error handling.
"""

from __future__ import annotations

import difflib
import errno
import importlib
import itertools
import json
import os
import select
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import click

from routing import __version__
from routing.cli.output import input_warnings
from routing.errors import EnvironmentProblem, IbnueError, InputError, InputWarning, NotCollected, NotEnoughVLs
from routing.names import escape_control, join_lines

FINDING = 1
UNDECIDED = 3
"""Exit status if a question cannot be decided from the information in the files."""
BUG = 70
"""Exit status after an unexpected exception, which is a bug and is printed with its traceback."""
WRONG_USE = 2
INTERRUPTED = 130
OUTPUT_CLOSED = 128 + signal.SIGPIPE
TERMINATION_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command as Ctrl-C does, so that the command can clean up first."""

COMMANDS: Mapping[str, str] = {
    "collect": "Collect topology, tables, SLs of a live fabric; read only.",
    "route": "Compute the tables of a fabric, prove and write them.",
    "check": "Check whether tables are complete and free of credit loops.",
    "adaptive": "Compute and prove port groups for adaptive routing.",
    "quality": "Measure hops, channel loads, rates of traffic patterns.",
    "pause": "Predict paused links and the rates of given flows.",
    "watch": "Check whether counters of switches point at a credit loop.",
    "policy": "Check and apply rules for packet lifetimes and breakers.",
    "diff": "Report what differs between two sets of tables.",
    "compare": "Compare a fabric with its plan.",
    "sweep": "Route all combinations of engines, fabrics, faults, seeds.",
    "simulate": "Simulate packets and credits: does a credit loop deadlock?",
    "advise": "Compare all engines on a fabric, and recommend one.",
    "designs": "List designs for a number of hosts and size of switches.",
    "compare-designs": "Compare designs: cost, rates, hops, loss of a link.",
    "whatif": "Break links and switches, repair tables, report the cost.",
    "transition": "Check whether tables may be replaced while traffic runs.",
    "lab": "Run a real OpenSM with the plugin on a simulated fabric.",
    "plugin": "Build and manage the plugin for the installed OpenSM.",
    "draw": "Draw a fabric with loads, faults and a credit loop.",
    "slurm": "Write the topology file of Slurm.",
    "fabric": "Generate or read a fabric, and describe or write it.",
    "schema": "Print the JSON Schema of the JSON of a command.",
    "completion": "Print the completion script for a shell.",
}
"""Help line of each command.

The function of a command is in the module of the same name in this package, with ``_`` for ``-``.
"""


PLAINER = (("is not a valid integer range", "is not a whole number"), ("is not a valid float range", "is not a number"))
"""Replacements in click's error messages about arguments and options that must be numbers.  Each pair has a text of
click, and the plainer text that replaces it.
"""


def one_line(text: str) -> str:
    """Return a text as one line without control characters.  Every error is printed in this form."""
    return escape_control(join_lines(text))


@dataclass(frozen=True)
class Complaint:
    """An error in the form in which it is reported to the user.

    Attributes
    ----------
    message
        Description of the error.
    file, line
        File of the error and its line, counted from 1; None if unknown.
    remedy
        Remedy for the user; None if unknown.
    """

    message: str
    file: str | None = None
    line: int | None = None
    remedy: str | None = None

    def __str__(self) -> str:
        where = "" if self.file is None else f"{self.file}: " if self.line is None else f"{self.file}:{self.line}: "
        return one_line(f"{where}{self.message}" + (f" ({self.remedy})" if self.remedy else ""))


def usage_complaint(error: Any) -> Complaint:
    """Return the complaint about a wrong use of a command.  The complaint names the command whose ``--help`` explains
    more.
    """
    message = error.format_message()
    for words, plain in PLAINER:
        message = message.replace(words, plain)
    if error.ctx is not None and "fabric" in error.ctx.params:
        from routing.cli.fabric_argument import separate_words

        message = separate_words(error.ctx.params["fabric"], message) or message
    path = error.ctx.command_path if error.ctx is not None else "ibnue"
    return Complaint(message, remedy=f"see {path} --help")


def input_complaint(error: Any) -> Complaint:
    """Return the complaint about an InputError."""
    return Complaint(error.problem, error.path, error.line, error.remedy)


def environment_complaint(error: Any) -> Complaint:
    """Return the complaint about an EnvironmentProblem.  It has only the first line of the problem's message: further
    lines, if any, are the end of a program's log.
    """
    return Complaint(error.problem.partition("\n")[0], error.path, remedy=error.remedy)


def vls_complaint(error: Any) -> Complaint:
    """Return the complaint about NotEnoughVLs."""
    return Complaint(str(error), remedy="allow more, or use nue or updn, which need only one")


def system_complaint(error: Any) -> Complaint:
    """Return the complaint about an OSError: the file, if it is known, and the reason.

    Every function that writes a file reports its own errors.  So an OSError that names no file, about missing space or
    a file descriptor that is not open for writing, can come only from writing to standard output.
    """
    file = None if error.filename is None else os.fsdecode(error.filename)
    if file is None and error.errno == errno.ENOSPC:
        return Complaint("cannot be written: no space left", "standard output", remedy="free space, or write elsewhere")
    if file is None and error.errno == errno.EBADF:
        return Complaint("cannot be written: not open for writing", "standard output", remedy="redirect it to a file")
    if isinstance(error, PermissionError):
        return Complaint("permission denied", file, remedy="ls -ld shows who may use it")
    return Complaint(error.strerror or str(error), file)


Explanation = Callable[[Any], Complaint]

EXPLANATIONS: tuple[tuple[tuple[type[BaseException], ...], int, Explanation], ...] = (
    ((click.UsageError,), WRONG_USE, usage_complaint),
    ((click.ClickException,), WRONG_USE, lambda error: Complaint(error.format_message())),
    ((NotCollected,), UNDECIDED, input_complaint),
    ((InputError,), WRONG_USE, input_complaint),
    ((EnvironmentProblem,), WRONG_USE, environment_complaint),
    ((NotEnoughVLs,), FINDING, vls_complaint),
    ((IbnueError,), FINDING, lambda error: Complaint(str(error))),
    ((click.Abort, KeyboardInterrupt), INTERRUPTED, lambda error: Complaint("interrupted")),
    ((OSError,), WRONG_USE, system_complaint),
    ((MemoryError,), WRONG_USE, lambda error: Complaint("out of memory")),
)
"""Rows that state how exceptions are reported: exception classes, exit status, and function that returns the complaint.

The first row with a matching class applies.
"""


class Terminated(KeyboardInterrupt):
    """Raised when one of the signals :data:`TERMINATION_SIGNALS` arrives.

    A command may catch this exception or Ctrl-C, and raise a new Terminated.  The ``remedy`` of the new exception
    states how the user can continue the work.
    """

    def __init__(self, number: int, remedy: str | None = None) -> None:
        super().__init__("interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}")
        self.number, self.status, self.remedy = number, 128 + number, remedy


class OutputClosed(Exception):
    """Raised when standard output is a pipe that has no reader any more."""


def stdout_has_reader() -> bool:
    """Return whether standard output may still have a reader.  A pipe has no reader if the program at its other end has
    exited.
    """
    try:
        folder = sys.stdout.fileno()
    except (OSError, ValueError):  # Only a pipe can have lost its reader, and a pipe has a file descriptor.
        return True
    watched = select.poll()
    watched.register(folder, 0)
    return not any(event & select.POLLERR for _, event in watched.poll(0))


def discard_stdout() -> None:
    """Redirect standard output to the null device, so that Python's flush at exit does not fail on a closed pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def install_signal_handlers() -> None:
    """Make the first signal of :data:`TERMINATION_SIGNALS` raise :class:`Terminated`.

    Further signals are ignored during the cleanup.  A signal that is already ignored, as under nohup, stays ignored.
    """

    def end(number: int, _: object) -> None:
        for each in heeded:
            signal.signal(each, signal.SIG_IGN)  # A second signal must not interrupt the cleanup.
        raise Terminated(number)

    heeded = [number for number in TERMINATION_SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in heeded:
        signal.signal(number, end)


@contextmanager
def reported_warnings() -> Iterator[None]:
    """During a ``with`` block, print each :class:`InputWarning` once on standard error.

    The warnings are also stored, because :func:`print_json` includes them in its output.
    """
    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *more: Any) -> None:
        if not issubclass(category, InputWarning):
            before(message, category, filename, lineno, *more)
        elif (line := one_line(str(message))) not in input_warnings():
            input_warnings().append(line)
            click.echo(f"ibnue: warning: {line}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", InputWarning)
        warnings.showwarning = show  # type: ignore[assignment]  # restored by catch_warnings
        yield


def explain(error: BaseException) -> tuple[Complaint, int] | None:
    """Return the report of an exception, and the exit status.

    Returns
    -------
    tuple[Complaint, int] or None
        Report and exit status.  None if the exception is a bug, which is reported with its traceback.
    """
    error = _interruption(error) or error
    if isinstance(error, Terminated):
        return Complaint(str(error), remedy=error.remedy), error.status
    for classes, status, complaint in EXPLANATIONS:
        if isinstance(error, classes):
            return complaint(error), status
    return None


def report_error(error: BaseException, *, as_json: bool) -> int:
    """Print an exception as one line on standard error, and return the exit status.

    A bug is printed with its traceback.  With ``as_json``, the error is printed as a JSON object on standard output
    too, so that standard output always has one JSON object.
    """
    explained = explain(error)
    if explained is None:  # If Python itself handled the exception, the exit status would be 1, which means a finding.
        traceback.print_exception(error)
        explained = Complaint(f"this is a bug: {one_line(repr(error))}"), BUG
    else:
        click.echo(f"ibnue: {explained[0]}", err=True)
    complaint, status = explained
    if as_json:
        texts = {name: join_lines(text) for name, text in asdict(complaint).items() if isinstance(text, str)}
        record = {"schema": "ibnue-error/1", **asdict(complaint), **texts, "exit_status": status}
        click.echo(json.dumps(record, indent=2))
    return status


def asks_for_json(args: Sequence[str]) -> bool:
    """Return whether the arguments of a command line have the option ``--json``."""
    return "--json" in itertools.takewhile(lambda arg: arg != "--", args)


def _interruption(error: BaseException | None) -> KeyboardInterrupt | None:
    """Return the KeyboardInterrupt (by Ctrl-C or a signal) that caused an exception, or None if there was none.

    click turns a KeyboardInterrupt into an Abort, and a cleanup after an interruption may fail with another exception.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


class CommandGroup(click.Group):
    """Command group that imports the module of a command only when the command is called.  ``ibnue --help`` imports no
    command.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that the user called."""
        try:
            return super().invoke(ctx)
        # Without this code, click would handle the broken pipe and end with status 1, which means a finding.
        except BrokenPipeError as error:
            if stdout_has_reader():
                raise
            raise OutputClosed from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the help text."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with the given name; None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        module = cmd_name.replace("-", "_")
        command: click.Command = getattr(importlib.import_module(f"routing.cli.{module}"), module)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name.  If no command has this name, the error suggests a similar
        name.
        """
        name = args[0] if args else ""
        near = difflib.get_close_matches(name, COMMANDS, 1, 0.6)
        if name and not name.startswith("-") and name not in COMMANDS and near:
            raise click.UsageError(f"there is no command {name!r} (did you mean {near[0]}?)", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands into the help text, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line, and end the process with the exit status.

        If not ``standalone_mode``, return the command's result instead.
        """
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        try:
            install_signal_handlers()
            with reported_warnings():
                status = super().main(args, prog_name or "ibnue", complete_var, standalone_mode=False, **extra)
        except OutputClosed:
            discard_stdout()
            sys.exit(OUTPUT_CLOSED)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            sys.exit(WRONG_USE)
        except (Exception, KeyboardInterrupt) as error:
            try:
                status = report_error(error, as_json=asks_for_json(sys.argv[1:] if args is None else args))
                sys.stdout.flush()
            except OSError as failed:  # Standard output cannot be written.  The error is already on standard error.
                discard_stdout()
                status = OUTPUT_CLOSED if isinstance(failed, BrokenPipeError) else WRONG_USE
        sys.exit(status if isinstance(status, int) else 0)


@click.group(
    name="ibnue",
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 no problem, 1 a finding (a credit loop, an unreachable pair), 2 wrong use or unreadable"
    " input, 3 undecided because information is missing.",
)
@click.version_option(__version__, prog_name="ibnue")
def main() -> None:
    """InfiniBand routing that is proven free of credit loops.

    FABRIC is a file or a generator.  A file is output of ibnetdiscover or iblinkinfo, an ibsim net file,
    opensm-subnet.lst, ibdiagnet2.db_csv, a cabling plan (.topo, CSV), GraphML, DOT or JSON.  ibnue recognises the
    format by the content.  "-" is standard input.  A generator has arguments, such as torus:4x4x4 or
    torus:10x10x10,cas=4.
    """
