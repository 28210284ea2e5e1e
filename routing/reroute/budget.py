"""Limits of the strategies by which a re-route looks for new tables."""

from __future__ import annotations

from dataclasses import dataclass

LARGEST_SMALL_TABLE = 1 << 18
"""Largest number of LFT entries of a fabric in which a re-route may also compute tables from scratch, for comparison.
In larger fabrics, this computation would delay the repaired tables too much.
"""
LARGEST_MEDIUM_TABLE = 1 << 22
"""Largest number of LFT entries of a fabric in which a re-route may trace all entries several times.  In larger
fabrics, these traces would delay the new tables too much.
"""

NEVER_TOO_MANY = 256
"""In large tables, a repair that changes at most this number of entries never changes too many, whatever the number of
missing entries.  A search for fewer changes would take longer than the repair.
"""


@dataclass(frozen=True)
class Budget:
    """Limits of how much the strategies of a re-route may change and search.

    Each limit is a counted number and never a time, so that the result is the same on every machine.

    Attributes
    ----------
    changes
        Limit of changed entries for each missing entry.  If a strategy changes more entries, further strategies are
        tried.  If a repair changes fewer entries, moves for better balance may change further entries up to the limit.
    rebuilt_lids
        Largest number of LIDs whose columns are rebuilt.  For more LIDs, routing from scratch is faster.
    missing_entries
        Largest number of missing entries for which the strategy that changes the fewest entries is tried
        (:mod:`.strategies.fewest`).  With more missing entries, its assignment of VLs would take too long.
    vl_paths
        Largest number of paths to which one attempt may assign VLs.  The limit applies only to attempts that also
        assign new VLs to unchanged paths.
    vl_visits
        Number of channels that all cycle searches of a VL assignment may visit together: about a second of CPU time.
    """

    changes: int = 3
    rebuilt_lids: int = 64
    missing_entries: int = 10_000
    vl_paths: int = 400_000
    vl_visits: int = 30_000_000
