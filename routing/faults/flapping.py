"""Links that go and come back: events in time, and the faults that last between them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from routing.errors import OptionError
from routing.faults.model import Fault


@dataclass(frozen=True, order=True)
class Event:
    """At one moment one fault begins or ends.

    Attributes
    ----------
    seconds
        Since the start.
    place
        Of the fault in its sequence.
    down
        It begins; otherwise it ends.
    """

    seconds: float
    place: int
    down: bool


@dataclass(frozen=True)
class Flapping:
    """Faults and when they begin and end.

    Attributes
    ----------
    faults
        What flaps.
    events
        In the order of time.
    """

    faults: tuple[Fault, ...]
    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        down: set[int] = set()
        for before, event in zip((None, *self.events), self.events, strict=False):
            if before is not None and event.seconds < before.seconds:
                raise OptionError(f"an event at {event.seconds:g} s after one at {before.seconds:g} s")
            if event.down == (event.place in down):
                raise OptionError(f"{self.faults[event.place]} is {'down' if event.down else 'up'} already")
            down ^= {event.place}

    def states(self) -> Iterator[tuple[float, tuple[Fault, ...]]]:
        """After each event: its time, and the faults that last from then on, in the order of ``faults``.

        Events of the same moment make one state.
        """
        down: set[int] = set()
        for number, event in enumerate(self.events):
            down ^= {event.place}
            if number + 1 == len(self.events) or self.events[number + 1].seconds > event.seconds:
                yield event.seconds, tuple(self.faults[place] for place in sorted(down))


def flapping(
    faults: Sequence[Fault],
    *,
    seed: int | str,
    seconds: float,
    up: float = 10.0,
    down: float = 1.0,
    heal: bool = True,
) -> Flapping:
    """Faults that begin and end at random, each for itself.

    Parameters
    ----------
    faults
        What flaps; all is well at first.
    seed
        Same faults, seed and options: same events.
    seconds
        No event comes later.
    up, down
        Mean seconds that a fault is away and lasts; both are drawn from an exponential distribution.
    heal
        End all faults at ``seconds``.

    Raises
    ------
    OptionError
        A time that is not over 0.
    """
    if min(seconds, up, down) <= 0:
        raise OptionError("flapping takes times over 0 seconds")
    rng = random.Random(seed)
    events = []
    for place in range(len(faults)):
        moment, falls = rng.expovariate(1 / up), True
        while moment < seconds:
            events.append(Event(moment, place, falls))
            falls = not falls
            moment += rng.expovariate(1 / (up if falls else down))
        if heal and not falls:
            events.append(Event(seconds, place, False))
    return Flapping(tuple(faults), tuple(sorted(events)))
