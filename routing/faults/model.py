"""Data model of faults, and computation of the fabric that remains after faults."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.numerals import count_noun

End = tuple[int, int]
"""Port of a device: the node GUID of the device (not a port GUID), and the port number."""


class FaultKind(enum.Enum):
    """Kind of a fault of a fabric."""

    LINK = "link"
    """Loss of a cable."""
    PORT = "port"
    """Failure of one port, which makes its cable useless."""
    SWITCH = "switch"
    """Loss of a switch with all its cables."""
    CA = "ca"
    """Loss of a CA or router with all its cables."""
    GROUP = "group"
    """Joint failure of several ports and devices, such as all ports of a line card or all devices in a rack."""
    DEGRADE = "degrade"
    """Degraded cable: fewer physical lanes or a lower speed."""
    SWAP = "swap"
    """Wrong cabling: two plugs are exchanged, so that two cables each lead to the other's port."""


@dataclass(frozen=True)
class Fault:
    """Fault of a fabric.  A fault refers to devices by GUID, so it applies to any object that represents the fabric.

    Attributes
    ----------
    kind
        Kind of the fault.
    name
        Name for display, which :func:`routing.faults.parse_fault` can convert back to the fault.
    ports
        Affected ports: both ends of a lost link; the two ports whose plugs are exchanged in a swap.
    devices
        Node GUIDs of the lost devices.
    width, speed
        New link width in physical lanes, and new signalling rate per lane in Gb/s, of a degraded cable; None:
        unchanged.
    """

    kind: FaultKind
    name: str
    ports: tuple[End, ...] = ()
    devices: tuple[int, ...] = ()
    width: int | None = None
    speed: float | None = None

    def __str__(self) -> str:
        return self.name


def node_guids(fabric: Fabric) -> npt.NDArray[np.uint64]:
    """Return the node GUID of every device, uint64: first the switches, then the CAs and routers."""
    return np.concatenate([fabric.switch_guid, fabric.terminal_guid])


def device_of(fabric: Fabric, guid: int) -> int:
    """Return the number of the device with a given node GUID, or -1 if there is no such device.

    Notes
    -----
    Cost: O(log (S + T)) for S switches and T terminals.
    """
    for first, guids in ((0, fabric.switch_guid), (fabric.switches, fabric.terminal_guid)):
        row = int(np.searchsorted(guids, np.uint64(guid)))
        if row < len(guids) and int(guids[row]) == guid:
            return first + row
    return -1


def cable_at(fabric: Fabric, device: int, port: int) -> tuple[int, int]:
    """Find the cable that is plugged into a port.

    Returns
    -------
    row : int
        Row of the cable, or -1 if the port has no cable.
    end : int
        Number (0 or 1) of the cable's end that is at the port.

    Notes
    -----
    Cost: O(K) for K cables.
    """
    found = np.flatnonzero(fabric.link_device.reshape(-1) == device)
    found = found[fabric.link_port.reshape(-1)[found] == port]
    return (int(found[0]) // 2, int(found[0]) % 2) if found.size else (-1, 0)


def apply_faults(fabric: Fabric, faults: Sequence[Fault]) -> Fabric:
    """Return the fabric that remains after all given faults.

    Surviving devices keep their GUIDs and LIDs.  A lost device is removed from the arrays.  A CA that has lost all its
    cables, but is not lost itself, remains without end ports.

    The ports in a fault refer to the cables of ``fabric`` before any swap.  If a swap moves a plug of a cable, a fault
    that names the former port of the plug still removes this cable.  If a device is lost, the cables that a swap has
    plugged into the device are lost too.

    Raises
    ------
    OptionError
        A fault refers to a device or cable that the fabric does not have.

    Notes
    -----
    Cost: O(K) for each affected port, and O(S + T + K) once, for S switches, T terminals and K cables.
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
    if gone:  # A swap of cables may have plugged a cable into a lost device.  Such a cable is lost too.
        lost = np.isin(fabric.link_device, np.fromiter(gone, np.int64)).any(axis=1)
        pulled.update(np.flatnonzero(lost).tolist())
    if pulled:
        fabric = fabric.without_links(sorted(pulled))
    return _without_devices(fabric, gone) if gone else fabric


def _ends(fabric: Fabric, fault: Fault) -> list[tuple[int, int]]:
    """Return a list with two numbers for each port of a fault.

    The first number is the row of the cable at the port.  The second number is 0 or 1: the end of the cable that is
    plugged into the port.
    """
    ends = []
    for guid, port in fault.ports:
        device = device_of(fabric, guid)
        row, end = cable_at(fabric, device, port) if device >= 0 else (-1, 0)
        if row < 0:
            what = f"{fabric.labels[device]} port {port} has no cable" if device >= 0 else f"no device {guid:#x}"
            raise _stranger(fabric, fault, what)
        ends.append((row, end))
    if fault.kind in (FaultKind.LINK, FaultKind.SWAP) and len(ends) != 2:
        raise _stranger(fabric, fault, f"{count_noun(len(ends), 'port')} instead of two")
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
    """Return the fabric with exchanged plugs.

    A plug is given by two numbers: the row of its cable, and the end of the cable (0 or 1).
    Each element of ``swaps`` has the two plugs that change places.  ``pulled`` has the rows of cables that the caller
    will remove.

    Returns
    -------
    Fabric
        Fabric with the new cabling; its cables are sorted again.
    set[int]
        Rows of the cables in ``pulled`` after the sorting.
    """
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
    """Return the fabric without the devices ``gone``, none of which may have a cable left."""
    stay = np.ones(fabric.switches + fabric.terminals, bool)
    stay[np.fromiter(gone, np.int64)] = False
    index = (np.cumsum(stay) - 1).astype(np.int32)
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
        endport_terminal=index[fabric.endport_terminal + fabric.switches] - np.int32(first),
        link_device=index[fabric.link_device],
    )
