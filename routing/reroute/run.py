"""Re-route after a fault: try the smallest change first, and the engine from scratch last."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from routing.engines.base import Engine, EngineOptions
from routing.engines.roots import roots_left
from routing.fabric import Fabric
from routing.publish import Shortfall, admit, promised, verify
from routing.reroute.baseline import is_same
from routing.reroute.flow import flow_towards
from routing.reroute.precomputed import precompute
from routing.reroute.rebalance import MOST_CHANGES, kept_share
from routing.reroute.repair import Repair
from routing.reroute.translate import TranslatedTables, translate_tables
from routing.reroute.values import Published, Rerouted, Stability


def reroute(
    engine: Engine,
    options: EngineOptions,
    before: Published,
    fabric: Fabric,
    *,
    stability: Stability = Stability.BALANCED,
    baseline: Published | None = None,
) -> Rerouted:
    """Return proven tables for a changed fabric, as close to the previous ones as ``stability`` asks for.

    The certificate is at least as strong as the previous one (forward, reversible), unless the engine has to route from
    scratch: then the tables keep the engine's promise.

    Parameters
    ----------
    engine, options
        The engine that made the previous tables.  It routes from scratch where no smaller change is found, with those
        of the named roots that are still there.
    before
        The tables in the switches.
    fabric
        The present fabric.
    stability
        How much may change beyond what the fault broke.
    baseline
        The baseline: the tables of the fault-free fabric.  Columns return to it as soon as they are valid again.  Its
        dependencies stay reserved, so that they can.

    Raises
    ------
    OptionError, RoutingError
        The engine has to route from scratch, and fails.
    TableError
        The previous tables do not fit their fabric.
    """
    tables = translate_tables(before.routing, before.fabric, fabric)
    found = _rerouted(engine, options, before, fabric, tables, stability=stability, baseline=baseline)
    return (
        found
        if found.kept is not None
        else replace(found, kept=_kept(found, before, fabric, baseline, options.threads))
    )


def spread(
    engine: Engine, options: EngineOptions, before: Published, *, most: int, baseline: Published | None = None
) -> Rerouted | None:
    """Move entries of the tables in force off the channels with the highest utilisation.

    A re-route loses balance, and leaves new links unused.  In quiet times this function restores the balance, a few
    entries at a time.  The moves stay inside the acyclic CDG of the tables, and the result is proven like any other.

    Parameters
    ----------
    engine, options
        The engine that made the tables.
    before
        The tables in the switches, complete.
    most
        Entries that may move.
    baseline
        The baseline, whose balance is enough.

    Returns
    -------
    Rerouted or None
        None where the all-to-all rate would grow by less than a hundredth.

    Notes
    -----
    Cost: at most two searches of as many steps as the table has entries, and the proof of the changes.
    """
    tables = translate_tables(before.routing, before.fabric, before.fabric)
    context = precompute(before, baseline, threads=options.threads)
    job = Repair(engine, options, before, before.fabric, Stability.BALANCED, baseline, tables, context)
    return job.spread(most=most)


def _rerouted(
    engine: Engine,
    options: EngineOptions,
    before: Published,
    fabric: Fabric,
    tables: TranslatedTables,
    *,
    stability: Stability,
    baseline: Published | None,
) -> Rerouted:
    earlier = [there.fabric for there in (before, baseline) if there is not None]
    if stability is Stability.FRESH:
        return _route_from_scratch(engine, roots_left(fabric, options, earlier), fabric, tables, "asked for")
    settled = _unchanged_or_baseline(engine, before, fabric, baseline, tables)
    if settled is not None:
        return settled
    context = precompute(before, baseline, threads=options.threads)
    job = Repair(engine, options, before, fabric, stability, baseline, tables, context)
    found, problem = job.run()
    if "rejoined" in job.counts and _changes_too_many(found):
        found = _better_of(found, replace(job, counts={}, rejoins=False).run()[0])
    if "by_parts" in job.counts and _changes_too_many(found):
        found = _better_of(found, replace(job, counts={}, by_parts=False).run()[0])
    if _changes_too_many(found) or (found is not None and _scope(found) > _scope(before)):
        found = _better_of(found, replace(job, counts={}).run_fewest())
    return (
        found
        if found is not None
        else _route_from_scratch(engine, roots_left(fabric, options, earlier), fabric, tables, problem)
    )


def _kept(found: Rerouted, before: Published, fabric: Fabric, baseline: Published | None, threads: int) -> float | None:
    """Return the share of the previous all-to-all rate that is left, for tables whose repair has not computed it."""
    for there in (before, baseline):
        if there is not None and found.routing is there.routing:
            return kept_share(before, there.fabric.channels, there.load)
    return kept_share(before, fabric.channels, flow_towards(fabric, found.routing, threads=threads))


def _changes_too_many(found: Rerouted | None) -> bool:
    """Return whether a search for fewer changes is worth its time; entries that moved for balance do not count."""
    if found is None:
        return True
    missing = max(found.broken, found.counts.get("holes", 0))
    own = found.changed - found.counts.get("healed", 0) - found.counts.get("moved_for_balance", 0)
    return own > MOST_CHANGES * missing


def _better_of(found: Rerouted | None, other: Rerouted | None) -> Rerouted | None:
    """Return the candidate whose proof covers more traffic; of equals, the one with fewer changes."""
    if found is None or other is None:
        return other if found is None else found
    return min(found, other, key=lambda one: (_scope(one), one.changed))


def _scope(tables: Rerouted | Published) -> int:
    """Return 0 if the proof includes traffic between switches, else 1."""
    return int(tables.proof.scope != "all")


def _unchanged_or_baseline(
    engine: Engine, before: Published, fabric: Fabric, baseline: Published | None, tables: TranslatedTables
) -> Rerouted | None:
    """Return the baseline if the fabric is the fault-free one, or the previous tables if nothing has changed."""
    there = before if baseline is None else baseline
    found = admit(fabric, there.routing, there.proof, promised(engine))
    if isinstance(found, Shortfall):
        return None
    if baseline is not None and is_same(baseline.fabric, fabric):
        changed = int(np.count_nonzero(baseline.routing.lft != tables.earlier))
        if changed or not np.array_equal(baseline.routing.sl, tables.routing.sl):
            reason = "the fabric is without faults again"
            return Rerouted(found, tables.broken, changed, "baseline", reason, {"healed": changed})
        return Rerouted(found, 0, 0, "unchanged", reason="the tables are the baseline tables")
    if baseline is None and tables.broken == 0 and is_same(before.fabric, fabric):
        return Rerouted(found, 0, 0, "unchanged", "no cable has changed")
    return None


def _route_from_scratch(
    engine: Engine, options: EngineOptions, fabric: Fabric, tables: TranslatedTables, reason: str
) -> Rerouted:
    found = verify(fabric, engine.route(fabric, options), engine, threads=options.threads)
    changed = int(np.count_nonzero(found.routing.lft != tables.earlier))
    return Rerouted(found, tables.broken, changed, "fresh", reason)
