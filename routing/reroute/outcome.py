"""Outcomes of a strategy: a candidate, or a refusal with its reason."""

from __future__ import annotations

from dataclasses import dataclass

from routing.reroute.budget import Budget
from routing.reroute.values import Published, Rerouted


@dataclass(frozen=True, eq=False)
class Candidate:
    """Proven tables that a strategy found.

    Attributes
    ----------
    found
        The tables.
    missing, restored, balanced
        Entries that were missing, that were restored from the baseline, and that moved for balance alone.
    splits
        Whether the strategy moved subtrees to other VLs part by part.
    """

    found: Rerouted
    missing: int
    restored: int
    balanced: int = 0
    splits: bool = False

    def changes_too_many(self, budget: Budget) -> bool:
        """Return whether a search for fewer changes is worth its time; entries that moved for balance do not count."""
        missing = max(self.found.broken, self.missing)
        return self.found.changed - self.restored - self.balanced > budget.changes * missing

    def better_of(self, other: Candidate) -> Candidate:
        """Return the candidate whose proof covers more traffic; of equals, the one with fewer changes."""
        return min(self, other, key=lambda one: (lacks_switch_traffic(one.found), one.found.changed))


@dataclass(frozen=True)
class Refusal:
    """The end of a strategy that found no tables.

    Attributes
    ----------
    reason
        Why there are none, in a few words.
    splits
        As for :class:`Candidate`.
    """

    reason: str
    splits: bool = False


def lacks_switch_traffic(tables: Rerouted | Published) -> bool:
    """Return whether the proof leaves out traffic between switches."""
    return tables.proof.scope != "all"
