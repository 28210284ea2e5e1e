"""Copies of large LFTs that share memory with the original until they are written (copy on write).

A re-route of a large fabric changes a few of more than 100 million entries.  A copy of all entries would take longer
than the search for the new ones.
"""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np
import numpy.typing as npt

LARGE = 1 << 25
"""Number of bytes from which an array is worth a snapshot.  A copy of a smaller array takes a few milliseconds."""


class Snapshot:
    """Copy of an array in a memory file.  Further copies share its memory, except for the pages that they write.

    Attributes
    ----------
    original
        The array that was copied.  It must not change afterwards.
    """

    def __init__(self, original: npt.NDArray[np.uint8], file: int) -> None:
        self.original = original
        self._file = file

    def __del__(self) -> None:
        os.close(self._file)

    @classmethod
    def of(cls, original: npt.NDArray[np.uint8]) -> Snapshot | None:
        """Copy an array to a memory file.  Return None if the array is small, or if the system has no memory files."""
        if original.nbytes < LARGE or not hasattr(os, "memfd_create"):
            return None
        try:
            file = os.memfd_create("ibnue")
        except OSError:
            return None
        snapshot = cls(original, file)
        try:
            os.ftruncate(file, original.nbytes)
            with mmap.mmap(file, original.nbytes) as memory:
                np.frombuffer(memory, np.uint8).reshape(original.shape)[...] = original
        except (OSError, BufferError):
            return None
        return snapshot

    def copy(self) -> npt.NDArray[np.uint8]:
        """Return a copy of the original that may be written."""
        memory = mmap.mmap(self._file, self.original.nbytes, access=mmap.ACCESS_COPY)
        return np.frombuffer(memory, np.uint8).reshape(self.original.shape)


class SharedCopy(np.ndarray[Any, np.dtype[np.uint8]]):
    """LFT that shares memory with a copy (:class:`Snapshot`) of an LFT, except for the rows that were written.

    Attributes
    ----------
    snapshot
        The :class:`Snapshot`; None for results of NumPy operations, which are ordinary arrays.
    written
        uint8[S], whether each row may differ from that copy.
    """

    snapshot: Snapshot | None = None
    written: npt.NDArray[np.uint8]


def shared_copy(snapshot: Snapshot) -> SharedCopy:
    """Return a copy of a snapshot's original.  The caller sets ``written`` for each row that it writes."""
    copy = snapshot.copy().view(SharedCopy)
    copy.snapshot, copy.written = snapshot, np.zeros(len(copy), np.uint8)
    return copy


def writable_copy(lft: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return a copy of an LFT that may be written.

    The copy of a :class:`SharedCopy` is a :class:`SharedCopy` too, with the same rows marked as written.
    """
    if not isinstance(lft, SharedCopy) or lft.snapshot is None:
        return np.array(lft, order="C")
    copy = shared_copy(lft.snapshot)
    rows = np.flatnonzero(lft.written)
    copy[rows], copy.written[rows] = lft[rows], 1
    return copy


def mark_written(lft: npt.NDArray[np.uint8], rows: npt.NDArray[np.uint8 | np.bool_]) -> None:
    """Record the rows (uint8[S], whether each row was written) in a :class:`SharedCopy`, and forbid further writes.

    Nothing is done for an ordinary array.
    """
    if isinstance(lft, SharedCopy) and lft.snapshot is not None:
        lft.written |= rows
        lft.flags.writeable = False


def rows_that_may_differ(one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8]) -> npt.NDArray[np.intp] | None:
    """Return the rows in which two LFTs of equal shape may differ; None if all rows have to be compared."""
    (original, written), (other_original, other_written) = _written(one), _written(other)
    return np.flatnonzero(written | other_written) if original is other_original else None


def _written(lft: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Return the array with which an LFT shares memory, and whether each row may differ from it."""
    if isinstance(lft, SharedCopy) and lft.snapshot is not None:
        return lft.snapshot.original, lft.written
    return lft, np.zeros(len(lft), np.uint8)
