"""Update schedule: the round in which each changed LFT entry is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.fabric import NO_PORT

Bytes = npt.NDArray[np.uint8]
MOST_ROUNDS = 8
"""Maximum number of rounds for the entries of one LID."""


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
        First round that also waits until all packets have left that were in the fabric when the round before was
        acknowledged.  All later rounds wait too.  0: no round waits for packets to leave.
    """

    switch: npt.NDArray[np.int64]
    lid: npt.NDArray[np.int64]
    round: Bytes
    removed_in_round: Bytes
    first_draining_round: int = 0

    def __len__(self) -> int:
        return int(self.round.max(initial=1))

    @property
    def drained(self) -> int:
        """Return the number of entries that were in use and are removed for some rounds before the new entry is
        written.
        """
        return int(np.count_nonzero(self.removed_in_round))

    def states(self, old: Bytes, new: Bytes) -> Iterator[Bytes]:
        """Yield the forwarding tables (uint8[S, L]) as they are after each round of writing."""
        state = new.copy()
        state[self.switch, self.lid] = old[self.switch, self.lid]
        for number in range(1, len(self) + 1):
            out, now = self.removed_in_round == number, self.round == number
            state[self.switch[out], self.lid[out]] = NO_PORT
            state[self.switch[now], self.lid[now]] = new[self.switch[now], self.lid[now]]
            yield state.copy()
