"""Prove re-routed tables by tracing only the paths that changed."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from routing._kernels.check_delta import check_delta
from routing._kernels.shared_copy import pages_that_may_differ
from routing.cdg.acyclic import AcyclicCdg
from routing.cdg.trace import uniform_sl2vl, vl_bits
from routing.deadlock.delivery import Unreachable
from routing.deadlock.proof import Proof
from routing.fabric import Fabric
from routing.reroute.translate import TranslatedTables, reindex
from routing.reroute.values import Published
from routing.tables import Routing

NO_HOPS = 255


def prove_changes(
    fabric: Fabric,
    routing: Routing,
    before: Published,
    translated: TranslatedTables,
    order: npt.NDArray[np.int32],
    *,
    increasing: bool = False,
    hops: npt.NDArray[np.uint8] | None = None,
    missing_pages: npt.NDArray[np.uint8] | None = None,
) -> Proof | None:
    """Prove re-routed tables by checking ``order`` (int32[V, C]), which the repair claims to be a topological order of
    the channels.

    The previous proof covers each packet whose path and VL are unchanged: the packet arrives, and its dependencies are
    known.  So only the changed paths are followed hop by hop.  The dependencies of the previous proof are checked
    against ``order``, unless ``increasing`` states that the caller has checked them.

    ``hops`` (uint8[S, L]) is a copy of the numbers of hops in the previous proof, which this function may overwrite.
    If ``hops`` is None, the function makes a copy itself.

    ``missing_pages`` (uint8[N]) marks those of the N memory pages of the previous LFTs that have missing entries.  The
    new LFTs may share unchanged memory pages with the previous LFTs.  If they do, if ``missing_pages`` is given, and if
    no SL has changed, entries are compared only in two kinds of pages: the marked pages, and the pages written after
    the LFTs were copied.  The operating system reports which pages were written.  In all other cases, all entries are
    compared.

    The fabric must be connected.  Its switches and LIDs must all have been in the previous fabric, with the same
    numbers.  Devices that are gone neither send nor receive.

    Returns
    -------
    Proof or None
        A proof of the strength and scope of the previous proof.  None if the order does not prove the tables, or a
        condition above is not met; then a full proof is needed.
    """
    start = time.perf_counter()
    certificate, cdg = before.proof.certificate, before.proof.cdg_on(fabric)
    vls, was = uniform_sl2vl(routing), translated.routing
    if certificate is None or cdg is None or vls is None or not _is_plain(fabric, before, translated):
        return None
    sls = routing.service_levels
    previous_sls = replace(sls, table=np.broadcast_to(was.sl, routing.sl.shape))
    replies = certificate.strength == "reversible"
    if not vl_bits(vls).all() or (replies and not np.array_equal(previous_sls.table, routing.sl)):
        return None
    found = check_delta(
        fabric,
        (routing.lft, was.lft),
        (sls, previous_sls),
        vl_bit=vl_bits(vls),
        order=order,
        replies=replies,
        endports_only=certificate.scope == "endports",
        # The kernel overwrites `dependencies`.  So the kernel gets a copy, and the previous proof stays unchanged.
        dependencies=cdg.masks.copy(),
        hops=_hops(fabric, before, translated) if hops is None or not translated.in_place else hops,
        increasing=increasing,
        pages=_pages(routing, translated, missing_pages),
    )
    if found.lost or found.against_order:
        return None
    order = np.ascontiguousarray(order)
    return replace(
        before.proof,
        certificate=replace(certificate, order=order),
        hops=found.hops,
        cdg=AcyclicCdg(fabric, found.dependencies, order),
        seconds=time.perf_counter() - start,
    )


def _pages(
    routing: Routing, translated: TranslatedTables, missing: npt.NDArray[np.uint8] | None
) -> npt.NDArray[np.uint8] | None:
    """Return uint8[N], for each of the N memory pages of the LFTs whether its entries have to be compared.

    The result is None if the entries of all pages have to be compared.
    """
    was = translated.routing
    if missing is None or not translated.in_place:
        return None
    # There are three LFTs: `translated.earlier` has all previous entries, valid or not.  `was.lft` has 255 for the
    # previous entries that became invalid.  `routing.lft` has the new entries.  An entry that became invalid can be 255
    # in both `was.lft` and `routing.lft`, so that a comparison of these two would not find it.  So each of the two is
    # compared with `translated.earlier`.
    now, earlier = (pages_that_may_differ(lft, translated.earlier) for lft in (routing.lft, was.lft))
    if now is None or earlier is None or not np.array_equal(np.broadcast_to(was.sl, routing.sl.shape), routing.sl):
        return None
    return now | earlier | missing


def _is_plain(fabric: Fabric, before: Published, translated: TranslatedTables) -> bool:
    lids, vls, were = fabric.lids, uniform_sl2vl(translated.routing), uniform_sl2vl(before.routing)
    return (
        translated.nothing_new
        and not ((lids.endport >= 0) & (lids.switch < 0)).any()
        and fabric.component.max(initial=0) == 0
        and before.proof.complete
        and before.proof.unreachable == Unreachable()
        and vls is not None
        and were is not None
        and np.array_equal(vls, were)
    )


def _hops(fabric: Fabric, before: Published, translated: TranslatedTables) -> npt.NDArray[np.uint8]:
    """Return uint8[S, L], a copy of the hops of the previous paths in present rows and columns; 255 for LIDs that no
    switch delivers.
    """
    hops = before.proof.hops.copy()
    if translated.in_place:
        return hops
    column = np.where(fabric.lids.switch < 0, np.int64(-1), translated.column)
    return reindex(reindex(hops, translated.row, 0, NO_HOPS), column, 1, NO_HOPS)
