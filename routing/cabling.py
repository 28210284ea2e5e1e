"""Compare a planned fabric with a real fabric: renamed or replaced devices, and cables or rates that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from routing.errors import InputError
from routing.fabric import Fabric
from routing.names import system_name
from routing.rates import rate_name

End = tuple[int, int]
"""End of a cable: number of the device in its fabric, and port.

In a comparison, a real device has the number of the planned device that it matches.  A negative number stands for a
real device without a planned device.
"""
Kind = Literal["missing", "extra", "moved", "swapped", "mixed up"]
COMPARABLE = 0.5
"""GUIDs are compared before names if the real fabric has at least this share of the plan's GUIDs (0 to 1).  If the
share is lower, the plan's GUIDs are assumed to be invented.  Invented GUIDs do not identify hardware, so names are then
compared first.
"""
RATED = 0.5
"""Rates are compared if at least this share of the cables has the planned rate (0 to 1).  If the share is lower, the
rates of the plan are assumed to be invented, as in a plan whose format has no rates.
"""
ALIKE = 0.5
"""A real device matches a planned device by cables if it has at least this share of the planned device's cables.

Only devices that do not match by GUID or name are matched by cables.
"""


@dataclass(frozen=True)
class CableFinding:
    """One difference in the cabling: a single cable, or several planned and real cables that have ports in common.

    Attributes
    ----------
    kind
        "missing": a cable of the plan does not exist.  "extra": a cable is not in the plan.  "moved": one end of a
        cable is in another port.  "swapped": two cables have exchanged plugs.  "mixed up": any other set of cables.
    planned, found
        Cables of the plan, and cables of the real fabric that take their place, as texts such as "leaf1/3 - spine2/4".
    """

    kind: Kind
    planned: tuple[str, ...]
    found: tuple[str, ...]

    @property
    def edits(self) -> int:
        """Return the number of cables to reconnect.  If cables are swapped or mixed up, the result is one less than the
        number of these cables: if all other cables are in their places, the last cable is in its place, too.
        """
        return max(len(self.planned), len(self.found)) - (self.kind in ("swapped", "mixed up"))


@dataclass(frozen=True)
class RateFinding:
    """A cable that is in its place, but whose rate is not the planned rate.

    Attributes
    ----------
    cable
        The cable as a text such as "leaf1/3 - spine2/4".
    planned, found
        The planned and the real rate, such as "4xEDR" and "1xEDR".
    is_slower
        Whether the real rate is lower than the planned rate.
    """

    cable: str
    planned: str
    found: str
    is_slower: bool


@dataclass(frozen=True)
class Comparison:
    """Differences between a plan and a real fabric.

    Attributes
    ----------
    renamed
        Pairs (planned name, real name) of devices with the same GUID.
    replaced
        Pairs (planned name, real name) of devices with another GUID in the same place.
    exchanged
        Pairs of devices that have changed places: each device has the cables of the other device.
    missing_devices, extra_devices
        Names of devices that only one of the two fabrics has.
    cables
        Differences of the cabling between devices that are in both fabrics.
    rates
        Cables in their places with another rate than planned.  None: rates were not compared (:data:`RATED`).
    lost_cables, new_cables
        Number of cables at the missing devices, and number of cables at the extra devices.
    matched
        Number of devices that are in both fabrics.
    """

    renamed: tuple[tuple[str, str], ...]
    replaced: tuple[tuple[str, str], ...]
    exchanged: tuple[tuple[str, str], ...]
    missing_devices: tuple[str, ...]
    extra_devices: tuple[str, ...]
    cables: tuple[CableFinding, ...]
    rates: tuple[RateFinding, ...] | None
    lost_cables: int
    new_cables: int
    matched: int

    @property
    def same(self) -> bool:
        """Return whether the real fabric has the devices and the cables of the plan, with the planned rates.

        Names and GUIDs may differ.
        """
        return not (self.exchanged or self.missing_devices or self.extra_devices or self.cables or self.rates)

    @property
    def edits(self) -> int:
        """Return the number of cables to reconnect between the devices that both fabrics have."""
        return sum(finding.edits for finding in self.cables)


@dataclass(eq=False)
class _Device:
    """A device of one of the two fabrics: its name, GUID, kind (0 for switches), and for each cabled port the peer and
    the rate.

    A peer is a device and its port.  A rate is a link width and a signalling rate in Gb/s.  ``system`` is the
    :func:`~routing.names.system_name` of the device in lower case, and ``label`` the name for reports.
    """

    name: str
    guid: int
    kind: int
    system: str
    label: str
    peers: dict[int, End] = field(default_factory=dict)
    rates: dict[int, tuple[int, float]] = field(default_factory=dict)


def _devices(fabric: Fabric) -> list[_Device]:
    """Return the devices of a fabric, switches first, with their cables.

    Aggregation nodes are left out, because these nodes are inside switches and have no cables.
    """
    kinds = [0] * fabric.switches + [1 + int(kind) for kind in fabric.terminal_kind]
    names = (*fabric.switch_name, *fabric.terminal_name)
    guids = [*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist()]
    systems = [system_name(name).casefold() for name in names]
    rows = zip(names, guids, kinds, systems, fabric.labels, strict=True)
    devices = [_Device(*row) for row in rows]
    cabled = np.concatenate([np.ones(fabric.switches, np.bool_), ~fabric.aggregation_nodes])
    number = (np.cumsum(cabled) - 1).tolist()
    outside = cabled[fabric.link_device].all(axis=1)
    columns = (fabric.link_device, fabric.link_port, fabric.link_width, fabric.link_speed)
    for (a, b), (port_a, port_b), *rate in zip(*(column[outside].tolist() for column in columns), strict=True):
        devices[a].peers[port_a] = (number[b], port_b)
        devices[b].peers[port_b] = (number[a], port_a)
        devices[a].rates[port_a] = devices[b].rates[port_b] = (rate[0], rate[1])
    return [device for device, there in zip(devices, cabled.tolist(), strict=True) if there]


def compare_cabling(plan: Fabric, real: Fabric) -> Comparison:
    """Compare a real fabric with its plan.

    The rates of cables are compared if most cables have the planned rate.

    Devices are matched by GUID and by name, and all remaining devices by their cables.  Names are compared without
    regard to case, and without the text that a switch adds to the name of its system (``MF0;leaf1:MQM8700/U1``).
    Aggregation nodes do not count.  If the real fabric has less than half of the plan's GUIDs, the GUIDs of the plan
    are assumed to be invented.  In this case names take precedence over GUIDs.

    Raises
    ------
    InputError
        No device of the plan is in the real fabric by name or GUID.

    Notes
    -----
    Cost: O(devices + cables), and a few passes over the devices that are not matched by GUID or name.
    """
    planned, found = _devices(plan), _devices(real)
    comparable = _guids_are_comparable(planned, found)
    match = _by_identity(planned, found, comparable=comparable)
    if planned and found and not match:
        raise InputError(
            "no device of the plan is in the real fabric, by name or GUID",
            remedy="give the names with --node-name-map, or compare the right files",
        )
    by_cables = _by_cables(planned, found, match)
    match |= by_cables
    exchanged = _exchanged(planned, found, match)
    for a, b in exchanged:
        match[a], match[b] = match[b], match[a]
    renamed = [(planned[a].name, found[b].name) for a, b in sorted(match.items())
               if comparable and planned[a].guid == found[b].guid and planned[a].name != found[b].name]  # fmt: skip
    replaced = [(planned[a].name, found[b].name) for a, b in sorted(match.items())
                if (comparable or a in by_cables) and planned[a].guid != found[b].guid]  # fmt: skip
    gone = [a for a in range(len(planned)) if a not in match]
    taken = set(match.values())
    new = [b for b in range(len(found)) if b not in taken]
    return Comparison(
        renamed=tuple(renamed),
        replaced=tuple(replaced),
        exchanged=tuple((planned[a].label, planned[b].label) for a, b in exchanged),
        missing_devices=tuple(planned[a].label for a in gone),
        extra_devices=tuple(found[b].label for b in new),
        cables=tuple(_findings(planned, found, match)),
        rates=_rates(planned, found, match),
        lost_cables=_cables_at(planned, set(gone)),
        new_cables=_cables_at(found, set(new)),
        matched=len(match),
    )


def _cables_at(devices: list[_Device], chosen: set[int]) -> int:
    ends = sum(len(devices[number].peers) for number in chosen)
    both = sum(peer in chosen for number in chosen for peer, _ in devices[number].peers.values())
    return ends - both // 2


def _guids_are_comparable(planned: list[_Device], found: list[_Device]) -> bool:
    guids = {(device.kind, device.guid) for device in found}
    common = sum((device.kind, device.guid) in guids for device in planned)
    return common >= COMPARABLE * max(len(planned), 1)


def _by_identity(planned: list[_Device], found: list[_Device], *, comparable: bool) -> dict[int, int]:
    """Match devices by GUID, name or system name.

    With ``comparable``, GUIDs are compared first, and then names.  Without it, the GUIDs of the plan are assumed to be
    invented, so names are compared first.  Returns the number of the real device by the number of the planned device.
    """
    match: dict[int, int] = {}
    taken: set[int] = set()
    keys = ["guid", "name", "system"] if comparable else ["name", "system", "guid"]
    for key in keys:
        left = [_unique(devices, key, skipped) for devices, skipped in ((planned, set(match)), (found, taken))]
        for identity, a in left[0].items():
            b = left[1].get(identity)
            if b is not None:
                match[a] = b
                taken.add(b)
    return match


def _unique(devices: list[_Device], key: str, skipped: set[int]) -> dict[tuple[int, object], int]:
    """Return a dictionary from pairs (kind of a device, value of its attribute ``key``) to the number of the device.

    A device is left out if another device has the same pair, if the value is empty, or if ``skipped`` contains the
    number.
    """
    identities = [(device.kind, getattr(device, key)) for device in devices]
    counts = Counter(identities)
    return {
        identity: number
        for number, identity in enumerate(identities)
        if number not in skipped and counts[identity] == 1 and identity[1]
    }


def _by_cables(planned: list[_Device], found: list[_Device], match: Mapping[int, int]) -> dict[int, int]:
    """Match the devices that are not in ``match`` by their cables.

    A real device can match a planned device if the real device has at least half of the planned device's cables
    (:data:`ALIKE`).  Returns the number of the real device by the number of the planned device.
    """
    added: dict[int, int] = {}
    while True:
        known = {**match, **added}
        taken = set(known.values())
        votes: list[tuple[int, int, int]] = []
        for a in (a for a in range(len(planned)) if a not in known):
            at = Counter[int]()
            for port, (peer, peer_port) in planned[a].peers.items():
                real_peer = known.get(peer)
                end = found[real_peer].peers.get(peer_port) if real_peer is not None else None
                if end is not None and end[0] not in taken and end[1] == port:
                    at[end[0]] += 1
            votes += [(-count, a, b) for b, count in at.items()
                      if planned[a].kind == found[b].kind and count >= ALIKE * len(planned[a].peers)]  # fmt: skip
        size = len(added)
        used: set[int] = set()
        for _, a, b in sorted(votes):
            if a not in added and b not in used:
                added[a] = b
                used.add(b)
        if len(added) == size:
            return added


def _exchanged(planned: list[_Device], found: list[_Device], match: Mapping[int, int]) -> list[tuple[int, int]]:
    """Return pairs of planned devices that have changed places: in the real fabric, each device has exactly the cables
    that the plan gives to the other device.
    """
    back = {b: a for a, b in match.items()}

    def cables_found(a: int) -> frozenset[tuple[int, End]]:
        return frozenset((port, (back.get(peer, -1 - peer), number))
                         for port, (peer, number) in found[match[a]].peers.items())  # fmt: skip

    plans = {a: frozenset(planned[a].peers.items()) for a in match if len(planned[a].peers) > 1}
    wrong = {a: cables for a, cables in plans.items() if cables != cables_found(a)}
    owner = {cables: a for a, cables in wrong.items()}
    pairs = []
    for a in sorted(wrong):
        b = owner.get(cables_found(a))
        if b is not None and a < b and planned[a].kind == planned[b].kind and cables_found(b) == wrong[a]:
            pairs.append((a, b))
    return pairs


def _findings(planned: list[_Device], found: list[_Device], match: Mapping[int, int]) -> Iterator[CableFinding]:
    """Yield the cables that differ between matched devices.  Cables that end at a common port are in one group.

    ``match`` has the number of the real device by the number of the planned device.
    """
    back = {b: a for a, b in match.items()}
    wanted, there = dict[End, End](), dict[End, End]()
    for a, device in enumerate(planned):
        if a in match:
            wanted |= {(a, port): end for port, end in device.peers.items() if end[0] in match}
    for b, device in enumerate(found):
        if b in back:
            there |= {(back[b], port): (back[end[0]], end[1]) for port, end in device.peers.items() if end[0] in back}
    differ = {end for end in {*wanted, *there} if wanted.get(end) != there.get(end)}

    def text(a: End, b: End) -> str:
        first, second = sorted((a, b))
        return f"{planned[first[0]].label}/{first[1]} - {planned[second[0]].label}/{second[1]}"

    seen: set[End] = set()
    for start in sorted(differ):
        if start in seen:
            continue
        group, queue = [start], [start]
        seen.add(start)
        for end in queue:
            for other in (wanted.get(end), there.get(end)):
                if other is not None and other not in seen:
                    seen.add(other)
                    queue.append(other)
                    group.append(other)
        old = tuple(sorted({text(end, wanted[end]) for end in group if end in wanted}))
        new = tuple(sorted({text(end, there[end]) for end in group if end in there}))
        yield CableFinding(_kind(len(old), len(new), len(group)), old, new)


def _rates(planned: list[_Device], found: list[_Device], match: Mapping[int, int]) -> tuple[RateFinding, ...] | None:
    """Return the cables between matched devices that are in their places but have another rate than planned.

    The result is None if less than the share :data:`RATED` of these cables has the planned rate.  ``match`` has the
    number of the real device by the number of the planned device.
    """
    cables, findings = 0, []
    for a, b in sorted(match.items()):
        for port, (peer, peer_port) in sorted(planned[a].peers.items()):
            in_place = peer in match and found[b].peers.get(port) == (match[peer], peer_port)
            if not in_place or (peer, peer_port) < (a, port):
                continue
            cables += 1
            wanted, there = planned[a].rates[port], found[b].rates[port]
            if rate_name(*wanted) != rate_name(*there):
                cable = f"{planned[a].label}/{port} - {planned[peer].label}/{peer_port}"
                slower = there[0] * there[1] < wanted[0] * wanted[1]
                findings.append(RateFinding(cable, rate_name(*wanted), rate_name(*there), slower))
    return tuple(findings) if cables - len(findings) >= RATED * cables else None


def _kind(planned: int, found: int, ends: int) -> Kind:
    if found == 0:
        return "missing"
    if planned == 0:
        return "extra"
    if planned == found == 1:
        return "moved"
    if planned == found == 2 and ends == 4:
        return "swapped"
    return "mixed up"
