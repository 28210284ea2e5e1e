"""Check the figures of a fabric: no tables exceed the bound, and each figure equals its definition."""

import networkx as nx
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from strategies import fabrics

from ibsim_fixtures.catalogue import FIXTURES
from routing.advise import describe_kind
from routing.endports import attached
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.fabric import NodeKind
from routing.fabric_figures import fabric_figures
from routing.formats.fabric_files import read_fabric
from routing.quality import measure
from routing.simulate.handmade import literal_fabric
from routing.topologies import generate


def slow_diameter(fabric):
    graph = nx.Graph(zip(fabric.channels.src.tolist(), fabric.channels.dst.tolist(), strict=True))
    return max((nx.diameter(graph.subgraph(part)) for part in nx.connected_components(graph)), default=0)


@examples(100)
@given(fabrics())
def test_no_tables_exceed_the_bound(fabric):
    figures = fabric_figures(fabric)
    assert figures.diameter == slow_diameter(fabric)
    assert sum(number for _, number in figures.cables) == fabric.links
    assert 0 <= figures.ports_used <= figures.ports
    if figures.bound is None:
        assert len(attached(fabric)) < 2 or fabric.component.max() > 0 or len(fabric.channels) == 0 or (
            len(np.unique(fabric.endport_switch[attached(fabric)])) == 1
        )  # fmt: skip
        return
    quality = measure(fabric, ENGINES["minhop"].route(fabric, EngineOptions()), bisections=0, shifts=0, permutations=0)
    assert quality.all_to_all <= figures.bound.all_to_all * (1 + 1e-9)


@pytest.mark.parametrize("engine", ["updn", "nue", "sssp"])
@pytest.mark.parametrize("words", [("torus", "4x3"), ("kary-ntree", "2", "3"), ("dragonfly", "4", "2", "2")])
def test_engines_stay_below_the_bound(words, engine):
    fabric = generate(words[0], words[1:], cas=2)
    tables = ENGINES[engine].route(fabric, EngineOptions())
    share = measure(fabric, tables, bisections=0, shifts=0, permutations=0).all_to_all
    assert share <= fabric_figures(fabric).bound.all_to_all * (1 + 1e-9)


def test_a_whole_tree_is_not_oversubscribed():
    figures = fabric_figures(generate("kary-ntree", ["3", "3"]))
    assert figures.levels == (9, 9, 9)
    assert figures.oversubscription == (1.0, 1.0)
    assert figures.bound.all_to_all == pytest.approx(3 * 26 / (3 * 24))


def test_a_tree_of_half_the_links_up():
    figures = fabric_figures(generate("xgft", ["4x4x4", "1x2x2"]))
    assert figures.oversubscription == (2.0, 2.0)
    assert figures.levels == (16, 8, 4)
    assert "a pod with 16 of 64 end ports" in figures.bound.reason


def test_aggregation_nodes_do_not_oversubscribe_a_leaf():
    plain, sharp = (fabric_figures(generate("xgft", ["4x4", "1x2"], aggregation=count)) for count in (0, 1))
    assert plain.oversubscription == sharp.oversubscription == (2.0,)


def test_a_storage_leaf_at_the_top_of_small_pods_does_not_hide_the_leaves():
    cables, cas = [("storage", f"core{n}") for n in range(4)], {f"storage-ca{n}": "storage" for n in range(3)}
    for pod in range(3):
        cables += [(f"agg{pod}-{k}", f"core{n}") for k in range(2) for n in range(4)]
        cables += [(f"leaf{pod}-{n}", f"agg{pod}-{k}") for n in range(3) for k in range(2)]
        cas |= {f"ca{pod}-{n}-{k}": f"leaf{pod}-{n}" for n in range(3) for k in range(3)}
    fabric = literal_fabric("storage", [*{end: None for cable in cables for end in cable}], cables, cas)
    assert fabric_figures(fabric).levels == (9, 7, 4)
    assert describe_kind(fabric).startswith("a tree: 4 top switches, 10 switches with end ports")


def test_cables_of_routers_are_not_those_of_cas():
    fabric = read_fabric(FIXTURES["routers"].path)
    routers = [row for row, kind in enumerate(fabric.terminal_kind) if kind == NodeKind.ROUTER]
    ends = np.isin(fabric.endport_terminal, routers) & (fabric.endport_switch >= 0)
    counted = [count for kind, count in fabric_figures(fabric).cables if kind.startswith("switch to router ")]
    assert counted == [np.count_nonzero(ends)] != [0]


def test_the_halves_of_a_ring():
    figures = fabric_figures(generate("ring", ["6"], cas=2))
    assert figures.levels == ()
    assert figures.bound.reason == "2 cables out of a half of the fabric with 6 of 12 end ports"
    assert figures.bound.all_to_all == pytest.approx(2 * 11 / 36)
    assert dict(figures.cables) == {"switch to CA 4xSDR": 12, "switch to switch 4xSDR": 6}


def test_the_bound_of_trees_that_are_joined_is_that_of_the_links_between_them():
    cables, cas = [], {}
    for name in ("a", "b", "c"):
        cables += [(f"{name}-leaf{n}", f"{name}-spine{k}") for n in range(6) for k in range(4)]
        cas |= {f"{name}-ca{n}-{k}": f"{name}-leaf{n}" for n in range(6) for k in range(4)}
    cables += [("a-spine0", "b-spine0"), ("a-spine1", "b-spine1"), ("b-spine2", "c-spine2")]
    figures = fabric_figures(literal_fabric("joined", [*{end: None for cable in cables for end in cable}], cables, cas))
    # One cable carries the traffic between 24 CAs and 48 others.
    assert figures.bound.all_to_all == pytest.approx(71 / (24 * 48))
    assert figures.bound.reason == "1 cable out of a tree that is joined to others with 24 of 72 end ports"


def test_the_bound_of_a_chain_of_switches_below_a_leaf():
    cables = [(f"leaf{n}", f"spine{k}") for n in range(8) for k in range(4)]
    cables += [("leaf2", "chain0"), ("chain0", "chain1")]
    cas = {f"ca{n}-{k}": f"leaf{n}" for n in range(8) for k in range(4)}
    cas |= {f"chain{n}-ca{k}": f"chain{n}" for n in range(2) for k in range(4)}
    figures = fabric_figures(literal_fabric("chain", [*{end: None for cable in cables for end in cable}], cables, cas))
    assert figures.levels == (1, 1, 8, 4)
    assert figures.bound.all_to_all == pytest.approx(39 / (8 * 32))


@pytest.mark.parametrize("words", [("director", "3", "6", "4", "6"), ("director", "4", "6", "4", "3", "1")])
def test_the_bound_of_director_switches_is_at_most_that_of_the_cables_of_one_chassis(words):
    fabric = generate(*words[:1], words[1:])
    chassis = np.array([int(name.removeprefix("sw").split(".")[0]) for name in fabric.switch_name])
    counts = np.bincount(chassis[fabric.endport_switch])
    near, far = chassis[fabric.channels.src], chassis[fabric.channels.dst]
    least = min(
        np.count_nonzero((near == one) & (far != one)) * (counts.sum() - 1) / (count * (counts.sum() - count))
        for one, count in enumerate(counts)
    )
    bound = fabric_figures(fabric).bound
    assert bound is not None and bound.all_to_all <= least + 1e-9
    tables = ENGINES["updn"].route(fabric, EngineOptions(passes=0, effort=0.0))
    assert measure(fabric, tables).all_to_all <= bound.all_to_all + 1e-9
