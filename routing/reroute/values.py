"""Arguments and results of a re-route."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from routing.deadlock.proof import Proof
from routing.fabric import Fabric
from routing.publish import VerifiedTables
from routing.reroute.flow import flow_towards
from routing.reroute.statistics import RerouteStatistics
from routing.tables import Routing

RerouteMethod = Literal["unchanged", "baseline", "repaired", "rebalanced", "fresh"]
"""How tables were found: unchanged, the baseline, single entries repaired, moved for balance, routed from scratch."""


class Stability(enum.Enum):
    """How much a re-route may change beyond what the fault broke."""

    FULL = "full"
    """Only entries that are no longer valid, and those that have to give way for the proof."""
    BALANCED = "balanced"
    """Further entries, within limits, so that the loss of capacity stays small (:mod:`routing.reroute.rebalance`)."""
    FRESH = "fresh"
    """The engine computes all tables from scratch on the present fabric."""


@dataclass(frozen=True, eq=False)
class Published:
    """Tables that are or were in the switches, with their fabric and their proof."""

    fabric: Fabric
    routing: Routing
    proof: Proof

    @cached_property
    def load(self) -> npt.NDArray[np.int64]:
        """Return int64[C], the flow on each channel when every end port sends to every other."""
        return flow_towards(self.fabric, self.routing, threads=2)


@dataclass(frozen=True, eq=False)
class Rerouted:
    """Proven tables of a re-route, and what they change.

    Attributes
    ----------
    tables
        The tables for the present fabric, and their proof.
    broken
        Entries of the old tables that are no longer valid: the link is gone or leads elsewhere, or the LID has moved.
    changed
        Entries that differ from the old tables, those of new switches and LIDs included.
    how
        How the tables were found.
    reason
        Why they were found that way, in one line.
    kept
        Share of an end port's all-to-all rate by the old tables that the new ones leave; None: no such traffic.
    statistics
        How many entries and SLs each step changed, and how much it searched.
    """

    tables: VerifiedTables
    broken: int
    changed: int
    how: RerouteMethod
    reason: str
    statistics: RerouteStatistics = field(default_factory=RerouteStatistics)
    kept: float | None = None

    @property
    def routing(self) -> Routing:
        """Return the tables."""
        return self.tables.routing

    @property
    def proof(self) -> Proof:
        """Return the proof of the tables."""
        return self.tables.proof
