"""Define the base class of the two kinds of simulations (fixed tables, adaptive routing).

It runs a simulation to a given tick, and then checks the accounts of packets and credits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from routing._kernels.simulation_handle import SimulationHandle
from routing.errors import OptionError
from routing.simulate.bounds import is_int_in
from routing.simulate.latency import Latencies
from routing.simulate.state import RunResult, StopReason
from routing.simulate.traffic import FOREVER

MOST_EVENTS = 10_000_000_000
"""Largest number of events of one run if the caller gives no limit."""


class SimulationBase(ABC):
    """Base class of simulations: a clock, and a handle to the state in the C kernel."""

    def __init__(self, handle: SimulationHandle) -> None:
        self._handle = handle
        self._now = 0

    @property
    def now(self) -> int:
        """Return the present tick of the simulation."""
        return self._now

    def run(self, until: int, *, events: int = MOST_EVENTS, stop_at_standstill: bool = False) -> RunResult:
        """Run the simulation to a given tick, including all events of that tick.

        Parameters
        ----------
        until
            Last tick of the run, not before the present tick.
        events
            Approximate number of events after which the run stops.
        stop_at_standstill
            Whether to stop as soon as no data can move any more without a lifetime limit, a deadlock breaker or a
            recovery scheme.  Such a remedy might make data move again later.

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
        """Return the totals of the simulation, such as packets delivered, by name.

        The constant ``TOTALS`` in the wrapper of the simulation's C kernel lists the names.
        """
        return self._handle.totals()

    def latencies(self) -> Latencies:
        """Return the latencies of all packets and messages that were delivered so far."""
        packets, messages = self._handle.latencies()
        return Latencies(packets, messages)

    def latency_sum(self) -> int:
        """Return the sum of the latencies of all packets that were delivered so far, in ticks."""
        return int(self._handle.flows()[:, self._handle.fields.flow.index("latency")].sum())

    @abstractmethod
    def check(self) -> None:
        """Raise KernelError unless every packet and every block of credit is accounted for."""
