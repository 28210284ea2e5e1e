"""Rounds in which new tables can be written with no more than an acknowledgement between them, where that will do.

A packet comes to a switch before it is written, or after: not both.  So where a switch is written only after others
have acknowledged theirs, packets that go by its new entry meet the new entries of these.  What packets in flight have
done before stays, with every channel they may have got to, for all rounds to come: none is waited for to leave.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.cdg import trace
from routing._kernels.mixed import write_rounds
from routing.deadlock.by_column import MOST_FOLLOWED, by_column
from routing.deadlock.mixed import Bytes, Mixture
from routing.deadlock.stages import MOST_ROUNDS, Stages
from routing.deadlock.update_plan import find_plan
from routing.deadlock.waiting import Columns, Masks, Orders, Waiting
from routing.fabric import Fabric
from routing.tables import Routing

MOST_SEARCHED = 1 << 18
"""Entries of tables up to which everything is tried that may be worth it; a sweep waits for the answer."""
NO_HOPS = 254
"""Hops from which on a LID is not reached."""


def stage(
    fabric: Fabric,
    old: Routing,
    new: Routing,
    *,
    known: npt.NDArray[np.uint16] | None = None,
    replies: bool = False,
    threads: int = 2,
) -> Stages | None:
    """Rounds in which tables can be replaced without a credit loop on the way, for traffic from or to CAs and routers.

    Parameters
    ----------
    fabric, old, new
        A fabric, and tables that are both laid out for it; entries over what is gone say 255.
    known
        uint16[slots], all that either of the tables alone makes wait, as in :class:`~routing.deadlock.proof.Proof`;
        then tables of which little changes need no pass over what does not.
    replies
        Whether replies count.
    threads
        Worker threads; the result is the same with any number.

    Returns
    -------
    None where no rounds were found, which does not say that there are none: so where VLs change on the way, where
    changed SLs close a loop on the old or the new routes, or where nearly all changes.
    A single round: any order is safe.

    Raises
    ------
    TableError
        The shapes do not fit the fabric.

    Notes
    -----
    Packets keep the old SL or have the new one, at all times.  A switch is taken to forward by its new table when it
    has acknowledged it.  Cost: :func:`~routing.deadlock.by_column.by_column`; for small tables a pass over all of them
    if that finds none without a wait.
    """
    mixture = Mixture.of(fabric, old, new)
    if mixture.sl2vl[0].ndim > 1 or len(mixture.sl2vl) > 1:
        return None
    waiting, large = Waiting(mixture, replies=replies, threads=threads), mixture.before.size > MOST_SEARCHED
    base = _base(waiting, known)
    stages = None if base is None else by_column(waiting, base)
    if large or (known is not None and stages is not None and not stages.wait_from):
        return stages
    return _searched(waiting, new) or stages


def _base(waiting: Waiting, known: npt.NDArray[np.uint16] | None) -> Masks | None:
    """All that either of the tables alone makes wait, with any SL; None where nearly all of large tables changes."""
    if known is not None and len(waiting.mixture.sl) == 1:
        return known.astype(np.uint32)
    lids = _followed(waiting.mixture, replies=waiting.replies)
    if len(lids) * waiting.mixture.fabric.switches > MOST_FOLLOWED:
        return None
    rest = waiting.unchanged(lids) if known is None else known.astype(np.uint32)
    return waiting.both(waiting.columns(lids), rest)


def _followed(mixture: Mixture, *, replies: bool) -> npt.NDArray[np.int64]:
    """int64[K], LIDs to which entries change, or SLs."""
    if len(mixture.sl) == 1:
        return mixture.changed
    there = mixture.fabric.lids.switch >= 0
    one, other = mixture.sl
    if replies or one.shape[-1] != other.shape[-1] or (one.ndim == other.ndim == 2 and len(one) != len(other)):
        return np.flatnonzero(there)  # a reply has the SL of its request, which went to somebody else
    levels = one != other
    return np.union1d(mixture.changed, np.flatnonzero(there & (levels if levels.ndim == 1 else levels.any(axis=0))))


def _searched(waiting: Waiting, new: Routing) -> Stages | None:
    """Rounds beside what waits in fact, which takes a pass over all tables."""
    lids = _followed(waiting.mixture, replies=waiting.replies)
    if len(lids) * waiting.mixture.fabric.switches > MOST_FOLLOWED:
        return None
    job, unchanged = _Stager(waiting, waiting.columns(lids)), waiting.unchanged(lids)
    return job.at_once(unchanged) or job.with_waits(unchanged) or job.searched(unchanged, new)


class _Stager:
    """Rounds for all LIDs that change, or none."""

    def __init__(self, waiting: Waiting, columns: Columns) -> None:
        self._waiting, self._columns = waiting, columns
        self._rounds, self._last = write_rounds(waiting.slots, columns.ways, outward=False)

    def at_once(self, base: Masks) -> Stages | None:
        """With no wait, beside what waits anyway; None if something does not go."""
        waiting, columns = self._waiting, self._columns
        if self._last.max(initial=1) == 1:
            waits = base.copy()
            if not waiting.trace(columns, waits) and waiting.order(waits, columns) is not None:
                return self._stages(self._rounds, waits=False)
        order = waiting.order(base, columns)
        return None if order is None else self._in_turn(base, order)

    def _in_turn(self, base: Masks, order: Orders) -> Stages | None:
        """One LID after the other: nearest switches first where packets could circle, or everywhere."""
        rounds, last = self._rounds, self._last
        for outward in (False, True):
            if last.max(initial=1) > MOST_ROUNDS:
                return None
            taken = self._waiting.admit(self._columns, base, order, rounds)
            if taken.all():
                return self._stages(rounds, waits=False)
            if not outward:
                strict, deep = write_rounds(self._waiting.slots, self._columns.ways, outward=True)
                rounds = np.where(taken[:, None], rounds, strict)
                last = np.where(taken, last, deep)
        return None

    def with_waits(self, unchanged: Masks) -> Stages | None:
        """All LIDs together, with a wait between rounds; None if one of the rounds does not go."""
        most = int(self._last.max(initial=1))
        if not 1 < most <= MOST_ROUNDS:
            return None
        before, after = self._columns.ways
        for number in range(1, most + 1):
            low, high = (np.where(self._rounds < limit, after, before) for limit in (number, number + 1))
            waits, step = unchanged.copy(), self._columns.between(low, high)
            if self._waiting.trace(step, waits) or self._waiting.order(waits, step) is None:
                return None
        return self._stages(self._rounds, waits=True)

    def searched(self, unchanged: Masks, new: Routing) -> Stages | None:
        """With a wait between rounds and other rounds: what :func:`~routing.deadlock.update_plan.find_plan` finds."""
        waiting, columns = self._waiting, self._columns
        mixture, waits = waiting.mixture, unchanged.copy()
        before = columns.ways[0]
        small = mixture.before.size <= MOST_SEARCHED
        if not small or waiting.trace(columns.between(before, before), waits) or waiting.order(waits, columns) is None:
            return None
        hops = self._hops(new.lft)
        plan = find_plan(mixture, hops, replies=waiting.replies, rounds=MOST_ROUNDS, threads=waiting.threads)
        if plan is None:
            return None
        reached, rounds = self._hops(mixture.before) < NO_HOPS, np.zeros(mixture.before.shape[::-1], np.uint8)
        states = plan.states(mixture.before, mixture.after)
        for number, (part, state) in enumerate(zip(plan.rounds, states, strict=True)):
            rounds[part.lid, part.switch] = number + 1
            reached, earlier = self._hops(state) < NO_HOPS, reached
            if (earlier & ~reached).any():
                return None
        return self._stages(rounds[columns.lids], waits=True)

    def _hops(self, lft: Bytes) -> Bytes:
        """uint8[S, L], as in a proof."""
        waiting = self._waiting
        plain = waiting.mixture.plain()
        tables = Routing(lft, plain.sl, plain.sl2vl, 1, 1, plain.provenance)
        return trace(waiting.mixture.fabric, tables, waiting.slots, waiting.bits, threads=waiting.threads).hops

    def _stages(self, rounds: Bytes, *, waits: bool) -> Stages:
        column, switch = np.divmod(np.flatnonzero(rounds), rounds.shape[1])  # much faster than nonzero of both
        off = np.zeros(len(column), np.uint8)
        return Stages(switch, self._columns.lids[column], rounds[column, switch], off, 2 if waits else 0)
