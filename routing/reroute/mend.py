"""Tables mended: what holds stays, holes are filled beside it, and what comes of it is proven."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.repair import CLEAR, COPIED, FAILED, LAID_ANEW, LAY_ANEW, MEND, Traffic, Waits, repair
from routing.deadlock.cdg import common_lanes, vl_bits
from routing.deadlock.certificate import Certificate, Scope
from routing.deadlock.proof import Proof, prove
from routing.engines.base import Engine, EngineOptions, Promise
from routing.fabric import NO_PORT, Fabric
from routing.numerals import number_of
from routing.reroute.fewest import between, fewest_entries
from routing.reroute.ground import Frame, channel_numbers, exact_waits
from routing.reroute.home import heal
from routing.reroute.levels import with_levels
from routing.reroute.prove_changes import prove_changes
from routing.reroute.rejoin import rejoin
from routing.reroute.standing import Standing, allowed, flow_of
from routing.reroute.translate import Laid, same_devices
from routing.reroute.values import How, Published, Rerouted, Stability
from routing.tables import Provenance, Routing

MOST_CLEARED = 64
"""LIDs that are laid from nothing, as a last resort; with more of them that takes longer than all anew."""
MOST_HOLES = 10_000
"""Entries that are missing where the fewest changes are looked for; with more of them VLs for the ways take longer."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """Where, beside what, and with which certificate to mend."""

    frame: Frame
    waits: Waits
    certificate: Certificate | None
    vl_bit: npt.NDArray[np.uint16]


def _shaped(sl: npt.NDArray[np.uint8], shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    return np.broadcast_to(sl, shape)


@dataclass(frozen=True, eq=False)
class Job:
    """Tables of before, and all that it takes to mend them on the fabric of now.

    Attributes
    ----------
    engine, options, before, fabric, stability, home
        As :func:`routing.reroute.run.reroute` is given them.
    laid
        The tables of before in the rows and columns of now, less what no longer holds.
    standing
        What can be known of before and home alone.
    counts
        What was done so far, by name; a job that starts over begins with none.
    rejoins
        Whether switches may change places where one has lost its last link up.
    by_parts
        Whether each part of a tree may change its SL by itself.
    """

    engine: Engine
    options: EngineOptions
    before: Published
    fabric: Fabric
    stability: Stability
    home: Published | None
    laid: Laid
    standing: Standing
    counts: dict[str, int] = field(default_factory=dict)
    rejoins: bool = True
    by_parts: bool = True

    def run(self) -> tuple[Rerouted | None, str]:
        """The tables, or None and why there are none."""
        certificate = self.before.proof.certificate
        row = common_lanes(self.before.routing)
        if certificate is None and self.engine.promise is Promise.DEADLOCK_FREE:
            return None, "the tables before had a credit loop"
        if certificate is not None and (row is None or self.before.proof.waits is None):
            return None, "VLs change on the way"
        if certificate is not None and self.goes_by_lid:
            return None, "SLs go by the LID of the sender"
        kept, problem = self.mend(certificate, vl_bits(row) if row is not None else np.zeros(16, np.uint16))
        if kept is None and certificate is not None and self.engine.promise is Promise.NONE:
            kept, _ = self.mend(None, np.zeros(16, np.uint16))
        return kept, problem

    @property
    def goes_by_lid(self) -> bool:
        """Whether the SLs of before are looked up by the LID of the sender."""
        sl = self.before.routing.sl
        return sl.ndim == 2 and len(sl) != self.before.fabric.switches

    def mend(self, certificate: Certificate | None, vl_bit: npt.NDArray[np.uint16]) -> tuple[Rerouted | None, str]:
        """Keep what holds and fill the holes, with a certificate like this one; or say why it cannot be had."""
        frame = Frame.of(self.fabric, [p.fabric for p in (self.home, self.before) if p is not None])
        waits, with_home = self.waits(frame, certificate)
        start = self.beginning(with_home=with_home)
        joined = rejoin(frame, waits) if self.rejoins else None
        if joined is not None and joined is not waits:
            self.counts["rejoined"], waits = 1, joined
        plan = Attempt(frame, waits, certificate, vl_bit)
        lay = LAY_ANEW if self.stability is Stability.BALANCED else MEND
        laid, failed, plan = self.attempt(plan, start, np.full(start.lft.shape[1], lay, np.uint8))
        if len(failed) and certificate is not None:
            laid, failed, plan = self.attempt_more(plan, laid, failed)
        if len(failed):
            return None, f"{number_of(len(failed), 'LID')} found no way without a credit loop"
        self.counts["levels"] = int(np.count_nonzero(laid.sl != _shaped(start.sl, laid.sl.shape)))
        return self.judge(laid, plan)

    def beginning(self, *, with_home: bool) -> Routing:
        """What holds of the tables before, with the columns of home that hold again if those may come back."""
        start, home = deliver(self.laid.routing, self.fabric), self.home
        if home is None or home is self.before or not with_home:
            return start
        apart = self.standing.apart if self.laid.in_place and same_devices(home.fabric, self.fabric) else None
        start, self.counts["healed"] = heal(start, home, self.fabric, apart)
        return start

    def run_fewest(self) -> Rerouted | None:
        """Tables with the fewest changed entries, and SLs for the ways that have changed; None if no VLs hold them."""
        certificate, row = self.before.proof.certificate, common_lanes(self.before.routing)
        if certificate is None or row is None or self.goes_by_lid or self.stability is not Stability.FULL:
            return None
        start = self.beginning(with_home=self.standing.with_home)
        if np.count_nonzero((start.lft == NO_PORT) & between(self.fabric)) > MOST_HOLES:
            return None
        lft = fewest_entries(self.fabric, start.lft)
        filled, counted = start.lft == NO_PORT, lft != start.lft
        self.counts["repaired"] = self.counts["holes"] = int(np.count_nonzero(filled & counted))
        self.counts["moved"] = int(np.count_nonzero(~filled & counted))
        fitted = with_levels(
            self.fabric,
            replace(start, lft=lft),
            self.laid.routing,
            certificate,
            vl_bits(row),
            level=self.standing.level,
            threads=self.options.threads,
        )
        if fitted is None:
            return None
        laid, order = fitted
        self.counts["levels"] = int(np.count_nonzero(laid.sl != _shaped(start.sl, laid.sl.shape)))
        self.counts["by_source"], self.counts["fewest"] = laid.sl.ndim - start.sl.ndim, 1
        routing = replace(laid, provenance=self.provenance())
        proof = self.proven(routing, order)
        if not proof.complete or not _as_strong(proof, certificate) or proof.scope not in ("all", certificate.scope):
            return None
        return self.result(routing, proof, "repaired", self.reason("repaired", proof))

    def attempt(
        self, plan: Attempt, start: Routing, lay: npt.NDArray[np.uint8]
    ) -> tuple[Routing, npt.NDArray[np.intp], Attempt]:
        """Tables with what could be done, the LIDs for which nothing could, and what may wait for what then."""
        frame, by_switch = plan.frame, start.sl.ndim == 2 and not self.goes_by_lid
        plain = np.zeros(start.lft.shape[1], np.uint8)
        certificate = plan.certificate
        traffic = Traffic(
            sl=frame.spread(start.sl, 0) if by_switch else plain if self.goes_by_lid else start.sl,
            vl_bit=plan.vl_bit,
            replies=certificate is not None and certificate.strength == "reversible",
            endports_only=certificate is not None and certificate.scope == "endports",
            level=self.standing.level if certificate is not None else np.zeros(0, np.uint8),
            by_parts=self.by_parts and self.before.routing.sl.ndim == 2,  # where SLs went by source before
        )
        mended = repair(
            frame.ground,
            traffic,
            frame.holes(start.lft),
            wish=frame.holes(self.laid.earlier),
            waits=plan.waits,
            load=self.load(frame, start, anew=bool((lay == LAY_ANEW).any())),
            lay=lay,
        )
        self.counts.setdefault("holes", mended.holes)
        found = {"repaired": mended.filled, "moved": mended.moved, "searches": mended.visited}
        for name, number in found.items():
            self.counts[name] = self.counts.get(name, 0) + number
        self.counts["relaid"] = self.counts.get("relaid", 0) + int(np.count_nonzero(mended.done == LAID_ANEW))
        self.counts["copied"] = self.counts.get("copied", 0) + int(np.count_nonzero(mended.done == COPIED))
        if mended.by_parts:
            self.counts["by_parts"] = self.counts.get("by_parts", 0) + mended.by_parts
        sl = start.sl if self.goes_by_lid else frame.gathered(mended.sl) if by_switch else mended.sl
        done = replace(start, lft=frame.gathered(mended.lft), sl=sl)
        return done, np.flatnonzero(mended.done == FAILED), replace(plan, waits=mended.waits)

    def load(self, frame: Frame, start: Routing, *, anew: bool) -> npt.NDArray[np.int64]:
        """int64[C], flow on each channel of the frame when every end port sends to every other, by the tables before.

        Where columns are laid ``anew``: by what is laid so far, from which they are taken out one by one.
        """
        if anew:
            flow, number = flow_of(self.fabric, start, threads=self.options.threads), frame.channel
        elif frame.base is self.before.fabric:
            return self.standing.load
        else:
            flow, number = self.standing.load, channel_numbers(self.before.fabric, frame.base)
        load, there = np.zeros(len(frame.base.channels), np.int64), number >= 0
        load[number[there]] = flow[there]
        return load

    def attempt_more(
        self, plan: Attempt, laid: Routing, failed: npt.NDArray[np.intp]
    ) -> tuple[Routing, npt.NDArray[np.intp], Attempt]:
        """What fits nowhere beside all that may wait by the tables before and by home.

        First by SLs that hang on the source as well; then on VLs cleared of what nobody takes, if need be as whole
        columns; then beside what is left in use only; then without regard to what switches send to switches.
        """
        certificate = plan.certificate
        assert certificate is not None
        if laid.sl.ndim == 1 and certificate.strength == "forward" and len(certificate.order) > 1:
            laid = replace(laid, sl=_shaped(laid.sl, laid.lft.shape).copy())
            laid, failed, plan = self.attempt(plan, laid, np.full(laid.lft.shape[1], MEND, np.uint8))
            self.counts["by_source"] = 1
        if 0 < len(failed) <= MOST_CLEARED and plan.waits.position is None:
            found, left, cleared = self.attempt_cleared(plan, laid, failed)
            if not len(left):
                return found, left, cleared
        scopes: tuple[Scope, ...] = ("all", "endports") if certificate.scope == "all" else ("endports",)
        for lifted, scope in itertools.product((False, True), scopes):
            if not len(failed):
                break
            self.counts["exact"] = self.counts.get("exact", 0) + 1
            laid, failed, plan = self.attempt_exact(plan, laid, failed, scope, lifted=lifted)
        return laid, failed, plan

    def attempt_cleared(
        self, plan: Attempt, laid: Routing, failed: npt.NDArray[np.intp]
    ) -> tuple[Routing, npt.NDArray[np.intp], Attempt]:
        """On VLs cleared of turns that nobody takes; or from nothing, with the entries that they had first."""
        self.counts["cleared"] = len(failed)
        lay = np.full(laid.lft.shape[1], MEND, np.uint8)
        lay[failed] = CLEAR
        return self.attempt(plan, laid, lay)

    def attempt_exact(
        self, plan: Attempt, laid: Routing, failed: npt.NDArray[np.intp], scope: Scope, *, lifted: bool
    ) -> tuple[Routing, npt.NDArray[np.intp], Attempt]:
        """Beside what the tables make wait as far as they are laid; ``lifted``: less what is in the way of itself."""
        assert plan.certificate is not None
        certificate = replace(plan.certificate, scope=scope)
        if lifted:
            lft = laid.lft.copy()
            lft[:, failed] = NO_PORT
            laid = deliver(replace(laid, lft=lft), self.fabric)
        waits = exact_waits(self.fabric, laid, certificate, plan.vl_bit, threads=self.options.threads)
        if waits is None:
            return laid, failed, plan
        plan = Attempt(Frame.of(self.fabric, [self.fabric]), waits, certificate, plan.vl_bit)
        return self.attempt(plan, laid, np.full(laid.lft.shape[1], MEND, np.uint8))

    def waits(self, frame: Frame, certificate: Certificate | None) -> tuple[Waits, bool]:
        """What may wait for what, and whether all that home makes wait is among it."""
        if certificate is None:
            return Waits(np.zeros(0, np.uint16), np.zeros((0, len(frame.base.channels)), np.int32)), True
        if frame.base is self.standing.base:
            found, with_home = self.standing.waits, self.standing.with_home
        else:
            found, with_home = allowed(frame.base, self.before, self.home, threads=self.options.threads)
        assert found is not None
        return found, with_home

    def judge(self, laid: Routing, plan: Attempt) -> tuple[Rerouted | None, str]:
        """Prove what came of it."""
        routing, certificate = replace(laid, provenance=self.provenance()), self.before.proof.certificate
        order, same_order = None, False
        if plan.certificate is not None and "exact" not in self.counts:
            known = self.standing.waits if plan.frame.base is self.standing.base and self.standing.climbing else None
            same_order = known is not None and np.array_equal(known.order, plan.waits.order)
            order = plan.waits.order[:, plan.frame.channel]
        proof = self.proven(routing, order, turns_climb=same_order)
        if not proof.complete:
            return None, "what was repaired is not complete"
        if plan.certificate is not None and certificate is not None and not _as_strong(proof, certificate):
            return None, "what was repaired is not as safe as before"
        how: How = "relaid" if self.counts["relaid"] else "repaired" if self.counts["holes"] else "unchanged"
        if how == "unchanged" and self.counts.get("healed"):
            how = "home"
        return self.result(routing, proof, how, self.reason(how, proof)), ""

    def proven(self, routing: Routing, order: npt.NDArray[np.int32] | None, *, turns_climb: bool = False) -> Proof:
        """By what has changed, if there is an order (int32[V, C]) that shows it, else as a whole."""
        proof = None
        if order is not None:
            proof = prove_changes(self.fabric, routing, self.before, self.laid, order, turns_climb=turns_climb)
            self.counts["proven_by_changes"] = int(proof is not None)
        return proof if proof is not None else prove(self.fabric, routing, threads=self.options.threads)

    def reason(self, how: How, proof: Proof) -> str:
        """What it took, in one line."""
        cut_off = how == "unchanged" and self.laid.broken > 0
        took = ["entries to what is cut off were taken out, all others hold" if cut_off else _REASONS[how]]
        if self.counts.get("fewest"):
            took.append("the fewest that can change")
        if self.counts.get("levels"):
            took.append(
                f"{number_of(self.counts['levels'], 'SL')} changed"
                + self.counts.get("by_source", 0) * ", by source now"
            )
        if self.counts.get("exact"):
            took.append("some LIDs fit only beside what is left in use")
        if proof.scope == "endports" and self.before.proof.scope == "all":
            took.append("what switches send to switches may close a loop")
        if self.before.proof.certificate is not None and proof.certificate is None:
            took.append("no tables without a credit loop were found, and the engine promises none")
        return "; ".join(took)

    def result(self, routing: Routing, proof: Proof, how: How, reason: str) -> Rerouted:
        """What is handed back."""
        changed = int(np.count_nonzero(routing.lft != self.laid.earlier))
        return Rerouted(routing, proof, self.laid.broken, changed, how, reason, dict(self.counts))

    def provenance(self) -> Provenance:
        """That of before, with the fabric of now and that from which it was first re-routed."""
        made = self.before.routing.provenance
        options: Mapping[str, object] = {
            **made.options,
            "stability": self.stability.value,
            "rerouted_from": made.options.get("rerouted_from", made.fabric_digest),
        }
        return replace(made, options=options, fabric_digest=self.fabric.digest, seconds={})


def _as_strong(proof: Proof, certificate: Certificate) -> bool:
    return proof.certificate is not None and (proof.strength == "reversible" or certificate.strength == "forward")


_REASONS: Mapping[How, str] = {
    "unchanged": "every entry holds",
    "home": "entries of the tables without faults hold again",
    "repaired": "single entries were laid anew",
    "relaid": "whole columns were laid anew",
}


def deliver(routing: Routing, fabric: Fabric) -> Routing:
    """The same tables, every LID delivered where it lives now."""
    here = np.flatnonzero(fabric.lids.switch >= 0)
    switch, port = fabric.lids.switch[here], fabric.lids.port[here]
    if (routing.lft[switch, here] == port).all():
        return routing
    lft = routing.lft.copy()
    lft[switch, here] = port
    return replace(routing, lft=lft)
