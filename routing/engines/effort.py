"""Work limits of a run.  Work is counted in channel visits instead of seconds, so that results are equal on every
machine.
"""

from __future__ import annotations

import numpy as np

from routing.engines.base import EngineOptions
from routing.fabric import Fabric

VISITS_PER_SECOND = 250_000_000
"""Number of channels that all refinement passes together may visit at effort 1.  These visits take about a second on
one core.
"""

MOST_PASSES = 8

MODERATE = 0.1
"""Longest estimated duration of a pass, in seconds, on a fabric of moderate size (:func:`is_moderate`)."""


MEASURED = 8
"""Size of a sample of switches.  Their mean distance from all switches is the estimate of the mean length of paths."""


def visits_per_tree(fabric: Fabric) -> int:
    """Return the approximate number of channels that the computation of one destination's tree visits.

    The computation compares the channels of all switches.  It also adds the flow of each switch to all channels of its
    path, which is most of the work on fabrics with long paths.
    """
    if fabric.switches == 0:
        return 1
    rows = np.unique(np.linspace(0, fabric.switches - 1, MEASURED).astype(np.int64))
    hops = np.asarray(fabric.graph.distances(source=rows, mode="out"), float)
    return max(1, 3 * len(fabric.channels), round(fabric.switches * float(hops[np.isfinite(hops)].mean())))


def visits_per_pass(fabric: Fabric) -> int:
    """Return the approximate number of channels that one pass over all end ports visits."""
    return max(1, fabric.endports * visits_per_tree(fabric))


def has_unique_paths(fabric: Fabric) -> bool:
    """Return whether the links between switches form no cycle, so that there is nothing to balance."""
    return len(fabric.channels) == 2 * (fabric.switches - len(np.unique(fabric.component)))


def is_moderate(fabric: Fabric) -> bool:
    """Return whether a pass takes so little time that an engine with many passes can be tried in addition to other
    engines.
    """
    return visits_per_pass(fabric) <= MODERATE * VISITS_PER_SECOND


def refinement_passes(fabric: Fabric, options: EngineOptions) -> int:
    """Return the number of refinement passes after the first pass.

    If the options request a number, this number is returned.  Otherwise the effort determines the number (0 to 8).  The
    number is 0 if all paths are unique, because no pass could then change a path.
    """
    if options.passes is not None:
        return options.passes
    if has_unique_paths(fabric):
        return 0
    return min(MOST_PASSES, round(options.effort * VISITS_PER_SECOND / visits_per_pass(fabric)))
