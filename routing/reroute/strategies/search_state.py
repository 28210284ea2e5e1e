"""State of the searches that move entries after a repair: tables, their dependencies, their load and the goal."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing.reroute.base_fabric import BaseNumbering
from routing.reroute.context import RerouteContext
from routing.reroute.rebalance import FURTHER_GAIN, FURTHER_TOLERANCE, LEAST_WORK, Utilisation, move_entries
from routing.reroute.strategies.columns import Progress


@dataclass(frozen=True, eq=False)
class State:
    """Tables after some searches for moves.

    Attributes
    ----------
    progress
        The tables, and the CDG edges with which moved paths may close no cycle.
    load
        int64[C], flow on each channel.
    goal
        Goal of the searches: the highest utilisation should fall to this value (load times inverse capacity).
    most
        Maximum number of entries that one search may move.
    """

    progress: Progress
    load: npt.NDArray[np.int64]
    goal: int
    most: int

    @property
    def peak(self) -> int:
        """Return the highest utilisation, as load times the kernel's inverse capacity."""
        return peak_of(self.load, self.progress.numbering)

    @property
    def now(self) -> Utilisation:
        """Return the flow on each channel with the present tables, and the goal of the searches."""
        return Utilisation(self.load, self.goal)

    def gains(self, load: npt.NDArray[np.int64]) -> bool:
        """Return whether the highest utilisation with ``load`` (int64[C]) is at least half a percent below the highest
        utilisation of this state.
        """
        return peak_of(load, self.progress.numbering) <= (1 - FURTHER_GAIN) * self.peak

    def moved(
        self, context: RerouteContext, *, budget: int | None = None, tolerance: float = FURTHER_TOLERANCE,
        work: int = LEAST_WORK, overshoot: int = 0,
    ) -> tuple[State, int]:  # fmt: skip
        """Move entries off the most loaded channels.  New paths may close no cycle with the dependencies of this state.

        Parameters
        ----------
        context
            The data of the re-route.
        budget
            Maximum number of entries that become different from the tables before the fault; None: :attr:`most`.
        tolerance
            Fraction by which the highest utilisation may exceed the goal.
        work
            Work limit in hops that the search follows.
        overshoot
            If not 0, a first pass may make moves that raise other channels above the relieved channel.  The other
            channels may exceed the utilisation of the relieved channel by at most this percentage.  Later passes make
            no such moves.

        Returns
        -------
        after : State
            The state after the moves.
        work : int
            Number of hops that the search has followed.
        """
        progress = self.progress
        tables, found = move_entries(
            progress.numbering, context.service_levels(progress.numbering, progress.certificate, progress.tables),
            progress.tables, context.request.translated.earlier, dependencies=progress.dependencies, now=self.now,
            budget=self.most if budget is None else budget, tolerance=tolerance, work=work, overshoot=overshoot,
        )  # fmt: skip
        dependencies = progress.dependencies.grown(found.masks, found.order)
        progress = replace(progress, tables=tables, dependencies=dependencies)
        return replace(self, progress=progress, load=found.load), found.work


def peak_of(load: npt.NDArray[np.int64], numbering: BaseNumbering) -> int:
    """Return the highest utilisation of a channel, as load times the kernel's inverse capacity."""
    return int((load * numbering.repair_fabric.inverse_capacity).max(initial=0))
