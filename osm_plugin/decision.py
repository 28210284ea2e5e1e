"""Decision of the worker in a sweep: which tables the new ones are computed from, and how."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from routing.fabric import Fabric
from routing.reroute import Precomputed, Published, Stability


class Decision(enum.Enum):
    """How tables are computed.  The state machine in docs/plugin.md shows which decision replaces one that fails."""

    FROM_SCRATCH = "from scratch"
    """There are no tables to start from: the engine computes all of them."""
    KEEP = "keep"
    """The fabric is unchanged: the tables in force are proven again."""
    REBALANCE = "rebalance"
    """The fabric is unchanged: a few entries of the tables in force move for a better balance."""
    REROUTE = "re-route"
    """The fabric has changed: the tables in force are re-routed."""
    ROLL_BACK = "roll back"
    """Tables are pinned, and their fabric is the current one: they are proven again."""
    REPAIR_PINNED = "repair pinned"
    """Tables are pinned, and their fabric has changed: they are re-routed with as few changes as possible."""


@dataclass(frozen=True, eq=False)
class Start:
    """A decision, and the tables that it starts from.

    Attributes
    ----------
    decision
        The decision.
    before
        The tables to keep or to re-route; None if the decision is FROM_SCRATCH.
    baseline
        The baseline tables; None: none.
    stability
        Which valid entries a re-route may change.
    moves
        Maximum number of entries to move for a better balance if the fabric is unchanged.
    precomputed
        What a re-route of these tables needs, if it was computed ahead; one of other tables is ignored.
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
    """Return the decision for the current fabric, given the tables in force; see :class:`Start` for the parameters."""
    if before is None:
        return Start(Decision.FROM_SCRATCH, stability=stability)
    if before.fabric.digest != fabric.digest:
        decision = Decision.REROUTE
    else:
        decision = Decision.REBALANCE if moves else Decision.KEEP
    return Start(decision, before, baseline, stability, moves, precomputed)


def decide_pinned(fabric: Fabric, pinned: Published) -> Start:
    """Return the decision for the current fabric, given pinned tables.  No baseline may change their entries."""
    unchanged = pinned.fabric.digest == fabric.digest
    return Start(Decision.ROLL_BACK if unchanged else Decision.REPAIR_PINNED, pinned, stability=Stability.FULL)
