"""From old tables to new ones: may switches be written in any order, in this order, or only with a drain?

Old and new tables that are each free of credit loops are not so together: while switches are written one by one,
packets meet old and new entries on one way.  This proves the mixture (see :mod:`routing.deadlock.mixed`), and where
that has a loop, looks for an order of writing and for a Double Scheme.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from routing.deadlock.analysis import Cycle, judge
from routing.deadlock.certificate import Certificate, Scope, Strength
from routing.deadlock.double_scheme import DoubleScheme, double_scheme
from routing.deadlock.mixed import MixedGraphs, Mixture
from routing.deadlock.mixed_witness import Circle, MixedLoop, find_circle, holes, mixed_loop
from routing.deadlock.proof import prove
from routing.deadlock.sources import lid_name
from routing.deadlock.update_plan import ROUNDS, Round, UpdatePlan, find_plan, one_round
from routing.fabric import Fabric
from routing.numerals import number_of
from routing.tables import Routing

Verdict = Literal["any-order", "ordered", "drained", "unsafe"]
NAMED = 5
"""Circles and drops that are named; the others are counted."""


@dataclass(frozen=True)
class Drops:
    """Entries that drop packets for a LID of the same part of the fabric (black holes).

    Attributes
    ----------
    old, new
        How many, of the entries that change: as they are in the old tables (until they are written), and in the new.
    first
        The first few, in words.
    """

    old: int
    new: int
    first: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Transition:
    """What was found out about going from one set of tables to another.

    Attributes
    ----------
    verdict
        "any-order": no mixture of the tables has a credit loop.  "ordered": it has, but each round of :attr:`plan` is
        free of them.  "drained": no order was found, but each step of :attr:`drain` is free.  "unsafe": none.
    certificate
        Shows that no mixture has a credit loop; None unless the verdict is "any-order" (or a stronger proof was asked).
    strength, scope
        Those of the certificate.
    loop
        A shortest loop of the mixture that keeps the verdict from "any-order".
    circling, circles
        LIDs, of those whose entries change, for which a mixture may send packets in a circle; the first few, named.
    drops
        Entries that drop packets.
    entries, lids, blocks
        How many entries differ, in the columns of how many LIDs, in how many blocks of 64 LIDs of a switch; LIDs that
        no switch delivers do not count.
    levels, lanes
        Whether SL tables differ; whether SL2VL tables differ.
    plan
        An order of writing; one round where any is safe.
    drain
        The Double Scheme, if that was looked at.
    reason
        Why the verdict is what it is, in one line.
    seconds
        Time taken.
    """

    verdict: Verdict
    certificate: Certificate | None
    strength: Strength | None
    scope: Scope | None
    loop: MixedLoop | None
    circling: int
    circles: tuple[Circle, ...]
    drops: Drops
    entries: int
    lids: int
    blocks: int
    levels: bool
    lanes: bool
    plan: UpdatePlan | None
    drain: DoubleScheme | None
    reason: str
    seconds: float

    @property
    def safe(self) -> bool:
        """Whether the tables may be written, in any order or in that of the plan, with nothing stopped."""
        return self.verdict in {"any-order", "ordered"}

    def describe(self) -> list[str]:
        """Lines to print: the loop, what may circle, what is dropped."""
        lines = [] if self.loop is None else self.loop.describe()
        if self.circling:
            text = f"packets for {number_of(self.circling, 'LID')} may circle until all switches are written:"
            lines += [text, *(f"  {circle}" for circle in self.circles)]
        if self.drops.old or self.drops.new:
            text = number_of(self.drops.new, "new entry drops", "new entries drop")
            lines += [f"of what changes, {self.drops.old} old and {text} packets:"]
            lines += [f"  {text}" for text in self.drops.first]
        return lines


def extent(entries: int, lids: int, blocks: int) -> str:
    """How much a transition changes, in words."""
    return f"{number_of(entries, 'entry')} of {number_of(lids, 'LID')} in {number_of(blocks, 'block')}"


def prove_transition(
    fabric: Fabric,
    old: Routing,
    new: Routing,
    *,
    require: Strength = "forward",
    rounds: int = ROUNDS,
    max_vls: int = 8,
    drain: bool = True,
    threads: int = 2,
) -> Transition:
    """Say how tables may be replaced by others.

    Parameters
    ----------
    fabric, old, new
        A fabric, and tables that are both laid out for it: old ones of another state of the fabric have to be
        translated first, so that entries over what is gone say 255.
    require
        Traffic that has to be safe: "forward", requests from or to CAs and routers; "reversible", their replies too.
    rounds
        Most that a plan may have; 0: look for no order.
    max_vls
        Data VLs that every port has, for the Double Scheme.
    drain
        Whether to look for a Double Scheme where no order is found, which takes longer than all the rest.
    threads
        Worker threads.

    Raises
    ------
    TableError
        The shapes do not fit the fabric.

    Notes
    -----
    SLs and SL2VL count as mixed throughout: senders may use either SL in every round of a plan, and every switch may
    map it by either table.  Cost: a pass over the old tables, O(S K) for K LIDs that change (all, if SLs or SL2VL do),
    and an order of the dependencies; what follows if there is a loop costs that for every check.
    """
    start = time.perf_counter()
    mixture = Mixture.of(fabric, old, new)
    asked = _Question(mixture, old, new, require == "reversible", threads)
    graphs = MixedGraphs(mixture, threads=threads)
    certificate, cycle, reply_cycle, _ = judge(graphs, require == "reversible")
    free = certificate is not None and require in {"forward", certificate.strength}
    circling = np.intersect1d(graphs.circling(), mixture.changed)
    everything = one_round(mixture)
    if free:
        verdict = _Judgement("any-order", everything, None, "no mixture of the tables has a credit loop")
    else:
        verdict = asked.way_out(rounds=rounds, max_vls=max_vls if drain else 0)
    named = [find_circle(mixture, int(lid)) for lid in circling[:NAMED]]
    whole = everything.rounds[0]
    return Transition(
        verdict=verdict.verdict,
        certificate=certificate,
        strength=None if certificate is None else certificate.strength,
        scope=None if certificate is None else certificate.scope,
        loop=None if free else asked.loop(cycle, reply_cycle, circling),
        circling=len(circling),
        circles=tuple(circle for circle in named if circle is not None),
        drops=_drops(mixture, whole),
        entries=len(whole),
        lids=len(mixture.changed),
        blocks=len(whole.blocks),
        levels=len(mixture.sl) > 1,
        lanes=len(mixture.sl2vl) > 1,
        plan=verdict.plan,
        drain=verdict.drain,
        reason=verdict.reason,
        seconds=time.perf_counter() - start,
    )


@dataclass(frozen=True, eq=False)
class _Judgement:
    verdict: Verdict
    plan: UpdatePlan | None
    drain: DoubleScheme | None
    reason: str


@dataclass(frozen=True, eq=False)
class _Question:
    """What is asked about two tables."""

    mixture: Mixture
    old: Routing
    new: Routing
    replies: bool
    threads: int

    def way_out(self, *, rounds: int, max_vls: int) -> _Judgement:
        """An order, or a Double Scheme (with 0 VLs: none), where not any order is safe."""
        for routing, name in ((self.new, "new"), (self.old, "old")):
            if not self._free(Mixture.of(self.mixture.fabric, routing, routing)):
                return _Judgement("unsafe", None, None, f"the {name} tables have a credit loop by themselves")
        why = self._stale()
        plan = None if why else self._plan(rounds)
        if plan is not None:
            return _Judgement("ordered", plan, None, f"each of {len(plan)} rounds is free of credit loops")
        why = why or "no order was found"
        if not max_vls:
            return _Judgement("unsafe", None, None, f"{why}, and no Double Scheme was looked for")
        fabric, replies = self.mixture.fabric, self.replies
        drain = double_scheme(fabric, self.old, self.new, replies=replies, max_vls=max_vls, threads=self.threads)
        if drain is not None and drain.safe:
            return _Judgement("drained", None, drain, f"{why}; each step of a Double Scheme is safe")
        lacking = "there is none" if drain is None else "steps of it have credit loops"
        return _Judgement("unsafe", None, drain, f"{why}, nor a Double Scheme: {lacking}")

    def _stale(self) -> str:
        """What forbids every order: SLs or VLs of one of the tables that are no good on the other's routes; or ""."""
        mixture = self.mixture
        if len(mixture.sl) == len(mixture.sl2vl) == 1:
            return ""
        for lft, routes in ((mixture.after, "new"), (mixture.before, "old")):
            if not self._free(mixture.between(lft, lft)):
                return f"mixed SLs and VLs have a credit loop on the {routes} routes alone, so there is no order"
        return ""

    def _plan(self, rounds: int) -> UpdatePlan | None:
        if rounds == 0:
            return None
        hops = prove(self.mixture.fabric, self.new, threads=self.threads).hops
        return find_plan(self.mixture, hops, replies=self.replies, rounds=rounds, threads=self.threads)

    def _free(self, mixture: Mixture) -> bool:
        graphs = MixedGraphs(mixture, threads=self.threads)
        return graphs.order(replies=self.replies, switch_pairs=False) is not None

    def loop(self, cycle: Cycle | None, reply_cycle: Cycle | None, circling: npt.NDArray[np.int64]) -> MixedLoop:
        """The loop, named; one that closes without packets that circle is preferred."""
        replies = cycle is None
        found = reply_cycle if cycle is None else cycle
        assert found is not None
        if not len(circling):
            return mixed_loop(self.mixture, found, replies=replies, scope="endports", circling=False)
        rest = self.mixture.without(circling)
        graphs = MixedGraphs(rest, threads=self.threads)
        if graphs.order(replies=replies, switch_pairs=False) is None:
            cycle = graphs.cycle(replies=replies, switch_pairs=False)
            return mixed_loop(rest, cycle, replies=replies, scope="endports", circling=False)
        return mixed_loop(self.mixture, found, replies=replies, scope="endports", circling=True)


def _drops(mixture: Mixture, whole: Round) -> Drops:
    old, new = (holes(mixture.fabric, lft, whole.switch, whole.lid) for lft in (mixture.before, mixture.after))
    return Drops(int(old.sum()), int(new.sum()), tuple(_name_drops(mixture, whole, old, new)))


def _name_drops(
    mixture: Mixture, whole: Round, old: npt.NDArray[np.bool_], new: npt.NDArray[np.bool_]
) -> Iterator[str]:
    """The first few, those of the new tables before those of the old."""
    fabric, left = mixture.fabric, NAMED
    for lft, where, which in ((mixture.after, new, "new"), (mixture.before, old, "old")):
        for k in np.flatnonzero(where)[:left].tolist():
            switch, lid = int(whole.switch[k]), int(whole.lid[k])
            target, left = f"{lid_name(fabric, lid)} (LID {lid})", left - 1
            port = int(lft[switch, lid])
            yield f"{fabric.switch_name[switch]}, {which} entry: packets for {target} go to port {port}"
