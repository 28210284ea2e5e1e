"""Choice of the tables to publish: tables in force if the fabric is unchanged, else new ones; proven in all cases."""

from __future__ import annotations

import hashlib
import json
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from routing.deadlock.proof import Proof
from routing.engines.base import OPTIONS, Engine, EngineOptions
from routing.errors import BrokenPromise, IbnueError, InputError, OptionError
from routing.fabric import Fabric
from routing.numerals import number_of
from routing.publish import verify
from routing.reroute import Published, Rerouted, Stability, reroute, spread
from routing.tables import Routing


@dataclass(frozen=True, eq=False)
class Plan:
    """Tables to be published.

    Attributes
    ----------
    routing, proof
        The tables and their proof on the current fabric.
    how
        Origin of the tables, in a few words for the log.
    entries
        Numbers of "broken" and "changed" entries relative to the previous tables; empty if there were none.
    spread
        Whether entries were moved only to improve the balance.
    """

    routing: Routing
    proof: Proof
    how: str
    entries: Mapping[str, int] = field(default_factory=dict)
    spread: bool = False


def options_key(options: EngineOptions) -> str:
    """Return all options that affect the tables as text.

    Options with equal texts give equal tables of one fabric.

    Raises
    ------
    InputError
        A file that an option names cannot be read.
    """
    told = {name: value for name, value in options.as_dict().items() if OPTIONS[name].changes_tables}
    for name, path in told.items():
        if isinstance(path, Path):
            try:
                told[name] = hashlib.sha256(path.read_bytes()).hexdigest()
            except OSError as problem:
                raise InputError(f"cannot be read: {problem.strerror or problem}", path=path) from None
    return json.dumps(told, sort_keys=True)


def plan(
    engine: Engine,
    options: EngineOptions,
    fabric: Fabric,
    before: Published | None,
    *,
    baseline: Published | None = None,
    stability: Stability = Stability.BALANCED,
    moves: int = 0,
) -> Plan:
    """Return the tables to publish.

    Tables in force are kept if they are for this fabric, and re-routed otherwise.  Without tables in force, the engine
    computes tables from scratch.

    Parameters
    ----------
    engine, options, fabric
        The engine, its options, and the current fabric.
    before
        The tables in force; None: none.
    baseline
        The baseline tables; None: none.
    stability
        Which valid entries a re-route may change.
    moves
        Maximum number of entries to move for a better balance if the fabric is unchanged.

    Raises
    ------
    OptionError, RoutingError
        From the engine or :func:`routing.publish.verify`.
    """
    remark = "routed from scratch"
    if before is not None and before.fabric.digest == fabric.digest:
        # These tables passed the proof when they were published.  If they fail now, the engine computes new tables.
        with suppress(BrokenPromise):
            if moves and (better := _spread(engine, options, before, baseline, moves)) is not None:
                return better
            proof = verify(fabric, before.routing, engine, threads=options.threads, explain=False)
            return Plan(before.routing, proof, "tables as they were", {"broken": 0, "changed": 0})
    elif before is not None:
        try:
            made = reroute(engine, options, before, fabric, stability=stability, baseline=baseline)
            return Plan(made.routing, made.proof, _describe(made), {"broken": made.broken, "changed": made.changed})
        except OptionError:
            raise  # the engine would raise the same error
        except Exception as problem:  # re-routing is optional, so its failure must not stop an engine that can route
            if not isinstance(problem, IbnueError):
                traceback.print_exc()
            remark = f"routed from scratch, as re-routing failed: {type(problem).__name__}: {problem}"
    routing = engine.route(fabric, options)
    return Plan(routing, verify(fabric, routing, engine, threads=options.threads, explain=False), remark)


def _spread(
    engine: Engine, options: EngineOptions, before: Published, baseline: Published | None, moves: int
) -> Plan | None:
    """Return tables with a better balance; None if there is no improvement or the search fails."""
    try:
        made = spread(engine, options, before, most=moves, baseline=baseline)
    except Exception:  # a failed search for better tables must not discard valid tables
        traceback.print_exc()
        return None
    if made is None:
        return None
    return Plan(made.routing, made.proof, _describe(made), {"broken": 0, "changed": made.changed}, spread=True)


def _describe(made: Rerouted) -> str:
    kept = "" if made.kept is None else f", all-to-all {100 * made.kept:.1f} % of before"
    if made.how == "rebalanced":
        return f"rebalanced ({made.reason}){kept}"
    entries = number_of(made.broken, "entry was", "entries were")
    return f"re-routed, {made.how} ({made.reason}): {entries} broken{kept}"
