"""Comparison of LFTs by a few entries at a time finds what a comparison of all entries at once finds."""

import numpy as np
import pytest

from routing._kernels import shared_copy
from routing.reroute.changed_entries import changed_lids, count_changed


@pytest.mark.parametrize("rows", [0, 1, 64, 193])
def test_all_differences_are_found(rows, monkeypatch):
    monkeypatch.setattr(shared_copy, "MOST_ENTRIES", 64)
    rng = np.random.default_rng(rows)
    old = rng.integers(0, 9, (rows, 20), np.uint8)
    new = np.where(rng.random(old.shape) < 0.02, old + 1, old).astype(np.uint8)
    assert count_changed(new, old) == int((new != old).sum())
    assert np.array_equal(changed_lids(new, old), (new != old).any(axis=0))
