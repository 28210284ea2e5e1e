"""What a fault is, and the fabric that it leaves."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.numerals import number_of

End = tuple[int, int]
"""A port: the GUID of its device (not of the port), and its number."""


class FaultKind(enum.Enum):
    """What goes wrong."""

    LINK = "link"
    """A cable is gone."""
    PORT = "port"
    """A port is dead, and so its cable is gone."""
    SWITCH = "switch"
    """A switch is gone, with all its cables."""
    CA = "ca"
    """A CA or router is gone, with all its cables."""
    GROUP = "group"
    """Ports and devices that go together: a line card, a rack, a cable bundle."""
    DEGRADE = "degrade"
    """A cable runs with fewer lanes or at a lower speed."""
    SWAP = "swap"
    """Two plugs have changed places."""


@dataclass(frozen=True)
class Fault:
    """Something that breaks, at a fabric but apart from it.

    Attributes
    ----------
    kind
        What goes wrong.
    name
        For people; :func:`routing.faults.parse_fault` reads it back.
    ports
        The ports that it hits.  Of a link both ends; of a swap the two ports whose plugs change places.
    devices
        GUIDs of the devices that are gone.
    width, speed
        Of a degraded cable: lanes, and Gb/s of a lane; None: as before.
    """

    kind: FaultKind
    name: str
    ports: tuple[End, ...] = ()
    devices: tuple[int, ...] = ()
    width: int | None = None
    speed: float | None = None

    def __str__(self) -> str:
        return self.name


def device_names(fabric: Fabric, devices: Sequence[int]) -> list[str]:
    """How faults call devices: by name, or by GUID where several have that name."""
    names = [*fabric.switch_name, *fabric.terminal_name]
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
    guids = node_guids(fabric)
    return [names[row] if names[row] and seen[names[row]] == 1 else f"0x{int(guids[row]):016x}" for row in devices]


def node_guids(fabric: Fabric) -> npt.NDArray[np.uint64]:
    """uint64[S + T], the GUID of every device."""
    return np.concatenate([fabric.switch_guid, fabric.terminal_guid])


def device_of(fabric: Fabric, guid: int) -> int:
    """Number of the device with a node GUID, or -1.  Cost: O(log (S + T))."""
    for first, guids in ((0, fabric.switch_guid), (fabric.switches, fabric.terminal_guid)):
        row = int(np.searchsorted(guids, np.uint64(guid)))
        if row < len(guids) and int(guids[row]) == guid:
            return first + row
    return -1


def cable_at(fabric: Fabric, device: int, port: int) -> tuple[int, int]:
    """Row of the cable at a port and which of its ends is there, or (-1, 0).  Cost: O(K)."""
    found = np.flatnonzero(fabric.link_device.reshape(-1) == device)
    found = found[fabric.link_port.reshape(-1)[found] == port]
    return (int(found[0]) // 2, int(found[0]) % 2) if found.size else (-1, 0)


def apply_faults(fabric: Fabric, faults: Sequence[Fault]) -> Fabric:
    """The fabric with these faults, all at once.

    Devices, GUIDs and LIDs of what survives stay as they are.  A device that is gone leaves its row; a CA that has only
    lost its cables stays, without end ports.  Ports mean the cables that are in them before any fault: a cable that
    is pulled is gone wherever a swap puts its plugs.  Devices go with the cables that swaps have put there.

    Raises
    ------
    OptionError
        A fault that hits nothing of this fabric.

    Notes
    -----
    Cost: O(K) for each port that is hit, O(S + T + K) in all else.
    """
    pulled: set[int] = set()
    gone: set[int] = set()
    width, speed = fabric.link_width, fabric.link_speed
    swaps: list[tuple[tuple[int, int], tuple[int, int]]] = []
    for fault in faults:
        ends = _ends(fabric, fault)
        rows = [row for row, _ in ends]
        if fault.kind is FaultKind.SWAP:
            swaps.append((ends[0], ends[1]))
        elif fault.kind is FaultKind.DEGRADE:
            width, speed = width.copy(), speed.copy()
            width[rows] = width[rows] if fault.width is None else fault.width
            speed[rows] = speed[rows] if fault.speed is None else fault.speed
        else:
            pulled.update(rows)
            gone.update(_devices(fabric, fault))
    if width is not fabric.link_width:
        fabric = replace(fabric, link_width=width, link_speed=speed)
    if swaps:
        fabric, pulled = _swapped(fabric, swaps, pulled)
    if gone:  # with what is plugged into them now
        lost = np.isin(fabric.link_device, np.fromiter(gone, np.int64)).any(axis=1)
        pulled.update(np.flatnonzero(lost).tolist())
    if pulled:
        fabric = fabric.without_links(sorted(pulled))
    return _without_devices(fabric, gone) if gone else fabric


def _ends(fabric: Fabric, fault: Fault) -> list[tuple[int, int]]:
    """Cable and end at each port of a fault."""
    ends = []
    for guid, port in fault.ports:
        device = device_of(fabric, guid)
        row, end = cable_at(fabric, device, port) if device >= 0 else (-1, 0)
        if row < 0:
            what = f"{fabric.device_name(device)} port {port} has no cable" if device >= 0 else f"no device {guid:#x}"
            raise _stranger(fabric, fault, what)
        ends.append((row, end))
    if fault.kind in (FaultKind.LINK, FaultKind.SWAP) and len(ends) != 2:
        raise _stranger(fabric, fault, f"{number_of(len(ends), 'port')} instead of two")
    if fault.kind is FaultKind.LINK and ends[0][0] != ends[1][0]:
        raise _stranger(fabric, fault, "its two ports are not cabled to each other")
    if fault.kind is FaultKind.SWAP and ends[0][0] == ends[1][0]:
        raise _stranger(fabric, fault, "its two plugs are of one cable")
    return ends


def _devices(fabric: Fabric, fault: Fault) -> list[int]:
    devices = [device_of(fabric, guid) for guid in fault.devices]
    for device, guid in zip(devices, fault.devices, strict=True):
        if device < 0:
            raise _stranger(fabric, fault, f"no device {guid:#x}")
    return devices


def _stranger(fabric: Fabric, fault: Fault, what: str) -> OptionError:
    return OptionError(
        f"fault {fault.name!r} does not fit {fabric.name}: {what}", remedy="faults are made for one fabric"
    )


def _swapped(
    fabric: Fabric, swaps: Sequence[tuple[tuple[int, int], tuple[int, int]]], pulled: set[int]
) -> tuple[Fabric, set[int]]:
    """The fabric with plugs exchanged, its cables in their order again, and the new rows of ``pulled``."""
    device, port = fabric.link_device.copy(), fabric.link_port.copy()
    for first, second in swaps:
        for array in (device, port):
            array[first], array[second] = array[second], array[first]
    turn = (device[:, 0] > device[:, 1]) | ((device[:, 0] == device[:, 1]) & (port[:, 0] > port[:, 1]))
    device[turn], port[turn] = device[turn][:, ::-1], port[turn][:, ::-1]
    order = np.lexsort((port[:, 0], device[:, 0]))
    marked = np.isin(order, np.fromiter(pulled, np.int64, len(pulled)))
    swapped = replace(
        fabric,
        link_device=device[order],
        link_port=port[order],
        link_width=fabric.link_width[order],
        link_speed=fabric.link_speed[order],
    )
    return swapped, set(np.flatnonzero(marked).tolist())


def _without_devices(fabric: Fabric, gone: set[int]) -> Fabric:
    """The fabric without devices that have no cable left."""
    stay = np.ones(fabric.switches + fabric.terminals, bool)
    stay[np.fromiter(gone, np.int64)] = False
    place = (np.cumsum(stay) - 1).astype(np.int32)
    switch, terminal = stay[: fabric.switches], stay[fabric.switches :]
    first = int(switch.sum())
    return replace(
        fabric,
        switch_guid=fabric.switch_guid[switch],
        switch_name=tuple(fabric.switch_name[row] for row in np.flatnonzero(switch).tolist()),
        switch_ports=fabric.switch_ports[switch],
        switch_lid=fabric.switch_lid[switch],
        terminal_guid=fabric.terminal_guid[terminal],
        terminal_name=tuple(fabric.terminal_name[row] for row in np.flatnonzero(terminal).tolist()),
        terminal_ports=fabric.terminal_ports[terminal],
        terminal_kind=fabric.terminal_kind[terminal],
        endport_terminal=place[fabric.endport_terminal + fabric.switches] - np.int32(first),
        link_device=place[fabric.link_device],
    )
