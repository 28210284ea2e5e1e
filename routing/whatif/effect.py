"""Effect of one fault scenario: connectivity, tables after a re-route, and loss of throughput."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from routing.deadlock.proof import Proof, prove
from routing.engines.base import Engine, EngineOptions
from routing.errors import OptionError, RoutingError
from routing.fabric import Fabric
from routing.faults import apply_faults
from routing.publish import Shortfall, promised, verify
from routing.reroute import Precomputed, Published, Rerouted, Stability, precompute, reroute
from routing.tables import Routing
from routing.whatif.capacity import Capacity, bisection_loss, loss
from routing.whatif.connectivity import ConnectivityLoss, connectivity_loss
from routing.whatif.scenarios import Scenario


@dataclass(frozen=True, eq=False)
class Baseline:
    """State before any fault: the current fabric, the tables in its switches, and the settings of re-routes.

    Attributes
    ----------
    engine, options
        Routing engine that made the tables and that re-routes, and its options.
    published
        Fabric, its tables and their proof.
    stability
        How much a re-route may change beyond what the fault makes necessary.
    beside_fresh
        Whether each scenario is also measured with tables from scratch, for comparison with the re-route.
    """

    engine: Engine
    options: EngineOptions
    published: Published
    stability: Stability = Stability.BALANCED
    beside_fresh: bool = False

    @classmethod
    def of(
        cls,
        fabric: Fabric,
        engine: Engine,
        options: EngineOptions,
        *,
        routing: Routing | None = None,
        stability: Stability = Stability.BALANCED,
        beside_fresh: bool = False,
    ) -> Baseline:
        """Make a baseline: compute the tables of the fabric, or take its current tables (``routing``), and prove them.

        ``stability`` states which valid entries a re-route may change.  If ``beside_fresh`` is set, each scenario is
        also measured with tables from scratch.

        Raises
        ------
        RoutingError, OptionError
            The engine or the proof fails.  Or the given tables lack routes, or have a credit loop although the engine
            promises to avoid loops.
        """
        if routing is None:
            routing = engine.route(fabric, options)
            proof = verify(fabric, routing, engine, threads=options.threads).proof
        else:
            proof = _proven(fabric, routing, engine, options)
        return cls(engine, options, Published(fabric, routing, proof), stability, beside_fresh)

    @property
    def a2a(self) -> float:
        """All-to-all rate of an end port with the current tables, as a share of the reference rate."""
        return self.capacity.a2a

    @cached_property
    def capacity(self) -> Capacity:
        """Throughput of the current tables, before any fault."""
        published = self.published
        return Capacity.of(published.fabric, published.routing, self.separation, threads=self.options.threads)

    @cached_property
    def precomputed(self) -> Precomputed:
        """The part of every re-route that depends on the current tables alone, computed once."""
        return precompute(self.published, threads=self.options.threads)

    @cached_property
    def separation(self) -> ConnectivityLoss:
        """Connectivity of the current fabric, before any fault, for a comparison with each scenario."""
        return connectivity_loss(self.published.fabric, self.published.fabric)


@dataclass(frozen=True, kw_only=True)
class Effect:
    """Effect of one fault scenario, after the fabric has been re-routed.

    Attributes
    ----------
    fault, kind
        One text with the names of all faults, and one text with the kinds of all faults.
    faults
        Names of the faults.
    connected
        Whether all surviving devices that could reach each other before the fault can still reach each other.
    certified
        Whether the new tables are proven: complete in each connected component, and free of credit loops.
    strength
        Strength of the certificate: "forward" covers requests, "reversible" also replies
        (:mod:`routing.deadlock.proof`).  None if there is no certificate.
    vls, vls_needed
        Number of data VLs that the new tables use, and the fewest VLs on which the engine found their paths free of
        credit loops.  None without new tables.
    changed, broken
        Number of LFT entries that differ from the old tables, and of old entries that became invalid.
    a2a
        All-to-all rate of an end port as a share of the reference rate; None if no channel carries traffic, or without
        tables.
    loss
        Lost share of the all-to-all traffic, relative to the traffic before the fault.  Disconnected pairs lose all of
        their traffic.  All other pairs lose as much as the rate of their flows has decreased.  None without tables.
    bisection
        Mean throughput of random bisections, as a share of the reference rate; None with fewer than two end ports, or
        without tables.
    bisection_loss
        Share of the bisection traffic that is lost; None without tables, or if there was no traffic before.
    fresh_loss, fresh_bisection_loss
        The values ``loss`` and ``bisection_loss`` for tables that are computed from scratch.  None if such tables were
        not requested, or if the engine failed.
    parts
        Number of connected components of the switches.
    cut_off
        Labels of CAs and routers that survive but are disconnected.
    how, reason
        Method of the re-route, and why this method was used.  If the engine failed, ``how`` is "failed", and ``reason``
        is the text of the error.
    """

    fault: str
    kind: str
    faults: tuple[str, ...]
    connected: bool
    certified: bool
    strength: str | None = None
    vls: int | None = None
    vls_needed: int | None = None
    changed: int | None = None
    broken: int | None = None
    a2a: float | None = None
    loss: float | None = None
    bisection: float | None = None
    bisection_loss: float | None = None
    fresh_loss: float | None = None
    fresh_bisection_loss: float | None = None
    parts: int
    cut_off: tuple[str, ...]
    how: str
    reason: str

    def as_dict(self) -> dict[str, Any]:
        """Return the effect as plain values for JSON."""
        return {
            "faults": list(self.faults),
            "kind": self.kind,
            "connected": self.connected,
            "parts": self.parts,
            "cut_off": list(self.cut_off),
            "certified": self.certified,
            "strength": self.strength,
            "vls": self.vls,
            "vls_needed": self.vls_needed,
            "entries_changed": self.changed,
            "entries_broken": self.broken,
            "all_to_all": self.a2a,
            "all_to_all_loss": self.loss,
            "bisection": self.bisection,
            "bisection_loss": self.bisection_loss,
            "fresh_all_to_all_loss": self.fresh_loss,
            "fresh_bisection_loss": self.fresh_bisection_loss,
            "method": self.how,
            "reason": self.reason,
        }


def evaluate(baseline: Baseline, scenario: Scenario) -> Effect:
    """Apply the faults of a scenario to the fabric, re-route it, and prove and measure the new tables.

    Raises
    ------
    OptionError
        A fault does not exist on the fabric, or the engine does not support an option.
    """
    before = baseline.published
    fabric = apply_faults(before.fabric, scenario.faults)
    apart = connectivity_loss(before.fabric, fabric)
    effect = Effect(
        fault=scenario.name, kind=scenario.kind, faults=tuple(fault.name for fault in scenario.faults),
        connected=apart.connected, certified=False, parts=apart.parts, cut_off=apart.cut_off, how="failed", reason="",
    )  # fmt: skip
    try:
        repaired = reroute(
            baseline.engine, baseline.options, before, fabric, stability=baseline.stability,
            precomputed=None if baseline.stability is Stability.FRESH else baseline.precomputed,
        )  # fmt: skip
    except RoutingError as error:
        return replace(effect, reason=str(error))
    had, has = baseline.capacity, Capacity.of(fabric, repaired.routing, apart, threads=baseline.options.threads)
    fresh = _from_scratch(baseline, fabric, apart, repaired, has) if baseline.beside_fresh else None
    return replace(
        effect, certified=repaired.proof.certified, strength=repaired.proof.strength, vls=repaired.routing.vls,
        vls_needed=repaired.routing.vls_needed, changed=repaired.changed, broken=repaired.broken, a2a=_finite(has.a2a),
        loss=loss(had, has), bisection=_finite(has.bisection), bisection_loss=bisection_loss(had, has),
        fresh_loss=None if fresh is None else loss(had, fresh),
        fresh_bisection_loss=None if fresh is None else bisection_loss(had, fresh), how=repaired.how,
        reason=repaired.reason,
    )  # fmt: skip


def _from_scratch(
    baseline: Baseline, fabric: Fabric, apart: ConnectivityLoss, repaired: Rerouted, has: Capacity
) -> Capacity | None:
    """Return the throughput of tables that are computed from scratch; None if the engine fails.

    Parameters
    ----------
    baseline, fabric
        State before the faults, and the fabric after the faults.
    apart
        Connected components of the fabric after the faults.
    repaired, has
        Tables of the re-route, and their throughput.  If the tables of the re-route are themselves from scratch, the
        function returns ``has``.
    """
    if repaired.how == "fresh" and repaired.fresh is None:
        return has
    options = baseline.options
    try:
        found = reroute(baseline.engine, options, baseline.published, fabric, stability=Stability.FRESH)
    except RoutingError:
        return None
    return Capacity.of(fabric, found.routing, apart, threads=options.threads)


def _finite(share: float) -> float | None:
    return share if math.isfinite(share) else None


def _proven(fabric: Fabric, routing: Routing, engine: Engine, options: EngineOptions) -> Proof:
    """Prove the current tables of the switches, and check that the tables keep the promise of ``engine``."""
    proof = prove(fabric, routing, threads=options.threads)
    lacks = promised(engine).shortfall(routing, proof)
    if lacks is Shortfall.INCOMPLETE:
        raise RoutingError(f"the tables leave out routes: {proof.unreachable.describe()[0]} (ibnue check says more)")
    if lacks is not None and proof.credit_loop is not None:
        loop = proof.credit_loop.describe()[0].rstrip(":")
        raise RoutingError(f"the tables have a {loop}, and {engine.name} repairs no loops (ibnue check says more)")
    if options.reversible and proof.strength == "forward":
        raise OptionError("the tables are not proven for replies", remedy="leave --reversible out")
    return proof


def severity(effect: Effect) -> tuple[bool, int, bool, float, int]:
    """Return a key that sorts effects by severity.

    A missing proof is most severe.  Further criteria, in this order, are the number of disconnected CAs and routers, a
    split of the fabric, lost traffic, and changed LFT entries.
    """
    lost = math.inf if effect.loss is None else effect.loss
    return not effect.certified, len(effect.cut_off), not effect.connected, lost, effect.changed or 0


@dataclass(frozen=True)
class Limits:
    """Limits that the effects of scenarios should not exceed.

    Attributes
    ----------
    max_loss
        Largest acceptable share of all-to-all traffic that one scenario loses; None: no limit.
    certified, connected
        Whether the tables must be proven, and the fabric connected, after every scenario.
    """

    max_loss: float | None = None
    certified: bool = False
    connected: bool = False

    def exceeded(self, effect: Effect) -> list[str]:
        """Return the names of the limits that an effect exceeds: "max-loss", "certified", "connected"."""
        lost = math.inf if effect.loss is None else effect.loss
        found = {
            "max-loss": self.max_loss is not None and lost > self.max_loss,
            "certified": self.certified and not effect.certified,
            "connected": self.connected and not effect.connected,
        }
        return [limit for limit, beyond in found.items() if beyond]
