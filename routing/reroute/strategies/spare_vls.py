"""Repair tables in which VLs change along a path: changed paths get SLs with which packets keep one spare VL."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from routing._kernels.assign_vls import NO_VL
from routing.cdg.trace import vl_bits
from routing.engines.base import EngineOptions
from routing.engines.vl_assignment import vls_allowed
from routing.reroute.budget import Budget
from routing.reroute.context import RerouteContext
from routing.reroute.outcome import Candidate, Refusal
from routing.reroute.sl_assignment import SLS, reassign_sls
from routing.reroute.strategies.balance import balanced
from routing.reroute.strategies.columns import Progress, repair_columns
from routing.reroute.strategies.repair import method_of
from routing.reroute.verify import verify_new_sls
from routing.tables import DATA_VLS, Routing

BUDGET = Budget(changes=12)
"""Limits of the repair.  More entries may move than in other repairs, because :mod:`.further_moves` does not run
afterwards.
"""


def repair_on_spare_vls(context: RerouteContext) -> Candidate | Refusal:
    """Fill the missing entries, balance the tables, and move the changed paths to spare VLs.

    On a spare VL, all packets keep this VL along their whole path.  So a changed path on a spare VL can close a credit
    loop only with other paths on the same VL.  Refuse if there are not enough spare VLs.
    """
    request, certificate, free = context.request, context.certificate, context.without_certificate()
    earlier, fabric = request.translated.routing, request.fabric
    vl = _spare_vl_of_sl(earlier, request.options)
    spare = np.flatnonzero(vl < DATA_VLS)
    if certificate is None or request.sl_is_per_source_lid or not len(spare):
        return Refusal("VLs change along a path, and no VL is spare")
    done = balanced(free, repair_columns(free, Progress.of(free)), BUDGET)
    progress, how = done.progress, method_of(free, done.progress, done.moves)
    sl_of_vl = np.full(1 + vl[spare].max(), NO_VL, np.uint8)
    sl_of_vl[vl[spare]] = spare
    tables = replace(progress.tables, sl2vl=np.where(vl < DATA_VLS, vl, earlier.sl2vl))
    old, tables = (replace(one, sl=one.service_levels.with_rows(fabric.switches)) for one in (earlier, tables))
    order = np.tile(np.arange(len(fabric.channels), dtype=np.int32), (len(sl_of_vl), 1))
    assigned = None if len(progress.failed) else reassign_sls(
        fabric, tables, old, replace(certificate, order=order), vl_bits(vl),
        sl_of_vl=sl_of_vl, threads=request.options.threads, budget=BUDGET,
    )  # fmt: skip
    if assigned is None:
        return Refusal("VLs change along a path, and the spare VLs do not suffice")
    tables, _ = assigned
    # If no path uses an SL, the SL keeps its earlier VLs.  So a spare VL that no packet uses does not raise the number
    # of VLs of the tables.
    sl2vl = np.where(np.isin(np.arange(SLS), tables.sl), tables.sl2vl, earlier.sl2vl)
    vls = 1 + int(sl2vl.max(initial=0, where=sl2vl < DATA_VLS))
    statistics = replace(progress.statistics, changed_sls=int(np.count_nonzero(tables.sl != old.sl)))
    tables = replace(tables, sl2vl=sl2vl, vls=vls, vls_needed=vls)
    return verify_new_sls(context, tables, None, progress.missing, statistics, how=how)


def _spare_vl_of_sl(routing: Routing, options: EngineOptions) -> npt.NDArray[np.uint8]:
    """Return uint8[16], the spare VL that each SL gets; 15 if the SL gets no spare VL.

    A VL is spare if the options allow the VL, and no packet that changes its VL along the path uses it.  If an SL
    in use has the same VL at all ports, and this VL is spare, the SL keeps this VL.  The other spare VLs are given to
    SLs that are not in use.
    """
    rows = routing.sl2vl.reshape(-1, SLS)
    in_use = np.isin(np.arange(SLS), routing.sl)
    changes = in_use & (rows != rows[0]).any(axis=0)
    most = options.port_vls if options.vls == "min" else options.first_vl + vls_allowed(options)
    spare = np.setdiff1d(np.arange(options.first_vl, most), rows[:, changes])
    vl = np.where(in_use & ~changes & np.isin(rows[0], spare), rows[0], DATA_VLS).astype(np.uint8)
    unused = np.flatnonzero(~in_use[options.first_vl :]) + options.first_vl
    for sl, own in zip(unused.tolist(), np.setdiff1d(spare, vl).tolist(), strict=False):
        vl[sl] = own
    return vl
