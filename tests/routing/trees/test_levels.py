"""Compare levels and orders of trees with searches over all paths."""

import networkx as nx
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from in_one_test import cases_in_one_test
from strategies import Sketch, fabrics, pull_links, random_fabric

from routing._kernels.descent import updown_hops
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.engines.destinations import inverse_capacity
from routing.fabric import NodeKind
from routing.faults import apply_faults, parse_fault
from routing.quality import all_to_all_share, channel_loads
from routing.simulate.handmade import literal_fabric
from routing.topologies import generate
from routing.trees.closed_form import Leaves, NotATree, route_tree
from routing.trees.levels import tree_levels, tree_order

TREES = [
    ("kary-ntree", ["4", "2"], [4, 4]),
    ("kary-ntree", ["3", "3"], [9, 9, 9]),
    ("cluster", ["4x4x4", "4x2"], [15, 17, 8]),
]
OTHERS = [("torus", ["4x4"]), ("dragonfly", ["4", "2", "2"]), ("hypercube", ["4"]), ("kautz", ["3", "2"])]


def distances(fabric, position=None):
    """Return the hops between all switches.  With an order, a path may only go up and then down."""
    graph = nx.DiGraph()
    graph.add_nodes_from((switch, down) for switch in range(fabric.switches) for down in (False, True))
    for near, far in zip(fabric.channels.src.tolist(), fabric.channels.dst.tolist(), strict=True):
        down = position is not None and position[far] > position[near]
        graph.add_edge((near, False), (far, down))
        if down:
            graph.add_edge((near, True), (far, True))
    found = np.full((fabric.switches, fabric.switches), -1)
    for start in range(fabric.switches):
        for (switch, _), hops in nx.single_source_shortest_path_length(graph, (start, False)).items():
            if found[switch, start] < 0 or hops < found[switch, start]:
                found[switch, start] = hops
    return found


@pytest.mark.parametrize("aggregation", [0, 1])
@pytest.mark.parametrize(("name", "arguments", "sizes"), TREES, ids=[f"{a} {b}" for a, b, _ in TREES])
def test_levels_of_whole_trees(name, arguments, sizes, aggregation):
    fabric = generate(name, arguments, aggregation=aggregation)
    assert np.bincount(tree_levels(fabric, fabric.senders_at.astype(float))).tolist() == sizes
    order = tree_order(fabric)
    assert order.longer == 0
    every = np.arange(fabric.switches, dtype=np.int32)
    assert (updown_hops(fabric.channels, order.position, every) >= 0).all()


def test_a_management_leaf_is_below_its_top():
    fabric = generate("cluster", ["4x4x4", "4x2"])
    level = tree_levels(fabric, fabric.senders_at.astype(float))
    assert level[fabric.switch_name.index("leaf-management")] == 1
    assert level[fabric.switch_name.index("top0.0")] == 2


def test_a_top_that_has_few_links_besides_its_management_leaf_is_a_top():
    fabric = generate("cluster", ["4x4x4", "2x1"])
    top, leaf = fabric.switch_name.index("top0.0"), fabric.switch_name.index("leaf-management")
    links = {int(fabric.channels.link[c]) for c in range(*fabric.channels.first[top : top + 2])}
    own = {int(fabric.channels.link[c]) for c in range(*fabric.channels.first[leaf : leaf + 2])}
    broken = fabric.without_links(sorted(links - own)[:3])
    level = tree_levels(broken, broken.senders_at.astype(float))
    assert (level[top], level[leaf]) == (2, 1)
    assert (level[broken.channels.src] != level[broken.channels.dst]).all()


@pytest.mark.parametrize(("name", "arguments"), OTHERS, ids=[name for name, _ in OTHERS])
def test_other_fabrics_are_not_trees(name, arguments):
    assert tree_order(generate(name, arguments, cas=2)) is None


