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


def rounds_with_removal(waiting: MixedDependencies, columns: LidColumns, unchanged: Masks) -> UpdateSchedule | None:
    """Find two rounds, with a wait between them until all packets have left the fabric.

    The first round writes the columns whose mixed entries close no cycle with the dependencies of the old tables.  The
    second round writes the other columns.  The mixed entries of a column of the second round may close a cycle with the
    dependencies of the new tables.  In this case, the first round removes all old entries of the column that change.

    Parameters
    ----------
    waiting
        The dependencies of the mixed tables.
    columns
        The columns that change.
    unchanged
        uint32[edges], the CDG edges of all other columns.

    Returns
    -------
    UpdateSchedule or None
        None if the old tables alone or the new tables alone have a cycle, with packets that may have the old or the new
        SL.  None also if too many entries would be removed, see
        :func:`~routing.deadlock.per_lid_rounds.most_drained`.

    Notes
    -----
    Cost: O(K S V) for K columns, and two topological orders.
    """
    before, after = columns.next_channels
    old, new = (waiting.union(columns.between(path, path), unchanged) for path in (before, after))
    orders = waiting.order(old, columns), waiting.order(new, columns)
    if orders[0] is None or orders[1] is None:
        return None
    in_first = waiting.admit(columns, old, orders[0])
    later = np.flatnonzero(~in_first)
    mixed = in_first.copy()
    mixed[later] = waiting.admit(columns.subset(later), new, orders[1])
    changes = Changes.of(waiting.mixture)
    second = ~changes.removed & ~np.isin(changes.lid, columns.lids[in_first])
    out = ~changes.removed & changes.old_was_routed & ~np.isin(changes.lid, columns.lids[mixed])
    if np.count_nonzero(out) > most_drained(waiting.mixture, changes):
        return None
    number, off = 1 + second.astype(np.uint8), out.astype(np.uint8)
    return UpdateSchedule(changes.switch, changes.lid, number, off, 2 if second.any() else 0)
