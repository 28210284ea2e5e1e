"""Find rounds in which the entries of each LID can be written, so that mixed entries add no cycle to the CDG.

The CDG contains the dependencies of the old and of the new tables from the beginning.  So only paths that mix old and
new entries need a check, and only few LIDs have such paths.  If only one entry of a LID changes, there is no such path:
each packet follows either the old route or the new route.  If the mixed entries of a LID always close a cycle, its old
entries are removed before the new entries are written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from routing._kernels.transition import write_rounds
from routing.deadlock.mixed import Bytes, Mixture, leads_nowhere
from routing.deadlock.mixed_cdg import LidColumns, Masks, MixedDependencies, Orders
from routing.deadlock.update_schedule import MOST_ROUNDS, UpdateSchedule

MOST_FOLLOWED = 1 << 21
"""Limit of a search for rounds: the LFT columns that the search examines have at most this number of entries (number of
switches times number of LIDs).

:func:`rounds_per_lid` looks for rounds of LIDs of which more than one entry changes.  If the columns of these LIDs have
more entries than the limit, the highest of these LIDs are drained.  :mod:`.schedule_search` gives up a search beyond
the limit.
"""
DRAINED, FEW_DRAINED, MANY_BROKEN = 64, 1024, 16
"""Numbers that determine how many entries may be drained.  An entry is drained if one round removes the old entry and a
later round writes the new one.  An entry is broken if it changes and its old port leads nowhere.

