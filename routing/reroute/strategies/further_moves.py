"""Move further entries after a repair whose loss of capacity is well above the loss of the best known tables.

In a repair, new paths close no cycle with the dependencies of the previous and of the baseline tables.  Under this
condition, it may be impossible to restore the balance with few changes.  The moves here avoid cycles only with the
dependencies of the new tables.  So the new tables may close a cycle together with the previous tables.  The new tables
are accepted only if they can be written in safe rounds.

If faults have accumulated, moves may also leave the baseline tables (:func:`catch_up`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from routing._kernels.differing import count_differing
from routing.cdg.acyclic import AcyclicCdg
from routing.deadlock.proof import prove
from routing.numerals import count_noun
from routing.publish import Shortfall, admit, as_before
from routing.reroute.base_fabric import BaseNumbering
from routing.reroute.baseline import is_same
from routing.reroute.blocked_moves import vacated_sets
from routing.reroute.budget import LARGEST_MEDIUM_TABLE, LARGEST_SMALL_TABLE
from routing.reroute.context import Request, RerouteContext
from routing.reroute.flow import flow_towards
from routing.reroute.outcome import Candidate, Refusal
from routing.reroute.rebalance import ENOUGH, FURTHER_GAIN, FURTHER_TOLERANCE, LEAST_WORK, MOST_OF_TABLE, peak_in
from routing.reroute.statistics import RerouteStatistics
from routing.reroute.strategies.balance import goal_of
from routing.reroute.strategies.columns import Progress
from routing.reroute.strategies.fewer_entries import MOST_CHANGES, change_fewer, changes_too_many
from routing.reroute.strategies.quiet import LARGEST_LOSS
from routing.reroute.strategies.return_to_baseline import difficulty, has_safe_rounds, safe_to_write
from routing.reroute.strategies.search_state import State, peak_of
from routing.reroute.strategies.steps import OVERSHOOT, released, tables_from_scratch
from routing.reroute.vacate import NotVacated, TablesInUse
from routing.reroute.values import Rerouted, Stability, outside_baseline
from routing.reroute.verify import verify
from routing.tables import Routing

SEARCHES = 12
"""Largest number of searches in one series."""
TRIALS, ENTRIES_FOR_TRIALS = 16, 1_000_000
"""Limits for trials.  In a trial, paths are moved off a set of dependencies, in order to see whether better moves then
become possible.  A search tries at most TRIALS sets.  If some of these sets cannot be vacated, the search tries at most
TRIALS sets more.  In addition, all searches of one call of :func:`move_further` or :func:`catch_up` together try a
limited number of sets: at most ENTRIES_FOR_TRIALS divided by the number of table entries.
"""
LEAST_LOSS = 0.04
"""In large tables, entries move only if the highest utilisation exceeds the goal by this fraction.  A smaller excess
may be unavoidable.  Only tables from scratch could show this, and they are not computed for large tables.
"""
EDGES_FOR_ENTRY = 80
"""In large tables, all searches of a series together may visit this number of CDG edges for each table entry.  A hop of
a search counts as d visits, where d is the mean number of possible CDG edges that begin at a channel.

A sweep waits for the re-route.  So a re-route of large tables should take no longer than a route from scratch.  Later,
rebalance steps in quiet times vacate dependencies and improve the balance.
"""
FEW_ENTRIES = 64
"""Number for the limit of the entries that one search may move.

- In :func:`move_further`, a search may move FEW_ENTRIES entries, but no more than 1 % of the table entries.
- In :func:`catch_up`, a search may move FEW_ENTRIES entries, or 1 % of the table entries if this is more.

