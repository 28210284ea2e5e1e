"""Define the options for a re-route from earlier tables, and report on the re-route."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from routing.cli import engine_options
from routing.engines import ENGINES
from routing.errors import OptionError
from routing.numerals import count_noun

if TYPE_CHECKING:
    from routing.engines.base import Engine, EngineOptions
    from routing.fabric import Fabric
    from routing.reroute import CapacityKept, Rerouted
    from routing.tables import Routing

Command = TypeVar("Command", bound=Callable[..., Any])
STABILITY_LEVELS = ("full", "balanced", "fresh")


@dataclass(frozen=True)
class Previous:
    """The user's options about earlier tables: path and fabric of the tables, stability, and how many entries may be
    moved for balance.
    """

    tables: Path
    was: str | None
    stability: str
    rebalance: int


def options(command: Command) -> Command:
    """Add the options of a re-route to a command: ``--previous``, ``--was``, ``--stability`` and ``--rebalance``."""
    for option in (
        click.option("--rebalance", type=click.IntRange(1), metavar="N",
                     help="With --previous: change up to N more entries to improve the balance. If no such change "
                     "gains, forwarding tables computed from scratch may change up to 4 N entries."),
        click.option("--stability", type=click.Choice(STABILITY_LEVELS), metavar="|".join(STABILITY_LEVELS),
                     help="With --previous: entries that may change. full: broken entries, and entries that their "
                     "repair requires. balanced (default): also a few others, for balance. fresh: all entries."),
        click.option("--was", metavar="FABRIC",
                     help="With --previous: fabric of these tables (default: FABRIC without "
                     "the given faults)."),
        click.option("--previous", type=click.Path(path_type=Path), metavar="TABLES",
                     help="Existing tables (bundle or folder); change as few entries as possible. Without -e, "
                     "the engine that made these tables is used."),
    ):  # fmt: skip
        command = option(command)
    return command


def pop_options(given: dict[str, Any]) -> Previous | None:
    """Remove the options of a re-route from ``given``, and return them; None without ``--previous``.

    Raises
    ------
    OptionError
        An option has no effect without ``--previous`` or with ``--stability fresh``.
    """
    tables, was, stability = given.pop("previous"), given.pop("was"), given.pop("stability")
    rebalance = given.pop("rebalance")
    if tables is None:
        for name, value in (("--was", was), ("--stability", stability), ("--rebalance", rebalance)):
            if value is not None:
                raise OptionError(f"{name} has no effect without earlier tables", remedy="add --previous TABLES")
        return None
    if rebalance is not None and stability == "fresh":
        raise OptionError("--stability fresh leaves nothing to rebalance", remedy="leave --rebalance out")
    return Previous(tables, was, stability or "balanced", rebalance or 0)


def engine_of(routing: Routing) -> str | None:
    """Return the name of the engine that computed the earlier tables, or None if no engine of ibnue computed them."""
    made = routing.provenance.engine
    return made if made in ENGINES else None


Given = Callable[[str], bool]
"""Function that returns whether the user gave an engine option, even if its value equals the default."""


def engine_for(routing: Routing, name: str) -> Engine:
    """Return the engine for a re-route: the engine of ``-e`` if given, otherwise the engine of the earlier tables.

    Raises
    ------
    OptionError
        There is no engine of that name.
    """
    return ENGINES[name if engine_options.is_given("engine_name") else engine_of(routing) or name]


def options_for(
    routing: Routing, fabric: Fabric, engine: Engine, options: EngineOptions, is_given: Given = engine_options.is_given
) -> EngineOptions:
    """Return the engine options for a re-route.  Some options come from the earlier tables.

    Options that the user gave (for which ``is_given`` returns True) take precedence.  Without ``--first-vl``, the VLs
    below the first VL of the earlier tables stay unused.  If the engine is the same, the roots of the earlier tables
    that ``fabric`` still has are kept, unless the user gave ``--root`` or ``--root-guid-file``.
    """
    if not is_given("first_vl"):
        options = replace(options, first_vl=_first_vl(routing))
    if engine_of(routing) == engine.name and not (is_given("roots") or is_given("root_guid_file")):
        options = replace(
            options, roots=tuple(_guid_text(int(fabric.switch_guid[row])) for row in _roots(routing, fabric))
        )
    return options


def _first_vl(routing: Routing) -> int:
    """Return the first VL that the earlier tables use; 0 if the first VL is not recorded."""
    first = routing.provenance.options.get("first_vl", 0)
    return first if isinstance(first, int) else 0


def _roots(routing: Routing, fabric: Fabric) -> list[int]:
    """Return the rows of the switches that are recorded as roots of the earlier tables, if still in the fabric."""
    named = routing.provenance.options.get("roots")
    row = {_guid_text(int(guid)): row for row, guid in enumerate(fabric.switch_guid)}
    return [row[guid] for guid in map(str, named) if guid in row] if isinstance(named, list) else []


def _guid_text(guid: int) -> str:
    return f"{guid:#018x}"


def reroute(
    earlier: tuple[Fabric, Routing],
    engine: Engine,
    options: EngineOptions,
    fabric: Fabric,
    *,
    stability: str,
    rebalance: int = 0,
    is_given: Given = engine_options.is_given,
) -> Rerouted:
    """Prove the earlier tables on their fabric, and re-route them for the present fabric.

    Raises
    ------
    OptionError
        The earlier tables contradict the options (:func:`check_same`), or replies are not safe although
        ``--reversible`` is given.
    """
    from routing.deadlock.proof import prove
    from routing.reroute import Published, Stability, spread, translate
    from routing.reroute import reroute as change

    was, routing = earlier
    if stability != "fresh":
        check_same(routing, was, engine, options, "--previous", is_given=is_given)
    before = Published(was, routing, prove(was, routing, threads=options.threads))
    if stability != "fresh" and options.reversible and before.proof.strength == "forward":
        raise OptionError("the tables of --previous are not proven for replies, as --reversible asks",
                          remedy="leave it out, or --stability fresh to change them all")  # fmt: skip
    found = change(engine, options, before, fabric, stability=Stability(stability), baseline=before)
    if not rebalance:
        return found
    baseline = None if was.digest == fabric.digest else before
    step = spread(engine, options, Published(fabric, found.routing, found.proof), most=rebalance, baseline=baseline)
    return both(found, step, translate(routing, was, fabric))


def both(found: Rerouted, step: Rerouted | None, earlier: Routing) -> Rerouted:
    """Combine the results of a re-route and of the rebalance after it.

    The combined result reports how the final tables differ from the earlier tables.

    Parameters
    ----------
    found, step
        The results of the re-route and of the rebalance.  ``step`` is None if the rebalance changed no entry.
    earlier
        The earlier tables, renumbered for the present fabric.
    """
    if step is None:
        return replace(
            found, reason=f"{found.reason}; no more entries are moved, because the balance would not improve"
        )
    changed = count_noun(step.changed, "entry changes", "entries change")
    return replace(
        step,
        broken=found.broken,
        changed=int((step.routing.lft != earlier.lft).sum()),
        reason=step.reason if found.how == "unchanged" else f"{found.reason}; then {changed}: {step.reason}",
        how=step.how if found.how == "unchanged" else found.how,
        statistics=replace(found.statistics, moved_afterwards=step.changed),
        kept=None if found.kept is None or step.kept is None else found.kept * step.kept,
        fresh_kept=found.fresh_kept,
        fresh=found.fresh,
    )


def check_same(
    routing: Routing,
    fabric: Fabric,
    engine: Engine,
    options: EngineOptions,
    option: str,
    *,
    is_given: Given = engine_options.is_given,
) -> None:
    """Raise OptionError if the engine options contradict the earlier tables.

    A re-route keeps most entries of the earlier tables, so the options must fit the earlier tables.
    ``option`` is the command's option that names the earlier tables, for the error message.

    Raises
    ------
    OptionError
        The engine, the roots or the first VL differ, or the tables use more VLs than are allowed.
    ParseError
        The file of roots has an invalid format, or names a switch that the fabric does not have.
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
        raise OptionError(f"the tables of {option} use {count_noun(vls, 'VL')}, --vls allows {options.vls}",
                          remedy=f"use --vls {vls}, or --stability fresh to change them all")  # fmt: skip
    if options.vls == "auto" and routing.vls > options.port_vls and is_given("port_vls"):
        last = routing.vls - 1
        raise OptionError(f"the tables of {option} use VLs up to {last}, --port-vls allows {options.port_vls}",
                          remedy=f"use --port-vls {routing.vls}, or --stability fresh to change them all")  # fmt: skip


