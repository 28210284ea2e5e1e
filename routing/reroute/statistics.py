"""Statistics of a re-route.  The statistics are only reported: no algorithm reads them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True)
class RerouteStatistics:
    """Statistics of a re-route: numbers of objects, and conditions.  A value is None if the step that determines the
    value did not run.

    Attributes
    ----------
    restored
        Entries restored from the baseline tables (the tables of the fault-free fabric).
    order_changed
        Whether a switch was moved in the Up*/Down* order.
    missing, repaired
        Entries that were missing, and entries that the repair filled.
    displaced
        Valid entries that were replaced to make room for another path.
    visits
        Channels that searches for CDG cycles visited.
    copied_lids
        LIDs whose column was copied from another LID.
    split_subtrees
        Subtrees whose parts were moved to several VLs.
    sls_by_source
        Whether SLs by LID became SLs by source switch and LID.
    pruned_lids
        LIDs for which unused dependencies were dropped before the repair.
    traces
        Number of repairs that respected only the dependencies found by a trace of the current tables.
    changed_sls
        SLs that changed.
    balance_moves, moved_for_balance
        Moves of the local search for balance that directly follows the repair, and entries that only these moves
        changed.  In a step of rebalancing: moves and changed entries of the step.
    moved_further
        Entries that further searches moved (:mod:`.strategies.further_moves`).  These searches follow a repair if the
        repaired tables lose much more capacity than the best known tables.
    vacated
        CDG edges that were vacated.  Later moves can then use other edges, which would have closed a cycle with the
        vacated edges.
    prepared_sls
        SLs that changed in a step of rebalancing, so that the next step can move entries.
    proven_by_changes
        Whether the proof followed only the changed paths.
    fewest
        Whether the tables come from the strategy that changes the fewest entries.
    moved_afterwards
        Entries that a step of rebalancing moved after the whole re-route had ended.
    """

    restored: int | None = None
    order_changed: bool | None = None
    missing: int | None = None
    repaired: int | None = None
    displaced: int | None = None
    visits: int | None = None
    copied_lids: int | None = None
    split_subtrees: int | None = None
    sls_by_source: bool | None = None
    pruned_lids: int | None = None
    traces: int | None = None
    changed_sls: int | None = None
    balance_moves: int | None = None
    moved_for_balance: int | None = None
    moved_further: int | None = None
    vacated: int | None = None
    prepared_sls: int | None = None
    proven_by_changes: bool | None = None
    fewest: bool | None = None
    moved_afterwards: int | None = None

    def plus(self, **numbers: int) -> RerouteStatistics:
        """Return a copy of the statistics with the keyword arguments added to the attributes of the same names."""
        sums: dict[str, Any] = {name: (getattr(self, name) or 0) + number for name, number in numbers.items()}
        return replace(self, **sums)

    def counts(self) -> dict[str, int]:
        """Return the values that were counted, as a dictionary by their names."""
        return {name: int(figure) for name, figure in asdict(self).items() if figure is not None}
