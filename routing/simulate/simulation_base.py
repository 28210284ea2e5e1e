"""Base class of simulations: run to a tick, and check the accounts of packets and credits."""

from __future__ import annotations

from abc import ABC, abstractmethod

from routing._kernels.simulation_handle import SimulationHandle
from routing.errors import OptionError
from routing.simulate.bounds import is_int_in
from routing.simulate.state import RunResult, StopReason
from routing.simulate.traffic import FOREVER

MOST_EVENTS = 10_000_000_000
"""Default limit of events of a run."""


class SimulationBase(ABC):
    """Base class of simulations of every kind."""

    def __init__(self, handle: SimulationHandle) -> None:
        self._handle = handle
        self._now = 0

    @property
    def now(self) -> int:
        """Return the present tick."""
        return self._now

    def run(self, until: int, *, events: int = MOST_EVENTS, stop_at_standstill: bool = False) -> RunResult:
        """Run to a tick, and handle all events of that tick.

        Parameters
        ----------
        until
            The tick, not before the present one.
        events
            Stop after about this many more events.
        stop_at_standstill
            Stop as soon as no data can move by itself, even if a lifetime limit, a breaker or a recovery scheme could
            make it move later.

        Raises
        ------
        OptionError
            The tick is in the past, or the number of events is negative.
        KernelError
            Out of memory, or the accounts of packets or credits are inconsistent (a bug).
        """
        if not is_int_in(until, self._now, FOREVER - 1):
            raise OptionError(f"cannot run to tick {until!r}, it is {self._now}")
        if not is_int_in(events, 0, FOREVER - 1):
            raise OptionError(f"cannot stop after {events} more events", remedy="use 0 or more")
        why, time, handled = self._handle.run(until, events, stop_at_standstill=stop_at_standstill)
        self._now = max(time, 0)
        self.check()
        return RunResult(StopReason(why), self._now, handled)

    def totals(self) -> dict[str, int]:
        """Return the totals of the simulation, by the names in ``TOTALS`` of its kernel's wrapper."""
        return self._handle.totals()

    @abstractmethod
    def check(self) -> None:
        """Raise KernelError unless every packet and every block of credit is accounted for."""
