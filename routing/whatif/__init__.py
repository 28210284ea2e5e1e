"""What-if analysis: apply possible faults to a fabric, re-route it, and prove and measure the tables.

A :class:`Baseline` is the current fabric with its tables; :func:`explore` computes the :class:`Effect` of each
:class:`Scenario`, a set of simultaneous faults.
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
