"""Links that fail and recover: events in time, and the faults present between them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from routing.errors import OptionError
from routing.faults.model import Fault


@dataclass(frozen=True, order=True)
class Event:
    """Start or end of one fault.

    Attributes
    ----------
    seconds
        Time since the start.
    fault_index
        Index of the fault.
    down
        Whether the fault starts; otherwise it ends.
    """

    seconds: float
    fault_index: int
    down: bool


@dataclass(frozen=True)
class Flapping:
    """Faults with the times at which they start and end.

    Attributes
    ----------
    faults
        The faults that flap.
    events
        Events in the order of time.
    """

    faults: tuple[Fault, ...]
    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        down: set[int] = set()
        for before, event in zip((None, *self.events), self.events, strict=False):
            if before is not None and event.seconds < before.seconds:
                raise OptionError(f"an event at {event.seconds:g} s after one at {before.seconds:g} s")
            if event.down == (event.fault_index in down):
                raise OptionError(f"{self.faults[event.fault_index]} is {'down' if event.down else 'up'} already")
            down ^= {event.fault_index}

    def states(self) -> Iterator[tuple[float, tuple[Fault, ...]]]:
        """Yield after each event its time in seconds and the faults present from then on, in the order of ``faults``.

        Simultaneous events yield one state.
        """
        down: set[int] = set()
        for number, event in enumerate(self.events):
            down ^= {event.fault_index}
            if number + 1 == len(self.events) or self.events[number + 1].seconds > event.seconds:
                yield event.seconds, tuple(self.faults[index] for index in sorted(down))


def flapping(
    faults: Sequence[Fault],
    *,
    seed: int | str,
    seconds: float,
    up: float = 10.0,
    down: float = 1.0,
    heal: bool = True,
) -> Flapping:
    """Return faults that start and end at random, independently of each other.

    Parameters
    ----------
    faults
        The faults that flap; none is present at first.
    seed
        Equal faults, seed and options give equal events.
    seconds
        End of the time span of events.
    up, down
        Mean duration in seconds without and with a fault, both exponentially distributed.
    heal
        Whether all faults end at ``seconds``.

    Raises
    ------
    OptionError
        A time is not positive.
    """
    if min(seconds, up, down) <= 0:
        raise OptionError("flapping takes times over 0 seconds")
    rng = random.Random(seed)
    events = []
    for index in range(len(faults)):
        moment, falls = rng.expovariate(1 / up), True
        while moment < seconds:
            events.append(Event(moment, index, falls))
            falls = not falls
            moment += rng.expovariate(1 / (up if falls else down))
        if heal and not falls:
            events.append(Event(seconds, index, False))
    return Flapping(tuple(faults), tuple(sorted(events)))
