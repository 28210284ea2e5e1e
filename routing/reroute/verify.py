"""Prove the tables that a re-route strategy found.  Tables are refused if their certificate is weaker than the previous
certificate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from routing._kernels.differing import count_differing
from routing.deadlock.proof import Proof, prove
from routing.numerals import count_noun
from routing.publish import Shortfall, VerifiedTables, admit, as_before, promised, weaker
from routing.reroute.context import RerouteContext
from routing.reroute.outcome import Candidate, Refusal
from routing.reroute.prove_changes import prove_changes
from routing.reroute.statistics import RerouteStatistics
from routing.reroute.strategies.columns import Progress
from routing.reroute.values import Rerouted, RerouteMethod, outside_baseline
from routing.tables import Provenance, Routing

_REASONS: Mapping[RerouteMethod, str] = {
    "unchanged": "every entry is valid",
    "baseline": "entries of the baseline tables are valid again",
    "repaired": "single entries were replaced",
    "rebalanced": "entries moved off the most loaded channels",
}


def verify(context: RerouteContext, progress: Progress, how: RerouteMethod, kept: float | None) -> Candidate | Refusal:
    """Prove repaired tables.  The tables are refused if their certificate is weaker than the certificate of the
    previous tables.

    ``how`` is the method by which the tables were found.  ``kept`` is their all-to-all rate divided by the all-to-all
    rate of the previous tables, or None if unknown.
    """
    certificate, precomputed = context.request.before.proof.certificate, context.precomputed
    order, same_order = None, False
    if progress.certificate is not None and not progress.is_traced:
        known = precomputed.dependencies if progress.numbering.base is precomputed.base else None
        same_order = (
            known is not None and precomputed.ordered and np.array_equal(known.order, progress.dependencies.order)
        )
        order = progress.dependencies.order.take(progress.numbering.channel, axis=1)
    routing, proof, statistics = _proven(context, progress.tables, order, progress.statistics, increasing=same_order)
    if progress.leaves_baseline:
        routing = outside_baseline(routing)
    demand = promised(context.request.engine)
    if progress.certificate is not None and certificate is not None:
        demand = as_before(certificate)
    admitted = admit(context.request.fabric, routing, proof, demand)
    if isinstance(admitted, Shortfall):
        lacks = "complete" if admitted is Shortfall.INCOMPLETE else "as safe as before"
        return Refusal(f"the repaired tables are not {lacks}", splits=progress.splits)
    found = _result(context, admitted, how, statistics)
    return Candidate(replace(found, kept=kept), progress.missing, context.restored or 0, splits=progress.splits)


def verify_new_sls(
    context: RerouteContext,
    tables: Routing,
    order: npt.NDArray[np.int32] | None,
    missing: int,
    statistics: RerouteStatistics,
    *,
    how: RerouteMethod = "repaired",
) -> Candidate | Refusal:
    """Prove tables with new SLs.  The tables are refused if their certificate is weaker, or covers less traffic, than
    the certificate of the previous tables.

    ``order`` (int32[V, C]) is a topological order of the dependencies of ``tables``, or None if it is unknown.
    ``missing`` is the number of entries that were missing, and ``how`` the method by which the tables were found.
    """
    certificate, weaker_tables = context.certificate, "the tables with new SLs are not as safe as before"
    if certificate is None:
        return Refusal(weaker_tables)
    routing, proof, statistics = _proven(context, tables, order, statistics)
    admitted = admit(context.request.fabric, routing, proof, as_before(certificate, scope=certificate.scope))
    if isinstance(admitted, Shortfall):
        return Refusal(weaker_tables)
    found = _result(context, admitted, how, statistics)
    return Candidate(found, missing, context.restored or 0)


def _proven(
    context: RerouteContext,
    tables: Routing,
    order: npt.NDArray[np.int32] | None,
    statistics: RerouteStatistics,
    *,
    increasing: bool = False,
) -> tuple[Routing, Proof, RerouteStatistics]:
    """Prove the tables.

    If ``order``, a topological order (int32[V, C]), is given, a proof that follows only the changed paths is tried
    first.  If that proof fails, all paths are traced.  ``increasing`` states that all dependencies of the previous
    tables follow ``order``.
    """
    request, routing, proof = context.request, replace(tables, provenance=_provenance(context)), None
    if order is not None:
        hops = context.precomputed.hops
        proof = prove_changes(
            request.fabric, routing, request.before, request.translated, order, increasing=increasing,
            hops=None if hops is None else hops.copy(), missing_pages=context.precomputed.missing_pages,
        )  # fmt: skip
        statistics = replace(statistics, proven_by_changes=proof is not None)
    if proof is None:
        proof = prove(request.fabric, routing, threads=request.options.threads)
    return routing, proof, statistics


def _result(
    context: RerouteContext, tables: VerifiedTables, how: RerouteMethod, statistics: RerouteStatistics
) -> Rerouted:
    """Return the result of the re-route, with its statistics, and the reason why method ``how`` was used."""
    translated = context.request.translated
    changed = count_differing(tables.routing.lft, translated.earlier)
    reason = _reason(context, how, tables.proof, statistics)
    return Rerouted(tables, translated.broken, changed, how, reason, statistics)


def _reason(context: RerouteContext, how: RerouteMethod, proof: Proof, statistics: RerouteStatistics) -> str:
    """Return one line that states how the tables were found, and in what respect their proof is weaker than the
    previous proof.
    """
    before, cut_off = context.request.before.proof, how == "unchanged" and context.request.translated.broken > 0
    took = ["entries towards cut-off devices were removed, all others are valid" if cut_off else _REASONS[how]]
    if statistics.prepared_sls:
        took = [f"{count_noun(statistics.prepared_sls, 'SL')} changed, so that the next step can move entries"]
    if statistics.fewest:
        took.append("the fewest possible changes")
    if statistics.changed_sls:
        by_source = ", now by source and LID" if statistics.sls_by_source else ""
        took.append(f"{count_noun(statistics.changed_sls, 'SL')} changed{by_source}")
    if statistics.vacated:
        took.append(f"{count_noun(statistics.vacated, 'dependency', 'dependencies')} vacated for later moves")
    if statistics.traces:
        took.append("some new paths may close a cycle with dependencies of earlier tables")
    return "; ".join([*took, *weaker(proof, before)])


def _provenance(context: RerouteContext) -> Provenance:
    """Return the provenance of the new tables.

    The provenance of the previous tables is copied.  The digest of the present fabric and the present stability replace
    the previous values.  The digest of the fabric before the first re-route is recorded, too.
    """
    made = context.request.before.routing.provenance
    options: Mapping[str, object] = {
        **made.options,
        "stability": context.request.stability.value,
        "rerouted_from": made.options.get("rerouted_from", made.fabric_digest),
    }
    return replace(made, options=options, fabric_digest=context.request.fabric.digest, seconds={})
