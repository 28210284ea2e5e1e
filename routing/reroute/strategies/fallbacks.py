"""Fallback steps for LIDs whose repaired paths would close a cycle with the allowed dependencies.

The table :data:`FALLBACKS` holds the order of the steps and the condition of each step.  The table also states whether
the columns that a step has repaired are kept if other columns still fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from routing._kernels.repair import PRUNE_THEN_REPAIR
from routing.cdg.certificate import Certificate, Scope
from routing.cdg.trace import trace_acyclic_cdg
from routing.fabric import NO_PORT
from routing.reroute.base_fabric import BaseNumbering
from routing.reroute.budget import LARGEST_SMALL_TABLE, Budget
from routing.reroute.context import RerouteContext
from routing.reroute.strategies.columns import Progress, repair_columns
from routing.reroute.strategies.make_room import make_room
from routing.reroute.translate import set_delivery_entries


@dataclass(frozen=True)
class Fallback:
    """A fallback step of a repair, and the condition under which it is tried.

    Attributes
    ----------
    step
        Function that tries to repair the columns that failed before.
    when
        Function that returns whether to try the step.  The function is called only while some columns fail.
    keeps_part
        Whether the columns that the step repaired are kept even if other columns still fail.
    """

    step: Callable[[RerouteContext, Progress], Progress]
    when: Callable[[Progress, Certificate, Budget], bool]
    keeps_part: bool


def with_fallbacks(context: RerouteContext, progress: Progress, certificate: Certificate, budget: Budget) -> Progress:
    """Try the fallback steps in their order until no column fails, and return the state after the last step.

    If more columns fail than :attr:`.context.RerouteContext.most_failed`, no step is tried.
    """
    if 0 < context.most_failed < len(progress.failed):
        return progress
    for fallback in KEEPING_SLS if context.keeps_sls else FALLBACKS:
        if not len(progress.failed):
            break
        if fallback.when(progress, certificate, budget):
            done = fallback.step(context, progress)
            progress = done if fallback.keeps_part or not len(done.failed) else progress.rejected(done)
    return progress


def use_sls_by_source(context: RerouteContext, progress: Progress) -> Progress:
    """Repair with SLs by source switch and LID, so that the paths to one LID can use several VLs."""
    tables = progress.tables
    sl = np.broadcast_to(tables.sl, tables.lft.shape).copy()
    done = repair_columns(context, replace(progress, tables=replace(tables, sl=sl)))
    return replace(done, statistics=replace(done.statistics, sls_by_source=True))


def _by_source_helps(progress: Progress, certificate: Certificate, _: Budget) -> bool:
    by_lid = progress.tables.service_levels.by_lid
    return by_lid and certificate.strength == "forward" and len(certificate.order) > 1


def _is_large(progress: Progress) -> bool:
    return progress.tables.lft.size > LARGEST_SMALL_TABLE


def _is_large_and_by_source_helps(progress: Progress, certificate: Certificate, budget: Budget) -> bool:
    return _is_large(progress) and _by_source_helps(progress, certificate, budget)


def prune_dependencies(context: RerouteContext, progress: Progress) -> Progress:
    """Remove the CDG edges that no path uses, on the VLs of the columns that failed.  Then repair these columns.

    If the repair of a column fails again, remove all entries of the column and compute new ones; each switch tries its
    previous entry first.  If this fails too, copy the column of another LID.
    """
    done = repair_columns(context, progress, PRUNE_THEN_REPAIR)
    return replace(done, statistics=replace(done.statistics, pruned_lids=len(progress.failed)))


def _may_rebuild(progress: Progress, _: Certificate, budget: Budget) -> bool:
    return len(progress.failed) <= budget.rebuilt_lids and progress.dependencies.position is None


def _may_rebuild_by_source(progress: Progress, certificate: Certificate, budget: Budget) -> bool:
    is_by_source = bool(progress.statistics.sls_by_source) and not _is_large(progress)
    return is_by_source and _may_rebuild(progress, certificate, budget)


def trace_dependencies(context: RerouteContext, progress: Progress) -> Progress:
    """Repair the columns that failed.  New paths must close no cycle with the CDG edges that the present entries use.

    A trace of the tables finds these CDG edges.  Earlier steps respected two more kinds of CDG edges: edges that only
    the baseline tables use, and edges that no path uses any more.  In this step, new paths may close cycles with both
    kinds of edges.
    """
    return _traced(context, progress, "all")


def trace_endports(context: RerouteContext, progress: Progress) -> Progress:
    """Repair the columns that failed.  New paths must close no cycle with the CDG edges that traffic from or to end
    ports uses.

    The new certificate then leaves out traffic between switches.
    """
    return _traced(context, progress, "endports")


def trace_without_failed(context: RerouteContext, progress: Progress) -> Progress:
    """Empty the LFT columns whose repair failed.  Rebuild them so that they close no cycle with the CDG edges of all
    other columns.
    """
    lft = progress.tables.lft.copy()
    lft[:, progress.failed] = NO_PORT
    tables = set_delivery_entries(replace(progress.tables, lft=lft), context.request.fabric)
    return _traced(context, replace(progress, tables=tables), "all")


def _traced(context: RerouteContext, progress: Progress, scope: Scope | None = None) -> Progress:
    assert progress.certificate is not None
    request, certificate = context.request, progress.certificate
    certificate = replace(certificate, scope=scope or certificate.scope)
    progress = replace(progress, is_traced=True, statistics=progress.statistics.plus(traces=1))
    dependencies = trace_acyclic_cdg(
        request.fabric, progress.tables, certificate, context.vl_bit, threads=request.options.threads
    )
    if dependencies is None:
        return progress
    load = None if progress.load is None else progress.load[progress.numbering.channel]
    numbering = BaseNumbering.of(request.fabric, [request.fabric])
    return repair_columns(
        context, replace(progress, numbering=numbering, dependencies=dependencies, certificate=certificate, load=load)
    )


def move_others_away(context: RerouteContext, progress: Progress) -> Progress:
    """Repair the columns that failed.  Paths to other LIDs that block the repair are moved away (:mod:`.make_room`)."""
    for _ in range(8):  # Each pass moves paths away for one column, and traces the tables again.
        made = make_room(context, progress) if len(progress.failed) else None
        if made is None:
            break
        progress = _traced(context, made)
        if len(progress.failed):  # This step may copy the new column to other LIDs of the same switch.
            pruned = prune_dependencies(context, progress)
            progress = progress.rejected(pruned) if len(pruned.failed) else pruned
    return progress


def _counts_switches(_: Progress, certificate: Certificate, __: Budget) -> bool:
    return certificate.scope == "all"


FALLBACKS = (
    # In large tables, SLs that depend on the source switch are tried first.  The other steps change more entries and
    # take longer.
    Fallback(use_sls_by_source, when=_is_large_and_by_source_helps, keeps_part=True),
    Fallback(prune_dependencies, when=_may_rebuild, keeps_part=False),
    Fallback(trace_dependencies, when=_counts_switches, keeps_part=True),
    Fallback(use_sls_by_source, when=_by_source_helps, keeps_part=True),
    Fallback(prune_dependencies, when=_may_rebuild_by_source, keeps_part=False),
    Fallback(trace_endports, when=lambda *_: True, keeps_part=True),
    Fallback(trace_without_failed, when=_counts_switches, keeps_part=True),
)
KEEPING_SLS = (FALLBACKS[1], *(Fallback(step, lambda *_: True, True) for step in (_traced, move_others_away)))
"""The fallback steps of a repair in which all packets keep their SLs."""
