"""Update schedule: the round in which each changed LFT entry is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from routing.fabric import NO_PORT

Bytes = npt.NDArray[np.uint8]
BLOCK = 64
"""Number of LIDs in a block of a forwarding table; a subnet manager writes whole blocks."""
MOST_ROUNDS = 8
"""Maximum number of rounds for the entries of one LID."""


@dataclass(frozen=True, eq=False)
class Round:
    """A round of an update schedule: entries that may be written in any order.

    Attributes
    ----------
    switch, lid
        int64[N] each, switch and LID of each entry.
    removed
        Number of the entries that are removed for a while: a later round writes the new entry.
    drains
        Whether the round waits for packets.  If so, the round begins when all packets have left the fabric that were in
        it at the end of the round before.
    """

    switch: npt.NDArray[np.int64]
    lid: npt.NDArray[np.int64]
    removed: int
    drains: bool

    def __len__(self) -> int:
        return len(self.switch)

    @cached_property
    def blocks(self) -> list[tuple[int, int]]:
        """Return (switch, number of the block) for every block of 64 LFT entries that the round writes."""
        pairs = np.unique(np.column_stack([self.switch, self.lid // BLOCK]), axis=0)
        return [(int(switch), int(block)) for switch, block in pairs]


@dataclass(frozen=True, eq=False)
class UpdateSchedule:
    """The round in which each changed LFT entry is written.

    Attributes
    ----------
    switch, lid
        int64[N] each, switch and LID of each changed entry, sorted by LID, then by switch.
    round
        uint8[N], round in which the new entry is written, from 1 on.  Each round begins when every switch has
        acknowledged the round before.
    removed_in_round
        uint8[N], round in which the old entry is removed, so that packets are dropped until the new entry is written.
        0: the old entry stays until the new entry is written.
    first_draining_round
        First round that also waits for packets: the packets that were in the fabric at the end of the round before have
        to leave.  All later rounds wait too.  0: no round waits for packets.
    only_removes
        Whether the first round only removes entries, because some cables now connect other ports than before.  Before
        this removal, the old tables may have a credit loop.  All later rounds are free of credit loops.
    """

    switch: npt.NDArray[np.int64]
    lid: npt.NDArray[np.int64]
    round: Bytes
    removed_in_round: Bytes
    first_draining_round: int = 0
    only_removes: bool = False

    @classmethod
    def of(cls, lids: npt.NDArray[np.int64], rounds: Bytes, *, drains: bool) -> UpdateSchedule:
        """Return the update schedule that writes the entries towards K LIDs in the given rounds.

        ``rounds`` (uint8[K, S]) has the round of each entry; 0: the entry does not change.  ``lids`` (int64[K]) holds
        the LIDs, ascending.  If ``drains``, each round except the first waits until packets have left the fabric.
        """
        # Rows and columns come from a division of flat indices, because numpy's nonzero on a matrix is much slower.
        column, switch = np.divmod(np.flatnonzero(rounds), rounds.shape[1])
        off, number = np.zeros(len(column), np.uint8), rounds[column, switch]
        return cls(switch, lids[column], number, off, 2 if drains else 0)

    def __len__(self) -> int:
        return int(self.round.max(initial=1))

    @property
    def rounds(self) -> Iterator[Round]:
        """Yield the entries that each round writes or removes."""
        for number in range(1, len(self) + 1):
            out = self.removed_in_round == number
            which, drains = out | (self.round == number), 0 < self.first_draining_round <= number
            yield Round(self.switch[which], self.lid[which], int(np.count_nonzero(out)), drains)

    @property
    def drained(self) -> int:
        """Return the number of entries that were in use and are removed for some rounds before the new entry is
        written.
        """
        return int(np.count_nonzero(self.removed_in_round))

    def one_later(self, new: Bytes) -> UpdateSchedule:
        """Return the schedule with one more round at the beginning.  All later rounds begin only when packets have left
        the fabric.

        Each entry moves from its round to the next round.  Entries without a port in the final tables ``new``
        (uint8[S, L]) are only removed, so these entries stay in their round.
        """
        off = self.removed_in_round + (self.removed_in_round > 0).astype(np.uint8)
        later = (new[self.switch, self.lid] != NO_PORT).astype(np.uint8)
        return replace(self, round=self.round + later, removed_in_round=off, first_draining_round=2)

    def states(self, old: Bytes, new: Bytes) -> Iterator[Bytes]:
        """Yield the forwarding tables (uint8[S, L]) as they are after each round of writing."""
        state = new.copy()
        state[self.switch, self.lid] = old[self.switch, self.lid]
        for number in range(1, len(self) + 1):
            out, now = self.removed_in_round == number, self.round == number
            state[self.switch[out], self.lid[out]] = NO_PORT
            state[self.switch[now], self.lid[now]] = new[self.switch[now], self.lid[now]]
            yield state.copy()
