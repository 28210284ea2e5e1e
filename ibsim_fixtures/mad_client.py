"""Client that sends many management packets from one process, to read the tables and SLs of a whole fabric in a second.

The diagnostic programs saquery and smpquery take one process for each query, at least 8 ms.  :func:`ask` runs this
module as a separate program that is connected to ibsim, because libumad2sim has to be preloaded.  So the module imports
nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import json
import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ibsim_fixtures.ibsim import Ibsim

Path = tuple[int, int]
Request = tuple[int | None, int | None, int | None]
"""SL, P_Key and service ID that a path query asks for; None: any."""
Row = tuple[int, int, int]
Answer = TypeVar("Answer")
Question = tuple[tuple[int, int], int, int, int, bytes]
"""Query: (management class, class version), LID, attribute, attribute modifier, and the bytes after the MAD header."""

_MAD = 256
_GET = 0x01
_SMP, _SA = (0x01, 1), (0x03, 2)  # class and version of LID-routed subnet management and of subnet administration
_NODE_INFO, _SWITCH_INFO, _LFT_BLOCK = 0x11, 0x12, 0x19
_SL2VL, _VL_ARBITRATION, _PATH_RECORD = 0x17, 0x18, 0x35
_BLOCK = 64  # LFT entries in a block
# first blocks of a port's low-priority and high-priority arbitration tables, and entries in a block
_LOW, _HIGH, _ENTRIES = 1, 3, 32
_DLID_AND_SLID = 1 << 4 | 1 << 5
_SERVICE_ID, _P_KEY, _SERVICE_LEVEL = 1 << 0 | 1 << 1, 1 << 13, 1 << 15
_SA_QKEY = 0x80010000
_TIMEOUT_MS = 2000
_SECONDS_EACH = 0.005
"""Time limit in seconds for each query on a busy machine; a fabric with 1000 CAs needs a million queries."""
_AHEAD = 8
"""Largest number of unanswered queries at a time, because a Linux socket buffers only ten packets."""


def ask(
    ibsim: Ibsim,
    *,
    sm_lid: int = 0,
    paths: Sequence[Path] = (),
    sl2vl: Sequence[Row] = (),
    request: Request = (None, None, None),
) -> tuple[list[int | None], list[tuple[int, ...] | None]]:
    """Query SLs from the SA and SL2VL rows from the devices of a running fabric.

    Parameters
    ----------
    ibsim
        Running ibsim with the fabric.
    sm_lid
        LID of OpenSM, which answers path queries; not needed without ``paths``.
    paths
        Paths whose SL is queried, as (source LID, destination LID).
    sl2vl
        SL2VL rows to read, as (LID, in-port, out-port).
    request
        SL, P_Key and service ID that every path query asks for; None: any.

    Returns
    -------
    sls
        SL of each path; None if there was no answer, or the answer was an error.
    rows
        16 VLs of each row; None if there was no answer, or the answer was an error.
    """
    wanted = json.dumps({"sm_lid": sm_lid, "paths": list(paths), "sl2vl": list(sl2vl), "request": request})
    seconds = ibsim.timeout + _SECONDS_EACH * (len(paths) + len(sl2vl))
    output = json.loads(ibsim.run(sys.executable, "-I", "-S", __file__, stdin=wanted, timeout=seconds))
    return output["paths"], [None if row is None else tuple(row) for row in output["sl2vl"]]


class _Umad:
    """Access to libibumad for sending Get queries and receiving their answers."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libibumad.so.3")
        self._library.umad_get_mad.restype = ctypes.c_void_p
        self._library.umad_get_mad.argtypes = [ctypes.c_void_p]
        self._library.umad_size.restype = ctypes.c_size_t
        self._agents: dict[int, int] = {}
        self._transaction = 0
        self._library.umad_init()
        self._port = self._library.umad_open_port(None, 0)
        if self._port < 0:
            raise OSError(f"umad_open_port: {self._port}")
        # libibumad knows the size of its header only after a port is open.
        self._buffer = ctypes.create_string_buffer(self._library.umad_size() + _MAD)
        self._mad = self._library.umad_get_mad(self._buffer)

    def get_all(self, questions: Iterable[Question], read: Callable[[bytes], Answer]) -> list[Answer | None]:
        """Send Get queries, several at a time, and return their answers in order.

        An answer is None if it did not arrive or was an error.  ``read`` extracts the result from the bytes of an
        answer.
        """
        answers: list[Answer | None] = []
        waiting: dict[int, int] = {}
        for position, question in enumerate(questions):
            answers.append(None)
            if (transaction := self._send(question)) is not None:
                waiting[transaction] = position
            if len(waiting) == _AHEAD:
                self._receive(waiting, answers, read)
        while waiting:
            self._receive(waiting, answers, read)
        return answers

    def _send(self, question: Question) -> int | None:
        """Send one Get query; return the transaction number that its answer will have, or None if it cannot be sent."""
        kind, lid, attribute, modifier, body = question
        if kind[0] not in self._agents:
            self._agents[kind[0]] = self._library.umad_register(self._port, *kind, 0, None)
        self._transaction += 1
        head = struct.pack(">BBBBHHQHHI", 1, *kind, _GET, 0, 0, self._transaction, attribute, 0, modifier)
        ctypes.memset(self._buffer, 0, len(self._buffer))
        ctypes.memmove(self._mad, (head + body).ljust(_MAD, b"\0"), _MAD)
        pair, key = (0, 0) if kind is _SMP else (1, _SA_QKEY)
        self._library.umad_set_addr(self._buffer, lid, pair, 0, ctypes.c_uint32(key))
        agent = self._agents[kind[0]]
        if self._library.umad_send(self._port, agent, self._buffer, _MAD, _TIMEOUT_MS, 2) < 0:
            return None
        return self._transaction & 0xFFFFFFFF

    def _receive(self, waiting: dict[int, int], answers: list[Answer | None], read: Callable[[bytes], Answer]) -> None:
        """Wait for one answer and store it; if none arrives in time, give up all unanswered queries."""
        length = ctypes.c_int(_MAD)
        if self._library.umad_recv(self._port, self._buffer, ctypes.byref(length), 3 * _TIMEOUT_MS) < 0:
            waiting.clear()
            return
        mad = ctypes.string_at(self._mad, _MAD)
        # An answer may arrive after its query was given up.  Its transaction number then matches no waiting query.
        position = waiting.pop(struct.unpack_from(">I", mad, 12)[0], None)
        failed = self._library.umad_status(self._buffer) or struct.unpack_from(">H", mad, 4)[0] & 0x7FFF
        if position is not None and not failed:
            answers[position] = read(mad)


