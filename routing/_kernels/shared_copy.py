"""Copies of large LFTs that share memory with the original until they are written (copy on write).

The operating system copies a page of memory when it is written, and reports which pages it has copied.

A re-route of a large fabric changes a few of more than 100 million entries.  A copy of all entries would take longer
than the search for the new entries.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

PAGE = mmap.PAGESIZE
"""Number of entries in a page of memory."""
MOST_ENTRIES = 1 << 22
"""Number of entries that are compared at once."""
LARGE = 1 << 25
"""Number of bytes from which an array is worth a snapshot.  A copy of a smaller array takes a few milliseconds."""


class Snapshot:
    """Copy of an array in a memory file.  Further copies share this memory, except for the pages to which they write.

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
        """Copy an array to a memory file.

        Return None if the array is small, or if the system has no memory files or does not report which pages of an
        array were written.
        """
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
            reports = snapshot.reports_writes()
        except (OSError, BufferError):
            return None
        return snapshot if reports else None

    def reports_writes(self) -> bool:
        """Return whether the system reports the first page of a copy as written after a write, and the second page as
        not written after a read.

        Raises
        ------
        OSError
            The system reports nothing.
        """
        memory = self.copy().reshape(-1)[: 2 * PAGE]
        memory[0] ^= 1
        _ = int(memory[-1])  # Read the second page, so that it is in memory as a page of the file.
        return bool(_written_pages(memory).tolist() == [1, 0][: -(-memory.size // PAGE)])

    def copy(self) -> npt.NDArray[np.uint8]:
        """Return a copy of the original that may be written."""
        memory = mmap.mmap(self._file, self.original.nbytes, access=mmap.ACCESS_COPY)
        return np.frombuffer(memory, np.uint8).reshape(self.original.shape)


class SharedCopy(np.ndarray[Any, np.dtype[np.uint8]]):
    """LFT that shares memory with a copy (:class:`Snapshot`) of an LFT, except for the pages that were written.

    The operating system knows these pages.  So no kernel has to record them, and a proof can rely on them.

    Attributes
    ----------
    snapshot
        The :class:`Snapshot`; None for results of NumPy operations, which are ordinary arrays.
    """

    snapshot: Snapshot | None = None
    _written: npt.NDArray[np.uint8] | None = None

    def written(self) -> npt.NDArray[np.uint8] | None:
        """Return uint8[N], whether each of the N pages of the array's memory was written; None if the system does not
        report it now, for instance because the process has too many open files.

        Cost: 30 ns for each page, once if the array is read-only.
        """
        if self._written is None or self.flags.writeable:
            try:
                self._written = _written_pages(self)
            except OSError:
                return None
        return self._written


def shared_copy(snapshot: Snapshot) -> SharedCopy:
    """Return a copy of a snapshot's original that may be written."""
    copy = snapshot.copy().view(SharedCopy)
    copy.snapshot = snapshot
    return copy


def writable_copy(lft: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return a copy of an LFT that may be written.  The copy of a :class:`SharedCopy` is a :class:`SharedCopy` too."""
    written = lft.written() if isinstance(lft, SharedCopy) and lft.snapshot is not None else None
    if written is None:
        return np.array(lft, order="C")
    assert isinstance(lft, SharedCopy) and lft.snapshot is not None
    copy = shared_copy(lft.snapshot)
    old, new = lft.reshape(-1), copy.reshape(-1)
    for run in _runs(np.flatnonzero(written)):
        new[run] = old[run]
    return copy


def forbid_writes(lft: npt.NDArray[np.uint8]) -> None:
    """Make a :class:`SharedCopy` read-only.  Nothing is done for an ordinary array."""
    if isinstance(lft, SharedCopy) and lft.snapshot is not None:
        lft.flags.writeable = False


def pages_that_may_differ(one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8] | None:
    """Return uint8[N], whether two LFTs of equal shape may differ in each page of :data:`PAGE` entries.

    The result is None if all entries have to be compared.
    """
    (original, written), (other_original, other_written) = _origin(one, other), _origin(other, one)
    if original is not other_original:
        return None
    none = np.zeros(-(-one.size // PAGE), np.uint8)
    return (none if written is None else written) | (none if other_written is None else other_written)


def runs_that_may_differ(one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8]) -> Iterator[slice]:
    """Yield the ranges of entries, numbered row by row, in which two LFTs of equal shape may differ."""
    pages = pages_that_may_differ(one, other)
    if pages is not None:
        yield from _runs(np.flatnonzero(pages))
        return
    for start in range(0, one.size, MOST_ENTRIES):
        yield slice(start, min(start + MOST_ENTRIES, one.size))


def _origin(
    lft: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8] | None]:
    """Return the array with which the LFT ``lft`` shares memory, and the pages in which ``lft`` may differ from this
    array.

    The pages are None if the array is ``lft`` itself.  The array is ``lft`` itself if the pages that were written are
    not known, or if ``lft`` is the original of the LFT ``other``.
    """
    shares = isinstance(lft, SharedCopy) and lft.snapshot is not None
    if not shares or (isinstance(other, SharedCopy) and other.snapshot is not None and other.snapshot.original is lft):
        return lft, None
    assert isinstance(lft, SharedCopy) and lft.snapshot is not None
    written = lft.written()
    return (lft, None) if written is None else (lft.snapshot.original, written)


def _runs(pages: npt.NDArray[np.intp]) -> Iterator[slice]:
    """Yield the ranges of entries of some pages, which are in ascending order.  Adjoining pages are one range."""
    ends = np.flatnonzero(np.diff(pages) > 1)
    first, last = np.append(0, ends + 1), np.append(ends, len(pages) - 1)
    for start, end in zip(pages[first].tolist(), pages[last].tolist(), strict=True) if len(pages) else ():
        yield slice(start * PAGE, (end + 1) * PAGE)


def _written_pages(array: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return uint8[N], whether each page of a private mapping of a file was written since it was mapped.

    A written page belongs to the process, and no longer to the file.

    Raises
    ------
    OSError
        The system has no /proc/self/pagemap.
    """
    first, count = array.ctypes.data // PAGE, -(-array.size // PAGE)
    file = os.open("/proc/self/pagemap", os.O_RDONLY)
    try:
        found = np.frombuffer(os.pread(file, 8 * count, 8 * first), np.uint64)
    finally:
        os.close(file)
    if len(found) != count:
        raise OSError("the states of pages are unknown")
    # Bits of a page: 63: it is in memory, 62: it was moved to swap memory, 61: it belongs to a file.
    state = found >> np.uint64(61)
    written: npt.NDArray[np.uint8] = ((state == 4) | (state & np.uint64(2) != 0)).astype(np.uint8)
    return written
