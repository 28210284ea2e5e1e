"""How much work a run may do, told in steps that are the same on every machine and never in seconds."""

from __future__ import annotations

from routing.engines.base import EngineOptions
from routing.fabric import Fabric

LOOKS = 250_000_000
"""Channels that all refinement passes together may look at, at effort 1: about a second on one core."""

MOST_PASSES = 8


def looks_a_pass(fabric: Fabric) -> int:
    """Channels that one pass over all end ports looks at, about: of every switch and of the ways behind."""
    return max(1, 3 * fabric.endports * len(fabric.channels))


def refinement_passes(fabric: Fabric, options: EngineOptions) -> int:
    """Passes after the first: as asked for, or as many as the effort allows (0 to 8)."""
    if options.passes is not None:
        return options.passes
    return min(MOST_PASSES, round(options.effort * LOOKS / looks_a_pass(fabric)))
