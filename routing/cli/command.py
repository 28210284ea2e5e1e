"""The group of commands, loaded one by one as they are asked for, and the one place that ends the process.

A command returns its exit status: 0 or None when all is fine, 1 when it found something.  What it raises becomes one
line on standard error and a status here, so that no command has an error path of its own.
"""

from __future__ import annotations

import importlib
import os
import select
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from routing import __version__
from routing.errors import EnvironmentProblem, IbnueError, InputError, NotEnoughVLs
from routing.names import escaped

FINDING = 1
WRONG_USE = 2
INTERRUPTED = 130
READER_GONE = 128 + signal.SIGPIPE
ENDINGS = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command like Ctrl-C does, so that it leaves nothing behind."""

COMMANDS: Mapping[str, str] = {
    "route": "Compute the tables of a fabric, prove them, write them.",
    "check": "Are tables complete and free of credit loops?",
    "quality": "Hops, load of the channels, shares of traffic patterns.",
    "pause": "Which links do given flows pause, and do the rates sink to zero?",
    "watch": "Do the counters of the switches point at a credit loop?",
    "policy": "Rules for lifetimes and deadlock breakers, port by port.",
    "diff": "What differs between two sets of tables.",
    "sweep": "Engines x fabrics x faults x seeds, with a ledger.",
    "simulate": "Packets and credits: does a credit loop lock, and what helps?",
    "whatif": "Break links and switches, mend the tables, say what it costs.",
    "transition": "May one set of tables be replaced by another while traffic runs?",
    "lab": "A real OpenSM with the plugin on a simulated fabric, live.",
    "plugin": "Build the plugin for the OpenSM that is installed.",
    "fabric": "Make or read a fabric; describe it, or write it.",
    "completion": "Print the completion script for a shell.",
}
"""Every command with its help line; the module of the same name in this package has a function of that name."""


RANGES = (("is not a valid integer range", "is not a whole number"), ("is not a valid float range", "is not a number"))
"""What click says of a text in place of a number, and what it means."""


def one_line(text: str) -> str:
    """The text without line breaks, as an error is printed."""
    return escaped(" ".join(text.split()))


def usage_line(error: Any) -> str:
    """A usage error in one line, with the command that tells more."""
    told = error.format_message()
    for words, plain in RANGES:
        told = told.replace(words, plain)
    path = error.ctx.command_path if error.ctx is not None else "ibnue"
    return f"{told} (see {path} --help)"


def no_command_line(error: Any) -> str:
    """A group without one of its commands."""
    return f"a command is missing (see {error.ctx.command_path if error.ctx is not None else 'ibnue'} --help)"


def system_line(error: Any) -> str:
    """What the operating system refused, and for which file."""
    where = f"{os.fsdecode(error.filename)}: " if error.filename is not None else ""
    return f"{where}{error.strerror or error}"


Explanation = Callable[[Any], str]

EXPLANATIONS: tuple[tuple[tuple[type[BaseException], ...], int, Explanation], ...] = (
    ((click.exceptions.NoArgsIsHelpError,), WRONG_USE, no_command_line),
    ((click.UsageError,), WRONG_USE, usage_line),
    ((click.ClickException,), WRONG_USE, lambda error: error.format_message()),
    ((InputError,), WRONG_USE, str),
    ((EnvironmentProblem,), WRONG_USE, lambda error: str(error).partition("\n")[0]),  # a log's end may follow
    ((NotEnoughVLs,), FINDING, lambda error: f"{error} (allow more, or use nue or updn, which do with one)"),
    ((IbnueError,), FINDING, str),
    ((click.Abort, KeyboardInterrupt), INTERRUPTED, lambda error: "interrupted"),
    ((OSError,), WRONG_USE, system_line),
    ((MemoryError,), WRONG_USE, lambda error: "out of memory"),
)
"""What becomes of an exception: its class (the first that fits counts), the exit status, what to print."""


class Ended(KeyboardInterrupt):
    """One of :data:`ENDINGS` has come."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.status = 128 + number


class ReaderGone(Exception):
    """Nobody reads standard output any more."""


def is_read() -> bool:
    """Whether somebody may still read what goes to standard output."""
    try:
        place = sys.stdout.fileno()
    except (OSError, ValueError):  # there is no such file
        return True
    watched = select.poll()
    watched.register(place, 0)
    return not any(event & select.POLLERR for _, event in watched.poll(0))


def forget_output() -> None:
    """Let what is left to be written go nowhere, rather than fail when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def heed_endings() -> None:
    """Have the signals of :data:`ENDINGS` raise :class:`Ended`, once; those that are ignored (nohup) stay so."""

    def end(number: int, _: object) -> None:
        for each in heeded:
            signal.signal(each, signal.SIG_IGN)  # what is being tidied up is tidied up
        raise Ended(number)

    heeded = [number for number in ENDINGS if signal.getsignal(number) is signal.SIG_DFL]
    for number in heeded:
        signal.signal(number, end)


def explain(error: BaseException) -> tuple[str, int] | None:
    """What to print about an exception, and the exit status; None for what is a bug and deserves its traceback."""
    for ended in (error, error.__cause__):  # click makes an Abort of it
        if isinstance(ended, Ended):
            return str(ended), ended.status
    for classes, status, line in EXPLANATIONS:
        if isinstance(error, classes):
            return one_line(line(error)), status
    return None


class CommandGroup(click.Group):
    """Imports the module of a command when that command is wanted, so that ``ibnue --help`` loads none of them."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:  # click would end with the status of a finding
            if is_read():
                raise
            raise ReaderGone from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order in which they are listed."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(f"routing.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, without loading them."""
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
        """Run the command line and end the process (or, not standalone, return)."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        try:
            heed_endings()
            status = super().main(args, prog_name or "ibnue", complete_var, standalone_mode=False, **extra)
        except ReaderGone:
            forget_output()
            sys.exit(READER_GONE)
        except (Exception, KeyboardInterrupt) as error:
            explained = explain(error)
            if explained is None:
                raise
            line, status = explained
            click.echo(f"ibnue: {line}", err=True)
        sys.exit(status if isinstance(status, int) else 0)


@click.group(
    name="ibnue",
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 fine, 1 something was found (a credit loop, an unreachable pair), 2 wrong use or unreadable"
    " input.",
)
@click.version_option(__version__, prog_name="ibnue")
def main() -> None:
    """InfiniBand routing that is proven free of credit loops.

    FABRIC, wherever it is asked for, is a file (ibsim net file, ibnetdiscover output, opensm-subnet.lst, GraphML, JSON:
    told by its content) or a generator with its arguments, such as torus:4x4x4 or torus:10x10x10,cas=4.
    """
