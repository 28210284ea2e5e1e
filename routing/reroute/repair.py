"""Repair tables after a fault: keep valid entries, fill the missing ones, prove the result."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.repair import (
    COPIED,
    FAILED,
    KEEP_VALID_ENTRIES,
    PRUNE_THEN_REPAIR,
    ServiceLevelRules,
    repair,
)
from routing.cdg.acyclic import AcyclicCdg
from routing.cdg.certificate import Certificate, Scope
from routing.cdg.trace import common_lanes, trace_acyclic_cdg, vl_bits
from routing.deadlock.proof import Proof, prove
from routing.engines.base import Engine, EngineOptions, Promise
from routing.fabric import NO_PORT, Fabric
from routing.numerals import number_of
from routing.publish import Shortfall, VerifiedTables, admit, as_before, promised, weaker
from routing.reroute.base_fabric import BaseNumbering
from routing.reroute.baseline import restore_baseline_entries
from routing.reroute.flow import flow_towards
from routing.reroute.minimal_change import fill_with_fewest_changes, remote_pairs
from routing.reroute.precomputed import RerouteContext, allowed_dependencies
from routing.reroute.prove_changes import prove_changes
from routing.reroute.rebalance import (
    LEAST_GAIN,
    LEAST_WORK,
    Repaired,
    Utilisation,
    balance_repaired,
    cut_bound,
    fullest,
    in_frame,
    kept_share,
    move_entries,
    peak_in,
)
from routing.reroute.sl_assignment import reassign_sls
from routing.reroute.translate import TranslatedTables, same_devices
from routing.reroute.updown_order_repair import reconnect_order
from routing.reroute.values import How, Published, Rerouted, Stability
from routing.tables import Provenance, Routing

MOST_REBUILT = 64
"""LIDs whose columns are rebuilt as a last resort; for more LIDs routing from scratch is faster."""
MOST_MISSING = 10_000
"""Missing entries up to which the fewest changes are searched for; with more of them VL assignment takes too long."""


@dataclass(frozen=True, eq=False)
class RepairPlan:
    """The constraints of one repair attempt.

    Attributes
    ----------
    frame
        The present fabric in base numbers.
    dependencies
        Dependencies that the repaired tables may use; the repair adds to them.
    certificate
        The certificate that the tables have to keep; None: credit loops are allowed.
    vl_bit
        uint16[16], 1 << VL of each SL.
    load
        int64[C], flow on each channel with all entries placed so far; None before the first attempt.
    """

    frame: BaseNumbering
    dependencies: AcyclicCdg
    certificate: Certificate | None
    vl_bit: npt.NDArray[np.uint16]
    load: npt.NDArray[np.int64] | None = None


def _shaped(sl: npt.NDArray[np.uint8], shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    return np.broadcast_to(sl, shape)


@dataclass(frozen=True, eq=False)
class Repair:
    """The repair of previous tables on the present fabric.

    Attributes
    ----------
    engine, options, before, fabric, stability, baseline
        The arguments of :func:`routing.reroute.run.reroute`.
    translated
        The previous tables in present rows and columns, without the entries that are no longer valid.
    context
        What was computed from the previous tables and the baseline alone.
    counts
        Statistics of what was done so far, by name.
    rejoins
        Whether the Up*/Down* order may change where a switch has lost its last upward link.
    by_parts
        Whether each part of a subtree may change its SL on its own.
    """

    engine: Engine
    options: EngineOptions
    before: Published
    fabric: Fabric
    stability: Stability
    baseline: Published | None
    translated: TranslatedTables
    context: RerouteContext
    counts: dict[str, int] = field(default_factory=dict)
    rejoins: bool = True
    by_parts: bool = True

    def run(self) -> tuple[Rerouted | None, str]:
        """Return the repaired tables, or None and the reason why there are none."""
        certificate = self.before.proof.certificate
        row = common_lanes(self.before.routing)
        if certificate is None and self.engine.promise is Promise.DEADLOCK_FREE:
            return None, "the previous tables had a credit loop"
        if certificate is not None and (row is None or self.before.proof.cdg is None):
            return None, "VLs change along a path"
        if certificate is not None and self.goes_by_lid:
            return None, "SLs are by the LID of the sender"
        kept, problem = self.repair_tables(certificate, vl_bits(row) if row is not None else np.zeros(16, np.uint16))
        if kept is None and certificate is not None and self.engine.promise is Promise.NONE:
            kept, _ = self.repair_tables(None, np.zeros(16, np.uint16))
        return kept, problem

    @property
    def goes_by_lid(self) -> bool:
        """Return whether the previous SLs are by the LID of the sender."""
        sl = self.before.routing.sl
        return sl.ndim == 2 and len(sl) != self.before.fabric.switches

    def repair_tables(
        self, certificate: Certificate | None, vl_bit: npt.NDArray[np.uint16]
    ) -> tuple[Rerouted | None, str]:
        """Keep the valid entries and fill the missing ones, under a certificate like this one.

        Returns
        -------
        found : Rerouted or None
            The proven tables.
        problem : str
            The reason why there are none.
        """
        frame = BaseNumbering.of(self.fabric, [p.fabric for p in (self.baseline, self.before) if p is not None])
        dependencies, with_baseline = self.dependencies(frame, certificate)
        start = self.initial_tables(with_baseline=with_baseline)
        joined = reconnect_order(frame, dependencies) if self.rejoins else None
        if joined is not None and joined is not dependencies:
            self.counts["rejoined"], dependencies = 1, joined
        plan = RepairPlan(frame, dependencies, certificate, vl_bit)
        tables, failed, plan = self.attempt(plan, start, np.full(start.lft.shape[1], KEEP_VALID_ENTRIES, np.uint8))
        if len(failed) and certificate is not None:
            tables, failed, plan = self.attempt_more(plan, tables, failed)
        if len(failed):
            return None, f"{number_of(len(failed), 'LID')} found no path without a credit loop"
        self.counts["levels"] = int(np.count_nonzero(tables.sl != _shaped(start.sl, tables.sl.shape)))
        tables, plan, kept = self.rebalanced(tables, plan)
        return self.verify_result(tables, plan, kept)

    def rebalanced(self, tables: Routing, plan: RepairPlan) -> tuple[Routing, RepairPlan, float | None]:
        """Move entries off the fullest channels: those that changed anyway, and others as far as stability allows.

        Returns
        -------
        laid : Routing
            The tables with the moves.
        plan : Attempt
            The dependencies with those of the moves.
        kept : float or None
            Share of the all-to-all rate of before that is left; None where nothing was repaired.
        """
        missing, healed = max(self.translated.broken, self.counts.get("holes", 0)), self.counts.get("healed", 0)
        # Columns that go back to the tables without faults undo moves that balance what other faults have left.
        undone = healed > 0 and self.stability is Stability.BALANCED
        if not (missing or undone) or self.goes_by_lid:
            return tables, plan, None
        frame = plan.frame
        changed = int(np.count_nonzero(tables.lft != self.translated.earlier)) - healed
        now = Utilisation(self.load(frame, tables), self.goal(frame))
        tables, found = balance_repaired(
            frame, self.traffic(plan, tables), tables, self.translated.earlier,
            dependencies=plan.dependencies, now=now, repaired=Repaired(missing, changed),
            may_change=self.stability is Stability.BALANCED,
        )  # fmt: skip
        self.counts["rebalanced"], self.counts["moved_for_balance"] = found.moves, found.spent
        kept = kept_share(self.before, frame.base.channels, found.load)
        return tables, replace(plan, dependencies=plan.dependencies.grown(found.masks, found.order)), kept

    def goal(self, frame: BaseNumbering) -> int:
        """Return the highest utilisation at best: by the tables without faults, or by the links of a single switch."""
        best = self.before if self.baseline is None else self.baseline
        return max(peak_in(frame, fullest(best.fabric.channels, best.load)), cut_bound(frame.ground))

    def spread(self, *, most: int) -> Rerouted | None:
        """Move at most so many entries of complete tables off the fullest channels; None where nothing is gained.

        Nothing is broken here.  First a search without a limit shows what there is to gain.
        """
        certificate, row = self.before.proof.certificate, common_lanes(self.before.routing)
        if certificate is None or row is None or self.goes_by_lid or not self.translated.in_place:
            return None
        frame = BaseNumbering.of(self.fabric, [p.fabric for p in (self.baseline, self.before) if p is not None])
        dependencies, _ = self.dependencies(frame, certificate)
        plan = RepairPlan(frame, dependencies, certificate, vl_bits(row))
        start = self.translated.routing
        now = Utilisation(in_frame(frame, self.fabric, self.before.load), self.goal_of_spread(frame))
        traffic = self.traffic(plan, start)
        work = max(LEAST_WORK, start.lft.size)
        for budget in (start.lft.size, most):
            tables, found = move_entries(
                frame, traffic, start, self.translated.earlier,
                dependencies=dependencies, now=now, budget=budget, work=work,
            )  # fmt: skip
            kept = kept_share(self.before, frame.base.channels, found.load)
            if budget > most and (kept is None or kept < 1 + LEAST_GAIN):
                return None
            if found.spent <= most:
                break
        self.counts["rebalanced"], self.counts["moved_for_balance"], self.counts["holes"] = found.moves, found.spent, 0
        plan = replace(plan, dependencies=dependencies.grown(found.masks, found.order))
        return self.verify_result(tables, plan, kept)[0]

    def goal_of_spread(self, frame: BaseNumbering) -> int:
        """Return the highest utilisation worth reaching for complete tables, which may have no baseline."""
        if self.baseline is None or self.baseline.routing is self.before.routing:
            return cut_bound(frame.ground)
        return self.goal(frame)

    def initial_tables(self, *, with_baseline: bool) -> Routing:
        """Return the previous entries that are still valid, with baseline columns restored where allowed and valid."""
        start, baseline = set_delivery_entries(self.translated.routing, self.fabric), self.baseline
        if baseline is None or baseline is self.before or not with_baseline:
            return start
        differing_lids = (
            self.context.differing_lids
            if self.translated.in_place and same_devices(baseline.fabric, self.fabric)
            else None
        )
        start, self.counts["healed"] = restore_baseline_entries(start, baseline, self.fabric, differing_lids)
        return start

    def run_fewest(self) -> Rerouted | None:
        """Return tables with the fewest changed entries and new SLs for them; None if the VLs do not suffice."""
        certificate, row = self.before.proof.certificate, common_lanes(self.before.routing)
        if certificate is None or row is None or self.goes_by_lid or self.stability is Stability.FRESH:
            return None
        start = self.initial_tables(with_baseline=self.context.with_baseline)
        if np.count_nonzero((start.lft == NO_PORT) & remote_pairs(self.fabric)) > MOST_MISSING:
            return None
        lft = fill_with_fewest_changes(self.fabric, start.lft)
        filled, counted = start.lft == NO_PORT, lft != start.lft
        self.counts["repaired"] = self.counts["holes"] = int(np.count_nonzero(filled & counted))
        self.counts["moved"] = int(np.count_nonzero(~filled & counted))
        fitted = reassign_sls(
            self.fabric,
            replace(start, lft=lft),
            self.translated.routing,
            certificate,
            vl_bits(row),
            level=self.context.level,
            threads=self.options.threads,
        )
        if fitted is None:
            return None
        tables, order = fitted
        self.counts["levels"] = int(np.count_nonzero(tables.sl != _shaped(start.sl, tables.sl.shape)))
        self.counts["by_source"], self.counts["fewest"] = tables.sl.ndim - start.sl.ndim, 1
        routing = replace(tables, provenance=self.provenance())
        proof = self.proven(routing, order)
        found = admit(self.fabric, routing, proof, as_before(certificate, scope=certificate.scope))
        return None if isinstance(found, Shortfall) else self.result(found, "repaired")

    def attempt(
        self, plan: RepairPlan, start: Routing, treatment: npt.NDArray[np.uint8]
    ) -> tuple[Routing, npt.NDArray[np.intp], RepairPlan]:
        """Repair as many columns as possible.

        Returns
        -------
        tables : Routing
            The tables with the repaired columns.
        failed : int64[N]
            LIDs whose columns could not be repaired.
        plan : RepairPlan
            The plan with the dependencies and the load of what was placed.
        """
        frame, by_switch = plan.frame, start.sl.ndim == 2 and not self.goes_by_lid
        load = plan.load if plan.load is not None else self.load_before(frame, start)
        repaired = repair(
            frame.ground,
            self.traffic(plan, start),
            frame.in_base_rows(start.lft),
            preferred=frame.in_base_rows(self.translated.earlier),
            masks=plan.dependencies.masks,
            order=plan.dependencies.order,
            load=load,
            treatment=treatment,
            up_first=plan.dependencies.position is not None,
            withdraw=plan.load is None,
        )
        self.counts.setdefault("holes", repaired.holes)
        found = {"repaired": repaired.filled, "moved": repaired.moved, "searches": repaired.visited}
        for name, number in found.items():
            self.counts[name] = self.counts.get(name, 0) + number
        self.counts["copied"] = self.counts.get("copied", 0) + int(np.count_nonzero(repaired.done == COPIED))
        if repaired.by_parts:
            self.counts["by_parts"] = self.counts.get("by_parts", 0) + repaired.by_parts
        sl = start.sl if self.goes_by_lid else frame.gathered(repaired.sl) if by_switch else repaired.sl
        done = replace(start, lft=frame.gathered(repaired.lft), sl=sl)
        return (
            done,
            np.flatnonzero(repaired.done == FAILED),
            replace(plan, dependencies=plan.dependencies.grown(repaired.masks, repaired.order), load=repaired.load),
        )

    def traffic(self, plan: RepairPlan, tables: Routing) -> ServiceLevelRules:
        """Return on which VLs packets of these tables travel, and whose packets count."""
        certificate, plain = plan.certificate, np.zeros(tables.lft.shape[1], np.uint8)
        by_switch = tables.sl.ndim == 2 and not self.goes_by_lid
        return ServiceLevelRules(
            sl=plan.frame.spread(tables.sl, 0) if by_switch else plain if self.goes_by_lid else tables.sl,
            vl_bit=plan.vl_bit,
            replies=certificate is not None and certificate.strength == "reversible",
            endports_only=certificate is not None and certificate.scope == "endports",
            level=self.context.level if certificate is not None else np.zeros(0, np.uint8),
            by_parts=self.by_parts and self.before.routing.sl.ndim == 2,  # where SLs went by source before
        )

    def load_before(self, frame: BaseNumbering, start: Routing) -> npt.NDArray[np.int64]:
        """Return int64[C], the flow by the tables before; in columns that went back to the baseline, by these."""
        if not self.counts.get("healed") or not self.translated.in_place:
            return in_frame(frame, self.before.fabric, self.before.load)
        back = ((start.lft != self.translated.earlier) & (start.lft != NO_PORT)).any(axis=0)
        return self.load_of_columns(frame, start, back)

    def load(self, frame: BaseNumbering, tables: Routing) -> npt.NDArray[np.int64]:
        """Return int64[C], the exact flow on each channel by complete tables."""
        if not self.translated.in_place:
            return in_frame(frame, self.fabric, flow_towards(self.fabric, tables, threads=self.options.threads))
        return self.load_of_columns(frame, tables, (tables.lft != self.translated.earlier).any(axis=0))

    def load_of_columns(
        self, frame: BaseNumbering, tables: Routing, lids: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Return the flow by the tables before, but by other tables towards these LIDs (bool[L])."""
        threads, before = self.options.threads, self.before
        old = before.load - flow_towards(before.fabric, before.routing, lids, threads=threads)
        new = flow_towards(self.fabric, tables, lids, threads=threads)
        return in_frame(frame, before.fabric, old) + in_frame(frame, self.fabric, new)

    def attempt_more(
        self, plan: RepairPlan, tables: Routing, failed: npt.NDArray[np.intp]
    ) -> tuple[Routing, npt.NDArray[np.intp], RepairPlan]:
        """Retry LIDs whose paths would close a cycle with the dependencies of the previous or the baseline tables.

        These steps are tried in order:

        1. Use SLs by source switch and LID instead of by LID.
        2. Drop the dependencies that no packet uses from the VLs of these LIDs, then repair or rebuild their columns.
        3. Repair against only the dependencies that the current entries use.
        4. Repeat step 3 without counting traffic between switches.
        """
        certificate = plan.certificate
        assert certificate is not None
        if tables.sl.ndim == 1 and certificate.strength == "forward" and len(certificate.order) > 1:
            tables = replace(tables, sl=_shaped(tables.sl, tables.lft.shape).copy())
            tables, failed, plan = self.attempt(
                plan, tables, np.full(tables.lft.shape[1], KEEP_VALID_ENTRIES, np.uint8)
            )
            self.counts["by_source"] = 1
        if 0 < len(failed) <= MOST_REBUILT and plan.dependencies.position is None:
            found, left, cleared = self.attempt_pruned(plan, tables, failed)
            if not len(left):
                return found, left, cleared
        scopes: tuple[Scope, ...] = ("all", "endports") if certificate.scope == "all" else ("endports",)
        for remove_failed, scope in itertools.product((False, True), scopes):
            if not len(failed):
                break
            self.counts["exact"] = self.counts.get("exact", 0) + 1
            tables, failed, plan = self.attempt_exact(plan, tables, failed, scope, remove_failed=remove_failed)
        return tables, failed, plan

    def attempt_pruned(
        self, plan: RepairPlan, tables: Routing, failed: npt.NDArray[np.intp]
    ) -> tuple[Routing, npt.NDArray[np.intp], RepairPlan]:
        """Repair on VLs without their unused dependencies, or rebuild the columns, preferring the previous entries."""
        self.counts["cleared"] = len(failed)
        treatment = np.full(tables.lft.shape[1], KEEP_VALID_ENTRIES, np.uint8)
        treatment[failed] = PRUNE_THEN_REPAIR
        return self.attempt(plan, tables, treatment)

    def attempt_exact(
        self, plan: RepairPlan, tables: Routing, failed: npt.NDArray[np.intp], scope: Scope, *, remove_failed: bool
    ) -> tuple[Routing, npt.NDArray[np.intp], RepairPlan]:
        """Repair against only the dependencies that the current entries use.

        With ``remove_failed``, first remove the entries of the failed LIDs themselves.
        """
        assert plan.certificate is not None
        certificate = replace(plan.certificate, scope=scope)
        if remove_failed:
            lft = tables.lft.copy()
            lft[:, failed] = NO_PORT
            tables = set_delivery_entries(replace(tables, lft=lft), self.fabric)
        dependencies = trace_acyclic_cdg(self.fabric, tables, certificate, plan.vl_bit, threads=self.options.threads)
        if dependencies is None:
            return tables, failed, plan
        load = None if plan.load is None else plan.load[plan.frame.channel]
        plan = RepairPlan(BaseNumbering.of(self.fabric, [self.fabric]), dependencies, certificate, plan.vl_bit, load)
        return self.attempt(plan, tables, np.full(tables.lft.shape[1], KEEP_VALID_ENTRIES, np.uint8))

    def dependencies(self, frame: BaseNumbering, certificate: Certificate | None) -> tuple[AcyclicCdg, bool]:
        """Return the dependencies that may be used, and whether those of the baseline are included."""
        if certificate is None:
            return AcyclicCdg.unchecked(frame.base), True
        if frame.base is self.context.base:
            found, with_baseline = self.context.dependencies, self.context.with_baseline
        else:
            found, with_baseline = allowed_dependencies(
                frame.base, self.before, self.baseline, threads=self.options.threads
            )
        assert found is not None
        return found, with_baseline

    def verify_result(self, tables: Routing, plan: RepairPlan, kept: float | None) -> tuple[Rerouted | None, str]:
        """Prove the repaired tables; return None and the reason if they are weaker than the previous ones."""
        routing, certificate = replace(tables, provenance=self.provenance()), self.before.proof.certificate
        order, same_order = None, False
        if plan.certificate is not None and "exact" not in self.counts:
            known = (
                self.context.dependencies if plan.frame.base is self.context.base and self.context.climbing else None
            )
            same_order = known is not None and np.array_equal(known.order, plan.dependencies.order)
            order = plan.dependencies.order[:, plan.frame.channel]
        proof = self.proven(routing, order, turns_climb=same_order)
        demand = promised(self.engine)
        if plan.certificate is not None and certificate is not None:
            demand = as_before(certificate)
        found = admit(self.fabric, routing, proof, demand)
        if isinstance(found, Shortfall):
            lacks = "complete" if found is Shortfall.INCOMPLETE else "as safe as before"
            return None, f"the repaired tables are not {lacks}"
        how: How = "repaired" if self.counts["holes"] else "unchanged"
        if how == "unchanged" and self.counts.get("healed"):
            how = "baseline"
        elif how == "unchanged" and self.counts.get("rebalanced"):
            how = "rebalanced"
        return replace(self.result(found, how), kept=kept), ""

    def proven(self, routing: Routing, order: npt.NDArray[np.int32] | None, *, turns_climb: bool = False) -> Proof:
        """Return the proof, where possible of the changed paths only, by a topological order (int32[V, C])."""
        proof = None
        if order is not None:
            proof = prove_changes(self.fabric, routing, self.before, self.translated, order, turns_climb=turns_climb)
            self.counts["proven_by_changes"] = int(proof is not None)
        return proof if proof is not None else prove(self.fabric, routing, threads=self.options.threads)

    def reason(self, how: How, proof: Proof) -> str:
        """Return how the tables were found, in one line."""
        cut_off = how == "unchanged" and self.translated.broken > 0
        took = ["entries towards cut-off devices were removed, all others are valid" if cut_off else _REASONS[how]]
        if self.counts.get("fewest"):
            took.append("the fewest possible changes")
        if self.counts.get("levels"):
            took.append(
                f"{number_of(self.counts['levels'], 'SL')} changed"
                + self.counts.get("by_source", 0) * ", by source now"
            )
        if self.counts.get("exact"):
            took.append("some LIDs fit only beside the dependencies still in use")
        return "; ".join([*took, *weaker(proof, self.before.proof)])

    def result(self, tables: VerifiedTables, how: How) -> Rerouted:
        """Return the result of the re-route."""
        changed = int(np.count_nonzero(tables.routing.lft != self.translated.earlier))
        reason = self.reason(how, tables.proof)
        return Rerouted(tables, self.translated.broken, changed, how, reason, dict(self.counts))

    def provenance(self) -> Provenance:
        """Return the previous provenance with the present fabric, and the fabric of the first re-route."""
        made = self.before.routing.provenance
        options: Mapping[str, object] = {
            **made.options,
            "stability": self.stability.value,
            "rerouted_from": made.options.get("rerouted_from", made.fabric_digest),
        }
        return replace(made, options=options, fabric_digest=self.fabric.digest, seconds={})


_REASONS: Mapping[How, str] = {
    "unchanged": "every entry is valid",
    "baseline": "entries of the baseline tables are valid again",
    "repaired": "single entries were replaced",
    "rebalanced": "entries moved off the fullest channels",
}


def set_delivery_entries(routing: Routing, fabric: Fabric) -> Routing:
    """Set the entry of every LID at the switch that delivers it to the port of its owner."""
    here = np.flatnonzero(fabric.lids.switch >= 0)
    switch, port = fabric.lids.switch[here], fabric.lids.port[here]
    if (routing.lft[switch, here] == port).all():
        return routing
    lft = routing.lft.copy()
    lft[switch, here] = port
    return replace(routing, lft=lft)
