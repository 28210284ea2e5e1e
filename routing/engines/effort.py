"""Work limits of a run.  Work is counted in channel visits instead of seconds, so that results are equal on every
machine.
"""

from __future__ import annotations

from routing.engines.base import EngineOptions
from routing.fabric import Fabric

VISITS_PER_SECOND = 250_000_000
"""Number of channels that all refinement passes together may visit at effort 1, which takes about a second on one
core.
"""

MOST_PASSES = 8

MODERATE = 0.1
"""Seconds that a pass takes at most on a fabric of moderate size."""


def visits_per_pass(fabric: Fabric) -> int:
    """Return the approximate number of channels that one pass over all end ports visits."""
    return max(1, 3 * fabric.endports * len(fabric.channels))


def is_moderate(fabric: Fabric) -> bool:
    """Return whether a pass takes so little time that an engine with many passes can be tried in addition to other
    engines.
    """
    return visits_per_pass(fabric) <= MODERATE * VISITS_PER_SECOND


def refinement_passes(fabric: Fabric, options: EngineOptions) -> int:
    """Return the number of refinement passes after the first pass: the requested number, or as many as the effort
    allows (0 to 8).
    """
    if options.passes is not None:
        return options.passes
    return min(MOST_PASSES, round(options.effort * VISITS_PER_SECOND / visits_per_pass(fabric)))
