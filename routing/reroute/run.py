"""The re-route: from the least change that can do to the engine's fresh run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from routing.engines.base import Engine, EngineOptions, Promise
from routing.engines.roots import roots_left
from routing.fabric import Fabric
from routing.publish import verify
from routing.reroute.home import is_same
from routing.reroute.mend import Job
from routing.reroute.standing import prepare
from routing.reroute.translate import Laid, lay_over
from routing.reroute.values import Published, Rerouted, Stability

MOST_CHANGES = 3
"""Entries changed for a broken one from which on it is worth the time to look for less."""


def reroute(
    engine: Engine,
    options: EngineOptions,
    before: Published,
    fabric: Fabric,
    *,
    stability: Stability = Stability.FULL,
    home: Published | None = None,
) -> Rerouted:
    """Tables for a fabric that has changed, as near to the earlier ones as ``stability`` asks for.

    They are proven, and no weaker than the earlier ones: if those were certified (forward, reversible), these are, too,
    unless it takes a fresh run of the engine, which keeps what the engine promises.

    Parameters
    ----------
    engine, options
        What made the earlier tables; a fresh run of it is what is left where nothing less will do.  It goes on with the
        named roots that are left.
    before
        The tables that are in the switches.
    fabric
        The fabric as it is now.
    stability
        What may change that need not.
    home
        The tables of the fabric without faults.  Columns go back to them as soon as they hold again, and what they make
        wait stays allowed for, so that they can.

    Raises
    ------
    OptionError, RoutingError
        What the engine raises where it has to run afresh.
    TableError
        The earlier tables do not fit their fabric.
    """
    laid = lay_over(before.routing, before.fabric, fabric)
    earlier = [there.fabric for there in (before, home) if there is not None]
    if stability is Stability.FRESH:
        return _fresh(engine, roots_left(fabric, options, earlier), fabric, laid, "asked for")
    settled = _settled(engine, before, fabric, home, laid)
    if settled is not None:
        return settled
    standing = prepare(before, home, threads=options.threads)
    job = Job(engine, options, before, fabric, stability, home, laid, standing)
    found, problem = job.run()
    if "rejoined" in job.counts and _is_much(found):
        found = _lesser(found, replace(job, counts={}, rejoins=False).run()[0])
    if "by_parts" in job.counts and _is_much(found):
        found = _lesser(found, replace(job, counts={}, by_parts=False).run()[0])
    if _is_much(found) or (found is not None and _scope(found) > _scope(before)):
        found = _lesser(found, replace(job, counts={}).run_fewest())
    return found if found is not None else _fresh(engine, roots_left(fabric, options, earlier), fabric, laid, problem)


def _is_much(found: Rerouted | None) -> bool:
    """Whether it is worth the time to look for less: nothing was found, or too many entries had to give way."""
    if found is None:
        return True
    missing = max(found.broken, found.counts.get("holes", 0))
    return found.changed - found.counts.get("healed", 0) > MOST_CHANGES * missing


def _lesser(found: Rerouted | None, other: Rerouted | None) -> Rerouted | None:
    """The one that is proven for more, and of equals the one with fewer changes."""
    if found is None or other is None:
        return other if found is None else found
    return min(found, other, key=lambda one: (_scope(one), one.changed))


def _scope(tables: Rerouted | Published) -> int:
    """0 if what switches send to switches is proven, too, else 1."""
    return int(tables.proof.scope != "all")


def _settled(engine: Engine, before: Published, fabric: Fabric, home: Published | None, laid: Laid) -> Rerouted | None:
    """What is there already, if it is good enough: the tables of home, or those of before if nothing has changed."""
    there = before if home is None else home
    if there.proof.certificate is None and engine.promise is Promise.DEADLOCK_FREE:
        return None
    if home is not None and is_same(home.fabric, fabric):
        changed = int(np.count_nonzero(home.routing.lft != laid.earlier))
        if changed or not np.array_equal(home.routing.sl, laid.routing.sl):
            reason = "all is as it was without faults"
            return Rerouted(home.routing, home.proof, laid.broken, changed, "home", reason, {"healed": changed})
        return Rerouted(home.routing, home.proof, 0, 0, "unchanged", reason="the tables are those without faults")
    if home is None and laid.broken == 0 and is_same(before.fabric, fabric):
        return Rerouted(before.routing, before.proof, 0, 0, "unchanged", "every cable is where it was")
    return None


def _fresh(engine: Engine, options: EngineOptions, fabric: Fabric, laid: Laid, reason: str) -> Rerouted:
    routing = engine.route(fabric, options)
    proof = verify(fabric, routing, engine, threads=options.threads)
    changed = int(np.count_nonzero(routing.lft != laid.earlier))
    return Rerouted(routing, proof, laid.broken, changed, "fresh", reason)
