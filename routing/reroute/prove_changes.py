"""The proof of tables of which most is proven already: what has not changed need not be walked again."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from routing._kernels.recheck import recheck
from routing.deadlock.cdg import common_lanes, vl_bits
from routing.deadlock.proof import Proof
from routing.deadlock.reach import Unreachable
from routing.fabric import Fabric
from routing.reroute.ground import moved_masks
from routing.reroute.translate import Laid
from routing.reroute.values import Published
from routing.tables import Routing


def prove_changes(
    fabric: Fabric,
    routing: Routing,
    before: Published,
    laid: Laid,
    order: npt.NDArray[np.int32],
    *,
    turns_climb: bool = False,
) -> Proof | None:
    """A proof by an order (int32[V, C]) in which everything is said to climb; None where that does not show it.

    Packets whose way and VL are what they were arrived before, and took only turns that the proof of before allowed
    for.  So it is enough to walk all others, hop by hop, and to see that these turns climb in the new order, too,
    unless that was seen before (``turns_climb``).  The repair's word is taken for nothing.

    It is for fabrics in one part whose switches and LIDs are all in place, and gives a certificate of the strength and
    scope of before.
    """
    start = time.perf_counter()
    certificate, waits = before.proof.certificate, before.proof.waits
    lanes, was = common_lanes(routing), laid.routing
    if certificate is None or waits is None or lanes is None or not _is_plain(fabric, before, laid):
        return None
    levels_were = np.ascontiguousarray(np.broadcast_to(was.sl, routing.sl.shape))
    replies = certificate.strength == "reversible"
    if not vl_bits(lanes).all() or (replies and not np.array_equal(levels_were, routing.sl)):
        return None
    found = recheck(
        fabric,
        (routing.lft, was.lft),
        (routing.sl, levels_were),
        vl_bit=vl_bits(lanes),
        order=order,
        replies=replies,
        endports_only=certificate.scope == "endports",
        waits=moved_masks(waits, before.fabric, fabric),
        hops=before.proof.hops,
        turns_climb=turns_climb,
    )
    if found.lost or found.not_climbing:
        return None
    return replace(
        before.proof,
        certificate=replace(certificate, order=np.ascontiguousarray(order)),
        hops=found.hops,
        waits=found.waits,
        seconds=time.perf_counter() - start,
    )


def _is_plain(fabric: Fabric, before: Published, laid: Laid) -> bool:
    return (
        laid.in_place
        and fabric.component.max(initial=0) == 0
        and before.proof.complete
        and before.proof.unreachable == Unreachable()
        and bool((laid.routing.sl2vl == before.routing.sl2vl).all())
    )
