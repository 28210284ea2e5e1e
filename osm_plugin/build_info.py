"""Read from a plugin library, without loading it, from which sources and headers it was built.  Also define the
protocol of this package.

This module imports only the standard library, because it also runs inside OpenSM.
"""

from __future__ import annotations

import functools
import hashlib
import re
import struct
from dataclasses import dataclass
from pathlib import Path

from routing.errors import EnvironmentProblem, file_problem

_MAGIC = b"IBNUE-BUILD-1\n\n\0"
_HEAD = struct.Struct("<16s32s32s32s512sI")
_ROW = struct.Struct("<56sII")
_MOST_ROWS = 1000
_PROTOCOL_FILES = ("host.h", "layout.h")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


@functools.cache
def protocol() -> str:
    """Return a hash of the interface between the library in C, the host inside OpenSM, and the worker process.

    The hash covers the structs in shared memory, and the functions that the library and the host call.  The result is
    cached: if the package is replaced while OpenSM runs, the host keeps the hash of its own version.
    """
    digest = hashlib.sha256()
    for name in _PROTOCOL_FILES:
        text = _COMMENT.sub("", Path(__file__).with_name(name).read_text(encoding="utf-8"))
        digest.update(" ".join(text.split()).encode())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class BuildInfo:
    """Sources and headers from which a plugin library was built.

    Attributes
    ----------
    opensm
        Version of OpenSM's headers, such as "OpenSM 3.3.23".
    package
        Version of ibnue.
    protocol
        Result of :func:`protocol` in the package that built the library.
    python
        Path of the Python interpreter that runs the worker.
    layout
        Hash of ``members``.  The plugin prints this hash into OpenSM's log.
    members
        Offset and size in bytes of each struct and struct member of OpenSM that the plugin uses, by name.
    """

    opensm: str
    package: str
    protocol: str
    python: str
    layout: str
    members: dict[str, tuple[int, int]]


def read_build_info(library: Path) -> BuildInfo:
    """Read the build information in a plugin library: the sources and headers from which the library was built.

    Raises
    ------
    EnvironmentProblem
        The file cannot be read, or was not built by ``ibnue plugin install`` of this or a later version.
    """
    try:
        data = library.read_bytes()
    except OSError as problem:
        raise file_problem("read", library, problem) from None
    at = data.find(_MAGIC)
    if at < 0 or at + _HEAD.size > len(data):
        raise EnvironmentProblem(
            "has no record of what it was built from", path=library, remedy="run 'ibnue plugin install' again"
        )
    _, opensm, package, spoken, python, rows = _HEAD.unpack_from(data, at)
    begin, end = at + _HEAD.size, at + _HEAD.size + rows * _ROW.size
    if rows > _MOST_ROWS or end > len(data):
        raise EnvironmentProblem("is damaged", path=library, remedy="run 'ibnue plugin install' again")
    members = {_text(name): (offset, size) for name, offset, size in _ROW.iter_unpack(data[begin:end])}
    layout = f"{_fnv1a(data[begin:end]):016x}"
    return BuildInfo(_text(opensm), _text(package), _text(spoken), _text(python), layout, members)


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode(errors="replace")


def _fnv1a(data: bytes) -> int:
    """Return the 64-bit FNV-1a hash of some bytes, as ``ibnue_abi_hash`` in build.c computes it."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value
