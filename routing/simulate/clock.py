"""The clock of a simulation under way: run it to a tick, and see that nothing was lost on the way."""

from __future__ import annotations

from abc import ABC, abstractmethod

from routing._kernels.running import Running
from routing.errors import OptionError
from routing.simulate.bounds import whole
from routing.simulate.state import Stop, Why
from routing.simulate.traffic import FOREVER

MOST_EVENTS = 10_000_000_000
"""A run that has not been told a number of events ends after this many."""


class Clock(ABC):
    """What simulations of every kind do alike."""

    def __init__(self, handle: Running) -> None:
        self._handle = handle
        self._now = 0

    @property
    def now(self) -> int:
        """The tick that the run has come to."""
        return self._now

    def run(self, until: int, *, events: int = MOST_EVENTS, stop_at_standstill: bool = False) -> Stop:
        """Go on to a tick (everything of that tick has then happened).

        Parameters
        ----------
        until
            The tick, not before the present one.
        events
            Stop after about this many more events.
        stop_at_standstill
            Stop as soon as no data will move again by itself, even if limits on lifetimes, a breaker or a way to
            recover would help.

        Raises
        ------
        OptionError
            The tick is in the past, or the number of events below 0.
        KernelError
            Out of memory, or the sums of packets or credits do not come out (a bug).
        """
        if not whole(until, self._now, FOREVER - 1):
            raise OptionError(f"cannot run to tick {until!r}, it is {self._now}")
        if not whole(events, 0, FOREVER - 1):
            raise OptionError(f"cannot stop after {events} more events", remedy="use 0 or more")
        why, time, handled = self._handle.run(until, events, stop_at_standstill=stop_at_standstill)
        self._now = max(time, 0)
        self.check()
        return Stop(Why(why), self._now, handled)

    def totals(self) -> dict[str, int]:
        """Sums over everything, by the names in ``TOTALS`` of its kernel's wrapper."""
        return self._handle.totals()

    @abstractmethod
    def check(self) -> None:
        """Raise KernelError unless every packet and every block of credit is accounted for."""
