"""Choose faults: every possible single fault of a kind, or random faults."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.faults.model import Fault, FaultKind, node_guids
from routing.numerals import count_noun


def between_switches(fabric: Fabric) -> npt.NDArray[np.int64]:
    """Return the rows of the cables that connect two different switches."""
    ends = fabric.link_device
    return np.flatnonzero((ends < fabric.switches).all(axis=1) & (ends[:, 0] != ends[:, 1]))


def link_faults(
    fabric: Fabric, links: Iterable[int], kind: FaultKind = FaultKind.LINK, width: int | None = None
) -> list[Fault]:
    """Return one fault for each given cable: loss of the cable, or with ``FaultKind.DEGRADE`` a smaller link width."""
    names = fabric.labels
    guids, ends, ports = node_guids(fabric).tolist(), fabric.link_device.tolist(), fabric.link_port.tolist()
    faults = []
    for row in links:
        (a, b), (p, q) = ends[row], ports[row]
        name = f"{names[a]}/{p} - {names[b]}/{q}"
        if kind is FaultKind.DEGRADE:
            faults.append(Fault(kind, f"degrade {name} {width}x", ((guids[a], p),), width=width))
        else:
            faults.append(Fault(kind, name, ((guids[a], p), (guids[b], q))))
    return faults


def every_link(fabric: Fabric, *, cas: bool = False) -> list[Fault]:
    """Return one fault for the loss of each cable between two different switches, in the order of the fabric's cables.

    With ``cas``, all other cables are included, such as the cables of CAs.

    Notes
    -----
    Cost: O(S + T + K) for S switches, T terminals and K cables.
    """
    return link_faults(fabric, range(fabric.links) if cas else between_switches(fabric).tolist())


def every_switch(fabric: Fabric) -> list[Fault]:
    """Return one fault for the loss of each switch, ordered by GUID."""
    names = fabric.labels[: fabric.switches]
    guids = fabric.switch_guid.tolist()
    return [Fault(FaultKind.SWITCH, name, devices=(guid,)) for name, guid in zip(names, guids, strict=True)]


def every_ca(fabric: Fabric) -> list[Fault]:
    """Return one fault for the loss of each CA and router, ordered by GUID."""
    names = fabric.labels[fabric.switches :]
    guids = fabric.terminal_guid.tolist()
    return [Fault(FaultKind.CA, name, devices=(guid,)) for name, guid in zip(names, guids, strict=True)]


def random_faults(
    fabric: Fabric,
    *,
    seed: int | str,
    rate: float | None = None,
    count: int | None = None,
    kinds: Sequence[str] = ("link",),
    groups: Sequence[Fault] = (),
) -> list[Fault]:
    """Draw random faults of a fabric; no fault is drawn twice.

    Parameters
    ----------
    fabric
        Fabric whose devices and cables fail.
    seed
        Random seed.  Equal fabric, seed and options give equal faults.
    rate, count
        Either the fraction of all possible faults (0.01: one in a hundred, rounded to the nearest number), or the
        number of faults to draw.
    kinds
        Kinds to draw from: "link" (between switches), "ca-link" (all other cables), "switch", "ca", "degrade" (a cable
        between switches to link width 1), "swap" (two cables between switches exchange plugs), "group".
    groups
        Faults of the kind "group" to draw from.  All members of a drawn group fail together.

    Raises
    ------
    OptionError
        Neither or both of rate and count are given, the rate is not within 0 to 1, fewer faults are possible than
        requested, or a kind is unknown.
    """
    return Lottery.of(fabric, kinds, groups).draw(seed, rate=rate, count=count)


@dataclass(frozen=True, eq=False)
class Lottery:
    """All possible faults of a fabric, collected once so that faults can be drawn many times.

    For a single draw there is :func:`random_faults`.

    Attributes
    ----------
    fabric, kinds
        Fabric, and the kinds of faults to draw from.
    faults
        Possible faults of each kind; for "swap" the links whose plugs can be exchanged.
    """

    fabric: Fabric
    kinds: tuple[str, ...]
    faults: tuple[Sequence[Fault], ...]

    @classmethod
    def of(cls, fabric: Fabric, kinds: Sequence[str], groups: Sequence[Fault] = ()) -> Lottery:
        """Collect all possible faults of the given kinds.

        Raises
        ------
        OptionError
            A kind is unknown, or ``kinds`` has "group" but ``groups`` is empty.

        Notes
        -----
        Cost: O(S + T + K) for S switches, T terminals and K cables.
        """
        makers: dict[str, Callable[[], Sequence[Fault]]] = {
            "link": lambda: every_link(fabric),
            "ca-link": lambda: _other_links(fabric),
            "switch": lambda: every_switch(fabric),
            "ca": lambda: every_ca(fabric),
            "degrade": lambda: _degradations(fabric),
            "swap": lambda: every_link(fabric),
            "group": lambda: groups,
        }
        for kind in kinds:
            if kind not in makers:
                raise OptionError(f"{kind!r} is not a kind of random fault", remedy=f"use {', '.join(makers)}")
        if "group" in kinds and not groups:
            raise OptionError("there are no groups to draw from", remedy="name a list file of groups")
        return cls(fabric, tuple(kinds), tuple(makers[kind]() for kind in kinds))

    def draw(self, seed: int | str, *, rate: float | None = None, count: int | None = None) -> list[Fault]:
        """Draw random faults; :func:`random_faults` explains the arguments.

        Raises
        ------
        OptionError
            Neither or both of rate and count are given, the rate is not within 0 to 1, or fewer faults are possible
            than requested.
        """
        if (rate is None) == (count is None):
            raise OptionError("random faults need a rate or a count", remedy="give one of the two")
        if rate is not None and not 0.0 <= rate <= 1.0:
            raise OptionError(f"{rate:g} is not a rate of faults", remedy="use 0 to 1: 0.01 is one in a hundred")
        rng = random.Random(seed)
        candidates: list[Fault] = []
        for kind, faults in zip(self.kinds, self.faults, strict=True):
            candidates += _swaps(faults, rng) if kind == "swap" else faults
        wanted = count if count is not None else round((rate or 0.0) * len(candidates))
        kinds = ", ".join(self.kinds)
        if wanted and not candidates:
            raise OptionError(
                f"{count_noun(wanted, 'random fault')}, and {self.fabric.name} has none of kind {kinds}",
                remedy="leave these faults out, or choose other kinds",
            )
        if not 0 <= wanted <= len(candidates):
            raise OptionError(
                f"{count_noun(wanted, 'random fault')}, and {self.fabric.name} has {len(candidates)} of kind {kinds}",
                remedy=f"use 0 to {len(candidates)}",
            )
        return rng.sample(candidates, wanted)

    def share(self, seed: int | str, rate: float) -> list[Fault]:
        """Draw a fraction of all possible faults, but at least one fault if any is possible.

        Raises
        ------
        OptionError
            The rate is not within 0 to 1.
        """
        return self.draw(seed, rate=rate) or self.draw(seed, count=min(1, len(self.draw(seed, rate=1.0))))


def _other_links(fabric: Fabric) -> list[Fault]:
    inner = set(between_switches(fabric).tolist())
    return link_faults(fabric, [row for row in range(fabric.links) if row not in inner])


def _degradations(fabric: Fabric) -> list[Fault]:
    wide = [row for row in between_switches(fabric).tolist() if fabric.link_width[row] > 1]
    return link_faults(fabric, wide, FaultKind.DEGRADE, 1)


def _swaps(links: Sequence[Fault], rng: random.Random) -> list[Fault]:
    """Pair cables at random, and return one plug exchange for each pair.

    Each element of ``links`` is the loss of one cable.  No cable is in two pairs.  If the number of cables is odd, one
    cable stays without a pair.
    """
    mixed = rng.sample(links, len(links))
    swaps = []
    for a, b in zip(mixed[::2], mixed[1::2], strict=False):
        name = f"swap {a.name.rpartition(' - ')[2]} {b.name.rpartition(' - ')[2]}"
        swaps.append(Fault(FaultKind.SWAP, name, (a.ports[1], b.ports[1])))
    return swaps
