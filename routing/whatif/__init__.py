"""What if this broke: every fault laid over a fabric, re-routed and proven, before it happens.

A :class:`Baseline` is the fabric as it is with its tables; :func:`explore` gives the :class:`Effect` of each
:class:`Scenario`, that is of faults that happen together.
"""

from routing.whatif.connection import weak_spots
from routing.whatif.effect import Baseline, Effect, Limits, effect_of, hurt
from routing.whatif.pool import explore
from routing.whatif.scenarios import Scenario, alone, sampled

__all__ = [
    "Baseline",
    "Effect",
    "Limits",
    "Scenario",
    "alone",
    "effect_of",
    "explore",
    "hurt",
    "sampled",
    "weak_spots",
]