@cases_in_one_test("seed", range(12))
@cases_in_one_test(("name", "arguments"), [("kary-ntree", ["4", "3"]), ("cluster", ["4x4x4", "4x2"])], ids=str)
def test_degraded_trees_stay_trees_with_paths_of_two_more_hops_at_most(name, arguments, seed):
    fabric = pull_links(generate(name, arguments, aggregation=1), seed, 0.06)
    order = tree_order(fabric)
    assert order.longer <= 2
    ends = np.flatnonzero(fabric.senders_at)
    shortest, hops = distances(fabric), updown_hops(fabric.channels, order.position, ends.astype(np.int32))
    assert (hops >= 0).all()
    assert (hops[:, ends] - shortest[np.ix_(ends, ends)]).max() == order.longer


@examples(60)
@given(fabrics(max_switches=14, connected=False), st.randoms(use_true_random=False))
def test_one_next_hop_per_switch_loses_no_path_up_and_then_down(fabric, random):
    """With one next hop per switch, a path can be longer, but none is lost."""
    position = np.array(random.sample(range(fabric.switches), fabric.switches), np.int32)
    hops = updown_hops(fabric.channels, position, np.arange(fabric.switches, dtype=np.int32))
    best = distances(fabric, position)
    assert ((hops < 0) == (best < 0)).all()
    assert (hops >= best).all()


@examples(60)
@given(fabrics(max_switches=14, connected=False, max_cas=2))
def test_an_order_reaches_every_switch(fabric):
    order = tree_order(fabric)
    if order is None:
        return
    assert sorted(order.position.tolist()) == list(range(fabric.switches))
    hops = updown_hops(fabric.channels, order.position, np.arange(fabric.switches, dtype=np.int32))
    assert ((hops >= 0) == (fabric.component[:, None] == fabric.component)).all()


def test_ca_at_a_spine_does_not_make_the_spine_a_leaf():
    sketch = Sketch("spine")
    spines, leaves = ([sketch.add(NodeKind.SWITCH) for _ in range(count)] for count in (3, 6))
    for leaf in leaves:
        for spine in spines:
            sketch.cable(leaf, spine)
        for _ in range(3):
            sketch.cable(sketch.add(NodeKind.CA), leaf)
    sketch.cable(sketch.add(NodeKind.CA), spines[0])
    fabric = sketch.build()
    assert tree_order(fabric).level.tolist() == [1] * 3 + [0] * 6


def test_no_switches_and_no_links():
    assert tree_order(random_fabric(1, switches=0, cas=0)) is None
    assert tree_order(random_fabric(1, switches=1, cas=3)) is None


def test_a_leaf_of_two_groups_is_reached_by_both():
    # Four groups of one switch each, whose switches are linked to all tops.  The last leaf is linked to two groups.
    # The hub (a leaf that comes first in the order) must not be in one of them alone: from a top, the channel to a
    # switch above the hub leads up, and the leaf would be reached from the tops by the other group only.
    groups, tops = [f"g{n}" for n in range(4)], [f"top{n}" for n in range(2)]
    leaves = {f"leaf{n}.{k}": [f"g{n}"] * 2 for n in range(4) for k in range(2)} | {"both": ["g0", "g1"]}
    cables = [(group, top) for group in groups for top in tops]
    cables += [(leaf, group) for leaf, above in leaves.items() for group in above]
    cas = {f"{leaf}-ca{n}": leaf for leaf in leaves for n in range(2)}
    fabric = literal_fabric("torn", [*leaves, *groups, *tops], cables, cas)
    order = tree_order(fabric)
    assert order.longer == 0
    routing = ENGINES["updn"].route(fabric, EngineOptions(threads=1))
    both = fabric.switch_name.index("both")
    into = {fabric.switch_name[fabric.channels.src[c]]: c for c in np.flatnonzero(fabric.channels.dst == both)}
    load = channel_loads(fabric, routing)
    assert load[into["g0"]] == pytest.approx(load[into["g1"]], rel=0.2)


