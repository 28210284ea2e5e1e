"""Check replies to the LID offset of the request, against all pairs of end ports one by one."""

from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics, random_fabric

from routing.deadlock.offset_replies import replies_follow_requests
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.tables import identity_sl2vl


def slow(fabric, routing):
    """Return whether two end ports use one SL in both directions at each LID offset that both have."""
    ports = [row for row in range(fabric.endports) if fabric.endport_switch[row] >= 0]

    def sl(a, b, offset):
        lid = int(fabric.endport_lid[b]) + offset
        return routing.sl[lid] if routing.sl.ndim == 1 else routing.sl[fabric.endport_switch[a], lid]

    return all(
        sl(a, b, offset) == sl(b, a, offset)
        for a in ports
        for b in ports
        if fabric.endport_switch[a] != fabric.endport_switch[b]
        and fabric.component[fabric.endport_switch[a]] == fabric.component[fabric.endport_switch[b]]
        for offset in range(1 << min(int(fabric.endport_lmc[a]), int(fabric.endport_lmc[b])))
    )


@examples(60)
@given(fabrics(connected=False, max_switches=8, max_cas=2, max_lmc=2), st.integers(0, 10_000), st.booleans())
def test_all_pairs_one_by_one(fabric, seed, by_lid):
    rng = np.random.default_rng(seed)
    routing = ENGINES["disjoint"].route(fabric, EngineOptions(effort=0.1, port_vls=15))
    assert replies_follow_requests(fabric, routing)
    sl = routing.sl.copy()
    for _ in range(seed % 3 if sl.size else 0):
        sl[rng.integers(sl.shape[0]), rng.integers(sl.shape[1])] ^= 1
    if by_lid:
        sl = rng.integers(1 + seed % 2, size=len(fabric.lids)).astype(np.uint8)
    changed = replace(routing, sl=sl, sl2vl=identity_sl2vl(8))
    assert replies_follow_requests(fabric, changed) == slow(fabric, changed)


@pytest.mark.parametrize("engine", ["lash", "dfsssp"])
def test_engines_with_and_without_symmetric_sls(engine):
    fabric = random_fabric(3, switches=12, degree=4, lmc=1)
    routing = ENGINES[engine].route(fabric, EngineOptions(vls=4, effort=0.1))
    assert replies_follow_requests(fabric, routing) == slow(fabric, routing) == (engine == "lash")


def test_sls_by_pair_of_lids_are_not_examined():
    fabric = random_fabric(3, switches=6, lmc=1)
    routing = ENGINES["lash"].route(fabric, EngineOptions(effort=0.1))
    by_pair = np.zeros((len(fabric.lids), len(fabric.lids)), np.uint8)
    assert not replies_follow_requests(fabric, replace(routing, sl=by_pair))
