"""Options that choose and configure a routing engine, shared by the commands that route."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from routing.cli.param_types import Number
from routing.engines import DEFAULT, ENGINES, OWN
from routing.engines.base import OPTIONS, EngineOptions
from routing.engines.option import Option, plain

Command = TypeVar("Command", bound=Callable[..., Any])


def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of engines that begin with the typed text.  Shells call this function to complete
    ``--engine``.
    """
    return [name for name in sorted(ENGINES) if name.startswith(incomplete)]


def engine_option(text: str, default: str = DEFAULT) -> Callable[[Command], Command]:
    """Return a decorator that adds ``--engine`` to a command.  ``text`` is the help text of the option."""
    return click.option("-e", "--engine", "engine_name", default=default, show_default=True, metavar="ENGINE",
                        shell_complete=complete, help=text)  # fmt: skip


def engine_options(command: Command) -> Command:
    """Add ``--engine`` to a command, and every engine option that may be set on the command line."""
    for option in reversed(_options()):
        command = _click_option(option)(command)
    return engine_option(f"The routing engine: {', '.join(OWN[:-1])} or {OWN[-1]}.")(command)


def _options() -> list[Option]:
    return [option for option in OPTIONS.values() if "command" in option.sources]


def _click_option(option: Option) -> Callable[[Command], Command]:
    kind = _click_type(option)
    return click.option(
        option.flag or "--" + option.name.replace("_", "-"),
        option.name,
        type=kind,
        is_flag=option.types == (bool,),
        multiple=option.types == (list,),
        default=plain(option.default),
        show_default=option.default is not False,
        metavar=option.metavar or ("N" if isinstance(kind, click.IntRange) else None),
        help=option.help,
    )


def _click_type(option: Option) -> Any:
    if option.range and not option.words:
        return (Number if float in option.types else click.IntRange)(*option.range)
    if option.words and not option.range:
        return click.Choice(option.words)
    if option.make is Path:
        return click.Path(path_type=Path)
    if option.types in ((bool,), (list,)):
        return None

    def parse(text: str) -> Any:
        try:
            return option.parse(text)
        except ValueError as problem:
            raise click.BadParameter(str(problem)) from None

    return parse


def is_given(option: str) -> bool:
    """Return whether the user gave an option of the running command, even if its value equals the default."""
    return click.get_current_context().get_parameter_source(option) is not click.core.ParameterSource.DEFAULT


def pop_options(given: dict[str, Any]) -> EngineOptions:
    """Remove the engine options from the arguments of a command, and return them as :class:`EngineOptions`."""
    return EngineOptions.of({option.name: given.pop(option.name) for option in _options()})
