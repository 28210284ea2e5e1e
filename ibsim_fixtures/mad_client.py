"""Many management packets from one program: service levels and SL2VL tables of a whole fabric in a second.

saquery and smpquery take a process for each question, which is 8 ms at best.  This module is run as a program of its
own by :func:`ask`, connected to ibsim as those are, because libumad2sim has to be there before the first call.  It
imports nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import json
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ibsim_fixtures.ibsim import Ibsim

Path = tuple[int, int]
Row = tuple[int, int, int]
Answer = TypeVar("Answer")
Question = tuple[tuple[int, int], int, int, int, bytes]
"""Class and version, LID, attribute, modifier, what follows the head."""

_MAD = 256
_GET = 0x01
_SMP, _SA = (0x01, 1), (0x03, 2)  # class and version of LID-routed subnet management, of subnet administration
_SL2VL, _PATH_RECORD = 0x17, 0x35
_DLID_AND_SLID = 1 << 4 | 1 << 5
_SA_QKEY = 0x80010000
_TIMEOUT_MS = 2000
_SECONDS_EACH = 0.005
"""How long a question may take on the busiest machine; a thousand CAs have a million."""
_AHEAD = 8
"""Questions under way: a socket of Linux holds ten packets."""


def ask(
    ibsim: Ibsim, *, sm_lid: int = 0, paths: Sequence[Path] = (), sl2vl: Sequence[Row] = ()
) -> tuple[list[int | None], list[tuple[int, ...] | None]]:
    """Ask a running fabric.

    Parameters
    ----------
    ibsim
        The fabric.
    sm_lid
        LID of OpenSM, for ``paths``.
    paths
        (source LID, destination LID) of the path records that are wanted.
    sl2vl
        (LID, in-port, out-port) of the SL2VL rows that are wanted.

    Returns
    -------
    The SL of every path and the 16 VLs of every row; None where there is no answer or the answer is an error.
    """
    wanted = json.dumps({"sm_lid": sm_lid, "paths": list(paths), "sl2vl": list(sl2vl)})
    seconds = ibsim.timeout + _SECONDS_EACH * (len(paths) + len(sl2vl))
    said = json.loads(ibsim.run(sys.executable, "-I", "-S", __file__, stdin=wanted, timeout=seconds))
    return said["paths"], [None if row is None else tuple(row) for row in said["sl2vl"]]


class _Umad:
    """The few calls of libibumad that are needed."""

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
        # Only an open port tells the library how large its header is.
        self._buffer = ctypes.create_string_buffer(self._library.umad_size() + _MAD)
        self._mad = self._library.umad_get_mad(self._buffer)

    def get_all(self, questions: Iterable[Question], read: Callable[[bytes], Answer]) -> list[Answer | None]:
        """Send Gets, several ahead of their answers; what they say, in the order of the questions, or None."""
        answers: list[Answer | None] = []
        waiting: dict[int, int] = {}
        for place, question in enumerate(questions):
            answers.append(None)
            if (transaction := self._send(question)) is not None:
                waiting[transaction] = place
            if len(waiting) == _AHEAD:
                self._receive(waiting, answers, read)
        while waiting:
            self._receive(waiting, answers, read)
        return answers

    def _send(self, question: Question) -> int | None:
        """Send one Get; the number that its answer will have."""
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
        """Wait for one answer; all that is waited for is given up if none comes."""
        length = ctypes.c_int(_MAD)
        if self._library.umad_recv(self._port, self._buffer, ctypes.byref(length), 3 * _TIMEOUT_MS) < 0:
            waiting.clear()
            return
        mad = ctypes.string_at(self._mad, _MAD)
        # An answer that comes after its question was given up belongs to no other question.
        place = waiting.pop(struct.unpack_from(">I", mad, 12)[0], None)
        failed = self._library.umad_status(self._buffer) or struct.unpack_from(">H", mad, 4)[0] & 0x7FFF
        if place is not None and not failed:
            answers[place] = read(mad)


def _path(sm_lid: int, source: int, destination: int) -> Question:
    """Asks for a path record."""
    record = bytearray(200)
    struct.pack_into(">HH", record, 40, destination, source)
    prologue = struct.pack(">12xQHHQ", 0, 0, 0, _DLID_AND_SLID)
    return _SA, sm_lid, _PATH_RECORD, 0, prologue + bytes(record)


def _sl(mad: bytes) -> int:
    """SL of a path record."""
    return int(struct.unpack_from(">H", mad, 56 + 52)[0] & 0xF)


def _row(lid: int, entry: int, leave: int) -> Question:
    """Asks for an SL2VL row."""
    return _SMP, lid, _SL2VL, entry << 8 | leave, b""


def _vls(mad: bytes) -> list[int]:
    """16 VLs of an SL2VL row."""
    return [nibble for byte in mad[64:72] for nibble in (byte >> 4, byte & 0xF)]


def _main() -> None:
    wanted: dict[str, Any] = json.load(sys.stdin)
    umad = _Umad()
    paths = umad.get_all((_path(wanted["sm_lid"], *path) for path in wanted["paths"]), _sl)
    json.dump({"paths": paths, "sl2vl": umad.get_all((_row(*row) for row in wanted["sl2vl"]), _vls)}, sys.stdout)


if __name__ == "__main__":
    _main()