def two_level_tree(name, leaves, spines, cas):
    """Return switches, cables and CAs of a tree in which each leaf is linked to each spine."""
    low, high = [f"{name}-leaf{n}" for n in range(leaves)], [f"{name}-spine{n}" for n in range(spines)]
    cables = [(leaf, spine) for leaf in low for spine in high]
    return [*low, *high], cables, {f"{leaf}-ca{n}": leaf for leaf in low for n in range(cas)}


@pytest.mark.parametrize("trunks", [1, 2])
def test_trees_that_are_joined_by_links_between_their_tops_use_all_of_their_tops(trunks):
    islands = [two_level_tree(f"i{n}", 6, 4, 4) for n in range(3)]
    between = [(f"i{n}-spine{k}", f"i{(n + 1) % 3}-spine{k}") for n in range(3) for k in range(trunks)]
    fabric = literal_fabric(
        "islands",
        [switch for switches, _, _ in islands for switch in switches],
        [cable for _, cables, _ in islands for cable in cables] + between,
        {ca: leaf for _, _, cas in islands for ca, leaf in cas.items()},
    )
    assert tree_order(fabric).longer == 0
    load = channel_loads(fabric, ENGINES["updn"].route(fabric, EngineOptions(threads=1)))
    assert (load > 0).all()


@pytest.mark.parametrize("edge", [None, *range(4)])
def test_director_switches_without_a_link_of_a_line_card_keep_shortest_paths(edge):
    fabric = generate("director", ["3", "4", "3", "4"])
    if edge is not None:
        fabric = fabric.without_links([director_link(fabric, f"sw0.0.{edge}")])
    order = tree_order(fabric)
    assert (order.longer, order.far) == (0, 0.0)
    assert order.cost == pytest.approx(0.1)


def director_link(fabric, name):
    """Return the row of a link up from a switch of the first director switch."""
    level, row = tree_levels(fabric, fabric.senders_at.astype(float)), fabric.switch_name.index(name)
    channels = fabric.channels
    return int(channels.link[(channels.src == row) & (level[channels.dst] > level[row])][0])


@pytest.mark.parametrize("lost", range(4))
def test_director_switches_without_an_inner_switch_use_an_order_that_a_search_finds(lost):
    # Without this switch, two edge switches reach the other directors only over the edge switches beside them, and all
    # orders of a tree send their traffic over one cable.
    fabric = generate("director", ["3", "4", "3", "4"])
    fabric = apply_faults(fabric, [parse_fault(f"sw0.0.{lost}", fabric)])
    routing = ENGINES["updn"].route(fabric, EngineOptions(threads=1))
    assert all_to_all_share(fabric, channel_loads(fabric, routing)) > 0.55


def test_two_director_switches_with_storage_are_both_used():
    # Each edge switch is linked to both director switches.  From storage at one director switch to storage at the other
    # there are only paths that lead down and then up.  Such paths must not determine the order of the switches.
    switches, cables, cas = [f"edge{n}" for n in range(16)], [], {}
    for chassis in ("a", "b"):
        lines, cards = [f"{chassis}-line{n}" for n in range(8)], [f"{chassis}-fabric{n}" for n in range(3)]
        switches += [*lines, *cards]
        cables += [(line, card) for line in lines for card in cards]
        cables += [(f"edge{n}", lines[n % 8]) for n in range(16)]
        cas |= {f"{chassis}-storage{n}": lines[n] for n in (0, 2, 4)}
    cas |= {f"ca{n}-{k}": f"edge{n}" for n in range(16) for k in range(12)}
    fabric = literal_fabric("directors", switches, cables, cas)
    load = channel_loads(fabric, ENGINES["updn"].route(fabric, EngineOptions(threads=1)))
    out_of_edges = [fabric.switch_name[switch].startswith("edge") for switch in fabric.channels.src]
    # The 12 CAs of an edge switch send to 186 others, over two links.
    assert load[out_of_edges].max() < 1.2 * 12 * 186 / 2


