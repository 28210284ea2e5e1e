"""Puts a :class:`~routing.fabric.Fabric` together, part by part, and refuses what makes no fabric.

Readers and generators add devices and cables in any order; every complaint names the place that the part came from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from routing.errors import FabricError
from routing.fabric import MAX_UNICAST_LID, Fabric, NodeKind

MAX_SWITCH_PORTS = 254


@dataclass(frozen=True)
class Place:
    """Where a part was read: a file and a line in it."""

    path: str | Path | None = None
    line: int | None = None


NOWHERE = Place()


@dataclass
class _Device:
    kind: NodeKind
    guid: int
    name: str
    ports: int
    place: Place
    number: int = -1


@dataclass
class _Port:
    guid: int | None = None
    lid: int = 0
    lmc: int = 0
    place: Place = NOWHERE


@dataclass
class FabricBuilder:
    """Collects devices, LIDs and cables, then :meth:`build` s the fabric.

    Devices are named by the handle that :meth:`add_device` returns.
    """

    name: str = "fabric"
    _devices: list[_Device] = field(default_factory=list)
    _by_guid: dict[int, int] = field(default_factory=dict)
    _by_name: dict[str, int] = field(default_factory=dict)
    _ports: dict[tuple[int, int], _Port] = field(default_factory=dict)
    _cabled: dict[tuple[int, int], Place] = field(default_factory=dict)
    _peer: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    _links: list[tuple[int, int, int, int, int, float]] = field(default_factory=list)

    def add_device(
        self, kind: NodeKind, guid: int, name: str, ports: int, place: Place = NOWHERE, *, unique_name: bool = False
    ) -> int:
        """Add a switch, CA or router; returns its handle.

        Raises
        ------
        FabricError
            GUID 0 or over 64 bits, a GUID (or, with ``unique_name``, a name) that is there already, more ports than
            InfiniBand allows.
        """
        if not 0 < guid < 1 << 64:
            raise self._error(f"GUID {guid:#x} of {name!r} is no 64-bit GUID", place, "give it one from 1 to 2^64-1")
        if guid in self._by_guid:
            other = self._devices[self._by_guid[guid]].name
            raise self._error(f"GUID {guid:#x} of {name!r} belongs to {other!r} already", place, "GUIDs are unique")
        if unique_name and name in self._by_name:
            raise self._error(f"there is a node {name!r} already", place, "rename one of the two")
        limit = MAX_SWITCH_PORTS if kind is NodeKind.SWITCH else 254
        if not 0 < ports <= limit:
            raise self._error(f"{name!r} has {ports} ports", place, f"a node has 1 to {limit}")
        handle = len(self._devices)
        self._devices.append(_Device(kind, guid, name, ports, place))
        self._by_guid[guid] = handle
        self._by_name.setdefault(name, handle)
        return handle

    def find(self, name: str) -> int | None:
        """Handle of the first device with that name."""
        return self._by_name.get(name)

    def find_guid(self, guid: int) -> int | None:
        """Handle of the device with that node GUID."""
        return self._by_guid.get(guid)

    def change_guid(self, device: int, guid: int, place: Place = NOWHERE) -> None:
        """Give a device another GUID; its port GUIDs stay what they were.

        Raises
        ------
        FabricError
            GUID 0 or over 64 bits, or a GUID that another device has.
        """
        changed = self._devices[device]
        if not 0 < guid < 1 << 64:
            raise self._error(
                f"GUID {guid:#x} of {changed.name!r} is no 64-bit GUID", place, "give it one from 1 to 2^64-1"
            )
        if self._by_guid.get(guid, device) != device:
            other = self._devices[self._by_guid[guid]].name
            raise self._error(
                f"GUID {guid:#x} of {changed.name!r} belongs to {other!r} already", place, "GUIDs are unique"
            )
        del self._by_guid[changed.guid]
        for port in range(1, changed.ports + 1) if changed.kind is not NodeKind.SWITCH else ():
            known = self._ports.setdefault((device, port), _Port(place=changed.place))
            known.guid = changed.guid + port if known.guid is None else known.guid
        changed.guid = guid
        self._by_guid[guid] = device

    def set_port(
        self, device: int, port: int, *, guid: int | None = None, lid: int = 0, lmc: int = 0, place: Place = NOWHERE
    ) -> None:
        """State the port GUID, base LID and LMC of a port (port 0 for a switch).

        Raises
        ------
        FabricError
            A LID that is no unicast LID, an LMC over 7, a base LID that is not a multiple of 2^LMC.
        """
        name = self._devices[device].name
        if lid and not 0 < lid <= lid + (1 << lmc) - 1 <= MAX_UNICAST_LID:
            raise self._error(f"LID {lid:#x} of {name!r} is no unicast LID", place, "unicast LIDs are 1 to 0xBFFF")
        if not 0 <= lmc <= 7:
            raise self._error(f"LMC {lmc} of {name!r} is out of range", place, "LMC is 0 to 7")
        if lid % (1 << lmc):
            raise self._error(
                f"base LID {lid:#x} of {name!r} is not a multiple of 2^{lmc}", place, "align it to the LMC"
            )
        known = self._ports.setdefault((device, port), _Port(place=place))
        if known.lid and lid and known.lid != lid:
            raise self._error(
                f"{name!r} port {port} has LID {lid} here and LID {known.lid} elsewhere", place, "one must go"
            )
        known.guid = guid if guid is not None else known.guid
        known.lid, known.lmc = (lid, lmc) if lid else (known.lid, known.lmc)

    def connect(
        self, a: int, port_a: int, b: int, port_b: int, *, width: int = 4, speed: float = 2.5, place: Place = NOWHERE
    ) -> None:
        """Cable two ports.  Stating a cable again from its other end is fine; anything else on a used port is not.

        Raises
        ------
        FabricError
            A port that the device does not have, or that carries another cable already.
        """
        end_a, end_b = (a, port_a), (b, port_b)
        for handle, port in (end_a, end_b):
            device = self._devices[handle]
            if not 1 <= port <= device.ports:
                raise self._error(f"{device.name!r} has no port {port}", place, f"its ports are 1 to {device.ports}")
        if end_a == end_b:
            raise self._error(
                f"{self._devices[a].name!r} port {port_a} is cabled to itself", place, "a cable has two ends"
            )
        if (
            self._cabled.get(end_a) is not None
            and self._cabled.get(end_b) is not None
            and self._peer.get(end_a) == end_b
        ):
            return
        for end in (end_a, end_b):
            if end in self._cabled:
                far = self._peer[end]
                raise self._error(
                    f"port {end[1]} of {self._devices[end[0]].name!r} is cabled to "
                    f"{self._devices[far[0]].name!r} port {far[1]} already",
                    place,
                    "both ends of a cable must agree, and a port takes one cable",
                )
        self._cabled[end_a] = self._cabled[end_b] = place
        self._peer[end_a], self._peer[end_b] = end_b, end_a
        self._links.append((a, port_a, b, port_b, width, speed))

    def build(self, *, lmc: int = 0, assign_lids: bool = True) -> Fabric:
        """The fabric.

        Parameters
        ----------
        lmc
            LMC of the end ports that get their LIDs here (0 to 7).
        assign_lids
            Give a LID to every switch and every cabled end port that has none: lowest free LID in the order switches
            by GUID, then end ports by port GUID.

        Raises
        ------
        FabricError
            LID clashes, duplicate port GUIDs, more LIDs than there are.
        """
        if not 0 <= lmc <= 7:
            raise FabricError(f"LMC {lmc} is out of range", remedy="LMC is 0 to 7")
        switches = sorted((d for d in self._devices if d.kind is NodeKind.SWITCH), key=lambda d: d.guid)
        terminals = sorted((d for d in self._devices if d.kind is not NodeKind.SWITCH), key=lambda d: d.guid)
        for number, device in enumerate([*switches, *terminals]):
            device.number = number
        endports = sorted(self._endports(), key=lambda e: e[2].guid or 0)
        self._check_port_guids(endports)
        switch_lid = [self._ports.get((self._by_guid[d.guid], 0), _Port()).lid for d in switches]
        endport_lid = [(e[2].lid, e[2].lmc) for e in endports]
        self._check_lids(switches, endports)
        if assign_lids:
            switch_lid, endport_lid = _assign(switch_lid, endport_lid, lmc)
        links = sorted(self._numbered_links())
        return Fabric(
            name=self.name,
            switch_guid=np.array([d.guid for d in switches], np.uint64),
            switch_name=tuple(d.name for d in switches),
            switch_ports=np.array([d.ports for d in switches], np.uint8),
            switch_lid=np.array(switch_lid, np.uint16),
            terminal_guid=np.array([d.guid for d in terminals], np.uint64),
            terminal_name=tuple(d.name for d in terminals),
            terminal_ports=np.array([d.ports for d in terminals], np.uint8),
            terminal_kind=np.array([d.kind for d in terminals], np.uint8),
            endport_terminal=np.array([self._devices[e[0]].number - len(switches) for e in endports], np.int32),
            endport_port=np.array([e[1] for e in endports], np.uint8),
            endport_guid=np.array([e[2].guid for e in endports], np.uint64),
            endport_lid=np.array([lid for lid, _ in endport_lid], np.uint16),
            endport_lmc=np.array([own for _, own in endport_lid], np.uint8),
            link_device=np.array([(k[0], k[2]) for k in links], np.int32).reshape(-1, 2),
            link_port=np.array([(k[1], k[3]) for k in links], np.uint8).reshape(-1, 2),
            link_width=np.array([k[4] for k in links], np.uint8),
            link_speed=np.array([k[5] for k in links], np.float64),
        )

    def _endports(self) -> Iterator[tuple[int, int, _Port]]:
        """Every cabled port of a terminal, with a port GUID (node GUID + port number where none was stated)."""
        for handle, port in self._cabled:
            device = self._devices[handle]
            if device.kind is NodeKind.SWITCH:
                continue
            known = self._ports.get((handle, port), _Port(place=device.place))
            if known.guid is None:
                known = _Port(device.guid + port, known.lid, known.lmc, known.place)
            yield handle, port, known

    def _numbered_links(self) -> Iterator[tuple[int, int, int, int, int, float]]:
        for a, port_a, b, port_b, width, speed in self._links:
            near, far = (self._devices[a].number, port_a), (self._devices[b].number, port_b)
            yield (*min(near, far), *max(near, far), width, speed)

    def _check_port_guids(self, endports: list[tuple[int, int, _Port]]) -> None:
        for before, after in pairwise(endports):
            if before[2].guid == after[2].guid:
                names = sorted(self._devices[e[0]].name for e in (before, after))
                raise self._error(
                    f"port GUID {after[2].guid:#x} belongs to {names[0]!r} and to {names[1]!r}",
                    after[2].place,
                    "GUIDs are unique",
                )

    def _check_lids(self, switches: list[_Device], endports: list[tuple[int, int, _Port]]) -> None:
        owner: dict[int, str] = {}
        ports = [(d.name, self._ports.get((self._by_guid[d.guid], 0), _Port())) for d in switches]
        ports += [(self._devices[handle].name, port) for handle, _, port in endports]
        for name, port in ports:
            for lid in range(port.lid, port.lid + (1 << port.lmc)) if port.lid else ():
                if lid in owner:
                    raise self._error(
                        f"LID {lid} belongs to {owner[lid]!r} and to {name!r}", port.place, "LIDs are unique"
                    )
                owner[lid] = name

    @staticmethod
    def _error(problem: str, place: Place, remedy: str) -> FabricError:
        return FabricError(problem, path=place.path, line=place.line, remedy=remedy)


def _assign(
    switch_lid: list[int], endport_lid: list[tuple[int, int]], lmc: int
) -> tuple[list[int], list[tuple[int, int]]]:
    """Give the lowest free LIDs to those that have none."""
    used = {lid for lid in switch_lid if lid}
    for lid, own in endport_lid:
        used.update(range(lid, lid + (1 << own)) if lid else ())

    def free(step: int) -> Iterator[int]:
        lid = step
        while lid + step - 1 <= MAX_UNICAST_LID:
            if used.isdisjoint(range(lid, lid + step)):
                used.update(range(lid, lid + step))
                yield lid
            lid += step
        raise FabricError(
            f"the fabric needs more LIDs than the {MAX_UNICAST_LID} unicast LIDs there are",
            remedy=f"use an LMC under {lmc}" if lmc else "split the fabric into subnets",
        )

    single, block = free(1), free(1 << lmc)
    switch_lid = [lid or next(single) for lid in switch_lid]
    return switch_lid, [(lid, own) if lid else (next(block), lmc) for lid, own in endport_lid]
