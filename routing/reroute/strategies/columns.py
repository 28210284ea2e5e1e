"""Repair the columns with missing entries by the kernel, and keep what was reached for the next step."""

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
    """What the steps of a repair have reached so far.

    Attributes
    ----------
    tables
        The tables with the repaired columns.
    failed
        int64[N], LIDs whose columns could not be repaired.
    numbering
        The present fabric in the numbers of ``dependencies``.
    dependencies
        Dependencies that the repaired tables may use, with those of the repaired columns.
    certificate
        The certificate that the tables have to keep; None: credit loops are allowed.
    load
        int64[C], flow on each channel with all entries placed so far; None before the first step.
    missing
        Entries that were missing at first.
    splits
        Whether a step moved parts of a subtree to several VLs.
    is_traced
        Whether a trace of the tables gave the dependencies, so that their order is not that of the previous tables.
    statistics
        Figures of all steps, those of rejected steps included.
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
    statistics: RerouteStatistics = field(default_factory=RerouteStatistics)

    @classmethod
    def of(cls, context: RerouteContext) -> Progress:
        """Return the progress before the first step: the Up*/Down* order is repaired, and nothing else."""
        joined = context.reconnected
        return cls(
            tables=context.start,
            failed=np.zeros(0, np.intp),
            numbering=context.numbering,
            dependencies=context.dependencies if joined is None else joined,
            certificate=context.certificate,
            statistics=RerouteStatistics(restored=context.restored, order_changed=None if joined is None else True),
        )

    def rejected(self, step: Progress) -> Progress:
        """Return this progress after a step whose tables are not taken."""
        return replace(self, splits=self.splits or step.splits, statistics=step.statistics)


def repair_columns(context: RerouteContext, progress: Progress, treatment: int = KEEP_VALID_ENTRIES) -> Progress:
    """Repair as many columns as possible; those that failed before get a treatment of their own."""
    request, numbering, start = context.request, progress.numbering, progress.tables
    treatments = np.full(start.lft.shape[1], KEEP_VALID_ENTRIES, np.uint8)
    treatments[progress.failed] = treatment
    repaired = repair(
        numbering.repair_fabric,
        context.service_levels(numbering, progress.certificate, start),
        numbering.in_base_rows(start.lft),
        preferred=numbering.in_base_rows(request.translated.earlier),
        masks=progress.dependencies.masks,
        order=progress.dependencies.order,
        up_first=progress.dependencies.position is not None,
        load=load_before(context) if progress.load is None else progress.load,
        treatment=treatments,
        withdraw=progress.load is None,
    )
    if request.sl_is_per_source_lid:
        sl = start.sl
    else:
        sl = numbering.gathered(repaired.sl) if start.sl.ndim == 2 else repaired.sl
    return replace(
        progress,
        tables=replace(start, lft=numbering.gathered(repaired.lft), sl=sl),
        failed=np.flatnonzero(repaired.done == FAILED),
        dependencies=progress.dependencies.grown(repaired.masks, repaired.order),
        load=repaired.load,
        missing=repaired.missing if progress.load is None else progress.missing,
        splits=progress.splits or repaired.by_parts > 0,
        statistics=_with_figures(progress, repaired),
    )


def _with_figures(progress: Progress, repaired: Repaired) -> RerouteStatistics:
    """Return the statistics with the figures of one more step."""
    figures = progress.statistics.plus(
        repaired=repaired.filled,
        displaced=repaired.moved,
        visits=repaired.visited,
        copied_lids=int(np.count_nonzero(repaired.done == COPIED)),
        **{"split_subtrees": repaired.by_parts} if repaired.by_parts else {},
    )
    return replace(figures, missing=repaired.missing) if progress.load is None else figures
