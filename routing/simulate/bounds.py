"""Checks that numbers are within bounds in which the kernels' integer sums cannot overflow."""

from __future__ import annotations

import numpy as np

LONGEST = 1 << 58
"""Largest time in ticks: eight times it plus the present tick, which is below 2^62, still fits into an int64."""
LONGEST_MEAN = 1 << 50
"""Largest mean of a random interval in ticks; the interval itself may be about 37 times its mean."""


def is_int_in(value: object, least: int, most: float) -> bool:
    """Return whether a value is an integer within bounds; booleans and fractions are not."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return bool(least <= value <= most)


def is_float_in(value: object, least: float, most: float) -> bool:
    """Return whether a value is a number within bounds; booleans and NaN are not."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return bool(least <= value <= most)
