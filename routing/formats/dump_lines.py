"""Read large text dumps of tables quickly, by decoding fixed columns of many lines at once.

A dump of forwarding tables has one line for each switch and LID, so it may have millions of lines.  The dump is read in
pieces of whole lines.  NumPy decodes the lines that look exactly as OpenSM prints them.  All other lines are parsed one
by one.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from routing.errors import InputError, ParseError, file_problem
from routing.formats.text import DAMAGED, damaged, open_unpacked

PIECE = 1 << 23
MAX_LINE = 1 << 16

_HEX = np.full(256, 255, np.uint8)
_HEX[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_HEX[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)
_DIGIT = np.where(_HEX < 10, _HEX, 255).astype(np.uint8)


@dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive whole lines of a text file, with the offset of each line.

    Attributes
    ----------
    data
        uint8[N], the bytes of the lines with their newlines, and then 128 zeros.  Because of the zeros, a fixed
        column of the last line can be read even if this line is too short.
    start, end
        int64[n], offset in ``data`` of the first byte and of the newline of each of the n lines.
    first
        Line number of the first line in the file, counted from 1.
    """

    data: npt.NDArray[np.uint8]
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    first: int

    def text(self, line: int) -> str:
        """Return one line as text, without its newline."""
        return bytes(self.data[self.start[line] : self.end[line]]).decode("utf-8", "backslashreplace").rstrip("\r")

    def has(self, lines: npt.NDArray[np.int64], column: int, what: bytes) -> npt.NDArray[np.bool_]:
        """Return whether each line has the bytes ``what`` at a column, bool[n]."""
        begin = self.start[lines] + column
        good = begin + len(what) <= self.end[lines]
        for offset, byte in enumerate(what):
            good &= self.data[begin + offset] == byte
        return good

    def number(
        self, lines: npt.NDArray[np.int64], column: int, digits: int, base: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Parse one number in each of n lines.  The number begins at ``column`` and has ``digits`` digits.

        Returns
        -------
        value : int64[n]
            The numbers.  The number of a line has no meaning if ``good`` is False for the line.
        good : bool[n]
            Whether all these characters of the line are digits of a number with base ``base``.
        """
        table = _HEX if base == 16 else _DIGIT
        begin = self.start[lines] + column
        value = np.zeros(len(lines), np.int64)
        good = begin + digits <= self.end[lines]
        for offset in range(digits):
            digit = table[self.data[begin + offset]]
            good &= digit != 255
            value = value * base + digit
        return value, good


def read_pieces(path: str | Path, size: int = PIECE) -> Iterator[Piece]:
    """Read a text file in pieces of whole lines, about ``size`` bytes each.

    Raises
    ------
    InputError, EnvironmentProblem
        The file is missing, is a folder, or cannot be read.
    ParseError
        A line is longer than 64 KiB.  No dump has such lines.
    """
    rest, number = b"", 1
    try:
        with open_unpacked(path) as file:
            while chunk := file.read(size):
                data = rest + chunk if number > 1 or rest else chunk.removeprefix(codecs.BOM_UTF8)
                cut = data.rfind(b"\n") + 1
                data, rest = data[:cut], data[cut:]
                if len(rest) > MAX_LINE:
                    raise ParseError("the line is too long for a dump of tables", path=path, line=number)
                if data:
                    piece = _piece(data, number)
                    number += len(piece.start)
                    yield piece
    except DAMAGED as problem:
        raise damaged(problem, path) from None
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise InputError((error.strerror or "unreadable").lower(), path=path, remedy="name a file") from None
    except OSError as error:
        raise file_problem("read", path, error) from None
    if rest:
        yield _piece(rest + b"\n", number)


def numbered_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file with their numbers, from 1 on.

    Raises
    ------
    ParseError, InputError, EnvironmentProblem
        A line is longer than 64 KiB.  The file is missing, is a folder, or cannot be read.
    """
    for piece in read_pieces(path):
        for line in range(len(piece.start)):
            yield piece.first + line, piece.text(line)


def _piece(data: bytes, first: int) -> Piece:
    padded = np.frombuffer(data + bytes(128), np.uint8)
    end = np.flatnonzero(padded[: len(data)] == ord("\n"))
    start = np.empty_like(end)
    start[0], start[1:] = 0, end[:-1] + 1
    return Piece(padded, start, end, first)
