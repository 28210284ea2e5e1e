"""What is broken in a task, as text: ``intact``, a fault by name, or ``random rate=0.01 kinds=link seed=7``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.faults import Fault, FaultKind, parse_fault, random_faults

INTACT = "intact"
_RANDOM = re.compile(r"random (rate|count)=(\S+) kinds=(\S+) seed=(\d+)", re.ASCII)


@dataclass(frozen=True)
class RandomFaults:
    """Random cases.

    Attributes
    ----------
    cases
        How many.
    rate, count
        One of the two: the share of what can break (at least one thing breaks), or how many.
    kinds
        As :func:`routing.faults.random_faults` takes them.
    seed
        Of the first case; the others follow it.
    """

    cases: int
    rate: float | None = None
    count: int | None = None
    kinds: tuple[str, ...] = ("link",)
    seed: int = 1

    def texts(self, fabric: Fabric) -> Iterator[str]:
        """Every case; none where there is nothing that could break by rate.

        Raises
        ------
        OptionError
            Neither or both of rate and count, a rate that is none, more than there is to break.
        """
        if (self.rate is None) == (self.count is None):
            raise OptionError("random faults need a rate or a count", remedy="--rate 0.01, or --count 2")
        if self.count is not None:
            random_faults(fabric, seed=self.seed, count=self.count, kinds=self.kinds)
        elif not random_faults(fabric, seed=self.seed, rate=1.0, kinds=self.kinds):
            return
        else:
            random_faults(fabric, seed=self.seed, rate=self.rate, kinds=self.kinds)
        what = f"rate={self.rate:g}" if self.rate is not None else f"count={self.count}"
        for seed in range(self.seed, self.seed + self.cases):
            yield f"random {what} kinds={','.join(self.kinds)} seed={seed}"


def text_of(fault: Fault) -> str:
    """A fault as a task says it; :func:`faults_of` reads it back."""
    word = f"{fault.kind.value} "
    plain = fault.kind in (FaultKind.LINK, FaultKind.SWITCH, FaultKind.CA)
    return word + fault.name if plain else fault.name


def faults_of(text: str, fabric: Fabric) -> Sequence[Fault]:
    """The faults that a task's text means.

    Raises
    ------
    OptionError
        It means nothing on this fabric.
    """
    if text == INTACT:
        return []
    drawn = _RANDOM.fullmatch(text)
    if drawn is None:
        return [parse_fault(text, fabric)]
    kinds, seed = drawn[3].split(","), int(drawn[4])
    if drawn[1] == "count":
        return random_faults(fabric, seed=seed, count=int(drawn[2]), kinds=kinds)
    some = random_faults(fabric, seed=seed, rate=float(drawn[2]), kinds=kinds)
    return some or random_faults(fabric, seed=seed, count=1, kinds=kinds)
