"""Check that a fabric without some links, which shares data with the whole fabric, equals one built separately."""

from dataclasses import fields, replace

import numpy as np
import pytest

from routing import rows
from routing.fabric import OF_ENDPORTS
from routing.topologies import generate


@pytest.mark.parametrize("lids_added", [0, 5])
@pytest.mark.parametrize("ends", ["switches", "any"])
def test_shared_data_equal_computed_data(ends, lids_added):
    fabric = generate("torus", ["3x3"], cas=2)
    fabric = fabric.with_lids(len(fabric.lids) + lids_added)
    for name in ("digest", "channels", *OF_ENDPORTS):
        getattr(fabric, name)
    rng = np.random.default_rng(7)
    for _ in range(20):
        pool = np.unique(fabric.channels.link) if ends == "switches" else np.arange(fabric.links)
        less = fabric.without_links(rng.choice(pool, 3, replace=False).tolist())
        fewer = less.without_links([int(rng.integers(less.links))])
        for shared in (less, fewer):
            plain = replace(shared)
            assert plain.digest == shared.digest
            for name in (*OF_ENDPORTS, "endport_link", "endport_switch", "endport_switch_port"):
                expected, found = getattr(plain, name), getattr(shared, name)
                assert np.array_equal(expected, found), name
            for field in fields(plain.channels):
                expected, found = getattr(plain.channels, field.name), getattr(shared.channels, field.name)
                assert expected.dtype == found.dtype, field.name
                assert np.array_equal(expected, found), field.name
            for name in ("switch", "port", "endport"):
                assert np.array_equal(getattr(plain.lids, name), getattr(shared.lids, name))


@pytest.mark.parametrize("few", [0, 3, 1000])
def test_rows_are_removed_as_numpy_removes_them(few, monkeypatch):
    monkeypatch.setattr(rows, "FEW", few)
    rng = np.random.default_rng(few)
    for shape in ((0,), (1,), (40,), (40, 2, 2)):
        array = rng.integers(0, 99, shape)
        for count in (0, 1, 3, 4, 40):
            gone = np.sort(rng.permutation(len(array))[:count])
            assert np.array_equal(rows.without_rows(array, gone), np.delete(array, gone, axis=0))