def check_roots(routing: Routing, fabric: Fabric, options: EngineOptions, option: str) -> None:
    """Raise OptionError if the engine options name other roots than the earlier tables have."""
    from routing.engines.roots import named_roots

    has, wanted = _roots(routing, fabric), named_roots(fabric, options)
    if has != wanted:
        names, others = (", ".join(fabric.labels[row] for row in rows) for rows in (has, wanted))
        were = f"have the roots {names}, not {others}" if has else f"were made without roots, not from {others}"
        raise OptionError(f"the tables of {option} {were}",
                          remedy="leave them out, or --stability fresh to change all tables")  # fmt: skip


def facts(found: Rerouted, kept: CapacityKept) -> Iterator[tuple[str, str]]:
    """Yield output rows: how much the tables have changed, and which share of each earlier rate remains."""
    yield "changed", f"{count_noun(found.changed, 'entry')}; {found.broken} invalid"
    if kept.all_to_all is not None:
        of = {"all-to-all": "all-to-all rate"}
        yield "kept", ", ".join(f"{share} of the {of.get(name, name)}{beside}" for name, share, beside in kept.shares())
    yield "how", f"{found.how}: {found.reason}"


def as_object(found: Rerouted, kept: CapacityKept) -> dict[str, Any]:
    """Return the report on a re-route as an object for ``--json``, with the shares of the earlier rates that remain."""
    return {
        "entries_broken": found.broken,
        "entries_changed": found.changed,
        "method": found.how,
        "reason": found.reason,
        "counts": found.statistics.counts(),
        **kept.as_dict(),
    }
