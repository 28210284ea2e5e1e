"""Auto: run several engines that never form a credit loop, and return the tables with the highest throughput."""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module

from routing.engines.base import LONGER_PATHS, Engine, EngineOptions, Offers, Promise, refuse_unsupported
from routing.engines.effort import VISITS_PER_SECOND, is_moderate, visits_per_pass
from routing.engines.orders import top_switches
from routing.engines.provenance import provenance
from routing.engines.registry import module_of
from routing.engines.torus_dimensions import directions
from routing.errors import InputWarning, OptionError, RoutingError
from routing.fabric import Fabric
from routing.quality import all_to_all_share, bisection_share, channel_loads
from routing.tables import Routing

CANDIDATES = ("ftree", "updn", "dfsssp", "lash", "nue", "torus-2qos", "dragonfly", "slimfly", "mud", "smart", "segment")
"""Names of the engines that are tried.  Of equally good engines, the first one in this list is taken."""
ON_TURNS = ("mud", "smart", "segment")
"""Engines that forbid some turns (CDG edges), and route over the allowed turns on one VL.  They are tried on fabrics of
moderate size that are not trees.

With few VLs, their tables often carry more than those of the other engines.  The engines ``dnup`` and ``lturn`` are
left out: in all fabrics of docs/engines.md, another engine carries more.
"""
GRIDS_ONLY = ("torus-2qos",)
"""Engines that are tried only where the links show directions, as in a mesh, torus or HyperX."""
QUICK = ("ftree", "updn", "dfsssp")
"""Engines that are tried on the largest fabrics, where the other engines take minutes."""
LARGE = 20
"""Seconds that a refinement pass takes at least on a fabric that counts as large."""
EQUAL = 0.01
"""Fraction within which the throughput of two engines counts as equal."""


@dataclass(frozen=True, eq=False)
class Tried:
    """Tables of one engine, with their all-to-all share and their bisection bandwidth."""

    engine: str
    routing: Routing
    all_to_all: float
    bisection: float

    def throughput(self, others: Sequence[Tried]) -> float:
        """Return the smaller of all-to-all share and bisection bandwidth, each relative to the largest value of all
        candidates.
        """
        pairs = ((self.all_to_all, [o.all_to_all for o in others]), (self.bisection, [o.bisection for o in others]))
        return min(own / max(every) if max(every) else 1.0 for own, every in pairs)


class Auto:
    """Choose among the engines of this package by the measured throughput of their tables.

    Notes
    -----
    The throughput is the smaller of all-to-all share and bisection bandwidth, each relative to the best engine.  Among
    engines within a hundredth of the best, the engine that needs the fewest VLs is taken; among several, the first in
    :data:`CANDIDATES`.  The provenance names the chosen engine as ``chosen``.  An engine that cannot route the fabric,
    or does not support an option, is left out.
    """

    name = "auto"
    summary = "the engine of this list that carries the most on the fabric"
    promise = Promise.DEADLOCK_FREE
    offers = Offers(
        options=("reversible", "partition", "roots", "root_guid_file"),
        refusals={"minimal": LONGER_PATHS},
        opensm_options=("root_guid_file",),
        chooses=True,
    )

    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`).

        Cost: that of all candidates, one after the other.

        Raises
        ------
        RoutingError
            No candidate can route the fabric; the error is that of the last candidate.
        OptionError
            No candidate supports the options.
        """
        refuse_unsupported(self, options)
        started = time.perf_counter()
        tried, refused = [], []
        for engine in _engines(fabric, options):
            try:
                tried.append(_measured(engine, fabric, options))
            except RoutingError as refusal:  # noqa: PERF203  (each engine may refuse the fabric)
                refused.append(refusal)
        if not tried:
            raise refused[-1]
        best = max(each.throughput(tried) for each in tried)
        equal = [each for each in tried if each.throughput(tried) >= (1 - EQUAL) * best]
        # Tables in which packets keep their VL are preferred, because a re-route can repair only such tables.
        chosen = min(equal, key=lambda each: (not each.routing.sl_to_vl.uniform, each.routing.vls_needed))
        seconds = {"route": time.perf_counter() - started}
        found = {**chosen.routing.provenance.options, "chosen": chosen.engine}
        return replace(chosen.routing, provenance=provenance(self.name, fabric, options, seconds, **found))


ENGINE = Auto()


def _engines(fabric: Fabric, options: EngineOptions) -> list[Engine]:
    """Return the candidates that support all options of the run."""
    seconds = visits_per_pass(fabric) / VISITS_PER_SECOND
    tree = bool(top_switches(fabric))
    left_out = set[str]()
    if tree or directions(fabric) is None:
        left_out.update(GRIDS_ONLY)
    if tree or not is_moderate(fabric):
        left_out.update(ON_TURNS)
    found = []
    for name in QUICK if seconds > LARGE else CANDIDATES:
        if name in left_out:
            continue
        engine: Engine = import_module(f"{__package__}.{module_of(name)}").ENGINE
        with contextlib.suppress(OptionError):
            refuse_unsupported(engine, options)
            found.append(engine)
    if not found:
        raise OptionError("no engine supports these options together", remedy="leave one of them out")
    return found


def _measured(engine: Engine, fabric: Fabric, options: EngineOptions) -> Tried:
    """Route the fabric with an engine, and measure the tables."""
    with warnings.catch_warnings():
        # The warning about miscabled links is suppressed, because a fabric that only resembles a grid is not miscabled.
        if engine.name in GRIDS_ONLY:
            warnings.simplefilter("ignore", InputWarning)
        routing = engine.route(fabric, options)
    loads = channel_loads(fabric, routing, threads=options.threads)
    share = all_to_all_share(fabric, loads)
    bisection = bisection_share(fabric, routing, seed=options.seed, threads=options.threads)
    return Tried(engine.name, routing, min(share, 1e9), 0.0 if math.isnan(bisection) else bisection)
