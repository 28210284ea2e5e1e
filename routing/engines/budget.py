"""A budget of seconds as effort, by a formula that knows the fabric and nothing of the clock."""

from __future__ import annotations

import math

from routing.engines.effort import LOOKS, looks_a_pass
from routing.errors import OptionError
from routing.fabric import Fabric

FIRST_PASSES = 6.0
"""What an engine needs before any balance is refined, in passes over all end ports (``nue`` on one layer, which tries
three starts, takes up to four times that)."""

SECONDS_OF_EFFORT = 4.0
"""Most that effort 1 was measured to add, on one core."""


def effort_within(fabric: Fabric, seconds: float) -> float:
    """The effort that a budget pays for: what the first paths leave of it.

    The same on every machine, since seconds stand for work: the kernels' looks at channels, of which a core of 2.5 GHz
    or so makes 250 million a second.  A clock would give other tables on every run.

    Parameters
    ----------
    fabric
        What is to be routed.
    seconds
        Processor seconds of such a core.

    Raises
    ------
    OptionError
        The first paths alone take longer.
    """
    first = FIRST_PASSES * looks_a_pass(fabric) / LOOKS
    if not math.isfinite(seconds) or seconds <= first:
        remedy = f"use at least {_rounded_up(first):g}, or --effort 0 for the first paths alone"
        raise OptionError(
            f"a budget of {seconds:g} s is too short: the first paths take {first:.3g} s here", remedy=remedy
        )
    return min((seconds - first) / SECONDS_OF_EFFORT, 1000.0)


def _rounded_up(seconds: float) -> float:
    """With two digits."""
    step = 10.0 ** (math.floor(math.log10(seconds)) - 1)
    return math.ceil(seconds / step * (1 + 1e-9)) * step
