"""Read the SLs of paths from a text file: path records of OpenSM, or the format of ``ibdmchk``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from routing.errors import ParseError, TableError
from routing.fabric import MAX_UNICAST_LID, Fabric
from routing.formats.dump_lines import Piece

UNKNOWN = 255
"""Value that stands for an SL which the file does not state."""
SLS = 16

_SOURCE = re.compile(r"(?:Switch|Channel Adapter|Router) 0x([0-9a-fA-F]{1,16}), base LID ([0-9]{1,5}), ")
_RECORD = re.compile(r"0x([0-9a-fA-F]{1,4})\s+:\s+(?:UNREACHABLE|([0-9]{1,2})(?:\s+:\s+[0-9]+\s+:\s+[0-9]+)?)\s*$")
_PSL = re.compile(r"0x([0-9a-fA-F]{1,16}) ([0-9]{1,5}) ([0-9]{1,2})\s*$")
_NOISE = re.compile(r"\s*(?:#|$)")


class PathReader:
    """Collects the SLs that a file states, piece by piece, by source and destination LID.

    Parameters
    ----------
    path
        File name for error messages.
    fabric
        The fabric to which the SLs belong.
    """

    def __init__(self, path: str | Path, fabric: Fabric) -> None:
        self._path, self._fabric = path, fabric
        self._sl = np.full((fabric.switches + fabric.endports, len(fabric.lids)), UNKNOWN, np.uint8)
        self._base = np.concatenate([fabric.switch_lid, fabric.endport_lid])
        self._of_port = {guid: [row] for row, guid in enumerate(fabric.switch_guid.tolist())}
        self._of_node = dict(self._of_port)
        for row, guid in enumerate(fabric.endport_guid.tolist()):
            self._of_port[guid] = [fabric.switches + row]
            node = int(fabric.terminal_guid[fabric.endport_terminal[row]])
            self._of_node[node] = [*self._of_node.get(node, []), fabric.switches + row]
        self._node = np.array(sorted(self._of_node), np.uint64)
        most = max((len(rows) for rows in self._of_node.values()), default=0)
        self._of_rank = np.full((most, len(self._node)), -1, np.int64)
        for position, guid in enumerate(self._node.tolist()):
            self._of_rank[: len(self._of_node[guid]), position] = self._of_node[guid]
        self._source: list[int] = []
        self._named = np.zeros(len(self._base), bool)

    def take(self, piece: Piece) -> None:
        """Read one piece of the file.

        Lines in exactly the form that the tools print are read many at a time, as arrays.  All other lines are parsed
        one by one.
        """
        record, record_lid, record_sl = self._records(piece)
        plain = record | self._pairs(piece)
        for begin, end in _between(np.flatnonzero(~plain), len(plain)):
            if begin >= 0:
                self._line(piece.text(begin), piece.first + begin)
            lines = np.arange(begin + 1, end)[record[begin + 1 : end]]
            if len(lines):
                self._needs_source(piece.first + int(lines[0]))
                self._sl[self._source[0], record_lid[lines]] = record_sl[lines]

    def _records(self, piece: Piece) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Find the lines that look exactly as OpenSM prints a path record.

        Returns
        -------
        whole : bool[n]
            Whether each line of the piece is such a record.
        lid, sl : int64[n]
            Destination LID and SL of each such record.  The values of other lines have no meaning.
        """
        whole, (all_lid, all_sl) = np.zeros(len(piece.start), bool), np.zeros((2, len(piece.start)), np.int64)
        length = piece.end - piece.start
        # A path record with MTU and rate has 24 characters.  A path record without them has 10 or 11 characters.
        lines = np.flatnonzero((length == 24) | (length == 10) | (length == 11))
        lines = lines[piece.has(lines, 6, b" : ")]
        short = length[lines] < 24
        lines = lines[short | (piece.has(lines, 11, b" : ") & piece.has(lines, 17, b" : "))]
        short = length[lines] < 24
        lid, good = piece.number(lines, 2, 4, 16)
        sl, has_sl = piece.number(lines, 9, 1, 10)
        units, two = piece.number(lines, 10, 1, 10)
        two &= length[lines] > 10
        sl = np.where(two, 10 * sl + units, sl)
        good &= has_sl & piece.has(lines, 0, b"0x") & (two | (length[lines] == 10) | piece.has(lines, 10, b" "))
        good &= (lid > 0) & (lid < self._sl.shape[1]) & (sl < SLS)
        for column, width in ((14, 3), (20, 4)):  # These columns hold the MTU and the rate.
            good &= short | piece.number(lines, column, 1, 10)[1]
            for position in range(column + 1, column + width):
                good &= short | piece.number(lines, position, 1, 10)[1] | piece.has(lines, position, b" ")
        whole[lines], all_lid[lines], all_sl[lines] = good, lid, sl
        return whole, all_lid, all_sl

    def _pairs(self, piece: Piece) -> npt.NDArray[np.bool_]:
        """Store the SLs of all lines that have exactly the form ``0xGUID LID SL``.

        Returns
        -------
        bool[n]
            Whether each line has this form.
        """
        whole = np.zeros(len(piece.start), bool)
        lines = np.arange(len(piece.start))
        lines = lines[piece.has(lines, 18, b" ") & piece.has(lines, 0, b"0x")]
        guid, good = piece.number(lines, 2, 16, 16)
        lines, key = lines[good], guid[good].view(np.uint64)
        known = np.isin(key, self._node)
        lines, node = lines[known], np.searchsorted(self._node, key[known])
        for lid_digits in range(1, 6):
            lid, good = piece.number(lines, 19, lid_digits, 10)
            good &= piece.has(lines, 19 + lid_digits, b" ") & (lid > 0) & (lid < self._sl.shape[1])
            for sl_digits in (1, 2):
                sl, fits = piece.number(lines, 20 + lid_digits, sl_digits, 10)
                fits &= good & (sl < SLS) & ((piece.end - piece.start)[lines] == 20 + lid_digits + sl_digits)
                for rows in self._of_rank[:, node[fits]]:
                    there = rows >= 0
                    self._sl[rows[there], lid[fits][there]] = sl[fits][there]
                    self._named[rows[there]] = True
                whole[lines[fits]] = True
        return whole

    def _needs_source(self, number: int) -> None:
        if not self._source:
            raise ParseError("this path is before the first source", path=self._path, line=number)

    def _line(self, text: str, number: int) -> None:
        if match := _RECORD.match(text):
            self._needs_source(number)
            if match[2]:
                self._put(self._source, int(match[1], 16), int(match[2]), number)
        elif match := _PSL.match(text):
            self._put(self._find(self._of_node, match[1], number), int(match[2]), int(match[3]), number)
        elif match := _SOURCE.match(text):
            self._source = self._find(self._of_port, match[1], number)
            here = int(self._base[self._source[0]])
            if int(match[2]) != here:
                raise TableError(
                    f"port 0x{match[1]} has LID {match[2]} here and LID {here} in the fabric",
                    path=self._path, line=number, remedy="SLs are stated by LID: use a file with the fabric's LIDs",
                )  # fmt: skip
        elif not _NOISE.match(text):
            raise ParseError(
                f"this is not a line of service levels: {text[:60]!r}",
                path=self._path, line=number, remedy="wanted: '0xLLLL : SL : ...' or '0xNODEGUID LID SL'",
            )  # fmt: skip

    def _find(self, known: dict[int, list[int]], guid: str, number: int) -> list[int]:
        found = known.get(int(guid, 16))
        if found is None:
            raise TableError(
                f"source 0x{guid} is not in the fabric",
                path=self._path, line=number, remedy="the service levels belong to another fabric",
            )  # fmt: skip
        self._named[found] = True
        return found

    def _put(self, sources: list[int], lid: int, sl: int, number: int) -> None:
        if sl > 15:
            raise ParseError(f"SL {sl} is over 15", path=self._path, line=number)
        if not 0 < lid <= MAX_UNICAST_LID:
            raise ParseError(f"{lid:#x} is not a unicast LID", path=self._path, line=number)
        if lid < self._sl.shape[1]:
            for source in sources:
                self._sl[source, lid] = sl

    def finish(self) -> npt.NDArray[np.uint8]:
        """Return the SLs by source and destination LID, uint8[S + E, L].  The rows are first switches, then end ports.
        255 means that the file states no SL.

        Raises
        ------
        TableError
            The file does not name an end port that can send.
        """
        check_sources(self._fabric, self._named[self._fabric.switches :], self._path)
        return self._sl


def check_sources(fabric: Fabric, named: npt.NDArray[np.bool_], path: str | Path) -> None:
    """Check that a file names every end port that can send.  ``named`` is bool[E], whether the file names each end
    port.

    Raises
    ------
    TableError
        The file does not name an end port that is attached to a switch and has a LID.
    """
    silent = ~named & (fabric.endport_switch >= 0) & (fabric.endport_lid > 0)
    if silent.any():
        raise TableError(
            f"the file has no paths from {fabric.endport_label[int(silent.argmax())]!r}",
            path=path,
            remedy="the service levels belong to another fabric, or the file was cut short",
        )


def _between(breaks: npt.NDArray[np.int64], count: int) -> Iterator[tuple[int, int]]:
    """Yield the two line numbers that enclose each run of lines without a break.

    There are ``count`` lines, numbered from 0.  ``breaks`` are the line numbers of the breaks, in ascending order.  The
    first pair begins with -1, and the last pair ends with ``count``.  A run may be empty, as between adjacent breaks.
    """
    return zip([-1, *breaks.tolist()], [*breaks.tolist(), count], strict=True)
