"""Move further entries after a repair whose loss of capacity is well above that of the best known tables.

A repair respects the dependencies of the previous and of the baseline tables.  Within these dependencies, no small
change may restore the balance.  The moves here respect only the dependencies of the new tables.  So the new tables can
contradict the previous ones.  They are accepted only if rounds exist in which they can be written safely.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.repair import Rebalanced
from routing.deadlock.schedule_search import find_schedule
from routing.engines.roots import roots_left
from routing.errors import OptionError, RoutingError
from routing.numerals import count_noun
from routing.reroute.base_fabric import BaseNumbering
from routing.reroute.baseline import is_same
from routing.reroute.blocked_moves import BlockedMoves
from routing.reroute.budget import LARGEST_SMALL_TABLE
from routing.reroute.context import Request, RerouteContext
from routing.reroute.flow import flow_towards
from routing.reroute.installed import installed
from routing.reroute.outcome import Candidate, Refusal
from routing.reroute.rebalance import (
    ENOUGH,
    FURTHER_GAIN,
    FURTHER_TOLERANCE,
    MOST_OF_TABLE,
    Utilisation,
    fullest,
    move_entries,
    peak_in,
)
from routing.reroute.strategies.balance import goal_of
from routing.reroute.strategies.columns import Progress
from routing.reroute.strategies.quiet import LARGEST_LOSS, released
from routing.reroute.strategies.return_to_baseline import is_safe_change
from routing.reroute.translate import translate_tables
from routing.reroute.vacate import TablesInUse, vacate
from routing.reroute.values import Rerouted, Stability
from routing.reroute.verify import verify
from routing.tables import Routing

SEARCHES, TRIALS = 12, 16
"""Largest number of searches, and of vacated sets of dependencies that each search tries."""
FEW_ENTRIES = 64
"""Number of entries that each search may move, or 1 % of the table if 1 % is less.  A search may always move half as
many entries as the fault broke.
"""


@dataclass(frozen=True, eq=False)
class State:
    """Tables after some searches for moves, with their load and the goal of the searches."""

    progress: Progress
    load: npt.NDArray[np.int64]
    goal: int
    most: int

    @property
    def peak(self) -> int:
        """Return the highest utilisation, as load times the kernel's inverse capacity."""
        return peak_of(self.load, self.progress.numbering)

    @property
    def now(self) -> Utilisation:
        """Return the load, and the utilisation to reach."""
        return Utilisation(self.load, self.goal)

    def gains(self, load: npt.NDArray[np.int64]) -> bool:
        """Return whether another load (int64[C]) has a highest utilisation that is lower by at least half a percent."""
        return peak_of(load, self.progress.numbering) <= (1 - FURTHER_GAIN) * self.peak


def peak_of(load: npt.NDArray[np.int64], numbering: BaseNumbering) -> int:
    """Return the highest utilisation of a channel, as load times the kernel's inverse capacity."""
    return int((load * numbering.repair_fabric.inverse_capacity).max(initial=0))


