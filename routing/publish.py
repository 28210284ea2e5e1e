"""The gate: the only place where tables are accepted for output, after a check of their proof.

:func:`admit` is the gate.  It alone constructs :class:`VerifiedTables`.  Files of ``ibnue route``, results of a
re-route, and tables that the plugin gives to OpenSM all are :class:`VerifiedTables`.
"""

from __future__ import annotations

import enum
from dataclasses import InitVar, dataclass

from routing.cdg.certificate import Certificate, Scope, Strength
from routing.deadlock.proof import Proof, prove
from routing.engines.base import Engine, Promise
from routing.errors import BrokenPromise
from routing.fabric import Fabric
from routing.tables import Routing

_GATE = object()
"""Object that :func:`admit` passes to the constructor of :class:`VerifiedTables`, which refuses any other object."""
_STRENGTHS: tuple[Strength | None, ...] = (None, "forward", "reversible")
_SCOPES: tuple[Scope | None, ...] = (None, "endports", "all")


class Shortfall(enum.Enum):
    """Reason why tables are rejected.

    If several reasons apply, :meth:`Demand.shortfall` returns the first of them in the order of this enumeration.
    """

    VLS = "more VLs than are allowed"
    INCOMPLETE = "undelivered traffic"
    CREDIT_LOOP = "a credit loop"
    STRENGTH = "a certificate that does not cover replies"
    SCOPE = "a certificate that does not cover traffic between switches"


@dataclass(frozen=True)
class Demand:
    """Minimum that a proof has to show before tables may be used.  Complete delivery is always required.

    Attributes
    ----------
    strength, scope
        Weakest strength (forward or reversible) and smallest scope (traffic of end ports, or of switches too) that the
        certificate may have.  With strength None, tables may have a credit loop.
    vls
        Maximum number of data VLs; None for no limit.
    """

    strength: Strength | None
    scope: Scope = "endports"
    vls: int | None = None

    def shortfall(self, routing: Routing, proof: Proof) -> Shortfall | None:
        """Return the reason why tables with this proof do not meet the demand; None if the tables meet the demand."""
        if self.vls is not None and routing.vls > self.vls:
            return Shortfall.VLS
        if not proof.complete:
            return Shortfall.INCOMPLETE
        if self.strength is None:
            return None
        if proof.certificate is None:
            return Shortfall.CREDIT_LOOP
        if _STRENGTHS.index(proof.strength) < _STRENGTHS.index(self.strength):
            return Shortfall.STRENGTH
        return Shortfall.SCOPE if _SCOPES.index(proof.scope) < _SCOPES.index(self.scope) else None


def promised(engine: Engine) -> Demand:
    """Return what the proof of an engine's tables must show.

    If the engine promises freedom from credit loops, the proof must show complete delivery and a certificate.
    Otherwise the proof must show complete delivery only.
    """
    return Demand("forward" if engine.promise is Promise.DEADLOCK_FREE else None)


def as_before(certificate: Certificate, *, scope: Scope = "endports") -> Demand:
    """Return what the proof of re-routed tables must show: a certificate at least as strong as the previous one.

    ``certificate`` is the certificate of the previous tables.  The new certificate need not cover traffic between
    switches, unless ``scope`` is "all".  If the previous certificate covers this traffic and the new one does not,
    :func:`weaker` reports it.
    """
    return Demand(certificate.strength, scope)


def weaker(proof: Proof, before: Proof) -> list[str]:
    """Return one text for each respect in which the proof of re-routed tables is weaker than the previous proof.

    The texts are for the log and the summary.
    """
    found = []
    if proof.scope == "endports" and before.scope == "all":
        found.append("traffic between switches may close a loop")
    if before.certificate is not None and proof.certificate is None:
        found.append("no tables without a credit loop were found, and the engine does not promise such tables")
    return found


@dataclass(frozen=True, eq=False)
class VerifiedTables:
    """Tables with a proof that meets a demand.  Only :func:`admit` constructs such tables, and no other tables may be
    written.
    """

    fabric: Fabric
    routing: Routing
    proof: Proof
    demand: Demand
    token: InitVar[object]

    def __post_init__(self, token: object) -> None:
        if token is not _GATE:
            raise TypeError("only routing.publish.admit constructs verified tables")


def admit(fabric: Fabric, routing: Routing, proof: Proof, demand: Demand) -> VerifiedTables | Shortfall:
    """Return the tables as :class:`VerifiedTables` if their proof meets the demand, else the reason why the proof does
    not meet the demand.
    """
    return demand.shortfall(routing, proof) or VerifiedTables(fabric, routing, proof, demand, _GATE)


def verify(
    fabric: Fabric, routing: Routing, engine: Engine, *, threads: int = 2, explain: bool = True
) -> VerifiedTables:
    """Prove that the tables of an engine deliver everywhere and keep the engine's promise.

    The promise of freedom from credit loops covers traffic from or to CAs and routers.  Tables of an engine without
    this promise may have a credit loop, which the proof then names.  Within each connected component, the tables must
    deliver all packets.  ``explain`` is a parameter of :func:`~routing.deadlock.proof.prove`.

    Raises
    ------
    BrokenPromise
        The tables are incomplete, or have a credit loop although the engine promises freedom from credit loops.
    TableError
        The shapes do not fit the fabric.
    """
    proof = prove(fabric, routing, threads=threads, explain=explain)
    found = admit(fabric, routing, proof, promised(engine))
    if isinstance(found, VerifiedTables):
        return found
    if found is Shortfall.INCOMPLETE:
        raise BrokenPromise(f"engine {engine.name} did not route everything: {_one_line(proof.unreachable.describe())}")
    loop = [found.value] if proof.credit_loop is None else proof.credit_loop.describe()
    raise BrokenPromise(f"engine {engine.name} promises freedom from credit loops, but there is a {_one_line(loop)}")


def _one_line(lines: list[str]) -> str:
    """Join a headline and the indented lines below it into one line."""
    return lines[0] + " " + "; ".join(line.strip() for line in lines[1:])
