"""Statistics of a re-route: reported, and never read by the algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

KEYS: Mapping[str, str] = MappingProxyType(
    {
        "restored": "healed",
        "order_changed": "rejoined",
        "missing": "holes",
        "repaired": "repaired",
        "displaced": "moved",
        "visits": "searches",
        "copied_lids": "copied",
        "split_subtrees": "by_parts",
        "sls_by_source": "by_source",
        "pruned_lids": "cleared",
        "traces": "exact",
        "changed_sls": "levels",
        "balance_moves": "rebalanced",
        "moved_for_balance": "moved_for_balance",
        "proven_by_changes": "proven_by_changes",
        "fewest": "fewest",
        "moved_afterwards": "spread",
    }
)
"""The key of each figure in reports."""


@dataclass(frozen=True)
class RerouteStatistics:
    """Figures of a re-route; None: the step that counts them did not run.

    Attributes
    ----------
    restored
        Entries restored from the baseline.
    order_changed
        Whether a switch was moved in the Up*/Down* order.
    missing, repaired
        Entries that were missing, and that the repair filled.
    displaced
        Valid entries that were replaced for the sake of another entry.
    visits
        Channels that searches for cycles visited.
    copied_lids
        LIDs that took the paths of another LID.
    split_subtrees
        Subtrees whose parts moved to several VLs.
    sls_by_source
        Whether SLs by LID became SLs by source switch and LID.
    pruned_lids
        LIDs for which unused dependencies were dropped.
    traces
        Repairs against the dependencies in use alone, which a trace of the tables finds.
    changed_sls
        SLs that changed.
    balance_moves, moved_for_balance
        Moves of the local search, and moved entries that had not changed before.
    proven_by_changes
        Whether the changed paths alone were proven.
    fewest
        Whether the fewest entries changed.
    moved_afterwards
        Entries moved for balance after the re-route.
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
    proven_by_changes: bool | None = None
    fewest: bool | None = None
    moved_afterwards: int | None = None

    def plus(self, **numbers: int) -> RerouteStatistics:
        """Return the statistics with these numbers added to the figures of the same names."""
        sums: dict[str, Any] = {name: (getattr(self, name) or 0) + number for name, number in numbers.items()}
        return replace(self, **sums)

    def counts(self) -> dict[str, int]:
        """Return the figures that were counted by their keys in reports."""
        figures = {key: getattr(self, name) for name, key in KEYS.items()}
        return {key: int(figure) for key, figure in figures.items() if figure is not None}
