"""Move entries off the channels with the highest utilisation after a repair."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.differing import count_differing
from routing.reroute.base_fabric import BaseNumbering
from routing.reroute.budget import LARGEST_SMALL_TABLE, Budget
from routing.reroute.context import RerouteContext
from routing.reroute.cut_bounds import cut_bound
from routing.reroute.loads import load_after
from routing.reroute.rebalance import Repaired, Utilisation, balance_repaired, kept_share, peak_in
from routing.reroute.strategies.columns import Progress
from routing.reroute.values import Stability

LEAST_SHARE = 0.96
"""In a repair of large tables, the goal is at least this fraction of the highest utilisation of the previous tables."""


@dataclass(frozen=True, eq=False)
class Balanced:
    """Repaired tables after the local search for better balance.

    Attributes
    ----------
    progress
        The tables with the moves, and their dependencies.
    moves, moved_entries
        Number of moves, and number of entries that only these moves changed.
    kept
        All-to-all rate divided by the all-to-all rate of the previous tables; None if no search ran.
    """

    progress: Progress
    moves: int
    moved_entries: int
    kept: float | None


def balanced(context: RerouteContext, progress: Progress, budget: Budget) -> Balanced:
    """Move entries of repaired tables off the most loaded channels.

    Entries that the repair changed may always move.  Other entries may move as far as the requested stability allows.
    """
    request, numbering, tables = context.request, progress.numbering, progress.tables
    missing, restored = max(request.translated.broken, progress.missing), context.restored or 0
    may_move = request.stability is Stability.BALANCED
    # Earlier moves balanced the load for faults that still exist.  A column that is restored from the baseline undoes
    # such moves.  So the tables are balanced again after a restoration, too.
    if not (missing or (restored and may_move)) or request.sl_is_per_source_lid:
        return Balanced(progress, 0, 0, None)
    changed = count_differing(tables.lft, request.translated.earlier) - restored
    # After earlier faults, the goal is far below the highest utilisation of the previous tables.  A search for this
    # goal would use up its work and its changes for the first channels.  The search would also make many detours, which
    # hinder later repairs.  So large tables get a goal that is only a little below the previous utilisation.  Small
    # tables keep the goal, because their further moves aim at the utilisation of tables from scratch.
    present = peak_in(numbering, request.before.highest_utilisation)
    within_reach = int(LEAST_SHARE * present) if missing and tables.lft.size > LARGEST_SMALL_TABLE else 0
    tables, found = balance_repaired(
        numbering, context.service_levels(numbering, progress.certificate, tables), tables,
        request.translated.earlier, dependencies=progress.dependencies,
        now=Utilisation(_exact_load(context, progress), max(goal_of(context, numbering), within_reach)),
        repaired=Repaired(missing, changed), changes=budget.changes if may_move else 0,
    )  # fmt: skip
    statistics = replace(progress.statistics, balance_moves=found.moves, moved_for_balance=max(0, found.spent))
    dependencies = progress.dependencies.grown(found.masks, found.order)
    done = replace(progress, tables=tables, dependencies=dependencies, statistics=statistics)
    kept = kept_share(request.before, numbering.base.channels, found.load)
    return Balanced(done, found.moves, max(0, found.spent), kept)


def _exact_load(context: RerouteContext, progress: Progress) -> npt.NDArray[np.int64]:
    """Return int64[C], the exact flow on each channel by the repaired tables.

    The load that the repair kernel has counted is used if it is exact.  This load is not exact after steps that remove
    or copy whole columns or split subtrees, nor in a fabric that is or was split.
    """
    request = context.request
    connected = not any(fabric.component.max(initial=0) for fabric in (request.fabric, request.before.fabric))
    steps = progress.statistics
    inexact = steps.copied_lids or steps.pruned_lids or steps.split_subtrees or steps.sls_by_source or steps.traces
    if progress.load is None or inexact or not connected or not request.translated.in_place:
        return load_after(context, progress.numbering, progress.tables)
    return progress.load


def goal_of(context: RerouteContext, numbering: BaseNumbering) -> int:
    """Return the goal of a search for better balance: the utilisation that the most loaded channel should not exceed in
    the end.

    The goal is the highest utilisation of the baseline tables, or of the previous tables if there is no baseline.  If
    the links of one switch, or the links beside a lost link, force a higher utilisation, the goal is this higher
    utilisation.
    """
    request = context.request
    best = request.before if request.baseline is None else request.baseline
    least = max(best.highest_utilisation, context.lost_link_bound)
    return max(peak_in(numbering, least), cut_bound(numbering.repair_fabric))
