"""What to publish: the tables in force where the fabric is as it was, otherwise new ones; proven in every case."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

from osm_plugin.state import Kept
from routing.deadlock.proof import Proof
from routing.engines.base import Engine, EngineOptions
from routing.errors import BrokenPromise, InputError
from routing.fabric import Fabric
from routing.publish import verify
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


def plan(engine: Engine, options: EngineOptions, fabric: Fabric, before: Kept | None, home: Kept | None = None) -> Plan:
    """Take the tables in force if they are for this fabric, or the home tables if those are; else route.

    Raises
    ------
    OptionError, RoutingError
        As the engine and :func:`routing.publish.verify`.
    """
    for kept, how in ((before, "tables as they were"), (home, "home tables again")):
        if kept is None or kept.fabric.digest != fabric.digest:
            continue
        # Should they fail, which they did not when they were published, the engine's own will do.
        with suppress(BrokenPromise):
            return Plan(kept.routing, verify(fabric, kept.routing, engine, threads=options.threads, explain=False), how)
    routing = engine.route(fabric, options)
    return Plan(routing, verify(fabric, routing, engine, threads=options.threads, explain=False), "routed afresh")
