"""Convert a time budget into an effort.  The conversion depends on the fabric alone; no time is measured."""

from __future__ import annotations

import math

from routing.engines.effort import VISITS_PER_SECOND, visits_per_pass
from routing.errors import OptionError
from routing.fabric import Fabric

FIRST_PASSES = 6.0
"""Time that an engine needs for its first paths, before refinement, divided by the time of one pass over all end ports.

``nue`` on one layer tries up to two kinds of seeds, and needs up to four times as long as this value states.
"""

SECONDS_OF_EFFORT = 4.0
"""CPU seconds that effort 1 takes on one core after the first paths: the largest measured value.  A budget gives the
effort (budget - time of the first paths) / this value.
"""


def effort_within(fabric: Fabric, seconds: float) -> float:
    """Return the effort that a time budget allows after the first paths are computed.

    The result is the same on every machine: a second stands for 250 million channel visits of the kernels, about the
    rate of a core of 2.5 GHz.  Measured time would give different tables on every run.

    Parameters
    ----------
    fabric
        The fabric to route.
    seconds
        Budget in CPU seconds of such a core.

    Raises
    ------
    OptionError
        The first paths alone need more than the budget.
    """
    first = FIRST_PASSES * visits_per_pass(fabric) / VISITS_PER_SECOND
    if not math.isfinite(seconds) or seconds <= first:
        remedy = f"use at least {_rounded_up(first):g}, or --effort 0 for the first paths alone"
        raise OptionError(
            f"a budget of {seconds:g} s is too short: the first paths take {first:.3g} s here", remedy=remedy
        )
    return min((seconds - first) / SECONDS_OF_EFFORT, 1000.0)


def _rounded_up(seconds: float) -> float:
    """Return a number of seconds, rounded up to two significant digits."""
    step = 10.0 ** (math.floor(math.log10(seconds)) - 1)
    return math.ceil(seconds / step * (1 + 1e-9)) * step
