import networkx as nx
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from slow_nue import SlowNue
from strategies import fabrics, random_fabric, ring_fabric

from routing._kernels.nue import nue_trees
from routing._kernels.order import build_order, mean_distance
from routing.engines.destinations import Destinations, inverse_capacity
from routing.engines.nue_seeds import by_order, by_region


def question(fabric, layers, kind, seed=1):
    """Return the arguments of the kernel and of its slow reference."""
    destinations = Destinations.of(fabric)
    layer = np.asarray(np.random.default_rng(seed).integers(0, layers, fabric.switches), np.int32)[destinations.root]
    if kind == "region":
        seeds = by_region(fabric, destinations, layer, layers, 2)
    else:
        keys = np.random.default_rng(seed).random((layers, fabric.switches))
        seeds = by_order(fabric, np.stack([build_order(fabric.channels, key, pull=1.0) for key in keys]))
    sources = fabric.terminals_at.astype(np.float64)
    asked = (fabric.channels, inverse_capacity(fabric), sources, destinations.targets(layer))
    return asked, {"parent": seeds.parent, "rank": seeds.rank}


def dependencies(fabric, targets, trees, layer):
    """Return a networkx graph of the dependencies that the trees of a layer use."""
    channels, graph = fabric.channels, nx.DiGraph()
    for target in np.flatnonzero(trees.layer == layer).tolist():
        hop = {
            u: int(channels.first[u]) + int(index)
            for u, index in enumerate(trees.next_channel[target].tolist())
            if index != 255
        }
        for c in hop.values():
            if int(channels.dst[c]) in hop:
                graph.add_edge(c, hop[int(channels.dst[c])])
        paths = nx.DiGraph((u, int(channels.dst[c])) for u, c in hop.items())
        assert nx.is_directed_acyclic_graph(paths)
        part = np.flatnonzero(fabric.component == fabric.component[targets.root[target]])
        assert set(hop) == set(part.tolist()) - {int(targets.root[target])}
    return graph


def all_loads(fabric, targets, trees):
    load = np.zeros(len(fabric.channels))
    for target, root in enumerate(targets.root.tolist()):
        for source in np.flatnonzero(trees.next_channel[target] != 255).tolist():
            u = source
            while u != root:
                c = int(fabric.channels.first[u]) + int(trees.next_channel[target, u])
                load[c] += fabric.terminals_at[source] * targets.share[target]
                u = int(fabric.channels.dst[c])
    return load


CASES = st.tuples(
    fabrics(max_switches=16, max_degree=5, connected=False), st.integers(1, 4), st.sampled_from(["region", "order"])
)


@examples(100)
@given(CASES, st.integers(0, 1 << 30))
def test_first_pass_is_that_of_the_twin(case, seed):
    fabric, layers, kind = case
    asked, seeds = question(fabric, layers, kind, seed % 7)
    trees = nue_trees(*asked, **seeds, passes=0, seed=seed, threads=2)
    slow = SlowNue(*asked, seeds["parent"], seed=seed)
    slow.run()
    first = fabric.channels.first
    for target, tree in slow.trees.items():
        hops = {u: int(first[u]) + int(i) for u, i in enumerate(trees.next_channel[target].tolist()) if i != 255}
        assert hops == tree
        assert trees.escaped[target] == slow.escaped[target]
    assert trees.load.tolist() == slow.load


@pytest.mark.parametrize(("number", "kind"), [(33, "order"), (27, "order"), (14, "region"), (34, "region")])
def test_the_twin_backtracks_and_escapes_alike(number, kind):
    """On these few fabrics, both programs backtrack, and some switches use the escape tree."""
    fabric = random_fabric(number, switches=20, degree=3, cas=2, parallel=2)
    asked, seeds = question(fabric, 1, kind, number)
    slow = SlowNue(*asked, seeds["parent"], seed=1)
    slow.run()
    assert 0 < sum(map(bool, slow.escaped.values())) < len(slow.escaped)
    assert sum(slow.escaped.values()) < 0.1 * len(slow.trees) * fabric.switches
    assert slow.backtracks > 0
    trees = nue_trees(*asked, **seeds, passes=0, seed=1, threads=2)
    assert {target: int(trees.escaped[target]) for target in slow.escaped} == slow.escaped
    assert trees.load.tolist() == slow.load


@examples(150)
@given(CASES, st.integers(0, 5), st.sampled_from([0.0, 0.1]))
def test_no_layer_has_a_cycle_and_loads_are_those_of_the_trees(case, passes, hop_cost):
    fabric, layers, kind = case
    asked, seeds = question(fabric, layers, kind)
    trees = nue_trees(*asked, **seeds, passes=passes, seed=1, threads=2, hop_cost=hop_cost)
    targets = asked[3]
    for layer in range(layers):
        assert nx.is_directed_acyclic_graph(dependencies(fabric, targets, trees, layer))
    load = all_loads(fabric, targets, trees)
    assert np.allclose(trees.load, load, atol=1e-6)
    done = trees.max_utilisation[trees.max_utilisation > 0.0]
    if len(done):
        assert (load * inverse_capacity(fabric)).max() == pytest.approx(done.min())


@pytest.mark.parametrize("passes", [0, 3])
def test_threads_change_nothing(passes):
    fabric = random_fabric(3, switches=40, degree=5, cas=3, lmc=1)
    asked, seeds = question(fabric, 5, "region")
    results = [nue_trees(*asked, **seeds, passes=passes, seed=4, threads=threads) for threads in (1, 2, 7)]
    assert len({result.next_channel.tobytes() + result.load.tobytes() for result in results}) == 1


def test_a_start_is_kept_unless_it_is_bettered():
    fabric = random_fabric(3, switches=40, degree=5, cas=3)
    asked, seeds = question(fabric, 2, "region")
    first = nue_trees(*asked, **seeds, passes=0, seed=4, threads=1)
    again = nue_trees(*asked, **seeds, start=first.next_channel, passes=0, seed=4, threads=1)
    assert again.load.tolist() == first.load.tolist()
    better = nue_trees(*asked, **seeds, start=first.next_channel, passes=4, seed=4, threads=1)
    assert better.max_utilisation[better.max_utilisation > 0].min() < first.max_utilisation[0]
    for layer in range(2):
        assert nx.is_directed_acyclic_graph(dependencies(fabric, asked[3], better, layer))


def test_passes_end_when_nothing_is_gained():
    fabric = ring_fabric(6)
    asked, seeds = question(fabric, 1, "region")
    assert nue_trees(*asked, **seeds, passes=50, seed=1, threads=1).max_utilisation[10:].tolist() == [0.0] * 41


@examples(100)
@given(fabrics(max_switches=20, connected=False), st.integers(1, 4), st.integers(0, 100))
def test_mean_distance(fabric, layers, seed):
    weight = np.random.default_rng(seed).integers(0, 3, (layers, fabric.switches))
    mean = mean_distance(fabric.channels, weight, threads=2)
    hops = np.asarray(fabric.graph.distances(mode="out"), float).reshape(fabric.switches, fabric.switches)
    hops[~np.isfinite(hops)] = fabric.switches
    for row in range(layers):
        total = weight[row].sum()
        expected = hops @ weight[row] / total if total else np.zeros(fabric.switches)
        assert np.allclose(mean[row], expected)