The limit of drained entries is the largest of three numbers: 1 / DRAINED of all entries, the number of broken entries,
and a number that the caller passes (by default FEW_DRAINED).  If more than 1 / MANY_BROKEN of all entries are broken,
all entries may be drained.
"""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Changes:
    """LFT entries in which the old and the new tables differ.

    Attributes
    ----------
    switch, lid
        int64[N] each, switch and LID of each entry, sorted by LID, then by switch.
    old_was_routed
        bool[N], whether the old entry leads to a switch or delivers its LID.
    removed
        bool[N], whether the new tables only remove the entry, because its LID is gone or unreachable.
    """

    switch: npt.NDArray[np.int64]
    lid: npt.NDArray[np.int64]
    old_was_routed: Mask
    removed: Mask

    @classmethod
    def of(cls, mixture: Mixture) -> Changes:
        """Find the entries in which old and new tables differ."""
        differs = mixture.before != mixture.after
        switch, lid = np.divmod(np.flatnonzero(differs), differs.shape[1])
        position = np.lexsort((switch, lid))
        switch, lid = switch[position], lid[position]
        was_routed = ~leads_nowhere(mixture.fabric, mixture.before, switch, lid)
        return cls(switch, lid, was_routed, mixture.removed(switch, lid))

    @cached_property
    def mixed_lids(self) -> npt.NDArray[np.int64]:
        """Return the LIDs, int64, of which more than one entry changes.  Only for these LIDs can a path mix old and new
        entries.

        Entries that are only removed do not count.
        """
        lids, count = np.unique(self.lid[~self.removed], return_counts=True)
        return lids[count > 1]


def rounds_per_lid(waiting: MixedDependencies, base: Masks, *, few: int = FEW_DRAINED) -> UpdateSchedule | None:
    """Find rounds in which new entries can be written, so that no cycle is added to the CDG of the old and new tables.

    The LIDs are divided into three sets.  A round for LIDs of the first set begins as soon as the switches have
    acknowledged the round before.  A round for LIDs of the second set begins only when older packets have left the
    fabric.  For LIDs of the third set, no rounds of these two kinds are found.  So these LIDs are drained: their old
    entries are removed, packets leave the fabric, and the new entries are written.

    Parameters
    ----------
    waiting
        Object that computes the dependencies of packets that meet both old and new entries.
    base
        uint32[edges], the VLs of each CDG edge, as bits.  The edges are the dependencies of packets that follow only
        old entries or only new entries, with the old or the new SL.
    few
        Number of entries that may be drained in tables of any size (:func:`most_drained`).

    Returns
    -------
    UpdateSchedule or None
        At most twice :data:`~routing.deadlock.update_schedule.MOST_ROUNDS` rounds.  None if ``base`` has a cycle, or if
        too many entries would have to be drained.

    Notes
    -----
    Cost: O(S K) for S switches and K LIDs of which more than one entry changes, and a topological order.
    """
    changes, most = Changes.of(waiting.mixture), MOST_FOLLOWED // max(1, waiting.mixture.fabric.switches)
    columns = waiting.columns(changes.mixed_lids[:most])
    order = waiting.order(base, columns)
    if order is None:
        return None
    rounds, soon = rounds_without_drain(waiting, columns, base, order)
    late = np.flatnonzero(~soon)
    rounds[late], waited = rounds_with_drain(waiting, columns.subset(late), base, order)
    first = int(rounds[soon].max(initial=1))
    rounds[late] += np.uint8(first) * (rounds[late] > 0)
    going = soon.copy()
    going[late] = waited
    schedule = _combine_rounds(changes, columns.lids[going], rounds[going], first)
    return schedule if schedule.drained <= most_drained(waiting.mixture, changes, few) else None


def most_drained(mixture: Mixture, changes: Changes, few: int) -> int:
    """Return how many old entries an update schedule may remove to drain LIDs.  An update schedule removes such entries
    in one round, waits until older packets have left the fabric, and writes the new entries in a later round.

    The limit is the largest of three numbers: 1 / :data:`DRAINED` of all entries, ``few``, and the number of broken
    entries.  A broken entry is a changed entry whose old port leads nowhere.  If more than
    1 / :data:`MANY_BROKEN` of all entries are broken, all old entries may be removed.
    """
    broken, size = int(np.count_nonzero(~changes.old_was_routed & ~changes.removed)), mixture.before.size
    return size if broken > size // MANY_BROKEN else max(broken, size // DRAINED, few)


def rounds_without_drain(
    waiting: MixedDependencies, columns: LidColumns, base: Masks, order: Orders
) -> tuple[Bytes, Mask]:
    """Find rounds for the entries of each LID.  A round does not wait until older packets have left the fabric.

    Each round begins as soon as the switches have acknowledged the round before.

    ``columns`` holds the LFT columns of K LIDs.  ``base`` (uint32[edges]) has the dependencies that exist already.  The
    rounds close no cycle with these dependencies.  ``order`` is a topological order of these dependencies.

    Returns
    -------
    rounds : uint8[K, S]
        Round in which the entry of each switch towards each of the K LIDs is written; 0: the entry does not change.
    admitted : bool[K]
        Whether the rounds of each LID are safe.
    """
    rounds, last = write_rounds(waiting.slots, columns.next_channels, outward=False)
    # If each LID needs only one round, all LIDs are first checked together.  This check is much faster than a check of
    # each LID, and usually succeeds.
    if last.max(initial=1) == 1 and waiting.admits_all(columns, base):
        return rounds, np.ones(len(columns), bool)
    taken = np.zeros(len(columns), bool)
    for outward in (False, True):
        strict, deep = write_rounds(waiting.slots, columns.next_channels, outward=outward)
        rounds, last = np.where(taken[:, None], rounds, strict), np.where(taken, last, deep)
        # The second pass of this loop tries other rounds for the LIDs that the first pass has not admitted.  It begins
        # with the admitted LIDs and their rounds, so that these LIDs are admitted again.
        position = np.argsort(~taken, kind="stable")
        position = position[last[position] <= MOST_ROUNDS]
        taken = np.zeros(len(columns), bool)
        taken[position] = waiting.admit(columns.subset(position), base, order, rounds[position])
        if taken.all():
            break
    return rounds, taken


def rounds_with_drain(
    waiting: MixedDependencies, columns: LidColumns, base: Masks, order: Orders, *, all_or_none: bool = False
) -> tuple[Bytes, Mask]:
    """Find rounds for the entries of each LID.  Each round waits until older packets have left the fabric.

    Because of these waits, each packet meets only the tables before one round and the tables after this round.

    ``columns`` holds the LFT columns of K LIDs.  ``base`` (uint32[edges]) has the dependencies that exist already.  The
    rounds close no cycle with these dependencies.  ``order`` is a topological order of these dependencies.
    ``all_or_none`` states that the caller needs rounds for all LIDs.  At the first round that closes a cycle, the
    search then ends and admits no LID.

    Returns
    -------
    rounds : uint8[K, S]
        Round in which the entry of each switch towards each of the K LIDs is written; 0: the entry does not change.
    admitted : bool[K]
        Whether the rounds of each LID are safe.
    """
    rounds, last = write_rounds(waiting.slots, columns.next_channels, outward=False)
    going = last <= MOST_ROUNDS
    before, after = columns.next_channels
    for number in range(1, int(last[going].max(initial=0)) + 1):
        which = np.flatnonzero(going)
        low, high = ((rounds > 0) & (rounds < limit) for limit in (number, number + 1))
        step = columns.between(np.where(low, after, before), np.where(high, after, before)).subset(which)
        if all_or_none:
            going[:] = going.all() and waiting.admits_all(step, base)
        else:
            going[which] = waiting.admit(step, base, order)
    return rounds, going


def _combine_rounds(changes: Changes, lids: npt.NDArray[np.int64], rounds: Bytes, first: int) -> UpdateSchedule:
    """Combine the rounds of all LIDs into one update schedule.

    Round 1 writes the new entries of LIDs with only one new entry, and removes the entries that the new tables only
    remove.  LIDs with several new entries that are not in ``lids`` are drained.  Their old entries that lead to a
    switch or deliver the LID are removed in round ``first``.  Their new entries are written in round ``first`` + 1.

    Parameters
    ----------
    changes
        All entries that change.
    lids, rounds
        int64[K] and uint8[K, S]: LIDs for which rounds were found, ascending, and the round of each of their entries.
    first
        Last round that begins without waiting until packets have left the fabric.  All later rounds begin with this
        wait.
    """
    row = np.searchsorted(lids, changes.lid) if len(lids) else np.zeros(len(changes.lid), np.int64)
    position = np.minimum(row, max(0, len(lids) - 1))
    dropped = lids[position] == changes.lid if len(lids) else np.zeros(len(changes.lid), bool)
    drained = ~dropped & ~changes.removed & np.isin(changes.lid, changes.mixed_lids)
    number = np.where(drained, first + 1, 1).astype(np.uint8)
    dropped &= ~changes.removed
    number[dropped] = rounds[position[dropped], changes.switch[dropped]]
    off = np.where(drained & changes.old_was_routed, first, 0).astype(np.uint8)
    return UpdateSchedule(changes.switch, changes.lid, number, off, first + 1 if (number > first).any() else 0)
