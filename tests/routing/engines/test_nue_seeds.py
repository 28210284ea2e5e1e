import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics, random_fabric

from routing._kernels.order import build_order
from routing.engines.destinations import Destinations
from routing.engines.nue_seeds import by_order, by_region
from routing.topologies import generate


def roots_of(fabric, parent):
    """Return the switch at which the tree path of each switch ends; a cycle is an error."""
    ends = []
    for start in range(fabric.switches):
        at, seen = start, set()
        while parent[at] >= 0:
            assert at not in seen
            seen.add(at)
            assert fabric.channels.src[parent[at]] == at
            at = int(fabric.channels.dst[parent[at]])
        ends.append(at)
    return np.array(ends)


@examples(100)
@given(fabrics(max_switches=20, connected=False), st.integers(1, 4), st.sampled_from(["region", "order"]))
def test_escape_trees_span_each_connected_part(fabric, layers, kind):
    destinations = Destinations.of(fabric)
    if kind == "region":
        layer = np.asarray(destinations.root % layers, np.int32)
        seeds = by_region(fabric, destinations, layer, layers, 1)
    else:
        keys = np.random.default_rng(1).random((layers, fabric.switches))
        seeds = by_order(fabric, np.stack([build_order(fabric.channels, key, pull=1.0) for key in keys]))
    assert seeds.parent.shape == (layers, fabric.switches)
    assert seeds.rank.shape == (layers, len(fabric.channels))
    for parent in seeds.parent:
        ends = roots_of(fabric, parent)
        for part in range(fabric.component.max(initial=-1) + 1):
            assert len(set(ends[fabric.component == part].tolist())) == 1


def test_channels_that_lead_nearer_to_the_layer_rank_later():
    fabric = generate("torus", ["6x6"], cas=1)
    destinations = Destinations.of(fabric)
    layer = np.asarray(destinations.root // 18, np.int32)  # the layers are two halves of the switches
    seeds = by_region(fabric, destinations, layer, 2, 1)
    hops = np.asarray(fabric.graph.distances(mode="out"), float)
    for number in range(2):
        flow = (destinations.share > 0) & (layer == number)
        mean = hops[:, destinations.root[flow]].mean(axis=1)
        expected = -(mean[fabric.channels.src] + mean[fabric.channels.dst])
        assert np.allclose(seeds.rank[number], expected)
        (root,) = set(roots_of(fabric, seeds.parent[number]).tolist())
        assert mean[root] == pytest.approx(mean.min())


def test_channels_up_come_before_channels_down_and_each_kind_is_increasing():
    fabric = random_fabric(3, switches=20, degree=5, cas=1)
    position = build_order(fabric.channels, np.random.default_rng(1).random(20), pull=1.0)[np.newaxis]
    rank = by_order(fabric, position).rank[0]
    src, dst = position[0][fabric.channels.src], position[0][fabric.channels.dst]
    up = dst < src
    assert rank[up].max() < rank[~up].min()
    for a in range(len(rank)):
        for b in range(
            fabric.channels.first[fabric.channels.dst[a]], fabric.channels.first[fabric.channels.dst[a] + 1]
        ):
            if up[a] or not up[b]:
                assert rank[a] < rank[b]
