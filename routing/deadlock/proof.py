"""Prove from tables alone that all traffic is delivered and that there is no credit loop.

The method follows Dally and Seitz (1987): routes are free of deadlock if their channel dependency graph is acyclic.
The dependencies on each VL are taken from the LFT, SL and SL2VL tables as written.  The dependencies are checked for
requests alone, and for requests with replies.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.cdg.acyclic import AcyclicCdg, Cdg
from routing.cdg.analysis import analyse
from routing.cdg.certificate import Certificate, Scope, Strength
from routing.cdg.graph import Cycle
from routing.counterparts import old_rows
from routing.deadlock.delivery import Pair, Unreachable, unreachable
from routing.deadlock.witness import CreditLoop, credit_loop
from routing.fabric import Fabric
from routing.numerals import count_noun
from routing.tables import Routing

__all__ = ["CreditLoop", "Pair", "Proof", "Unreachable", "prove"]


@dataclass(frozen=True, eq=False, repr=False)
class Proof:
    """Result of checking the tables of a fabric: delivery, and freedom from credit loops.

    Attributes
    ----------
    certificate
        Topological order of the CDG, which proves that there is no credit loop; None if there is a credit loop.
    strength, scope
        Whether the certificate covers replies, and whether the certificate covers switch-to-switch traffic; None
        without certificate.
    credit_loop
        A shortest loop of requests from or to CAs and routers; None if there is no such loop.
    reversible_loop
        A shortest loop of these requests and their replies.  None if there is no such loop, or without ``explain``.
    switch_loop
        A shortest loop that forms only with switch-to-switch traffic; the certificate then leaves out this traffic.
        None if the scope is "all", if there is no certificate, or without ``explain``.
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
        Every dependency that the certificate's traffic may have, with the certificate's topological order.  None if
        there is no certificate, or if VLs change from hop to hop.
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

    def __repr__(self) -> str:
        delivery = "complete" if self.complete else "incomplete"
        loops = "credit loop" if self.certificate is None else f"{self.strength} certificate, scope {self.scope}"
        return f"<{type(self).__name__}: {delivery}, {loops}, {count_noun(self.vls, 'VL')}>"

    @property
    def certified(self) -> bool:
        """Return whether the tables are complete within the connected components, and free of credit loops.

        The result covers at least requests from or to CAs and routers.  :attr:`strength` and :attr:`scope` name further
        traffic that is covered.
        """
        return self.complete and self.certificate is not None

    def cdg_on(self, fabric: Fabric) -> Cdg | None:
        """Return the CDG of the proven tables with the channel numbers of another version of the fabric.

        The result is None if the CDG is unknown, or if the CDG may lack dependencies that exist in the other version.
        A proof with the scope "endports" leaves out packets from switches to switches.  So dependencies may be lacking
        in two cases: a switch gets its first CA or router, or a CA or router gets the former LID of a switch.
        """
        if self.cdg is None or (self.scope == "endports" and _has_new_traffic(self.cdg.fabric, fabric)):
            return None
        return self.cdg.onto(fabric)


def _has_new_traffic(old: Fabric, fabric: Fabric) -> bool:
    """Return whether a switch of ``old`` has its first end port in ``fabric``, or an end port has the LID of a switch
    of ``old``.
    """
    row, count = old_rows(old, fabric), min(len(old.lids), len(fabric.lids))
    first = (row >= 0) & (fabric.terminals_at > 0) & (old.terminals_at[row] == 0)
    return bool(first.any() or ((old.lids.port[:count] == 0) & (fabric.lids.endport[:count] >= 0)).any())


def prove(fabric: Fabric, routing: Routing, *, threads: int = 2, explain: bool = True) -> Proof:
    """Check whether tables deliver all traffic and have no credit loop.

    Senders are all CAs, routers and switches.  Receivers are all LIDs that a switch delivers.  Credit loops that need
    switch-to-switch traffic are reported but do not prevent a certificate, because switches send no data to each other,
    and managers run on CAs.

    Parameters
    ----------
    fabric, routing
        The fabric and its tables.
    threads
        Worker threads of the kernels; the result is the same with any number.
    explain
        Whether to search for loops that do not prevent a certificate.  If False, ``reversible_loop`` and
        ``switch_loop`` are None; the verdict is the same.

    Raises
    ------
    TableError
        The shapes do not fit the fabric.

    Notes
    -----
    Cost: O(S L + V N) time for N possible CDG edges and V VLs; a 1000-switch fabric takes tens of milliseconds.  If
    there is a credit loop, two steps follow: a second pass over the routes to switches, without switch-to-switch
    traffic, and a search for a shortest credit loop.
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
        certificate=certificate, strength=None if certificate is None else certificate.strength,
        scope=None if certificate is None else certificate.scope, credit_loop=name(found.loop, replies=False),
        reversible_loop=name(found.reply_loop, replies=True),
        switch_loop=name(found.switch_loop, replies=reversible, scope="all"), unreachable=missing, hops=found.hops,
        complete=missing.pairs == missing.looping == missing.dropped == 0, vls=found.vls,
        seconds=time.perf_counter() - start, cdg=found.cdg,
    )  # fmt: skip
