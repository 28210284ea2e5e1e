"""Search for an order in which forwarding tables can be written without a credit loop.

A plan is a list of rounds.  Within a round, entries are written in any order.  Between rounds, the subnet manager waits
until every packet that was in the fabric has left it (its lifetime in each switch is bounded).  So the dependencies of
a round come from the tables before the round, mixed with the tables after the round.  The dependencies of each round
must be acyclic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.deadlock.mixed import Bytes, MixedGraphs, Mixture

BLOCK = 64
"""Number of LIDs in a block of a forwarding table; a subnet manager writes whole blocks."""
ROUNDS = 64
"""Maximum number of rounds of a plan, by default."""
CHECKS = 100
"""Maximum number of mixtures of tables that a search checks if VLs change from hop to hop."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Round:
    """A round of an update plan: entries that may be written in any order.

    Attributes
    ----------
    switch, lid
        int64[N] each, switch and LID of each entry, sorted by switch, then by LID.
    """

    switch: npt.NDArray[np.int64]
    lid: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.switch)

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """Return (switch, number of the block) for every block of 64 LFT entries that the round writes."""
        pairs = np.unique(np.column_stack([self.switch, self.lid // BLOCK]), axis=0)
        return [(int(switch), int(block)) for switch, block in pairs]


@dataclass(frozen=True, eq=False)
class UpdatePlan:
    """Rounds of writing that lead from the old tables to the new tables.

    Attributes
    ----------
    rounds
        The rounds in order.  After each round, the subnet manager waits until all packets have left that were in flight
        before the last write of the round.
    """

    rounds: tuple[Round, ...]

    def __len__(self) -> int:
        return len(self.rounds)

    def states(self, old: Bytes, new: Bytes) -> Iterator[Bytes]:
        """Yield the forwarding tables (uint8[S, L]) as they are after each round of writing."""
        state = old.copy()
        for part in self.rounds:
            state[part.switch, part.lid] = new[part.switch, part.lid]
            yield state.copy()


def one_round(mixture: Mixture) -> UpdatePlan:
    """Return the plan that writes all entries in one round, for a transition that is safe in any order."""
    return UpdatePlan((_round(mixture.before != mixture.after),))


def find_plan(
    mixture: Mixture, hops: npt.NDArray[np.uint8], *, replies: bool, rounds: int = ROUNDS, threads: int = 2
) -> UpdatePlan | None:
    """Search for a safe order of writing.

    Entries whose LID is gone or unreachable are removed in the first round.  Each round goes through the LIDs, and
    admits every LFT column whose mixed entries close no cycle with the existing dependencies and the dependencies of
    columns admitted before.  If no whole column is admitted, parts of columns are tried: the switches with an equal
    number of hops to each LID on the new routes, nearest first.  Then packets that use a new entry meet only new
    entries.

    Parameters
    ----------
    mixture
        The mixed old and new tables.  In every round each packet may have either SL, and each switch may use either
        SL2VL table.
    hops
        uint8[S, L], hops from each switch to each LID by the new tables.
    replies
        Whether reply traffic is included.
    rounds
        Maximum number of rounds of a plan.
    threads
        Worker threads.

    Returns
    -------
    UpdatePlan or None
        None if no order was found, although a safe order may exist.

    Notes
    -----
    Cost: a graph of mixed tables for each round; if VLs change from hop to hop, for up to :data:`CHECKS` mixtures.
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
            if not rounds:
                taken |= self._removed(missing)
            if not taken.any():
                return None
            rounds.append(_round(taken))
            self._state[taken] = self._mixture.after[taken]
        return UpdatePlan(tuple(rounds))

    def _missing(self) -> Mask:
        """Return bool[S, L], the entries that are still to be written."""
        return np.asarray(self._state != self._mixture.after)

    def _removed(self, missing: Mask) -> Mask:
        """Return bool[S, L], the entries in ``missing`` (bool[S, L]) that the new tables only remove."""
        switch, lid = np.nonzero(missing)
        which, removed = self._mixture.removed(switch, lid), np.zeros_like(missing)
        removed[switch[which], lid[which]] = True
        return removed

    def _take(self, missing: Mask, hops: npt.NDArray[np.uint8]) -> Mask:
        """Return bool[S, L], the entries of the next round; all False if no entry can be written safely.

        ``missing`` (bool[S, L]) marks the entries that are still to be written, and ``hops`` (uint8[S, L]) has the hops
        of the new tables.
        """
        graphs = MixedGraphs(self._mixture.between(self._state, self._state), threads=self._threads)
        taken = self._admit(graphs, missing)
        for far in np.unique(hops[missing]) if not taken.any() else ():
            taken = self._admit(graphs, missing & (hops == far))
            if taken.any():
                break
        return taken

    def _admit(self, graphs: MixedGraphs, offered: Mask) -> Mask:
        """Return bool[S, L], the entries that can be written in one round without a credit loop, of the entries in
        ``offered`` (bool[S, L]).
        """
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
        """Return LIDs of ``lids`` whose entries in ``offered`` can be written together in one round.

        The LIDs are found by bisection: a set of LIDs that closes a cycle is halved, and both halves are tried.  This
        method is for tables with which packets may change their VL along a path.
        """
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
