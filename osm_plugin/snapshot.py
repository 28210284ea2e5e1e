"""The subnet as OpenSM sees it, from the shared memory's arrays to a :class:`~routing.fabric.Fabric`.

The shim has sorted the devices already (switches by GUID, then CAs and routers by GUID), so that rows here are rows of
the fabric and the whole way is a handful of array operations: the same value that a reader of OpenSM's own
``opensm-subnet.lst`` arrives at, link by link, without a loop over links.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing.errors import FabricError
from routing.fabric import Fabric

REQUEST_MAGIC = 0x3171657265756E69
PAGE = 4096

REQUEST = np.dtype(
    [
        ("magic", "u8"), ("sequence", "u8"), ("switches", "u4"), ("devices", "u4"), ("endports", "u4"),
        ("cables", "u4"), ("data_vls", "u4"), ("qos", "u4"), ("device_at", "u8"), ("endport_at", "u8"),
        ("cable_at", "u8"), ("end", "u8"),
    ]
)  # fmt: skip
DEVICE = np.dtype(
    [("guid", "u8"), ("lid", "u2"), ("kind", "u1"), ("ports", "u1"), ("lmc", "u1"), ("unused", "V3"), ("name", "S72")]
)
ENDPORT = np.dtype([("guid", "u8"), ("device", "u4"), ("lid", "u2"), ("port", "u1"), ("lmc", "u1")])
CABLE = np.dtype([("device", "u4", 2), ("port", "u1", 2), ("width", "u1"), ("unused", "V5"), ("speed", "f8")])


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A request: the fabric, and what OpenSM lets an engine use.

    Attributes
    ----------
    sequence
        Number of the request; the answer carries it too.
    fabric
        The subnet; its arrays are copies, the shared memory is free again.
    data_vls
        Data VLs that OpenSM will set up on every port: the least VLCap of all cabled ports, OpenSM's ``max_op_vls`` and
        ``qos_*max_vls``; 1 without QoS, because SL-to-VL tables are then not written.
    qos
        Whether OpenSM runs with QoS.
    answer_at
        Offset in bytes from which the answer may be written.
    source
        Devices, end ports and cables as they lay there.
    """

    sequence: int
    fabric: Fabric
    data_vls: int
    qos: bool
    answer_at: int
    source: tuple[bytes, bytes, bytes] = (b"", b"", b"")


def _bytes(memory: mmap.mmap, dtype: np.dtype[np.void], at: int, count: int) -> bytes:
    """A copy of ``count`` structures; a copy, so that the mapping can be closed."""
    if at < 0 or at + count * dtype.itemsize > len(memory):
        raise FabricError("the request does not lie within the shared memory")
    return memory[at : at + count * dtype.itemsize]


