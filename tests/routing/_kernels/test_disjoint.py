"""Check orders and in-trees with link-disjoint paths: the kernel against paths that are followed switch by switch."""

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics, random_fabric

from routing._kernels.disjoint import (
    NO_ORDER,
    UNREACHED,
    TreeRequest,
    balance_order,
    disjoint_trees,
    distances,
    follow_first,
    reach,
)
from routing.engines.destinations import inverse_capacity
from routing.engines.disjoint_orders import choose_orders


def rises(position, a, b):
    return position[b] < position[a]


def slow_reach(fabric, position, source, target, most):
    """Return the fewest hops of a path up and then down, and the first channels of such paths of at most ``most``
    hops.
    """
    channels, far = fabric.channels, 1000

    def fewest(start, down_only):
        states, hops = {(start, down_only)}, 0
        seen = set(states)
        while states:
            if any(s == target for s, _ in states):
                return hops
            step = set()
            for s, down in states:
                for c in range(channels.first[s], channels.first[s + 1]):
                    up = rises(position, s, channels.dst[c])
                    if not (down and up):
                        step.add((int(channels.dst[c]), bool(down or not up)))
            states = step - seen
            seen |= states
            hops += 1
        return far

    out = range(channels.first[source], channels.first[source + 1])
    after = [1 + fewest(int(channels.dst[c]), not rises(position, source, channels.dst[c])) for c in out]
    return fewest(source, down_only=False), sum(hops <= most for hops in after)


@examples(25)
@given(fabrics(connected=False, max_switches=7), st.integers(0, 99), st.integers(1, 5))
def test_paths_of_an_order(fabric, seed, most):
    position = np.random.default_rng(seed).permutation(fabric.switches).astype(np.int32)
    found = reach(fabric.channels, position, most_hops=most)
    for d in range(fabric.switches):
        for s in range(fabric.switches):
            hops, degree = slow_reach(fabric, position, s, d, most)
            assert min(found.hops[d, s], 1000) == hops
            assert s == d or found.degree[d, s] == degree


@examples(20)
@given(fabrics(connected=False, max_switches=10))
def test_distances(fabric):
    expected = np.array(fabric.graph.distances(mode="out")).reshape(fabric.switches, fabric.switches)
    assert np.array_equal(distances(fabric.channels), np.where(np.isfinite(expected), expected, UNREACHED))


@pytest.mark.parametrize("seed", range(5))
def test_balanced_orders_forbid_fewer_dependencies(seed):
    fabric = random_fabric(seed, switches=30, degree=5, parallel=1)
    channels = fabric.channels

    def forbidden(position):
        before, after = channels.edges.channels()
        up = position[channels.dst] < position[channels.src]
        return np.count_nonzero(~up[before] & up[after])

    position = np.random.default_rng(seed).permutation(30).astype(np.int32)
    first = forbidden(position)
    balance_order(channels, position, steps=1200, seed=seed)
    assert sorted(position) == list(range(30))
    assert forbidden(position) < first


def request_of(fabric, trees, orders, *, shared, seed, initial=None):
    distance = distances(fabric.channels)
    most = 2 + int(distance[distance != UNREACHED].max(initial=0))
    wanted = min(trees, 3)
    chosen = choose_orders(fabric, distance, count=orders, wanted=wanted, most_hops=most, seed=seed)
    request = TreeRequest(
        fabric.channels, fabric.terminals_at.astype(float), inverse_capacity(fabric), distance,
        chosen.allowed(fabric.channels), chosen.degree, initial, trees, wanted, most, 5, 4, shared, False, seed,
    )  # fmt: skip
    return request, chosen


def path_of(fabric, next_channel, d, tree, s):
    """Return the channels of a path; None if an entry is missing or the path does not end."""
    found = []
    while s != d:
        if next_channel[d, tree, s] == 255 or len(found) > fabric.switches:
            return None
        found.append(int(fabric.channels.first[s]) + int(next_channel[d, tree, s]))
        s = int(fabric.channels.dst[found[-1]])
    return found


def is_allowed(fabric, path, position):
    ups = [bool(rises(position, fabric.channels.src[c], fabric.channels.dst[c])) for c in path]
    return ups == sorted(ups, reverse=True)


@examples(40)
@given(
    fabrics(connected=False, max_switches=9, max_cas=2),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(1, 6),
    st.booleans(),
    st.integers(0, 99),
)
def test_every_path_arrives_and_its_order_allows_it(fabric, trees, orders, shared, seed):
    request, chosen = request_of(fabric, trees, orders, shared=shared, seed=seed)
    found = disjoint_trees(request)
    ends = fabric.terminals_at > 0
    load = np.zeros((2, len(fabric.channels)))
    for d in range(fabric.switches):
        for tree in range(trees if ends[d] else 1):
            for s in range(fabric.switches):
                assert found.order[d, tree, s] == found.order[s, tree, d]
                if request.distance[d, s] == UNREACHED:
                    assert found.next_channel[d, tree, s] == 255
                    continue
                path = path_of(fabric, found.next_channel, d, tree, s)
                assert path is not None
                assert tree > 0 or len(path) == request.distance[d, s]
                order = found.order[d, tree, s]
                assert order == NO_ORDER or is_allowed(fabric, path, chosen.position[order])
                flow = fabric.terminals_at[s] * fabric.terminals_at[d] * request.inverse_capacity[path]
                load[1, path] += flow
                load[0, path] += flow * (tree == 0)
    assert found.load == pytest.approx(load)
    if shared:
        real = ends[:, None] & ends[None, :]
        assert all(np.array_equal(found.order[:, tree][real], found.order[:, 0][real]) for tree in range(trees))


def test_trees_can_follow_the_first_tree():
    fabric = random_fabric(4, switches=12, degree=4)
    request, _ = request_of(fabric, 4, 4, shared=False, seed=1)
    found = disjoint_trees(request).next_channel
    source, target = np.array([3], np.int32), np.array([7], np.int32)
    changed = follow_first(request, found, source, target)
    expected = path_of(fabric, found, 7, 0, 3)
    assert all(path_of(fabric, changed, 7, tree, 3) == expected for tree in range(4))
    assert np.array_equal(np.delete(changed, 7, axis=0), np.delete(found, 7, axis=0))
    assert any(path_of(fabric, found, 7, tree, 3) != expected for tree in range(4))


def test_given_first_trees_keep_their_highest_load():
    fabric = random_fabric(6, switches=16, degree=4)
    request, _ = request_of(fabric, 2, 4, shared=False, seed=1)
    first = disjoint_trees(request)
    initial = np.ascontiguousarray(first.next_channel[:, 0])
    again, _ = request_of(fabric, 2, 4, shared=False, seed=2, initial=initial)
    assert disjoint_trees(again).load[0].max() <= first.load[0].max() + 1e-9
