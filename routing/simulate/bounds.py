"""Check that numbers are within bounds.  Within these bounds the integer sums of the C kernels cannot overflow."""

from __future__ import annotations

import numpy as np

LONGEST = 1 << 58
"""Largest duration in ticks.

The present tick is below 2^62, so its sum with eight such durations still fits an int64.
"""
LONGEST_MEAN = 1 << 50
"""Largest mean of a random interval, in ticks.  A single interval can be about 37 times as long."""


def is_int_in(value: object, least: int, most: float) -> bool:
    """Return whether a value is an integer from ``least`` to ``most``; False for booleans and fractions."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return bool(least <= value <= most)


def is_float_in(value: object, least: float, most: float) -> bool:
    """Return whether a value is a number from ``least`` to ``most``; False for booleans and NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return bool(least <= value <= most)
