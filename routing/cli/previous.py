"""The options that start from earlier tables, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from routing.cli import engines
from routing.errors import OptionError
from routing.numerals import number_of

if TYPE_CHECKING:
    from routing.engines.base import Engine, EngineOptions
    from routing.fabric import Fabric
    from routing.reroute import Rerouted
    from routing.tables import Routing

Command = TypeVar("Command", bound=Callable[..., Any])
LEVELS = ("full", "balanced", "fresh")


@dataclass(frozen=True)
class Previous:
    """Earlier tables: where they are, the fabric that they were made for, how much of them is to stay."""

    tables: Path
    was: str | None
    stability: str


def options(command: Command) -> Command:
    """Give a command ``--previous``, ``--was`` and ``--stability``."""
    for option in (
        click.option("--stability", type=click.Choice(LEVELS), metavar="|".join(LEVELS),
                     help="With --previous: keep every entry that holds (the default), lay anew the LIDs that "
                     "lost one, or run the engine as if nothing had been."),
        click.option("--was", metavar="FABRIC",
                     help="With --previous: the fabric of those tables; if left out, FABRIC without "
                     "the faults that are given."),
        click.option("--previous", type=click.Path(path_type=Path), metavar="TABLES",
                     help="Earlier tables, a bundle or a folder: change of them no more than has to be. Without -e "
                     "the engine is the one that made them."),
    ):  # fmt: skip
        command = option(command)
    return command


def collect(given: dict[str, Any]) -> Previous | None:
    """The options out of a command's, which are taken away from ``given``.

    Raises
    ------
    OptionError
        One that means nothing without ``--previous``.
    """
    tables, was, stability = given.pop("previous"), given.pop("was"), given.pop("stability")
    if tables is None:
        for name, value in (("--was", was), ("--stability", stability)):
            if value is not None:
                raise OptionError(f"{name} says nothing without earlier tables", remedy="add --previous TABLES")
        return None
    return Previous(tables, was, stability or "full")


def engine_of(routing: Routing) -> str | None:
    """The engine that made earlier tables; None if they are not ours."""
    from routing.engines import ENGINES

    made = routing.provenance.engine
    return made if made in ENGINES else None


def engine_for(routing: Routing, name: str) -> Engine:
    """The engine that goes on with earlier tables: ``name`` if ``-e`` was given, else the one that made them.

    Raises
    ------
    OptionError
        There is no engine of that name.
    """
    return engines.find_engine(name if engines.is_given("engine_name") else engine_of(routing) or name)


def options_for(routing: Routing, fabric: Fabric, engine: Engine, options: EngineOptions) -> EngineOptions:
    """The options to go on with, by what earlier tables say where an option does not.

    Without ``--first-vl`` the VLs that they keep for others stay kept; without ``--root`` their roots stay roots, as
    far as these are in their fabric.
    """
    if not engines.is_given("first_vl"):
        options = replace(options, first_vl=_first_vl(routing))
    if engine_of(routing) == engine.name and not (engines.is_given("roots") or engines.is_given("root_guid_file")):
        options = replace(
            options, roots=tuple(_guid_text(int(fabric.switch_guid[row])) for row in _roots(routing, fabric))
        )
    return options


def _first_vl(routing: Routing) -> int:
    """The first VL of earlier tables; 0 if they do not say."""
    first = routing.provenance.options.get("first_vl", 0)
    return first if isinstance(first, int) else 0


def _roots(routing: Routing, fabric: Fabric) -> list[int]:
    """The switches that were named as roots of earlier tables, as far as they are there."""
    named = routing.provenance.options.get("roots")
    row = {_guid_text(int(guid)): row for row, guid in enumerate(fabric.switch_guid)}
    return [row[guid] for guid in map(str, named) if guid in row] if isinstance(named, list) else []


def _guid_text(guid: int) -> str:
    return f"{guid:#018x}"


def reroute(
    stability: str, earlier: tuple[Fabric, Routing], engine: Engine, options: EngineOptions, fabric: Fabric
) -> Rerouted:
    """Prove earlier tables, and change them to fit.

    Raises
    ------
    OptionError
        What is to be kept is not what is asked for (:func:`check_same`), or not proven for replies where these count.
    """
    from routing.deadlock.proof import prove
    from routing.reroute import Published, Stability
    from routing.reroute import reroute as change

    was, routing = earlier
    if stability != "fresh":
        check_same(routing, was, engine, options, "--previous")
    before = Published(was, routing, prove(was, routing, threads=options.threads))
    if stability != "fresh" and options.reversible and before.proof.strength == "forward":
        raise OptionError("the tables of --previous are not proven for replies, as --reversible asks",
                          remedy="leave it out, or --stability fresh to change them all")  # fmt: skip
    return change(engine, options, before, fabric, stability=Stability(stability), home=before)


def check_same(routing: Routing, fabric: Fabric, engine: Engine, options: EngineOptions, option: str) -> None:
    """Refuse to go on with tables of a fabric, named by ``option``, that are not what is asked for.

    Raises
    ------
    OptionError
        They are another engine's, have other roots, or take more VLs or others.
    ParseError
        The file of roots does not follow its format, or names nothing.
    """
    made = engine_of(routing)
    if made not in (None, engine.name):
        raise OptionError(f"the tables of {option} are those of {made}, not of {engine.name}",
                          remedy=f"leave -e out, use -e {made}, or --stability fresh to change them all")  # fmt: skip
    check_roots(routing, fabric, options, option)
    first = _first_vl(routing)
    if options.first_vl != first:
        raise OptionError(f"the tables of {option} begin at VL {first}, --first-vl says {options.first_vl}",
                          remedy="leave it out, or --stability fresh to change them all")  # fmt: skip
    vls = routing.vls - first
    if isinstance(options.vls, int) and vls > options.vls:
        raise OptionError(f"the tables of {option} take {number_of(vls, 'VL')}, --vls says {options.vls}",
                          remedy=f"use --vls {vls}, or --stability fresh to change them all")  # fmt: skip
    if options.vls == "auto" and routing.vls > options.port_vls and engines.is_given("port_vls"):
        last = routing.vls - 1
        raise OptionError(f"the tables of {option} take VLs up to {last}, --port-vls says {options.port_vls}",
                          remedy=f"use --port-vls {routing.vls}, or --stability fresh to change them all")  # fmt: skip


def check_roots(routing: Routing, fabric: Fabric, options: EngineOptions, option: str) -> None:
    """Refuse to go on with tables that have other roots than those that are asked for."""
    from routing.engines.roots import named_roots

    has, wanted = _roots(routing, fabric), named_roots(fabric, options)
    if has != wanted:
        names, others = (", ".join(fabric.switch_name[row] for row in rows) for rows in (has, wanted))
        were = f"have the roots {names}, not {others}" if has else f"were made without roots, not from {others}"
        raise OptionError(f"the tables of {option} {were}",
                          remedy="leave them out, or --stability fresh to change all tables")  # fmt: skip


def facts(found: Rerouted) -> Iterator[tuple[str, str]]:
    """What became of the earlier tables, line by line."""
    yield "changed", f"{number_of(found.changed, 'entry')}; {found.broken} no longer held"
    yield "how", f"{found.how}: {found.reason}"


def as_object(found: Rerouted) -> dict[str, Any]:
    """The same for ``--json``."""
    return {
        "broken": found.broken,
        "changed": found.changed,
        "how": found.how,
        "reason": found.reason,
        "counts": dict(found.counts),
    }
