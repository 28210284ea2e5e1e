"""Search for an order in which forwarding tables can be written without a credit loop.

A plan is a list of rounds.  Within a round, entries are written in any order.  Between rounds, the subnet manager waits
until every packet that was in the fabric has left it (its lifetime in each switch is bounded).  So the dependencies of
a round come from the tables before the round, mixed with the tables after the round.  The dependencies of each round
must be acyclic.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.deadlock.mixed import Bytes, MixedGraphs, Mixture
from routing.deadlock.update_schedule import UpdateSchedule

ROUNDS = 64
"""Maximum number of rounds of a plan, by default."""
MOST_ROUNDS = 255
"""Maximum number of rounds of any plan, because a schedule stores the round of each entry in one byte."""
CHECKS = 100
"""Maximum number of mixtures of tables that a search checks if VLs change from hop to hop."""

Mask = npt.NDArray[np.bool_]


def one_round(mixture: Mixture) -> UpdateSchedule:
    """Return the schedule that writes all entries in one round, for a transition that is safe in any order."""
    return _schedule((mixture.before != mixture.after).astype(np.uint8), drains=False)


def find_plan(
    mixture: Mixture, hops: npt.NDArray[np.uint8], *, replies: bool, rounds: int = ROUNDS, threads: int = 2
) -> UpdateSchedule | None:
    """Search for a safe order of writing.

    Entries whose LID is gone or unreachable are removed in the first round.  Each round goes through the LIDs.  An LFT
    column is admitted if its mixed entries close no cycle with the existing dependencies, nor with the dependencies of
    the columns that were admitted before.  If no whole column is admitted, parts of columns are tried.  A part has the
    entries of all switches with an equal number of hops to the LID on the new routes.  Parts with fewer hops are tried
    first, because a packet that uses a new entry then meets only new entries on the rest of its path.

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
    UpdateSchedule or None
        None if no order was found, although a safe order may exist.

    Notes
    -----
    Cost: a dependency graph of mixed tables for each round.  If VLs change from hop to hop, there are up to
    :data:`CHECKS` such graphs in all.
    """
    return _Planner(mixture, replies=replies, threads=threads).plan(hops, min(rounds, MOST_ROUNDS))


class _Planner:
    def __init__(self, mixture: Mixture, *, replies: bool, threads: int) -> None:
        self._mixture, self._replies, self._threads = mixture, replies, threads
        self._checks = 0
        self._state = mixture.before.copy()

    def plan(self, hops: npt.NDArray[np.uint8], most: int) -> UpdateSchedule | None:
        rounds, number = np.zeros(self._state.shape, np.uint8), 0
        while (missing := self._missing()).any():
            taken = self._take(missing, hops) if number < most else np.zeros_like(missing)
            if not number:
                taken |= self._removed(missing)
            if not taken.any():
                return None
            number += 1
            rounds[taken] = number
            self._state[taken] = self._mixture.after[taken]
        return _schedule(rounds, drains=number > 1)

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
        """Return bool[S, L], entries that can be written together in one round without a credit loop.

        The entries are selected from ``offered`` (bool[S, L]).
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


def _schedule(rounds: Bytes, *, drains: bool) -> UpdateSchedule:
    return UpdateSchedule.of(np.arange(rounds.shape[1]), np.ascontiguousarray(rounds.T), drains=drains)
