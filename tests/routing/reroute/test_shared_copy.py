"""Copies on write: the same tables as with ordinary copies, and no write reaches the original."""

import numpy as np
import pytest

from routing._kernels import shared_copy
from routing._kernels.shared_copy import Snapshot, mark_written, rows_that_may_differ, writable_copy
from routing._kernels.shared_copy import shared_copy as copy_of
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.reroute import Published, precompute, reroute
from routing.reroute.changed_entries import changed_lids, count_changed
from routing.topologies import generate

OPTIONS = EngineOptions(threads=1, effort=0.1)


@pytest.fixture
def every_size(monkeypatch):
    monkeypatch.setattr(shared_copy, "LARGE", 1)


@pytest.mark.usefixtures("every_size")
def test_copies_are_independent_and_know_their_rows():
    original = np.random.default_rng(1).integers(0, 9, (300, 40), np.uint8)
    kept, snapshot = original.copy(), Snapshot.of(original)
    assert snapshot is not None
    one = copy_of(snapshot)
    assert np.array_equal(one, original)
    one[7, 3], one[8, 3] = 100, 101
    mark_written(one, np.isin(np.arange(300), [7, 8]))
    other = writable_copy(one)
    other[9] = 102
    mark_written(other, np.isin(np.arange(300), [9]))
    for copy, rows in ((one, [7, 8]), (other, [7, 8, 9])):
        assert rows_that_may_differ(copy, original).tolist() == rows
        assert count_changed(copy, original) == int((np.asarray(copy) != kept).sum())
        assert np.array_equal(changed_lids(copy, original), (np.asarray(copy) != kept).any(axis=0))
        with pytest.raises(ValueError, match="read-only"):
            copy[0, 0] = 1
    assert np.array_equal(original, kept)
    assert np.array_equal(snapshot.copy(), kept)
    assert rows_that_may_differ(one, kept) is None
    assert rows_that_may_differ(one.copy(), original) is None


def test_small_arrays_have_no_snapshot():
    assert Snapshot.of(np.zeros((3, 3), np.uint8)) is None


@pytest.mark.usefixtures("every_size")
@pytest.mark.parametrize("engine", ["nue", "updn", "dfsssp", "minhop"])
def test_reroutes_with_snapshots_give_equal_tables(engine):
    """Two faults, one after the other, and the return of the first link."""
    fabric = generate("torus", ["4x4"], cas=2)
    routing = ENGINES[engine].route(fabric, OPTIONS)
    baseline = Published(fabric, routing, prove(fabric, routing, threads=1))
    links, before = np.unique(fabric.channels.link).tolist(), [baseline, baseline]
    for gone in (links[4:5], [links[4], links[20]], links[20:21]):
        now, found = fabric.without_links(gone), []
        for snapshots, tables in zip((False, True), before, strict=True):
            ahead = precompute(tables, baseline, threads=1, snapshots=snapshots)
            assert (ahead.lft is not None) is snapshots
            found.append(reroute(ENGINES[engine], OPTIONS, tables, now, baseline=baseline, precomputed=ahead))
        plain, shared = found
        assert np.array_equal(plain.routing.lft, shared.routing.lft)
        assert np.array_equal(plain.routing.sl, shared.routing.sl)
        assert np.array_equal(plain.proof.hops, shared.proof.hops)
        assert (plain.broken, plain.changed, plain.statistics) == (shared.broken, shared.changed, shared.statistics)
        before = [Published(now, each.routing, each.proof) for each in found]
