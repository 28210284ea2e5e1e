import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from slow_layers import loads, way
from strategies import fabrics, random_fabric

from routing._kernels.mirror import LinkBundles, mirror, spread
from routing.engines.destinations import Destinations, inverse_capacity
from routing.topologies import generate


def flows(fabric):
    return np.where(fabric.terminals_at > 0, fabric.terminals_at, 0.25).astype(np.float64)


def hops(trunks, tree, start, root):
    """Switches from one to the other; None if there is no way."""
    found = [start]
    while found[-1] != root:
        if tree[found[-1]] == 255:
            return None
        found.append(int(trunks.dst[trunks.first[found[-1]] + tree[found[-1]]]))
    return found


@examples(100)
@given(fabrics(connected=False, min_switches=0, max_switches=14, max_cas=3), st.integers(0, 4), st.integers(0, 2**40))
def test_ways_are_shortest_and_loads_are_theirs(fabric, passes, seed):
    trunks, sources = LinkBundles.between_switches(fabric.channels, inverse_capacity(fabric)), flows(fabric)
    tree, load, worst = mirror(trunks, sources, passes=passes, seed=seed)
    distance = fabric.graph.distances() if fabric.switches else []
    expected = np.zeros(len(trunks.dst))
    for root in range(fabric.switches):
        for start in range(fabric.switches):
            found = hops(trunks, tree[root], start, root)
            far = distance[start][root]
            assert (found is None) == (far == np.inf)
            if found is None:
                continue
            assert len(found) == far + 1
            for u in found[:-1]:
                expected[trunks.first[u] + tree[root][u]] += sources[start] * sources[root]
    assert np.allclose(load, expected)
    assert np.isclose(worst, (expected * trunks.slowness).max(initial=0))


@pytest.mark.parametrize("seed", range(3))
def test_nearly_all_ways_back_mirror_the_way_out(seed):
    fabric = random_fabric(seed, switches=60, degree=6, cas=2)
    trunks = LinkBundles.between_switches(fabric.channels, inverse_capacity(fabric))
    tree, _, _ = mirror(trunks, flows(fabric), passes=3, seed=seed)
    pairs = [(a, b) for a in range(60) for b in range(a)]
    symmetric = sum(hops(trunks, tree[b], a, b) == hops(trunks, tree[a], b, a)[::-1] for a, b in pairs)
    assert symmetric > 0.9 * len(pairs)


def test_later_passes_make_it_better():
    fabric = generate("dragonfly", ["6", "3", "3"], cas=3)
    trunks = LinkBundles.between_switches(fabric.channels, inverse_capacity(fabric))
    worst = [mirror(trunks, flows(fabric), passes=passes, seed=1)[2] for passes in (0, 1, 4)]
    assert worst[0] >= worst[1] >= worst[2]
    assert worst[2] < worst[0]


@examples(60)
@given(fabrics(connected=False, min_switches=1, max_switches=10, max_cas=3))
def test_lids_take_turns_on_parallel_channels(fabric):
    channels, slow, destinations = fabric.channels, inverse_capacity(fabric), Destinations.of(fabric)
    sources = fabric.terminals_at.astype(np.float64)
    trunks = LinkBundles.between_switches(channels, slow)
    tree, _, _ = mirror(trunks, flows(fabric), passes=1, seed=1)
    following, load = spread(
        channels, trunks, slow, sources, root=destinations.root, share=destinations.share, hop=tree
    )
    assert np.allclose(load, loads(channels, following, destinations.root.tolist(), destinations.share, sources))
    for target, root in enumerate(destinations.root.tolist()):
        for start in range(fabric.switches):
            found = way(channels, following[target], start, root)
            switches = hops(trunks, tree[root], start, root)
            assert (found is None) == (switches is None)
            assert found is None or [int(channels.dst[c]) for c in found] == switches[1:]


def test_parallel_channels_are_filled_alike():
    fabric = generate("torus", ["4x3"], cas=6, redundancy=3)
    channels, slow, destinations = fabric.channels, inverse_capacity(fabric), Destinations.of(fabric)
    sources = fabric.terminals_at.astype(np.float64)
    trunks = LinkBundles.between_switches(channels, slow)
    tree, trunk_load, _ = mirror(trunks, flows(fabric), passes=2, seed=1)
    _, load = spread(channels, trunks, slow, sources, root=destinations.root, share=destinations.share, hop=tree)
    assert len(channels) == 3 * len(trunks.dst)
    for trunk in range(len(trunks.dst)):
        own = load[trunks.of == trunk]
        assert np.isclose(own.sum(), trunk_load[trunk])
        assert own.max() - own.min() <= 6 * 6