def move_further(context: RerouteContext, repaired: Candidate) -> Candidate:
    """Return tables that lose less capacity than repaired tables, or the repaired tables if they lose little.

    The highest utilisation of tables from scratch shows how much loss the fault makes necessary.  Such tables are
    computed if the utilisation of the repaired tables is more than 2 % above the goal of the search for balance.  The
    higher one of this goal and the utilisation from scratch is the new goal.  If the repaired tables are more than 2 %
    above the new goal, entries move in several searches, until the utilisation is 1 % above the new goal.

    Notes
    -----
    Cost: O(S L) if the loss is small.  Otherwise a route from scratch.  If entries move, there are up to
    :data:`SEARCHES` searches, each with a trace of the tables and at most four million hops.  Each search may try
    :data:`TRIALS` sets of dependencies, with two further traces and searches for each set.
    """
    request, found = context.request, repaired.found
    numbering, threads = BaseNumbering.of(request.fabric, [request.fabric]), request.options.threads
    load = flow_towards(request.fabric, found.routing, threads=threads)
    goal = goal_of(context, numbering)
    if peak_of(load, numbering) <= goal * (1 + ENOUGH[1]):
        return repaired
    fresh, fresh_peak = _from_scratch(request, numbering)
    was = peak_in(numbering, fullest(request.before.fabric.channels, request.before.load))
    repaired = replace(repaired, found=replace(found, fresh_kept=was / fresh_peak if fresh_peak else None, fresh=fresh))
    goal = max(goal, fresh_peak)
    most = max(found.broken // 2, min(FEW_ENTRIES, found.routing.lft.size // MOST_OF_TABLE))
    start = State(_progress(context, repaired, numbering), load, goal, most)
    if start.peak <= goal * (1 + ENOUGH[1]):
        return repaired
    end = _searched(context, start)
    if end.peak >= start.peak:
        return repaired
    return _accepted(context, repaired, end, 100 * (was / goal - was / start.peak), was / end.peak)


def may_move_further(context: RerouteContext, found: Rerouted) -> bool:
    """Return whether the request and the repaired tables allow further moves.

    On a fabric without faults, the tables return to the baseline instead.
    """
    request, baseline = context.request, context.request.baseline
    return (
        request.stability is Stability.BALANCED
        and not (baseline is not None and is_same(baseline.fabric, request.fabric))
        and not request.sl_is_per_source_lid
        and context.certificate is not None
        and found.proof.certificate is not None
        and found.proof.scope == context.certificate.scope
        and found.routing.lft.size <= LARGEST_SMALL_TABLE
    )


def _progress(context: RerouteContext, repaired: Candidate, numbering: BaseNumbering) -> Progress:
    """Return the repaired tables as the state from which entries move."""
    return Progress(
        tables=repaired.found.routing,
        failed=np.zeros(0, np.intp),
        numbering=numbering,
        dependencies=context.dependencies,
        certificate=context.certificate,
        missing=repaired.missing,
        splits=repaired.splits,
        statistics=repaired.found.statistics,
    )


def _from_scratch(request: Request, numbering: BaseNumbering) -> tuple[Routing | None, int]:
    """Return tables from scratch, and their highest utilisation; None and 0 if the engine fails."""
    earlier = [there.fabric for there in (request.before, request.baseline) if there is not None]
    try:
        routing = request.engine.route(request.fabric, roots_left(request.fabric, request.options, earlier))
    except (OptionError, RoutingError):
        return None, 0
    return routing, peak_of(flow_towards(request.fabric, routing, threads=request.options.threads), numbering)


def _searched(context: RerouteContext, state: State) -> State:
    """Move entries in several searches, each of which respects only the dependencies of the tables before it."""
    for _ in range(SEARCHES):
        in_use = released(context, state.progress)
        if in_use is None or state.peak <= state.goal * (1 + FURTHER_TOLERANCE):
            break
        state = replace(state, progress=in_use)
        tables, found = _moved(context, state)
        if state.gains(found.load):
            after: State | None = _with(state, tables, found.load)
        else:
            after = _vacated(context, state)
        if after is None:
            break
        state = after
    return state


def _with(state: State, tables: Routing, load: npt.NDArray[np.int64]) -> State:
    return replace(state, progress=replace(state.progress, tables=tables), load=load)


def _moved(context: RerouteContext, state: State) -> tuple[Routing, Rebalanced]:
    """Move entries off the most loaded channels, within the dependencies that the tables use."""
    progress = state.progress
    return move_entries(
        progress.numbering,
        context.service_levels(progress.numbering, progress.certificate, progress.tables),
        progress.tables,
        context.request.translated.earlier,
        dependencies=progress.dependencies,
        now=state.now,
        budget=state.most,
        tolerance=FURTHER_TOLERANCE,
    )


def _vacated(context: RerouteContext, state: State) -> State | None:
    """Vacate dependencies that block moves, and make these moves.  Returns None if no set of dependencies leads to a
    gain.

    The first set that lowers the highest utilisation by 1 % is taken.  If there is none, the best set is taken.
    """
    progress, best = state.progress, None
    rules = context.service_levels(progress.numbering, progress.certificate, progress.tables)
    before = TablesInUse(progress.numbering, rules, progress.tables, progress.dependencies, state.now)
    for room in BlockedMoves.of(before).rooms(state.most // 2, TRIALS):
        made = vacate(before, vacated=room.vls, forbidden=room.vls, most=state.most)
        if made is None or peak_of(made[1], progress.numbering) > (1 + LARGEST_LOSS) * state.peak:
            continue
        in_use = released(context, replace(progress, tables=made[0]))
        if in_use is None:
            continue
        tables, found = _moved(context, replace(state, progress=in_use, load=made[1]))
        after = _with(state, tables, found.load)
        best = after if best is None or after.peak < best.peak else best
        if best.peak < (1 - 2 * FURTHER_GAIN) * state.peak:
            break
    return best if best is not None and state.gains(best.load) else None


def _accepted(context: RerouteContext, repaired: Candidate, end: State, points: float, kept: float) -> Candidate:
    """Return the tables after the searches with their proof, or the repaired tables if the new ones are not safe to
    write.

    Parameters
    ----------
    context, repaired, end
        The data of the re-route, the repaired tables, and the state after the searches.
    points
        Percentage points of the all-to-all rate that the repaired tables lose beyond the loss of the best known tables.
    kept
        All-to-all rate after the searches, as a fraction of the rate before the fault.
    """
    before = repaired.found
    moved = int(np.count_nonzero(end.progress.tables.lft != before.routing.lft))
    statistics = replace(before.statistics, moved_further=moved)
    how = "rebalanced" if before.how == "unchanged" else before.how
    progress = replace(end.progress, statistics=statistics, leaves_baseline=False)
    outcome = verify(context, progress, how, kept)
    if isinstance(outcome, Refusal):
        return repaired
    if not _is_safe_enough(context.request, outcome.found, before):
        return repaired
    alone = f"the repair alone loses {points:.1f} points more of the all-to-all rate than necessary"
    reason = f"{before.reason}; {count_noun(moved, 'entry')} moved further, because {alone}"
    found = replace(outcome.found, reason=reason, fresh_kept=before.fresh_kept, fresh=before.fresh)
    return replace(outcome, found=found)


def _is_safe_enough(request: Request, found: Rerouted, repaired: Rerouted) -> bool:
    """Return whether the tables ``found`` may replace the previous tables.

    Safe rounds must lead from the previous tables to ``found``, and from ``found`` to the baseline tables, because
    links may return soon.  If rebalancing has released the dependencies of the baseline, the tables return to it in
    steps.  In that case only the rounds to ``found`` are needed, and only if such rounds exist for the tables
    ``repaired``.
    """
    before, baseline, threads = request.before, request.baseline, request.options.threads
    if before.left_baseline:
        return _has_safe_rounds(request, found) or not _has_safe_rounds(request, repaired)
    if baseline is not None:
        now = translate_tables(found.routing, request.fabric, baseline.fabric).routing
        if not is_safe_change(baseline.fabric, now, found.proof, baseline.routing, baseline.proof, threads=threads):
            return False
    return _has_safe_rounds(request, found)


def _has_safe_rounds(request: Request, found: Rerouted) -> bool:
    """Return whether rounds exist in which tables can replace the previous ones without a credit loop."""
    change = installed(request.before.routing, request.before.fabric, found.routing, request.fabric)
    replies, threads = found.proof.strength == "reversible", request.options.threads
    schedule = find_schedule(change.fabric, change.old, change.new, lost=change.lost, replies=replies, threads=threads)
    return schedule is not None
