"""The re-route: from the least change that can do to the engine's fresh run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.repair import FAILED, LAID_ANEW, LAY_ANEW, Repair, Traffic, Waits, repair
from routing.deadlock.cdg import common_lanes, vl_bits
from routing.deadlock.certificate import Certificate
from routing.deadlock.proof import Proof, prove
from routing.engines.base import Engine, EngineOptions, Promise
from routing.fabric import Fabric
from routing.publish import verify
from routing.reroute.ground import Frame, known_waits
from routing.reroute.home import heal, is_same
from routing.reroute.translate import Laid, lay_over
from routing.reroute.values import How, Published, Rerouted, Stability
from routing.tables import Provenance, Routing


def reroute(
    engine: Engine,
    options: EngineOptions,
    before: Published,
    fabric: Fabric,
    *,
    stability: Stability = Stability.FULL,
    home: Published | None = None,
) -> Rerouted:
    """Tables for a fabric that has changed, as near to the earlier ones as ``stability`` asks for.

    They are proven, and no weaker than the earlier ones: if those were certified (forward, reversible), these are, too,
    unless it takes a fresh run of the engine, which keeps what the engine promises.

    Parameters
    ----------
    engine, options
        What made the earlier tables; a fresh run of it is what is left where nothing less will do.
    before
        The tables that are in the switches.
    fabric
        The fabric as it is now.
    stability
        What may change that need not.
    home
        The tables of the fabric without faults.  Columns go back to them as soon as they hold again, and what they make
        wait stays allowed for, so that they can.

    Raises
    ------
    OptionError, RoutingError
        What the engine raises where it has to run afresh.
    TableError
        The earlier tables do not fit their fabric.
    """
    laid = lay_over(before.routing, before.fabric, fabric)
    if stability is Stability.FRESH:
        return _fresh(engine, options, fabric, laid, "asked for")
    settled = _settled(before, fabric, home, laid)
    if settled is not None:
        return settled
    job = _Job(engine, options, before, fabric, stability, home, laid)
    found, problem = job.run()
    return found if found is not None else _fresh(engine, options, fabric, laid, problem)


def _settled(before: Published, fabric: Fabric, home: Published | None, laid: Laid) -> Rerouted | None:
    """What is there already: the tables of home, or those of before if nothing has changed."""
    if home is not None and is_same(home.fabric, fabric):
        changed = int(np.count_nonzero(home.routing.lft != laid.earlier))
        if changed or not np.array_equal(home.routing.sl, laid.routing.sl):
            reason = "all is as it was without faults"
            return Rerouted(home.routing, home.proof, laid.broken, changed, "home", reason, {"healed": changed})
        return Rerouted(home.routing, home.proof, 0, 0, "unchanged", reason="the tables are those without faults")
    if home is None and laid.broken == 0 and is_same(before.fabric, fabric):
        return Rerouted(before.routing, before.proof, 0, 0, "unchanged", "the fabric is as it was")
    return None


def _fresh(engine: Engine, options: EngineOptions, fabric: Fabric, laid: Laid, reason: str) -> Rerouted:
    routing = engine.route(fabric, options)
    proof = verify(fabric, routing, engine, threads=options.threads)
    changed = int(np.count_nonzero(routing.lft != laid.earlier))
    return Rerouted(routing, proof, laid.broken, changed, "fresh", reason)


@dataclass(frozen=True, eq=False)
class _Job:
    engine: Engine
    options: EngineOptions
    before: Published
    fabric: Fabric
    stability: Stability
    home: Published | None
    laid: Laid
    counts: dict[str, int] = field(default_factory=dict)

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
        sl = self.before.routing.sl
        return sl.ndim == 2 and len(sl) != self.before.fabric.switches

    def mend(self, certificate: Certificate | None, vl_bit: npt.NDArray[np.uint16]) -> tuple[Rerouted | None, str]:
        """Keep what holds and fill the holes, with a certificate like this one; or say why it cannot be had."""
        home = self.home
        frame = Frame.of(self.fabric, [p.fabric for p in (home, self.before) if p is not None])
        waits, with_home = self.waits(frame, certificate)
        start = deliver(self.laid.routing, self.fabric)
        if home is not None and with_home:
            start, self.counts["healed"] = heal(start, home, self.fabric)
        if self.stability is Stability.BALANCED:
            lay = np.full(len(self.fabric.lids), LAY_ANEW, np.uint8)
        else:
            lay = np.zeros(len(self.fabric.lids), np.uint8)
        mended = repair(
            frame.ground,
            self.traffic(frame, start, certificate, vl_bit),
            frame.holes(start.lft),
            waits=waits,
            load=np.zeros(len(frame.base.channels), np.int64),
            lay=lay,
        )
        self.counts.update(repaired=mended.filled, moved=mended.moved, searches=mended.visited)
        self.counts["relaid"] = int(np.count_nonzero(mended.done == LAID_ANEW))
        if (mended.done == FAILED).any():
            return None, f"{int((mended.done == FAILED).sum())} LIDs found no way without a credit loop"
        return self.judge(start, frame.gathered(mended.lft), certificate, mended)

    def waits(self, frame: Frame, certificate: Certificate | None) -> tuple[Waits, bool]:
        """What may wait for what, and whether all that home makes wait is among it."""
        if certificate is None:
            return Waits(np.zeros(0, np.uint16), np.zeros((0, len(frame.base.channels)), np.int32)), True
        home = self.home
        if home is None or home is self.before:
            both = [self.before]
        elif home.proof.waits is not None and _alike(home.proof, self.before.proof):
            both = [self.before, home]
        else:
            both = []
        found = known_waits(frame.base, both, threads=self.options.threads) if both else None
        if found is not None:
            return found, True
        alone = known_waits(frame.base, [self.before], threads=self.options.threads)
        assert alone is not None
        return alone, False

    def traffic(
        self, frame: Frame, start: Routing, certificate: Certificate | None, vl_bit: npt.NDArray[np.uint16]
    ) -> Traffic:
        by_switch = start.sl.ndim == 2 and not self.goes_by_lid
        sl = frame.spread(start.sl, 0) if by_switch else start.sl if start.sl.ndim == 1 else None
        return Traffic(
            sl=sl if sl is not None else np.zeros(start.lft.shape[1], np.uint8),
            vl_bit=vl_bit,
            replies=certificate is not None and certificate.strength == "reversible",
            endports_only=certificate is not None and certificate.scope == "endports",
        )

    def judge(
        self, start: Routing, lft: npt.NDArray[np.uint8], certificate: Certificate | None, mended: Repair
    ) -> tuple[Rerouted | None, str]:
        """Prove what came of it."""
        routing = replace(start, lft=lft, provenance=self.provenance())
        proof = prove(self.fabric, routing, threads=self.options.threads)
        if not proof.complete:
            return None, "what was repaired is not complete"
        if certificate is not None and not _as_strong(proof, certificate):
            return None, "what was repaired is not as safe as before"
        how: How = "relaid" if self.counts["relaid"] else "repaired" if mended.holes else "unchanged"
        if how == "unchanged" and self.counts.get("healed"):
            how = "home"
        return self.result(routing, proof, how, _reason(how)), ""

    def result(self, routing: Routing, proof: Proof, how: How, reason: str) -> Rerouted:
        changed = int(np.count_nonzero(routing.lft != self.laid.earlier))
        return Rerouted(routing, proof, self.laid.broken, changed, how, reason, dict(self.counts))

    def provenance(self) -> Provenance:
        made = self.before.routing.provenance
        options: Mapping[str, object] = {
            **made.options,
            "stability": self.stability.value,
            "rerouted_from": made.options.get("rerouted_from", made.fabric_digest),
        }
        return replace(made, options=options, fabric_digest=self.fabric.digest, seconds={})


def _alike(one: Proof, other: Proof) -> bool:
    return (one.strength, one.scope) == (other.strength, other.scope)


def _as_strong(proof: Proof, certificate: Certificate) -> bool:
    return proof.certificate is not None and (proof.strength == "reversible" or certificate.strength == "forward")


def _reason(how: How) -> str:
    return {
        "unchanged": "every entry holds",
        "home": "entries of home hold again",
        "repaired": "single entries were laid anew",
        "relaid": "whole columns were laid anew",
        "fresh": "",
    }[how]


def deliver(routing: Routing, fabric: Fabric) -> Routing:
    """The same tables, every LID delivered where it lives now."""
    here = np.flatnonzero(fabric.lids.switch >= 0)
    switch, port = fabric.lids.switch[here], fabric.lids.port[here]
    if (routing.lft[switch, here] == port).all():
        return routing
    lft = routing.lft.copy()
    lft[switch, here] = port
    return replace(routing, lft=lft)
