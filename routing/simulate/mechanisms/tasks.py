"""Simulate workloads: messages that begin when the messages on which they depend have arrived."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from routing.errors import OptionError
from routing.simulate.bounds import LONGEST
from routing.simulate.mechanisms.base import Mechanism
from routing.simulate.network import Network
from routing.simulate.traffic import Traffic
from routing.simulate.workload import Workload

if TYPE_CHECKING:
    from routing.simulate.run import Simulation

Ints = npt.NDArray[np.int64]
MOST_TASKS = 1 << 26
"""A workload must have fewer messages than this.  A timer of the kernel stores the number of its message in 26 bits."""


class Tasks(Mechanism):
    """Messages of a workload as tasks of a simulation, whose traffic must be ``workload.traffic(mtu)``.

    A message that depends on other messages waits for each of them to arrive, and then for a delay of at least one tick
    for each of them.  The message is ready when all these delays have passed, but not before its earliest time
    (``Message.at``).  A message that depends on no message is ready at the time ``Message.at`` + ``Message.delay``.

    A CA sends its messages in the order in which they become ready.  A message with a lost packet never arrives, unless
    the simulation has the mechanism :class:`routing.simulate.mechanisms.retransmission.Retransmission`.

    Attributes
    ----------
    workload
        The messages.
    """

    name: ClassVar[str] = "tasks"

    def __init__(self, workload: Workload) -> None:
        workload.check()
        if len(workload.messages) >= MOST_TASKS:
            raise OptionError(f"a workload of {len(workload.messages)} messages is too large", remedy="use under 2^26")
        self.workload = workload

    def numbers(self, network: Network, traffic: Traffic) -> Sequence[int]:
        """Return one list: the number of messages, five numbers for each message, and three for each dependency.

        The numbers of a message are its flow, LID, bytes, earliest tick and delay.  The numbers of a dependency are the
        awaited message, the waiting message and the delay.

        Raises
        ------
        OptionError
            A time or a delay is too long.
        """
        flow_of = {flow.source: number for number, flow in enumerate(traffic.flows)}
        tick, found, pairs = network.timing.tick, [len(self.workload.messages)], list[int]()
        for number, message in enumerate(self.workload.messages):
            times = [round(time / tick) for time in (message.at, message.delay)]
            delays = [round(time / tick) for time in message.delays] or [times[1]] * len(message.after)
            if not 0 <= min(times + delays) <= max(times + delays) <= LONGEST:
                raise OptionError(f"message {number + 1} has an invalid time", remedy=f"use up to {LONGEST} ticks")
            found += [flow_of[message.source], message.lid, message.bytes, *times]
            pairs += [
                each for before, delay in zip(message.after, delays, strict=True) for each in (before, number, delay)
            ]
        return [*found, *pairs]

    def times(self, simulation: Simulation) -> tuple[Ints, Ints]:
        """Return for each message the tick at which it was ready, and the tick at which it arrived completely.

        The result is two arrays int64[messages].  -1 means that a message is not ready yet, or has not arrived.
        """
        ready, arrived = simulation.results_of(self).reshape(2, -1)
        return ready, arrived
