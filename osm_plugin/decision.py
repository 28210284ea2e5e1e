"""Decide in a sweep how the worker gets new tables: from scratch, or from which earlier tables."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from routing.fabric import Fabric
from routing.reroute import Precomputed, Published, Stability


class Decision(enum.Enum):
    """Method by which the worker gets new tables.  docs/plugin.md shows which decision follows if a decision cannot be
    carried out.
    """

    FROM_SCRATCH = "from scratch"
    """No earlier tables are used.  The engine computes all entries."""
    KEEP = "keep"
    """The fabric is unchanged.  The tables in force are proven again and kept."""
    REBALANCE = "rebalance"
    """The fabric is unchanged.  A few entries of the tables in force change for a better balance."""
    REROUTE = "re-route"
    """The fabric has changed, and the tables in force are re-routed."""
    ROLL_BACK = "roll back"
    """The administrator has pinned tables that were made for the present fabric.  These tables are proven again and
    used.
    """
    REPAIR_PINNED = "repair pinned"
    """The administrator has pinned tables that were made for another state of the fabric.  These tables are re-routed
    with as few changes as possible.
    """


@dataclass(frozen=True, eq=False)
class Start:
    """A decision on how to get new tables, with the earlier tables from which to start.

    Attributes
    ----------
    decision
        How to get the new tables.
    before
        The earlier tables to keep or to re-route; None if the decision is FROM_SCRATCH.
    baseline
        The tables of the fabric without faults, to which a re-route returns; None if these tables are unknown.
    stability
        Which valid entries a re-route may change.
    moves
        Maximum number of entries to change for a better balance, if the fabric is unchanged.
    precomputed
        Data for a re-route that were computed in advance, or None.  Data for other tables than ``before`` are ignored.
    """

    decision: Decision
    before: Published | None = None
    baseline: Published | None = None
    stability: Stability = Stability.BALANCED
    moves: int = 0
    precomputed: Precomputed | None = None


def decide(
    fabric: Fabric,
    before: Published | None,
    *,
    baseline: Published | None = None,
    stability: Stability = Stability.BALANCED,
    moves: int = 0,
    precomputed: Precomputed | None = None,
) -> Start:
    """Decide how to get tables for the fabric from the tables in force.  :class:`Start` describes the parameters."""
    if before is None:
        return Start(Decision.FROM_SCRATCH, stability=stability)
    unchanged = Decision.REBALANCE if moves else Decision.KEEP
    decision = unchanged if before.fabric.digest == fabric.digest else Decision.REROUTE
    return Start(decision, before, baseline, stability, moves, precomputed)


def decide_pinned(fabric: Fabric, pinned: Published) -> Start:
    """Decide how to get tables for the fabric from the tables that the administrator has pinned.

    If the fabric has changed, the pinned tables are re-routed.  This re-route gets no baseline tables, so it never
    replaces entries of the pinned tables by entries of baseline tables.
    """
    unchanged = pinned.fabric.digest == fabric.digest
    return Start(Decision.ROLL_BACK if unchanged else Decision.REPAIR_PINNED, pinned, stability=Stability.FULL)
