"""Auto: run several engines that never form a credit loop, and return the tables with the highest throughput."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np

from routing.engines.base import LONGER_PATHS, Engine, EngineOptions, Objective, Offers, Promise, refuse_unsupported
from routing.engines.effort import VISITS_PER_SECOND, has_unique_paths, visits_per_pass
from routing.engines.orders import top_switches
from routing.engines.provenance import LOOP_FREE, provenance
from routing.engines.registry import module_of
from routing.engines.torus_dimensions import resembles_grid
from routing.engines.tree_quality import INFINITE, is_doubtful
from routing.engines.vl_assignment import vls_allowed
from routing.errors import InputWarning, OptionError, RoutingError
from routing.fabric import Fabric
from routing.grids.coordinates import NotAGrid
from routing.quality import BISECTIONS, all_to_all_share, bisection_share, channel_loads
from routing.tables import Routing

ALWAYS, MOST, MODERATE, TINY = math.inf, 20.0, 0.1, 0.0001
"""Limits, in seconds, for the duration of one pass: the time in which the trees of all end ports are computed once.

Before any engine runs, the duration of a pass on the fabric is estimated.  An engine is tried only if this estimate is
at most the engine's limit (:data:`CANDIDATES`).  The limit ``ALWAYS`` excludes no fabric, and the limit ``TINY``
excludes all but very small fabrics.
"""
CANDIDATES = {
    "ftree": ALWAYS, "updn": ALWAYS, "dfsssp": ALWAYS, "lash": MOST, "nue": MOST, "torus-2qos": MOST, "dor": MOST,
    "dragonfly": MOST, "slimfly": MOST, "hyperx": MOST, "lash-tor": MOST, "disjoint": MODERATE, "mud": TINY,
    "smart": TINY, "segment": TINY, "dnup": TINY, "lturn": TINY,
}  # fmt: skip
"""Engines that may be tried, each with its limit for the duration of a pass, in seconds.

If a pass takes longer than an engine's limit, the engine is not tried: it would take too long, or other engines have
better tables.  Of equally good engines, the first engine in this list is taken.
"""
MOST_SWITCHES = {"disjoint": 500, "lash-tor": 500}
"""Largest number of switches of a fabric for which an engine is tried, by the name of the engine.  The work of these
engines depends more on the number of switches than on the number of end ports.
"""
ON_TURNS = ("mud", "smart", "segment", "dnup", "lturn")
"""Engines that forbid some turns (CDG edges) and route over the allowed turns.  They are not tried on trees.

With several VLs, the tables of these engines carried more traffic than the tables of other engines only on some fabrics
of up to 24 switches.  So these engines have the lowest limit (:data:`CANDIDATES`).
"""
FEW_VLS = 2
ON_FEW_VLS = {"mud": MODERATE, "smart": MODERATE}
"""Engines of :data:`ON_TURNS` whose tables often carry the most traffic if there are at most :data:`FEW_VLS` VLs.

With so few VLs, the limit here replaces the engine's limit in :data:`CANDIDATES`.
"""
GRIDS_ONLY = ("torus-2qos", "dor", "hyperx")
"""Engines that can only route a grid: a mesh, torus or HyperX.

On any other fabric, these engines fail after a search for coordinates, which takes time.  So these engines are tried
only on very small fabrics, and on fabrics that resemble a grid, but not on trees.
"""
COUNTED_ON_TREES = 1.0
"""On a tree, an all-to-all share above this value counts as this value.  Trees that
:func:`.tree_quality.is_doubtful` marks are an exception.

If the share is above 1, the links of the CAs limit the rate, and not the links between switches.  How far the share is
above 1 depends on chance: some links down to the leaves happen to carry the traffic to a single CA, and other links to
several CAs.
"""
EQUAL = 0.005
"""Fraction within which the throughput of two engines counts as equal."""
FEW_ENDPORTS, SEEDS, PATTERNS = 10, 8, 20_000
"""Settings for fabrics with at most ``FEW_ENDPORTS`` end ports, where the bisection bandwidth depends on chance.