def levels_by_name(fabric):
    level = tree_levels(fabric, fabric.senders_at.astype(float))
    return dict(zip(fabric.switch_name, level.tolist(), strict=True))


@pytest.mark.parametrize("engine", ["updn", "ftree", "nue"])
def test_a_management_switch_below_two_leaves_uses_both_of_its_cables(engine):
    switches, cables, cas = two_level_tree("t", 8, 4, 6)
    cables += [("management", "t-leaf0"), ("management", "t-leaf5")]
    cas |= {f"management-ca{n}": "management" for n in range(6)}
    fabric = literal_fabric("below", [*switches, "management"], cables, cas)
    level = levels_by_name(fabric)
    assert {level[f"t-leaf{n}"] for n in range(8)} == {1}
    assert (level["management"], level["t-spine0"]) == (0, 2)
    load = channel_loads(fabric, ENGINES[engine].route(fabric, EngineOptions(threads=1)))
    own = fabric.channels.dst == fabric.switch_name.index("management")
    # 48 CAs send to 6 management nodes over two cables.
    assert load[own].max() < 1.2 * 48 * 6 / 2


@pytest.mark.parametrize("below", [False, True])
def test_pods_of_which_only_one_reaches_the_tops_of_all_groups_have_no_closed_form(below):
    """The leaves of different groups have no switch above both, whether or not a switch is below leaves."""
    pods = [two_level_tree(f"p{n}", 4, 2, 4) for n in range(8)]
    tops = [(group, n) for group in range(4) for n in range(4)]
    switches = [switch for part, _, _ in pods for switch in part] + [f"top{group}.{n}" for group, n in tops]
    cables = [cable for _, part, _ in pods for cable in part]
    cables += [
        (f"p{pod}-spine{n % 2}", f"top{group}.{n}")
        for group, n in tops
        for pod in range(8)
        if pod // 2 == group or not pod
    ]
    cas = {ca: leaf for _, _, part in pods for ca, leaf in part.items()}
    if below:
        switches.append("management")
        cables += [("management", "p1-leaf0"), ("management", "p1-leaf1")]
        cas |= {f"management-ca{n}": "management" for n in range(2)}
    fabric = literal_fabric("groups", switches, cables, cas)
    assert levels_by_name(fabric)["p0-leaf0"] == int(below)
    with pytest.raises(NotATree, match="no switch is above both"):
        route_tree(fabric, Leaves(np.ones(fabric.endports, bool)), inverse_capacity(fabric), passes=2, threads=1)
    routing = ENGINES["ftree"].route(fabric, EngineOptions(threads=1))
    assert routing.provenance.options["descent"]
    assert prove(fabric, routing, threads=1).complete


def test_a_chain_of_switches_below_a_leaf_does_not_change_other_levels():
    switches, cables, cas = two_level_tree("t", 10, 4, 6)
    chain = [f"chain{n}" for n in range(3)]
    cables += list(zip(["t-leaf2", *chain], chain, strict=False))
    cas |= {f"{switch}-ca{n}": switch for switch in chain for n in range(3)}
    level = levels_by_name(literal_fabric("chain", [*switches, *chain], cables, cas))
    assert [level[switch] for switch in chain] == [2, 1, 0]
    assert {level[f"t-leaf{n}"] for n in range(10)} == {3}
    assert {level[f"t-spine{n}"] for n in range(4)} == {4}


@pytest.mark.parametrize("pairs", [[(3, 7)], [(0, 1), (2, 3), (4, 5), (6, 7)]])
def test_cables_between_leaves_do_not_change_the_levels(pairs):
    switches, cables, cas = two_level_tree("t", 8, 8, 6)
    cables += [(f"t-leaf{a}", f"t-leaf{b}") for a, b in pairs]
    fabric = literal_fabric("peers", switches, cables, cas)
    level = levels_by_name(fabric)
    assert {name: height for name, height in level.items() if "leaf" in name and height} == {}
    assert tree_order(fabric).longer == 0


