"""Decide whether tables have a credit loop, although their files may leave SLs or VLs open.  The answer is "none",
"yes" or "unknown".

The verdict must not depend on unknown values.  Suppose that all packets share one VL.  Then this VL has every
dependency that packets can have with the real SLs and VLs.  So if the dependencies on this VL are acyclic, the tables
are free of credit loops for any SLs and VLs.  If these dependencies have a loop, the loop is certain only if all
packets really share one VL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from routing.deadlock.proof import Proof, prove
from routing.deadlock.witness import CreditLoop
from routing.fabric import Fabric
from routing.tables import DATA_VLS, Routing, Unknown, identity_sl2vl

Answer = Literal["none", "yes", "unknown"]
"""Whether there is a credit loop: "none", "yes", or "unknown"."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """Findings about tables of which some values may be unknown.

    Attributes
    ----------
    loops
        Whether there are credit loops of requests from or to CAs and routers.
    proof
        If ``any_sl`` is true: the proof of the tables with all packets on one VL.  If ``loops`` is "unknown": a check
        of the tables with assumed SLs and VLs, which does not prove whether there is a credit loop.  In all other
        cases: the proof of the tables themselves, in which the VL of each packet is known.
    any_sl
        Whether ``proof`` assumes that all packets share one VL, because SLs or SL2VL tables are unknown.  A certificate
        of such a proof is valid for any SLs and SL2VL tables.
    possible_loop
        If ``loops`` is "unknown", a credit loop that may exist.
    assumed
        If ``loops`` is "unknown", the assumed value of each unknown item; else empty.
    """

    loops: Answer
    proof: Proof
    any_sl: bool = False
    possible_loop: CreditLoop | None = None
    assumed: Mapping[Unknown, str] = field(default_factory=dict)

    @property
    def certified(self) -> bool:
        """Return whether the tables are complete and certainly free of credit loops."""
        return self.proof.complete and self.loops == "none"

    @property
    def vls(self) -> int | None:
        """Return the highest VL in use + 1; None if unknown."""
        return None if self.any_sl or self.loops == "unknown" else self.proof.vls


def decide(fabric: Fabric, routing: Routing, *, threads: int = 2, explain: bool = True) -> Verdict:
    """Decide whether tables have a credit loop, where some values of the tables may only be assumed.

    Parameters
    ----------
    fabric, routing
        The fabric and its tables, whose provenance lists what was assumed.
    threads, explain
        See :func:`~routing.deadlock.proof.prove`.

    Raises
    ------
    TableError
        The shapes do not fit the fabric.

    Notes
    -----
    Cost: the cost of up to two proofs.
    """
    if is_known(routing):
        proof = prove(fabric, routing, threads=threads, explain=explain)
        return Verdict("yes" if proof.certificate is None else "none", proof)
    mixed = prove(fabric, on_one_vl(routing), threads=threads, explain=explain)
    if mixed.certificate is not None:
        return Verdict("none", mixed, any_sl=True)
    proof, assumed = prove(fabric, routing, threads=threads, explain=explain), routing.provenance.assumptions
    return Verdict("unknown", proof, possible_loop=proof.credit_loop or mixed.credit_loop, assumed=assumed)


def is_known(routing: Routing) -> bool:
    """Return whether the VL of every packet is known.

    The VLs are known if nothing was assumed, or if only SLs were assumed and every SL uses the same VL.
    """
    assumed = routing.provenance.assumptions
    return not assumed or (set(assumed) == {"SL"} and _is_one_vl(routing))


def worst_case(routing: Routing) -> Routing:
    """Return tables for the worst case of unknown SLs and VLs.

    If the VLs of all packets are known, the result is ``routing`` itself.  Otherwise all packets share one VL.  If
    these tables are free of credit loops, tables with the real SLs and VLs are free of credit loops, too.
    """
    return routing if is_known(routing) else on_one_vl(routing)


def on_one_vl(routing: Routing) -> Routing:
    """Return the tables with SL 0 for every path and VL 0 for every SL."""
    sl = np.zeros(routing.lft.shape[1], np.uint8)
    return replace(routing, sl=sl, sl2vl=identity_sl2vl(1), vls=1, vls_needed=1)


def _is_one_vl(routing: Routing) -> bool:
    """Return whether every SL uses the same VL at every port, so that SLs make no difference."""
    vl = routing.sl2vl.reshape(-1)
    return bool((vl == vl[0]).all() and vl[0] < DATA_VLS)
