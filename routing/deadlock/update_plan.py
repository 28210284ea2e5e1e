"""An order in which forwarding tables can be written without passing through a credit loop.

A plan is a list of rounds.  Within a round entries are written in any order; between rounds the subnet manager waits
until every packet that was in the fabric has left it (its lifetime in each switch is bounded).  Then what can wait for
what in a round is the mixture of the tables before it and after it, and each of these has to be free of cycles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.deadlock.mixed import Bytes, MixedGraphs, Mixture

BLOCK = 64
"""LIDs in a block of a forwarding table, the unit in which a subnet manager writes it."""
ROUNDS = 64
"""Rounds after which the search for an order ends."""
CHECKS = 100
"""Mixtures that are tried in such a search where VLs change on the way."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Round:
    """Entries that are written in any order.

    Attributes
    ----------
    switch, lid
        int64[N] twice: which entries, by switch, then by LID.
    """

    switch: npt.NDArray[np.int64]
    lid: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.switch)

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """(switch, number of the block) of every block of 64 LIDs to write."""
        pairs = np.unique(np.column_stack([self.switch, self.lid // BLOCK]), axis=0)
        return [(int(switch), int(block)) for switch, block in pairs]


@dataclass(frozen=True, eq=False)
class UpdatePlan:
    """Rounds that lead from the old tables to the new ones.

    Attributes
    ----------
    rounds
        In this order, with a wait after each: until all that was in flight before its last write has left.
    """

    rounds: tuple[Round, ...]

    def __len__(self) -> int:
        return len(self.rounds)

    def states(self, old: Bytes, new: Bytes) -> Iterator[Bytes]:
        """uint8[S, L], the forwarding tables after each round."""
        state = old.copy()
        for part in self.rounds:
            state[part.switch, part.lid] = new[part.switch, part.lid]
            yield state.copy()


def one_round(mixture: Mixture) -> UpdatePlan:
    """Everything at once: the plan where any order is safe."""
    return UpdatePlan((_round((mixture.before != mixture.after) & (mixture.fabric.lids.switch >= 0)),))


def find_plan(
    mixture: Mixture, hops: npt.NDArray[np.uint8], *, replies: bool, rounds: int = ROUNDS, threads: int = 2
) -> UpdatePlan | None:
    """Look for an order.

    Each round takes, LID by LID, every column whose mixture closes no cycle with what is there already, taken columns
    included.  When no whole column goes, parts are tried: the switches equally far from each LID on the new routes,
    nearest first, so that whatever follows a new entry finds new entries.

    Parameters
    ----------
    mixture
        Of the old and the new tables.  Each packet may have either SL and each switch either SL2VL in every round.
    hops
        uint8[S, L], hops of the new tables.
    replies
        Whether replies count.
    rounds
        Most that a plan may have.
    threads
        Worker threads.

    Returns
    -------
    None if no order was found, which does not say that there is none.  Cost: that of a mixed graph for each round;
    where VLs change on the way, for up to :data:`CHECKS` mixtures.
    """
    return _Planner(mixture, replies=replies, threads=threads).plan(hops, rounds)


class _Planner:
    def __init__(self, mixture: Mixture, *, replies: bool, threads: int) -> None:
        self._mixture, self._replies, self._threads = mixture, replies, threads
        self._checks = 0
        self._state = mixture.before.copy()

    def plan(self, hops: npt.NDArray[np.uint8], most: int) -> UpdatePlan | None:
        rounds: list[Round] = []
        while (missing := self._missing()).any():
            taken = self._take(missing, hops) if len(rounds) < most else np.zeros_like(missing)
            if not taken.any():
                return None
            rounds.append(_round(taken))
            self._state[taken] = self._mixture.after[taken]
        return UpdatePlan(tuple(rounds))

    def _missing(self) -> Mask:
        """bool[S, L], entries that are still old, of LIDs that a switch delivers."""
        differs = self._state != self._mixture.after
        return np.asarray(differs & (self._mixture.fabric.lids.switch >= 0))

    def _take(self, missing: Mask, hops: npt.NDArray[np.uint8]) -> Mask:
        """Entries for the next round; none if nothing goes."""
        graphs = MixedGraphs(self._mixture.between(self._state, self._state), threads=self._threads)
        taken = self._admit(graphs, missing)
        for far in np.unique(hops[missing]) if not taken.any() else ():
            taken = self._admit(graphs, missing & (hops == far))
            if taken.any():
                break
        return taken

    def _admit(self, graphs: MixedGraphs, offered: Mask) -> Mask:
        """Of what is offered, whole columns that go together."""
        lids = np.flatnonzero(offered.any(axis=0))
        if graphs.fixed:
            after = np.where(offered, self._mixture.after, self._state)
            lids = lids[graphs.admit(self._state, after, lids, replies=self._replies)]
        else:
            lids = self._bisect(offered, lids)
        taken = np.zeros_like(offered)
        taken[:, lids] = offered[:, lids]
        return taken

    def _bisect(self, offered: Mask, lids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """LIDs that go together: half of them, and half of that, where they collide."""
        taken = np.zeros(offered.shape[1], bool)
        left = [lids]
        while left and self._checks < CHECKS:
            some = left.pop()
            more = taken.copy()
            more[some] = True
            if self._safe(offered & more):
                taken = more
            elif len(some) > 1:
                left += [some[len(some) // 2 :], some[: len(some) // 2]]
        return np.flatnonzero(taken)

    def _safe(self, entries: Mask) -> bool:
        self._checks += 1
        after = np.where(entries, self._mixture.after, self._state)
        graphs = MixedGraphs(self._mixture.between(self._state, after), threads=self._threads)
        return graphs.order(replies=self._replies, switch_pairs=False) is not None


def _round(entries: Mask) -> Round:
    switch, lid = np.nonzero(entries)
    return Round(switch, lid)
