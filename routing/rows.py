"""Remove single rows from large arrays."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Item = TypeVar("Item", bound=np.generic)

FEW = 1000
"""If more rows than this number are removed, :func:`without_rows` uses NumPy's function ``delete``."""


def without_rows(array: npt.NDArray[Item], gone: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Item]:
    """Return a copy of an array without the rows ``gone``, which are in ascending order without duplicates.

    NumPy's function ``delete`` tests each row.  If only a few rows are removed, it is much faster to copy the blocks of
    rows between the removed rows.
    """
    if len(gone) > FEW:
        return np.delete(array, gone, axis=0)
    starts, ends = [0, *(gone + 1).tolist()], [*gone.tolist(), len(array)]
    return np.concatenate([array[start:end] for start, end in zip(starts, ends, strict=True)])
