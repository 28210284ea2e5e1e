"""Parameters of which a few are in every run, and the rest only in the campaign (``tox -e lab-campaign``)."""

import pytest


def some_of(values, kept):
    """Return all parameter values, and mark the values that are not in ``kept`` as slow.

    If a test has several parameters, each value is a tuple.
    """
    assert all(value in values for value in kept)
    return [value if value in kept else _slow(value) for value in values]


def without_slow(values, slow):
    """Return all parameter values, and mark those in ``slow``."""
    return some_of(values, [value for value in values if value not in slow])


def _slow(value):
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)
