"""Rebalance tables that are in force, in steps that are safe to write while no fault has to be repaired.

A step may use dependencies that the previous steps did not allow.  Nevertheless, the dependencies of the tables before
and after a step have no cycle together.  So the balance can improve step by step, and each step is safe.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from routing._kernels.repair import Rebalanced
from routing.cdg.trace import trace_acyclic_cdg
from routing.deadlock.schedule_search import find_schedule
from routing.reroute.base_fabric import BaseNumbering
from routing.reroute.baseline import is_same
from routing.reroute.blocked_moves import BlockedMoves
from routing.reroute.changed_entries import count_changed
from routing.reroute.context import RerouteContext
from routing.reroute.outcome import Candidate, Refusal
from routing.reroute.rebalance import (
    LEAST_GAIN,
    LEAST_WORK,
    Utilisation,
    cut_bound,
    in_frame,
    kept_share,
    move_entries,
)
from routing.reroute.strategies.balance import goal_of
from routing.reroute.strategies.columns import Progress
from routing.reroute.vacate import TablesInUse, vacate
from routing.reroute.verify import verify
from routing.tables import Routing

LARGEST_LOSS = 0.02
"""Fraction of the all-to-all rate that a step may cost, if the next step gains more than that."""
WORK = 20_000_000
"""Work limit of a search that respects only dependencies in use, in hops that the search follows."""
TRIALS = ((96, 2_000_000), (24, 8_000_000))
"""Pairs of the largest number of sets of dependencies that are vacated on trial, and the number of table entries of
all trials together.  The pair that permits more trials counts.
"""
NOTHING = Refusal("nothing is gained")


def spread(context: RerouteContext, most: int) -> Candidate | Refusal:
    """Change at most ``most`` entries, so that this step or the next one improves the balance.

    Three searches are tried in this order:

    1. Moves within the dependencies that a repair may use, which include those of the baseline tables.  Tables that
       have left the baseline skip this search.
    2. Moves that respect only the dependencies that the tables in force use.
    3. Moves that vacate dependencies which few entries use, and which keep entries on the most loaded channels.  The
       next step can then move these entries.
    """
    found: Candidate | Refusal = NOTHING
    if not context.request.before.left_baseline:
        found = _local(context, Progress.of(context), most)
    if isinstance(found, Candidate) or context.certificate is None or context.request.sl_is_per_source_lid:
        return found
    in_use = released(context)
    if in_use is None:
        return found
    found = _local(context, in_use, most, work=WORK)
    return found if isinstance(found, Candidate) else _vacated(context, in_use, most)


def released(context: RerouteContext, progress: Progress | None = None) -> Progress | None:
    """Return the state ``progress`` with only those dependencies that its tables use; None if these have a cycle.

    Packets of earlier tables have left the fabric, so that their dependencies do not count any more.
    """
    fabric, certificate = context.request.fabric, context.certificate
    progress = Progress.of(context) if progress is None else progress
    assert certificate is not None
    dependencies = trace_acyclic_cdg(
        fabric, progress.tables, certificate, context.vl_bit, threads=context.request.options.threads
    )
    if dependencies is None:
        return None
    baseline = context.request.baseline
    return replace(
        progress,
        numbering=BaseNumbering.of(fabric, [fabric]),
        dependencies=dependencies,
        is_traced=True,
        leaves_baseline=baseline is not None and not is_same(baseline.fabric, fabric),
    )


def _goal(context: RerouteContext, progress: Progress) -> int:
    """Return the goal of a search: the utilisation of the most loaded channel at which the search ends.

    The goal is the cut bound of single switches if the tables in force are the baseline tables, if there is no
    baseline, or if the repair no longer reserves the dependencies of the baseline tables.  Otherwise the goal is the
    utilisation that the baseline tables have.
    """
    baseline = context.request.baseline
    own = baseline is None or baseline.routing is context.request.before.routing
    if own or progress.is_traced:
        return cut_bound(progress.numbering.repair_fabric)
    return goal_of(context, progress.numbering)


def _local(context: RerouteContext, progress: Progress, most: int, work: int = LEAST_WORK) -> Candidate | Refusal:
    """Move at most ``most`` entries off the most loaded channels.

    ``work`` limits the hops that each search follows.  One search without the limit ``most`` shows whether the possible
    gain is worth a change.  If it moves more entries, another search keeps the limit.
    """
    start, load = progress.tables, _load_in_force(context, progress)
    for budget in (start.lft.size, most):
        tables, found = _searched(context, progress, load, budget, work)
        kept = kept_share(context.request.before, progress.numbering.base.channels, found.load)
        if budget > most and (kept is None or kept < 1 + LEAST_GAIN):
            return NOTHING
        if found.spent <= most:
            break
    statistics = replace(progress.statistics, missing=0, balance_moves=found.moves, moved_for_balance=found.spent)
    dependencies = progress.dependencies.grown(found.masks, found.order)
    done = replace(progress, tables=tables, dependencies=dependencies, statistics=statistics)
    return verified(context, done, kept) if found.moves else verify(context, done, "unchanged", kept)


def _load_in_force(context: RerouteContext, progress: Progress) -> npt.NDArray[np.int64]:
    return in_frame(progress.numbering, context.request.fabric, context.request.before.load)


def _searched(
    context: RerouteContext, progress: Progress, load: npt.NDArray[np.int64], budget: int, work: int
) -> tuple[Routing, Rebalanced]:
    """Search for moves of at most ``budget`` entries within the dependencies of ``progress``.

    ``load`` (int64[C]) is the load of the tables of ``progress``.
    """
    return move_entries(
        progress.numbering,
        context.service_levels(progress.numbering, progress.certificate, progress.tables),
        progress.tables,
        progress.tables.lft,
        dependencies=progress.dependencies,
        now=Utilisation(load, _goal(context, progress)),
        budget=budget,
        work=max(work, progress.tables.lft.size),
    )


def verified(context: RerouteContext, progress: Progress, kept: float | None) -> Candidate | Refusal:
    """Prove the tables of a step, and refuse them if they cannot replace the tables in force without a credit loop.

    ``kept`` is their all-to-all rate divided by that of the tables in force.
    """
    found = verify(context, progress, "rebalanced", kept)
    if isinstance(found, Refusal) or progress.certificate is None:
        return found
    before, after = context.request.before, found.found
    known = None
    if before.proof.cdg is not None and after.proof.cdg is not None:
        known = before.proof.cdg.onto(context.request.fabric) | after.proof.cdg
    schedule = find_schedule(
        context.request.fabric,
        before.routing,
        after.routing,
        known=known,
        replies=progress.certificate.strength == "reversible",
        threads=context.request.options.threads,
    )
    return Refusal("no safe rounds were found for the moves") if schedule is None else found


def _vacated(context: RerouteContext, in_use: Progress, most: int) -> Candidate | Refusal:
    """Vacate dependencies such that the next step can move entries off the most loaded channels.

    At most ``most`` entries change.  The all-to-all rate may fall by up to :data:`LARGEST_LOSS`, if the next step gains
    more.
    """
    request, numbering = context.request, in_use.numbering
    rules = context.service_levels(numbering, in_use.certificate, in_use.tables)
    now = Utilisation(_load_in_force(context, in_use), _goal(context, in_use))
    start = TablesInUse(numbering, rules, in_use.tables, in_use.dependencies, now)
    trials = max(2, *(min(most_trials, entries // in_use.tables.lft.size) for most_trials, entries in TRIALS))
    for room in BlockedMoves.of(start).rooms(most // 2, trials):
        made = vacate(start, vacated=room.vls, forbidden=room.vls, most=most)
        if made is None:
            continue
        tables, load = made
        kept = kept_share(request.before, numbering.base.channels, load)
        changed = count_changed(tables.lft, in_use.tables.lft)
        if kept is None or kept < 1 - LARGEST_LOSS or not changed:
            continue
        statistics = replace(in_use.statistics, missing=0, vacated=room.edges, moved_for_balance=changed)
        done = replace(in_use, tables=tables, statistics=statistics)
        if _next_gains(context, done, load, most) and isinstance(found := verified(context, done, kept), Candidate):
            return found
    return NOTHING


def _next_gains(context: RerouteContext, progress: Progress, load: npt.NDArray[np.int64], most: int) -> bool:
    """Return whether the tables of ``progress``, which are not yet in force, let the next step improve the tables in
    force.

    A next step without limit must raise the all-to-all rate by :data:`LEAST_GAIN`.  A next step of ``most`` entries
    must lower the highest utilisation, or make the load more even.  Otherwise two steps could undo each other without
    end.
    """
    after = released(context, progress)
    if after is None:
        return False
    _, found = _searched(context, after, load, progress.tables.lft.size, WORK)
    kept = kept_share(context.request.before, progress.numbering.base.channels, found.load)
    if kept is None or kept < 1 + LEAST_GAIN:
        return False
    _, limited = _searched(context, after, load, most, WORK)
    before = _unevenness(context, progress, _load_in_force(context, progress))
    return _unevenness(context, progress, limited.load) < before


def _unevenness(context: RerouteContext, progress: Progress, load: npt.NDArray[np.int64]) -> tuple[int, float]:
    """Return two measures of uneven load, in order of importance.

    These are the highest utilisation, and the sum of squares of the utilisation above the goal.  Lower values are
    better.
    """
    utilisation = load * progress.numbering.repair_fabric.inverse_capacity
    over = np.maximum(utilisation - _goal(context, progress), 0).astype(np.float64)
    return int(utilisation.max(initial=0)), float((over**2).sum())
