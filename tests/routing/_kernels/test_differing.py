"""Check that the kernel that compares LFTs finds the entries that NumPy finds."""

import numpy as np
import pytest

from routing._kernels import shared_copy
from routing._kernels.differing import changed_lids, count_differing, differing_entries
from routing._kernels.shared_copy import PAGE, Snapshot


@pytest.mark.parametrize("rows", [0, 1, 64, 193])
def test_all_differences_are_found(rows):
    rng = np.random.default_rng(rows)
    old = rng.integers(0, 9, (rows, 20), np.uint8)
    new = np.where(rng.random(old.shape) < 0.02, old + 1, old).astype(np.uint8)
    assert count_differing(new, old) == int((new != old).sum())
    assert np.array_equal(changed_lids(new, old), (new != old).any(axis=0))


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1023, 1025, 70_000, 3 << 16])
def test_differences_at_the_ends_of_blocks_are_found(size):
    one = np.zeros((1, size), np.uint8)
    for at in {0, 63, 64, 1023, 1024, 65_535, 65_536, size - 1} & set(range(size)):
        other = one.copy()
        other[0, at] = 1
        assert differing_entries(one, other).tolist() == [at]
    assert count_differing(one, one.copy()) == 0
    assert count_differing(one, one + 1) == size


def test_differences_in_shared_memory_are_found(monkeypatch):
    """Entries are written at the ends of pages, and in the last page, which is not full."""
    monkeypatch.setattr(shared_copy, "LARGE", 1)
    old = np.zeros((3, 10 * PAGE + 5), np.uint8)
    new = shared_copy.shared_copy(Snapshot.of(old))
    written = [0, PAGE - 1, PAGE, 7 * PAGE + 9, old.size - 1]
    new.reshape(-1)[written] = 1
    new.reshape(-1)[3 * PAGE] = 0
    assert differing_entries(new, old).tolist() == written
    assert count_differing(new, old) == len(written)
