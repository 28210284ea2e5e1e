"""Text files as the readers want them: plain or gzip, any bytes, of bounded size, errors that name the file."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from routing.errors import EnvironmentProblem, ParseError

_MAX_NUMBER = 64
_PIECE = 1 << 18

MAX_BYTES = 1 << 29
"""No fabric file comes near it (48K LIDs make some 20 MB); a decompression bomb would."""


def c_number(text: str) -> int | None:
    """A whole number as C's ``strtoul`` reads it with base 0, where a leading 0 means octal; None where it is none."""
    octal = len(text) > 1 and text[0] == "0" and text[1] not in "xX"
    try:
        return int(text, 8 if octal else 0) if len(text) <= _MAX_NUMBER else None
    except ValueError:
        return None


def read_text(path: str | Path) -> str:
    r"""The text of a file; gzip is told by content, bytes that are no UTF-8 come back as ``\xNN``.

    Raises
    ------
    EnvironmentProblem
        The file cannot be read.
    ParseError
        The gzip data are damaged or the text is over :data:`MAX_BYTES`.
    """
    try:
        if Path(path).is_dir():
            raise EnvironmentProblem(f"{path}: is a folder (name a file)")
        if not Path(path).is_file():
            what = (
                "is no regular file (copy it into one)"
                if Path(path).exists()
                else "there is no such file (is the name right?)"
            )
            raise EnvironmentProblem(f"{path}: {what}")
        with Path(path).open("rb") as file:
            data = _bounded(file)
    except (OSError, ValueError) as problem:
        raise EnvironmentProblem(f"{path}: {getattr(problem, 'strerror', None) or problem}") from problem
    if data[:2] == b"\x1f\x8b":
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                data = _bounded(packed)
        except (OSError, EOFError, zlib.error) as problem:
            raise ParseError(f"damaged gzip data: {problem}", path=path, remedy="copy the file again") from problem
    if len(data) > MAX_BYTES:
        raise ParseError(f"more than {MAX_BYTES >> 20} MiB of text", path=path, remedy="no fabric is that large")
    return data.decode("utf-8-sig", errors="backslashreplace").replace("\r\n", "\n")


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text that :func:`read_text` gave, with their numbers.

    They end with newlines and nothing else: whatever else ends lines for ``str.splitlines`` may stand in a name.
    """
    return enumerate(text.split("\n"), 1)


def _bounded(file: IO[bytes] | gzip.GzipFile) -> bytes:
    """All of a file, or a little more than :data:`MAX_BYTES`.

    Not in one read of so many bytes, for which as much memory is set aside however small the file is.
    """
    pieces, size = [], 0
    while size <= MAX_BYTES and (piece := file.read(_PIECE)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)
