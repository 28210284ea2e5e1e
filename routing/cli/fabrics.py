"""The FABRIC argument: a file of any readable format, or a generator with its arguments."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from routing.errors import InputError, OptionError, TableError

if TYPE_CHECKING:
    from routing.fabric import Fabric
    from routing.tables import Routing

Command = TypeVar("Command", bound=Callable[..., Any])


def fabric_argument(command: Command) -> Command:
    """Give a command the argument FABRIC and the options that say which LIDs a fabric gets."""
    command = click.option(
        "--guid2lid",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="LIDs from OpenSM's guid2lid file, whatever the fabric file says.",
    )(command)
    command = click.option(
        "--lmc",
        type=click.IntRange(0, 7),
        default=0,
        show_default=True,
        help="LMC of the LIDs that are assigned: every end port gets 2^LMC of them.",
    )(command)
    return click.argument("fabric", shell_complete=complete)(command)


def fault_options(command: Command) -> Command:
    """Give a command the options that break something in its fabric before anything else is done with it."""
    command = click.option(
        "--faults",
        "fault_lists",
        type=click.Path(path_type=Path),
        multiple=True,
        metavar="FILE",
        help="Break everything that a list file names, one fault a line.",
    )(command)
    return click.option(
        "--fail",
        "failed",
        multiple=True,
        metavar="FAULT",
        help="Break something; repeatable: a link such as 'S1/3' or 'S1/3 - S2/4', a device by name, 'swap S1/3 S2/4'.",
    )(command)


def broken(fabric: Fabric, failed: Sequence[str], lists: Sequence[Path]) -> Fabric:
    """The fabric with what :func:`fault_options` breaks.

    Raises
    ------
    OptionError, ParseError
        A fault that names nothing of the fabric.
    """
    if not failed and not lists:
        return fabric
    from routing.faults import apply_faults, parse_fault, read_faults

    faults = [parse_fault(text, fabric) for text in failed]
    for path in lists:
        faults += read_faults(path, fabric)
    return apply_faults(fabric, faults)


def tables_of(path: Path, fabric: Fabric, option: str) -> Routing:
    """Tables that may be for another fabric than the command is about, which ``option`` would name.

    Raises
    ------
    InputError, EnvironmentProblem
        Nothing there, or unreadable; tables of another fabric: the remedy is ``option``.
    """
    from routing.formats.table_files import read_tables

    try:
        return read_tables(path, fabric)
    except TableError as error:
        remedy = f"say with {option} what they were made for"
        raise TableError(error.problem, path=error.path, line=error.line, remedy=remedy) from None


def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files, and names of generators, for the shell."""
    from routing.topologies import TOPOLOGIES

    names = [CompletionItem(f"{name}:") for name in TOPOLOGIES if name.startswith(incomplete)]
    return [*names, CompletionItem(incomplete, type="file")]


def generator_of(text: str) -> tuple[str, list[str]] | None:
    """Name and words of ``generator:argument,argument,option=value``; None where it names a file, or no generator."""
    from routing.topologies import TOPOLOGIES

    name, _, rest = text.partition(":")
    return None if Path(text).exists() or name not in TOPOLOGIES else (name, rest.split(",") if rest else [])


def generated(name: str, words: Sequence[str], guid2lid: Path | None, /, *, lmc: int = 0, **options: Any) -> Fabric:
    """The fabric of a generator, whose GUIDs no file of LIDs can know; LMC 0 is that of no option.

    Raises
    ------
    OptionError
        A file of LIDs all the same, or what the generator says.
    """
    from routing.topologies import from_words

    if guid2lid is not None:
        raise OptionError("--guid2lid needs a fabric file", remedy="a generator's GUIDs are its own")
    return from_words(name, words, **options, **({"lmc": lmc} if lmc else {}))


def read(text: str, *, lmc: int = 0, guid2lid: Path | None = None) -> Fabric:
    """The fabric that FABRIC means.

    A file of that name comes first.  Otherwise it is ``generator:argument,argument,option=value``.

    Raises
    ------
    InputError
        Neither a file nor a generator, or what the reader or the generator says.
    """
    from routing.topologies import TOPOLOGIES

    made = generator_of(text)
    if made is not None:
        return generated(*made, guid2lid, lmc=lmc)
    if not Path(text).exists():
        name, colon, _ = text.partition(":")
        near = difflib.get_close_matches(name, TOPOLOGIES, 1)
        hint = f"did you mean {near[0]}:...?" if near and colon else "a generator is written like torus:4x4x4,cas=1"
        raise InputError("no such file or generator", path=text, remedy=hint)
    from routing.formats.fabric_files import read_fabric

    return read_fabric(Path(text), lmc=lmc, guid2lid=guid2lid)
