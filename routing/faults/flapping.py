"""Flapping links, which fail and recover repeatedly: the times of these events, and the faults present between them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from routing.errors import OptionError
from routing.faults.model import Fault


@dataclass(frozen=True, order=True)
class Event:
    """Start or end of one fault in a time span.

    Attributes
    ----------
    seconds
        Time of the event since the start of the time span.
    fault_index
        Index of the fault in the list of flapping faults.
    down
        Whether the fault starts; False: the fault ends.
    """

    seconds: float
    fault_index: int
    down: bool


@dataclass(frozen=True)
class Flapping:
    """Faults that start and end repeatedly, with the times of these events.

    Attributes
    ----------
    faults
        Faults that start and end.
    events
        Starts and ends of the faults, in order of time.
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
        """Yield the set of present faults after each event, with the time of the event in seconds.

        The faults are in the order of ``faults``.  Events at the same time yield one set.
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
    restore: bool = True,
) -> Flapping:
    """Draw random times at which faults start and end, independently of each other.

    Parameters
    ----------
    faults
        Faults that start and end; no fault is present at first.
    seed
        Random seed.  Equal faults, seed and options give equal events.
    seconds
        Length of the time span; all events lie within it.
    up, down
        Mean duration of the time without and with a fault, in seconds; both durations are exponentially distributed.
    restore
        Whether all faults that are still present end at the end of the time span.

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
        if restore and not falls:
            events.append(Event(seconds, index, False))
    return Flapping(tuple(faults), tuple(sorted(events)))
