"""Check a routing before it is published: no routing is returned without its proof."""

from __future__ import annotations

from routing.deadlock.proof import Proof, prove
from routing.engines.base import Engine, Promise
from routing.errors import BrokenPromise
from routing.fabric import Fabric
from routing.tables import Routing


def verify(fabric: Fabric, routing: Routing, engine: Engine, *, threads: int = 2, explain: bool = True) -> Proof:
    """Prove the tables of an engine.

    The promise of freedom from credit loops covers traffic from or to CAs and routers.  An engine without a promise may
    have credit loops, which the proof then names.  Tables that do not deliver within a connected component are always
    an error.  ``explain`` is passed to :func:`~routing.deadlock.proof.prove`.

    Raises
    ------
    BrokenPromise
        The tables are incomplete, or have a credit loop although the engine promises freedom from credit loops.
    TableError
        The shapes do not fit the fabric.
    """
    proof = prove(fabric, routing, threads=threads, explain=explain)
    if not proof.complete:
        found = _one_line(proof.unreachable.describe())
        raise BrokenPromise(f"engine {engine.name} left out routes: {found}")
    if engine.promise is Promise.DEADLOCK_FREE and proof.credit_loop is not None:
        found = _one_line(proof.credit_loop.describe())
        raise BrokenPromise(f"engine {engine.name} promises freedom from credit loops, and there is a {found}")
    return proof


def _one_line(lines: list[str]) -> str:
    """Join a headline, which may end in a colon, and the lines below it."""
    return lines[0] + " " + "; ".join(line.strip() for line in lines[1:])
