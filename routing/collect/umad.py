"""Send management queries (MADs) through libibumad, many at a time, and receive their answers.

The module imports only the standard library, so that a separate program that uses it starts in a few milliseconds.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

Answer = TypeVar("Answer")

MAD = 256
"""Size in bytes of a MAD."""
GET, GET_TABLE = 0x01, 0x12
"""Methods of queries.  Neither method changes anything on the device."""
DIRECTED, SUBNET, SUBNET_ADMINISTRATION, PERFORMANCE = (0x81, 1), (0x01, 1), (0x03, 2), (0x04, 1)
"""Management classes, each with its version.  Directed queries follow a list of ports, and need no LFT."""
PERMISSIVE_LID = 0xFFFF
AHEAD = 8
"""Limit of the number of unanswered queries.  The limit is low, because a Linux socket (to ibsim) buffers only ten
packets.
"""
_QKEY = 0x80010000
_RMPP = 1
"""Version of RMPP, the protocol for answers of several MADs.  The kernel joins the MADs of an answer."""
_RETRIES = 2


class Query(NamedTuple):
    """A query to one device.

    Attributes
    ----------
    kind
        Management class, and version of the class.
    lid
        LID of the device that answers; :data:`PERMISSIVE_LID` for queries with a directed route.
    attribute, modifier
        Attribute ID and attribute modifier, which select the data that the device returns.
    body
        The bytes after the MAD header of 24 bytes.
    route
        For queries with a directed route, the out-ports on the route, beginning with the local port.
    method
        :data:`GET` or :data:`GET_TABLE`.
    sl
        SL with which the query is sent.
    """

    kind: tuple[int, int]
    lid: int
    attribute: int
    modifier: int = 0
    body: bytes = b""
    route: bytes = b""
    method: int = GET
    sl: int = 0


def directed(route: bytes, attribute: int, modifier: int = 0) -> Query:
    """Return a directed query, which follows a list of out-ports, beginning with the local port.

    ``route`` lists the out-ports.  ``attribute`` and ``modifier`` select the data that the device returns.
    """
    return Query(DIRECTED, PERMISSIVE_LID, attribute, modifier, route=route)


class Umad:
    """Port of a CA through which queries are sent.

    Parameters
    ----------
    ca
        Name of the CA, such as mlx5_0.  None means the first CA with an active port.
    port
        Port of the CA.  0 means the first active port.
    timeout_ms
        Time in milliseconds after which an unanswered query is sent again.  After two more attempts, the query is given
        up.

    Raises
    ------
    OSError
        libibumad is not installed, there is no such port, or the user may not open the port.
    """

    def __init__(self, ca: str | None = None, port: int = 0, *, timeout_ms: int = 2000) -> None:
        self._library = ctypes.CDLL("libibumad.so.3")
        self._library.umad_get_mad.restype = ctypes.c_void_p
        self._library.umad_get_mad.argtypes = [ctypes.c_void_p]
        self._library.umad_size.restype = ctypes.c_size_t
        self._agents: dict[tuple[int, int], int] = {}
        self._transaction, self._timeout = 0, timeout_ms
        self._library.umad_init()
        self._port = self._library.umad_open_port(None if ca is None else ca.encode(), port)
        if self._port < 0:
            raise OSError(-self._port, os.strerror(-self._port))
        self._reserve(MAD)

    def close(self) -> None:
        """Close the port."""
        self._library.umad_close_port(self._port)

    def _reserve(self, size: int) -> None:
        """Allocate the buffer for MADs of up to ``size`` bytes."""
        # The buffer holds the header of libibumad and a MAD.  libibumad knows the size of the header only after a port
        # is open.
        self._buffer = ctypes.create_string_buffer(self._library.umad_size() + size)
        self._mad, self._size = self._library.umad_get_mad(self._buffer), size

    def get_all(
        self,
        questions: Iterable[Query],
        read: Callable[[bytes], Answer],
        done: Callable[[int], None] = lambda _: None,
        *,
        ahead: int = AHEAD,
    ) -> list[Answer | None]:
        """Send queries, several at a time, and return their answers in order.

        Parameters
        ----------
        questions
            The queries.
        read
            Function that extracts the result from the bytes of an answer.
        done
            Function that is called with the number of queries that were sent since its last call.
        ahead
            Limit of the number of unanswered queries.

        Returns
        -------
        list
            One result for each query.  The result is None if the answer did not arrive or was an error.
        """
        answers: list[Answer | None] = []
        waiting: dict[int, int] = {}
        for position, question in enumerate(questions):
            answers.append(None)
            if (transaction := self._send(question)) is not None:
                waiting[transaction] = position
            if len(waiting) == ahead:
                self._receive(waiting, answers, read)
            if position % 256 == 255:
                done(256)
        while waiting:
            self._receive(waiting, answers, read)
        done(len(answers) % 256)
        return answers

    def get(self, question: Query, read: Callable[[bytes], Answer]) -> Answer | None:
        """Send one query and return its result; None if the answer did not arrive or was an error.

        ``read`` extracts the result from the bytes of the answer.
        """
        return self.get_all([question], read)[0]

    def _agent(self, kind: tuple[int, int]) -> int:
        if kind not in self._agents:
            version = _RMPP if kind == SUBNET_ADMINISTRATION else 0
            self._agents[kind] = self._library.umad_register(self._port, *kind, version, None)
        return self._agents[kind]

    def _send(self, question: Query) -> int | None:
        """Send one query.  Return the transaction number that the answer will have, or None if the query cannot be
        sent.
        """
        agent = self._agent(question.kind)
        self._transaction += 1
        ctypes.memset(self._buffer, 0, len(self._buffer))
        ctypes.memmove(self._mad, packet(question, self._transaction), MAD)
        pair, key = (0, 0) if question.kind in (DIRECTED, SUBNET) else (1, _QKEY)
        self._library.umad_set_addr(self._buffer, question.lid, pair, question.sl, ctypes.c_uint32(key))
        if self._library.umad_send(self._port, agent, self._buffer, MAD, self._timeout, _RETRIES) < 0:
            return None
        return self._transaction & 0xFFFFFFFF

    def _receive(self, waiting: dict[int, int], answers: list[Any], read: Callable[[bytes], Any]) -> None:
        """Wait for one answer and store it; if no answer arrives in time, give up all unanswered queries.

        ``waiting`` maps the transaction numbers of unanswered queries to positions in ``answers``, and ``read``
        extracts the result from an answer.
        """
        length = ctypes.c_int(self._size)
        wait_ms = (_RETRIES + 1) * self._timeout
        found = self._library.umad_recv(self._port, self._buffer, ctypes.byref(length), wait_ms)
        # If the buffer is too small for an answer, the answer stays in libibumad.  A larger buffer is allocated, and
        # the next call of `_receive` receives the answer.
        if found == -errno.ENOSPC and length.value > self._size:
            self._reserve(length.value)
            return
        if found < 0:
            waiting.clear()
            return
        mad = ctypes.string_at(self._mad, min(max(length.value, MAD), self._size))
        # An answer may arrive after its query was given up.  Its transaction number then matches no waiting query.
        position = waiting.pop(struct.unpack_from(">I", mad, 12)[0], None)
        failed = self._library.umad_status(self._buffer) or struct.unpack_from(">H", mad, 4)[0] & 0x7FFF
        if position is not None and not failed:
            answers[position] = read(mad)


def packet(question: Query, transaction: int) -> bytes:
    """Return the bytes of a query as a MAD of 256 bytes.

    ``transaction`` is the number by which the answer is matched to the query.
    """
    head = struct.pack(
        ">BBBBHBBQHHI",
        1, *question.kind, question.method, 0, 0, len(question.route), transaction, question.attribute, 0,
        question.modifier,
    )  # fmt: skip
    body = question.body
    if question.kind == DIRECTED:
        # The body begins with an M_Key of 0.  The permissive LID follows twice (as DrSLID and DrDLID), because no part
        # of the route is LID-routed.  The field for the route begins at byte 128 of the MAD.
        body = struct.pack(">QHH", 0, PERMISSIVE_LID, PERMISSIVE_LID).ljust(104, b"\0") + b"\0" + question.route
    return (head + body).ljust(MAD, b"\0")
