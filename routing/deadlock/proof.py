"""The proof: from the tables alone, is everything delivered, and can credits ever run in a circle?

Method: Dally and Seitz (1987): routes are free of deadlock if no channel waits for itself over the dependencies that
the routes make.  Dependencies are taken from LFT, SL and SL2VL as written, per virtual lane, for requests alone and for
requests with their replies.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.deadlock.analysis import Cycle, analyse
from routing.deadlock.certificate import Certificate, Scope, Strength
from routing.deadlock.reach import Pair, Unreachable, unreachable
from routing.deadlock.witness import CreditLoop, credit_loop
from routing.fabric import Fabric
from routing.tables import Routing

__all__ = ["CreditLoop", "Pair", "Proof", "Unreachable", "prove"]


@dataclass(frozen=True, eq=False)
class Proof:
    """What was found out about a routing.

    Attributes
    ----------
    certificate
        Shows that there is no credit loop; None if there is one.
    strength, scope
        Those of the certificate.
    credit_loop
        A shortest loop that requests from or to CAs and routers close; None if there is none.
    reversible_loop
        A shortest loop that those requests and their replies close; None if there is none, or none was asked for.
    switch_loop
        What keeps the certificate from scope "all": a shortest loop that closes only with what switches send to
        switches.  None if scope is "all", if there is no certificate, or if none was asked for.
    unreachable
        What is not delivered.
    hops
        uint8[S, L], hops between switches as walked (0: at the switch that delivers; 254: that or more), 255 for none.
    complete
        Whether every LID is delivered from every switch of its connected part, at the right port.
    vls
        Highest VL in use + 1.
    seconds
        Time taken.
    waits
        uint16[slots], for each turn the VLs on which the certificate's traffic may take it, in the numbering of
        :class:`routing._kernels.slots.Slots`; the certificate's order is one of all these.  None if there is no
        certificate, or if VLs change on the way.
    """

    certificate: Certificate | None
    strength: Strength | None
    scope: Scope | None
    credit_loop: CreditLoop | None
    reversible_loop: CreditLoop | None
    switch_loop: CreditLoop | None
    unreachable: Unreachable
    hops: npt.NDArray[np.uint8]
    complete: bool
    vls: int
    seconds: float
    waits: npt.NDArray[np.uint16] | None = None

    @property
    def certified(self) -> bool:
        """Complete within the connected parts, and free of credit loops.

        That is of requests from or to CAs and routers, at least; :attr:`strength` and :attr:`scope` say of what else.
        """
        return self.complete and self.certificate is not None


def prove(fabric: Fabric, routing: Routing, *, threads: int = 2, explain: bool = True) -> Proof:
    """Put a routing to the proof.

    Counted as senders are all CAs, routers and switches; as receivers all LIDs that a switch delivers.  Of credit
    loops that need what switches send to switches the proof takes note, but they do not stand against it: nobody there
    sends data, and the managers sit on CAs.

    Parameters
    ----------
    fabric, routing
        The tables, and what they were made for.
    threads
        Of the kernels; changes nothing but the time.
    explain
        Whether loops are searched for that do not stand against the tables.  Without, ``reversible_loop`` and
        ``switch_loop`` are None whatever strength and scope are; the verdict is the same.

    Raises
    ------
    TableError
        The shapes do not fit the fabric.

    Notes
    -----
    Cost: O(S L + V turns) time; a 1000-switch fabric takes tens of milliseconds.  Only if there is a credit loop does
    a search follow, for the shortest one, and a second pass over the routes to switches, to which no switch sends then.
    """
    start = time.perf_counter()
    routing.check_shapes(fabric)
    found = analyse(fabric, routing, threads=threads, explain=explain)
    missing = unreachable(fabric, routing, found)

    def name(cycle: Cycle | None, *, replies: bool, scope: Scope = "endports") -> CreditLoop | None:
        return None if cycle is None else credit_loop(fabric, routing, cycle, replies=replies, scope=scope)

    certificate = found.certificate
    reversible = certificate is not None and certificate.strength == "reversible"
    return Proof(
        certificate=certificate,
        strength=None if certificate is None else certificate.strength,
        scope=None if certificate is None else certificate.scope,
        credit_loop=name(found.loop, replies=False),
        reversible_loop=name(found.reply_loop, replies=True),
        switch_loop=name(found.switch_loop, replies=reversible, scope="all"),
        unreachable=missing,
        hops=found.hops,
        complete=missing.pairs == missing.circling == missing.dropped == 0,
        vls=found.vls,
        seconds=time.perf_counter() - start,
        waits=found.waits,
    )
