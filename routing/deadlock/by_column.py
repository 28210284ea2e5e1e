"""Rounds LID by LID, beside all that either of the tables makes wait.

What old and new tables make wait is in the graph from the beginning, so that only the mixtures of old and new entries
are looked at, of the few LIDs that have one.  A LID of which one entry changes has none: a packet goes all the way by
the old table or all of it by the new one.  Of a LID whose mixtures all close cycles the old entries are taken out
before the new ones are written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from routing._kernels.mixed import write_rounds
from routing.deadlock.mixed import Bytes, Mixture
from routing.deadlock.stages import MOST_ROUNDS, Stages
from routing.deadlock.waiting import Columns, Masks, Orders, Waiting
from routing.fabric import NO_PORT

MOST_FOLLOWED = 1 << 21
"""Entries of the columns that are looked at."""
DRAINED = 64
"""One in so many entries of the tables may lead nowhere for a while, or as many as are broken anyway."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Changes:
    """Entries that change.

    Attributes
    ----------
    switch, lid
        int64[N] twice, by LID, then by switch.
    led
        bool[N], whether the old entry leads anywhere.
    """

    switch: npt.NDArray[np.int64]
    lid: npt.NDArray[np.int64]
    led: Mask

    @classmethod
    def of(cls, mixture: Mixture) -> Changes:
        """Of all LIDs that a switch delivers."""
        differs = (mixture.before != mixture.after) & (mixture.fabric.lids.switch >= 0)
        switch, lid = np.divmod(np.flatnonzero(differs), differs.shape[1])
        place = np.lexsort((switch, lid))
        switch, lid = switch[place], lid[place]
        return cls(switch, lid, mixture.before[switch, lid] != NO_PORT)

    @cached_property
    def mixed(self) -> npt.NDArray[np.int64]:
        """int64[K], LIDs of which more than one entry changes."""
        lids, count = np.unique(self.lid, return_counts=True)
        return lids[count > 1]


def by_column(waiting: Waiting, base: Masks) -> Stages | None:
    """Rounds beside all that either of the tables makes wait; None if that has a cycle, or too much were drained.

    First those LIDs that take acknowledgements only, then those that take a wait between their rounds, and last
    those that are drained: their old entries are taken out, packets leave, the new ones are written.

    Parameters
    ----------
    waiting
        Both tables.
    base
        uint32[slots], what waits by the old entries alone or by the new ones alone, with every SL that may be in use.

    Returns
    -------
    At most twice :data:`~routing.deadlock.stages.MOST_ROUNDS` rounds.  Cost: O(S K) for the K LIDs of which more than
    one entry changes, and a topological order.
    """
    changes, most = Changes.of(waiting.mixture), MOST_FOLLOWED // max(1, waiting.mixture.fabric.switches)
    columns = waiting.columns(changes.mixed[:most])
    order = waiting.order(base, columns)
    if order is None:
        return None
    rounds, soon = _acknowledged(waiting, columns, base, order)
    late = np.flatnonzero(~soon)
    rounds[late], waited = _waited(waiting, columns.some(late), base, order)
    first = int(rounds[soon].max(initial=1))
    rounds[late] += np.uint8(first) * (rounds[late] > 0)
    going = soon.copy()
    going[late] = waited
    stages = _put_together(changes, columns.lids[going], rounds[going], first)
    allowed = max(int(np.count_nonzero(~changes.led)), waiting.mixture.before.size // DRAINED)
    return stages if stages.drained <= allowed else None


def _acknowledged(waiting: Waiting, columns: Columns, base: Masks, order: Orders) -> tuple[Bytes, Mask]:
    """uint8[K, S], bool[K]: rounds with acknowledgements between them, and the LIDs for which they do."""
    rounds, last = write_rounds(waiting.slots, columns.ways, outward=False)
    if last.max(initial=1) == 1:  # mostly, and much faster
        waits = base.copy()
        if not waiting.trace(columns, waits) and waiting.order(waits, columns) is not None:
            return rounds, np.ones(len(columns), bool)
    taken = _admitted(waiting, columns, base, order, rounds, np.flatnonzero(last <= MOST_ROUNDS))
    if taken.all():
        return rounds, taken
    strict, deep = write_rounds(waiting.slots, columns.ways, outward=True)
    rounds, last = np.where(taken[:, None], rounds, strict), np.where(taken, last, deep)
    # What went goes again, as it comes first; the others are held against that.
    place = np.argsort(~taken, kind="stable")
    return rounds, _admitted(waiting, columns, base, order, rounds, place[last[place] <= MOST_ROUNDS])


def _admitted(  # noqa: PLR0917
    waiting: Waiting, columns: Columns, base: Masks, order: Orders, rounds: Bytes, place: npt.NDArray[np.int64]
) -> Mask:
    taken = np.zeros(len(columns), bool)
    taken[place] = waiting.admit(columns.some(place), base, order, rounds[place])
    return taken


def _waited(waiting: Waiting, columns: Columns, base: Masks, order: Orders) -> tuple[Bytes, Mask]:
    """The same with a wait between rounds, so that each of them is a mixture of its own."""
    rounds, last = write_rounds(waiting.slots, columns.ways, outward=False)
    going = last <= MOST_ROUNDS
    before, after = columns.ways
    for number in range(1, int(last[going].max(initial=0)) + 1):
        which = np.flatnonzero(going)
        low, high = ((rounds > 0) & (rounds < limit) for limit in (number, number + 1))
        step = columns.between(np.where(low, after, before), np.where(high, after, before)).some(which)
        going[which] = waiting.admit(step, base, order)
    return rounds, going


def _put_together(changes: Changes, lids: npt.NDArray[np.int64], rounds: Bytes, first: int) -> Stages:
    """LIDs with rounds, LIDs of one entry in the first round, and all others drained after the ``first`` ones."""
    row = np.searchsorted(lids, changes.lid) if len(lids) else np.zeros(len(changes.lid), np.int64)
    place = np.minimum(row, max(0, len(lids) - 1))
    told = lids[place] == changes.lid if len(lids) else np.zeros(len(changes.lid), bool)
    drained = ~told & np.isin(changes.lid, changes.mixed)
    number = np.where(drained, first + 1, 1).astype(np.uint8)
    number[told] = rounds[place[told], changes.switch[told]]
    off = np.where(drained & changes.led, first, 0).astype(np.uint8)
    return Stages(changes.switch, changes.lid, number, off, first + 1 if (number > first).any() else 0)