def read_request(memory: mmap.mmap, earlier: Iterable[Snapshot] = ()) -> Snapshot:
    """The request that lies in the shared memory.

    Parameters
    ----------
    memory
        The shared memory.
    earlier
        Requests of before.  A fabric that is among them is that value, with all that was derived from it; from one with
        other cables is taken what does not hang on these.

    Raises
    ------
    FabricError
        What lies there makes no fabric: a GUID or LID twice, an index out of range.

    Notes
    -----
    Cost: O(n log n) in the number of devices and links, about 3 ms for 1000 switches and 4000 CAs; half a millisecond
    where devices and end ports are as they were.
    """
    head = np.frombuffer(_bytes(memory, REQUEST, 0, 1), REQUEST)[0]
    if int(head["magic"]) != REQUEST_MAGIC:
        raise FabricError("the shared memory holds no request")
    source = (
        _bytes(memory, DEVICE, int(head["device_at"]), int(head["devices"])),
        _bytes(memory, ENDPORT, int(head["endport_at"]), int(head["endports"])),
        _bytes(memory, CABLE, int(head["cable_at"]), int(head["cables"])),
    )
    return Snapshot(
        sequence=int(head["sequence"]),
        fabric=_fabric(source, int(head["switches"]), earlier),
        data_vls=int(head["data_vls"]),
        qos=bool(head["qos"]),
        answer_at=-(-int(head["end"]) // PAGE) * PAGE,
        source=source,
    )


def _fabric(source: tuple[bytes, bytes, bytes], switches: int, earlier: Iterable[Snapshot]) -> Fabric:
    alike = [known for known in earlier if known.source[:2] == source[:2] and known.fabric.switches == switches]
    for known in alike:
        if known.source[2] == source[2]:
            return known.fabric
    device, endport, cable = map(np.frombuffer, source, (DEVICE, ENDPORT, CABLE))
    if not alike:
        return fabric_from_arrays(device, endport, cable, switches)
    _check_cables(device, cable)
    return replace(
        alike[0].fabric,
        link_device=cable["device"].astype(np.int32),
        link_port=cable["port"].copy(),
        link_width=cable["width"].copy(),
        link_speed=cable["speed"].copy(),
    )


def fabric_from_arrays(
    device: npt.NDArray[np.void], endport: npt.NDArray[np.void], cable: npt.NDArray[np.void], switches: int
) -> Fabric:
    """The fabric of structures as the shim writes them.

    Parameters
    ----------
    device
        :data:`DEVICE` [S+T], switches by GUID first, then CAs and routers by GUID.
    endport
        :data:`ENDPORT` [E], in any order.
    cable
        :data:`CABLE` [K], by (device, port) of the first end, which is the smaller one.
    switches
        S.

    Raises
    ------
    FabricError
        A GUID or LID twice, an index out of range.
    """
    guid = device["guid"]
    _check(device, endport, cable, switches)
    names = [name.decode(errors="replace") for name in device["name"].tolist()]
    endport = endport[np.argsort(endport["guid"], kind="stable")]
    if len(endport) and (np.diff(endport["guid"]) == 0).any():
        twice = endport["guid"][1:][np.diff(endport["guid"]) == 0][0]
        raise FabricError(f"port GUID {int(twice):#x} belongs to two ports")
    fabric = Fabric(
        name="opensm",
        switch_guid=guid[:switches].copy(),
        switch_name=tuple(names[:switches]),
        switch_ports=device["ports"][:switches].copy(),
        switch_lid=device["lid"][:switches].copy(),
        terminal_guid=guid[switches:].copy(),
        terminal_name=tuple(names[switches:]),
        terminal_ports=device["ports"][switches:].copy(),
        terminal_kind=device["kind"][switches:].copy(),
        endport_terminal=endport["device"].astype(np.int32) - np.int32(switches),
        endport_port=endport["port"].copy(),
        endport_guid=endport["guid"].copy(),
        endport_lid=endport["lid"].copy(),
        endport_lmc=np.where(endport["lid"] > 0, endport["lmc"], 0).astype(np.uint8),
        link_device=cable["device"].astype(np.int32),
        link_port=cable["port"].copy(),
        link_width=cable["width"].copy(),
        link_speed=cable["speed"].copy(),
    )
    len(fabric.lids)  # raises where two ports claim one LID
    return fabric


def fabric_to_arrays(
    fabric: Fabric,
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void], npt.NDArray[np.void]]:
    """The structures (devices, end ports, cables) of which :func:`fabric_from_arrays` makes this fabric."""
    device = np.zeros(fabric.switches + fabric.terminals, DEVICE)
    device["guid"] = np.concatenate([fabric.switch_guid, fabric.terminal_guid])
    device["lid"][: fabric.switches] = fabric.switch_lid
    device["kind"][fabric.switches :] = fabric.terminal_kind
    device["ports"] = np.concatenate([fabric.switch_ports, fabric.terminal_ports])
    device["name"] = [name.encode()[:72] for name in (*fabric.switch_name, *fabric.terminal_name)]
    endport = np.zeros(fabric.endports, ENDPORT)
    endport["guid"], endport["lid"] = fabric.endport_guid, fabric.endport_lid
    endport["device"] = fabric.endport_terminal + fabric.switches
    endport["port"], endport["lmc"] = fabric.endport_port, fabric.endport_lmc
    cable = np.zeros(fabric.links, CABLE)
    cable["device"], cable["port"] = fabric.link_device, fabric.link_port
    cable["width"], cable["speed"] = fabric.link_width, fabric.link_speed
    return device, endport, cable


def _check(
    device: npt.NDArray[np.void], endport: npt.NDArray[np.void], cable: npt.NDArray[np.void], switches: int
) -> None:
    guid, count = device["guid"], len(device)
    if not 0 <= switches <= count:
        raise FabricError(f"{switches} switches among {count} devices")
    for part in (guid[:switches], guid[switches:]):
        if (part[1:] <= part[:-1]).any():
            raise FabricError(f"node GUID {int(part[1:][part[1:] <= part[:-1]][0]):#x} is there twice")
    _check_cables(device, cable)
    if len(endport) and not switches <= int(endport["device"].min()) <= int(endport["device"].max()) < count:
        raise FabricError("an end port belongs to a device that is not there")


def _check_cables(device: npt.NDArray[np.void], cable: npt.NDArray[np.void]) -> None:
    if len(cable) and int(cable["device"].max()) >= len(device):
        raise FabricError("a cable leads to a device that is not there")
