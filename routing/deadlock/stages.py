"""When each entry of new tables is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.fabric import NO_PORT

Bytes = npt.NDArray[np.uint8]
MOST_ROUNDS = 8
"""Rounds that a LID may take."""


@dataclass(frozen=True, eq=False)
class Stages:
    """When each entry that changes is written.

    Attributes
    ----------
    switch, lid
        int64[N] twice, the entries that change, by LID, then by switch.
    round
        uint8[N], from 1 on.  Each round begins when every switch has acknowledged the one before.
    off
        uint8[N], the round in which an old entry is taken out, so that it leads nowhere until its round; 0: it stays
        until then.
    wait_from
        The first round before which, besides, all packets have to leave that were in the fabric at the last
        acknowledgement, as before all that follow; 0: none.
    """

    switch: npt.NDArray[np.int64]
    lid: npt.NDArray[np.int64]
    round: Bytes
    off: Bytes
    wait_from: int = 0

    def __len__(self) -> int:
        return int(self.round.max(initial=1))

    @property
    def drained(self) -> int:
        """How many entries lead nowhere for a while that led somewhere before."""
        return int(np.count_nonzero(self.off))

    def states(self, old: Bytes, new: Bytes) -> Iterator[Bytes]:
        """uint8[S, L], the forwarding tables after each round."""
        state = new.copy()
        state[self.switch, self.lid] = old[self.switch, self.lid]
        for number in range(1, len(self) + 1):
            out, now = self.off == number, self.round == number
            state[self.switch[out], self.lid[out]] = NO_PORT
            state[self.switch[now], self.lid[now]] = new[self.switch[now], self.lid[now]]
            yield state.copy()
