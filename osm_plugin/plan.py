"""Choice of the tables to publish: tables in force if the fabric is unchanged, else new ones; proven in all cases."""

from __future__ import annotations

import hashlib
import json
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any

from routing.deadlock.proof import Proof
from routing.engines.base import Engine, EngineOptions
from routing.errors import BrokenPromise, IbnueError, InputError, OptionError
from routing.fabric import Fabric
from routing.numerals import number_of
from routing.publish import verify
from routing.reroute import Precomputed, Published, Rerouted, Stability, reroute, spread
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
    figures
        Numbers of "broken" and "changed" entries relative to the previous tables, and the share of their all-to-all
        throughput that is "kept", as far as known; empty if there were no previous tables.
    spread
        Whether entries were moved only to improve the balance.
    """

    routing: Routing
    proof: Proof
    how: str
    figures: Mapping[str, float] = field(default_factory=dict)
    spread: bool = False


def options_key(options: EngineOptions) -> str:
    """Return all options that affect the tables as text.

    Options with equal texts give equal tables of one fabric.

    Raises
    ------
    InputError
        The file of root GUIDs cannot be read.
    """
    told: dict[str, Any] = {part.name: getattr(options, part.name) for part in fields(options)}
    del told["threads"]  # never changes the result
    told["objective"] = options.objective.value
    if options.root_guid_file is not None:
        try:
            told["root_guid_file"] = hashlib.sha256(options.root_guid_file.read_bytes()).hexdigest()
        except OSError as problem:
            raise InputError(f"cannot be read: {problem.strerror or problem}", path=options.root_guid_file) from None
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
    precomputed: Precomputed | None = None,
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
    precomputed
        What a re-route of these tables needs, if it was computed ahead.

    Raises
    ------
    OptionError, RoutingError
        From the engine or :func:`routing.publish.verify`.
    """
    remark = "routed from scratch"
    if before is not None and before.fabric.digest == fabric.digest:
        # These tables passed the proof when they were published.  If they fail now, the engine computes new tables.
        with suppress(BrokenPromise):
            if (
                moves
                and (better := _spread(engine, options, before, baseline, moves=moves, precomputed=precomputed))
                is not None
            ):
                return better
            proof = verify(fabric, before.routing, engine, threads=options.threads, explain=False)
            return Plan(before.routing, proof, "tables as they were", {"broken": 0, "changed": 0})
    elif before is not None:
        try:
            made = reroute(
                engine, options, before, fabric, stability=stability, baseline=baseline, precomputed=precomputed
            )
            return Plan(made.routing, made.proof, _describe(made), _figures(made))
        except OptionError:
            raise  # the engine would raise the same error
        except Exception as problem:  # re-routing is optional, so its failure must not stop an engine that can route
            if not isinstance(problem, IbnueError):
                traceback.print_exc()
            remark = f"routed from scratch, as re-routing failed: {type(problem).__name__}: {problem}"
    routing = engine.route(fabric, options)
    return Plan(routing, verify(fabric, routing, engine, threads=options.threads, explain=False), remark)


def _spread(
    engine: Engine,
    options: EngineOptions,
    before: Published,
    baseline: Published | None,
    *,
    moves: int,
    precomputed: Precomputed | None,
) -> Plan | None:
    """Return tables with a better balance; None if there is no improvement or the search fails."""
    try:
        made = spread(engine, options, before, most=moves, baseline=baseline, precomputed=precomputed)
    except Exception:  # a failed search for better tables must not discard valid tables
        traceback.print_exc()
        return None
    if made is None:
        return None
    return Plan(made.routing, made.proof, _describe(made), _figures(made), spread=True)


def _figures(made: Rerouted) -> dict[str, float]:
    figures = {"broken": made.broken, "changed": made.changed, "kept": made.kept}
    return {name: value for name, value in figures.items() if value is not None}


def _describe(made: Rerouted) -> str:
    kept = "" if made.kept is None else f", all-to-all {100 * made.kept:.1f} % of before"
    if made.how == "rebalanced":
        return f"rebalanced ({made.reason}){kept}"
    entries = number_of(made.broken, "entry was", "entries were")
    return f"re-routed, {made.how} ({made.reason}): {entries} broken{kept}"