On such a fabric, the bisection bandwidth is measured over ``PATTERNS`` random bisections.  If the fabric is also small
(a pass over all end ports takes at most ``TINY`` seconds), each engine that supports the objective ``bisection`` also
runs with this objective and ``SEEDS`` different seeds.
"""


@dataclass(frozen=True, eq=False)
class Tried:
    """Tables of one engine, with their all-to-all share and their bisection bandwidth."""

    engine: str
    routing: Routing
    all_to_all: float
    bisection: float

    def throughput(self, tried: Sequence[Tried]) -> float:
        """Return the product of all-to-all share and bisection bandwidth, each divided by the largest value in
        ``tried``.  ``tried`` includes this object.
        """
        pairs = ((self.all_to_all, [o.all_to_all for o in tried]), (self.bisection, [o.bisection for o in tried]))
        return math.prod(own / max(every) if max(every) else 1.0 for own, every in pairs)


class Auto:
    """Choose among the engines of this package by the measured throughput of their tables.

    Notes
    -----
    The throughput is the product of all-to-all share and bisection bandwidth, each relative to the highest value of all
    engines.  Engines whose throughput is within half a percent of the highest throughput count as equal.  Of equal
    engines, engines whose packets keep their VL come first, then engines that need fewer VLs, then engines with a
    higher throughput.  If engines are still equal, the first of them in :data:`CANDIDATES` is taken.  The provenance
    names the chosen engine as ``chosen``.  An engine that cannot route the fabric, or does not support an option, is
    left out.  Tables that may have a credit loop are left out, too.
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

        Cost: the cost of all candidates, one after the other.

        Raises
        ------
        RoutingError
            No candidate can route the fabric; the error comes from the last candidate.
        OptionError
            No candidate supports the options.
        """
        refuse_unsupported(self, options)
        started = time.perf_counter()
        tried, refused, throughputs = [], list[RoutingError](), dict[bytes, tuple[float, float]]()
        for engine, own_options in _runs(fabric, options):
            # If the first engine for grids finds no coordinates, the fabric has none.  The other engines for grids are
            # then left out, because the search for coordinates takes most of the time of `auto` on a small fabric.
            if engine.name in GRIDS_ONLY and any(isinstance(refusal, NotAGrid) for refusal in refused):
                continue
            try:
                tried.append(_measured(engine, fabric, own_options, options.seed, throughputs))
            except RoutingError as refusal:
                refused.append(refusal)
            if tried and has_unique_paths(fabric):
                break
        if not tried:
            raise refused[-1]
        best = max(each.throughput(tried) for each in tried)
        equal = [each for each in tried if each.throughput(tried) >= (1 - EQUAL) * best]
        # Tables in which packets keep their VL are preferred, because a re-route can repair them without spare VLs.
        chosen = min(
            equal,
            key=lambda each: (
                not each.routing.sl_to_vl.uniform,
                each.routing.vls_needed,
                -round(each.throughput(tried), 3),
            ),
        )
        seconds = {"route": time.perf_counter() - started}
        found = {**chosen.routing.provenance.options, "chosen": chosen.engine}
        return replace(chosen.routing, provenance=provenance(self.name, fabric, options, seconds, **found))


ENGINE = Auto()


def _runs(fabric: Fabric, options: EngineOptions) -> list[tuple[Engine, EngineOptions]]:
    """Return the engines to run, each with its options.

    On a small fabric with few end ports, the engines that support the objective ``bisection`` run again, with this
    objective and several seeds (:data:`SEEDS`).
    """
    runs = [(engine, options) for engine in _engines(fabric, options)]
    if fabric.endports <= FEW_ENDPORTS and visits_per_pass(fabric) <= TINY * VISITS_PER_SECOND:
        for (engine, _), number in itertools.product(runs, range(SEEDS)):
            own = replace(options, objective=Objective.BISECTION, seed=(options.seed + number) % 2**31)
            with contextlib.suppress(OptionError):
                refuse_unsupported(engine, own)
                runs.append((engine, own))
    return runs


def _engines(fabric: Fabric, options: EngineOptions) -> list[Engine]:
    """Return the engines that support all options of the run, and that suit the fabric."""
    seconds = visits_per_pass(fabric) / VISITS_PER_SECOND
    tree = bool(top_switches(fabric))
    left_out = set[str]()
    if tree or (seconds > TINY and not resembles_grid(fabric)):
        left_out.update(GRIDS_ONLY)
    if tree:
        left_out.update(ON_TURNS)
    found = []
    limits = CANDIDATES | (ON_FEW_VLS if vls_allowed(options) <= FEW_VLS else {})
    for name, longest in limits.items():
        if name in left_out or seconds > longest or fabric.switches > MOST_SWITCHES.get(name, fabric.switches):
            continue
        module = import_module(f"{__package__}.{module_of(name)}")
        # With an LMC above 0, `dragonfly` also uses paths over an intermediate group, which lower the all-to-all share.
        # Auto compares all-to-all shares, so it runs `dragonfly` without such paths.
        engine: Engine = module.SHORTEST if name == "dragonfly" else module.ENGINE
        with contextlib.suppress(OptionError):
            refuse_unsupported(engine, options)
            found.append(engine)
    if not found:
        raise OptionError("no engine supports these options together", remedy="leave one of them out")
    return found


def _measured(
    engine: Engine, fabric: Fabric, options: EngineOptions, seed: int, throughputs: dict[bytes, tuple[float, float]]
) -> Tried:
    """Route the fabric with an engine, and measure the tables.

    ``seed`` is the seed of the random bisections.  ``throughputs`` has all-to-all share and bisection bandwidth of the
    tables so far, by the digest of the LFTs.  On small fabrics, many engines have equal LFTs, which are measured once.
    """
    with warnings.catch_warnings():
        # The warning about miscabled links is suppressed, because a fabric that only resembles a grid is not miscabled.
        if engine.name in GRIDS_ONLY:
            warnings.simplefilter("ignore", InputWarning)
        routing = engine.route(fabric, options)
    if LOOP_FREE in routing.provenance.options:
        raise RoutingError(f"{engine.name} closes a credit loop on this fabric (allow more VLs)")
    digest = hashlib.sha256(np.ascontiguousarray(routing.lft).data).digest()
    if digest not in throughputs:
        throughputs[digest] = _throughput(fabric, routing, seed, options.threads)
    return Tried(engine.name, routing, *throughputs[digest])


def _throughput(fabric: Fabric, routing: Routing, seed: int, threads: int) -> tuple[float, float]:
    """Return all-to-all share and bisection bandwidth of the tables, which depend on the LFTs only."""
    share = min(all_to_all_share(fabric, channel_loads(fabric, routing, threads=threads)), INFINITE)
    if share > COUNTED_ON_TREES and top_switches(fabric) and not is_doubtful(fabric):
        share = COUNTED_ON_TREES
    patterns = PATTERNS if fabric.endports <= FEW_ENDPORTS else BISECTIONS
    bisection = bisection_share(fabric, routing, seed=seed, bisections=patterns, threads=threads)
    return share, 0.0 if math.isnan(bisection) else bisection
