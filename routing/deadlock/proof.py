"""Proof of tables, from the tables alone: all traffic is delivered, and there is no credit loop.

Method: Dally and Seitz (1987): routes are free of deadlock if their channel dependency graph is acyclic.  Dependencies
are taken from LFT, SL and SL2VL as written, per VL, for requests alone and for requests with their replies.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.cdg.acyclic import AcyclicCdg
from routing.cdg.analysis import analyse
from routing.cdg.certificate import Certificate, Scope, Strength
from routing.cdg.graph import Cycle
from routing.deadlock.delivery import Pair, Unreachable, unreachable
from routing.deadlock.witness import CreditLoop, credit_loop
from routing.fabric import Fabric
from routing.tables import Routing

__all__ = ["CreditLoop", "Pair", "Proof", "Unreachable", "prove"]


@dataclass(frozen=True, eq=False)
class Proof:
    """Result of the proof of a routing.

    Attributes
    ----------
    certificate
        Certificate that there is no credit loop; None if there is one.
    strength, scope
        Strength and scope of the certificate.
    credit_loop
        A shortest loop of requests from or to CAs and routers; None if there is none.
    reversible_loop
        A shortest loop of these requests and their replies; None if there is none, or without ``explain``.
    switch_loop
        A shortest loop that forms only with switch-to-switch traffic, because of which the scope is not "all".  None
        if the scope is "all", if there is no certificate, or without ``explain``.
    unreachable
        Undelivered traffic.
    hops
        uint8[S, L], hops between switches (0: at the switch that delivers; 254: 254 or more), 255 if not delivered.
    complete
        Whether every LID is delivered from every switch of its connected component, at the right port.
    vls
        Highest VL in use + 1.
    seconds
        Wall-clock time of the proof.
    cdg
        Channel dependency graph with every dependency that the certificate's traffic may have, and the certificate's
        order.  None if there is no certificate, or if VLs change from hop to hop.
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
    cdg: AcyclicCdg | None = None

    @property
    def certified(self) -> bool:
        """Whether the tables are complete within the connected components, and free of credit loops.

        This covers at least requests from or to CAs and routers; :attr:`strength` and :attr:`scope` name further
        traffic that is covered.
        """
        return self.complete and self.certificate is not None


def prove(fabric: Fabric, routing: Routing, *, threads: int = 2, explain: bool = True) -> Proof:
    """Check delivery and freedom from credit loops of a routing.

    Senders are all CAs, routers and switches; receivers are all LIDs that a switch delivers.  Credit loops that need
    switch-to-switch traffic are reported but do not prevent a certificate: switches send no data to each other, and
    the managers run on CAs.

    Parameters
    ----------
    fabric, routing
        The fabric and its tables.
    threads
        Worker threads of the kernels; the result is the same with any number.
    explain
        Whether to search for loops that do not prevent a certificate.  Without, ``reversible_loop`` and
        ``switch_loop`` are None whatever strength and scope are; the verdict is the same.

    Raises
    ------
    TableError
        The shapes do not fit the fabric.

    Notes
    -----
    Cost: O(S L + V edges) time; a 1000-switch fabric takes tens of milliseconds.  Only if there is a credit loop, a
    search for a shortest one follows, and a second pass over the routes to switches without switch-to-switch traffic.
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
        cdg=found.cdg,
    )