@pytest.mark.parametrize("engine", ["updn", "ftree", "nue"])
def test_switches_with_many_cas_below_the_leaves_of_a_small_tree_use_both_cables(engine):
    """Half of all CAs are at three switches that have few links: one below another, and one at a single cable."""
    switches, cables, cas = two_level_tree("t", 4, 2, 16)
    cables = cables * 9 + [("far", "near")] * 2 + [("near", "t-leaf0"), ("near", "t-leaf1"), ("side", "t-leaf3")]
    cas |= {
        f"{switch}-ca{n}": switch for switch, count in (("far", 26), ("near", 6), ("side", 27)) for n in range(count)
    }
    fabric = literal_fabric("below", [*switches, "far", "near", "side"], cables, cas)
    level = levels_by_name(fabric)
    assert {level[f"t-leaf{n}"] for n in range(4)} == {2}
    assert (level["far"], level["near"], level["side"], level["t-spine0"]) == (0, 1, 1, 3)
    load = channel_loads(fabric, ENGINES[engine].route(fabric, EngineOptions(threads=1)))
    into = fabric.channels.dst == fabric.switch_name.index("near")
    # 91 CAs of the tree and of "side" send to 32 CAs over two cables, and "far" sends to 97 CAs over two cables.
    assert load[into].max() < 1.05 * 91 * 32 / 2


def test_a_spine_with_few_cas_and_links_to_all_leaves_is_no_switch_below_leaves():
    switches, cables, cas = two_level_tree("t", 8, 4, 6)
    cas |= {f"spine-ca{n}": "t-spine1" for n in range(2)}
    level = levels_by_name(literal_fabric("spine", switches, cables, cas))
    assert {level[f"t-spine{n}"] for n in range(4)} == {1}


@pytest.mark.parametrize("engine", ["updn", "ftree"])
def test_storage_leaves_at_all_top_switches_are_leaves(engine):
    pods = [two_level_tree(f"p{n}", 4, 2, 4) for n in range(3)]
    tops = [f"top{n}" for n in range(6)]
    switches = [switch for part, _, _ in pods for switch in part] + tops + ["storage0", "storage1"]
    cables = [cable for _, part, _ in pods for cable in part]
    cables += [(f"p{n}-spine{k}", tops[3 * k + m]) for n in range(3) for k in range(2) for m in range(3)]
    cables += [(f"storage{n}", top) for n in range(2) for top in tops]
    cas = {ca: leaf for _, _, part in pods for ca, leaf in part.items()}
    cas |= {f"storage{n}-ca{k}": f"storage{n}" for n in range(2) for k in range(4)}
    fabric = literal_fabric("storage", switches, cables, cas)
    level = levels_by_name(fabric)
    assert (level["storage0"], level["storage1"], level["top0"]) == (1, 1, 2)
    load = channel_loads(fabric, ENGINES[engine].route(fabric, EngineOptions(threads=1)))
    inside = [fabric.switch_name[switch].startswith("storage") for switch in fabric.channels.src]
    # Storage leaves carry their own traffic only: 4 CAs send to 52 others.
    assert load[inside].sum() == 2 * 4 * 52


def test_trees_that_only_links_between_leaves_join_are_not_a_tree():
    islands = [two_level_tree(name, 6, 4, 4) for name in ("a", "b")]
    fabric = literal_fabric(
        "islands",
        [switch for switches, _, _ in islands for switch in switches],
        [cable for _, cables, _ in islands for cable in cables] + [(f"a-leaf{n}", f"b-leaf{n}") for n in range(3)],
        {ca: leaf for _, _, cas in islands for ca, leaf in cas.items()},
    )
    assert tree_order(fabric) is None
    load = channel_loads(fabric, ENGINES["nue"].route(fabric, EngineOptions(threads=1)))
    assert load.max() < 1.2 * 24 * 24 / 3
