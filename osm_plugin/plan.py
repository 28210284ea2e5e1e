"""What to publish: the tables in force where the fabric is as it was, otherwise new ones; proven in every case."""

from __future__ import annotations

import hashlib
import json
import traceback
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

from routing.deadlock.proof import Proof
from routing.engines.base import Engine, EngineOptions
from routing.errors import BrokenPromise, IbnueError, InputError, OptionError
from routing.fabric import Fabric
from routing.numerals import number_of
from routing.publish import verify
from routing.reroute import Published, Rerouted, Stability, reroute
from routing.tables import Routing


@dataclass(frozen=True, eq=False)
class Plan:
    """Tables to be published.

    Attributes
    ----------
    routing, proof
        The tables and their proof on the fabric of the day.
    how
        Where they came from, in a few words for the log.
    """

    routing: Routing
    proof: Proof
    how: str


def options_key(options: EngineOptions) -> str:
    """Everything in the options that tables depend on, as text: equal options give equal tables of one fabric.

    Raises
    ------
    InputError
        The file of root GUIDs cannot be read.
    """
    told: dict[str, Any] = {field.name: getattr(options, field.name) for field in fields(options)}
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
    home: Published | None = None,
    stability: Stability = Stability.FULL,
) -> Plan:
    """Take the tables in force if they are for this fabric, else re-route from them; without any route afresh.

    Raises
    ------
    OptionError, RoutingError
        As the engine and :func:`routing.publish.verify`.
    """
    remark = "routed afresh"
    if before is not None and before.fabric.digest == fabric.digest:
        # Should they fail, which they did not when they were published, the engine's own will do.
        with suppress(BrokenPromise):
            proof = verify(fabric, before.routing, engine, threads=options.threads, explain=False)
            return Plan(before.routing, proof, "tables as they were")
    elif before is not None:
        try:
            made = reroute(engine, options, before, fabric, stability=stability, home=home)
            return Plan(made.routing, made.proof, _describe(made))
        except OptionError:
            raise  # the engine would say the same
        except Exception as problem:  # an engine that can route must not fail for what was meant to spare it work
            if not isinstance(problem, IbnueError):
                traceback.print_exc()
            remark = f"routed afresh, as re-routing failed: {type(problem).__name__}: {problem}"
    routing = engine.route(fabric, options)
    return Plan(routing, verify(fabric, routing, engine, threads=options.threads, explain=False), remark)


def _describe(made: Rerouted) -> str:
    entries = (
        f"{number_of(made.broken, 'entry was', 'entries were')} broken, {number_of(made.changed, 'is', 'are')} changed"
    )
    return f"re-routed, {made.how} ({made.reason}): {entries}"
