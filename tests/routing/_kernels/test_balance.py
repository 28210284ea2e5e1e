from collections import Counter
from itertools import pairwise, product

import networkx as nx
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from slow_balance import NO_CHANNEL, SlowBalance
from strategies import fabrics, pair_of_switches, random_fabric, ring_fabric

from routing._kernels.balance import balance
from routing._kernels.order import build_order
from routing.engines.destinations import Destinations, inverse_capacity
from routing.topologies import generate


def case(fabric, **options):
    """Return the kernel's arguments for all destinations of a fabric."""
    options = {"passes": 2, "seed": 1, "layer": None, **options}
    targets = Destinations.of(fabric).targets(options.pop("layer"))
    return (fabric.channels, inverse_capacity(fabric), fabric.terminals_at.astype(np.float64), targets), options


def orders_of(fabric, layers, seed, *, pull=1.0):
    rng = np.random.default_rng(seed)
    return np.stack([build_order(fabric.channels, rng.random(fabric.switches), pull=pull) for _ in range(layers)])


@st.composite
def cases(draw, **limits):
    """Hypothesis strategy: a fabric and options, with both rules, several layers, and orders that leave pairs without a
    path.
    """
    fabric = draw(fabrics(connected=False, **limits))
    options = {"passes": draw(st.integers(0, 5)), "seed": draw(st.integers(0, 2**64 - 1))}
    options |= {"hop_cost": draw(st.sampled_from([0.0, 0.03, 0.1])), "bisection": draw(st.booleans())}
    rule = draw(st.sampled_from(["shortest", "grown", "any order"]))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    if rule != "shortest":
        layers = draw(st.integers(1, 3))
        options["layer"] = rng.integers(0, layers, fabric.switches).astype(np.int32)[Destinations.of(fabric).root]
        options["position"] = orders_of(fabric, layers, int(rng.integers(1000)), pull=float(rng.integers(2)))
        if rule == "any order":
            options["position"] = np.stack([rng.permutation(fabric.switches).astype(np.int32) for _ in range(layers)])
    return fabric, rule, *case(fabric, **options)


@examples(200)
@given(cases(min_switches=0, max_switches=9, max_cas=3))
def test_kernel_does_what_the_twin_does(drawn):
    _, _, arguments, options = drawn
    result = balance(*arguments, **options, threads=2)
    trees, load, max_utilisation = SlowBalance(*arguments, **options).run()
    assert result.next_channel.tolist() == trees
    assert result.load.tolist() == load
    assert result.max_utilisation.tolist() == max_utilisation


def test_twin_and_kernel_agree_over_several_blocks_with_polish():
    fabric = random_fabric(5, switches=14, degree=4, cas=3, mixed_speeds=True, parallel=2, lmc=1)
    for position, bisection in product((None, orders_of(fabric, 1, 0)), (False, True)):
        arguments, options = case(fabric, passes=4, position=position, hop_cost=0.03, bisection=bisection)
        result = balance(*arguments, **options, threads=2)
        trees, load, max_utilisation = SlowBalance(*arguments, **options).run()
        assert result.next_channel.tolist() == trees
        assert result.load.tolist() == load
        assert result.max_utilisation.tolist() == max_utilisation


@pytest.mark.parametrize("bisection", [False, True])
def test_twin_and_kernel_agree_on_a_tree(bisection):
    arguments, options = case(generate("kary-ntree", ["3", "3"], cas=3), passes=3, hop_cost=0.1, bisection=bisection)
    result = balance(*arguments, **options, threads=2)
    trees, load, max_utilisation = SlowBalance(*arguments, **options).run()
    assert result.next_channel.tolist() == trees
    assert result.load.tolist() == load
    assert result.max_utilisation.tolist() == max_utilisation


def forest(fabric, tree):
    """Return the channel that each switch takes in the tree of one destination."""
    first = fabric.channels.first
    return {u: int(first[u]) + int(index) for u, index in enumerate(tree) if index != NO_CHANNEL}


def shortest_paths(fabric, tree, root):
    """Yield the channels of the path from each switch to the root; a forwarding loop is an error."""
    taken = forest(fabric, tree)
    for start in range(fabric.switches):
        path, at = [], start
        while at in taken:
            path.append(taken[at])
            at = int(fabric.channels.dst[path[-1]])
            assert len(path) < fabric.switches, "runs in a circle"
        if path:
            assert at == root
            yield start, path


