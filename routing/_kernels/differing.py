"""Kernel wrapper: find the entries in which two LFTs differ.

The LFTs of a large fabric have more than 100 million entries.  Pages of memory that two LFTs share are not compared.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.native import ffi, lib, pointer
from routing._kernels.shared_copy import PAGE, pages_that_may_differ


def count_differing(one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8]) -> int:
    """Return the number of entries in which two LFTs of equal shape differ.  Cost: O(S L)."""
    return _differing(one, other, None)


def differing_entries(one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Return the numbers of the entries in which two LFTs of equal shape differ, int64[N], ascending.

    The entries are numbered row by row, from 0 on.
    """
    found = np.empty(_differing(one, other, None), np.int64)
    _differing(one, other, found)
    return found


def changed_lids(new: npt.NDArray[np.uint8], old: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Return bool[L], the LIDs towards which two LFTs (uint8[S, L]) differ in any entry."""
    found = np.zeros(new.shape[1], bool)
    found[differing_entries(new, old) % max(1, new.shape[1])] = True
    return found


def _differing(one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8], found: npt.NDArray[np.int64] | None) -> int:
    """Count the differing entries, and store their numbers in ``found`` (int64[N]) unless it is None."""
    pages = pages_that_may_differ(one, other)
    one, other = np.ascontiguousarray(one), np.ascontiguousarray(other)
    room, numbers = (0, ffi.NULL) if found is None else (len(found), pointer(found))
    count: int = lib.ibn_core_differing(pointer(one), pointer(other), one.size, pointer(pages), PAGE, numbers, room)
    return count