def _path(sm_lid: int, path: Path, request: Request) -> Question:
    """Return the query for the path record of a path, given as (source LID, destination LID)."""
    source, destination = path
    record, mask = bytearray(200), _DLID_AND_SLID
    struct.pack_into(">HH", record, 40, destination, source)
    sl, pkey, service = request
    for value, bits, layout, position in (
        (service, _SERVICE_ID, ">Q", 0),
        (pkey, _P_KEY, ">H", 50),
        (sl, _SERVICE_LEVEL, ">H", 52),
    ):
        if value is not None:
            mask |= bits
            struct.pack_into(layout, record, position, value)
    prologue = struct.pack(">12xQHHQ", 0, 0, 0, mask)
    return _SA, sm_lid, _PATH_RECORD, 0, prologue + bytes(record)


def _sl(mad: bytes) -> int:
    """Extract the SL from an answer with a path record."""
    return int(struct.unpack_from(">H", mad, 56 + 52)[0] & 0xF)


def _row(lid: int, entry: int, leave: int) -> Question:
    """Return the query for the SL2VL row of a device between two ports."""
    return _SMP, lid, _SL2VL, entry << 8 | leave, b""


def _vls(mad: bytes) -> list[int]:
    """Extract the 16 VLs from an answer with an SL2VL row."""
    return [nibble for byte in mad[64:72] for nibble in (byte >> 4, byte & 0xF)]


def lfts(ibsim: Ibsim, switches: Mapping[int, int]) -> dict[int, bytes] | None:
    """Read the LFTs of switches with many queries at a time.

    Parameters
    ----------
    ibsim
        Running ibsim with the fabric.
    switches
        LID of each switch by its GUID.

    Returns
    -------
    dict[int, bytes] or None
        By switch GUID: out-port of each LID, one byte each, up to the highest LID of the table.  None if a query was
        not answered, or if another device answered.
    """
    order = list(switches)
    wanted = json.dumps({"lfts": [switches[guid] for guid in order]})
    output = json.loads(ibsim.run(sys.executable, "-I", "-S", __file__, stdin=wanted))["lfts"]
    if output is None or [guid for guid, _ in output] != order:
        return None
    return {guid: bytes.fromhex(table) for guid, table in output}