@examples(100)
@given(cases(max_switches=24, max_cas=3))
def test_trees_keep_their_rule_and_loads_are_their_sum(drawn):
    fabric, rule, (channels, weights, sources, targets), options = drawn
    result = balance(channels, weights, sources, targets, **options, threads=2)
    load = Counter()
    graph = nx.DiGraph(zip(channels.src.tolist(), channels.dst.tolist(), strict=True))
    graph.add_nodes_from(range(fabric.switches))
    hops = dict(nx.all_pairs_shortest_path_length(graph))
    for tree, root, share, layer in zip(
        result.next_channel, targets.root.tolist(), targets.share, targets.layer, strict=True
    ):
        reached = {root}
        for start, path in shortest_paths(fabric, tree, root):
            reached.add(start)
            for channel in path:
                load[channel] += sources[start] * share
            if rule == "shortest":
                assert len(path) == hops[start][root]
            else:
                position = options["position"][layer]
                up = [bool(position[channels.dst[c]] < position[channels.src[c]]) for c in path]
                assert up == sorted(up, reverse=True), "up after down"
        if rule != "any order":
            assert reached == {u for u in range(fabric.switches) if root in hops[u]}
    np.testing.assert_allclose(result.load, [load[c] for c in range(len(channels))], rtol=1e-12, atol=1e-12)
    assert result.max_utilisation.min() == (result.load * weights).max(initial=0.0)


@pytest.mark.parametrize("bisection", [False, True])
@pytest.mark.parametrize("rule", ["shortest", "updown"])
def test_threads_change_nothing(rule, bisection):
    fabric = random_fabric(3, switches=40, degree=5, cas=4, mixed_speeds=True, lmc=1)
    position = None if rule == "shortest" else orders_of(fabric, 1, 0)
    arguments, options = case(fabric, position=position, passes=4, bisection=bisection)
    one, *others = [balance(*arguments, **options, threads=threads) for threads in (1, 2, 4)]
    for other in others:
        assert one.next_channel.tobytes() == other.next_channel.tobytes()
        assert one.load.tobytes() == other.load.tobytes()
        assert one.max_utilisation.tobytes() == other.max_utilisation.tobytes()


def test_seeds_change_something():
    arguments, options = case(random_fabric(3, switches=20, degree=4, cas=2))
    trees = [balance(*arguments, **{**options, "seed": seed}, threads=1).next_channel for seed in (1, 2)]
    assert not np.array_equal(*trees)


@examples(30)
@given(cases(max_switches=9, max_cas=3))
def test_laying_again_never_makes_the_sum_of_weights_worse(drawn):
    _, _, arguments, options = drawn
    slow = SlowBalance(*arguments, **options)
    route_again = slow.route_again
    changes = []

    def observed(account, target):
        before = account.potential
        route_again(account, target)
        changes.append(account.potential - before)

    slow.route_again = observed
    slow.run()
    assert max(changes, default=0.0) <= 1e-9


def test_more_passes_are_never_worse():
    """Each pass continues from the previous pass, and the best of all passes is returned."""
    arguments, options = case(generate("torus", ["4x4x3"], cas=2))
    max_utilisation = [balance(*arguments, **{**options, "passes": n}, threads=2).max_utilisation for n in range(5)]
    assert all(np.array_equal(few, many[: len(few)]) for few, many in pairwise(max_utilisation))
    assert max_utilisation[-1].min() < max_utilisation[0].min()


@pytest.mark.parametrize("rule", ["shortest", "updown"])
def test_parallel_links_share_the_load_evenly(rule):
    """Between two switches with 8 end ports each, 64 flows lead in each direction over 4 links."""
    fabric = pair_of_switches(links=[(4, 10.0)] * 4, cas=8)
    position = None if rule == "shortest" else np.array([[0, 1]], np.int32)
    arguments, options = case(fabric, position=position)
    assert balance(*arguments, **options, threads=1).load.tolist() == [16.0] * 8


def test_a_faster_link_takes_more_in_proportion():
    fabric = pair_of_switches(links=[(4, 2.5), (4, 10.0)], cas=5)
    arguments, options = case(fabric)
    load = balance(*arguments, **options, threads=1).load
    by_speed = sorted(zip(fabric.channels.capacity.tolist(), load.tolist(), strict=True))
    assert [flow for _, flow in by_speed] == [5.0, 5.0, 20.0, 20.0]


def test_without_passes_nothing_is_computed_twice():
    arguments, options = case(ring_fabric(6, cas=2), passes=0)
    assert len(balance(*arguments, **options, threads=1).max_utilisation) == 1
