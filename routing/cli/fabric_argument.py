"""Define the FABRIC argument of commands: a file in any readable format, or a generator with its arguments."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from routing.class_settings import SETTINGS
from routing.errors import DamagedBundle, InputError, InputWarning, OptionError, TableError

if TYPE_CHECKING:
    from routing.fabric import Fabric
    from routing.tables import Routing

Command = TypeVar("Command", bound=Callable[..., Any])


_GIVEN = "routing.cli.fabric_argument.given"
"""Key of click's context under which the options of this module store their values."""
_WORDS = "routing.cli.fabric_argument.words"
"""Key of click's context under which these options are stored as words of the command line."""


def _option(*names: str, read: Callable[[Any], Any] | None = None, **how: Any) -> Callable[[Command], Command]:
    """Return a click option whose value is stored for :func:`given`, instead of being passed to the command.

    ``read`` converts the value.
    """

    def keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value:
            ctx.meta.setdefault(_GIVEN, {})[param.name] = value if read is None else read(value)
            _keep_words(ctx, param, value if isinstance(value, tuple) else (value,))

    return click.option(*names, expose_value=False, callback=keep, **how)


def _keep_words(ctx: click.Context, param: click.Parameter, values: Sequence[Any]) -> None:
    ctx.meta.setdefault(_WORDS, []).extend(word for value in values for word in (param.opts[0], str(value)))


def words() -> Sequence[str]:
    """Return the options of this module that the user gave to the running command, as words of a command line."""
    found: list[str] = click.get_current_context().meta.get(_WORDS, [])
    return found


def given() -> Mapping[str, Any]:
    """Return the values of this module's options that the user gave to the running command, by name."""
    context = click.get_current_context(silent=True)
    return {} if context is None else context.meta.get(_GIVEN, {})


def _read_names(path: Path) -> dict[int, str]:
    """Read the file of ``--node-name-map``."""
    from routing.formats.guid_files import read_node_name_map

    return read_node_name_map(path)


name_map_option = _option(
    "--node-name-map",
    type=click.Path(path_type=Path),
    metavar="FILE",
    read=_read_names,
    help='Names of devices by GUID, as OpenSM and infiniband-diags read them: lines of 0xGUID "NAME".',
)
"""Decorator that adds ``--node-name-map`` to a command.

The option names a file of device names.  :func:`read` gives these names to the devices of every fabric.
"""


