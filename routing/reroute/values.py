"""Arguments and results of a re-route after a fault."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from routing.deadlock.proof import Proof
from routing.errors import OptionError
from routing.fabric import Fabric
from routing.publish import VerifiedTables
from routing.reroute.flow import bisection_rate, flow_towards, highest_utilisation
from routing.reroute.statistics import RerouteStatistics
from routing.tables import Routing

RerouteMethod = Literal["unchanged", "baseline", "repaired", "rebalanced", "fresh"]
"""Method by which tables were found.

- ``unchanged``: the previous tables;
- ``baseline``: the tables of the fault-free fabric;
- ``repaired``: single entries replaced;
- ``rebalanced``: entries moved for better balance;
- ``fresh``: routed from scratch, because this was asked for, because no repair succeeded, or because the repaired
  tables lose much more capacity than the tables from scratch.
"""

LEFT_BASELINE = "left_baseline"
"""Option in the provenance of tables for which rebalancing has released the dependencies of the baseline tables."""


def outside_baseline(routing: Routing) -> Routing:
    """Return the tables with the mark :data:`LEFT_BASELINE`, so that they return to the baseline in safe steps."""
    made = routing.provenance
    return replace(routing, provenance=replace(made, options={**made.options, LEFT_BASELINE: True}))


class Stability(enum.Enum):
    """Limit of how much a re-route may change beyond what the fault broke."""

    FULL = "full"
    """Change only entries that became invalid, and entries that must change to avoid a credit loop."""
    BALANCED = "balanced"
    """Change further entries, within limits, to keep the loss of capacity small (:mod:`routing.reroute.rebalance`)."""
    FRESH = "fresh"
    """Let the engine compute all tables from scratch on the present fabric."""

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise OptionError(f"there is no stability {value!r}", remedy=f"use {', '.join(each.value for each in cls)}")


@dataclass(frozen=True, eq=False)
class Published:
    """Tables that are or were written to the switches, with their fabric and their proof."""

    fabric: Fabric
    routing: Routing
    proof: Proof

    @property
    def left_baseline(self) -> bool:
        """Return whether rebalancing has released the dependencies of the baseline tables (of the fault-free fabric).

        Such tables return to the baseline step by step once the fabric is free of faults.
        """
        return bool(self.routing.provenance.options.get(LEFT_BASELINE))

    @cached_property
    def load(self) -> npt.NDArray[np.int64]:
        """Return int64[C], the flow on each channel when every end port sends to every other end port."""
        return flow_towards(self.fabric, self.routing, threads=2)

    @cached_property
    def highest_utilisation(self) -> float:
        """Return the highest utilisation of any channel by the flow of :attr:`load`."""
        return highest_utilisation(self.fabric.channels, self.load)

    @cached_property
    def bisection_rate(self) -> float:
        """Return the mean rate of a flow of random bisections, in Gb/s; NaN with fewer than two end ports."""
        return bisection_rate(self.fabric, self.routing)


@dataclass(frozen=True, eq=False)
class Rerouted:
    """Proven tables of a re-route, and the number of entries that they change.

    Attributes
    ----------
    tables
        The tables for the present fabric, and their proof.
    broken
        Number of entries of the old tables that became invalid: the link is gone or leads elsewhere, or the LID
        has moved.
    changed
        Number of entries that differ from the old tables, including entries of new switches and LIDs.
    how
        Method by which the tables were found.
    reason
        Why this method was used, in one line.
    kept
        All-to-all rate of an end port divided by its rate with the old tables; None: no such traffic crosses a channel.
    fresh_kept
        The value of ``kept`` for tables from scratch; None if they were not computed.
    fresh
        The tables from scratch, which are not proven; None if they were not computed.
    statistics
        Number of entries and SLs that each step changed, and the work of its searches.
    """

    tables: VerifiedTables
    broken: int
    changed: int
    how: RerouteMethod
    reason: str
    statistics: RerouteStatistics = field(default_factory=RerouteStatistics)
    kept: float | None = None
    fresh_kept: float | None = None
    fresh: Routing | None = None

    @property
    def routing(self) -> Routing:
        """Return the LFTs, SLs and SL2VL tables."""
        return self.tables.routing

    @property
    def proof(self) -> Proof:
        """Return the proof that the tables are complete, with their certificate if they are deadlock-free."""
        return self.tables.proof
