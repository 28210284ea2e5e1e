"""Find two rounds for tables whose dependencies form a cycle together, although neither the old nor the new tables have
a cycle.

The first round writes some new entries and removes some old entries.  Then all packets leave the fabric.  The old
entries that remain close no cycle with the new entries, so the second round can write all other new entries.  Two
rounds of this kind always exist, because the first round may remove all old entries that change.  The search keeps the
number of removed entries small.
"""

from __future__ import annotations

import numpy as np

from routing.deadlock.mixed_cdg import LidColumns, Masks, MixedDependencies
from routing.deadlock.per_lid_rounds import Changes, most_drained
from routing.deadlock.update_schedule import UpdateSchedule


def rounds_with_removal(
    waiting: MixedDependencies, columns: LidColumns, tables: tuple[Masks, Masks], few: int
) -> UpdateSchedule | None:
    """Find two rounds, with a wait between them until all packets have left the fabric.

    While a column is written, packets may meet both its old and its new entries.  These packets have mixed
    dependencies.  The first round writes the columns whose mixed dependencies close no cycle with the dependencies of
    the old tables.  The second round writes the other columns.  If the mixed dependencies of such a column close a
    cycle with the dependencies of the new tables, the first round removes all old entries of the column that change.

    Parameters
    ----------
    waiting
        Object that computes the dependencies of packets that meet both old and new entries.
    columns
        The columns that change.
    tables
        Two arrays, uint32[edges] each: the CDG edges of the old tables alone, and the CDG edges of the new tables
        alone.  In both arrays, packets may have the old or the new SL.  Neither array may have a cycle.
    few
        Number of entries that may be removed in tables of any size.

    Returns
    -------
    UpdateSchedule or None
        None if too many entries would be removed, see :func:`~routing.deadlock.per_lid_rounds.most_drained`.

    Notes
    -----
    Cost: O(K S V) for K columns, S switches and V VLs, and two topological orders.
    """
    old, new = tables
    order_of_old, order_of_new = waiting.order(old, columns), waiting.order(new, columns)
    assert order_of_old is not None and order_of_new is not None
    in_first = waiting.admit(columns, old, order_of_old)
    later = np.flatnonzero(~in_first)
    mixed = in_first.copy()
    mixed[later] = waiting.admit(columns.subset(later), new, order_of_new)
    changes = Changes.of(waiting.mixture)
    second = ~changes.removed & ~np.isin(changes.lid, columns.lids[in_first])
    out = ~changes.removed & changes.old_was_routed & ~np.isin(changes.lid, columns.lids[mixed])
    if np.count_nonzero(out) > most_drained(waiting.mixture, changes, few):
        return None
    number, off = 1 + second.astype(np.uint8), out.astype(np.uint8)
    return UpdateSchedule(changes.switch, changes.lid, number, off, 2 if second.any() else 0)
