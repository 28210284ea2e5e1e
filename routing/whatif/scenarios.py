"""Faults that happen together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.faults import Fault, Lottery

MOST = 1_000_000
"""Random scenarios at most: each is held in memory with its faults."""


@dataclass(frozen=True)
class Scenario:
    """Faults that happen together; mostly one."""

    faults: tuple[Fault, ...]

    @property
    def name(self) -> str:
        """For people."""
        return ", ".join(fault.name for fault in self.faults) or "nothing"

    @property
    def kind(self) -> str:
        """Kinds of the faults, each once."""
        return "+".join(dict.fromkeys(fault.kind.value for fault in self.faults))


def alone(faults: Iterable[Fault]) -> list[Scenario]:
    """Each fault by itself."""
    return [Scenario((fault,)) for fault in faults]


def sampled(
    fabric: Fabric,
    count: int,
    *,
    seed: int,
    together: int | None = None,
    rate: float | None = None,
    kinds: Sequence[str] = ("link",),
    groups: Sequence[Fault] = (),
) -> list[Scenario]:
    """Random scenarios, each of ``together`` faults or of a share ``rate`` of all that can break, at least one thing.

    ``kinds`` and ``groups`` are those of :func:`routing.faults.random_faults`.

    The same fault may come in several scenarios, and the same scenario may come twice; a longer list begins with a
    shorter one.  Where nothing can break, there is no scenario of a share.

    Raises
    ------
    OptionError
        See :func:`routing.faults.random_faults`; a negative number of scenarios, or more than :data:`MOST`.
    """
    if not 0 <= count <= MOST:
        raise OptionError(f"{count} scenarios", remedy=f"use 0 to {MOST:,}")
    lottery = Lottery.of(fabric, kinds, groups)
    if rate is None or together is not None:
        drawn = (lottery.draw(f"{seed}/{number}", count=together, rate=rate) for number in range(count))
    elif not lottery.draw(seed, rate=1.0):
        return []
    else:
        drawn = (lottery.share(f"{seed}/{number}", rate) for number in range(count))
    return [Scenario(tuple(faults)) for faults in drawn]
