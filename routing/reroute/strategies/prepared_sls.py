"""Change SLs in a step of its own, so that the next step can move entries that the present VLs block.

A move may close a cycle on the VL of its packets.  Another SL at the same time does not help, because senders may keep
the old SL while the entries change.  The step of this module changes no entry.  Each new SL leads to a VL that admits
both the present path and the path after the move.  The move itself follows in the next step, when senders use the new
SLs.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import numpy.typing as npt

from routing.deadlock.schedule_search import find_schedule
from routing.reroute.budget import LARGEST_SMALL_TABLE
from routing.reroute.context import RerouteContext
from routing.reroute.outcome import Candidate, Refusal
from routing.reroute.rebalance import Utilisation, move_entries
from routing.reroute.sl_assignment import changed_paths
from routing.reroute.strategies.columns import Progress
from routing.reroute.strategies.steps import NOTHING, OVERSHOOT, goal_in_force, load_in_force, next_tables, verified

SIZES = (1, 2)
"""Numbers of moves for which SLs are prepared, as multiples of the number of entries that a step may change.  The
multiples are tried one after the other.
"""


def prepare_sls(context: RerouteContext, in_use: Progress, most: int) -> Candidate | Refusal:
    """Change SLs such that the next step, which may change ``most`` entries, improves the balance.

    ``in_use`` holds the tables in force with the dependencies that they use.

    SLs change only if an earlier repair has changed SLs of the baseline tables.  In that case, senders have to request
    their path records again anyway.  In large tables, SLs do not change.
    """
    tables, replies = in_use.tables, in_use.certificate is not None and in_use.certificate.strength == "reversible"
    if not may_change_sls(context, in_use):
        return NOTHING
    load = load_in_force(context, in_use)
    for overshoot, size in product((0, OVERSHOOT), SIZES):
        sl, _ = sls_for_moves(context, in_use, size * most, overshoot)
        if not (changed := int(np.count_nonzero(sl != tables.sl))):
            continue
        statistics = replace(in_use.statistics, missing=0, prepared_sls=changed)
        done = replace(
            in_use, tables=replace(tables, sl=sl, vls_needed=tables.vls), statistics=statistics, leaves_baseline=True
        )
        after = next_tables(context, done, load, most, overshoot)
        threads = context.request.options.threads
        if after is None or (
            find_schedule(context.request.fabric, done.tables, after, replies=replies, few=0, threads=threads) is None
        ):
            continue
        if isinstance(step := verified(context, done, 1.0), Candidate):
            return step
    return NOTHING


def sls_for_moves(
    context: RerouteContext, in_use: Progress, most: int, overshoot: int = 0
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Search for moves of at most ``most`` entries, and for the SLs that they need.

    ``in_use`` holds the tables in force with the dependencies that they use.  ``overshoot`` is the argument of
    :func:`routing.reroute.rebalance.move_entries`.

    Returns
    -------
    sl : uint8[S, L]
        SLs that cause no credit loop in two situations: with the present entries, while some senders still use the
        present SLs; and with the entries after the moves.
    lft : uint8[S, L]
        The entries after the moves.
    """
    tables, numbering = in_use.tables, in_use.numbering
    rules = context.service_levels(numbering, in_use.certificate, tables)
    moved, found = move_entries(
        numbering, rules, tables, tables.lft, dependencies=in_use.dependencies,
        now=Utilisation(load_in_force(context, in_use), goal_in_force(context, in_use)), budget=most,
        overshoot=overshoot, prepares_sls=True,
    )  # fmt: skip
    # The search changes SLs for some moves.  If it later undoes such a move, it does not restore the SLs.  So the SLs
    # of the search (`found.sl`) are used only for paths that differ after the search.  All other paths keep the SLs of
    # the tables in force.
    changed = changed_paths(context.request.fabric, moved, tables, replies=rules.replies)
    return np.where(changed, numbering.gathered(found.sl), tables.sl), moved.lft


def may_change_sls(context: RerouteContext, in_use: Progress) -> bool:
    """Return whether SLs may change: SLs depend on the source switch, some SLs differ from the baseline tables, and the
    table is small.
    """
    baseline, tables = context.request.baseline, in_use.tables
    return (
        baseline is not None
        and tables.service_levels.by_switch
        and tables.lft.size <= LARGEST_SMALL_TABLE
        and not np.array_equal(tables.sl, baseline.routing.sl)
    )
