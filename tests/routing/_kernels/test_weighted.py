import networkx as nx
import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from slow_layers import find_path
from strategies import fabrics

from routing._kernels.weighted import weighted
from routing.engines.destinations import Destinations, inverse_capacity


@examples(100)
@given(
    fabrics(connected=False, min_switches=0, max_switches=9, max_cas=3, max_lmc=1), st.sampled_from([0.5, 1.0, 20.0])
)
def test_every_tree_is_lightest_as_weights_stood_then(fabric, first_weight):
    channels, slow, destinations = fabric.channels, inverse_capacity(fabric), Destinations.of(fabric)
    sources = fabric.terminals_at.astype(np.float64)
    trees = weighted(channels, slow, sources, destinations.targets(), first_weight=first_weight)
    weight, load = first_weight * slow, np.zeros(len(channels))
    for target, root in enumerate(destinations.root.tolist()):
        graph = nx.MultiDiGraph()
        graph.add_nodes_from(range(fabric.switches))
        graph.add_weighted_edges_from(zip(channels.dst.tolist(), channels.src.tolist(), weight.tolist(), strict=True))
        lightest = nx.single_source_dijkstra_path_length(graph, root)
        share = destinations.share[target]
        found = [find_path(channels, trees.next_channel[target], start, root) for start in range(fabric.switches)]
        for start, taken in enumerate(found):
            assert (taken is None) == (start not in lightest)
            assert taken is None or np.isclose(sum(weight[c] for c in taken), lightest[start])
        for start, taken in enumerate(found):
            for channel in taken or ():
                load[channel] += sources[start] * share
                weight[channel] += sources[start] * share * slow[channel]
    assert np.allclose(load, trees.load)
