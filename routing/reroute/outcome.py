"""Outcomes of a re-route strategy: either proven tables (a candidate), or the reason why the strategy found no tables
(a refusal).
"""

from __future__ import annotations

from dataclasses import dataclass

from routing.reroute.budget import LARGEST_SMALL_TABLE, NEVER_TOO_MANY, Budget
from routing.reroute.values import Published, Rerouted


@dataclass(frozen=True, eq=False)
class Candidate:
    """Proven tables that a re-route strategy found; the best candidate becomes the result.

    Attributes
    ----------
    found
        The tables with their proof.
    missing
        Number of entries that were missing before the repair.
    restored
        Number of entries restored from the baseline tables (the tables of the fault-free fabric).
    balanced
        Number of entries that changed only for better balance.
    splits
        Whether the strategy split a subtree and moved its parts to several VLs.
    is_unsafe
        Whether it is known that no safe rounds lead to the tables.
    """

    found: Rerouted
    missing: int
    restored: int
    balanced: int = 0
    splits: bool = False
    is_unsafe: bool = False

    def changes_too_many(self, budget: Budget) -> bool:
        """Return whether the tables change so many entries that further strategies should be tried.

        The limit is a number of changes for each missing entry.  Restored entries and moves for balance do not count.
        In large tables, the limit is at least :data:`.budget.NEVER_TOO_MANY`.
        """
        few = NEVER_TOO_MANY if self.found.routing.lft.size > LARGEST_SMALL_TABLE else 0
        most = max(few, budget.changes * max(self.found.broken, self.missing))
        return self.found.changed - self.restored - self.balanced > most

    def better_of(self, other: Candidate) -> Candidate:
        """Return the better of two candidates.

        The candidate whose proof covers more traffic is better.  If both proofs cover equal traffic, the candidate with
        fewer changed entries is better.
        """
        return min(self, other, key=lambda one: (lacks_switch_traffic(one.found), one.found.changed))


@dataclass(frozen=True)
class Refusal:
    """Result of a re-route strategy that found no tables.

    Attributes
    ----------
    reason
        Why the strategy found no tables, in a few words.
    splits
        Whether the strategy split a subtree and moved its parts to several VLs.
    """

    reason: str
    splits: bool = False


def lacks_switch_traffic(tables: Rerouted | Published) -> bool:
    """Return whether the proof of these tables leaves out traffic between switches."""
    return tables.proof.scope != "all"
