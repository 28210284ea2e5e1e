"""Compare LFTs entry by entry.

The LFTs of a large fabric have more than 100 million entries.  Pages of memory that two LFTs share are not compared.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.differing import count_differing, differing_entries


def count_changed(new: npt.NDArray[np.uint8], old: npt.NDArray[np.uint8]) -> int:
    """Return the number of entries in which two LFTs (uint8[S, L]) differ."""
    return count_differing(new, old)


def changed_lids(new: npt.NDArray[np.uint8], old: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Return bool[L], the LIDs towards which two LFTs (uint8[S, L]) differ in any entry."""
    found = np.zeros(new.shape[1], bool)
    found[differing_entries(new, old) % max(1, new.shape[1])] = True
    return found
