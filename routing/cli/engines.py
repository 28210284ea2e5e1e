"""The options that choose an engine and tell it what to do; shared by the commands that route."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from routing.cli.numbers import Number
from routing.errors import OptionError
from routing.numerals import decimal

if TYPE_CHECKING:
    from routing.engines.base import Engine, EngineOptions

Command = TypeVar("Command", bound=Callable[..., Any])
MAX_DATA_VLS = 15


def vl_count(text: str) -> int | str:
    """``--vls``: a number of data VLs, ``min`` or ``auto``."""
    if text in ("min", "auto"):
        return text
    number = decimal(text)
    if number is not None and 1 <= number <= MAX_DATA_VLS:
        return number
    raise click.BadParameter(f"{text!r} is neither 1 to {MAX_DATA_VLS} nor min nor auto")


def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of engines for the shell."""
    from routing.engines import ENGINES

    return [name for name in sorted(ENGINES) if name.startswith(incomplete)]


def engine_options(command: Command) -> Command:
    """Give a command ``--engine`` and the options of :class:`~routing.engines.base.EngineOptions`."""
    options = [
        click.option("-e", "--engine", "engine_name", default="updn", show_default=True, metavar="ENGINE",
                     shell_complete=complete, help="The routing engine: updn, nue, dfsssp, lash, sssp or minhop."),
        click.option("--vls", type=vl_count, metavar="K|min|auto", default="auto", show_default=True,
                     help="At most K data VLs; min: as few as can be found; auto: what every port supports."),
        click.option("--objective", type=click.Choice(["alltoall", "bisection"]), default="alltoall",
                     show_default=True, help="What balance serves."),
        click.option("--passes", type=click.IntRange(0, 1000), metavar="N",
                     help="Refinement passes over all destinations; as many as the effort allows if not given."),
        click.option("--effort", type=Number(0, 1000), default=1.0, show_default=True, metavar="X",
                     help="Work that balance is worth; 1 is about a second for a thousand switches."),
        click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=1, show_default=True,
                     help="Of every random choice."),
        click.option("--threads", type=click.IntRange(1, 256), default=2, show_default=True,
                     help="Worker threads; they change nothing but the time."),
        click.option("--root", "roots", multiple=True, metavar="NAME|GUID",
                     help="A root switch of Up*/Down*; may be given several times."),
        click.option("--root-guid-file", type=click.Path(path_type=Path), metavar="FILE",
                     help="Root switches as OpenSM's root_guid_file lists them."),
        click.option("--partition", type=click.Choice(["metis", "none"]),
                     help="How destinations are split into layers; the engine decides if not given."),
        click.option("--port-vls", type=click.IntRange(1, MAX_DATA_VLS), default=8, show_default=True,
                     help="Data VLs that every port supports: what --vls auto means."),
        click.option("--first-vl", type=click.IntRange(0, MAX_DATA_VLS - 1), default=0, show_default=True,
                     help="First VL and SL of the tables; those below are kept for other classes of traffic."),
        click.option("--reversible", is_flag=True,
                     help="Replies, which come back on the request's SL, have to be free of credit loops too."),
        click.option("--minimal/--published", default=True, show_default=True,
                     help="sssp: shortest paths only, or the published rule, which takes longer ones too."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def is_given(option: str) -> bool:
    """Whether an option of the command under way was given, be it with its default."""
    return click.get_current_context().get_parameter_source(option) is not click.core.ParameterSource.DEFAULT


def find_engine(name: str) -> Engine:
    """The engine of that name.

    Raises
    ------
    OptionError
        There is none.
    """
    from routing.engines import ENGINES

    if name in ENGINES:
        return ENGINES[name]
    near = difflib.get_close_matches(name, ENGINES, 1, 0.7)
    hint = f"did you mean {near[0]}? " if near else ""
    raise OptionError(f"there is no engine {name!r}", remedy=f"{hint}engines: {', '.join(sorted(ENGINES))}")


def collect(given: dict[str, Any]) -> EngineOptions:
    """The engine's options out of the command's, which are taken away from ``given``."""
    from routing.engines.base import EngineOptions, Objective

    names = (
        "vls",
        "port_vls",
        "passes",
        "effort",
        "seed",
        "threads",
        "roots",
        "root_guid_file",
        "partition",
        "first_vl",
        "reversible",
        "minimal",
    )
    chosen = {name: given.pop(name) for name in names}
    return EngineOptions(objective=Objective(given.pop("objective")), **chosen)
