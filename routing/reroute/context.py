"""The context of a re-route: computed once for a fault, and taken by every strategy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.repair import ServiceLevelRules
from routing.cdg.acyclic import AcyclicCdg
from routing.cdg.certificate import Certificate
from routing.cdg.trace import uniform_sl2vl, vl_bits
from routing.engines.base import Engine, EngineOptions, Promise
from routing.fabric import Fabric
from routing.reroute.base_fabric import BaseNumbering
from routing.reroute.baseline import restore_baseline_entries
from routing.reroute.outcome import Refusal
from routing.reroute.precomputed import Precomputed, allowed_dependencies
from routing.reroute.translate import TranslatedTables, same_devices, set_delivery_entries
from routing.reroute.updown_order_repair import reconnect_order
from routing.reroute.values import Published, Stability
from routing.tables import Routing

NO_VLS = np.zeros(16, np.uint16)
"""The VLs of each SL where no VL is told from another."""


@dataclass(frozen=True, eq=False)
class Request:
    """The question: tables in force, and the fabric for which they are to be re-routed.

    Attributes
    ----------
    engine, options, before, fabric, stability, baseline
        The arguments of :func:`routing.reroute.run.reroute`.
    translated
        The previous tables in present rows and columns, without the entries that are no longer valid.
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
        """Return whether the previous SLs are by the LID of the sender."""
        sl = self.before.routing.sl
        return sl.ndim == 2 and len(sl) != self.before.fabric.switches

    def refusal(self) -> Refusal | None:
        """Return why the previous tables cannot be repaired; None if they can."""
        certificate, row = self.before.proof.certificate, uniform_sl2vl(self.before.routing)
        if certificate is None:
            promised = self.engine.promise is Promise.DEADLOCK_FREE
            return Refusal("the previous tables had a credit loop") if promised else None
        if row is None or self.before.proof.cdg is None:
            return Refusal("VLs change along a path")
        return Refusal("SLs are by the LID of the sender") if self.sl_is_per_source_lid else None


@dataclass(frozen=True, eq=False)
class RerouteContext:
    """What every strategy starts from.

    Attributes
    ----------
    request
        The question.
    precomputed
        What was computed from the previous tables and the baseline alone.
    numbering
        The present fabric in base numbers.
    certificate
        The certificate that the tables have to keep; None: credit loops are allowed.
    vl_bit
        uint16[16], 1 << VL of each SL.
    dependencies
        Dependencies that the new tables may use.
    with_baseline
        Whether the dependencies of the baseline are included.
    start
        The previous entries that are still valid, with baseline columns restored where allowed and valid.
    restored
        Number of entries restored from the baseline; None if none was looked for.
    reconnected
        Dependencies after a repair of the Up*/Down* order; None if that order needs or allows no repair.
    by_parts
        Whether each part of a subtree may change its SL on its own.
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

    @classmethod
    def of(cls, request: Request, precomputed: Precomputed) -> RerouteContext:
        """Compute the context of a request that nothing refuses (:meth:`Request.refusal`), without restored entries."""
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

    def prepared(self) -> RerouteContext:
        """Return the context with the baseline columns that are valid again, and a repaired Up*/Down* order."""
        joined = reconnect_order(self.numbering, self.dependencies)
        return replace(self._restored(), reconnected=None if joined is self.dependencies else joined)

    def without_certificate(self) -> RerouteContext:
        """Return the context of a repair that may close credit loops."""
        free = AcyclicCdg.unchecked(self.numbering.base)
        found = replace(self, certificate=None, vl_bit=NO_VLS, dependencies=free, with_baseline=True, reconnected=None)
        return found._restored()

    def _restored(self) -> RerouteContext:
        """Return the context with baseline columns restored where the dependencies include them and they are valid."""
        request, baseline = self.request, self.request.baseline
        start = set_delivery_entries(request.translated.routing, request.fabric)
        if baseline is None or baseline is request.before or not self.with_baseline:
            return replace(self, start=start, restored=None)
        in_place = request.translated.in_place and same_devices(baseline.fabric, request.fabric)
        differing_lids = self.precomputed.differing_lids if in_place else None
        start, restored = restore_baseline_entries(start, baseline, request.fabric, differing_lids)
        return replace(self, start=start, restored=restored)

    def service_levels(
        self, numbering: BaseNumbering, certificate: Certificate | None, tables: Routing
    ) -> ServiceLevelRules:
        """Return on which VLs packets of these tables travel, and whose packets count."""
        request = self.request
        if request.sl_is_per_source_lid:
            sl = np.zeros(tables.lft.shape[1], np.uint8)
        else:
            sl = numbering.spread(tables.sl, 0) if tables.sl.ndim == 2 else tables.sl
        return ServiceLevelRules(
            sl=sl,
            vl_bit=self.vl_bit,
            replies=certificate is not None and certificate.strength == "reversible",
            endports_only=certificate is not None and certificate.scope == "endports",
            sl_of_vl=self.precomputed.sl_of_vl if certificate is not None else np.zeros(0, np.uint8),
            by_parts=self.by_parts and request.before.routing.sl.ndim == 2,  # where SLs went by source before
        )


def _dependencies(
    request: Request, precomputed: Precomputed, numbering: BaseNumbering
) -> tuple[AcyclicCdg | None, bool]:
    """Return the dependencies that may be used, and whether those of the baseline are included."""
    if numbering.base is precomputed.base:
        return precomputed.dependencies, precomputed.with_baseline
    return allowed_dependencies(numbering.base, request.before, request.baseline, threads=request.options.threads)
