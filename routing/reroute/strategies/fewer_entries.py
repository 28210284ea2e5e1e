"""Change fewer entries of re-routed tables, if the search for their balance has changed more entries than it should.

The local search for balance is greedy, so later moves often make earlier moves needless.  The search here makes many
attempts.  An attempt first gives up a part of the balance, so that many entries return to their previous value.  Then
entries move again, until the balance is as good as before.  The result of the attempt is kept if fewer entries have
changed.  Attempts with the same limits are a series (:data:`SERIES`).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from routing._kernels.differing import count_differing
from routing.reroute.context import RerouteContext
from routing.reroute.rebalance import ENOUGH, FURTHER_TOLERANCE
from routing.reroute.strategies.search_state import State
from routing.reroute.strategies.steps import released

MOST_CHANGES, FEW_CHANGES = 3.5, 3.0
"""Two numbers of changed entries for each missing entry.  If a repair has changed more than MOST_CHANGES entries for
each missing entry, the search for fewer changes begins.  Its first series of attempts ends once at most FEW_CHANGES
entries for each missing entry are changed.
"""
ATTEMPTS, ENTRIES_FOR_ATTEMPTS = 16, 1 << 22
"""A series has at most ATTEMPTS attempts, and at most ENTRIES_FOR_ATTEMPTS attempts divided by the number of LFT
entries.  More attempts would hardly find better tables.
"""
SERIES = ((0.02, 0.38, FEW_CHANGES), (0.005, 0.1, MOST_CHANGES))
"""Three numbers for each series of attempts.  The first number is the least excess of an attempt.  The second number is
the largest excess minus the least excess.  The third number is a number of changed entries for each missing entry: the
series ends when no more entries than this are changed.

At the beginning of an attempt, changed entries return to their previous values.  This may raise the highest utilisation
above the utilisation that the attempt has to reach in the end.  The excess is the largest permitted rise, as a fraction
of the utilisation to reach.
"""
EXCESS_STEP = 0.618
"""Difference between the excesses of two successive attempts, as a fraction of the range from the least to the largest
excess.  If the next excess would be above the largest excess, the range is subtracted.  The fraction is the golden
ratio, with which any number of attempts is spread evenly over the range.
"""


def changes_too_many(changed: int, missing: int) -> bool:
    """Return whether more than :data:`MOST_CHANGES` entries have changed for each missing entry.

    The result is False if no entry is missing.
    """
    return missing > 0 and changed > MOST_CHANGES * missing


def change_fewer(context: RerouteContext, state: State, missing: int, *, retrace: bool) -> State:
    """Return a state in which fewer entries differ from the tables before the fault.

    Parameters
    ----------
    context, state
        The data of the re-route, and the state with the tables to improve.
    missing
        Number of entries that were missing before the repair.
    retrace
        If true, moves must close no cycle with the dependencies that the tables use.  Otherwise, moves must close no
        cycle with any of the dependencies in ``state``.

    Notes
    -----
    The highest utilisation may rise to 2 % above the goal.  If it is higher already, it does not rise.

    Cost: up to two series of :data:`ATTEMPTS` attempts.  Each attempt has three searches of at most four million hops.
    With ``retrace``, each attempt also has three traces of the tables.
    """
    accepted = max(state.peak, int(state.goal * (1 + ENOUGH[1])))
    reached = max(state.peak, int(state.goal * (1 + FURTHER_TOLERANCE)))
    best = _searched(context, state, accepted, 0, retrace)
    attempts = min(ATTEMPTS, ENTRIES_FOR_ATTEMPTS // max(1, state.progress.tables.lft.size))
    for (least, span, enough), number in product(SERIES, range(attempts)):
        had = _changed(context, best)
        if had <= enough * missing:
            continue
        excess = least + span * (EXCESS_STEP * number % 1)
        loose = _searched(context, best, int(reached * (1 + excess)), 0, retrace)
        tight = _searched(context, loose, reached, had - _changed(context, loose) - 1, retrace)
        after = _searched(context, tight, accepted, 0, retrace)
        if after.peak <= accepted and _changed(context, after) < had:
            best = after
    return best


def _changed(context: RerouteContext, state: State) -> int:
    return count_differing(state.progress.tables.lft, context.request.translated.earlier)


def _searched(context: RerouteContext, state: State, goal: int, budget: int, retrace: bool) -> State:
    """Move at most ``budget`` further entries to reach the utilisation ``goal``, and undo needless moves.

    If ``budget`` is 0, the number of changed entries does not grow.  If the highest utilisation is not above ``goal``,
    entries only return to their previous values.  If ``retrace`` is set, dependencies that no path uses any more are
    removed first.
    """
    in_use = released(context, state.progress) if retrace else state.progress
    if in_use is None:
        return state
    after, _ = replace(state, progress=in_use, goal=goal).moved(context, budget=max(0, budget), tolerance=0)
    return replace(after, goal=state.goal)
