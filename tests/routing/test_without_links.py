"""A fabric without some links equals the same fabric computed anew, although it shares data with the fabric before."""

from dataclasses import replace

import numpy as np
import pytest

from routing.fabric import OF_ENDPORTS
from routing.topologies import generate


@pytest.mark.parametrize("lids_added", [0, 5])
@pytest.mark.parametrize("ends", ["switches", "any"])
def test_shared_data_equal_computed_data(ends, lids_added):
    fabric = generate("torus", ["3x3"], cas=2)
    fabric = fabric.with_lids(len(fabric.lids) + lids_added)
    for name in ("digest", *OF_ENDPORTS):
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
            for name in ("switch", "port", "endport"):
                assert np.array_equal(getattr(plain.lids, name), getattr(shared.lids, name))
