"""What-if analysis: apply possible faults to a fabric, re-route it, and prove and measure the new tables.

A :class:`Baseline` is the current fabric with its tables.  A :class:`Scenario` is a set of simultaneous faults.
:func:`explore` computes the :class:`Effect` of each scenario.
"""

from routing.whatif.connectivity import bridges_and_cut_switches
from routing.whatif.effect import Baseline, Effect, Limits, evaluate, severity
from routing.whatif.pool import explore
from routing.whatif.scenarios import Scenario, draw_faults, single_faults

__all__ = [
    "Baseline",
    "Effect",
    "Limits",
    "Scenario",
    "bridges_and_cut_switches",
    "draw_faults",
    "evaluate",
    "explore",
    "severity",
    "single_faults",
]