In both functions, a search may in any case move half as many entries as the fault broke.
"""
FEW_MISSING = 1024
"""If at most this number of entries was missing, moves aim at the goal even if tables from scratch do not reach it."""
PART_BROKEN = 16
"""Tables from scratch may be taken if more than :data:`FEW_MISSING` entries, and more than 1 / PART_BROKEN of all
entries, are broken.  Repairs of such faults keep too many old paths for a good balance, and most packets are
interrupted anyway.
"""
LAST_STATES = 2
"""Number of searches at the end of a series whose tables are tried as the result.  The limit applies only if the series
has a goal that tables from scratch do not reach.  The tables of the last search are tried first.  The tables of earlier
searches have fewer changed entries.
"""


def move_further(context: RerouteContext, repaired: Candidate) -> Candidate:
    """Return tables that lose less capacity or change fewer entries than the repaired tables.

    Return the repaired tables themselves if they lose little capacity and change few entries, or if no better tables
    are found.

    Tables are called 2 % above the goal if their highest utilisation is 2 % above the result of
    :func:`.balance.goal_of`.  The steps are:

    1. Small tables only: compute tables from scratch, if the repaired tables are more than 2 % above the goal, or
       change more than 3.5 entries for each missing entry.  The utilisation of the tables from scratch shows how much
       loss the fault makes necessary.  If the fault broke much of the tables, the tables from scratch may be returned
       (:func:`_taken`).
    2. If the repaired tables are more than 2 % above the goal (large tables: more than 4 %), move entries in several
       searches, until the tables are 1 % above the goal.  If this changes too many entries, or more than
       :data:`FEW_MISSING` entries were missing, the searches aim at the utilisation of the tables from scratch instead.
    3. If more than 3.5 entries have changed for each missing entry, undo some of the changes in a further search.

    Notes
    -----
    Cost: O(S L) if the loss is small and few entries have changed.  Otherwise, small tables are also computed from
    scratch.  If entries move, there are up to four times :data:`SEARCHES` searches, each with a trace of the tables and
    at most four million hops.

    In small tables, each search may vacate up to twice :data:`TRIALS` sets of dependencies on trial, with two more
    traces and searches for each set.  :data:`ENTRIES_FOR_TRIALS` limits the sets of all searches together.  In large
    tables, no sets are tried, and all searches of a series visit at most :data:`EDGES_FOR_ENTRY` CDG edges for each
    entry.
    """
    request, found = context.request, repaired.found
    if not _is_worth_a_search(context, repaired):
        return repaired
    numbering, threads = BaseNumbering.of(request.fabric, [request.fabric]), request.options.threads
    load = flow_towards(request.fabric, found.routing, threads=threads)
    goal, peak = goal_of(context, numbering), peak_of(load, numbering)
    best_known = goal
    falls_short = peak > goal * (1 + ENOUGH[1]) or _changes_too_many(repaired)
    if falls_short and found.routing.lft.size <= LARGEST_SMALL_TABLE:
        repaired, scratch = _beside_scratch(context, repaired, numbering)
        best_known = max(goal, scratch)
        if (taken := _taken(context, repaired, numbering, peak)) is not None:
            return taken
    most = max(found.broken // 2, min(FEW_ENTRIES, found.routing.lft.size // MOST_OF_TABLE))
    start = State(_progress(context, repaired, numbering), load, best_known, most)
    for end, beside in _better(context, start, repaired, goal):
        outcome = _accepted(context, repaired, start, end, beside)
        if outcome is not None:
            return outcome
    return repaired


def catch_up(context: RerouteContext, repaired: Candidate) -> Candidate:
    """Move entries until the highest utilisation is at most 2 % above the highest utilisation of tables from scratch.

    After the first fault, no entries move, so that few entries change.  A fault is the first one if the previous tables
    were made for the fabric of the baseline tables.

    The result gets the mark :data:`.values.LEFT_BASELINE`, unless safe rounds lead from the previous tables to the
    result, and from the result to the baseline tables.

    Return the repaired tables if they are within the limit of 2 %, or have more than
    :data:`.budget.LARGEST_SMALL_TABLE` entries.  Also return the repaired tables if they can be written in safe rounds,
    but the tables after the moves cannot.

    Notes
    -----
    Cost: a route from scratch, and up to two series of searches as in :func:`move_further`.
    """
    request, found, size = context.request, repaired.found, repaired.found.routing.lft.size
    first = request.baseline is None or is_same(request.baseline.fabric, request.before.fabric)
    if first or found.how == "fresh" or size > LARGEST_SMALL_TABLE:
        return repaired
    numbering, threads = BaseNumbering.of(request.fabric, [request.fabric]), request.options.threads
    repaired, scratch = _beside_scratch(context, repaired, numbering)
    load, taken = flow_towards(request.fabric, found.routing, threads=threads), repaired
    most = max(found.broken // 2, FEW_ENTRIES, size // MOST_OF_TABLE)
    start = best = State(_progress(context, repaired, numbering), load, scratch or peak_of(load, numbering), most)
    trials = ENTRIES_FOR_TRIALS // max(1, size)
    for overshoot in (0, OVERSHOOT):
        if best.peak <= start.goal * (1 + ENOUGH[1]):
            break
        ends, trials = _searched(context, start, trials, overshoot=overshoot)
        for end in ends[:0:-1]:
            outcome = _accepted(context, repaired, start, end, may_leave=True) if best.gains(end.load) else None
            if outcome is not None:
                taken, best = outcome, end
                break
    return taken


def _better(
    context: RerouteContext, start: State, repaired: Candidate, goal: int
) -> Iterator[tuple[State, Routing | None]]:
    """Yield states that are better than ``start``, the state of the repaired tables.  The best state comes first, and
    the caller takes the first state that is safe to write.

    There are two goals.  ``goal`` is the utilisation that :func:`.balance.goal_of` gives.  ``start.goal`` is the
    utilisation of tables from scratch, if this is higher.  The states come in this order:

    1. States after moves towards ``goal``, if ``start.goal`` is higher.  At most 3.5 entries have changed for each
       missing entry, and the highest utilisation is at most 1 % above ``start.goal``.  In a first series of searches, a
       move may raise other channels above the channel that it relieves (:data:`.steps.OVERSHOOT`).  If the caller takes
       no state of this series, a second series without such moves follows.
    2. States after moves towards ``start.goal``.
    3. A state with fewer changed entries than ``start``.

    Each state comes in a pair with other tables, or with None.  The other tables have more changed entries than the
    state.  If the other tables are easier to write than the state (:func:`.return_to_baseline.difficulty`), the smaller
    number of changes is not worth it, and the caller rejects the state.
    """
    missing = max(repaired.found.broken, repaired.missing)

    def changed(state: State) -> int:
        return count_differing(state.progress.tables.lft, context.request.translated.earlier) - repaired.restored

    def fewer(state: State, *, retrace: bool) -> Iterator[tuple[State, Routing | None]]:
        if changes_too_many(changed(state), missing):
            less = change_fewer(context, state, missing, retrace=retrace)
            if changed(less) < changed(state):
                yield less, state.progress.tables

    trials = ENTRIES_FOR_TRIALS // max(1, start.progress.tables.lft.size)
    exceeds, few = start.peak > start.goal * (1 + ENOUGH[1]), MOST_CHANGES * missing
    is_far = start.goal > goal and start.peak > goal * (1 + ENOUGH[1]) and missing <= FEW_MISSING
    for overshoot in (OVERSHOOT, 0) if is_far else ():
        aim = replace(start, goal=goal)
        series, trials = _searched(context, aim, trials, lambda state: changed(state) > 2 * few, overshoot)
        for end in series[:0:-1][:LAST_STATES]:
            may_shrink = few < changed(end) <= 2 * few
            best = change_fewer(context, end, missing, retrace=True) if may_shrink else end
            reaches = best.peak <= start.goal * (1 + FURTHER_TOLERANCE) and best.peak < start.peak
            if reaches and not changes_too_many(changed(best), missing):
                yield best, None
    if exceeds and len(ends := _searched(context, start, trials)[0]) > 1:
        yield from fewer(ends[-1], retrace=True)
        # The proof and the search for safe rounds of large tables take long.  So only the tables of the last
        # search for moves are proven.  If this proof fails, tables of earlier searches for moves are not tried.
        is_large = start.progress.tables.lft.size > LARGEST_SMALL_TABLE
        yield from ((end, None) for end in ends[: -2 if is_large else 0 : -1])
    yield from fewer(start, retrace=False)


def may_move_further(context: RerouteContext, repaired: Candidate) -> bool:
    """Return whether the request and the repaired tables allow further moves.

    On a fabric without faults, the tables return to the baseline instead.  If no safe rounds lead to large repaired
    tables, further moves almost never lead to tables with safe rounds, so they are not tried.
    """
    request, baseline, found = context.request, context.request.baseline, repaired.found
    return (
        request.stability is Stability.BALANCED
        and not (baseline is not None and is_same(baseline.fabric, request.fabric))
        and not request.sl_is_per_source_lid
        and context.certificate is not None
        and found.proof.certificate is not None
        and found.proof.scope == context.certificate.scope
        and found.routing.lft.size <= (LARGEST_SMALL_TABLE if repaired.is_unsafe else LARGEST_MEDIUM_TABLE)
    )


def _is_worth_a_search(context: RerouteContext, repaired: Candidate) -> bool:
    """Return whether the repaired tables may lose or change so much that entries should move.

    This check uses the all-to-all rate that the repair has measured.  Without a measured rate, the result is True.
    """
    found, numbering = repaired.found, context.numbering
    if found.kept is None or _changes_too_many(repaired):
        return True
    before = context.request.before
    peak = peak_in(numbering, before.highest_utilisation / found.kept)
    least = FURTHER_TOLERANCE if found.routing.lft.size <= LARGEST_SMALL_TABLE else LEAST_LOSS
    return peak > goal_of(context, numbering) * (1 + least)


def _changes_too_many(repaired: Candidate) -> bool:
    """Return whether a repair changes so many entries that tables with fewer changes should be searched for.

    Entries that are restored from the baseline do not count.
    """
    found = repaired.found
    return changes_too_many(found.changed - repaired.restored, max(found.broken, repaired.missing))


def _progress(context: RerouteContext, repaired: Candidate, numbering: BaseNumbering) -> Progress:
    """Return the state from which entries move: the repaired tables, and the dependencies that a repair reserves."""
    return Progress(
        tables=repaired.found.routing, failed=np.zeros(0, np.intp), numbering=numbering,
        dependencies=_reserved(context.request, repaired.found), certificate=context.certificate,
        missing=repaired.missing, splits=repaired.splits, statistics=repaired.found.statistics,
    )  # fmt: skip


def _reserved(request: Request, repaired: Rerouted) -> AcyclicCdg:
    """Return the dependencies of the previous and the repaired tables.  The dependencies of the baseline tables are
    added if they close no cycle.
    """
    dependencies, baseline = repaired.proof.cdg, request.baseline
    assert dependencies is not None
    if baseline is None or baseline.proof.cdg is None:
        return dependencies
    union = dependencies | baseline.proof.cdg.onto(request.fabric)
    return union.sorted(len(dependencies.order), threads=request.options.threads) or dependencies


def _beside_scratch(context: RerouteContext, repaired: Candidate, numbering: BaseNumbering) -> tuple[Candidate, int]:
    """Compute tables from scratch, unless ``repaired`` already holds such tables.

    Returns
    -------
    repaired : Candidate
        The repaired tables, with the tables from scratch and their rate.
    peak : int
        The highest utilisation of the tables from scratch; 0 if the engine fails.
    """
    request, fresh = context.request, repaired.found.fresh or tables_from_scratch(context.request)
    if fresh is None:
        return repaired, 0
    peak = peak_of(flow_towards(request.fabric, fresh, threads=request.options.threads), numbering)
    was = peak_in(numbering, request.before.highest_utilisation)
    kept = was / peak if peak else None
    return replace(repaired, found=replace(repaired.found, fresh_kept=kept, fresh=fresh)), peak


def _taken(context: RerouteContext, repaired: Candidate, numbering: BaseNumbering, peak: int) -> Candidate | None:
    """Return the tables from scratch with their proof, or None if the repaired tables should be used.

    The result is None if the fault broke few entries, or if the highest utilisation is hardly lower with tables from
    scratch.  The result is also None if safe rounds lead to the repaired tables but not to the tables from scratch.

    ``peak`` is the highest utilisation of the repaired tables.  The tables from scratch are in
    ``repaired.found.fresh``.  If the previous certificate covers replies, but the proof of the tables from scratch does
    not, the tables from scratch are computed again with the option ``reversible`` of the engine.
    """
    request, found = context.request, repaired.found
    certificate, fresh, size = request.before.proof.certificate, found.fresh, found.routing.lft.size
    if fresh is None or certificate is None or found.broken <= max(FEW_MISSING, size // PART_BROKEN):
        return None
    threads, options = request.options.threads, request.options
    proof = prove(request.fabric, fresh, threads=threads)
    if proof.strength != certificate.strength == "reversible":
        fresh = tables_from_scratch(replace(request, options=replace(options, reversible=True))) or fresh
        proof = prove(request.fabric, fresh, threads=threads)
    is_safe = has_safe_rounds(request, found, fresh)
    # The mark LEFT_BASELINE lets the tables return to the baseline later, in safe steps.
    if request.baseline is not None and is_safe:
        fresh = outside_baseline(fresh)
    tables = admit(request.fabric, fresh, proof, as_before(certificate, scope=certificate.scope))
    new_peak = peak_of(flow_towards(request.fabric, fresh, threads=threads), numbering)
    gains = peak > new_peak * (1 + ENOUGH[1])
    if isinstance(tables, Shortfall) or not gains or not (is_safe or not has_safe_rounds(request, found)):
        return None
    was = peak_in(numbering, request.before.highest_utilisation)
    points, changed = 100 * (was / new_peak - was / peak), count_differing(fresh.lft, request.translated.earlier)
    reason = f"a repair alone loses {points:.1f} points more of the all-to-all rate"
    taken = replace(found, tables=tables, changed=changed, how="fresh", reason=reason, kept=was / new_peak)
    return replace(repaired, found=replace(taken, statistics=RerouteStatistics()))


def _searched(
    context: RerouteContext, state: State, trials: int, until: Callable[[State], bool] = lambda _: False,
    overshoot: int = 0,
) -> tuple[list[State], int]:  # fmt: skip
    """Move entries in several searches.

    In each search, moves must close no cycle with the dependencies that the tables use before this search.  No search
    begins from a state for which ``until`` returns True.  If a search gains nothing and ``overshoot`` is not 0, the
    search is repeated with the argument ``overshoot`` of :meth:`State.moved`.  If there is still no gain and the tables
    are small, sets of dependencies are vacated on trial (:func:`_vacated`).

    Returns
    -------
    states : list of State
        The state ``state``, and the state after each search.
    trials : int
        Number of sets of dependencies that may still be tried: the argument ``trials`` minus the sets tried here.
    """
    size = state.progress.tables.lft.size
    states, hops = [state], 2 * SEARCHES * LEAST_WORK
    if size > LARGEST_SMALL_TABLE:
        channels = state.progress.numbering.base.channels
        hops = EDGES_FOR_ENTRY * size * len(channels) // max(1, len(channels.edges))
    for _ in range(SEARCHES):
        if state.peak <= state.goal * (1 + FURTHER_TOLERANCE) or hops <= 0 or until(state):
            break
        in_use = released(context, state.progress)
        if in_use is None:
            break
        state = replace(state, progress=in_use)
        moved, followed = state.moved(context, work=min(hops, max(LEAST_WORK, size)))
        hops -= followed + size  # The trace of the tables by `released` counts as one hop for each entry.
        if overshoot and not state.gains(moved.load):
            moved, followed = state.moved(context, work=max(0, min(hops, LEAST_WORK)), overshoot=overshoot)
            hops -= followed
        if state.gains(moved.load):
            after: State | None = moved
        elif trials and size <= LARGEST_SMALL_TABLE:
            after, tried = _vacated(context, state, trials)
            trials -= tried
        else:
            break
        if after is None:
            break
        state = after
        states.append(state)
    return states, trials


def _vacated(context: RerouteContext, state: State, trials: int) -> tuple[State | None, int]:
    """Vacate dependencies that block moves, and make these moves.

    At most ``trials`` sets of dependencies are tried.  The first set that lowers the highest utilisation by 1 % is
    taken.  If there is none, the best set is taken.

    Returns
    -------
    after : State or None
        State after the moves.  None if no set of dependencies leads to a gain.
    tried : int
        Number of sets that were tried.
    """
    progress, tried = state.progress, 0
    best: State | None = None
    rules = context.service_levels(progress.numbering, progress.certificate, progress.tables)
    start = TablesInUse(progress.numbering, rules, progress.tables, progress.dependencies, state.now)
    for _, made in islice(vacated_sets(start, state.most, min(TRIALS, trials)), trials):
        tried += 1
        if isinstance(made, NotVacated) or peak_of(made.load, progress.numbering) > (1 + LARGEST_LOSS) * state.peak:
            continue
        in_use = released(context, replace(progress, tables=made.tables))
        if in_use is None:
            continue
        after, _ = replace(state, progress=in_use, load=made.load).moved(context)
        best = after if best is None or after.peak < best.peak else best
        if best.peak < (1 - 2 * FURTHER_GAIN) * state.peak:
            break
    return (best if best is not None and state.gains(best.load) else None), tried


def _accepted(
    context: RerouteContext, repaired: Candidate, start: State, end: State, beside: Routing | None = None,
    *, may_leave: bool = False,
) -> Candidate | None:  # fmt: skip
    """Return the tables of the state ``end`` with their proof; None if they cannot replace the previous tables safely.

    Parameters
    ----------
    context, repaired
        The data of the re-route, and the repaired tables.
    start, end
        The state of the repaired tables, from which the moves began, and the state after the moves.
    beside
        Other tables, which have more changed entries than the tables of ``end``, or None.  If the other tables are
        easier to write than the tables of ``end`` (:func:`.return_to_baseline.difficulty`), the result is None.
    may_leave
        Whether the tables of ``end`` may leave the baseline.  If not, safe rounds must also lead from these tables to
        the baseline tables (:func:`.return_to_baseline.safe_to_write`).
    """
    before, request = repaired.found, context.request
    was = peak_in(end.progress.numbering, request.before.highest_utilisation)
    statistics, why = _explained(context, before, start, end, was)
    how = "rebalanced" if before.how == "unchanged" else before.how
    outcome = verify(context, replace(end.progress, statistics=statistics, leaves_baseline=False), how, was / end.peak)
    if isinstance(outcome, Refusal):
        return None
    found = safe_to_write(request, outcome.found, before, may_leave=may_leave)
    if found is None or (beside is not None and difficulty(request, found, beside) < difficulty(request, found)):
        return None
    found = replace(found, reason=f"{before.reason}; {why}", fresh_kept=before.fresh_kept, fresh=before.fresh)
    return replace(outcome, found=found)


def _explained(
    context: RerouteContext, before: Rerouted, start: State, end: State, was: int
) -> tuple[RerouteStatistics, str]:
    """Return two results: the statistics of the tables of ``end``, and a text that states why these tables replace the
    repaired tables.

    The new tables are the tables of the state ``end``.  ``before`` are the repaired tables, and ``start`` is their
    state.  ``was`` is the highest utilisation of the tables before the fault.
    """
    statistics, lft = before.statistics, end.progress.tables.lft
    if end.peak < start.peak:
        moved = int(np.count_nonzero(lft != before.routing.lft))
        points = 100 * (was / start.goal - was / start.peak)
        text, earlier = f"{count_noun(moved, 'entry')} moved further", statistics.moved_further or 0
        # The text names the loss of the repair only if there is a loss.  If the fabric has grown, there may be none.
        if f"{points:.1f}" != "0.0" and points > 0 and not earlier:
            text += f", because the repair alone loses {points:.1f} points more of the all-to-all rate than necessary"
        return replace(statistics, moved_further=earlier + moved), text
    saved = before.changed - count_differing(lft, context.request.translated.earlier)
    moved = max(0, (statistics.moved_for_balance or 0) - saved)
    return replace(statistics, moved_for_balance=moved), f"a longer search changed {count_noun(saved, 'entry')} less"
