"""Limits of the strategies of a re-route."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """How much the strategies of a re-route may change and search.  Every limit is a counted number, never a time.

    Attributes
    ----------
    changes
        Changed entries for each missing one above which further strategies are tried; moves for balance may take up
        what the repair has left of them.
    rebuilt_lids
        LIDs whose columns may be rebuilt; for more LIDs routing from scratch is faster.
    missing_entries
        Missing entries up to which the fewest changes are searched for; with more of them VL assignment takes too long.
    vl_paths
        Paths that may look for a VL once other paths are evicted from theirs.
    vl_visits
        Channels that all searches for cycles of a VL assignment may visit, about a second of CPU time.
    """

    changes: int = 3
    rebuilt_lids: int = 64
    missing_entries: int = 10_000
    vl_paths: int = 400_000
    vl_visits: int = 30_000_000
