"""Rounds in which new tables can be written with no more than an acknowledgement between them.

A packet comes to a switch before it is written, or after: not both.  So where a switch is written only after others
have acknowledged theirs, packets that go by its new entry meet the new entries of these.  What packets in flight have
done before stays, with every channel they may have got to, for all rounds to come: none is waited for to leave.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.cdg import Dependencies, Slots, trace, trace_endports
from routing._kernels.mixed import admit_mixed, trace_mixed, write_rounds
from routing.deadlock.cdg import REPLIES, vl_bits
from routing.deadlock.entering import Entries, entering
from routing.deadlock.mixed import Bytes, Mixture
from routing.deadlock.update_plan import find_plan
from routing.fabric import NO_PORT, Fabric
from routing.tables import Routing

MOST_ROUNDS = 8
"""Rounds that a staged change may have."""
MOST_SEARCHED = 1 << 18
"""Entries of tables up to which everything is tried that may be worth it; a sweep waits for the answer."""
MOST_FOLLOWED = 1 << 21
"""Entries of the columns that change up to which rounds are looked for."""
NO_HOPS = 254
"""Hops from which on a LID is not reached."""

Masks = npt.NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Stages:
    """When each entry that changes is written.

    Attributes
    ----------
    switch, lid
        int64[N] twice, the entries that change, by LID, then by switch.
    round
        uint8[N], from 1 on.  Each round begins when every switch has acknowledged the one before.
    waits
        Whether, besides, all packets have to leave that were in the fabric at the last acknowledgement.
    """

    switch: npt.NDArray[np.int64]
    lid: npt.NDArray[np.int64]
    round: npt.NDArray[np.uint8]
    waits: bool

    def __len__(self) -> int:
        return int(self.round.max(initial=1))

    def states(self, old: Bytes, new: Bytes) -> Iterator[Bytes]:
        """uint8[S, L], the forwarding tables after each round."""
        state = new.copy()
        state[self.switch, self.lid] = old[self.switch, self.lid]
        for number in range(1, len(self) + 1):
            now = self.round == number
            state[self.switch[now], self.lid[now]] = new[self.switch[now], self.lid[now]]
            yield state.copy()


def stage(
    fabric: Fabric,
    old: Routing,
    new: Routing,
    *,
    known: npt.NDArray[np.uint16] | None = None,
    replies: bool = False,
    thorough: bool = False,
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
    thorough
        Look for rounds beside what waits in fact, too, where there are none beside what is ``known`` of large tables.
    threads
        Worker threads; the result is the same with any number.

    Returns
    -------
    None where no rounds were found, which does not say that there are none: so where VLs change on the way, where
    nearly all of large tables changes, or where there is none beside what is ``known`` of large tables.
    A single round: any order is safe.

    Raises
    ------
    TableError
        The shapes do not fit the fabric.

    Notes
    -----
    Packets keep the old SL or have the new one, at all times.  A switch is taken to forward by its new table when it
    has acknowledged it.  Cost: O(S K) for K LIDs of which more than one entry changes, and a topological order; for
    small tables a pass over all of them if what is ``known`` stands in the way.
    """
    mixture = Mixture.of(fabric, old, new)
    if mixture.sl2vl[0].ndim > 1 or len(mixture.sl2vl) > 1:
        return None
    lids = _followed(mixture, replies=replies)
    if len(lids) * fabric.switches > MOST_FOLLOWED:
        return None
    stages = _beside(mixture, lids, known.astype(np.uint32), replies, threads) if known is not None else None
    if stages is None and (known is None or thorough or mixture.before.size <= MOST_SEARCHED):
        job = _Stager(mixture, lids, replies, threads)
        unchanged = job.unchanged()
        stages = job.at_once(unchanged) or job.with_waits(unchanged) or job.searched(unchanged, new)
    return stages


def _beside(mixture: Mixture, lids: npt.NDArray[np.int64], known: Masks, replies: bool, threads: int) -> Stages | None:
    """With no wait, beside what either of the tables alone makes wait.

    A LID of which one entry changes has no mixture: a packet goes all the way by the old table or all the way by the
    new one.  So only the others are followed.
    """
    before, after = mixture.columns(lids)
    changes = before != after
    alone = (np.count_nonzero(changes, axis=1) == 1) & (len(mixture.sl) == 1)
    stages = _Stager(mixture, lids[~alone], replies, threads).at_once(known)
    if stages is None:
        return None
    column, switch = np.divmod(np.flatnonzero(changes & alone[:, None]), changes.shape[1])
    lid, switch = np.append(stages.lid, lids[column]), np.append(stages.switch, switch)
    place = np.lexsort((switch, lid))
    return Stages(
        switch[place], lid[place], np.append(stages.round, np.ones(len(column), np.uint8))[place], waits=False
    )


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


