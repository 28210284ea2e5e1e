"""Fault scenarios: sets of faults that occur at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.faults import Fault, Lottery

MOST = 1_000_000
"""Largest number of random scenarios, which are all held in memory."""


@dataclass(frozen=True)
class Scenario:
    """Faults that occur at the same time, usually a single fault."""

    faults: tuple[Fault, ...]

    @property
    def name(self) -> str:
        """Names of the faults as one text, for printing."""
        return ", ".join(fault.name for fault in self.faults) or "nothing"

    @property
    def kind(self) -> str:
        """Kinds of the faults as one text, each kind once."""
        return "+".join(dict.fromkeys(fault.kind.value for fault in self.faults))


def single_faults(faults: Iterable[Fault]) -> list[Scenario]:
    """Return one scenario for each of the given faults."""
    return [Scenario((fault,)) for fault in faults]


def draw_faults(
    fabric: Fabric,
    count: int,
    *,
    seed: int,
    together: int | None = None,
    rate: float | None = None,
    kinds: Sequence[str] = ("link",),
    groups: Sequence[Fault] = (),
) -> list[Scenario]:
    """Draw random fault scenarios.

    ``count`` is the number of scenarios.  Each scenario has ``together`` faults, or the share ``rate`` of all possible
    faults (at least one).  For ``kinds`` and ``groups`` see :func:`routing.faults.random_faults`.  A fault may occur in
    several scenarios, and a scenario may occur twice.  For the same seed, a larger ``count`` only adds scenarios at the
    end.  With ``rate``, the list is empty if no faults are possible on the fabric.

    Raises
    ------
    OptionError
        The number of scenarios is negative or over :data:`MOST`, or :func:`routing.faults.random_faults` refuses the
        arguments.
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
