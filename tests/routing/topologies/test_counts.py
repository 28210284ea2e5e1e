"""Check every generator against the formulas of its topology: switches, CAs, links, degrees, diameter."""

import itertools
import math
from collections import Counter

import igraph
import networkx
import numpy as np
import pytest

from routing.topologies import (
    TopologyOptions,
    cascade,
    director,
    dragonfly,
    full_mesh,
    hypercube,
    hyperx,
    kary_ntree,
    kautz,
    mesh,
    rails,
    random_regular,
    ring,
    slimfly,
    torus,
    xgft,
)


def simple(fabric):
    """Return the switches as an undirected graph without parallel links."""
    return fabric.graph.as_undirected(mode="collapse")


def between_switches(fabric):
    return len(fabric.channels) // 2


def counts(fabric):
    return fabric.switches, fabric.terminals, between_switches(fabric), simple(fabric).diameter()


@pytest.mark.parametrize("switches", [3, 4, 7, 12])
def test_ring(switches):
    assert counts(ring(switches)) == (switches, switches, switches, switches // 2)


@pytest.mark.parametrize("dims", [(1,), (5,), (2, 2), (4, 3), (3, 1, 4), (2, 3, 4, 2)])
def test_mesh(dims):
    fabric = mesh(dims, TopologyOptions(cas=2))
    every = math.prod(dims)
    links = sum(every // size * (size - 1) for size in dims)
    assert counts(fabric) == (every, 2 * every, links, sum(size - 1 for size in dims))
    assert simple(fabric).isomorphic(_undirected(networkx.grid_graph(dims)))


@pytest.mark.parametrize("dims", [(3,), (4, 4), (5, 3), (2, 4), (4, 4, 4), (3, 1, 5), (2, 2, 2)])
def test_torus(dims):
    fabric = torus(dims)
    every = math.prod(dims)
    links = sum(every if size > 2 else every // 2 if size == 2 else 0 for size in dims)
    assert counts(fabric) == (every, every, links, sum(size // 2 for size in dims))


def test_port_numbers_tell_the_direction_in_a_torus():
    fabric = torus((4, 5, 3), TopologyOptions(cas=2))
    position = np.array(list(np.ndindex(4, 5, 3)))
    for src, dst, port in zip(fabric.channels.src, fabric.channels.dst, fabric.channels.port, strict=True):
        axis, up = divmod(int(port) - 3, 2)
        step = np.zeros(3, int)
        step[axis] = 1 if up else -1
        assert ((position[src] + step) % (4, 5, 3) == position[dst]).all()


def test_hypercube_of_no_dimension_is_one_switch():
    assert counts(hypercube(0)) == (1, 1, 0, 0)


@pytest.mark.parametrize("dimension", range(1, 7))
def test_hypercube(dimension):
    fabric = hypercube(dimension)
    assert counts(fabric) == (2**dimension, 2**dimension, dimension * 2**dimension // 2, dimension)
    assert simple(fabric).isomorphic(_undirected(networkx.hypercube_graph(dimension)))


@pytest.mark.parametrize(
    ("dims", "links"), [((4,), None), ((4, 4), None), ((3, 2, 4), None), ((4, 3), (1, 2)), ((1, 5), None)]
)
def test_hyperx(dims, links):
    fabric = hyperx(dims, links)
    every = math.prod(dims)
    cables = sum(every * (size - 1) // 2 * number for size, number in zip(dims, links or (1,) * len(dims), strict=True))
    assert counts(fabric) == (every, every, cables, sum(size > 1 for size in dims))
    assert simple(fabric).ecount() == sum(every * (size - 1) // 2 for size in dims)


@pytest.mark.parametrize("switches", [1, 2, 3, 8])
def test_full_mesh(switches):
    diameter = min(switches - 1, 1)
    assert counts(full_mesh(switches)) == (switches, switches, switches * (switches - 1) // 2, diameter)


@pytest.mark.parametrize(("k", "n"), [(1, 1), (4, 1), (2, 2), (2, 4), (3, 3), (4, 3)])
def test_kary_ntree(k, n):
    fabric = kary_ntree(k, n)
    leaves = k ** (n - 1)
    assert counts(fabric) == (n * leaves, k**n, (n - 1) * k**n, 0 if k == 1 and n == 1 else _tree_diameter(k, n))
    assert np.count_nonzero(fabric.terminals_at) == leaves


def _tree_diameter(k, n):
    """Return the diameter of a k-ary n-tree: the distance of two top switches or of two leaves.  For k = 1 it is a
    chain.
    """
    return n - 1 if k == 1 else 2 * (n - 1)


@pytest.mark.parametrize(
    ("children", "parents"),
    [((3,), (1,)), ((2, 2, 2), (1, 2, 2)), ((4, 3, 5), (1, 2, 3)), ((2, 4), (2, 3)), ((3, 3, 2), (2, 1, 2))],
)
def test_xgft(children, parents):
    fabric = xgft(children, parents)
    height = len(children)
    at_level = [math.prod(parents[:i]) * math.prod(children[i:]) for i in range(height + 1)]
    assert fabric.terminals == at_level[0]
    assert fabric.switches == sum(at_level[1:])
    assert between_switches(fabric) == sum(at_level[i] * parents[i] for i in range(1, height))
    assert fabric.endports == at_level[0] * parents[0]
    assert len(np.unique(np.stack([fabric.endport_terminal, fabric.endport_switch]), axis=1).T) == fabric.endports
    level = np.array([int(name[2:].split(".")[0]) for name in fabric.switch_name])
    assert (np.abs(level[fabric.channels.src] - level[fabric.channels.dst]) == 1).all()
    for row in range(fabric.switches):
        away = fabric.channels.dst[fabric.channels.first[row] : fabric.channels.first[row + 1]]
        assert np.count_nonzero(level[away] > level[row]) == (parents[level[row]] if level[row] < height else 0)
        below = np.count_nonzero(level[away] < level[row]) + fabric.terminals_at[row]
        assert below == children[level[row] - 1]


def test_xgft_leaves_of_one_subtree_share_all_ancestors():
    fabric = xgft((1, 2, 3), (1, 2, 2))
    graph = simple(fabric)
    distance = np.array(graph.distances(range(6), range(6)))
    same = np.arange(6)[:, None] // 2 == np.arange(6) // 2
    assert (distance == np.where(np.eye(6, dtype=bool), 0, np.where(same, 2, 4))).all()


@pytest.mark.parametrize(("a", "p", "h", "g"), [(4, 2, 2, 9), (4, 2, 2, 5), (3, 1, 1, 4), (2, 1, 1, 2), (6, 0, 3, 1)])
def test_dragonfly(a, p, h, g):
    fabric = dragonfly(a, p, h, g)
    assert (fabric.switches, fabric.terminals) == (a * g, a * p * g)
    group = np.arange(fabric.switches) // a
    across = group[fabric.channels.src] != group[fabric.channels.dst]
    assert np.count_nonzero(~across) == g * a * (a - 1)
    assert np.count_nonzero(across) == (g * a * h if g > 1 else 0)
    between = np.zeros((g, g), int)
    np.add.at(between, (group[fabric.channels.src], group[fabric.channels.dst]), 1)
    apart = between[~np.eye(g, dtype=bool)]
    assert g == 1 or (apart.min() >= a * h // (g - 1) and apart.max() <= a * h // (g - 1) + 1)
    assert simple(fabric).diameter() <= 3
    globals_of = np.bincount(fabric.channels.src[across], minlength=fabric.switches)
    assert g == 1 or (globals_of == h).all()


def test_dragonfly_has_every_pair_of_groups_once_by_default():
    fabric = dragonfly(4, 2, 2)
    assert (fabric.switches, between_switches(fabric)) == (36, 9 * 6 + 9 * 8 // 2)


def test_dragonfly_with_an_odd_number_of_global_ports_leaves_one_empty():
    fabric = dragonfly(3, 1, 1, 3)
    assert between_switches(fabric) == 3 * 3 + 9 // 2
    assert simple(fabric).is_connected()


@pytest.mark.parametrize("q", [3, 4, 5, 7, 8, 9, 11])
def test_slimfly(q):
    fabric = slimfly(q)
    delta = {0: 0, 1: 1, 3: -1}[q % 4]
    degree = (3 * q - delta) // 2
    assert set(fabric.graph.degree(mode="out")) == {degree}
    assert counts(fabric) == (2 * q * q, 2 * q * q * math.ceil(degree / 2), q * q * degree, 2)
    assert simple(fabric).ecount() == q * q * degree


def test_slimfly_of_five_is_the_hoffman_singleton_graph():
    assert simple(slimfly(5)).isomorphic(_undirected(networkx.hoffman_singleton_graph()))


@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 1), (1, 3), (2, 3), (3, 2), (4, 3)])
def test_kautz(d, k):
    fabric = kautz(d, k)
    every = (d + 1) * d ** (k - 1)
    assert (fabric.switches, between_switches(fabric)) == (every, every * d)
    assert set(fabric.graph.degree(mode="out")) == {2 * d}
    assert simple(fabric).diameter() <= k
    assert simple(fabric).isomorphic(igraph.Graph.Kautz(d, k - 1).as_undirected(mode="collapse"))


@pytest.mark.parametrize(("switches", "degree"), [(2, 1), (7, 2), (8, 3), (20, 4), (30, 7), (6, 5), (1, 0)])
def test_random_regular(switches, degree):
    for seed in range(3):
        fabric = random_regular(switches, degree, TopologyOptions(seed=seed))
        assert set(fabric.graph.degree(mode="out")) == {degree}
        assert simple(fabric).ecount() == switches * degree // 2
        assert simple(fabric).is_connected()


def test_random_regular_follows_its_seed():
    digests = [random_regular(20, 4, TopologyOptions(seed=seed)).digest for seed in (1, 2, 1)]
    assert digests[0] == digests[2] != digests[1]


def test_random_regular_is_mixed():
    """In the circulant at the start, all neighbours have numbers that differ by at most 2, as 4 of 99 possible ones
    do.
    """
    fabrics = [random_regular(100, 4, TopologyOptions(seed=seed)) for seed in range(5)]
    near = [np.abs(f.channels.src - f.channels.dst) <= 2 for f in fabrics]
    assert np.mean(near) < 0.1


def _undirected(graph):
    numbered = networkx.convert_node_labels_to_integers(graph)
    return igraph.Graph(n=numbered.number_of_nodes(), edges=list(numbered.edges()))


@pytest.mark.parametrize(("groups", "h", "across"), [(1, 0, 0), (2, 2, 192), (3, 1, 144), (5, 2, 480)])
def test_cascade(groups, h, across):
    fabric = cascade(groups, h, options=TopologyOptions(cas=1))
    inside = 6 * math.comb(16, 2) + 16 * math.comb(6, 2) * 3
    assert counts(fabric)[:3] == (96 * groups, 96 * groups, groups * inside + across)
    assert simple(fabric).is_connected()
    group = np.repeat(np.arange(groups), 96)
    channels = fabric.channels
    assert np.count_nonzero(group[channels.src] != group[channels.dst]) == 2 * across


def test_cascade_of_two_groups_is_that_of_the_nue_experiments():
    fabric = cascade(2)
    assert (fabric.switches, fabric.terminals, between_switches(fabric)) == (192, 1536, 3072)


@pytest.mark.parametrize(("groups", "h", "chassis", "blades"), [(3, 1, 2, 4), (2, 2, 3, 3)])
def test_a_small_cascade(groups, h, chassis, blades):
    fabric = cascade(groups, h, chassis, blades, TopologyOptions(cas=1))
    switches = chassis * blades
    inside = chassis * math.comb(blades, 2) + blades * math.comb(chassis, 2) * 3
    assert counts(fabric)[:3] == (switches * groups, switches * groups, groups * inside + switches * groups * h // 2)


@pytest.mark.parametrize(("groups", "rail", "nodes", "spines"), [(2, 4, 3, 4), (3, 2, 7, 2), (1, 3, 2, 1)])
def test_rails(groups, rail, nodes, spines):
    fabric = rails((groups, rail, nodes), (spines,), TopologyOptions(speed="NDR", aggregation=1))
    leaves, channels = groups * rail, fabric.channels
    missing = leaves // 2 if spines > 1 else 0
    assert fabric.switches == leaves + 2 + spines == np.count_nonzero(fabric.aggregation)
    assert fabric.endports - fabric.switches == (leaves + 1) * nodes + min(nodes, 5)
    assert between_switches(fabric) == (leaves + 1) * spines - missing + 2
    ends = np.flatnonzero(fabric.senders_at).tolist()
    assert np.max(fabric.graph.distances(ends, ends)) == 2
    down = [np.diff(channels.first)[fabric.switch_name.index(f"spine{number}")] for number in range(spines)]
    assert down == [leaves + 1 + (2 if s == 0 else 0) - (missing if s == spines - 1 else 0) for s in range(spines)]
    slow = fabric.link_speed < fabric.link_speed.max()
    assert np.count_nonzero(slow) == nodes + spines
    # The port of a node on rail r of its group is at leaf r.
    for row, name in enumerate(fabric.endport_name):
        if name.startswith("node"):
            group, number = name[4:].split(".")[0], name.rsplit("rail", 1)[1]
            assert fabric.switch_name[fabric.endport_switch[row]] == f"leaf{group}.{number}"


@pytest.mark.parametrize(
    ("chassis", "leaves", "spines", "cables", "arity"),
    [(1, 3, 2, 1, None), (2, 4, 3, 7, None), (4, 3, 4, 2, None), (7, 6, 4, 5, 2), (5, 4, 3, 3, 1)],
)
def test_director(chassis, leaves, spines, cables, arity):
    fabric = director(chassis, leaves, spines, cables, arity)
    channels, size = fabric.channels, leaves + spines
    assert fabric.switches == chassis * size
    home, crossbar = np.divmod(np.arange(fabric.switches), size)
    inside = home[channels.src] == home[channels.dst]
    linked = Counter(zip(crossbar[channels.src[inside]].tolist(), crossbar[channels.dst[inside]].tolist(), strict=True))
    leaf_spine = itertools.product(range(leaves), range(leaves, size))
    assert linked == Counter({pair: chassis for a, b in leaf_spine for pair in ((a, b), (b, a))})
    across = Counter(zip(home[channels.src[~inside]].tolist(), home[channels.dst[~inside]].tolist(), strict=True))
    parents = [(child, (child - 1) // (arity or chassis)) for child in range(1, chassis)]
    assert across == Counter({pair: cables for a, b in parents for pair in ((a, b), (b, a))})
    outer = np.bincount(channels.src[~inside], minlength=fabric.switches)
    is_leaf = crossbar < leaves
    assert (outer[~is_leaf] == 0).all()
    for one in range(chassis):
        assert np.ptp(outer[is_leaf & (home == one)]) <= 1
    # All front ports are in use.  A leaf has as many of them as inner links.
    assert (fabric.terminals_at[is_leaf] + outer[is_leaf] == spines).all()
    assert (fabric.terminals_at[~is_leaf] == 0).all()


def test_directors_of_288_ports():
    fabric = director(6, 24, 12, 24, options=TopologyOptions(cas=4))
    assert (fabric.switches, fabric.terminals, between_switches(fabric)) == (216, 576, 6 * 288 + 5 * 24)
    assert fabric.switch_ports.max() == 24