def class_options(command: Command) -> Command:
    """Add the options that set port classes to a command.  :func:`read` applies these options to every fabric of the
    command.
    """

    def keep(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> None:
        for text in values:
            label, equals, value = text.partition("=")
            if not (equals and label and value):
                raise click.BadParameter(f"{text!r} is not {param.metavar}", ctx, param)
            ctx.meta.setdefault(_GIVEN, {}).setdefault("classes", []).append((param.name, label, value))
        _keep_words(ctx, param, values)

    for setting in reversed(SETTINGS):
        command = click.option(
            setting.flag,
            setting.key,
            multiple=True,
            metavar=setting.metavar,
            expose_value=False,
            callback=keep,
            help=setting.help,
        )(command)
    return command


def device_options(command: Command) -> Command:
    """Add the options for the LIDs, names and classes of devices to a command."""
    command = name_map_option(class_options(command))
    command = _option(
        "--guid2lid",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Take LIDs from this guid2lid file of OpenSM, and not from the fabric file.",
    )(command)
    return _option(
        "--lmc",
        type=click.IntRange(0, 7),
        metavar="N",
        default=0,
        show_default=True,
        help="LMC for ports without LIDs in the file: each gets 2^N LIDs.",
    )(command)


def fabric_argument(command: Command) -> Command:
    """Add the argument FABRIC to a command, and the options for the LIDs, names and classes of its devices."""
    return click.argument("fabric", shell_complete=complete)(device_options(command))


def tables_argument(command: Command) -> Command:
    """Add the argument TABLES to a command.  It may be left out if FABRIC is a folder with tables."""

    def default(ctx: click.Context, _: click.Parameter, path: Path | None) -> Path:
        found = path or tables_beside(ctx.params.get("fabric"))
        if found is None:
            require_fabric(ctx.params.get("fabric"))
            raise click.UsageError(
                "TABLES is missing: only a snapshot of `ibnue collect` is both FABRIC and TABLES", ctx
            )
        return found

    return click.argument("tables", type=click.Path(path_type=Path), required=False, callback=default)(command)


def tables_beside(fabric: str | None) -> Path | None:
    """Return FABRIC as a path if it is a folder, which may also contain tables; otherwise None."""
    return Path(fabric) if fabric is not None and Path(fabric).is_dir() else None


def fault_options(command: Command) -> Command:
    """Add ``--fail`` and ``--faults`` to a command.  The two options name links and devices to remove from the fabric
    before it is used.
    """
    command = _option(
        "--faults",
        "fault_lists",
        type=click.Path(path_type=Path),
        multiple=True,
        metavar="FILE",
        help="Apply all faults in this file, one per line.",
    )(command)
    return _option(
        "--fail",
        "failed",
        multiple=True,
        metavar="FAULT",
        help="Apply a fault; repeatable: a link such as 'S1/3' or 'S1/3 - S2/4', a device by name, 'swap S1/3 S2/4'.",
    )(command)


def broken(fabric: Fabric) -> Fabric:
    """Return the fabric without the links and devices that ``--fail`` and ``--faults`` name.

    Raises
    ------
    OptionError, ParseError
        A fault names a device or link that the fabric does not have.
    """
    failed, lists = given().get("failed", ()), given().get("fault_lists", ())
    if not failed and not lists:
        return fabric
    from routing.faults import apply_faults, parse_fault, read_faults

    faults = [parse_fault(text, fabric) for text in failed]
    for path in lists:
        faults += read_faults(path, fabric)
    return apply_faults(fabric, faults)


def sl_options(command: Command) -> Command:
    """Add ``--sl`` and ``--sl2vl`` to a command.  The function :func:`tables` reads the files of these options together
    with the argument TABLES.
    """
    command = _option(
        "--sl2vl", type=click.Path(path_type=Path), metavar="FILE",
        help="SL2VL tables, if TABLES is a dump of LFTs: opensm-sl2vl.dump or ibdmchk's format.",
    )(command)  # fmt: skip
    return _option(
        "--sl", type=click.Path(path_type=Path), metavar="FILE",
        help="Service levels of the paths, if TABLES is a dump of LFTs: the output of saquery PR, "
        "opensm-path-records.dump, or ibdmchk's format.",
    )(command)  # fmt: skip


def has_sl_files() -> bool:
    """Return whether the user gave ``--sl`` or ``--sl2vl`` to the running command."""
    return not given().keys().isdisjoint(("sl", "sl2vl"))


def tables(path: Path, fabric: Fabric) -> Routing:
    """Read the argument TABLES, together with the files of ``--sl`` and ``--sl2vl``.

    Raises
    ------
    InputError, EnvironmentProblem
        The path is missing or unreadable, the tables belong to another fabric, or ``--sl`` or ``--sl2vl`` is used with
        a bundle.
    """
    from routing.formats.table_files import SlFiles, read_tables

    return read_tables(path, fabric, SlFiles(given().get("sl"), given().get("sl2vl")))


def tables_of(path: Path, fabric: Fabric, option: str) -> Routing:
    """Read tables that may have been made for another fabric than the command's FABRIC.

    If the tables do not fit the FABRIC, the error suggests ``option``, with which the user can name the fabric of the
    tables.

    Raises
    ------
    InputError, EnvironmentProblem
        The path is missing or unreadable, or the tables belong to another fabric.
    """
    from routing.formats.table_files import read_tables

    try:
        return read_tables(path, fabric)
    except DamagedBundle:
        raise
    except TableError as error:
        remedy = f"name with {option} the fabric for which they were made"
        raise TableError(error.problem, path=error.path, line=error.line, remedy=remedy) from None


def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return files, and the names of generators that begin with the typed text.  Shells call this function to complete
    FABRIC.
    """
    from routing.topologies import TOPOLOGIES

    names = [CompletionItem(f"{name}:") for name in TOPOLOGIES if name.startswith(incomplete)]
    return [*names, CompletionItem(incomplete, type="file")]


def generator_of(text: str) -> tuple[str, list[str]] | None:
    """Split the text ``generator:argument,argument,option=value`` into the name of the generator and its other words.

    The result is None if the text names a file, or no known generator.
    """
    from routing.topologies import TOPOLOGIES

    name, _, rest = text.partition(":")
    return None if Path(text).exists() or name not in TOPOLOGIES else (name, rest.split(",") if rest else [])


def separate_words(chosen: object, message: str) -> str | None:
    """Return the error line for a user who wrote a generator and its arguments as separate words; None for other users.

    ``chosen`` is the value of the argument FABRIC.  ``message`` is click's error text, which lists the unexpected words
    of the command line in parentheses.
    """
    from routing.topologies import TOPOLOGIES

    name, colon, rest = str(chosen).partition(":")
    words = re.search(r"unexpected extra arguments? \((.*)\)$", message)
    if name not in TOPOLOGIES or words is None:
        return None
    one = f"{name}:{','.join([*([rest] if colon and rest else []), *words[1].split()])}"
    return f"write a generator and its arguments as one word here: {one}"


def named(fabric: Fabric) -> Fabric:
    """Return the fabric with the device names and port classes that the options of the running command set."""
    if (names := given().get("node_name_map")) is not None:
        from routing.formats.guid_files import apply_node_names

        fabric = apply_node_names(fabric, names)
    if (settings := given().get("classes")) is not None:
        from routing.formats.guid_files import apply_port_classes, read_guid_list
        from routing.port_classes import port_classes_of

        fabric = apply_port_classes(fabric, port_classes_of(settings, read_guid_list))
    return fabric


def require_fabric(text: str | None) -> None:
    """Check that the argument FABRIC names a file, a folder, a generator or standard input, if it is given at all.

    Raises
    ------
    InputError
        FABRIC names nothing, or is empty.
    """
    from routing.formats.text import STANDARD_INPUT
    from routing.topologies import TOPOLOGIES

    if text == "":
        raise OptionError("FABRIC is empty", remedy="name a file, or a generator such as torus:4x4x4")
    if text is None or text == STANDARD_INPUT or Path(text).exists() or generator_of(text) is not None:
        return
    name, colon, _ = text.partition(":")
    near = difflib.get_close_matches(name, TOPOLOGIES, 1)
    hint = f"did you mean {near[0]}:...?" if near and colon else "a generator is written like torus:4x4x4,cas=1"
    raise InputError("no such file or generator", path=text, remedy=hint)


def read(text: str, words: Sequence[str] = (), *, lmc: int = 0, guid2lid: Path | None = None, **options: Any) -> Fabric:
    """Return the fabric that the argument FABRIC names.  ``-`` means standard input.

    If a file has this name, the file is read.  Otherwise the argument is ``generator:argument,argument,option=value``.
    ``words`` and ``options`` are further arguments and options of a generator.  ``lmc`` is the LMC of the end ports; 0:
    the LMC that an option of the running command sets.  Devices get the LIDs, names and classes that the options of the
    running command set.

    Raises
    ------
    InputError
        FABRIC is neither a file nor a generator, or the reader or the generator rejects it.
    OptionError
        ``guid2lid`` (a file with the LID of each GUID) is given for a generator.  This file cannot contain the GUIDs
        that the generator makes.
    """
    lmc, guid2lid = lmc or given().get("lmc", 0), guid2lid or given().get("guid2lid")
    made = generator_of(text)
    if made is not None:
        from routing.topologies import from_words

        if guid2lid is not None:
            raise OptionError("--guid2lid needs a fabric file", remedy="a generator makes its own GUIDs")
        return named(from_words(made[0], [*made[1], *words], **options, **({"lmc": lmc} if lmc else {})))
    require_fabric(text)
    from routing.formats.fabric_files import read_fabric

    fabric = read_fabric(Path(text), lmc=lmc, guid2lid=guid2lid)
    if lmc and fabric.endports and not (fabric.endport_lmc == lmc).any():
        warnings.warn(InputWarning(f"{text} states the LIDs of all end ports, so --lmc has no effect"), stacklevel=2)
    return named(fabric)
