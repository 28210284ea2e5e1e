"""Check that copies on write give the same tables as ordinary copies, and that no write reaches the original."""

from dataclasses import replace

import numpy as np
import pytest
from campaigns import some_of

from routing._kernels import shared_copy
from routing._kernels.differing import changed_lids, count_differing
from routing._kernels.shared_copy import PAGE, Snapshot, forbid_writes, pages_that_may_differ, writable_copy
from routing._kernels.shared_copy import shared_copy as copy_of
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.reroute import Published, precompute, reroute
from routing.reroute.prove_changes import prove_changes
from routing.reroute.translate import translate_tables
from routing.topologies import generate

OPTIONS = EngineOptions(threads=1, effort=0.1)


@pytest.fixture
def every_size(monkeypatch):
    monkeypatch.setattr(shared_copy, "LARGE", 1)


@pytest.mark.usefixtures("every_size")
def test_copies_are_independent_and_know_their_pages():
    original = np.random.default_rng(1).integers(0, 9, (300, 4 * PAGE // 10), np.uint8)
    kept, snapshot = original.copy(), Snapshot.of(original)
    assert snapshot is not None
    one = copy_of(snapshot)
    assert np.array_equal(one, original)
    one.reshape(-1)[[7 * PAGE + 3, 8 * PAGE]] = 100, 101
    other = writable_copy(one)
    other.reshape(-1)[-1] = 102
    forbid_writes(other)
    last = (original.size - 1) // PAGE
    for copy, pages in ((one, [7, 8]), (other, [7, 8, last])):
        assert np.flatnonzero(pages_that_may_differ(copy, original)).tolist() == pages
        assert count_differing(copy, original) == int((np.asarray(copy) != kept).sum()) == len(pages)
        assert np.array_equal(changed_lids(copy, original), (np.asarray(copy) != kept).any(axis=0))
    assert np.flatnonzero(pages_that_may_differ(one, other)).tolist() == [7, 8, last]
    one[0, 0] = 103
    assert np.flatnonzero(pages_that_may_differ(one, original)).tolist() == [0, 7, 8]
    with pytest.raises(ValueError, match="read-only"):
        other[0, 0] = 1
    assert np.array_equal(original, kept)
    assert np.array_equal(snapshot.copy(), kept)
    assert pages_that_may_differ(one, kept) is None
    assert pages_that_may_differ(one.copy(), original) is None


@pytest.mark.usefixtures("every_size")
def test_a_copy_of_a_copy_of_another_snapshot_knows_its_pages():
    first = Snapshot.of(np.zeros((5, PAGE), np.uint8))
    before = copy_of(first)
    before[1] = 1
    now = copy_of(Snapshot.of(before))
    now[3, 9] = 2
    assert np.flatnonzero(pages_that_may_differ(now, before)).tolist() == [3]
    assert count_differing(now, before) == 1


@pytest.mark.usefixtures("every_size")
def test_without_states_of_pages_there_is_no_snapshot(monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(shared_copy, "_written_pages", refuse)
    assert Snapshot.of(np.zeros((3, 3), np.uint8)) is None


def test_small_arrays_have_no_snapshot():
    assert Snapshot.of(np.zeros((3, 3), np.uint8)) is None


@pytest.mark.usefixtures("every_size")
@pytest.mark.parametrize("engine", some_of(["nue", "updn", "dfsssp", "minhop"], ["nue", "dfsssp"]))
def test_reroutes_with_snapshots_give_equal_tables(engine):
    """Two links fail one after the other, and then the first one returns."""
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


@pytest.mark.usefixtures("every_size")
def test_the_proof_of_a_change_sees_every_written_entry():
    """A removed entry is found wherever it is, also outside of the repaired pages."""
    fabric = generate("kary-ntree", ["6,3"])
    routing = ENGINES["updn"].route(fabric, OPTIONS)
    before = Published(fabric, routing, prove(fabric, routing, threads=1))
    ahead = precompute(before, before, threads=1)
    less = fabric.without_links([int(fabric.channels.link[-1])])
    found = reroute(ENGINES["updn"], OPTIONS, before, less, baseline=before, precomputed=ahead)
    translated = translate_tables(routing, fabric, less, ahead.lft)
    order = found.proof.certificate.order
    pages, rng = ahead.missing_pages, np.random.default_rng(3)
    assert not pages.any()
    assert prove_changes(less, found.routing, before, translated, order, missing_pages=pages) is not None
    for _ in range(30):
        lft = writable_copy(found.routing.lft)
        row, lid = rng.integers(len(lft)), rng.choice(less.endport_lid)
        lft[row, lid] = 255
        wrong = replace(found.routing, lft=lft)
        assert prove_changes(less, wrong, before, translated, order, missing_pages=pages) is None


@pytest.mark.usefixtures("every_size")
def test_missing_entries_of_the_tables_before_are_compared():
    fabric = generate("torus", ["4x4"], cas=2)
    routing = ENGINES["updn"].route(fabric, OPTIONS)
    lft = routing.lft.copy()
    lft[3, int(fabric.endport_lid[0])] = 255
    before = Published(fabric, replace(routing, lft=lft), prove(fabric, routing, threads=1))
    assert precompute(before, threads=1).missing_pages.any()


@pytest.mark.usefixtures("every_size")
def test_a_system_that_reports_no_write_has_no_snapshots(monkeypatch):
    original = np.arange(3 * PAGE, dtype=np.int64).astype(np.uint8)
    assert Snapshot.of(original) is not None
    monkeypatch.setattr(shared_copy.os, "pread", lambda file, size, offset: bytes(size))
    assert Snapshot.of(original) is None


@pytest.mark.usefixtures("every_size")
def test_tables_are_compared_as_a_whole_if_written_pages_become_unknown(monkeypatch):
    fabric = generate("torus", ["4x4"], cas=2)
    routing = ENGINES["dfsssp"].route(fabric, OPTIONS)
    before = Published(fabric, routing, prove(fabric, routing, threads=1))
    less = fabric.without_links([int(np.unique(fabric.channels.link)[3])])
    usual = reroute(ENGINES["dfsssp"], OPTIONS, before, less, precomputed=precompute(before))
    precomputed = precompute(before)

    def fail(array):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(shared_copy, "_written_pages", fail)
    found = reroute(ENGINES["dfsssp"], OPTIONS, before, less, precomputed=precomputed)
    assert np.array_equal(found.routing.lft, usual.routing.lft)
    assert found.changed == usual.changed > 0
    assert prove(less, found.routing, threads=1).complete


@pytest.mark.usefixtures("every_size")
@pytest.mark.parametrize("shares_memory", [True, False])
def test_entries_that_the_translation_has_dropped_are_not_proven(shares_memory):
    fabric = generate("torus", ["4x4"], cas=2)
    routing = ENGINES["dfsssp"].route(fabric, OPTIONS)
    before = Published(fabric, routing, prove(fabric, routing, threads=1))
    precomputed = precompute(before)
    link = int(np.unique(fabric.channels.link)[3])
    less = fabric.without_links([link])
    translated = translate_tables(routing, fabric, less, precomputed.lft if shares_memory else None)
    assert translated.broken
    order = np.ascontiguousarray(before.proof.certificate.order[:, fabric.channels.link != link])
    pages = precomputed.missing_pages
    assert prove_changes(less, translated.routing, before, translated, order, missing_pages=pages) is None
