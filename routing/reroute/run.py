"""The re-route: from the least change that can do to the engine's fresh run."""

from __future__ import annotations

import numpy as np

from routing.engines.base import Engine, EngineOptions
from routing.fabric import Fabric
from routing.publish import verify
from routing.reroute.translate import Laid, lay_over
from routing.reroute.values import Published, Rerouted, Stability


def reroute(
    engine: Engine,
    options: EngineOptions,
    before: Published,
    fabric: Fabric,
    *,
    stability: Stability = Stability.FULL,
    home: Published | None = None,
) -> Rerouted:
    """Tables for a fabric that has changed, as near to the earlier ones as ``stability`` asks for.

    Parameters
    ----------
    engine, options
        What made the earlier tables; a fresh run of it is what is left where nothing less will do.
    before
        The tables that are in the switches.
    fabric
        The fabric as it is now.
    stability
        What may change that need not.
    home
        The tables of the fabric without faults.  Columns go back to them as soon as they hold again.

    Raises
    ------
    OptionError, RoutingError
        What the engine raises where it has to run afresh.
    TableError
        The earlier tables do not fit their fabric.
    """
    laid = lay_over(before.routing, before.fabric, fabric)
    return _fresh(engine, options, fabric, laid, "asked for" if stability is Stability.FRESH else "not repaired")


def _fresh(engine: Engine, options: EngineOptions, fabric: Fabric, laid: Laid, reason: str) -> Rerouted:
    routing = engine.route(fabric, options)
    proof = verify(fabric, routing, engine, threads=options.threads)
    changed = int(np.count_nonzero(routing.lft != laid.earlier))
    return Rerouted(routing, proof, laid.broken, changed, "fresh", reason)
