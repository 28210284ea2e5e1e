"""Try the strategies of a re-route in order, and choose the best result.  The table :data:`STEPS` holds the order, and
the condition under which each strategy is tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from routing.engines.base import Promise
from routing.reroute.budget import Budget
from routing.reroute.context import RerouteContext
from routing.reroute.outcome import Candidate, Refusal, lacks_switch_traffic
from routing.reroute.strategies.fewest import change_fewest_entries
from routing.reroute.strategies.further_moves import catch_up, may_move_further, move_further
from routing.reroute.strategies.repair import (
    keep_sls,
    repair_in_previous_order,
    repair_tables,
    repair_whole_subtrees,
    repair_without_certificate,
)


@dataclass(frozen=True, eq=False)
class Choice:
    """Result of the strategies that were tried so far.

    Attributes
    ----------
    best
        The best proven tables so far; None if there are none.
    refusal
        The first reason why a strategy found no tables; None if there is none.
    splits
        Whether a strategy split a subtree and moved its parts to several VLs.
    """

    best: Candidate | None = None
    refusal: Refusal | None = None
    splits: bool = False

    def after(self, outcome: Candidate | Refusal) -> Choice:
        """Return the choice after one more strategy, whose result is ``outcome``.

        Of two proven tables, the better tables are kept.
        """
        if isinstance(outcome, Refusal):
            return replace(self, refusal=self.refusal or outcome, splits=self.splits or outcome.splits)
        best = outcome if self.best is None else self.best.better_of(outcome)
        return replace(self, best=best, splits=self.splits or outcome.splits)

    def changes_too_many(self, budget: Budget) -> bool:
        """Return whether no tables were found, or the best tables change more entries than the budget allows."""
        return self.best is None or self.best.changes_too_many(budget)


When = Callable[[RerouteContext, Choice, Budget], bool]
"""Function that returns whether to try a strategy, from the result of the earlier strategies."""


@dataclass(frozen=True)
class Search:
    """A strategy that finds tables from the previous tables.  Its tables compete with the tables of the earlier
    strategies.
    """

    strategy: Callable[[RerouteContext, Budget], Candidate | Refusal]
    when: When

    def apply(self, context: RerouteContext, choice: Choice, budget: Budget) -> Choice:
        """Try this strategy.  Return ``choice``, the result of the earlier strategies, updated with the result of this
        strategy.
        """
        return choice.after(self.strategy(context, budget))


@dataclass(frozen=True)
class Improvement:
    """A strategy that improves the best tables of the earlier strategies.

    The improved tables take the place of the best tables.
    """

    strategy: Callable[[RerouteContext, Candidate], Candidate]
    when: When

    def apply(self, context: RerouteContext, choice: Choice, _: Budget) -> Choice:
        """Improve the best tables of ``choice``, and return the changed choice.  If ``choice`` has no tables, return
        ``choice`` itself.
        """
        return choice if choice.best is None else replace(choice, best=self.strategy(context, choice.best))


def choose(context: RerouteContext, budget: Budget) -> Candidate | Refusal:
    """Try the strategies in order, and return the best tables.  If no strategy finds tables, return the reason that the
    first strategy gave.
    """
    choice = Choice()
    for step in STEPS:
        if step.when(context, choice, budget):
            choice = step.apply(context, choice, budget)
    outcome = choice.refusal if choice.best is None else choice.best
    assert outcome is not None
    return outcome


def _may_close_loops(context: RerouteContext, choice: Choice, _: Budget) -> bool:
    none_promised = context.request.engine.promise is Promise.NONE
    return choice.best is None and context.certificate is not None and none_promised


def _new_order_changes_too_many(context: RerouteContext, choice: Choice, budget: Budget) -> bool:
    return context.reconnected is not None and choice.changes_too_many(budget)


def _is_weaker_or_changes_too_many(context: RerouteContext, choice: Choice, budget: Budget) -> bool:
    if choice.best is None or choice.best.changes_too_many(budget):
        return True
    return lacks_switch_traffic(choice.best.found) and not lacks_switch_traffic(context.request.before)


def _may_lose_less(context: RerouteContext, choice: Choice, _: Budget) -> bool:
    return choice.best is not None and may_move_further(context, choice.best)


STEPS: tuple[Search | Improvement, ...] = (
    Search(repair_tables, when=lambda *_: True),
    Search(repair_without_certificate, when=_may_close_loops),
    Search(repair_in_previous_order, when=_new_order_changes_too_many),
    Search(repair_whole_subtrees, when=lambda _, choice, budget: choice.splits and choice.changes_too_many(budget)),
    Search(change_fewest_entries, when=_is_weaker_or_changes_too_many),
    Improvement(keep_sls, when=lambda *_: True),
    Improvement(move_further, when=_may_lose_less),
    Improvement(catch_up, when=_may_lose_less),
)
