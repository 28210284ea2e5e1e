"""Options that all generators of fabrics share: CAs, parallel links, link width and speed, LMC, seed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from routing.errors import OptionError
from routing.rates import NOMINAL, SPEED_OF, WIDTHS, speed_name


@dataclass(frozen=True)
class TopologyOptions:
    """Options that all generators of fabrics share.

    Attributes
    ----------
    cas
        Number of CAs on each switch that has CAs.  None: the number that the generator of the topology uses by default.
    redundancy
        Number of parallel links for each link of the topology.
    width
        Link width in physical lanes: 1, 2, 4, 8 or 12.
    speed
        Speed of the links: SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR.  A number is the signalling rate of one
        physical lane in Gb/s, which may deviate by one percent (14 is FDR).
    lmc
        LMC of the CAs' ports, 0 to 7.
    seed
        Random seed of random topologies; other topologies ignore the seed.
    aggregation
        Whether each switch has an aggregation node (a SHARP unit inside the switch) on its last port: 0 or 1.
    name
        Name of the fabric; None: derived from the topology and its arguments.

    Raises
    ------
    OptionError
        A value is out of range.
    """

    cas: int | None = None
    redundancy: int = 1
    width: int = 4
    speed: float | str = "SDR"
    lmc: int = 0
    seed: int = 1
    aggregation: int = 0
    name: str | None = None

    def __post_init__(self) -> None:
        self._check_types()
        if self.cas is not None and not 0 <= self.cas <= 254:
            raise OptionError(f"{self.cas} CAs on a switch", remedy="choose 0 to 254")
        if not 1 <= self.redundancy <= 254:
            raise OptionError(f"a redundancy of {self.redundancy}", remedy="choose 1 (single links) to 254")
        if self.width not in WIDTHS:
            raise OptionError(f"no link is {self.width} lanes wide", remedy="choose 1, 2, 4, 8 or 12")
        if self.aggregation not in (0, 1):
            raise OptionError(f"{self.aggregation} aggregation nodes on a switch", remedy="choose 0 or 1")
        if not 0 <= self.lmc <= 7:
            raise OptionError(f"LMC {self.lmc} is out of range", remedy="choose 0 to 7")
        if _rate(self.speed) is None:
            known = ", ".join(f"{name} ({rate:g})" for name, rate in SPEED_OF.items())
            raise OptionError(f"no link has the speed {self.speed!r}", remedy=f"choose one of {known}, or 10G to 800G")
        of_width_4 = str(self.speed).upper().startswith("4X") or str(self.speed).upper() in NOMINAL
        if of_width_4 and self.width != 4:
            raise OptionError(f"{self.speed} is for width 4, and width is {self.width}", remedy="leave one out")

    def _check_types(self) -> None:
        """Check the types of the options, because options from a command line can have any type."""
        for option in ("cas", "redundancy", "width", "lmc", "seed", "aggregation"):
            value = getattr(self, option)
            if not (type(value) is int or (option == "cas" and value is None)):
                raise OptionError(f"{option} is {value!r}, not a whole number", remedy=f"write it like {option}=1")
        if isinstance(self.speed, bool) or not isinstance(self.speed, (int, float, str)):
            raise OptionError(f"speed is {self.speed!r}", remedy=f"choose one of {', '.join(SPEED_OF)}")
        if not (self.name is None or isinstance(self.name, str)):
            raise OptionError(f"name is {self.name!r}", remedy="a name is text")

    @property
    def rate(self) -> float:
        """Signalling rate of one physical lane in Gb/s."""
        rate = _rate(self.speed)
        assert rate is not None, "checked when the options were made"
        return rate

    def cas_or(self, default: int) -> int:
        """Return the number of CAs per switch in the options, or ``default`` if the options have no such number."""
        return default if self.cas is None else self.cas


def _rate(speed: float | str) -> float | None:
    if isinstance(speed, str):
        if re.fullmatch(r"\d{1,3}(\.\d{1,6})?", speed, re.ASCII) is None:
            return SPEED_OF.get(NOMINAL.get(speed.upper(), speed.upper().removeprefix("4X")))
        speed = float(speed)
    name = speed_name(speed)
    return None if name is None else SPEED_OF[name]


DEFAULTS = TopologyOptions()
