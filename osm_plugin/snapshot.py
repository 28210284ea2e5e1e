"""Convert OpenSM's subnet from arrays in shared memory to a :class:`~routing.fabric.Fabric`.

The C part of the plugin (the shim) has sorted the devices: switches by GUID, then CAs and routers by GUID.  So the
arrays have the same row numbers as the fabric, and a few array operations convert them without a loop over links.  The
result equals the fabric read from OpenSM's own ``opensm-subnet.lst``.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from osm_plugin.opensm_conf import OpensmConf
from routing.errors import FabricError
from routing.fabric import Fabric
from routing.port_classes import PortClasses

REQUEST_MAGIC = 0x3171657265756E69
PAGE = 4096
BLOCK = 64
"""Number of LIDs in a block of a forwarding table.  OpenSM reads and writes whole blocks."""

# Record types of the structs `ibnue_request`, `ibnue_device`, `ibnue_endport` and `ibnue_cable` in layout.h
REQUEST = np.dtype(
    [
        ("magic", "u8"), ("sequence", "u8"), ("switches", "u4"), ("devices", "u4"), ("endports", "u4"),
        ("cables", "u4"), ("data_vls", "u4"), ("qos", "u4"), ("device_at", "u8"), ("endport_at", "u8"),
        ("cable_at", "u8"), ("conf_at", "u8"), ("conf_bytes", "u8"), ("lids", "u4"), ("served", "u4"),
        ("top_at", "u8"), ("known_at", "u8"), ("lft_at", "u8"), ("end", "u8"),
    ]
)  # fmt: skip
DEVICE = np.dtype(
    [("guid", "u8"), ("lid", "u2"), ("kind", "u1"), ("ports", "u1"), ("lmc", "u1"), ("unused", "V3"), ("name", "S72")]
)
ENDPORT = np.dtype([("guid", "u8"), ("device", "u4"), ("lid", "u2"), ("port", "u1"), ("lmc", "u1")])
Structs = npt.NDArray[np.void]
_SERVED: Mapping[int, Literal["ours", "other"]] = {1: "ours", 2: "other"}
CABLE = np.dtype(
    [
        ("device", "u4", 2), ("port", "u1", 2), ("width", "u1"), ("throttled", "u1"), ("sick", "u1"), ("unused", "V3"),
        ("speed", "f8"),
    ]
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class SwitchTables:
    """The part of the switches' forwarding tables that OpenSM has written or read.

    Attributes
    ----------
    lft
        uint8[S, L], out-port of each switch towards each LID.  In unknown blocks the values have no meaning.
    known
        bool[S, B], whether the content of each of the B blocks of 64 LIDs is known.  In known blocks ``lft`` equals the
        table in the switch.
    top
        uint16[S], the highest LID for which each switch forwards packets.
    served
        Engine whose tables the switches acknowledged last: "ours" for an ibnue engine, "other" for another engine of
        this OpenSM.  None: unknown, for example because this OpenSM has just become the master.
    left_out
        bool[S, 256], ports whose link leads to another switch and is up, but is considered unhealthy (sick) or too slow
        (throttled) by OpenSM.  None if no port has such a link.
    """

    lft: npt.NDArray[np.uint8]
    known: npt.NDArray[np.bool_]
    top: npt.NDArray[np.uint16]
    served: Literal["ours", "other"] | None
    left_out: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One request of OpenSM: the fabric, and the limits for the engine.

    Attributes
    ----------
    sequence
        Number of the request; the answer has the same number.
    fabric
        The subnet.  Its arrays are copies, so that the shared memory may be overwritten.
    data_vls
        Number of data VLs that OpenSM sets up on every port.  This number is the smallest of three numbers: the VLs
        that OpenSM's ``max_op_vls`` allows, the VLs that ``qos_*max_vls`` allow, and the smallest VLCap of the cabled
        ports.  Ports of links that OpenSM considers unhealthy are left out.  Without QoS, ``data_vls`` is 1, because
        OpenSM then writes no SL-to-VL tables.
    qos
        Whether OpenSM runs with QoS.
    answer_at
        Offset in bytes at which the answer must be written.
    source
        Devices, end ports and cables as the bytes in the shared memory.  Equal bytes mean that the fabric is unchanged.
    conf
        Options of opensm.conf that differ from their defaults.
    throttled
        Number of cables that run slower than their ports allow, and that OpenSM wants to avoid.
    switch_tables
        The tables in the switches; None if OpenSM did not report these tables.
    """

    sequence: int
    fabric: Fabric
    data_vls: int
    qos: bool
    answer_at: int
    source: tuple[bytes, bytes, bytes] = (b"", b"", b"")
    conf: OpensmConf = field(default_factory=OpensmConf)
    throttled: int = 0
    switch_tables: SwitchTables | None = None


