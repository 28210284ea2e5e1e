"""Take the LFTs of tables from scratch in a rebalance step, and change SLs in the step before if these LFTs need it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from routing._kernels.differing import count_differing
from routing.deadlock.per_lid_rounds import FEW_DRAINED
from routing.deadlock.schedule_search import find_schedule
from routing.publish import weaker
from routing.reroute.budget import LARGEST_SMALL_TABLE, Budget
from routing.reroute.context import RerouteContext
from routing.reroute.flow import flow_towards
from routing.reroute.outcome import Candidate, Refusal
from routing.reroute.rebalance import ENOUGH, in_frame, kept_share
from routing.reroute.sls_for_change import sls_for_change
from routing.reroute.strategies.columns import Progress
from routing.reroute.strategies.prepared_sls import may_change_sls
from routing.reroute.strategies.steps import NOTHING, tables_from_scratch, verified
from routing.reroute.verify import verify
from routing.tables import Routing

FROM_SCRATCH = 4
"""A step may use LFTs that the engine computes from scratch.  Such a step may change FROM_SCRATCH times as many entries
as other steps.  In fabrics with few switches, these LFTs often differ in several hundred entries, and no smaller change
restores the balance.
"""


def take_from_scratch(context: RerouteContext, in_use: Progress, most: int) -> Candidate | Refusal:
    """Take LFTs that are computed from scratch, if they raise the all-to-all rate by more than 2 % and change at most
    :data:`FROM_SCRATCH` * ``most`` entries.

    The safe rounds that lead to these LFTs may remove up to :data:`.FEW_DRAINED` entries for a while.  The SLs stay,
    because senders keep their SLs during the change.  If the new LFTs have a credit loop with these SLs, no safe rounds
    exist.  Then this step changes only SLs (:func:`_prepared`), if SLs may change, and the next step takes the LFTs.
    """
    request, now = context.request, in_use.tables
    fresh = tables_from_scratch(request) if now.lft.size <= LARGEST_SMALL_TABLE else None
    if fresh is None or (changed := count_differing(fresh.lft, now.lft)) > FROM_SCRATCH * most:
        return NOTHING
    numbering = in_use.numbering
    load = flow_towards(request.fabric, fresh, threads=request.options.threads)
    kept = kept_share(request.before, numbering.base.channels, in_frame(numbering, request.fabric, load))
    if kept is None or kept <= 1 + ENOUGH[1]:
        return NOTHING
    statistics = replace(in_use.statistics, missing=0, moved_for_balance=changed)
    done = replace(in_use, tables=replace(now, lft=fresh.lft), statistics=statistics)
    found = verified(context, done, kept, few=FEW_DRAINED)
    if isinstance(found, Refusal):
        return _prepared(context, in_use, fresh, kept) if may_change_sls(context, in_use) else found
    reason = "; ".join(["the LFTs were computed from scratch", *weaker(found.found.proof, request.before.proof)])
    return replace(found, found=replace(found.found, reason=reason))


def _prepared(context: RerouteContext, in_use: Progress, fresh: Routing, kept: float) -> Candidate | Refusal:
    """Change SLs so that the next step can take the LFTs of ``fresh``.

    This step also proves the tables of the next step.  Otherwise, it could change SLs for nothing.  ``kept`` is the
    all-to-all rate with the LFTs of ``fresh``, divided by the all-to-all rate of the tables in force.
    """
    request, tables, certificate = context.request, in_use.tables, in_use.certificate
    assert certificate is not None
    sl = sls_for_change(
        request.fabric, tables, fresh.lft, dependencies=in_use.dependencies, certificate=certificate,
        vl_bit=context.vl_bit, sl_of_vl=context.precomputed.sl_of_vl, visits=Budget().vl_visits,
    )  # fmt: skip
    if sl is None or not (changed := int(np.count_nonzero(sl != tables.sl))):
        return NOTHING
    with_sls = replace(tables, sl=sl, vls_needed=tables.vls)
    after = replace(with_sls, lft=fresh.lft)
    if isinstance(refused := verify(context, replace(in_use, tables=after), "rebalanced", kept), Refusal):
        return refused
    replies, threads = certificate.strength == "reversible", request.options.threads
    if find_schedule(request.fabric, with_sls, after, replies=replies, few=FEW_DRAINED, threads=threads) is None:
        return NOTHING
    statistics = replace(in_use.statistics, missing=0, prepared_sls=changed)
    return verified(context, replace(in_use, tables=with_sls, statistics=statistics, leaves_baseline=True), 1.0)
