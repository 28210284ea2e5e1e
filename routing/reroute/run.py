"""Re-route after a fault: try the smallest change first, and run the engine from scratch last."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from routing._kernels.differing import count_differing
from routing.engines.base import Engine, EngineOptions
from routing.engines.roots import roots_left
from routing.fabric import Fabric
from routing.publish import Shortfall, admit, promised, verify
from routing.reroute.baseline import is_same
from routing.reroute.budget import Budget
from routing.reroute.choose import choose
from routing.reroute.context import VLS_CHANGE, Request, RerouteContext
from routing.reroute.loads import rate_kept
from routing.reroute.outcome import Candidate, Refusal
from routing.reroute.precomputed import Precomputed, precompute
from routing.reroute.statistics import RerouteStatistics
from routing.reroute.strategies.quiet import spread as quiet_step
from routing.reroute.strategies.return_to_baseline import step_back
from routing.reroute.strategies.spare_vls import repair_on_spare_vls
from routing.reroute.strategies.steps import is_safe_change
from routing.reroute.translate import translate_tables
from routing.reroute.values import Published, Rerouted, Stability


def reroute(
    engine: Engine,
    options: EngineOptions,
    before: Published,
    fabric: Fabric,
    *,
    stability: Stability = Stability.BALANCED,
    baseline: Published | None = None,
    precomputed: Precomputed | None = None,
) -> Rerouted:
    """Return proven tables for a changed fabric, as close to the previous tables as ``stability`` asks for.

    The new certificate covers at least what the previous certificate covers (requests, or requests and replies).  If
    the engine has to route from scratch, the certificate covers what the engine promises.

    Parameters
    ----------
    engine, options
        The engine that made the previous tables, and its options.  The engine routes from scratch if no smaller change
        is found.  In that case, root switches that the options name are left out if they have gone from the fabric.
    before
        The tables in the switches.
    fabric
        The present fabric.
    stability
        How much may change beyond what the fault broke.
    baseline
        The tables of the fault-free fabric.  LFT columns return to the baseline as soon as they are valid again.  The
        dependencies of the baseline stay reserved for this return.
    precomputed
        The result of :func:`routing.reroute.precomputed.precompute` for these tables.  The data are computed here if
        the argument is None or belongs to other tables.

    Raises
    ------
    OptionError, RoutingError
        The engine has to route from scratch, and fails.
    TableError
        The previous tables do not fit their fabric.
    """
    snapshot = precomputed.lft if precomputed is not None and precomputed.is_for(before, baseline) else None
    tables = translate_tables(before.routing, before.fabric, fabric, snapshot)
    request = Request(engine, options, before, fabric, stability, baseline, tables)
    found = _rerouted(request, precomputed)
    return replace(found, kept=rate_kept(found, request))


def spread(
    engine: Engine,
    options: EngineOptions,
    before: Published,
    *,
    most: int,
    baseline: Published | None = None,
    precomputed: Precomputed | None = None,
) -> Rerouted | None:
    """Improve the balance of the tables in force by one step that is safe to write.

    Re-routes after faults worsen the balance, and leave new links unused.  While no entry is broken (old faults may
    remain), steps of this function restore the balance, a few entries at a time.  Before each step, the packets of
    earlier tables have left the fabric.  So dependencies that only these packets used no longer block moves
    (:mod:`routing.reroute.strategies.quiet`).  A step may cost up to 2 % of the all-to-all rate, if the next step gains
    more.  The tables of every step are proven.

    Paths of a step may close a cycle with dependencies of the baseline tables.  In that case, once the fabric is free
    of faults, further steps restore entries and SLs of the baseline tables until all are restored.

    Parameters
    ----------
    engine, options
        The engine that made the tables in force, and its options.
    before
        The tables in force.  Packets of earlier tables must have left the fabric.
    most
        Maximum number of entries that may move.  A step that takes LFTs from scratch may change four times as many
        entries.  The last step towards the baseline may change more.
    baseline
        The tables of the fault-free fabric.
    precomputed
        The result of :func:`routing.reroute.precomputed.precompute`, computed here if it is None.

    Returns
    -------
    Rerouted or None
        The tables after the step.  None if neither this step nor the next step would raise the all-to-all rate by 1 %,
        no step makes paths shorter, and no step leads back to the baseline.

    Notes
    -----
    Cost: a few searches, and a proof of the tables for every search.  A search follows at most twenty million hops, or
    as many hops as the table has entries if this is more.  If no search finds a step, small tables are also computed
    from scratch.
    """
    tables = translate_tables(before.routing, before.fabric, before.fabric)
    request = Request(engine, options, before, before.fabric, Stability.BALANCED, baseline, tables)
    if before.proof.certificate is None or request.refusal() is not None or not tables.in_place:
        return None
    if baseline is not None and before.left_baseline and is_same(baseline.fabric, before.fabric):
        return _towards_baseline(_context(request, precomputed), baseline, most)
    moved = quiet_step(_context(request, precomputed), most)
    return moved.found if isinstance(moved, Candidate) else None


def _towards_baseline(context: RerouteContext, baseline: Published, most: int) -> Rerouted | None:
    """Return the baseline tables if the change to the baseline tables is safe.  Otherwise return tables that are closer
    to the baseline tables.

    If no closer tables are found, return the baseline tables, although no safe rounds to them are known.
    """
    request = context.request
    step = None if _is_safe(request, baseline) else step_back(context, baseline, most)
    found = step.found if isinstance(step, Candidate) else _baseline_tables(request, baseline)
    return None if found is None else replace(found, kept=rate_kept(found, request))


def _is_safe(request: Request, baseline: Published) -> bool:
    """Return whether the baseline tables can replace the previous tables without a credit loop."""
    old, threads = request.translated.routing, request.options.threads
    return is_safe_change(request.fabric, old, request.before.proof, baseline, threads=threads)


def _rerouted(request: Request, precomputed: Precomputed | None) -> Rerouted:
    """Return the new tables of a re-route.

    If no repair is needed, the result is the previous tables or the baseline tables.  If a repair is needed, the result
    is the repaired tables.  If the repair fails, or if the stability is ``fresh``, the engine routes from scratch.
    """
    if request.stability is Stability.FRESH:
        return _route_from_scratch(request, "asked for")
    settled = _unchanged_or_baseline(request)
    if settled is not None:
        return settled
    outcome: Candidate | Refusal | None = request.refusal()
    if outcome is None:
        outcome = choose(_context(request, precomputed).prepared(), Budget())
    elif outcome is VLS_CHANGE:
        outcome = repair_on_spare_vls(_context(request, precomputed))
    return outcome.found if isinstance(outcome, Candidate) else _route_from_scratch(request, outcome.reason)


def _context(request: Request, precomputed: Precomputed | None) -> RerouteContext:
    if precomputed is None or not precomputed.is_for(request.before, request.baseline):
        threads = request.options.threads
        precomputed = precompute(request.before, request.baseline, threads=threads, snapshots=False)
    return RerouteContext.of(request, precomputed)


def _unchanged_or_baseline(request: Request) -> Rerouted | None:
    """Return tables that need no repair, or None if a repair is needed.

    If the fabric is free of faults again, the result is the baseline tables.  Without a baseline, the result is the
    previous tables if no cable and no entry has changed.

    Exception: rebalancing has released the dependencies of the baseline tables, and a single change to the baseline
    tables could close a credit loop.  Then the result is None, and :func:`spread` restores these tables in steps.
    """
    before, baseline, tables = request.before, request.baseline, request.translated
    if baseline is not None:
        kept = before.left_baseline and is_same(baseline.fabric, request.fabric) and not _is_safe(request, baseline)
        return None if kept else _baseline_tables(request, baseline)
    found = admit(request.fabric, before.routing, before.proof, promised(request.engine))
    if isinstance(found, Shortfall) or not is_same(before.fabric, request.fabric) or tables.broken:
        return None
    return Rerouted(found, 0, 0, "unchanged", "no cable has changed")


def _baseline_tables(request: Request, baseline: Published) -> Rerouted | None:
    """Return the baseline tables.  Return None if they were made for another fabric, or if their proof is weaker than
    the engine promises.
    """
    tables = request.translated
    found = admit(request.fabric, baseline.routing, baseline.proof, promised(request.engine))
    if isinstance(found, Shortfall) or not is_same(baseline.fabric, request.fabric):
        return None
    changed = count_differing(baseline.routing.lft, tables.earlier)
    if not changed and np.array_equal(baseline.routing.sl, tables.routing.sl):
        return Rerouted(found, 0, 0, "unchanged", reason="the tables are the baseline tables")
    reason, statistics = "the fabric is without faults again", RerouteStatistics(restored=changed)
    return Rerouted(found, tables.broken, changed, "baseline", reason, statistics)


def _route_from_scratch(request: Request, reason: str) -> Rerouted:
    """Route from scratch with the request's engine.  Root switches that the options name are left out if they have gone
    from the fabric.
    """
    engine, options, fabric, tables = request.engine, request.options, request.fabric, request.translated
    earlier = [there.fabric for there in (request.before, request.baseline) if there is not None]
    routing = engine.route(fabric, roots_left(fabric, options, earlier))
    found = verify(fabric, routing, engine, threads=options.threads)
    changed = count_differing(found.routing.lft, tables.earlier)
    return Rerouted(found, tables.broken, changed, "fresh", reason)