def _bytes(memory: mmap.mmap, dtype: np.dtype[Any], at: int, count: int) -> bytes:
    """Return a copy of ``count`` structs of type ``dtype`` that begin at byte ``at`` of the shared memory.  The copy
    stays valid when the shared memory is unmapped.

    Raises
    ------
    FabricError
        The structs are not inside the shared memory.
    """
    if at < 0 or at + count * dtype.itemsize > len(memory):
        raise FabricError("the request does not lie within the shared memory")
    return memory[at : at + count * dtype.itemsize]


def read_request(memory: mmap.mmap, earlier: Iterable[Snapshot] = (), classes: PortClasses | None = None) -> Snapshot:
    """Read the request in the shared memory.

    Parameters
    ----------
    memory
        The shared memory.
    earlier
        Earlier requests.  If one of them has the same fabric, its fabric object is reused with all cached values.  If
        an earlier fabric differs only in its cables, the values that do not depend on cables are reused.
    classes
        Rules for the classes of end ports; None: the default rules.

    Raises
    ------
    FabricError
        The data are not a valid fabric.  For example, a GUID or LID is duplicate, or an index is out of range.

    Notes
    -----
    Cost: O(n log n) for n devices and links.  About 3 ms for 1000 switches and 4000 CAs, or 0.5 ms if devices and end
    ports are unchanged.
    """
    head = np.frombuffer(_bytes(memory, REQUEST, 0, 1), REQUEST)[0]
    if int(head["magic"]) != REQUEST_MAGIC:
        raise FabricError("the shared memory has no request")
    source = (
        _bytes(memory, DEVICE, int(head["device_at"]), int(head["devices"])),
        _bytes(memory, ENDPORT, int(head["endport_at"]), int(head["endports"])),
        _bytes(memory, CABLE, int(head["cable_at"]), int(head["cables"])),
    )
    return Snapshot(
        sequence=int(head["sequence"]),
        fabric=_fabric(source, int(head["switches"]), earlier, PortClasses() if classes is None else classes),
        data_vls=int(head["data_vls"]),
        qos=bool(head["qos"]),
        answer_at=-(-int(head["end"]) // PAGE) * PAGE,
        source=source,
        conf=_conf(memory, int(head["conf_at"]), int(head["conf_bytes"])),
        throttled=int(np.count_nonzero(np.frombuffer(source[2], CABLE)["throttled"])),
        switch_tables=_switch_tables(memory, head, np.frombuffer(source[2], CABLE)),
    )


def _switch_tables(memory: mmap.mmap, head: np.void, cable: Structs) -> SwitchTables | None:
    switches, lids = int(head["switches"]), int(head["lids"])
    if lids == 0:
        return None
    blocks = -(-lids // BLOCK)
    top, known, lft = (
        np.frombuffer(_bytes(memory, np.dtype(np.uint8), int(head[name]), switches * size), np.uint8)
        for name, size in (("top_at", 2), ("known_at", blocks), ("lft_at", lids))
    )
    return SwitchTables(
        lft=lft.reshape(switches, lids),
        known=known.reshape(switches, blocks) != 0,
        top=top.view(np.uint16),
        served=_SERVED.get(int(head["served"])),
        left_out=_left_out(cable, switches),
    )


def _left_out(cable: Structs, switches: int) -> npt.NDArray[np.bool_] | None:
    """Return the ports at both ends of sick and throttled cables, bool[S, 256]; None if there are no such cables.

    A sick cable is up, but OpenSM considers it unhealthy.  A throttled cable is slower than its ports allow.

    ``switches`` is the number of switches S.
    """
    out = cable[(cable["sick"] != 0) | (cable["throttled"] != 0)]
    if not len(out):
        return None
    ports = np.zeros((switches, 256), bool)
    ports[out["device"].ravel(), out["port"].ravel()] = True  # Sick and throttled cables join two switches.
    return ports


def _conf(memory: mmap.mmap, at: int, count: int) -> OpensmConf:
    if at < 0 or at + count > len(memory):
        raise FabricError("the request does not lie within the shared memory")
    return OpensmConf.of(memory[at : at + count].decode(errors="replace"))


def _fabric(
    source: tuple[bytes, bytes, bytes], switches: int, earlier: Iterable[Snapshot], classes: PortClasses
) -> Fabric:
    alike = [
        known
        for known in earlier
        if known.source[:2] == source[:2] and known.fabric.switches == switches and known.fabric.port_classes == classes
    ]
    for known in alike:
        if known.source[2] == source[2]:
            return known.fabric
    device, endport, cable = map(np.frombuffer, source, (DEVICE, ENDPORT, CABLE))
    if not alike:
        return _without_avoided(fabric_from_arrays(device, endport, cable, switches, classes), cable)
    _check_cables(device, cable)
    fabric = replace(
        alike[0].fabric,
        link_device=cable["device"].astype(np.int32),
        link_port=cable["port"].copy(),
        link_width=cable["width"].copy(),
        link_speed=cable["speed"].copy(),
    )
    return _without_avoided(fabric, cable)


def _without_avoided(fabric: Fabric, cable: Structs) -> Fabric:
    """Return the fabric without cables that OpenSM considers unhealthy (sick).  Cables that are slower than their
    ports allow (throttled) are left out too, unless the switches would then not be connected.
    """
    sick = cable["sick"] != 0
    if sick.any():
        fabric, cable = fabric.without_links(np.flatnonzero(sick).tolist()), cable[~sick]
    avoided = np.flatnonzero(cable["throttled"])
    if not len(avoided):
        return fabric
    less = fabric.without_links(avoided.tolist())
    return less if less.component.max(initial=0) == fabric.component.max(initial=0) else fabric


def fabric_from_arrays(
    device: Structs, endport: Structs, cable: Structs, switches: int, classes: PortClasses | None = None
) -> Fabric:
    """Return the fabric that OpenSM's plugin has written into the shared memory as arrays of structs.

    Parameters
    ----------
    device
        :data:`DEVICE` [S+T], first the switches by GUID, then the CAs and routers by GUID.
    endport
        :data:`ENDPORT` [E], in any order.
    cable
        :data:`CABLE` [K], sorted by device and port of the first end.  The first end is the end with the smaller device
        number or, if both ends are at one device, with the smaller port number.
    switches
        Number of switches S.
    classes
        Rules for the classes of end ports; None: the default rules.

    Raises
    ------
    FabricError
        A GUID or LID is duplicate, or an index is out of range.
    """
    guid = device["guid"]
    _check(device, endport, cable, switches)
    names = [name.decode(errors="replace") for name in device["name"].tolist()]
    endport = endport[np.argsort(endport["guid"], kind="stable")]
    if len(endport) and (np.diff(endport["guid"]) == 0).any():
        twice = endport["guid"][1:][np.diff(endport["guid"]) == 0][0]
        raise FabricError(f"port GUID {int(twice):#x} belongs to two ports")
    fabric = Fabric(
        name="opensm", switch_guid=guid[:switches].copy(), switch_name=tuple(names[:switches]),
        switch_ports=device["ports"][:switches].copy(), switch_lid=device["lid"][:switches].copy(),
        terminal_guid=guid[switches:].copy(), terminal_name=tuple(names[switches:]),
        terminal_ports=device["ports"][switches:].copy(), terminal_kind=device["kind"][switches:].copy(),
        endport_terminal=endport["device"].astype(np.int32) - np.int32(switches), endport_port=endport["port"].copy(),
        endport_guid=endport["guid"].copy(), endport_lid=endport["lid"].copy(),
        endport_lmc=np.where(endport["lid"] > 0, endport["lmc"], 0).astype(np.uint8),
        link_device=cable["device"].astype(np.int32), link_port=cable["port"].copy(),
        link_width=cable["width"].copy(), link_speed=cable["speed"].copy(),
        port_classes=PortClasses() if classes is None else classes,
    )  # fmt: skip
    # Build the index of LIDs now, and not at its first use.  If two ports have the same LID, this raises FabricError.
    len(fabric.lids)
    return fabric


def fabric_to_arrays(fabric: Fabric) -> tuple[Structs, Structs, Structs]:
    """Return a fabric as arrays of structs (devices, end ports, cables), from which :func:`fabric_from_arrays` rebuilds
    it.
    """
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


def _check(device: Structs, endport: Structs, cable: Structs, switches: int) -> None:
    guid, count = device["guid"], len(device)
    if not 0 <= switches <= count:
        raise FabricError(f"{switches} switches among {count} devices")
    for part in (guid[:switches], guid[switches:]):
        if (part[1:] <= part[:-1]).any():
            raise FabricError(f"node GUID {int(part[1:][part[1:] <= part[:-1]][0]):#x} occurs twice")
    _check_cables(device, cable)
    if len(endport) and not switches <= int(endport["device"].min()) <= int(endport["device"].max()) < count:
        raise FabricError("an end port belongs to a device that does not exist")


def _check_cables(device: Structs, cable: Structs) -> None:
    if len(cable) and int(cable["device"].max()) >= len(device):
        raise FabricError("a cable leads to a device that does not exist")
