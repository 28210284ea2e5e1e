"""What one scenario does to a fabric and its tables."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from routing.deadlock.proof import Proof, prove
from routing.engines.base import Engine, EngineOptions, Promise
from routing.errors import OptionError, RoutingError
from routing.fabric import Fabric
from routing.faults import apply_faults
from routing.publish import verify
from routing.quality import all_to_all_share, channel_loads
from routing.reroute import Published, Stability, reroute
from routing.tables import Routing
from routing.whatif.connection import Separation, separation
from routing.whatif.scenarios import Scenario


@dataclass(frozen=True, eq=False)
class Baseline:
    """A fabric as it is, the tables in its switches, and how they would be mended.

    Attributes
    ----------
    engine, options
        What made the tables, and mends them.
    published
        Fabric, tables, proof.
    stability
        What a mended table may change that need not.
    """

    engine: Engine
    options: EngineOptions
    published: Published
    stability: Stability = Stability.FULL

    @classmethod
    def of(
        cls,
        fabric: Fabric,
        engine: Engine,
        options: EngineOptions,
        *,
        routing: Routing | None = None,
        stability: Stability = Stability.FULL,
    ) -> Baseline:
        """Route the fabric, or take the tables that it has, and prove them.

        Raises
        ------
        RoutingError, OptionError
            What the engine and the proof say; also tables that leave out routes, or have a credit loop where the engine
            promises none.
        """
        if routing is None:
            routing = engine.route(fabric, options)
            proof = verify(fabric, routing, engine, threads=options.threads)
        else:
            proof = _proven(fabric, routing, engine, options)
        return cls(engine, options, Published(fabric, routing, proof), stability)

    @cached_property
    def a2a(self) -> float:
        """All-to-all share of the tables as they are."""
        return _a2a(self.published.fabric, self.published.routing, self.options.threads)

    @cached_property
    def separation(self) -> Separation:
        """What hangs together before any fault."""
        return separation(self.published.fabric, self.published.fabric)


@dataclass(frozen=True)
class Effect:
    """What a scenario does, once the tables are mended.

    Attributes
    ----------
    fault, kind
        Names and kinds of what breaks.
    faults
        Each by name.
    connected
        Whether all that survives is as connected as it was.
    certified
        Whether the mended tables are proven: complete in each connected part, and free of credit loops.
    strength
        "reversible" or "forward" (see :mod:`routing.deadlock.proof`); None if there is no certificate.
    vls, vls_needed
        Data VLs that the mended tables use, and that they need.  None if there are no tables.
    changed, broken
        Forwarding entries that differ from the tables before, and those of the tables before that no longer hold.
    a2a
        All-to-all share; None where no channel carries anything, or without tables.
    loss
        Share of the all-to-all traffic of before, at its rate of before, that is carried no more: pairs that are not
        connected lose all, the others what the rate of a flow has fallen by.  None without tables.
    parts
        Connected parts of the switches.
    cut_off
        CAs and routers that survive and are cut off.
    how, reason
        What it took to mend the tables; "failed" and why, if the engine could not.
    """

    fault: str
    kind: str
    faults: tuple[str, ...]
    connected: bool
    certified: bool
    strength: str | None
    vls: int | None
    vls_needed: int | None
    changed: int | None
    broken: int | None
    a2a: float | None
    loss: float | None
    parts: int
    cut_off: tuple[str, ...]
    how: str
    reason: str

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "faults": list(self.faults), "cut_off": list(self.cut_off)}


def effect_of(baseline: Baseline, scenario: Scenario) -> Effect:
    """Lay the scenario over the fabric, mend the tables, prove and measure them.

    Raises
    ------
    OptionError
        A fault that does not fit the fabric, or an option that the engine cannot serve.
    """
    before = baseline.published
    fabric = apply_faults(before.fabric, scenario.faults)
    apart = separation(before.fabric, fabric)
    names = tuple(fault.name for fault in scenario.faults)
    try:
        mended = reroute(baseline.engine, baseline.options, before, fabric, stability=baseline.stability)
    except RoutingError as error:
        return Effect(
            scenario.name, scenario.kind, names, apart.connected, False, None, None, None, None, None, None, None,
            apart.parts, apart.cut_off, "failed", str(error),
        )  # fmt: skip
    a2a = _a2a(fabric, mended.routing, baseline.options.threads)
    return Effect(
        fault=scenario.name,
        kind=scenario.kind,
        faults=names,
        connected=apart.connected,
        certified=mended.proof.certified,
        strength=mended.proof.strength,
        vls=mended.routing.vls,
        vls_needed=mended.routing.vls_needed,
        changed=mended.changed,
        broken=mended.broken,
        a2a=a2a if math.isfinite(a2a) else None,
        loss=_loss(baseline, a2a, apart),
        parts=apart.parts,
        cut_off=apart.cut_off,
        how=mended.how,
        reason=mended.reason,
    )


def _proven(fabric: Fabric, routing: Routing, engine: Engine, options: EngineOptions) -> Proof:
    """The proof of tables that are in the switches, if they hold what the engine promises that is to mend them."""
    proof = prove(fabric, routing, threads=options.threads)
    if not proof.complete:
        raise RoutingError(f"the tables leave out routes: {proof.unreachable.describe()[0]} (ibnue check says more)")
    if engine.promise is Promise.DEADLOCK_FREE and proof.credit_loop is not None:
        loop = proof.credit_loop.describe()[0].rstrip(":")
        raise RoutingError(f"the tables have a {loop}, and {engine.name} mends none (ibnue check says more)")
    if options.reversible and proof.strength == "forward":
        raise OptionError("the tables are not proven for replies, which are to count", remedy="leave --reversible out")
    return proof


def _a2a(fabric: Fabric, routing: Routing, threads: int) -> float:
    return all_to_all_share(fabric, channel_loads(fabric, routing, threads=threads))


def _loss(baseline: Baseline, a2a: float, now: Separation) -> float:
    """Share of the all-to-all traffic that is lost."""
    before = baseline.separation
    if not before.pairs or not now.pairs:
        return 1.0 if before.pairs else 0.0
    # A share is in units of what one end port sends to all others, whose number may have changed.
    had, has = baseline.a2a / (before.endports - 1), a2a / (now.endports - 1)
    rate = has / had if has < had else 1.0
    return 1.0 - rate * min(now.pairs, before.pairs) / before.pairs


def hurt(effect: Effect) -> tuple[bool, int, bool, float, int]:
    """How much it hurts, to sort by: no proof first, then CAs cut off, a split, traffic lost, entries changed."""
    loss = math.inf if effect.loss is None else effect.loss
    return not effect.certified, len(effect.cut_off), not effect.connected, loss, effect.changed or 0


@dataclass(frozen=True)
class Limits:
    """What a site puts up with.

    Attributes
    ----------
    max_loss
        Most of the all-to-all traffic that one scenario may cost, as a share; None: any.
    certified, connected
        Whether every scenario must leave the tables proven, and the fabric connected.
    """

    max_loss: float | None = None
    certified: bool = False
    connected: bool = False

    def exceeded(self, effect: Effect) -> list[str]:
        """Which limits a scenario exceeds: "max-loss", "certified", "connected"."""
        loss = math.inf if effect.loss is None else effect.loss
        found = {
            "max-loss": self.max_loss is not None and loss > self.max_loss,
            "certified": self.certified and not effect.certified,
            "connected": self.connected and not effect.connected,
        }
        return [limit for limit, beyond in found.items() if beyond]
