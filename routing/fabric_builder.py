"""Build a :class:`~routing.fabric.Fabric` from devices and cables, and reject inconsistent input.

Readers of files and generators may add the parts in any order.  Every error names the file and line of the wrong part.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from routing.class_settings import PortClass
from routing.errors import FabricError, InputWarning
from routing.fabric import MAX_UNICAST_LID, Fabric, NodeKind
from routing.lids import give_lids
from routing.numerals import count_noun
from routing.port_classes import PortClasses, detected

MAX_SWITCH_PORTS = 254
PERMISSIVE_LID = 0xFFFF
"""LID of a port that no subnet manager has configured yet."""


class Location(NamedTuple):
    """File and line from which a device, port or cable was read, for error messages."""

    path: str | Path | None = None
    line: int | None = None


NOWHERE = Location()


@dataclass(slots=True)
class _Device:
    kind: NodeKind
    guid: int
    name: str
    ports: int
    location: Location
    device_id: int = 0
    number: int = -1


@dataclass(slots=True)
class _Port:
    guid: int | None = None
    lid: int = 0
    lmc: int = 0
    location: Location = NOWHERE


class _Endport(NamedTuple):
    """A cabled port of a CA or router.  The order of such ports is the order of their port GUIDs."""

    guid: int
    device: int
    port: int
    lid: int
    lmc: int
    location: Location


@dataclass
class FabricBuilder:
    """A fabric under construction: collects devices, LIDs and cables until :meth:`build` returns the fabric.

    :meth:`add_device` returns a handle, by which the other methods identify a device.
    """

    name: str = "fabric"
    _devices: list[_Device] = field(default_factory=list)
    _by_guid: dict[int, int] = field(default_factory=dict)
    _by_name: dict[str, int] = field(default_factory=dict)
    _ports: dict[tuple[int, int], _Port] = field(default_factory=dict)
    _links: list[tuple[tuple[int, int], tuple[int, int], int, float]] = field(default_factory=list)
    _link_at: dict[tuple[int, int], int] = field(default_factory=dict)
    _unreached: dict[tuple[int, int], Location] = field(default_factory=dict)

    def add_device(
        self,
        kind: NodeKind,
        guid: int,
        name: str,
        ports: int,
        location: Location = NOWHERE,
        *,
        unique_name: bool = False,
        device_id: int = 0,
    ) -> int:
        """Add a switch, CA or router, and return its handle; a device ID of 0 is unknown.

        Raises
        ------
        FabricError
            The GUID is 0 or over 64 bits, the GUID (or, with ``unique_name``, the name) exists already, or the number
            of ports is invalid.
        """
        handle = len(self._devices)
        self._check_guid(handle, guid, name, location)
        if unique_name and name in self._by_name:
            raise self._error(f"there is a node {name!r} already", location, "rename one of the two")
        limit = MAX_SWITCH_PORTS if kind is NodeKind.SWITCH else 254
        if not 0 < ports <= limit:
            raise self._error(f"{name!r} has {ports} ports", location, f"a node has 1 to {limit}")
        self._devices.append(_Device(kind, guid, name, ports, location, device_id))
        self._by_guid[guid] = handle
        self._by_name.setdefault(name, handle)
        return handle

    def find(self, name: str) -> int | None:
        """Return the handle of the first device with this name, or None if no device has it."""
        return self._by_name.get(name)

    def find_guid(self, guid: int) -> int | None:
        """Return the handle of the device with this node GUID, or None if no device has it."""
        return self._by_guid.get(guid)

    def change_guid(self, device: int, guid: int, location: Location = NOWHERE) -> None:
        """Change the GUID of a device, and with it the port GUIDs that are derived from this GUID.

        Raises
        ------
        FabricError
            The GUID is 0 or over 64 bits, or belongs to another device.
        """
        changed = self._devices[device]
        self._check_guid(device, guid, changed.name, location)
        del self._by_guid[changed.guid]
        changed.guid = guid
        self._by_guid[guid] = device

    def _check_guid(self, device: int, guid: int, name: str, location: Location) -> None:
        """Raise FabricError if the GUID is not a valid node GUID or belongs to another device."""
        if not 0 < guid < 1 << 64:
            raise self._error(
                f"GUID {guid:#x} of {name!r} is not a 64-bit GUID", location, "give it one from 1 to 2^64-1"
            )
        if self._by_guid.get(guid, device) != device:
            other = self._devices[self._by_guid[guid]].name
            raise self._error(f"GUID {guid:#x} of {name!r} belongs to {other!r} already", location, "GUIDs are unique")

    def described(self, device: int) -> tuple[NodeKind, str, int]:
        """Return the kind, name and number of ports of a device."""
        known = self._devices[device]
        return known.kind, known.name, known.ports

    def set_port(
        self,
        device: int,
        port: int,
        *,
        guid: int | None = None,
        lid: int = 0,
        lmc: int = 0,
        location: Location = NOWHERE,
    ) -> None:
        """Set the port GUID, base LID and LMC of a port.  The LID of a switch belongs to port 0.

        :data:`PERMISSIVE_LID` counts as no LID, and its LMC is ignored.

        Raises
        ------
        FabricError
            The port does not exist, the GUID is 0 or over 64 bits, the LID is not a unicast LID or contradicts an
            earlier LID, the LMC is over 7, or the base LID is not a multiple of 2^LMC.
        """
        name = self._devices[device].name
        if not 0 <= port <= self._devices[device].ports:
            raise self._error(
                f"{name!r} has no port {port}", location, f"its ports are 1 to {self._devices[device].ports}"
            )
        if guid is not None and not 0 < guid < 1 << 64:
            raise self._error(
                f"port GUID {guid:#x} of {name!r} is not a 64-bit GUID", location, "give it one from 1 to 2^64-1"
            )
        if lid == PERMISSIVE_LID:
            self._unreached.setdefault((device, port), location)
            lid = lmc = 0
        if not 0 <= lmc <= 7:
            raise self._error(f"LMC {lmc} of {name!r} is out of range", location, "LMC is 0 to 7")
        if lid and not 0 < lid <= lid + (1 << lmc) - 1 <= MAX_UNICAST_LID:
            raise self._error(
                f"LID {lid:#x} of {name!r} is not a unicast LID", location, "unicast LIDs are 1 to 0xBFFF"
            )
        if lid % (1 << lmc):
            raise self._error(
                f"base LID {lid:#x} of {name!r} is not a multiple of 2^{lmc}", location, "align it to the LMC"
            )
        known = self._ports.setdefault((device, port), _Port(location=location))
        if known.lid and lid and known.lid != lid:
            raise self._error(
                f"{name!r} port {port} has LID {lid} here and LID {known.lid} elsewhere",
                location,
                "remove one of the two",
            )
        known.guid = guid if guid is not None else known.guid
        known.lid, known.lmc = (lid, lmc) if lid else (known.lid, known.lmc)

    def connect(
        self,
        a: int,
        port_a: int,
        b: int,
        port_b: int,
        *,
        width: int = 4,
        speed: float = 2.5,
        location: Location = NOWHERE,
    ) -> None:
        """Connect two ports by a cable.  The same cable may be stated again from its other end.

        Raises
        ------
        FabricError
            A device does not have the port, the port has another cable already, the width or speed is invalid, or the
            other end of the cable states another width or speed.
        """
        ends = (a, port_a), (b, port_b)
        if not (0 < width < 256 and 0.0 < speed < math.inf):
            raise self._error(
                f"{width}x at {speed} Gb/s per lane is not a link", location, "links are 1x to 12x, SDR to XDR"
            )
        for handle, port in ends:
            if not 1 <= port <= self._devices[handle].ports:
                device = self._devices[handle]
                raise self._error(f"{device.name!r} has no port {port}", location, f"its ports are 1 to {device.ports}")
        if ends[0] == ends[1]:
            raise self._error(
                f"{self._devices[a].name!r} port {port_a} is cabled to itself", location, "a cable has two ends"
            )
        if ends[0] in self._link_at or ends[1] in self._link_at:
            self._regard_again(ends, width, speed, location)
            return
        self._link_at[ends[0]] = self._link_at[ends[1]] = len(self._links)
        self._links.append((*ends, width, speed))

    def _regard_again(
        self, ends: tuple[tuple[int, int], tuple[int, int]], width: int, speed: float, location: Location
    ) -> None:
        """Check that a cable at a port in use repeats an earlier cable: the same two ports, width and speed.

        Raises
        ------
        FabricError
            The port has another cable, or the width or speed of the cable differs.
        """
        used = ends[0] if ends[0] in self._link_at else ends[1]
        near, far, known_width, known_speed = self._links[self._link_at[used]]
        if {near, far} != set(ends):
            other = far if near == used else near
            raise self._error(
                f"port {used[1]} of {self._devices[used[0]].name!r} is cabled to "
                f"{self._devices[other[0]].name!r} port {other[1]} already",
                location,
                "both ends of a cable must agree, and a port takes one cable",
            )
        if (known_width, known_speed) != (width, speed):
            raise self._error(
                f"the cable at port {used[1]} of {self._devices[used[0]].name!r} runs at {width}x {speed} Gb/s here, "
                f"and at {known_width}x {known_speed} Gb/s elsewhere",
                location,
                "both ends of a cable must agree",
            )

    def build(self, *, lmc: int = 0, assign_lids: bool = True) -> Fabric:
        """Return the fabric, with LIDs assigned to ports without a LID.

        Parameters
        ----------
        lmc
            LMC (0 to 7) of the end ports to which this method assigns LIDs.
        assign_lids
            Whether to assign a LID to every switch and every cabled end port without a LID.  Switches get the
            lowest free LIDs, in the order of their GUIDs.  Then end ports get the next free LIDs, in the order of their
            port GUIDs.

        Raises
        ------
        FabricError
            Two ports have the same LID or port GUID, or more LIDs are needed than exist.

        Warns
        -----
        InputWarning
            Some ports have the permissive LID 0xFFFF, which means that no subnet manager has configured them.
        """
        if not 0 <= lmc <= 7:
            raise FabricError(f"LMC {lmc} is out of range", remedy="LMC is 0 to 7")
        self._warn_of_unreached()
        switches = sorted((d for d in self._devices if d.kind is NodeKind.SWITCH), key=lambda d: d.guid)
        terminals = sorted((d for d in self._devices if d.kind is not NodeKind.SWITCH), key=lambda d: d.guid)
        for number, device in enumerate([*switches, *terminals]):
            device.number = number
        endports = sorted(self._endports())
        self._check_port_guids(endports)
        switch_ports = [self._ports.get((self._by_guid[device.guid], 0)) for device in switches]
        switch_lid = [0 if port is None else port.lid for port in switch_ports]
        endport_lid = [(endport.lid, endport.lmc) for endport in endports]
        self._check_lids(switches, endports)
        if assign_lids:
            switch_lid, endport_lid = give_lids(switch_lid, endport_lid, lmc)
        link_device, link_port, link_width, link_speed = self._link_arrays()
        return Fabric(
            name=self.name,
            switch_guid=np.array([device.guid for device in switches], np.uint64),
            switch_name=tuple(device.name for device in switches),
            switch_ports=np.array([device.ports for device in switches], np.uint8),
            switch_lid=np.array(switch_lid, np.uint16),
            terminal_guid=np.array([device.guid for device in terminals], np.uint64),
            terminal_name=tuple(device.name for device in terminals),
            terminal_ports=np.array([device.ports for device in terminals], np.uint8),
            terminal_kind=np.array([device.kind for device in terminals], np.uint8),
            endport_terminal=np.array([self._devices[e.device].number - len(switches) for e in endports], np.int32),
            endport_port=np.array([endport.port for endport in endports], np.uint8),
            endport_guid=np.array([endport.guid for endport in endports], np.uint64),
            endport_lid=np.array([lid for lid, _ in endport_lid], np.uint16),
            endport_lmc=np.array([own_lmc for _, own_lmc in endport_lid], np.uint8),
            link_device=link_device,
            link_port=link_port,
            link_width=link_width,
            link_speed=link_speed,
            port_classes=PortClasses(recognised=tuple(_recognised(terminals))),
        )

    def _warn_of_unreached(self) -> None:
        """Issue a warning with the number of ports that have the permissive LID, since no subnet manager has configured
        them.
        """
        if self._unreached:
            path = next(iter(self._unreached.values())).path
            ports = count_noun(len(self._unreached), "port has", "ports have")
            what = f"{ports} LID {PERMISSIVE_LID}: no subnet manager has configured them; they count as without a LID"
            warnings.warn(what if path is None else f"{path}: {what}", InputWarning, stacklevel=3)

    def _endports(self) -> Iterator[_Endport]:
        """Yield every cabled port of a CA or router.  A port without a stated GUID gets the node GUID plus the port
        number.
        """
        for handle, port in self._link_at:
            device = self._devices[handle]
            if device.kind is NodeKind.SWITCH:
                continue
            known = self._ports.get((handle, port)) or _Port(location=device.location)
            guid = device.guid + port if known.guid is None else known.guid
            if guid >= 1 << 64:
                raise self._error(
                    f"the GUID of port {port} of {device.name!r} is over 64 bits",
                    device.location,
                    "state the port's GUID",
                )
            yield _Endport(guid, handle, port, known.lid, known.lmc, known.location)

    def _link_arrays(
        self,
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.uint8], npt.NDArray[np.float64]]:
        """Return the devices (int32[K, 2]), ports (uint8[K, 2]), width (uint8[K]) and speed (float64[K]) of the K
        cables, sorted by devices and ports.

        The end with the lower device and port is the first end.
        """
        count = len(self._links)
        parts = chain.from_iterable(end for near, far, _, _ in self._links for end in (near, far))
        ends = np.fromiter(parts, np.int64, 4 * count).reshape(count, 2, 2)
        number = np.array([device.number for device in self._devices], np.int64)
        # Each end of a cable becomes one integer, which sorts like the pair (device, port), because ports are below
        # 256.
        keys = np.sort(number[ends[:, :, 0]] << 8 | ends[:, :, 1], axis=1) if count else np.zeros((0, 2), np.int64)
        order = np.lexsort((keys[:, 1], keys[:, 0]))
        keys = keys[order]
        width = np.array([width for _, _, width, _ in self._links], np.uint8)[order]
        speed = np.array([speed for _, _, _, speed in self._links], np.float64)[order]
        return (keys >> 8).astype(np.int32), (keys & 255).astype(np.uint8), width, speed

    def _check_port_guids(self, endports: list[_Endport]) -> None:
        for before, after in pairwise(endports):
            if before.guid == after.guid:
                names = sorted(self._devices[endport.device].name for endport in (before, after))
                raise self._error(
                    f"port GUID {after.guid:#x} belongs to {names[0]!r} and to {names[1]!r}",
                    after.location,
                    "GUIDs are unique",
                )
        for endport in endports:
            owner = self._by_guid.get(endport.guid)
            if owner is not None and self._devices[owner].kind is NodeKind.SWITCH:
                names = [self._devices[endport.device].name, self._devices[owner].name]
                raise self._error(
                    f"port GUID {endport.guid:#x} of {names[0]!r} is the GUID of switch {names[1]!r}",
                    endport.location,
                    "GUIDs are unique",
                )

    def _check_lids(self, switches: list[_Device], endports: list[_Endport]) -> None:
        owner: dict[int, str] = {}
        for device in switches:
            port = self._ports.get((self._by_guid[device.guid], 0))
            if port is not None:
                self._claim(owner, device.name, (port.lid, port.lmc), port.location)
        for endport in endports:
            self._claim(owner, self._devices[endport.device].name, (endport.lid, endport.lmc), endport.location)

    def _claim(self, owner: dict[int, str], name: str, lids: tuple[int, int], location: Location) -> None:
        """Record that a device owns the 2^LMC LIDs from a base LID on.

        Raises
        ------
        FabricError
            Another device owns one of the LIDs already.
        """
        for lid in range(lids[0], lids[0] + (1 << lids[1])) if lids[0] else ():
            if lid in owner:
                raise self._error(f"LID {lid} belongs to {owner[lid]!r} and to {name!r}", location, "LIDs are unique")
            owner[lid] = name

    @staticmethod
    def _error(problem: str, location: Location, remedy: str) -> FabricError:
        return FabricError(problem, path=location.path, line=location.line, remedy=remedy)


def _recognised(terminals: Iterable[_Device]) -> Iterator[tuple[int, PortClass]]:
    """Yield node GUID and class of the devices whose class follows from the device ID, but not from the name."""
    for device in terminals:
        own = detected(device.name, device.device_id)
        if own is not detected(device.name):
            yield device.guid, own
