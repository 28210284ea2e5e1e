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
from routing.reroute.translate import Laid, take
from routing.reroute.values import Published
from routing.tables import Routing

NO_HOPS = 255


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

    It is for fabrics in one part whose switches and LIDs were all there before, in the same places, and gives a
    certificate of the strength and scope of before.  What is gone sends nothing and is sent nothing.
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
        hops=_hops(fabric, before, laid),
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
    lids, lanes, were = fabric.lids, common_lanes(laid.routing), common_lanes(before.routing)
    return (
        laid.nothing_new
        and not (fabric.terminals_at[before.fabric.terminals_at[laid.row] == 0]).any()
        and not ((lids.endport >= 0) & (lids.switch < 0)).any()
        and fabric.component.max(initial=0) == 0
        and before.proof.complete
        and before.proof.unreachable == Unreachable()
        and lanes is not None
        and were is not None
        and np.array_equal(lanes, were)
    )


def _hops(fabric: Fabric, before: Published, laid: Laid) -> npt.NDArray[np.uint8]:
    """uint8[S, L], the hops of before in the rows and columns of now; 255 to LIDs that nobody delivers."""
    hops = before.proof.hops
    if laid.in_place:
        return hops
    column = np.where(fabric.lids.switch < 0, np.int64(-1), laid.column)
    return take(take(hops, laid.row, 0, NO_HOPS), column, 1, NO_HOPS)
