import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from slow_layers import find_path, loads
from strategies import fabrics, random_fabric

from routing._kernels.symmetric_paths import LinkBundles, spread_over_parallel_links, symmetric_paths
from routing.engines.destinations import Destinations, inverse_capacity
from routing.topologies import generate


def flows(fabric):
    return np.where(fabric.terminals_at > 0, fabric.terminals_at, 0.25).astype(np.float64)


def hops(bundles, tree, start, root):
    """Return the switches on the path from ``start`` to ``root``; None if there is no path."""
    found = [start]
    while found[-1] != root:
        if tree[found[-1]] == 255:
            return None
        found.append(int(bundles.dst[bundles.first[found[-1]] + tree[found[-1]]]))
    return found


@examples(100)
@given(fabrics(connected=False, min_switches=0, max_switches=14, max_cas=3), st.integers(0, 4), st.integers(0, 2**40))
def test_paths_are_shortest_and_loads_are_theirs(fabric, passes, seed):
    bundles, sources = LinkBundles.between_switches(fabric.channels, inverse_capacity(fabric)), flows(fabric)
    tree, load, max_utilisation = symmetric_paths(bundles, sources, passes=passes, seed=seed)
    distance = fabric.graph.distances() if fabric.switches else []
    expected = np.zeros(len(bundles.dst))
    for root in range(fabric.switches):
        for start in range(fabric.switches):
            found = hops(bundles, tree[root], start, root)
            far = distance[start][root]
            assert (found is None) == (far == np.inf)
            if found is None:
                continue
            assert len(found) == far + 1
            for u in found[:-1]:
                expected[bundles.first[u] + tree[root][u]] += sources[start] * sources[root]
    assert np.allclose(load, expected)
    assert np.isclose(max_utilisation, (expected * bundles.inverse_capacity).max(initial=0))


@pytest.mark.parametrize("seed", range(3))
def test_nearly_all_reply_paths_mirror_the_remedy(seed):
    fabric = random_fabric(seed, switches=60, degree=6, cas=2)
    bundles = LinkBundles.between_switches(fabric.channels, inverse_capacity(fabric))
    tree, _, _ = symmetric_paths(bundles, flows(fabric), passes=3, seed=seed)
    pairs = [(a, b) for a in range(60) for b in range(a)]
    symmetric = sum(hops(bundles, tree[b], a, b) == hops(bundles, tree[a], b, a)[::-1] for a, b in pairs)
    assert symmetric > 0.9 * len(pairs)


def test_later_passes_make_it_better():
    fabric = generate("dragonfly", ["6", "3", "3"], cas=3)
    bundles = LinkBundles.between_switches(fabric.channels, inverse_capacity(fabric))
    max_utilisation = [symmetric_paths(bundles, flows(fabric), passes=passes, seed=1)[2] for passes in (0, 1, 4)]
    assert max_utilisation[0] >= max_utilisation[1] >= max_utilisation[2]
    assert max_utilisation[2] < max_utilisation[0]


@examples(60)
@given(fabrics(connected=False, min_switches=1, max_switches=10, max_cas=3))
def test_lids_take_turns_on_parallel_channels(fabric):
    channels, slow, destinations = fabric.channels, inverse_capacity(fabric), Destinations.of(fabric)
    sources = fabric.terminals_at.astype(np.float64)
    bundles = LinkBundles.between_switches(channels, slow)
    tree, _, _ = symmetric_paths(bundles, flows(fabric), passes=1, seed=1)
    following, load = spread_over_parallel_links(
        channels, bundles, slow, sources, root=destinations.root, share=destinations.share, hop=tree
    )
    assert np.allclose(load, loads(channels, following, destinations.root.tolist(), destinations.share, sources))
    for target, root in enumerate(destinations.root.tolist()):
        for start in range(fabric.switches):
            found = find_path(channels, following[target], start, root)
            switches = hops(bundles, tree[root], start, root)
            assert (found is None) == (switches is None)
            assert found is None or [int(channels.dst[c]) for c in found] == switches[1:]


def test_parallel_channels_are_filled_alike():
    fabric = generate("torus", ["4x3"], cas=6, redundancy=3)
    channels, slow, destinations = fabric.channels, inverse_capacity(fabric), Destinations.of(fabric)
    sources = fabric.terminals_at.astype(np.float64)
    bundles = LinkBundles.between_switches(channels, slow)
    tree, bundle_load, _ = symmetric_paths(bundles, flows(fabric), passes=2, seed=1)
    _, load = spread_over_parallel_links(
        channels, bundles, slow, sources, root=destinations.root, share=destinations.share, hop=tree
    )
    assert len(channels) == 3 * len(bundles.dst)
    for bundle in range(len(bundles.dst)):
        own = load[bundles.of == bundle]
        assert np.isclose(own.sum(), bundle_load[bundle])
        assert own.max() - own.min() <= 6 * 6