class _Stager:
    def __init__(self, mixture: Mixture, lids: npt.NDArray[np.int64], replies: bool, threads: int) -> None:
        self._mixture, self._lids, self._replies, self._threads = mixture, lids, replies, threads
        self._slots = Slots.of(mixture.fabric)
        self._bits = vl_bits(mixture.sl2vl[0])
        self._ways = mixture.columns(lids)
        self._enter = self._entering()
        self._rounds, self._last = write_rounds(self._slots, self._ways, outward=False)

    def at_once(self, base: Masks) -> Stages | None:
        """With no wait, beside what waits anyway; None if something does not go."""
        if self._last.max(initial=1) == 1:
            waits = base.copy()
            circles = self._trace(self._ways, waits)
            if not circles and self._order(waits) is not None:
                return self._stages(self._rounds, waits=False)
        order = self._order(base)
        return None if order is None else self._in_turn(base, order)

    def _in_turn(self, base: Masks, order: npt.NDArray[np.int32]) -> Stages | None:
        """One LID after the other: nearest switches first where packets could circle, or everywhere."""
        rounds, last = self._rounds, self._last
        for outward in (False, True):
            if last.max(initial=1) > MOST_ROUNDS:
                return None
            taken = admit_mixed(
                self._mixture.fabric, self._slots, self._ways, self._enter, waits=base, order=order, rounds=rounds
            )
            if taken.all():
                return self._stages(rounds, waits=False)
            if not outward:
                strict, deep = write_rounds(self._slots, self._ways, outward=True)
                rounds = np.where(taken[:, None], rounds, strict)
                last = np.where(taken, last, deep)
        return None

    def with_waits(self, unchanged: Masks) -> Stages | None:
        """All LIDs together, with a wait between rounds; None if one of the rounds does not go."""
        most = int(self._last.max(initial=1))
        if not 1 < most <= MOST_ROUNDS:
            return None
        before, after = self._ways
        for number in range(1, most + 1):
            ways = (np.where(self._rounds < limit, after, before) for limit in (number, number + 1))
            waits = unchanged.copy()
            if self._trace((next(ways), next(ways)), waits) or self._order(waits) is None:
                return None
        return self._stages(self._rounds, waits=True)

    def searched(self, unchanged: Masks, new: Routing) -> Stages | None:
        """With a wait between rounds and other rounds: what :func:`~routing.deadlock.update_plan.find_plan` finds."""
        mixture, waits = self._mixture, unchanged.copy()
        small = mixture.before.size <= MOST_SEARCHED
        if not small or self._trace((self._ways[0], self._ways[0]), waits) or self._order(waits) is None:
            return None
        hops = self._hops(new.lft)
        plan = find_plan(mixture, hops, replies=self._replies, rounds=MOST_ROUNDS, threads=self._threads)
        if plan is None:
            return None
        reached, rounds = self._hops(mixture.before) < NO_HOPS, np.zeros(mixture.before.shape[::-1], np.uint8)
        states = plan.states(mixture.before, mixture.after)
        for number, (part, state) in enumerate(zip(plan.rounds, states, strict=True)):
            rounds[part.lid, part.switch] = number + 1
            reached, earlier = self._hops(state) < NO_HOPS, reached
            if (earlier & ~reached).any():
                return None
        return self._stages(rounds[self._lids], waits=True)

    def _hops(self, lft: Bytes) -> Bytes:
        """uint8[S, L], as in a proof."""
        plain = self._mixture.plain()
        tables = Routing(lft, plain.sl, plain.sl2vl, 1, 1, plain.provenance)
        return trace(self._mixture.fabric, tables, self._slots, self._bits, threads=self._threads).hops

    def unchanged(self) -> Masks:
        """uint32[slots], what the columns that stay make wait."""
        lft, fabric, plain = self._mixture.before.copy(), self._mixture.fabric, self._mixture.plain()
        lft[:, self._lids] = NO_PORT
        rest = Routing(lft, plain.sl, plain.sl2vl, 1, 1, plain.provenance)
        found = trace(fabric, rest, self._slots, self._bits, threads=self._threads)
        dep = trace_endports(fabric, rest, self._slots, self._bits, found, threads=self._threads)
        return np.asarray((dep >> np.uint32(REPLIES if self._replies else 0)) & np.uint32(0xFFFF))

    def _trace(self, ways: tuple[Bytes, Bytes], waits: Masks) -> bool:
        """Add all that any mixture makes wait; whether packets may circle."""
        return bool(trace_mixed(self._slots, ways, self._enter, waits, threads=self._threads).any())

    def _stages(self, rounds: Bytes, *, waits: bool) -> Stages:
        column, switch = np.divmod(np.flatnonzero(rounds), rounds.shape[1])  # much faster than nonzero of both
        return Stages(switch, self._lids[column], rounds[column, switch], waits)

    def _order(self, waits: Masks) -> npt.NDArray[np.int32] | None:
        """int32[V, C], a topological order for each VL that is in use; None if there is none."""
        channels = self._mixture.fabric.channels
        used = np.bitwise_or.reduce(waits, initial=0) | np.bitwise_or.reduce(self._enter, axis=None, initial=0)
        graph = Dependencies(channels.first, channels.dst, self._slots.slot, waits)
        order, placed = graph.order(np.arange(max(1, int(used).bit_length()), dtype=np.uint8), threads=self._threads)
        return order if (placed == len(channels)).all() else None

    def _entering(self) -> Masks:
        """uint32[K, S], VLs of what enters at each switch towards each LID."""
        fabric, lids = self._mixture.fabric, self._lids
        enter, places = np.empty((len(lids), fabric.switches), np.uint32), Entries.by_switch(fabric)
        of_switch = fabric.lids.port[lids] == 0
        for some in (of_switch, ~of_switch):
            if some.any():
                requests, replies = entering(
                    fabric, places, self._mixture.sl, self._bits, lids[some], switch_pairs=some is not of_switch
                )
                enter[some] = requests | replies if self._replies else requests
        return enter
