"""Strategies that keep the valid entries and fill the missing entries, then balance and prove the tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from routing.numerals import count_noun
from routing.reroute.budget import Budget
from routing.reroute.context import RerouteContext
from routing.reroute.loads import rate_kept
from routing.reroute.outcome import Candidate, Refusal, lacks_switch_traffic
from routing.reroute.strategies.balance import balanced
from routing.reroute.strategies.columns import Progress, repair_columns
from routing.reroute.strategies.fallbacks import with_fallbacks
from routing.reroute.strategies.return_to_baseline import has_safe_rounds
from routing.reroute.values import RerouteMethod
from routing.reroute.verify import verify

MOST_LOST = 0.1
"""If no safe rounds lead to tables with changed SLs, tables that keep all SLs are used instead, provided that safe
rounds lead to them.  The tables with changed SLs are still used if their all-to-all rate is higher by more than
MOST_LOST, as a share of the rate before the fault.
"""


def repair_tables(context: RerouteContext, budget: Budget) -> Candidate | Refusal:
    """Keep the valid entries and fill the missing entries, such that the tables keep the previous certificate's
    guarantees.
    """
    progress = repair_columns(context, Progress.of(context))
    if context.certificate is not None:
        progress = with_fallbacks(context, progress, context.certificate, budget)
    if len(progress.failed):
        count = count_noun(len(progress.failed), "LID")
        return Refusal(f"{count} found no path without a credit loop", splits=progress.splits)
    start_sl = np.broadcast_to(context.start.sl, progress.tables.sl.shape)
    changed_sls = int(np.count_nonzero(progress.tables.sl != start_sl))
    progress = replace(progress, statistics=replace(progress.statistics, changed_sls=changed_sls))
    done = balanced(context, progress, budget)
    outcome = verify(context, done.progress, method_of(context, done.progress, done.moves), done.kept)
    return outcome if isinstance(outcome, Refusal) else replace(outcome, balanced=done.moved_entries)


def repair_without_certificate(context: RerouteContext, budget: Budget) -> Candidate | Refusal:
    """Keep the valid entries and fill the missing entries, even if this closes credit loops."""
    return repair_tables(context.without_certificate(), budget)


def repair_in_previous_order(context: RerouteContext, budget: Budget) -> Candidate | Refusal:
    """Repair as :func:`repair_tables` does, with the Up*/Down* order from before the fault.

    This strategy is tried if a repair with a changed Up*/Down* order changes too many entries.
    """
    return repair_tables(replace(context, reconnected=None), budget)


def repair_whole_subtrees(context: RerouteContext, budget: Budget) -> Candidate | Refusal:
    """Repair as :func:`repair_tables` does, but do not split subtrees over several VLs.

    Paths of a subtree that share a VL before the repair also share a VL after the repair.
    """
    return repair_tables(replace(context, by_parts=False), budget)


def keep_sls(context: RerouteContext, best: Candidate) -> Candidate:
    """Return ``best``, the result of the earlier strategies, or tables in which all packets keep their SLs.

    The result is ``best`` if its tables change no SL, or if safe rounds lead to its tables.  Otherwise packets with old
    SLs may close a cycle on the new routes, because existing connections keep their SLs.  Then no order of writing is
    safe, and a repair that changes no SL is tried.  The result is still ``best``, marked as unsafe, if this repair
    fails, has no safe rounds either, or has a much lower all-to-all rate (:data:`MOST_LOST`).
    """
    request = context.request
    was, now = request.translated.routing.sl, best.found.routing.sl
    if np.array_equal(np.broadcast_to(was, now.shape), now) or has_safe_rounds(request, best.found):
        return best
    best = replace(best, is_unsafe=True)
    found = repair_tables(replace(context, keeps_sls=True), Budget())
    if isinstance(found, Refusal) or lacks_switch_traffic(found.found) > lacks_switch_traffic(best.found):
        return best
    kept, least = (rate_kept(one.found, request) or 0.0 for one in (found, best))
    return found if kept >= least - MOST_LOST and has_safe_rounds(request, found.found) else best


def method_of(context: RerouteContext, progress: Progress, moves: int) -> RerouteMethod:
    """Return the method by which repaired tables were found.  ``moves`` is the number of moves for balance."""
    if context.restored and not progress.missing:
        return "baseline"
    if progress.missing or not context.request.translated.nothing_new:
        return "repaired"
    return "rebalanced" if moves else "unchanged"
