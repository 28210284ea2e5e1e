from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from slow_layers import SlowLayers, find_path, loads
from strategies import fabrics, random_fabric

from routing._kernels.balance import balance
from routing._kernels.layering import layering
from routing.engines.destinations import Destinations, inverse_capacity
from routing.engines.layered import random_orders


def balanced(fabric, *, seed=1):
    """Return the kernel's arguments for a fabric: its channels and senders, and the paths to assign."""
    destinations, sources = Destinations.of(fabric), fabric.terminals_at.astype(np.float64)
    trees = balance(
        fabric.channels, inverse_capacity(fabric), sources, destinations.targets(), passes=0, seed=seed, threads=1
    )
    paths = {"root": destinations.root, "share": destinations.share}
    paths |= {"next_channel": trees.next_channel, "load": trees.load}
    return (fabric.channels, inverse_capacity(fabric), sources), paths


@st.composite
def cases(draw):
    fabric = draw(fabrics(connected=False, min_switches=0, max_switches=8, max_cas=2))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    options = {"counted": fabric.terminals_at > 0, "mutual": draw(st.booleans())}
    options |= {"most": draw(st.sampled_from([1, 2, 32])), "have": draw(st.integers(1, 4))}
    if draw(st.booleans()):
        options["avoid"] = random_orders(fabric, 2, int(rng.integers(100))).avoid
    if draw(st.booleans()):
        options["region"] = rng.integers(0, options["most"], fabric.switches).astype(np.int32)
    return fabric, options


@examples(150)
@given(cases())
def test_kernel_does_what_the_twin_does(drawn):
    fabric, options = drawn
    (channels, slow, sources), paths = balanced(fabric)
    root, share, trees, _ = paths.values()
    found = layering(channels, slow, sources, **paths, **options)
    layer, needed, used, left, uncounted = SlowLayers(channels, sources, root, share, trees, **options).run()
    # the kernel stops at the first length of paths at which a path finds no layer
    assert (found.left > 0) == (left > 0)
    if not left:
        assert (found.needed, found.used) == (needed, used)
        assert (found.left_uncounted > 0) == (uncounted > 0)
    if not left and not uncounted:
        assert found.layer.tolist() == layer.tolist()


def graph_of_layer(channels, root, trees, layer, number, *, mutual, counted):
    graph = nx.DiGraph()
    for target, to in enumerate(root.tolist()):
        for start in range(trees.shape[1]):
            found = find_path(channels, trees[target], start, to)
            own = layer[to, start] if mutual else layer[target, start]
            if found and own == number and (counted[start] or counted[to]):
                graph.add_edges_from(pairwise(found))
    return graph


@examples(80)
@given(
    fabrics(connected=False, min_switches=2, max_switches=12, max_cas=3),
    st.booleans(),
    st.integers(1, 4),
    st.booleans(),
)
def test_paths_recomputed_are_shortest_and_acyclic(fabric, mutual, most, ordered):
    (channels, slow, sources), paths = balanced(fabric)
    root, share, trees, load = paths.values()
    counted = fabric.terminals_at > 0
    initial = random_orders(fabric, most, 1)
    found = layering(channels, slow, sources, **paths, counted=counted, mutual=mutual, most=most, have=most,
        rechoose=True, unload_rounds=8, avoid=initial.avoid if ordered else None, order=initial.order,
    )  # fmt: skip
    for before, after, to in zip(trees, found.next_channel, root.tolist(), strict=True):
        for start in range(fabric.switches):
            old, new = find_path(channels, before, start, to), find_path(channels, after, start, to)
            assert (old is None) == (new is None)
            assert old is None or len(old) == len(new)
    assert np.allclose(found.load, loads(channels, found.next_channel, root, share, sources))
    if found.left == 0:
        assert (found.load * slow).max(initial=0) <= max(
            (load * slow).max(initial=0), (found.load * slow).max(initial=0) if found.rechosen else 0
        ) * (1 + 1e-9)
        for number in range(found.used):
            layer = graph_of_layer(
                channels, root, found.next_channel, found.layer, number, mutual=mutual, counted=counted
            )
            assert nx.is_directed_acyclic_graph(layer)


def test_first_orders_change_nothing_but_the_time():
    fabric = random_fabric(3, switches=40, degree=5, cas=2)
    arguments, paths = balanced(fabric)
    counted = fabric.terminals_at > 0
    one, other = (
        layering(*arguments, **paths, counted=counted, order=order)
        for order in (None, random_orders(fabric, 3, 7).order)
    )
    assert one.layer.tobytes() == other.layer.tobytes()
    assert one.needed == other.needed
    assert one.visited != other.visited


def test_orders_are_topological_for_turns_that_are_not_avoided():
    fabric = random_fabric(5, switches=15, degree=4, parallel=2)
    start = random_orders(fabric, 3, 1)
    channels = fabric.channels
    numbers = np.concatenate([[0], np.cumsum(channels.edges.degree)])
    for channel in range(len(channels)):
        after = range(channels.first[channels.dst[channel]], channels.first[channels.dst[channel] + 1])
        for k, following in enumerate(after):
            for layer in range(3):
                if not start.avoid[numbers[channel] + k] >> layer & 1 and channel != following:
                    assert start.order[layer, channel] < start.order[layer, following]


def test_a_spent_budget_leaves_paths_out():
    arguments, paths = balanced(random_fabric(3, switches=40, degree=5, cas=2))
    counted = np.ones(40, bool)
    assert layering(*arguments, **paths, counted=counted).left == 0
    assert layering(*arguments, **paths, counted=counted, budget=10).left > 0


@pytest.mark.parametrize("mutual", [False, True])
def test_load_is_spread_over_the_layers_that_there_are(mutual):
    (channels, slow, sources), paths = balanced(random_fabric(3, switches=30, degree=4, cas=2))
    root, share = paths["root"], paths["share"]
    found = layering(channels, slow, sources, **paths, counted=sources > 0, mutual=mutual, have=8)
    carried = np.zeros(8)
    for target, to in enumerate(root.tolist()):
        for start in range(30):
            own = found.layer[to, start] if mutual else found.layer[target, start]
            carried[own] += sources[start] * share[target] * (start != to)
    assert found.needed < found.used == 8
    assert carried.min() > 0.6 * carried.max()
