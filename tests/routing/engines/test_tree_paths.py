"""Check large trees with tables in closed form instead of descent, against breadth-first distances and the proof."""

import numpy as np
import pytest
from strategies import Sketch, pull_links

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.engines.destinations import Destinations, inverse_capacity
from routing.engines.tree_paths import (
    CLOSED_FORM_PASSES,
    ENOUGH_SWEEPS,
    _flows,
    _sweeps,
    may_descend,
)
from routing.engines.tree_quality import _least_load, all_shortest
from routing.fabric import NodeKind
from routing.formats.guid_files import apply_port_classes
from routing.port_classes import port_classes_of
from routing.quality import all_to_all_share, bisection_share, channel_loads, measure
from routing.quality.flows import Flows
from routing.quality.parts import stretch
from routing.reroute import Published, Stability, reroute
from routing.simulate.handmade import literal_fabric
from routing.topologies import generate
from routing.trees.closed_form import Leaves, route_tree
from routing.trees.levels import tree_order

SMALL_EFFORT = EngineOptions(effort=1e-6)
"""Effort with which the descent exceeds its limit even on a small tree."""


@pytest.fixture(scope="module")
def broken():
    return pull_links(generate("kary-ntree", ["4", "3"]), 4, 0.03)


def without_links(arguments, missing, seed, kind="kary-ntree"):
    """Return a tree without a share of its links between switches."""
    fabric = generate(kind, arguments.split(",", 1) if kind == "xgft" else [arguments])
    links = np.unique(fabric.channels.link)
    return fabric.without_links(
        np.random.default_rng(seed).choice(links, round(missing * len(links)), replace=False).tolist()
    )


@pytest.mark.parametrize("engine", ["updn", "nue", "dfsssp", "lash"])
def test_tables_are_those_of_ftree_where_the_effort_forbids_a_descent(broken, engine):
    assert not may_descend(broken, Destinations.of(broken), SMALL_EFFORT)
    assert may_descend(broken, Destinations.of(broken), EngineOptions())
    routing = ENGINES[engine].route(broken, SMALL_EFFORT)
    closed = ENGINES["ftree"].route(broken, EngineOptions(effort=1e-6, passes=CLOSED_FORM_PASSES)).lft
    assert np.array_equal(routing.lft, closed)
    assert routing.vls_needed == 1
    assert prove(broken, routing).strength == "reversible"
    leaves = broken.endport_switch
    distance = np.array(broken.graph.distances())[np.ix_(leaves, leaves)]
    mean = distance.sum() / (len(leaves) * (len(leaves) - 1))
    assert measure(broken, routing, bisections=0, shifts=0, permutations=0).hops_mean == pytest.approx(mean)


def test_a_longer_path_is_noticed(broken):
    destinations = Destinations.of(broken)
    load = channel_loads(broken, ENGINES["ftree"].route(broken, EngineOptions()).lft, threads=1)
    assert all_shortest(broken, destinations, load)
    load[0] += 1.0
    assert not all_shortest(broken, destinations, load)


@pytest.mark.parametrize(
    ("arguments", "missing", "seed", "has_all"),
    [
        ("4,3", 0.0, 1, True),
        ("4,3", 0.1, 1, True),
        ("8,3", 0.05, 2, True),
        ("3,4", 0.1, 2, True),
        ("4,3", 0.3, 1, False),  # 88 entries between leaves have longer paths
    ],
)
def test_flows_of_the_closed_form_are_the_loads_of_its_tables(arguments, missing, seed, has_all):
    fabric = without_links(arguments, missing, seed)
    leaves = Leaves(np.ones(fabric.endports, bool))
    tables, level = route_tree(fabric, leaves, inverse_capacity(fabric), passes=2, threads=2, loads=True)
    found = _flows(fabric, Destinations.of(fabric), tables, level)
    assert (found is not None) == has_all
    if found is not None:
        assert found == pytest.approx(channel_loads(fabric, tables.lft), abs=1e-9)
    without = route_tree(fabric, leaves, inverse_capacity(fabric), passes=2, threads=2)[0]
    assert without.load is None
    assert np.array_equal(without.lft, tables.lft)


@pytest.mark.parametrize(("arguments", "missing"), [("4,3", 0.0), ("4,3", 0.2), ("4,2", 0.7)])
def test_least_load_is_the_sum_of_flows_times_distances(arguments, missing):
    fabric = without_links(arguments, missing, 3)
    assert (missing > 0.5) == bool(fabric.component.any())  # The last fabric is split.
    draw = np.random.default_rng(4)
    sources, mass = (draw.integers(0, 3, fabric.switches).astype(float) for _ in range(2))
    distance = np.array(fabric.graph.distances(), float)
    distance[~np.isfinite(distance)] = 0.0
    assert _least_load(fabric, sources, mass) == pytest.approx(sources @ distance @ mass)
    assert _least_load(fabric, np.zeros(fabric.switches), mass) == 0.0
    assert _least_load(fabric, sources, np.zeros(fabric.switches)) == 0.0


