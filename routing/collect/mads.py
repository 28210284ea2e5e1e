"""Queries for the attributes of subnet management, subnet administration and performance management, and their answers.

The layouts follow the InfiniBand Architecture Specification, volume 1, chapters 13.4, 14.2, 15.2 and 16.1.  The module
imports the standard library and :mod:`routing.collect.umad` only.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

from routing.collect.umad import GET_TABLE, MAD, PERFORMANCE, SUBNET_ADMINISTRATION, Query

NODE_INFO, SWITCH_INFO, PORT_INFO = 0x11, 0x12, 0x15
SL2VL, VL_ARBITRATION, LFT_BLOCK = 0x17, 0x18, 0x19
BLOCK = 64
"""Number of LFT entries in a block, the unit in which LFTs are read."""
LOW, HIGH = (1, 2), (3, 4)
"""Numbers of the two blocks with a port's low-priority VL arbitration table, and of the two blocks with its
high-priority table.

Each block has 32 entries.
"""
_PATH_RECORD = 0x35
_PORT_COUNTERS, _WIDE_COUNTERS, _DISCARD_DETAILS = 0x12, 0x1D, 0x16
_SERVICE_ID, _P_KEY, _SERVICE_LEVEL = 1 << 0 | 1 << 1, 1 << 13, 1 << 15
_DLID, _SLID = 1 << 4, 1 << 5
_DATA, _RECORDS = 64, 56
"""Position of the attribute in a management packet (MAD), in bytes from its start.

The first number is for packets of subnet and performance management, the second for packets of the SA.
"""

Request = tuple[int | None, int | None, int | None]
"""SL, P_Key and service ID that a path query requires.  None means that any value is accepted."""


class NodeInfo(NamedTuple):
    """Fields of NodeInfo: the GUID of the device, and the port by which the query arrived."""

    guid: int
    port: int


class PortInfo(NamedTuple):
    """Fields of PortInfo.

    ``vl_cap`` and ``operational_vls`` are numbers of data VLs.  PortInfo states each number as a code.  If the code is
    not defined, the number is 0.
    """

    sm_lid: int
    sm_sl: int
    state: int
    vl_cap: int
    operational_vls: int
    high_limit: int
    hoq_life: int
    vl_stall_count: int


class PathRecord(NamedTuple):
    """Fields of a path record."""

    source: int
    destination: int
    sl: int


VLS = {1: 1, 2: 2, 3: 4, 4: 8, 5: 15}
"""Number of data VLs for each code in PortInfo."""


def node_info(mad: bytes) -> NodeInfo:
    """Extract NodeInfo from an answer."""
    guid, port = struct.unpack_from(">Q", mad, _DATA + 12)[0], mad[_DATA + 36]
    return NodeInfo(guid, port)


def port_info(mad: bytes) -> PortInfo:
    """Extract PortInfo from an answer."""
    data = mad[_DATA:]
    return PortInfo(
        sm_lid=struct.unpack_from(">H", data, 18)[0],
        sm_sl=data[36] & 0xF,
        state=data[32] & 0xF,
        vl_cap=VLS.get(data[37] >> 4, 0),
        operational_vls=VLS.get(data[43] >> 4, 0),
        high_limit=data[38],
        hoq_life=data[42] & 0x1F,
        vl_stall_count=data[42] >> 5,
    )


def top_lid(mad: bytes) -> int:
    """Extract the highest LID of a switch's LFT (LinearFDBTop) from an answer with SwitchInfo."""
    return int(struct.unpack_from(">H", mad, _DATA + 6)[0])


def lft_block(mad: bytes) -> bytes:
    """Extract the out-ports of one LFT block from an answer."""
    return mad[_DATA : _DATA + BLOCK]


def sl2vl_row(mad: bytes) -> bytes:
    """Extract the 16 VLs from an answer with an SL2VL row."""
    return bytes(nibble for byte in mad[_DATA : _DATA + 8] for nibble in (byte >> 4, byte & 0xF))


def arbitration_block(mad: bytes) -> list[tuple[int, int]]:
    """Extract the entries (VL, weight) from an answer with a block of a VL arbitration table."""
    return [(mad[_DATA + 2 * entry] & 0xF, mad[_DATA + 1 + 2 * entry]) for entry in range(32)]


