"""Work limits hold on fabrics with long paths, and no work is done where all paths are unique."""

import numpy as np
import pytest

from routing.engines import ENGINES, auto, destinations, order_balance, orders
from routing.engines.base import EngineOptions
from routing.engines.effort import has_unique_paths, visits_per_tree
from routing.topologies import TopologyOptions, full_mesh, kary_ntree, mesh, ring, torus

LIMIT = 2_000_000


@pytest.fixture
def hops_added(monkeypatch):
    """Return a list to which every computation of balanced trees adds its number of hops.

    Every switch has one end port here, so each unit of load is the flow of one switch over one hop.
    """
    added = []

    def counted(*args, **keywords):
        trees = real(*args, **keywords)
        added.append(float(trees.load.sum()) * (keywords["passes"] + 1))
        return trees

    real = orders.balance
    monkeypatch.setattr(orders, "balance", counted)
    monkeypatch.setattr(destinations, "balance", counted)
    return added


@pytest.mark.parametrize("switches", [60, 120])
def test_the_search_for_an_order_counts_the_hops_of_long_paths(switches, hops_added, monkeypatch):
    monkeypatch.setattr(order_balance, "VISITS_PER_SECOND", LIMIT)
    ENGINES["updn"].route(ring(switches), EngineOptions(passes=0))
    # Paths up and then down on a ring have a third more hops than shortest paths, and the last call routes all LIDs.
    assert 0 < sum(hops_added[:-1]) <= 1.5 * LIMIT


@pytest.mark.parametrize("fabric", [mesh((40,)), kary_ntree(1, 4), ring(3, TopologyOptions(cas=2))])
def test_unique_paths_are_computed_once(fabric, hops_added):
    forest = fabric.name != "ring-3"
    assert has_unique_paths(fabric) is forest
    ENGINES["updn"].route(fabric, EngineOptions())
    assert (len(hops_added) <= 1) is forest


def test_passes_on_unique_paths_change_no_entry():
    fabric = mesh((12,), TopologyOptions(lmc=1))
    once, often = (ENGINES["updn"].route(fabric, EngineOptions(passes=passes)) for passes in (None, 5))
    np.testing.assert_array_equal(once.lft, often.lft)


def test_auto_ends_with_the_first_tables_where_all_paths_are_unique(monkeypatch):
    measured, fabric = [], mesh((20,))

    def recorded(engine, *args):
        measured.append(real(engine, *args))
        return measured[-1]

    real = auto._measured
    monkeypatch.setattr(auto, "_measured", recorded)
    chosen = ENGINES["auto"].route(fabric, EngineOptions())
    assert len(measured) == 1
    for name in ("updn", "dfsssp", "nue"):
        np.testing.assert_array_equal(chosen.lft, ENGINES[name].route(fabric, EngineOptions()).lft)


@pytest.mark.parametrize("fabric", [torus((4, 4, 4)), full_mesh(9), kary_ntree(4, 3)])
def test_short_paths_count_by_channels(fabric):
    assert visits_per_tree(fabric) == 3 * len(fabric.channels)


def test_long_paths_count_by_hops():
    fabric = mesh((200,))
    hops = np.asarray(fabric.graph.distances(), float)
    assert visits_per_tree(fabric) == pytest.approx(200 * hops.mean(), rel=0.15)
