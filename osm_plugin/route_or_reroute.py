"""Compute the tables that OpenSM will get: keep the tables in force, re-route them, or route from scratch.  Then prove
the tables.
"""

from __future__ import annotations

import hashlib
import json
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from osm_plugin.decision import Decision, Start
from routing.engines.base import OPTIONS, Engine, EngineOptions
from routing.errors import BrokenPromise, IbnueError, InputError, OptionError
from routing.fabric import Fabric
from routing.numerals import count_noun
from routing.port_classes import PortClasses
from routing.publish import VerifiedTables, verify
from routing.reroute import CapacityKept, Published, Rerouted, kept_by_reroute, reroute, spread

ENTRIES_FOR_MOVES = 100_000
"""Number of LFT entries to which the setting ``rebalance`` refers.

A rebalance step may change ``rebalance`` entries for every :data:`ENTRIES_FOR_MOVES` entries in the tables.  The number
of entries in the tables is rounded up to a multiple of this number.  The limit grows with the tables, because a fault
in large tables breaks thousands of entries.  Steps of a few hundred entries would then regain little.
"""


@dataclass(frozen=True, eq=False)
class Plan:
    """Tables that will be given to OpenSM, and how they were computed.

    Attributes
    ----------
    tables
        The tables, and their proof on the current fabric.
    decision
        How the tables were computed in the end.  FROM_SCRATCH replaces a decision whose re-route or proof has failed.
        KEEP replaces the decision to rebalance if no better balance was found.
    how
        How the tables were computed, in a few words for the log.
    figures
        Figures that compare the tables with the previous tables.  "entries_broken" and "entries_changed" are numbers of
        LFT entries.  The other figures are throughputs, divided by those of the previous tables.  Their keys are those
        of :meth:`routing.reroute.CapacityKept.as_dict`.  Unknown figures are left out.  Empty if there were no previous
        tables.
    problem
        The error of a search for a better balance, as text for the log; "" if there was no search or no error.
    """

    tables: VerifiedTables
    decision: Decision
    how: str
    figures: Mapping[str, float] = field(default_factory=dict)
    problem: str = ""


def options_key(options: EngineOptions, classes: PortClasses | None = None) -> str:
    """Return a text that identifies all options that affect the tables, and the rules for the classes of end ports.

    On one fabric, options and rules with equal texts give equal tables.

    Raises
    ------
    InputError
        A file that an option names cannot be read.
    """
    summary = {name: value for name, value in options.as_dict().items() if OPTIONS[name].changes_tables}
    for name, path in summary.items():
        if isinstance(path, Path):
            try:
                summary[name] = hashlib.sha256(path.read_bytes()).hexdigest()
            except OSError as problem:
                raise InputError(f"cannot be read: {problem.strerror or problem}", path=path) from None
    if classes not in (None, PortClasses()):
        summary["classes"] = hashlib.sha256(repr(classes).encode()).hexdigest()
    return json.dumps(summary, sort_keys=True)


def route_or_reroute(engine: Engine, options: EngineOptions, fabric: Fabric, start: Start) -> Plan:
    """Return the tables that OpenSM will get, by the decision in ``start``.

    The engine routes from scratch if a re-route fails, or if the tables to keep fail the proof.

    Raises
    ------
    OptionError, RoutingError
        The engine or :func:`routing.publish.verify` refused the options or the tables.
    """
    remark = "routed from scratch"
    match start:
        case Start(decision=Decision.REROUTE | Decision.REPAIR_PINNED, before=Published() as before):
            made, remark = _rerouted(engine, options, fabric, before, start)
            if made is not None:
                return made
        case Start(before=Published() as before):
            # The tables in force were proven when they were computed.  If the proof fails now, the engine routes from
            # scratch.
            with suppress(BrokenPromise):
                return _kept(engine, options, fabric, before, start)
    routing = engine.route(fabric, options)
    tables = verify(fabric, routing, engine, threads=options.threads, explain=False)
    return Plan(tables, Decision.FROM_SCRATCH, remark)


def _kept(engine: Engine, options: EngineOptions, fabric: Fabric, before: Published, start: Start) -> Plan:
    """Return the tables in force, or rebalanced tables if ``start`` asks for rebalancing and the balance improves."""
    problem = ""
    if start.decision is Decision.REBALANCE:
        try:
            better = _rebalanced(engine, options, before, start)
        except Exception as error:  # A failed search for better tables must not lose the valid tables.
            traceback.print_exc()
            better, problem = None, f"{type(error).__name__}: {error}"
        if better is not None:
            return better
    tables = verify(fabric, before.routing, engine, threads=options.threads, explain=False)
    decision = Decision.KEEP if start.decision is Decision.REBALANCE else start.decision
    return Plan(tables, decision, "tables unchanged", {"entries_broken": 0, "entries_changed": 0}, problem)


def _rerouted(
    engine: Engine, options: EngineOptions, fabric: Fabric, before: Published, start: Start
) -> tuple[Plan | None, str]:
    """Re-route the tables ``before``.  Return the plan with the new tables, and an empty text.  If the re-route fails,
    return None and a remark for the log.

    ``start`` is the decision with the parameters of the re-route.
    """
    try:
        made = reroute(
            engine, options, before, fabric,
            stability=start.stability, baseline=start.baseline, precomputed=start.precomputed,
        )  # fmt: skip
    except OptionError:
        raise  # An option is wrong.  Routing from scratch would raise this error, too.
    # After any other error, the engine can route from scratch.  So such an error must not end the request.
    except Exception as problem:
        if not isinstance(problem, IbnueError):
            traceback.print_exc()
        return None, f"routed from scratch, because the re-route failed: {type(problem).__name__}: {problem}"
    return _plan(made, before, start), ""


def _rebalanced(engine: Engine, options: EngineOptions, before: Published, start: Start) -> Plan | None:
    """Return rebalanced tables, or None if the search finds no better balance.

    ``before`` are the tables in force.  ``start.moves`` entries may change for every :data:`ENTRIES_FOR_MOVES`
    entries in the tables (rounded up).
    """
    made = spread(
        engine, options, before,
        most=start.moves * max(1, -(-before.routing.lft.size // ENTRIES_FOR_MOVES)),
        baseline=start.baseline, precomputed=start.precomputed,
    )  # fmt: skip
    return None if made is None else _plan(made, before, start)


def _plan(made: Rerouted, before: Published, start: Start) -> Plan:
    """Return the plan for the re-routed or rebalanced tables ``made``.  The plan also has the rates with these tables,
    as shares of the rates with the tables ``before``.
    """
    kept = kept_by_reroute(before, made)
    figures = {"entries_broken": made.broken, "entries_changed": made.changed, **kept.as_dict()}
    known = {name: value for name, value in figures.items() if value is not None}
    return Plan(made.tables, start.decision, _describe(made, kept), known)


def _describe(made: Rerouted, kept: CapacityKept) -> str:
    shares = kept.describe()
    cost = f", {shares}" if shares else ""
    if made.how == "rebalanced":
        return f"rebalanced ({made.reason}){cost}"
    entries = count_noun(made.broken, "entry was", "entries were")
    return f"re-routed, {made.how} ({made.reason}): {entries} broken{cost}"