def path_query(
    sm_lid: int, source: int, destination: int | None, request: Request = (None, None, None), *, sl: int = 0
) -> Query:
    """Return the query to the SA for the path between two LIDs, or for all paths from a LID (``destination`` None).

    Parameters
    ----------
    sm_lid
        LID of the SA, which equals the LID of the subnet manager.
    source, destination
        LIDs of the source and of the destination.
    request
        SL, P_Key and service ID that the path must have.
    sl
        SL with which the query is sent.
    """
    record, mask = bytearray(200), _SLID
    struct.pack_into(">HH", record, 40, destination or 0, source)
    mask |= 0 if destination is None else _DLID
    level, pkey, service = request
    for value, bits, layout, position in (
        (service, _SERVICE_ID, ">Q", 0),
        (pkey, _P_KEY, ">H", 50),
        (level, _SERVICE_LEVEL, ">H", 52),
    ):
        if value is not None:
            mask |= bits
            struct.pack_into(layout, record, position, value)
    body = struct.pack(">12xQHHQ", 0, 0, 0, mask) + bytes(record)
    query = Query(SUBNET_ADMINISTRATION, sm_lid, _PATH_RECORD, body=body, sl=sl)
    return query if destination is not None else query._replace(method=GET_TABLE)


def path_record(mad: bytes) -> PathRecord:
    """Extract the path record from an answer with one record."""
    return _record(mad, _RECORDS)


def path_records(mad: bytes) -> list[PathRecord] | None:
    """Extract all path records from an answer with a table of path records.

    A long answer consists of several MADs (protocol RMPP), which the Linux kernel joins.  The simulator ibsim sends
    only the first MAD of a long answer.  The result is None for an answer that was cut off in this manner.
    """
    flags, size = mad[26] & 0x7, 8 * struct.unpack_from(">H", mad, 44)[0]
    active, last = bool(flags & 1), bool(flags & 4)
    payload = len(mad) - _RECORDS
    if len(mad) <= MAD and active:
        if not last:
            return None
        # A short answer is one MAD with a field that states how many bytes are in use.  These bytes include the SA
        # header of 20 bytes, which is subtracted here.
        payload = min(payload, struct.unpack_from(">I", mad, 32)[0] - 20)
    count = payload // size if size else 0
    return [_record(mad, _RECORDS + number * size) for number in range(count)]


def _record(mad: bytes, at: int) -> PathRecord:
    destination, source = struct.unpack_from(">HH", mad, at + 40)
    return PathRecord(source, destination, struct.unpack_from(">H", mad, at + 52)[0] & 0xF)


COUNTERS: Mapping[str, tuple[int, str]] = {
    "SymbolErrorCounter": (4, ">H"),
    "LinkErrorRecoveryCounter": (6, ">B"),
    "LinkDownedCounter": (7, ">B"),
    "PortRcvErrors": (8, ">H"),
    "PortRcvRemotePhysicalErrors": (10, ">H"),
    "PortRcvSwitchRelayErrors": (12, ">H"),
    "PortXmitDiscards": (14, ">H"),
    "PortXmitConstraintErrors": (16, ">B"),
    "PortRcvConstraintErrors": (17, ">B"),
    "VL15Dropped": (22, ">H"),
    "PortXmitData": (24, ">I"),
    "PortRcvData": (28, ">I"),
    "PortXmitPkts": (32, ">I"),
    "PortRcvPkts": (36, ">I"),
    "PortXmitWait": (40, ">I"),
}
"""Position and format of each counter in PortCounters."""
_WIDE = ("PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts")
_HOQ = "PortSwHOQLifetimeLimitDiscards"
ALL_COUNTERS = (*COUNTERS, _HOQ)
"""Names of all counters of a port."""


def counter_queries(lid: int, port: int, sl: int = 0) -> tuple[Query, Query, Query]:
    """Return the queries for the counters of a port: the basic counters, the counters of 64 bits, and the reasons of
    discards.

    ``sl`` is the SL with which the queries are sent.
    """
    body = bytes(40) + bytes([0, port])
    return (
        Query(PERFORMANCE, lid, _PORT_COUNTERS, body=body, sl=sl),
        Query(PERFORMANCE, lid, _WIDE_COUNTERS, body=body, sl=sl),
        Query(PERFORMANCE, lid, _DISCARD_DETAILS, body=body, sl=sl),
    )


def port_counters(basic: bytes | None, wide: bytes | None, discards: bytes | None) -> dict[str, int]:
    """Return the counters of a port by name, from the answers to :func:`counter_queries`.

    ``basic``, ``wide`` and ``discards`` are the answers to the three queries; None: the port did not answer.

    Counters that the port did not return are left out.  A counter of 64 bits replaces the counter of 32 bits with the
    same name.  If all 64 bits are set, the port does not support this counter, and the counter of 32 bits is returned.
    """
    found: dict[str, int] = {}
    if basic is not None:
        found = {name: struct.unpack_from(form, basic, _DATA + at)[0] for name, (at, form) in COUNTERS.items()}
    if wide is not None:
        values = zip(_WIDE, struct.unpack_from(">4Q", wide, _DATA + 8), strict=True)
        found |= {name: value for name, value in values if value != (1 << 64) - 1}
    if discards is not None:
        found[_HOQ] = struct.unpack_from(">H", discards, _DATA + 10)[0]
    return found
