"""Run the repair kernel on LFT columns with missing entries, and keep the state of a repair between its steps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.repair import COPIED, FAILED, KEEP_VALID_ENTRIES, Repaired, repair
from routing.cdg.acyclic import AcyclicCdg
from routing.cdg.certificate import Certificate
from routing.reroute.base_fabric import BaseNumbering
from routing.reroute.context import RerouteContext
from routing.reroute.loads import load_before
from routing.reroute.statistics import RerouteStatistics
from routing.tables import Routing


@dataclass(frozen=True, eq=False)
class Progress:
    """State of a repair after some of its steps.

    Attributes
    ----------
    tables
        The tables with the columns that are repaired so far.
    failed
        int64[N], LIDs whose columns could not be repaired.
    numbering
        The present fabric in the switch and channel numbers of ``dependencies``.
    dependencies
        CDG edges that repaired tables may use, including the edges that the repaired columns added.
    certificate
        The certificate that the tables have to keep; None: credit loops are allowed.
    load
        int64[C], flow on each channel by all entries set so far; None before the first step.
    missing
        Number of entries that were missing before the first step.
    splits
        Whether a step split a subtree and moved its parts to several VLs.
    is_traced
        Whether ``dependencies`` come from a trace of the tables.  If so, their topological order is not the order of
        the previous tables.
    leaves_baseline
        Whether the new tables get the mark :data:`routing.reroute.values.LEFT_BASELINE`, because ``dependencies`` may
        close cycles with the dependencies of the baseline tables.
    statistics
        Statistics of all steps, including steps whose tables were rejected.
    """

    tables: Routing
    failed: npt.NDArray[np.intp]
    numbering: BaseNumbering
    dependencies: AcyclicCdg
    certificate: Certificate | None
    load: npt.NDArray[np.int64] | None = None
    missing: int = 0
    splits: bool = False
    is_traced: bool = False
    leaves_baseline: bool = False
    statistics: RerouteStatistics = field(default_factory=RerouteStatistics)

    @classmethod
    def of(cls, context: RerouteContext) -> Progress:
        """Return the state before the first step: no entry is repaired.  The Up*/Down* order of the switches may be
        repaired already.
        """
        joined = context.reconnected
        return cls(
            tables=context.start, failed=np.zeros(0, np.intp), numbering=context.numbering,
            dependencies=context.dependencies if joined is None else joined, certificate=context.certificate,
            statistics=RerouteStatistics(restored=context.restored, order_changed=None if joined is None else True),
        )  # fmt: skip

    def rejected(self, step: Progress) -> Progress:
        """Return this state after a step whose tables were rejected.  Only the statistics of the step are added."""
        return replace(self, splits=self.splits or step.splits, statistics=step.statistics)


def repair_columns(context: RerouteContext, progress: Progress, treatment: int = KEEP_VALID_ENTRIES) -> Progress:
    """Repair as many columns with missing entries as possible.

    ``treatment`` selects how the columns that failed in an earlier step are repaired (see
    :func:`routing._kernels.repair.repair`).  All other columns keep their valid entries.
    """
    request, numbering, start = context.request, progress.numbering, progress.tables
    treatments = np.full(start.lft.shape[1], KEEP_VALID_ENTRIES, np.uint8)
    treatments[progress.failed] = treatment
    repaired = repair(
        numbering.repair_fabric, context.service_levels(numbering, progress.certificate, start),
        numbering.in_base_rows(start.lft), preferred=numbering.in_base_rows(request.translated.earlier),
        masks=progress.dependencies.masks, order=progress.dependencies.order,
        up_first=progress.dependencies.position is not None, treatment=treatments, withdraw=progress.load is None,
        load=load_before(context) if progress.load is None else progress.load,
        missing_pages=context.precomputed.missing_pages if request.translated.in_place else None,
        most_failed=context.most_failed,
    )  # fmt: skip
    if request.sl_is_per_source_lid:
        sl = start.sl
    else:
        sl = numbering.gathered(repaired.sl) if start.service_levels.by_switch else repaired.sl
    return replace(
        progress, tables=replace(start, lft=numbering.gathered(repaired.lft), sl=sl), load=repaired.load,
        failed=np.flatnonzero(repaired.done == FAILED), splits=progress.splits or repaired.by_parts > 0,
        dependencies=progress.dependencies.grown(repaired.masks, repaired.order),
        missing=repaired.missing if progress.load is None else progress.missing,
        statistics=_with_figures(progress, repaired),
    )  # fmt: skip


def _with_figures(progress: Progress, repaired: Repaired) -> RerouteStatistics:
    """Return the statistics of ``progress``, plus the counts of a run of the repair kernel (``repaired``)."""
    figures = progress.statistics.plus(
        repaired=repaired.filled,
        displaced=repaired.moved,
        visits=repaired.visited,
        copied_lids=int(np.count_nonzero(repaired.done == COPIED)),
        **{"split_subtrees": repaired.by_parts} if repaired.by_parts else {},
    )
    return replace(figures, missing=repaired.missing) if progress.load is None else figures
