"""Read NumPy's ``.npz`` archives strictly, and write them reproducibly.

NumPy's own writer stores the current time in the archive.  This writer gives equal bytes for equal arrays.  NumPy's own
reader trusts the sizes in the archive.  This reader compares all sizes with the expected sizes before it reads data.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from routing.deferred_signals import DeferredSignals
from routing.errors import DamagedBundle, InputError, file_problem

_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(rb"\{'descr': '([<|][a-zA-Z][0-9]+)', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \} *\n")
_LONGEST_HEADER = 1024
_CHUNK = 1 << 20
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, struct.error)

Expected = Callable[[np.dtype[Any], tuple[int, ...]], str | None]
"""Function of a dtype and a shape that returns a description of the first error, or None if there is no error.

The function is called before an array is read, so that an array of wrong size takes no memory.
"""


def write_npz(file: BinaryIO, arrays: Mapping[str, npt.NDArray[Any]], level: int = 1) -> None:
    """Write arrays as an ``.npz`` archive, so that equal arrays give equal bytes.

    ``level`` is the deflate level; 0 stores the arrays uncompressed.  Signals are deferred until an array is complete,
    because zipfile cannot close an archive if an interrupt leaves an array open for writing.
    """
    with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            method = zipfile.ZIP_DEFLATED if level else zipfile.ZIP_STORED
            with DeferredSignals():
                archive.writestr(entry, _npy(array), compress_type=method, compresslevel=level or None)


def _npy(array: npt.NDArray[Any]) -> bytes | memoryview:
    array = np.asarray(array, array.dtype.newbyteorder("<"), order="C")
    shape = "".join(f"{n}, " for n in array.shape).strip()
    shape = shape if array.ndim == 1 else shape.rstrip(",")
    header = f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': ({shape}), }}".encode()
    header += b" " * (-(len(_MAGIC) + 2 + len(header) + 1) % 64) + b"\n"
    head = _MAGIC + struct.pack("<H", len(header)) + header
    whole = np.empty(len(head) + array.nbytes, np.uint8)
    whole[: len(head)] = np.frombuffer(head, np.uint8)
    whole[len(head) :] = np.frombuffer(array.tobytes(), np.uint8) if array.ndim == 0 else array.view(np.uint8).ravel()
    return whole.data


class NpzReader:
    """An ``.npz`` archive that is open for reading, as a context manager.

    Parameters
    ----------
    path
        Path of the file, also for error messages.
    file
        The open file, or None to open ``path``.

    Raises
    ------
    DamagedBundle
        The file is not an ``.npz`` archive, or is damaged.
    InputError, EnvironmentProblem
        The file is missing or cannot be read.
    """

    def __init__(self, path: str | Path, file: BinaryIO | None = None) -> None:
        self.path = path
        try:
            self._file: BinaryIO = Path(path).open("rb") if file is None else file  # noqa: SIM115 - closed by __exit__
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise InputError((error.strerror or "unreadable").lower(), path=path, remedy="name a file") from None
        except OSError as error:
            raise file_problem("read", path, error) from None
        try:
            self._archive = zipfile.ZipFile(self._file)
        except (*_BROKEN, OSError) as error:
            self._file.close()
            raise self._broken(str(error)) from None
        self._entries = {entry.filename: entry for entry in self._archive.infolist()}

    def __enter__(self) -> NpzReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()
        self._file.close()

    def names(self) -> list[str]:
        """Return the names of the arrays in the archive.  A name that occurs twice is returned twice."""
        return [entry.filename.removesuffix(".npy") for entry in self._archive.infolist()]

    def read(self, name: str, expected: Expected) -> npt.NDArray[Any]:
        """Read one array, after ``expected`` has accepted its dtype and shape.

        Raises
        ------
        DamagedBundle
            The array is missing or damaged, or ``expected`` rejects it.
        """
        entry = self._entries.get(f"{name}.npy")
        if entry is None:
            raise DamagedBundle(f"array {name!r} is missing", path=self.path, remedy="make the bundle again")
        try:
            with self._archive.open(entry) as stream:
                dtype, shape, used = self._header(stream.read, name)
                if complaint := expected(dtype, shape):
                    raise DamagedBundle(f"array {name!r} {complaint}", path=self.path)
                size = int(np.prod(shape, dtype=object)) * dtype.itemsize
                if entry.file_size != used + size:
                    raise self._broken(
                        f"array {name!r} is {size} bytes long, but the archive has {entry.file_size - used}"
                    )
                array = self._fill(stream.read, dtype, shape, size)
            if dtype.kind == "U" and (array.reshape(-1).view(np.uint32) >= 0x110000).any():
                raise self._broken(f"array {name!r} has an invalid character")
            return array
        except DamagedBundle:
            raise
        except MemoryError:
            raise DamagedBundle(f"array {name!r} does not fit into memory", path=self.path) from None
        except (*_BROKEN, OSError) as error:
            raise self._broken(f"array {name!r}: {error}") from None

    def _header(self, read: Callable[[int], bytes], name: str) -> tuple[np.dtype[Any], tuple[int, ...], int]:
        start = read(len(_MAGIC) + 2)
        if len(start) < len(_MAGIC) + 2 or not start.startswith(_MAGIC):
            raise self._broken(f"array {name!r} is not in numpy's format 1.0")
        (length,) = struct.unpack("<H", start[-2:])
        match = _HEADER.fullmatch(read(length)) if length <= _LONGEST_HEADER else None
        if match is None:
            raise self._broken(f"array {name!r} has a header that was not written by this program")
        try:
            dtype = np.dtype(match[1].decode())
        except TypeError:
            raise self._broken(f"array {name!r} has the unknown dtype {match[1].decode()!r}") from None
        shape = tuple(int(n) for n in match[2].decode().replace(",", " ").split())
        return dtype, shape, len(start) + length

    @staticmethod
    def _fill(
        read: Callable[[int], bytes], dtype: np.dtype[Any], shape: tuple[int, ...], size: int
    ) -> npt.NDArray[Any]:
        whole = np.empty(size, np.uint8)
        done = 0
        while done < size:
            chunk = read(min(_CHUNK, size - done))
            if not chunk:
                raise EOFError("it ends too early")
            whole[done : done + len(chunk)] = np.frombuffer(chunk, np.uint8)
            done += len(chunk)
        if read(1):  # This read reaches the end of the data, so that zipfile verifies the checksum.
            raise ValueError("it is longer than stated")
        return whole.view(dtype).reshape(shape)

    def _broken(self, why: str) -> DamagedBundle:
        return DamagedBundle(
            f"this is not a whole bundle: {why}",
            path=self.path,
            remedy="the file was cut short or damaged; make it again",
        )
