"""Copies of large arrays that share memory with the original until a copy is written (copy on write).

The operating system copies a page of memory at the first write to the page, and reports which pages were copied.

A re-route of a large fabric changes a few of more than 100 million LFT entries.  A copy of all entries would take
longer than the search for the new entries.
"""

from __future__ import annotations

import mmap
import os
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", bound=np.unsignedinteger)

PAGE = mmap.PAGESIZE
"""Number of bytes in a page of memory.  A page has as many LFT entries, because each entry is one byte."""
MOST_ENTRIES = 1 << 22
"""Number of entries that are compared at once."""
LARGE = 1 << 24
"""Smallest size, in bytes, of an array for which a :class:`Snapshot` is made.  A smaller array is copied as a whole,
which takes less time than the first access to each page of a snapshot.
"""


class Snapshot:
    """Copy of an array in a memory file (not the snapshot of a fabric).  Further copies of the array share the memory
    of this file, except for the pages to which they write.

    Attributes
    ----------
    original
        The array that was copied.  The original must not change afterwards.
    """

    def __init__(self, original: npt.NDArray[np.unsignedinteger], file: int) -> None:
        self.original = original
        self._file = file

    def __del__(self) -> None:
        os.close(self._file)

    @classmethod
    def of(cls, original: npt.NDArray[np.unsignedinteger]) -> Snapshot | None:
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
                np.frombuffer(memory, original.dtype).reshape(original.shape)[...] = original
            reports = snapshot.reports_writes()
        except (OSError, BufferError):
            return None
        return snapshot if reports else None

    def reports_writes(self) -> bool:
        """Test whether the system reports correctly which pages of a copy were written.

        The test writes to the first page of a copy, and reads from the second page.  Return whether the system then
        reports only the first page as written.

        Raises
        ------
        OSError
            The system reports nothing.
        """
        memory = self.copy().reshape(-1).view(np.uint8)[: 2 * PAGE]
        memory[0] ^= 1
        _ = int(memory[-1])  # Read the second page, so that it is in memory as a page of the file.
        return bool(_written_pages(memory).tolist() == [1, 0][: -(-memory.size // PAGE)])

    def copy(self) -> npt.NDArray[Any]:
        """Return a copy of the original that may be written."""
        memory = mmap.mmap(self._file, self.original.nbytes, access=mmap.ACCESS_COPY)
        return np.frombuffer(memory, self.original.dtype).reshape(self.original.shape)


class SharedCopy(np.ndarray[Any, np.dtype[Any]]):
    """Array that shares memory with a :class:`Snapshot`, except for the pages that were written.

    The operating system records which pages were written.  So no kernel has to record the pages, and a proof can rely
    on this record.

    Attributes
    ----------
    snapshot
        The :class:`Snapshot`; None for results of NumPy operations on such an array: these results are ordinary arrays.
    """

    snapshot: Snapshot | None = None
    _written: npt.NDArray[np.uint8] | None = None

    def written(self) -> npt.NDArray[np.uint8] | None:
        """Return uint8[N], whether each of the N pages of the array's memory was written; None if the system does not
        report it now, for instance because the process has too many open files.

        Cost: 30 ns for each page.  If the array is read-only, the result is kept for later calls.
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


def writable_copy(array: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return a writable copy of an array.  The copy is a :class:`SharedCopy` if ``array`` is a :class:`SharedCopy`."""
    written = array.written() if isinstance(array, SharedCopy) and array.snapshot is not None else None
    if written is None:
        return np.array(array, order="C")
    assert isinstance(array, SharedCopy) and array.snapshot is not None
    copy = shared_copy(array.snapshot)
    pages = np.flatnonzero(written)
    (old, old_rest), (new, new_rest) = _pages_of(array), _pages_of(copy)
    new[pages[pages < len(new)]] = old[pages[pages < len(new)]]
    if len(pages) and pages[-1] == len(new):
        new_rest[:] = old_rest
    return copy


def forbid_writes(array: npt.NDArray[np.unsignedinteger]) -> None:
    """Make a :class:`SharedCopy` read-only.  Nothing is done for an ordinary array."""
    if isinstance(array, SharedCopy) and array.snapshot is not None:
        array.flags.writeable = False


def pages_that_may_differ(one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8] | None:
    """Return uint8[N], whether two LFTs of equal shape may differ in each page of :data:`PAGE` entries.

    The result is None if all entries have to be compared.
    """
    (original, written), (other_original, other_written) = _origin(one, other), _origin(other, one)
    if original is not other_original:
        return None
    none = np.zeros(-(-one.size // PAGE), np.uint8)
    return (none if written is None else written) | (none if other_written is None else other_written)


def _origin(
    lft: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8] | None]:
    """Find the original array from which the LFT ``lft`` was copied, if both still share unchanged pages of memory.

    Return the original, and uint8[N]: whether each of the N pages of ``lft`` was written since it was copied.  Return
    ``lft`` itself and None in three cases: ``lft`` is not a copy that shares memory; the system does not report which
    pages were written; or the LFT ``other`` is a copy of ``lft``.  In the last case, ``lft`` itself is the common
    original of both LFTs, even if ``lft`` is a copy of another array.
    """
    shares = isinstance(lft, SharedCopy) and lft.snapshot is not None
    if not shares or (isinstance(other, SharedCopy) and other.snapshot is not None and other.snapshot.original is lft):
        return lft, None
    assert isinstance(lft, SharedCopy) and lft.snapshot is not None
    written = lft.written()
    return (lft, None) if written is None else (lft.snapshot.original, written)


def _pages_of(array: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Return the bytes of the N whole pages of an array's memory, uint8[N, PAGE], and the bytes after these pages."""
    data = np.asarray(array).reshape(-1).view(np.uint8)
    whole = len(data) // PAGE
    return data[: whole * PAGE].reshape(whole, PAGE), data[whole * PAGE :]


def _written_pages(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return uint8[N], whether each page of a private mapping of a file was written since it was mapped.

    A written page belongs to the process, and no longer to the file.

    Raises
    ------
    OSError
        The system has no /proc/self/pagemap.
    """
    first, count = array.ctypes.data // PAGE, -(-array.nbytes // PAGE)
    file = os.open("/proc/self/pagemap", os.O_RDONLY)
    try:
        found = np.frombuffer(os.pread(file, 8 * count, 8 * first), np.uint64)
    finally:
        os.close(file)
    if len(found) != count:
        raise OSError("the states of pages are unknown")
    # For each page, pagemap has a number.  Bit 63 is set if the page is in memory, bit 62 if the page was moved to swap
    # memory, and bit 61 if the page belongs to a file.  A page was written in two cases: of these three bits, only bit
    # 63 is set; or bit 62 is set.
    state = found >> np.uint64(61)
    written: npt.NDArray[np.uint8] = ((state == 4) | (state & np.uint64(2) != 0)).astype(np.uint8)
    return written
