"""Read OpenSM's torus-2QoS.conf (``man torus-2QoS.conf``)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from routing.errors import ParseError
from routing.formats.text import c_number, lines_of, read_text

AXES = "xyz"
MAX_RADIX = 1 << 15
_RADIX = re.compile(r"(\d{1,5})([mMtT]?)")
_LINK = re.compile(r"([xyz])([pm])_link")
_DATELINE = re.compile(r"([xyz])_dateline")
_IGNORED = ("portgroup_max_ports", "port_order", "max_changes")
"""Keywords that have no effect on the tables of ibnue."""


@dataclass(frozen=True)
class SeedLink:
    """Link of a seed: the GUIDs of its two switches, and the number of the line that states the link."""

    start: int
    end: int
    line: int


@dataclass(frozen=True)
class TorusSeed:
    """A seed: a switch, the links of this switch that define the directions, and the positions of the datelines.

    Attributes
    ----------
    links
        Link in each direction, by dimension (0 to 2) and step (1 or -1).
    datelines
        For each dimension: number of steps in ascending direction from the seed's switch to the origin (position 0).
        The dateline lies between the last position and the origin.
    """

    links: dict[tuple[int, int], SeedLink] = field(default_factory=dict)
    datelines: dict[int, int] = field(default_factory=dict)

    @property
    def switch(self) -> int:
        """Return the GUID of the switch from which all links of the seed start."""
        return next(iter(self.links.values())).start


@dataclass(frozen=True)
class TorusConf:
    """Content of a torus-2QoS.conf.

    Attributes
    ----------
    path, line
        The file, and the line that states the topology.
    radix, is_ring
        Size of each of the three dimensions, and whether the switches along each dimension form rings instead of lines.
    seeds
        The seeds, which are tried in this order.
    """

    path: str
    line: int
    radix: tuple[int, int, int]
    is_ring: tuple[bool, bool, bool]
    seeds: tuple[TorusSeed, ...]


def read_torus_conf(path: str | Path) -> TorusConf:
    """Read a torus-2QoS.conf.  As in OpenSM, words after the values of a keyword are ignored.

    Raises
    ------
    ParseError
        A keyword is unknown, a value is missing or invalid, the first keyword is not the topology, or there is no seed.
    EnvironmentProblem
        The file cannot be read.
    """
    topology: tuple[int, tuple[int, ...], tuple[bool, ...]] | None = None
    seeds = [TorusSeed()]
    for number, text in lines_of(read_text(path)):
        words = text.split()
        if not words or words[0].startswith("#"):
            continue
        keyword, values = words[0], words[1:]

        def wrong(problem: str, remedy: str, number: int = number) -> ParseError:
            return ParseError(problem, path=path, line=number, remedy=remedy)

        if topology is None:
            if keyword not in ("torus", "mesh"):
                raise wrong(f"{keyword!r} comes before the topology", "begin with: torus X Y Z, or mesh X Y Z")
            topology = (number, *_topology(keyword, values, wrong))
        elif found := _LINK.fullmatch(keyword):
            _add_link(seeds[-1], found, values, number, wrong)
        elif found := _DATELINE.fullmatch(keyword):
            if not values or not re.fullmatch(r"[+-]?\d{1,6}", values[0]):
                raise wrong(f"{keyword} has no position", f"write {keyword} and a whole number")
            seeds[-1].datelines[AXES.index(found[1])] = int(values[0])
        elif keyword == "next_seed":
            seeds.append(TorusSeed())
        elif keyword not in _IGNORED:
            raise wrong(f"{keyword!r} is not a keyword of torus-2QoS.conf", "see man torus-2QoS.conf")
    if topology is None:
        raise ParseError("states no topology", path=path, remedy="begin with: torus X Y Z, or mesh X Y Z")
    named = tuple(seed for seed in seeds if seed.links)
    if not named:
        raise ParseError("has no seed", path=path, remedy="name links of a switch, such as: xp_link 0x2000 0x2001")
    line, radix, is_ring = topology
    return TorusConf(str(path), line, (radix[0], radix[1], radix[2]), (is_ring[0], is_ring[1], is_ring[2]), named)


def _topology(
    keyword: str, values: list[str], wrong: Callable[[str, str], ParseError]
) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """Return the size of each of the three dimensions, and whether each dimension consists of rings.

    ``wrong`` is a function that returns the error to raise.  Its arguments are the texts of the problem and of the
    remedy.
    """
    found = [_RADIX.fullmatch(value) for value in values[:3]]
    if len(found) < 3 or not all(each and 1 <= int(each[1]) <= MAX_RADIX for each in found):
        raise wrong(
            "the topology has no three sizes", f"write {keyword} X Y Z, with 1 for a dimension that is not used"
        )
    known = [each for each in found if each is not None]
    return tuple(int(each[1]) for each in known), tuple((each[2] or keyword[0]).lower() == "t" for each in known)


def _add_link(
    seed: TorusSeed, found: re.Match[str], values: list[str], number: int, wrong: Callable[[str, str], ParseError]
) -> None:
    guids = [c_number(value) for value in values[:2]]
    if len(guids) < 2 or None in guids:
        raise wrong(f"{found[0]} has no two GUIDs", f"write {found[0]} 0xGUID 0xGUID")
    link = SeedLink(guids[0] or 0, guids[1] or 0, number)
    if seed.links and link.start != seed.switch:
        raise wrong(
            f"the link starts at {link.start:#x}, and the seed at {seed.switch:#x}",
            "start all links of a seed at one switch, or begin another seed with next_seed",
        )
    seed.links[AXES.index(found[1]), 1 if found[2] == "p" else -1] = link
