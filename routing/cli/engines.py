"""Options that choose and configure a routing engine, shared by the commands that route."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from routing.cli.numbers import Number
from routing.numerals import decimal

if TYPE_CHECKING:
    from routing.engines.base import Engine, EngineOptions

Command = TypeVar("Command", bound=Callable[..., Any])
MAX_DATA_VLS = 15


def vl_count(text: str) -> int | str:
    """Parse ``--vls``: a number of data VLs, ``min`` or ``auto``."""
    if text in ("min", "auto"):
        return text
    number = decimal(text)
    if number is not None and 1 <= number <= MAX_DATA_VLS:
        return number
    raise click.BadParameter(f"{text!r} is neither 1 to {MAX_DATA_VLS} nor min nor auto")


def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of engines for shell completion."""
    from routing.engines import ENGINES

    return [name for name in sorted(ENGINES) if name.startswith(incomplete)]


def engine_options(command: Command) -> Command:
    """Add ``--engine`` and the options of :class:`~routing.engines.base.EngineOptions` to a command."""
    options = [
        click.option("-e", "--engine", "engine_name", default="updn", show_default=True, metavar="ENGINE",
                     shell_complete=complete, help="The routing engine: updn, nue, dfsssp, lash, sssp or minhop."),
        click.option("--vls", type=vl_count, metavar="K|min|auto", default="auto", show_default=True,
                     help="At most K data VLs; min: as few as can be found; auto: what every port supports."),
        click.option("--objective", type=click.Choice(["alltoall", "bisection"]), default="alltoall",
                     show_default=True, help="Traffic pattern to balance for."),
        click.option("--passes", type=click.IntRange(0, 1000), metavar="N",
                     help="Refinement passes over all destinations; as many as the effort allows if not given."),
        click.option("--effort", type=Number(0, 1000), default=1.0, show_default=True, metavar="X",
                     help="Optimisation effort; 1 is about a second for a thousand switches."),
        click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=1, show_default=True,
                     help="Random seed."),
        click.option("--threads", type=click.IntRange(1, 256), default=2, show_default=True,
                     help="Worker threads; the tables do not depend on them."),
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
    """Return whether an option of the running command was given explicitly, even with its default value."""
    return click.get_current_context().get_parameter_source(option) is not click.core.ParameterSource.DEFAULT


def find_engine(name: str) -> Engine:
    """Return the engine with the given name.

    Raises
    ------
    OptionError
        There is no engine of that name.
    """
    from routing.engines import ENGINES

    return ENGINES[name]


def collect(given: dict[str, Any]) -> EngineOptions:
    """Return the engine options of the command, and remove them from ``given``."""
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