@pytest.mark.parametrize(
    ("kind", "arguments", "cas", "effort", "is_enough"),
    [
        ("kary-ntree", ["9", "3"], 10, 1.0, True),
        ("kary-ntree", ["9", "3"], 10, 1.5, False),  # this case requires more effort
        ("kary-ntree", ["9", "3"], 12, 1.0, False),  # this tree has too few links for its end ports
        ("xgft", ["12x12x6", "1x6x6"], None, 1.0, False),  # one level of this tree has few links
        ("kary-ntree", ["4", "3"], 5, 1.0, False),  # this tree is so small that all passes take little time
    ],
)
def test_few_passes_are_made_on_large_regular_trees_with_nearly_full_bandwidth(kind, arguments, cas, effort, is_enough):
    fabric = generate(kind, arguments, **({} if cas is None else {"cas": cas}))
    order = tree_order(fabric)
    assert order is not None
    sweeps = _sweeps(fabric, Destinations.of(fabric), order.level, EngineOptions(effort=effort))
    assert (sweeps == ENOUGH_SWEEPS) == is_enough
    assert sweeps >= ENOUGH_SWEEPS
    assert _sweeps(fabric, Destinations.of(fabric), order.level, EngineOptions(passes=6)) == 7


def test_end_ports_with_weights_get_all_passes():
    fabric = generate("kary-ntree", ["10", "3"], cas=11)
    settings = (("names", "storage", fabric.terminal_name[0]), ("weight", "storage", "20:20"))
    weighted = apply_port_classes(fabric, port_classes_of(settings, lambda _: ()))
    level = tree_order(fabric).level
    plain, others = (
        _sweeps(each, Destinations.of(each), level, EngineOptions(threads=1)) for each in (fabric, weighted)
    )
    assert plain == ENOUGH_SWEEPS < others


def test_switches_without_cas_are_routed():
    sketch = Sketch()
    sketch.cable(sketch.add(NodeKind.SWITCH), sketch.add(NodeKind.SWITCH))
    fabric = sketch.build()
    assert prove(fabric, ENGINES["updn"].route(fabric, EngineOptions(effort=1e-9))).certified


@pytest.mark.parametrize("engine", ["updn", "nue", "dfsssp", "lash"])
@pytest.mark.parametrize(
    ("kind", "arguments", "cas", "is_same"),
    [
        ("kary-ntree", ["4", "3"], None, True),
        ("xgft", ["6x8", "1x6"], None, True),
        ("kary-ntree", ["4", "3"], 5, False),  # there are more CAs than uplinks, so the loads of a leaf's links differ
        ("xgft", ["8x8x4", "1x4x4"], None, False),  # the loads are equal, but the uplinks limit the rate
    ],
)
def test_whole_trees_whose_links_limit_no_rate_take_the_closed_form(engine, kind, arguments, cas, is_same):
    fabric = generate(kind, arguments, **({} if cas is None else {"cas": cas}))
    routing = ENGINES[engine].route(fabric, EngineOptions())
    assert prove(fabric, routing).strength == "reversible"
    assert np.array_equal(routing.lft, ENGINES["ftree"].route(fabric, EngineOptions()).lft) == is_same


def leaf_limit(fabric):
    """Return the all-to-all share that the links of the leaf with the fewest links allow; all links have one speed."""
    at, links = fabric.terminals_at, np.diff(fabric.channels.first)
    flow = at * (at.sum() - at)
    return (links[at > 0] / flow[at > 0]).min() * (at.sum() - 1)


def test_the_closed_form_replaces_a_descent_with_a_higher_peak():
    fabric = without_links("8,3", 0.05, seed=4)
    routing = ENGINES["updn"].route(fabric, EngineOptions())
    assert prove(fabric, routing).certified
    share = all_to_all_share(fabric, channel_loads(fabric, routing))
    assert share > 0.97 * leaf_limit(fabric)  # descent alone reaches .9545


def test_layered_engines_take_longer_paths_of_a_tree_if_shortest_paths_do_not_fit():
    fabric = without_links("3,3", 0.25, seed=1)
    order = tree_order(fabric)
    assert order is not None
    assert order.longer == 2
    routing = ENGINES["dfsssp"].route(fabric, EngineOptions(vls=1))
    assert prove(fabric, routing).strength == "reversible"
    assert "longer" in routing.provenance.options["fallback"]
    assert stretch(Flows.of(fabric, routing, 1)).more_most == 2
    assert "fallback" not in ENGINES["dfsssp"].route(fabric, EngineOptions()).provenance.options


