"""Compare LFTs entry by entry, a few rows at a time.

The LFTs of a large fabric have more than 100 million entries.  A comparison of all entries at once would allocate as
many truth values, which takes several times as long as the comparison.  Rows that two
LFTs share in memory are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from routing._kernels.shared_copy import rows_that_may_differ

ROWS = 64
"""Number of LFT rows that are compared at once."""


def count_changed(new: npt.NDArray[np.uint8], old: npt.NDArray[np.uint8]) -> int:
    """Return the number of entries in which two LFTs (uint8[S, L]) differ."""
    return sum(int(np.count_nonzero(part)) for part in _differences(new, old))


def changed_lids(new: npt.NDArray[np.uint8], old: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Return bool[L], the LIDs towards which two LFTs (uint8[S, L]) differ in any entry."""
    found = np.zeros(new.shape[1], bool)
    for part in _differences(new, old):
        found |= part.any(axis=0)
    return found


def _differences(new: npt.NDArray[np.uint8], old: npt.NDArray[np.uint8]) -> Iterator[npt.NDArray[np.bool_]]:
    rows = rows_that_may_differ(new, old)
    for start in range(0, len(new) if rows is None else len(rows), ROWS):
        part = slice(start, start + ROWS) if rows is None else rows[start : start + ROWS]
        yield new[part] != old[part]
