"""Strategy that changes the fewest entries.  The strategy ignores CDG cycles at first, and then assigns SLs so that the
tables have no cycle.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from routing.fabric import NO_PORT
from routing.reroute.budget import Budget
from routing.reroute.context import RerouteContext
from routing.reroute.minimal_change import fill_with_fewest_changes, remote_pairs
from routing.reroute.outcome import Candidate, Refusal
from routing.reroute.sl_assignment import reassign_sls
from routing.reroute.statistics import RerouteStatistics
from routing.reroute.verify import verify_new_sls


def change_fewest_entries(context: RerouteContext, budget: Budget) -> Candidate | Refusal:
    """Fill the missing entries with the fewest changes, and choose SLs for the paths that changed.

    Refuse if the previous tables have no certificate, if too many entries are missing, or if the VLs do not suffice to
    avoid CDG cycles.
    """
    request, start, certificate = context.request, context.start, context.certificate
    if certificate is None:
        return Refusal("the previous tables have no certificate")
    if np.count_nonzero((start.lft == NO_PORT) & remote_pairs(request.fabric)) > budget.missing_entries:
        return Refusal("too many entries are missing")
    lft = fill_with_fewest_changes(request.fabric, start.lft)
    assigned = reassign_sls(
        request.fabric, replace(start, lft=lft), request.translated.routing, certificate, context.vl_bit,
        sl_of_vl=context.precomputed.sl_of_vl, threads=request.options.threads, budget=budget,
    )  # fmt: skip
    if assigned is None:
        return Refusal("the VLs do not suffice for the paths that changed")
    tables, order = assigned
    filled, changed = start.lft == NO_PORT, lft != start.lft
    missing = int(np.count_nonzero(filled & changed))
    statistics = RerouteStatistics(
        restored=context.restored, missing=missing, repaired=missing,
        displaced=int(np.count_nonzero(~filled & changed)),
        changed_sls=int(np.count_nonzero(tables.sl != np.broadcast_to(start.sl, tables.sl.shape))),
        sls_by_source=start.service_levels.by_lid and not tables.service_levels.by_lid, fewest=True,
    )  # fmt: skip
    return verify_new_sls(context, tables, order, missing, statistics)
