"""An order in which forwarding tables can be written without passing through a credit loop.

A plan is a list of rounds.  Within a round entries are written in any order; between rounds the subnet manager waits
until every packet that was in the fabric has left it (its lifetime in each switch is bounded).  Then what can wait for
what in a round is the mixture of the tables before it and after it, and each of these has to be free of cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.deadlock.mixed import Bytes, MixedGraphs, Mixture

BLOCK = 64
"""LIDs in a block of a forwarding table, the unit in which a subnet manager writes it."""
CHECKS = 100
"""Mixtures that are tried before the search for an order ends."""


@dataclass(frozen=True, eq=False)
class Round:
    """Entries that are written in any order.

    Attributes
    ----------
    switch, lid
        int32[N] twice: which entries, by switch, then by LID.
    """

    switch: npt.NDArray[np.int32]
    lid: npt.NDArray[np.int32]

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
    checks
        Mixtures that were looked at to find them.
    """

    rounds: tuple[Round, ...]
    checks: int

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
    return UpdatePlan((_round(mixture.before != mixture.after),), 1)


def find_plan(
    mixture: Mixture, hops: npt.NDArray[np.uint8], *, replies: bool, checks: int = CHECKS, threads: int = 2
) -> UpdatePlan | None:
    """Look for an order.

    Each round takes as many whole columns as go together: all that are left, or, if they collide, each half, and so
    on down to single LIDs.  When no whole column goes, columns are split into switches equally far from the LID on the
    new routes, nearest first, so that whatever follows a new entry finds new entries.

    Parameters
    ----------
    mixture
        Of the old and the new tables.  Each packet may have either SL and each switch either SL2VL in every round.
    hops
        uint8[S, L], hops of the new tables.
    replies
        Whether replies count.
    checks
        How many mixtures may be tried.
    threads
        Worker threads.

    Returns
    -------
    None if no order was found, which does not say that there is none.  Cost: that of a mixed graph for each check;
    about log2(K) checks for each LID of K that collides.
    """
    planner = _Planner(mixture, replies=replies, checks=checks, threads=threads)
    return planner.plan(hops)


class _Planner:
    def __init__(self, mixture: Mixture, *, replies: bool, checks: int, threads: int) -> None:
        self._mixture, self._replies, self._left, self._threads = mixture, replies, checks, threads
        self._checks = 0
        self._state = mixture.before.copy()

    def plan(self, hops: npt.NDArray[np.uint8]) -> UpdatePlan | None:
        rounds: list[Round] = []
        while (missing := self._state != self._mixture.after).any():
            taken = self._grow(self._columns(missing))
            if not taken.any():
                taken = self._grow(self._levels(missing, hops))
            if not taken.any():
                return None
            rounds.append(_round(taken))
            self._state[taken] = self._mixture.after[taken]
        return UpdatePlan(tuple(rounds), self._checks)

    def _columns(self, missing: npt.NDArray[np.bool_]) -> Sequence[_Part]:
        return [_column(int(lid)) for lid in np.flatnonzero(missing.any(axis=0))]

    def _levels(self, missing: npt.NDArray[np.bool_], hops: npt.NDArray[np.uint8]) -> Sequence[_Part]:
        pairs = {(int(hops[s, lid]), int(lid)) for s, lid in zip(*np.nonzero(missing), strict=True)}
        return [_level(hops, lid, far) for far, lid in sorted(pairs)]

    def _grow(self, parts: Sequence[_Part]) -> npt.NDArray[np.bool_]:
        """bool[S, L], entries of as many parts as go together: a part that is left out collides with those taken."""
        taken = np.zeros(self._state.shape, bool)
        left = [parts] if parts else []
        while left and self._checks < self._left:
            some = left.pop()
            more = taken.copy()
            for part in some:
                part(more)
            more &= self._state != self._mixture.after
            if self._safe(more):
                taken = more
            elif len(some) > 1:
                left += [some[len(some) // 2 :], some[: len(some) // 2]]
        return taken

    def _safe(self, entries: npt.NDArray[np.bool_]) -> bool:
        self._checks += 1
        after = np.where(entries, self._mixture.after, self._state)
        graphs = MixedGraphs(self._mixture.between(self._state, after), threads=self._threads)
        return graphs.order(replies=self._replies, switch_pairs=False) is not None


_Part = Callable[[npt.NDArray[np.bool_]], None]
"""Marks some entries in a bool[S, L]."""


def _column(lid: int) -> _Part:
    def mark(entries: npt.NDArray[np.bool_]) -> None:
        entries[:, lid] = True

    return mark


def _level(hops: npt.NDArray[np.uint8], lid: int, far: int) -> _Part:
    def mark(entries: npt.NDArray[np.bool_]) -> None:
        entries[hops[:, lid] == far, lid] = True

    return mark


def _round(entries: npt.NDArray[np.bool_]) -> Round:
    switch, lid = np.nonzero(entries)
    return Round(switch.astype(np.int32), lid.astype(np.int32))
