import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_proof import shortest_cycle

from routing._kernels import digraph
from routing.deadlock.cdg import DependencyGraph


@st.composite
def digraphs(draw):
    """Random directed graphs without self-loops, from empty to dense, as sorted pairs."""
    n = draw(st.integers(0, 25))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    pairs = rng.random((n, n)) < draw(st.sampled_from([0.02, 0.05, 0.1, 0.5]))
    np.fill_diagonal(pairs, False)
    if draw(st.booleans()):
        pairs &= np.triu(np.ones((n, n), bool))  # no cycles
    return n, *np.nonzero(pairs)


def as_networkx(n, source, target):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(zip(source.tolist(), target.tolist(), strict=True))
    return graph


@settings(deadline=None, derandomize=True, max_examples=200)
@given(digraphs())
def test_order_and_shortest_cycle_agree_with_networkx(case):
    n, source, target = case
    graph, slow = DependencyGraph.of(n, 1, source, target), as_networkx(*case)
    place, placed = digraph.order(graph.first, graph.to)
    assert (placed == n) == nx.is_directed_acyclic_graph(slow)
    held = set().union(*(nx.descendants(slow, v) | {v} for c in nx.simple_cycles(slow, 2) for v in c), set())
    assert held <= {v for v in range(n) if place[v] < 0}
    assert sorted(place[place >= 0].tolist()) == list(range(placed))
    assert all(place[a] < place[b] for a, b in slow.edges if place[b] >= 0)
    cycle = digraph.shortest_cycle(graph.first, graph.to)
    assert len(cycle) == shortest_cycle(slow)
    assert len(set(cycle)) == len(cycle)
    assert all(slow.has_edge(a, b) for a, b in zip(cycle, cycle[1:] + cycle[:1], strict=True))


@settings(deadline=None, derandomize=True, max_examples=50)
@given(digraphs())
def test_search_that_may_end_early_finds_no_less_than_was_asked(case):
    slow = shortest_cycle(as_networkx(*case))
    graph = DependencyGraph.of(case[0], 1, *case[1:])
    for enough in (2, 3, 4):
        found = len(digraph.shortest_cycle(graph.first, graph.to, enough=enough))
        assert found == slow or slow < found <= enough


def test_values_for_other_libraries():
    source, target = np.array([0, 1, 4, 5]), np.array([1, 2, 5, 4])
    graph = DependencyGraph.of(3, 2, source, target)
    assert len(graph) == 4
    assert graph.name(5) == (2, 1)
    assert graph.shortest_cycle() == [(1, 1), (2, 1)]
    order, complete = graph.order()
    assert order.shape == (2, 3)
    assert not complete
    other = graph.to_igraph()
    assert (other.vcount(), other.ecount(), other.is_dag()) == (6, 4, False)
    assert sorted(graph.to_networkx().edges) == [((0, 0), (1, 0)), ((1, 0), (2, 0)), ((1, 1), (2, 1)), ((2, 1), (1, 1))]