def _tables(umad: _Umad, lids: Sequence[int]) -> list[tuple[int, str]] | None:
    """Read GUID and LFT (hexadecimal) of the switch with each of the given LIDs; None if a query was not answered."""
    guids = umad.get_all(((_SMP, lid, _NODE_INFO, 0, b"") for lid in lids), _node_guid)
    tops = umad.get_all(((_SMP, lid, _SWITCH_INFO, 0, b"") for lid in lids), _top_lid)
    if None in guids or None in tops:
        return None
    owners = [(lid, block) for lid, top in zip(lids, tops, strict=True) for block in range((top or 0) // _BLOCK + 1)]
    blocks = umad.get_all(((_SMP, lid, _LFT_BLOCK, block, b"") for lid, block in owners), _ports)
    tables = dict.fromkeys(lids, "")
    for (lid, _), ports in zip(owners, blocks, strict=True):
        if ports is None:
            return None
        tables[lid] += ports
    return [(guid or 0, tables[lid][: 2 * (top or 0) + 2]) for lid, guid, top in zip(lids, guids, tops, strict=True)]


def _node_guid(mad: bytes) -> int:
    """Extract the node GUID from an answer with NodeInfo."""
    return int(struct.unpack_from(">Q", mad, 64 + 12)[0])


def _top_lid(mad: bytes) -> int:
    """Extract the highest LID of a switch's LFT (LinearFDBTop) from an answer with SwitchInfo."""
    return int(struct.unpack_from(">H", mad, 64 + 6)[0])


def _ports(mad: bytes) -> str:
    """Extract the out-ports of one LFT block from an answer, as hexadecimal text."""
    return mad[64 : 64 + _BLOCK].hex()


def arbitration(ibsim: Ibsim, ports: Sequence[tuple[int, int]]) -> list[dict[int, int] | None]:
    """Query the VL arbitration weights of ports, which are pairs (LID, port).

    The result has, for each port, the weight of every VL, summed over the first blocks of both tables.  It is None if
    there was no answer, or the answer was an error.
    """
    wanted = json.dumps({"arbitration": list(ports)})
    seconds = ibsim.timeout + 2 * _SECONDS_EACH * len(ports)
    output = json.loads(ibsim.run(sys.executable, "-I", "-S", __file__, stdin=wanted, timeout=seconds))
    found: list[dict[int, int] | None] = []
    for low, high in zip(output["arbitration"][::2], output["arbitration"][1::2], strict=True):
        weights: dict[int, int] = {}
        for vl, weight in (*(low or ()), *(high or ())):
            weights[vl] = weights.get(vl, 0) + weight
        found.append(None if low is None or high is None else weights)
    return found


def _block(owner: tuple[int, int], block: int) -> Question:
    """Return the query for one block of a VL arbitration table; ``owner`` is (LID, port)."""
    lid, port = owner
    return _SMP, lid, _VL_ARBITRATION, block << 16 | port, b""


def _weights(mad: bytes) -> list[tuple[int, int]]:
    """Extract the entries (VL, weight) from an answer with a block of a VL arbitration table."""
    return [(mad[64 + 2 * entry] & 0xF, mad[65 + 2 * entry]) for entry in range(_ENTRIES)]


def _main() -> None:
    wanted: dict[str, Any] = json.load(sys.stdin)
    umad = _Umad()
    if "lfts" in wanted:
        json.dump({"lfts": _tables(umad, wanted["lfts"])}, sys.stdout)
        return
    if "arbitration" in wanted:
        blocks = (_block(port, block) for port in wanted["arbitration"] for block in (_LOW, _HIGH))
        json.dump({"arbitration": umad.get_all(blocks, _weights)}, sys.stdout)
        return
    paths = umad.get_all((_path(wanted["sm_lid"], path, wanted["request"]) for path in wanted["paths"]), _sl)
    json.dump({"paths": paths, "sl2vl": umad.get_all((_row(*row) for row in wanted["sl2vl"]), _vls)}, sys.stdout)


if __name__ == "__main__":
    _main()
