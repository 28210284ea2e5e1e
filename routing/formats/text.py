"""Read text files for the readers of all formats.  A file may be compressed, its size is limited, and errors name the
file.
"""

from __future__ import annotations

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO

from routing.errors import EnvironmentProblem, ParseError, file_problem

_MAX_NUMBER = 64
_PIECE = 1 << 18

STANDARD_INPUT = "-"
"""Path that means standard input."""
DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error)
"""Errors if the gzip data of a file are damaged."""
_GZIP = b"\x1f\x8b"

MAX_BYTES = 1 << 29
"""Maximum size of a text in bytes, as a protection against decompression bombs.  The largest fabrics (48K LIDs) need
about 20 MB.
"""


def c_number(text: str) -> int | None:
    """Parse a whole number as C's ``strtoul`` with base 0 does, where a leading 0 means octal.

    The result is None if the text is not a number.
    """
    octal = len(text) > 1 and text[0] == "0" and text[1] not in "xX"
    try:
        return int(text, 8 if octal else 0) if len(text) <= _MAX_NUMBER else None
    except ValueError:
        return None


def standard_input() -> BinaryIO:
    """Return standard input as a file of bytes.

    Raises
    ------
    EnvironmentProblem
        Standard input is closed.
    """
    if sys.stdin is None:
        raise EnvironmentProblem("standard input is closed", remedy="name a file")
    return sys.stdin.buffer


def open_unpacked(path: str | Path) -> IO[bytes] | gzip.GzipFile:
    """Open a file for reading bytes.  A file that gzip has compressed is decompressed while it is read.

    If the compressed data are damaged, reading raises one of the errors in :data:`DAMAGED`.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    with Path(path).open("rb") as file:
        packed = file.read(2) == _GZIP
    return gzip.open(path) if packed else Path(path).open("rb")


def read_text(path: str | Path) -> str:
    r"""Return the text of a file, which may be compressed by gzip.

    The first bytes show whether the file is compressed.  Bytes that are not UTF-8 become ``\xNN``.  The path ``-`` is
    standard input.

    Raises
    ------
    EnvironmentProblem
        The file cannot be read.
    ParseError
        The gzip data are damaged, the text is UTF-16, or it is larger than :data:`MAX_BYTES`.
    """
    try:
        if str(path) == STANDARD_INPUT:
            return _decoded(_bounded(standard_input()), path)
        if Path(path).is_dir():
            raise EnvironmentProblem("is a folder", path=path, remedy="name a file")
        if not Path(path).exists():
            raise EnvironmentProblem("there is no such file", path=path, remedy="is the name right?")
        if not Path(path).is_file():
            raise EnvironmentProblem("is not a regular file", path=path, remedy="copy it into a regular file")
        with Path(path).open("rb") as file:
            data = _bounded(file)
    except OSError as problem:
        raise file_problem("read", path, problem) from problem
    except ValueError as problem:
        raise EnvironmentProblem(str(problem), path=path, remedy="is the name right?") from problem
    return _decoded(data, path)


def _decoded(data: bytes, path: str | Path) -> str:
    """Return the text of bytes, which may be compressed by gzip.

    Raises
    ------
    ParseError
        The gzip data are damaged, the text is UTF-16, or it is larger than :data:`MAX_BYTES`.
    """
    if data[:2] == _GZIP:
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                data = _bounded(packed)
        except DAMAGED as problem:
            raise damaged(problem, path) from problem
    if len(data) > MAX_BYTES:
        raise ParseError(f"more than {MAX_BYTES >> 20} MiB of text", path=path, remedy="no fabric is that large")
    refuse_utf_16(data, path)
    return data.decode("utf-8-sig", errors="backslashreplace").replace("\r\r\n", "\n").replace("\r\n", "\n")


def damaged(problem: Exception, path: str | Path) -> ParseError:
    """Return the error for a file that gzip cannot decompress because of ``problem``."""
    return ParseError(f"damaged gzip data: {problem}", path=path, remedy="copy the file again")


def refuse_utf_16(data: bytes, path: str | Path) -> None:
    """Raise ParseError if a file, whose content begins with ``data``, has the byte order mark of UTF-16."""
    if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        raise ParseError("is UTF-16 text", path=path, remedy="convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW")


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text from :func:`read_text` with their numbers, from 1 on.

    Only a newline ends a line.  ``str.splitlines`` would also split at other characters, which names may contain.
    """
    return enumerate(text.split("\n"), 1)


def _bounded(file: IO[bytes] | gzip.GzipFile) -> bytes:
    """Read a file, and stop soon after :data:`MAX_BYTES`.  If the file is larger, the result is longer than
    :data:`MAX_BYTES`.

    The file is read in pieces.  A single read of :data:`MAX_BYTES` would allocate so much memory even for a small file.
    """
    pieces, size = [], 0
    while size <= MAX_BYTES and (piece := file.read(_PIECE)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)
