"""Text form of a task's fault case: ``intact``, the name of a fault, or random faults such as ``random 1% link 1/17``.

The last example is case 17 (counted from 0) of the random cases that ``ibnue whatif --random`` draws with seed 1.  In
each of these cases, 1 % of all links fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.faults import Fault, FaultKind, Lottery, parse_fault, random_faults

INTACT = "intact"
_SAMPLE = re.compile(r"([0-9]{1,18})(?::(?:([0-9]{1,18})|([0-9]+(?:\.[0-9]*)?)%))?", re.ASCII)
_RANDOM = re.compile(r"random ([0-9.e-]+)(%?) (\S+) ([0-9]+/[0-9]+)", re.ASCII)


@dataclass(frozen=True)
class RandomFaults:
    """Specification of a series of random fault cases.

    Attributes
    ----------
    cases
        Number of cases.
    together
        Number of simultaneous faults in each case; None: ``percent`` determines it.
    percent
        Number of simultaneous faults in each case as a percentage of all possible faults (at least one fault).  None:
        ``together`` determines the number.
    kinds
        Kinds of faults, such as "link" (:func:`routing.faults.random_faults`).
    seed
        Random seed.  If only ``cases`` becomes larger, the list keeps its cases and gets further cases at its end.
    """

    cases: int
    together: int | None = 2
    percent: float | None = None
    kinds: tuple[str, ...] = ("link",)
    seed: int = 1

    @classmethod
    def parse(cls, text: str, kinds: Sequence[str] = ("link",), seed: int = 1) -> RandomFaults:
        """Parse ``100`` (100 cases of two faults each), ``100:3`` (of three faults) or ``100:1%`` (of 1 % of all
        faults).

        Raises
        ------
        OptionError
            The text has none of these forms, or a kind is "group".
        """
        found = _SAMPLE.fullmatch(text)
        if found is None or float(found[3] or 0) > 100.0:
            raise OptionError(f"{text!r} is not a sample", remedy="write 100, 100:3 or 100:1%")
        if "group" in kinds:
            raise OptionError("a sweep draws no groups", remedy="name groups as faults, each a case of its own")
        percent = None if found[3] is None else float(found[3])
        return cls(int(found[1]), None if found[3] else int(found[2] or 2), percent, tuple(kinds), seed)

    def texts(self, fabric: Fabric) -> Iterator[str]:
        """Yield the text of every random case.  There are no random cases if no faults are possible on the fabric.

        Raises
        ------
        OptionError
            A kind is unknown, or a case has more faults than are possible.
        """
        if not random_faults(fabric, seed=0, rate=1.0, kinds=self.kinds):
            return
        if self.together is not None:
            random_faults(fabric, seed=0, count=self.together, kinds=self.kinds)
        what = f"{self.percent:g}%" if self.percent is not None else f"{self.together}"
        for number in range(self.cases):
            yield f"random {what} {','.join(self.kinds)} {self.seed}/{number}"


def text_of(fault: Fault) -> str:
    """Return the text form of a single fault.  :func:`faults_of` converts the text back."""
    word = f"{fault.kind.value} "
    plain = fault.kind in (FaultKind.LINK, FaultKind.SWITCH, FaultKind.CA)
    return word + fault.name if plain else fault.name


def faults_of(text: str, fabric: Fabric) -> Sequence[Fault]:
    """Return the faults of a fabric that the text of a fault case describes.

    Raises
    ------
    OptionError
        The text does not name faults of this fabric.
    """
    if text == INTACT:
        return []
    drawn = _RANDOM.fullmatch(text)
    if drawn is None:
        return [parse_fault(text, fabric)]
    kinds, seed = drawn[3].split(","), drawn[4]
    if not drawn[2]:
        return random_faults(fabric, seed=seed, count=int(drawn[1]), kinds=kinds)
    return Lottery.of(fabric, kinds).share(seed, float(drawn[1]) / 100.0)
