"""Which numbers the kernels can take: whole ones and fractions within bounds that no sum of them leaves."""

from __future__ import annotations

import numpy as np

LONGEST = 1 << 58
"""Ticks of the longest time that can be told: eight of them and the present tick, which is under 2^62, are still a
number of 64 bits."""
LONGEST_MEAN = 1 << 50
"""The same of a mean, of which an interval may be some 37 times as much."""


def whole(value: object, least: int, most: float) -> bool:
    """Whether a value is a whole number within bounds; flags and fractions are none."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return bool(least <= value <= most)


def real(value: object, least: float, most: float) -> bool:
    """Whether a value is a number within bounds; flags and NaN are none."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return bool(least <= value <= most)
