"""Data that every strategy of a re-route starts from.  These data are computed once for each fault."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from routing._kernels.assign_vls import NO_VL
from routing._kernels.repair import ServiceLevelRules
from routing.cdg.acyclic import AcyclicCdg
from routing.cdg.certificate import Certificate
from routing.cdg.trace import uniform_sl2vl, vl_bits
from routing.engines.base import Engine, EngineOptions, Promise
from routing.fabric import Fabric
from routing.reroute.base_fabric import BaseNumbering
from routing.reroute.baseline import restore_baseline_entries
from routing.reroute.budget import LARGEST_SMALL_TABLE
from routing.reroute.cut_bounds import lost_link_bound
from routing.reroute.outcome import Refusal
from routing.reroute.precomputed import Precomputed, allowed_dependencies
from routing.reroute.translate import TranslatedTables, same_devices, set_delivery_entries
from routing.reroute.updown_order_repair import reconnect_order
from routing.reroute.values import Published, Stability
from routing.tables import Routing, ServiceLevels, SlForm

NO_VLS = np.zeros(16, np.uint16)
"""VLs of each of the 16 SLs, as bits, for a repair that may close credit loops.  All are 0, because such a repair keeps
no CDG.
"""
LEAST_FAILED, PART_FAILED = 2, 8
"""Two numbers from which :attr:`RerouteContext.most_failed`, a limit of LFT columns, is computed.  The limit is
LEAST_FAILED or, if this is more, the number of broken entries divided by PART_FAILED.
"""
VLS_CHANGE = Refusal("VLs change along a path")
"""Reason why most strategies cannot repair the previous tables: a packet may change its VL from hop to hop."""


@dataclass(frozen=True, eq=False)
class Request:
    """Request for a re-route: the tables in force, and the fabric for which they are to be re-routed.

    Attributes
    ----------
    engine, options, before, fabric, stability, baseline
        The arguments of :func:`routing.reroute.run.reroute`.
    translated
        The previous tables in the rows and columns of ``fabric``.  Entries that became invalid are 255.
    """

    engine: Engine
    options: EngineOptions
    before: Published
    fabric: Fabric
    stability: Stability
    baseline: Published | None
    translated: TranslatedTables

    @property
    def sl_is_per_source_lid(self) -> bool:
        """Return whether the SLs of the previous tables depend on the LID of the sender, not only on its switch."""
        return self.before.routing.service_levels.by_source_lid

    def refusal(self) -> Refusal | None:
        """Return the reason why the previous tables cannot be repaired; None if they can."""
        certificate, row = self.before.proof.certificate, uniform_sl2vl(self.before.routing)
        if certificate is None:
            promised = self.engine.promise is Promise.DEADLOCK_FREE
            return Refusal("the previous tables have no certificate") if promised else None
        if row is None or self.before.proof.cdg is None:
            return VLS_CHANGE
        return Refusal("SLs are by the LID of the sender") if self.sl_is_per_source_lid else None


@dataclass(frozen=True, eq=False)
class RerouteContext:
    """Data that every strategy of a re-route starts from.

    Attributes
    ----------
    request
        The tables in force, the present fabric, and the options.
    precomputed
        Data computed before the fault, from the previous and the baseline tables alone.
    numbering
        Map from the present fabric to the switch and channel numbers of an earlier fabric.
    certificate
        The certificate of the previous tables, which the new tables have to keep; None: credit loops are allowed.
    vl_bit
        uint16[16], 1 << VL of each SL.
    dependencies
        CDG edges that the new tables may use, with a topological order.
    with_baseline
        Whether ``dependencies`` include the dependencies of the baseline tables (the tables of the fault-free fabric).
    start
        The previous entries that are still valid.  After :meth:`prepared`, valid LFT columns of the baseline tables are
        restored if ``with_baseline`` is true.
    restored
        Number of entries restored from the baseline; None if no restoration was tried.
    reconnected
        ``dependencies`` after a repair of the Up*/Down* order of the switches; None if the order needs no repair, or no
        repair is possible.
    by_parts
        Whether parts of a subtree may take different SLs.
    keeps_sls
        Whether all packets keep their SLs.
    """

    request: Request
    precomputed: Precomputed
    numbering: BaseNumbering
    certificate: Certificate | None
    vl_bit: npt.NDArray[np.uint16]
    dependencies: AcyclicCdg
    with_baseline: bool
    start: Routing
    restored: int | None = None
    reconnected: AcyclicCdg | None = None
    by_parts: bool = True
    keeps_sls: bool = False

    @classmethod
    def of(cls, request: Request, precomputed: Precomputed) -> RerouteContext:
        """Compute the data from which all strategies start, before any entry is restored from the baseline tables.

        :meth:`Request.refusal` must have returned None or :data:`VLS_CHANGE`.  After any other refusal, no repair is
        possible.
        """
        earlier = [tables.fabric for tables in (request.baseline, request.before) if tables is not None]
        numbering = BaseNumbering.of(request.fabric, earlier)
        certificate, row = request.before.proof.certificate, uniform_sl2vl(request.before.routing)
        if certificate is None or row is None:
            dependencies, with_baseline, vl_bit = AcyclicCdg.unchecked(numbering.base), True, NO_VLS
        else:
            found, with_baseline = _dependencies(request, precomputed, numbering)
            assert found is not None
            dependencies, vl_bit = found, vl_bits(row)
        start = request.translated.routing
        return cls(request, precomputed, numbering, certificate, vl_bit, dependencies, with_baseline, start)

    @cached_property
    def lost_link_bound(self) -> float:
        """Return a lower bound of the highest utilisation that any tables can have, because links have been lost.

        See :func:`routing.reroute.cut_bounds.lost_link_bound`.
        """
        return lost_link_bound(self.numbering)

    @property
    def most_failed(self) -> int:
        """Return the limit of LFT columns that the first step of a repair may fail to repair; 0: no limit.

        If more columns fail, the whole repair is given up.  The limit exists only for repairs of large tables that keep
        all SLs.  Such a repair is tried after other tables have been found.  If many columns fail, its further steps
        take long, and almost never fill all columns.
        """
        has_limit = self.keeps_sls and self.start.lft.size > LARGEST_SMALL_TABLE
        return max(LEAST_FAILED, self.request.translated.broken // PART_FAILED) if has_limit else 0

    def prepared(self) -> RerouteContext:
        """Return the data of the re-route after two preparations.

        LFT columns of the baseline tables are restored where they are valid, and the Up*/Down* order of the switches is
        repaired.
        """
        joined = reconnect_order(self.numbering, self.dependencies)
        return replace(self._restored(), reconnected=None if joined is self.dependencies else joined)

    def without_certificate(self) -> RerouteContext:
        """Return the data of the re-route for a repair without a certificate, which may close credit loops."""
        free = AcyclicCdg.unchecked(self.numbering.base)
        found = replace(self, certificate=None, vl_bit=NO_VLS, dependencies=free, with_baseline=True, reconnected=None)
        return found._restored()

    def _restored(self) -> RerouteContext:
        """Return the data of the re-route with LFT columns restored from the baseline tables.

        A column is restored if it is valid and if the dependencies of the baseline tables are allowed.
        """
        request, baseline = self.request, self.request.baseline
        start = request.translated.routing
        # The call of set_delivery_entries makes the last entry of each path name the port of the LID's owner.  The call
        # is skipped if the last entries are right already: the previous tables are complete, and all rows and columns
        # stay the same.  The call takes long in large tables, because the last entries are spread over all pages of
        # memory.
        if not (request.translated.in_place and request.before.proof.complete):
            start = set_delivery_entries(start, request.fabric)
        if baseline is None or baseline is request.before or not self.with_baseline:
            return replace(self, start=start, restored=None)
        in_place = request.translated.in_place and same_devices(baseline.fabric, request.fabric)
        differing_lids = self.precomputed.differing_lids if in_place else None
        start, restored = restore_baseline_entries(start, baseline, request.fabric, differing_lids)
        return replace(self, start=start, restored=restored)

    def service_levels(
        self, numbering: BaseNumbering, certificate: Certificate | None, tables: Routing
    ) -> ServiceLevelRules:
        """Return the rules by which the repair kernel derives the CDG edges of a path.

        The rules hold the SLs of ``tables`` and the VL of each SL.  They also state whether ``certificate`` covers
        replies and switch-to-switch traffic.
        """
        request = self.request
        sl, known = tables.service_levels, self.precomputed.sl_of_vl
        sl_of_vl = np.full_like(known, NO_VL) if self.keeps_sls else known
        if sl.by_source_lid:
            sl = ServiceLevels(np.zeros(tables.lft.shape[1], np.uint8), SlForm.BY_LID)
        elif sl.by_switch:
            sl = replace(sl, table=numbering.spread(sl.table, 0))
        return ServiceLevelRules(
            sl=sl,
            vl_bit=self.vl_bit,
            replies=certificate is not None and certificate.strength == "reversible",
            endports_only=certificate is not None and certificate.scope == "endports",
            sl_of_vl=sl_of_vl if certificate is not None else np.zeros(0, np.uint8),
            # SLs by LID give all paths to a LID the same SL.  So the parts of a subtree can have different SLs only if
            # SLs depend on the source, too.
            by_parts=self.by_parts and not request.before.routing.service_levels.by_lid,
        )


def _dependencies(
    request: Request, precomputed: Precomputed, numbering: BaseNumbering
) -> tuple[AcyclicCdg | None, bool]:
    """Return the dependencies that new tables may use, and whether the dependencies of the baseline tables are among
    them.
    """
    if numbering.base is precomputed.base:
        return precomputed.dependencies, precomputed.with_baseline
    return allowed_dependencies(numbering.base, request.before, request.baseline, threads=request.options.threads)
