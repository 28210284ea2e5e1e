"""Prove that new tables can replace old tables without a credit loop.  Entries are written in any order, in a given
order, or with a drain in between.

Old tables and new tables that are each free of credit loops can form a loop together.  While switches are written one
by one, packets meet old and new entries on one path.  This module checks the mixed tables (see
:mod:`routing.deadlock.mixed`).  If the mixed tables have a loop, the module searches for an order of writing, and for a
Double Scheme (drain one half of the LIDs at a time).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from routing.cdg.analysis import judge
from routing.cdg.certificate import Certificate, Scope, Strength
from routing.cdg.graph import Cycle
from routing.deadlock.double_scheme import DoubleScheme, double_scheme
from routing.deadlock.lost import LostLids
from routing.deadlock.mixed import MixedGraphs, Mixture
from routing.deadlock.mixed_witness import ForwardingLoop, MixedLoop, black_holes, find_forwarding_loop, mixed_loop
from routing.deadlock.proof import prove
from routing.deadlock.schedule_search import find_schedule
from routing.deadlock.traffic_sources import lid_name
from routing.deadlock.update_plan import ROUNDS, find_plan, one_round
from routing.deadlock.update_schedule import Round, UpdateSchedule
from routing.fabric import Fabric
from routing.numerals import count_noun
from routing.tables import Routing

Verdict = Literal["any-order", "ordered", "after-removal", "drained", "unsafe"]
_ANY_ORDER = {
    "ordered": "the rounds avoid this loop, which can form if switches are written in any order:",
    "after-removal": "this loop can form if switches are written in any order, or before the first round is complete:",
    "drained": "the steps avoid this loop, which can form if switches are written in any order:",
    "unsafe": "this loop can form if switches are written in any order:",
}
"""Line that a report prints before it describes a credit loop of the mixed tables, by verdict.  The verdict "any-order"
has no line, because the mixed tables then have no credit loop.
"""
NAMED = 5
"""Largest number of forwarding loops, and of entries that drop packets, that a report describes.  All are counted."""


@dataclass(frozen=True)
class Drops:
    """Changed entries that drop packets for a LID of the same connected component (black holes).

    Attributes
    ----------
    old, new
        ``old``: number of entries that drop packets before they are written.  ``new``: number of entries that drop
        packets after they are written.
    first
        Descriptions of the first few entries.
    """

    old: int
    new: int
    first: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Transition:
    """Result of checking the transition from old to new tables.

    Attributes
    ----------
    verdict
        "any-order": no mixture of the tables has a credit loop.  "ordered": some mixture has a credit loop, but each
        round of :attr:`plan` is free of loops.  "after-removal": cables now connect other ports, so the old tables have
        a credit loop.  The first round ends this loop, and all later rounds are free of loops.  "drained": no order was
        found, but each step of :attr:`drain` is free of loops.  "unsafe": none of these cases applies.
    certificate
        Topological order, which proves that no mixture has a credit loop of the traffic of :attr:`strength` and
        :attr:`scope`.  None if requests from or to CAs and routers form a credit loop in a mixture.  A certificate
        with another verdict than "any-order" covers only requests.  The verdict then results from replies, which are
        required to be safe, too.
    strength, scope
        Strength and scope of the certificate.
    loop
        A shortest credit loop of the mixture, because of which the verdict is not "any-order"; None if there is no
        loop.
    looping
        Number of LIDs whose old and new entries together can form a forwarding loop.
    forwarding_loops
        The first few of these forwarding loops.
    drops
        Entries that drop packets.
    entries, lids, blocks
        Number of entries that differ, number of LIDs with such entries, and number of blocks (64 LIDs of a switch) with
        such entries.
    removed
        Number of entries that are only removed, because their LIDs are gone or unreachable.
    sls_differ, sl2vl_differ
        Whether SL tables differ; whether SL2VL tables differ.
    plan
        An order of writing, as rounds; one round if any order is safe.  Rounds may remove old entries until a later
        round writes the new entries.  None if no order was found.
    drain
        The Double Scheme (drain one half of the LIDs at a time); None if it was not searched for, or if there is none.
    reason
        The reason of the verdict, in one line.
    seconds
        Wall-clock time of the check.
    """

    verdict: Verdict
    certificate: Certificate | None
    strength: Strength | None
    scope: Scope | None
    loop: MixedLoop | None
    looping: int
    forwarding_loops: tuple[ForwardingLoop, ...]
    drops: Drops
    entries: int
    lids: int
    blocks: int
    removed: int
    sls_differ: bool
    sl2vl_differ: bool
    plan: UpdateSchedule | None
    drain: DoubleScheme | None
    reason: str
    seconds: float

    @property
    def safe(self) -> bool:
        """Return whether the tables may be written in any order, or in the order of the plan, while senders send."""
        return self.verdict in {"any-order", "ordered"}

    def describe(self) -> list[str]:
        """Return lines to print: the credit loop, forwarding loops, dropped packets."""
        lines = [] if self.loop is None else [_ANY_ORDER[self.verdict], *self.loop.describe()]
        if self.looping:
            text = f"packets for {count_noun(self.looping, 'LID')} may loop until all switches are written:"
            lines += [text, *(f"  {loop}" for loop in self.forwarding_loops)]
        if self.drops.old or self.drops.new:
            text = count_noun(self.drops.new, "new entry drops", "new entries drop")
            lines += [f"of the changed entries, {self.drops.old} old and {text} packets:"]
            lines += [f"  {text}" for text in self.drops.first]
        return lines


def extent(entries: int, lids: int, blocks: int) -> str:
    """Describe how much a transition changes: the number of entries, LIDs and blocks of 64 LIDs."""
    return f"{count_noun(entries, 'entry')} of {count_noun(lids, 'LID')} in {count_noun(blocks, 'block')}"


def prove_transition(
    fabric: Fabric,
    old: Routing,
    new: Routing,
    *,
    lost: LostLids | None = None,
    rewired: npt.NDArray[np.bool_] | None = None,
    require: Strength = "forward",
    rounds: int = ROUNDS,
    max_vls: int = 8,
    drain: bool = True,
    threads: int = 2,
) -> Transition:
    """Check how old tables can be replaced by new tables without a credit loop.

    Parameters
    ----------
    fabric, old, new
        A fabric, and tables in its rows and columns.  The old tables are the tables in the switches: entries with
        unconnected ports drop packets, and entries for LIDs that no port has any more still carry traffic
        (:func:`routing.reroute.installed.installed` returns such tables).
    lost
        Former owners of the LIDs that are gone, if known.
    rewired
        bool[S, L], the old entries over rewired cables, which now connect other ports.  A plan may remove such entries
        first.
    require
        Traffic that must be safe: "forward", requests from or to CAs and routers; "reversible", their replies too.
    rounds
        Maximum number of rounds of a plan; 0: do not search for an order.
    max_vls
        Number of data VLs that every port has, for the Double Scheme.
    drain
        Whether to search for a Double Scheme if no order is found; this search takes longer than everything else.
    threads
        Worker threads.

    Raises
    ------
    TableError
        The shapes do not fit the fabric.

    Notes
    -----
    In every round of a plan, each sender may use the old or the new SL, and each switch may use the old or the new
    SL2VL table.  Cost: a pass over the old tables, O(S K) for K LIDs that change, and a topological order of the
    dependencies.  If SLs or SL2VL tables change, all LIDs count as changed.  If there is a loop, each check of an order
    has these costs again.
    """
    start = time.perf_counter()
    mixture = Mixture.of(fabric, old, new, lost)
    asked = _TransitionSearch(mixture, old, new, rewired, require == "reversible", threads)
    graphs = MixedGraphs(mixture, threads=threads)
    certificate, cycle, reply_cycle, _ = judge(graphs, require == "reversible")
    free = certificate is not None and require in {"forward", certificate.strength}
    looping = np.intersect1d(graphs.looping(), mixture.changed)
    everything = one_round(mixture)
    if free:
        verdict = _Outcome("any-order", everything, None, "no mixture of the tables has a credit loop")
    else:
        verdict = asked.find_order(rounds=rounds, max_vls=max_vls if drain else 0)
    named = [find_forwarding_loop(mixture, int(lid)) for lid in looping[:NAMED]]
    (whole,) = everything.rounds
    return Transition(
        verdict=verdict.verdict, plan=verdict.plan, drain=verdict.drain, reason=verdict.reason, certificate=certificate,
        strength=None if certificate is None else certificate.strength,
        scope=None if certificate is None else certificate.scope,
        loop=None if free else asked.loop(cycle, reply_cycle, looping),
        looping=len(looping), forwarding_loops=tuple(loop for loop in named if loop is not None),
        drops=_drops(mixture, whole), entries=len(whole), lids=len(mixture.changed), blocks=len(whole.blocks),
        removed=int(mixture.removed(whole.switch, whole.lid).sum()),
        sls_differ=len(mixture.sl) > 1, sl2vl_differ=len(mixture.sl2vl) > 1, seconds=time.perf_counter() - start,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Outcome:
    verdict: Verdict
    plan: UpdateSchedule | None
    drain: DoubleScheme | None
    reason: str


@dataclass(frozen=True, eq=False)
class _TransitionSearch:
    """A search for a safe transition between old and new tables."""

    mixture: Mixture
    old: Routing
    new: Routing
    rewired: npt.NDArray[np.bool_] | None
    replies: bool
    threads: int

    def find_order(self, *, rounds: int, max_vls: int) -> _Outcome:
        """Search for a safe order of writing and, if none is found, for a Double Scheme (unless ``max_vls`` is 0).

        The order may have up to ``rounds`` rounds.  This method is needed only if some order of writing is unsafe.
        """
        new_loops, old_loops = (
            not self._free(Mixture.of(self.mixture.fabric, routing, routing, self.mixture.lost))
            for routing in (self.new, self.old)
        )
        why = "" if new_loops else self._incompatible_sl_vl()
        plan = None if new_loops or why or not rounds else self._plan(rounds, old_loops=old_loops)
        if plan is not None:
            # A removal of entries cannot cause a credit loop.  So if the old tables have no credit loop, all rounds are
            # free of loops, even if the first round only removes entries.
            verdict: Verdict = "after-removal" if plan.only_removes and old_loops else "ordered"
            return _Outcome(verdict, plan, None, _describe_rounds(plan, verdict))
        if new_loops or old_loops:
            which = "new" if new_loops else "old"
            return _Outcome("unsafe", None, None, f"the {which} tables have a credit loop by themselves")
        why = why or "no order was found"
        if not max_vls:
            return _Outcome("unsafe", None, None, f"{why}, and no Double Scheme was searched for")
        fabric, lost, threads = self.mixture.fabric, self.mixture.lost, self.threads
        drain = double_scheme(
            fabric, self.old, self.new, lost=lost, replies=self.replies, max_vls=max_vls, threads=threads
        )
        if drain is not None and drain.safe:
            return _Outcome("drained", None, drain, f"{why}; each step of a Double Scheme is safe")
        lacking = "no Double Scheme exists" if drain is None else "steps of the Double Scheme have credit loops"
        return _Outcome("unsafe", None, drain, f"{why}, and {lacking}")

    def _incompatible_sl_vl(self) -> str:
        """Return the reason why changed SLs or SL2VL tables make every order of writing unsafe.

        During the transition, packets may have the SLs and VLs of the old and of the new tables.  No order is safe if
        such packets form a credit loop on the old routes alone, or on the new routes alone.  Otherwise the result is
        "".
        """
        mixture = self.mixture
        if len(mixture.sl) == len(mixture.sl2vl) == 1:
            return ""
        for lft, routes in ((mixture.after, "new"), (mixture.before, "old")):
            if not self._free(mixture.between(lft, lft)):
                return f"mixed SLs and VLs have a credit loop on the {routes} routes alone, so there is no order"
        return ""

    def _plan(self, rounds: int, *, old_loops: bool) -> UpdateSchedule | None:
        """Search for an update schedule of at most ``rounds`` rounds.

        The first search is the search that a re-route makes.  If the first search finds no such schedule, a second
        search follows, which would be too slow during a sweep of OpenSM.  ``old_loops`` states whether the old tables
        alone have a credit loop.  If so, the second search is left out.
        """
        fabric, lost, replies, rewired = self.mixture.fabric, self.mixture.lost, self.replies, self.rewired
        schedule = find_schedule(
            fabric, self.old, self.new, lost=lost, rewired=rewired, replies=replies, threads=self.threads
        )
        if schedule is not None and len(schedule) <= rounds:
            return schedule
        if old_loops:
            return None
        hops = prove(fabric, self.new, threads=self.threads).hops
        return find_plan(self.mixture, hops, replies=self.replies, rounds=rounds, threads=self.threads)

    def _free(self, mixture: Mixture) -> bool:
        graphs = MixedGraphs(mixture, threads=self.threads)
        return graphs.order(replies=self.replies, switch_pairs=False) is not None

    def loop(self, cycle: Cycle | None, reply_cycle: Cycle | None, looping: npt.NDArray[np.int64]) -> MixedLoop:
        """Describe the credit loop of the mixed tables.

        ``cycle`` is a cycle of requests.  If ``cycle`` is None, the credit loop is ``reply_cycle``, a cycle of requests
        and replies.  ``looping`` lists the LIDs with possible forwarding loops.  If packets to the other LIDs form a
        credit loop by themselves, this method describes that credit loop instead.
        """
        replies = cycle is None
        found = reply_cycle if cycle is None else cycle
        assert found is not None
        if not len(looping):
            return mixed_loop(self.mixture, found, replies=replies, scope="endports", looping=False)
        rest = self.mixture.without(looping)
        graphs = MixedGraphs(rest, threads=self.threads)
        if graphs.order(replies=replies, switch_pairs=False) is None:
            cycle = graphs.cycle(replies=replies, switch_pairs=False)
            return mixed_loop(rest, cycle, replies=replies, scope="endports", looping=False)
        return mixed_loop(self.mixture, found, replies=replies, scope="endports", looping=True)


def _describe_rounds(plan: UpdateSchedule, verdict: Verdict) -> str:
    text = f"each of {len(plan)} rounds is free of credit loops"
    if verdict == "after-removal":
        text = (
            "cables have changed places, so the old tables have a credit loop by themselves;"
            f" each of {len(plan)} rounds except the first is free of credit loops"
        )
    if plan.drained:
        text += f"; {count_noun(plan.drained, 'old entry is', 'old entries are')} removed until a later round"
    return text


def _drops(mixture: Mixture, whole: Round) -> Drops:
    old, new = (black_holes(mixture.fabric, lft, whole.switch, whole.lid) for lft in (mixture.before, mixture.after))
    return Drops(int(old.sum()), int(new.sum()), tuple(_name_drops(mixture, whole, old, new)))


def _name_drops(
    mixture: Mixture, whole: Round, old: npt.NDArray[np.bool_], new: npt.NDArray[np.bool_]
) -> Iterator[str]:
    """Yield descriptions of the first few entries that drop packets, new entries before old entries.

    ``whole`` has all entries that change.  ``old`` marks those entries whose old port drops packets, and ``new`` those
    whose new port drops packets.
    """
    fabric, left = mixture.fabric, NAMED
    for lft, where, which in ((mixture.after, new, "new"), (mixture.before, old, "old")):
        for k in np.flatnonzero(where)[:left].tolist():
            switch, lid = int(whole.switch[k]), int(whole.lid[k])
            target, left = f"{lid_name(fabric, lid)} (LID {lid})", left - 1
            port = int(lft[switch, lid])
            yield f"{fabric.labels[switch]}, {which} entry: packets for {target} go to port {port}"
