"""Compare LFTs entry by entry, a few entries at a time.

The LFTs of a large fabric have more than 100 million entries.  A comparison of all entries at once would allocate as
many truth values, which takes several times as long as the comparison.  Pages of memory that two LFTs share are not
compared.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.shared_copy import runs_that_may_differ


def count_changed(new: npt.NDArray[np.uint8], old: npt.NDArray[np.uint8]) -> int:
    """Return the number of entries in which two LFTs (uint8[S, L]) differ."""
    flat, old_flat = np.asarray(new).reshape(-1), np.asarray(old).reshape(-1)
    return sum(int(np.count_nonzero(flat[run] != old_flat[run])) for run in runs_that_may_differ(new, old))


def changed_lids(new: npt.NDArray[np.uint8], old: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Return bool[L], the LIDs towards which two LFTs (uint8[S, L]) differ in any entry."""
    found = np.zeros(new.shape[1], bool)
    flat, old_flat = np.asarray(new).reshape(-1), np.asarray(old).reshape(-1)
    for run in runs_that_may_differ(new, old):
        found[(run.start + np.flatnonzero(flat[run] != old_flat[run])) % new.shape[1]] = True
    return found