@pytest.mark.parametrize("engine", ["updn", "nue"])
@pytest.mark.parametrize(
    ("kind", "arguments", "missing", "seed"),
    [
        ("xgft", "4x4x4,1x2x2", 0.2, 1),
        ("xgft", "4x4x4,1x2x2", 0.2, 4),
        ("xgft", "3x4x5,1x3x4", 0.2, 2),
        ("kary-ntree", "2,4", 0.1, 5),
        ("kary-ntree", "2,4", 0.2, 1),
    ],
)
def test_paths_are_at_most_two_hops_longer_than_the_shortest(engine, kind, arguments, missing, seed):
    """On these trees, switch orders of the levels with a leaf in front have longer paths."""
    fabric = without_links(arguments, missing, seed, kind)
    routing = ENGINES[engine].route(fabric, EngineOptions(effort=0.1))
    assert prove(fabric, routing).certified
    assert stretch(Flows.of(fabric, routing, 1)).more_most <= 2


@pytest.mark.parametrize("engine", ["ftree", "updn", "nue", "dfsssp", "lash"])
def test_a_lost_link_is_repaired_in_the_order_of_the_tree(engine):
    """A repair may use all paths up and then down if the provenance names the first switches of an order."""
    fabric = generate("xgft", ["4x4x6", "1x4x4"])
    routing = ENGINES[engine].route(fabric, EngineOptions())
    assert len(routing.provenance.options["first_switches"]) == 1
    before = Published(fabric, routing, prove(fabric, routing))
    less = fabric.without_links([int(fabric.channels.link[0])])
    found = reroute(ENGINES[engine], EngineOptions(), before, less, stability=Stability.BALANCED)
    assert found.how == "repaired"
    assert found.statistics.proven_by_changes
    assert found.proof.certified


@pytest.mark.parametrize("engine", ["ftree", "updn"])
def test_a_leaf_without_its_cable_uses_the_cables_of_other_leaves(engine):
    """Each of four director switches with 12 CAs has six cables to a fifth director switch; one cable is missing."""
    fabric = generate("director", ["5", "6", "4", "6"], cas=2)
    name = [label.split(".")[0] for label in fabric.labels[: fabric.switches]]
    channels = fabric.channels
    cables = [int(c) for c in range(len(channels)) if name[channels.src[c]] == "sw0" and name[channels.dst[c]] == "sw4"]
    assert len(cables) == 6
    fabric = fabric.without_links([int(channels.link[cables[0]])])
    routing = ENGINES[engine].route(fabric, EngineOptions(threads=1))
    assert prove(fabric, routing, threads=1).certified
    bound = 59 / (12 * 48 / 5)  # Five cables carry the flows from 12 CAs to 48 other CAs.
    assert all_to_all_share(fabric, channel_loads(fabric, routing)) > 0.9 * bound


@pytest.mark.parametrize("engine", ["dfsssp", "lash"])
def test_engines_of_shortest_paths_take_no_longer_paths_of_a_tree(engine):
    """Tables of updn in another order than the order of the levels have longer paths on this fabric."""
    fabric = generate("director", ["6", "12", "8", "12"], cas=4)
    routing = ENGINES[engine].route(fabric, EngineOptions(threads=1))
    assert stretch(Flows.of(fabric, routing, 1)).more_most == 0


@pytest.mark.parametrize("side", [4, 6])
def test_updn_balances_a_torus_with_the_levels_of_a_tree_no_worse_than_in_one_searched_order(side):
    fabric = checkerboard(side)
    routing = ENGINES["updn"].route(fabric, EngineOptions(threads=1))
    assert all_to_all_share(fabric, channel_loads(fabric, routing)) > {4: 1.2, 6: 0.8}[side]


def checkerboard(side):
    """Return a torus with CAs at every second switch: each cable joins a switch with CAs and a switch without CAs."""
    every = [(x, y) for x in range(side) for y in range(side)]
    cables = [(f"{x}.{y}", f"{(x + dx) % side}.{(y + dy) % side}") for x, y in every for dx, dy in ((1, 0), (0, 1))]
    cas = {f"ca{x}.{y}.{n}": f"{x}.{y}" for x, y in every if (x + y) % 2 == 0 for n in range(2)}
    return literal_fabric("checkerboard", [f"{x}.{y}" for x, y in every], cables, cas)


@pytest.mark.parametrize("side", [4, 6])
def test_nue_balances_a_torus_with_the_levels_of_a_tree_as_a_torus(side):
    fabric = checkerboard(side)
    options = EngineOptions(threads=1)
    nue, minhop = (ENGINES[name].route(fabric, options) for name in ("nue", "minhop"))
    shares = [all_to_all_share(fabric, channel_loads(fabric, each)) for each in (nue, minhop)]
    assert shares[0] > 0.9 * shares[1]
    assert prove(fabric, nue, threads=1).certified


@pytest.mark.parametrize("side", [4, 6])
def test_auto_counts_rates_above_the_rate_of_cas_on_a_torus_with_the_levels_of_a_tree(side):
    fabric = checkerboard(side)
    routings = [ENGINES[name].route(fabric, EngineOptions(threads=1)) for name in ("auto", "nue")]
    product = [
        all_to_all_share(fabric, channel_loads(fabric, each)) * bisection_share(fabric, each) for each in routings
    ]
    assert product[0] > 0.99 * product[1]
