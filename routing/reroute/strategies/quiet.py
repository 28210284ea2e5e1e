"""Rebalance tables that are in force, in steps that are safe to write while no fault has to be repaired.

A step may add dependencies that would have closed a cycle with the tables before an earlier step.  Only cycles with the
tables directly before the step are excluded.  So each step is safe, and the balance improves step by step.
"""

from __future__ import annotations

from dataclasses import replace

from routing._kernels.differing import count_differing
from routing.reroute.blocked_moves import vacated_sets
from routing.reroute.context import RerouteContext
from routing.reroute.outcome import Candidate, Refusal
from routing.reroute.rebalance import (
    FURTHER_GAIN,
    LEAST_GAIN,
    LEAST_WORK,
    Utilisation,
    kept_share,
)
from routing.reroute.strategies.columns import Progress
from routing.reroute.strategies.from_scratch import take_from_scratch
from routing.reroute.strategies.prepared_sls import prepare_sls
from routing.reroute.strategies.steps import (
    NOTHING,
    OVERSHOOT,
    WORK,
    goal_in_force,
    load_in_force,
    next_tables,
    released,
    searched,
    verified,
)
from routing.reroute.vacate import NotVacated, TablesInUse

LARGEST_LOSS = 0.02
"""Fraction of the all-to-all rate that a step may cost, if the next step gains more than the step costs."""
LEAST_SHORTENING = 0.001
"""A rebalance step that does not lower the highest utilisation must lower the sum of the loads of all channels by at
least this fraction.  Paths then become shorter, which leaves room for the moves of the next steps.
"""
TRIALS = ((96, 2_000_000), (24, 8_000_000))
"""Limits for the number of trials.  In a trial, paths are moved off a set of dependencies, in order to see whether
better moves then become possible.  A pair (sets, entries) permits ``sets`` trials, but no more than ``entries`` divided
by the number of table entries.  The pair that permits more trials is used, and two trials are always permitted.
"""


def spread(context: RerouteContext, most: int) -> Candidate | Refusal:
    """Change at most ``most`` entries, so that this step or the next step improves the balance.  The sixth search may
    change four times as many entries.

    Six searches are tried in this order:

    1. Moves that close no cycle with the dependencies that a repair may use.  These include the dependencies of the
       baseline tables.  If the tables in force have left the baseline, this search is left out.
    2. Moves that respect only the dependencies that the tables in force use.
    3. Moves that also shorten paths, and may raise the load of other channels at first (:func:`_shortened`).
    4. Changes of SLs, after which the next step can move entries (:mod:`.prepared_sls`).
    5. Moves that vacate dependencies which few entries use.  These dependencies block the moves of other entries off
       the most loaded channels.  The next step can then make the blocked moves.
    6. The LFTs of tables from scratch (:mod:`.from_scratch`), if at most four times ``most`` entries change.  If the
       present SLs do not allow these LFTs, this step changes SLs, and the next step takes the LFTs.
    """
    found: Candidate | Refusal = NOTHING
    if not context.request.before.left_baseline:
        found = _local(context, Progress.of(context), most)
    if isinstance(found, Candidate) or context.certificate is None or context.request.sl_is_per_source_lid:
        return found
    in_use = released(context)
    if in_use is None:
        return found
    for search in (_within_dependencies_in_use, _shortened, prepare_sls, _vacated, take_from_scratch):
        if isinstance(found := search(context, in_use, most), Candidate):
            break
    return found


def _within_dependencies_in_use(context: RerouteContext, in_use: Progress, most: int) -> Candidate | Refusal:
    """Move at most ``most`` entries to paths that close no cycle with the dependencies of the tables in force.

    Unlike in a repair, other dependencies of the baseline tables are not reserved (see :func:`spread`).
    """
    return _local(context, in_use, most, work=WORK)


def _local(context: RerouteContext, progress: Progress, most: int, work: int = LEAST_WORK) -> Candidate | Refusal:
    """Move at most ``most`` entries off the most loaded channels.

    ``work`` limits the hops that each search follows.  A first search ignores the limit ``most``, and shows whether the
    possible gain is worth a change.  If the first search moves more than ``most`` entries, a second search obeys the
    limit.
    """
    start, load = progress.tables, load_in_force(context, progress)
    for budget in (start.lft.size, most):
        tables, found = searched(context, progress, load, budget, work=work)
        kept = kept_share(context.request.before, progress.numbering.base.channels, found.load)
        if budget == start.lft.size and (kept is None or kept < 1 + LEAST_GAIN):
            return NOTHING
        if found.spent <= most:
            break
    if count_differing(tables.lft, start.lft) == 0:  # The search may have undone all of its moves.
        return NOTHING
    statistics = replace(progress.statistics, missing=0, balance_moves=found.moves, moved_for_balance=found.spent)
    dependencies = progress.dependencies.grown(found.masks, found.order)
    done = replace(progress, tables=tables, dependencies=dependencies, statistics=statistics)
    return verified(context, done, kept)


def _shortened(context: RerouteContext, in_use: Progress, most: int) -> Candidate | Refusal:
    """Move at most ``most`` entries to shorter paths and off the most loaded channels.

    During the search, a move may raise other channels above the channel that it relieves.  But the search as a whole
    must not raise the highest utilisation.  It must also lower the sum of the loads of all channels by the fraction
    :data:`LEAST_SHORTENING`, or the highest utilisation by the fraction :data:`routing.reroute.rebalance.FURTHER_GAIN`.
    Otherwise the moves are refused.
    """
    load, before = load_in_force(context, in_use), context.request.before
    tables, found = searched(context, in_use, load, most, overshoot=OVERSHOOT)
    kept = kept_share(before, in_use.numbering.base.channels, found.load)
    shortens = found.load.sum() <= (1 - LEAST_SHORTENING) * load.sum()
    if kept is None or kept < (1 if shortens else 1 / (1 - FURTHER_GAIN)):
        return NOTHING
    statistics = replace(in_use.statistics, missing=0, balance_moves=found.moves, moved_for_balance=found.spent)
    dependencies = in_use.dependencies.grown(found.masks, found.order)
    return verified(context, replace(in_use, tables=tables, dependencies=dependencies, statistics=statistics), kept)


def _vacated(context: RerouteContext, in_use: Progress, most: int) -> Candidate | Refusal:
    """Vacate dependencies such that the next step can move entries off the most loaded channels.

    At most ``most`` entries change.  The all-to-all rate may fall by up to :data:`LARGEST_LOSS`, if the next step gains
    more.
    """
    numbering = in_use.numbering
    rules = context.service_levels(numbering, in_use.certificate, in_use.tables)
    now = Utilisation(load_in_force(context, in_use), goal_in_force(context, in_use))
    start = TablesInUse(numbering, rules, in_use.tables, in_use.dependencies, now)
    trials = max(2, *(min(most_trials, entries // in_use.tables.lft.size) for most_trials, entries in TRIALS))
    for room, made in vacated_sets(start, most, trials):
        if isinstance(made, NotVacated):
            continue
        kept = kept_share(context.request.before, numbering.base.channels, made.load)
        changed = count_differing(made.tables.lft, in_use.tables.lft)
        if kept is None or kept < 1 - LARGEST_LOSS or not changed:
            continue
        statistics = replace(in_use.statistics, missing=0, vacated=room.edges, moved_for_balance=changed)
        done = replace(in_use, tables=made.tables, statistics=statistics)
        if next_tables(context, done, made.load, most) is None:
            continue
        if isinstance(found := verified(context, done, kept), Candidate):
            return found
    return NOTHING
