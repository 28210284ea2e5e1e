import itertools

import networkx as nx
import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from slow_proof import prove_slowly, routed, shortest_cycle

from routing._kernels import digraph
from routing.cdg.graph import DependencyGraph
from routing.cdg.trace import dependency_graph
from routing.fabric import NodeKind
from routing.fabric_builder import FabricBuilder
from routing.tables import Provenance, Routing, identity_sl2vl


@st.composite
def digraphs(draw):
    """Hypothesis strategy: a random directed graph without self-loops, from empty to dense, as sorted pairs."""
    n = draw(st.integers(0, 25))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    pairs = rng.random((n, n)) < draw(st.sampled_from([0.02, 0.05, 0.1, 0.5]))
    np.fill_diagonal(pairs, False)
    if draw(st.booleans()):
        pairs &= np.triu(np.ones((n, n), bool))  # this removes all cycles
    return n, *np.nonzero(pairs)


def as_networkx(n, source, target):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(zip(source.tolist(), target.tolist(), strict=True))
    return graph


@examples(200)
@given(digraphs())
def test_order_and_shortest_cycle_agree_with_networkx(case):
    n, source, target = case
    graph, slow = DependencyGraph.of(n, 1, source, target), as_networkx(*case)
    position, placed = digraph.order(graph.first, graph.to)
    assert (placed == n) == nx.is_directed_acyclic_graph(slow)
    held = set().union(*(nx.descendants(slow, v) | {v} for c in nx.simple_cycles(slow, 2) for v in c), set())
    assert held <= {v for v in range(n) if position[v] < 0}
    assert sorted(position[position >= 0].tolist()) == list(range(placed))
    assert all(position[a] < position[b] for a, b in slow.edges if position[b] >= 0)
    cycle = digraph.shortest_cycle(graph.first, graph.to)
    assert len(cycle) == shortest_cycle(slow)
    assert len(set(cycle)) == len(cycle)
    assert all(slow.has_edge(a, b) for a, b in zip(cycle, cycle[1:] + cycle[:1], strict=True))


@examples(50)
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
    assert graph.order() is None
    assert DependencyGraph.of(3, 2, source[:3], target[:3]).order().shape == (2, 3)
    other = graph.to_igraph()
    assert (other.vcount(), other.ecount(), other.is_dag()) == (6, 4, False)
    assert sorted(graph.to_networkx().edges) == [((0, 0), (1, 0)), ((1, 0), (2, 0)), ((1, 1), (2, 1)), ((2, 1), (1, 1))]


@examples(60)
@given(routed())
def test_dependencies_are_those_of_walked_packets(case):
    fabric, routing = case
    slow, number = prove_slowly(fabric, routing), fabric.channels.at_port
    for replies, scope in itertools.product((False, True), ("all", "endports")):
        waits = (slow.both if replies else slow.requests)[scope].edges
        expected = {((number[s, p], v), (number[t, q], w)) for (s, p, v), (t, q, w) in waits}
        graph = dependency_graph(fabric, routing, replies=replies, switch_pairs=scope == "all")
        assert set(graph.to_networkx().edges) == expected


def mesh_3x3():
    """Return a mesh of nine switches with a CA each.  Ports: 1 east, 2 west, 3 north, 4 south, 5 to the CA."""
    builder, at = FabricBuilder(), {}
    for k in range(9):
        at[k % 3, k // 3] = builder.add_device(NodeKind.SWITCH, 1 + k, f"sw{k}", 5)
        ca = builder.add_device(NodeKind.CA, 100 + 2 * k, f"ca{k}", 1)
        builder.connect(ca, 1, at[k % 3, k // 3], 5)
    for (x, y), switch in at.items():
        if x < 2:
            builder.connect(switch, 1, at[x + 1, y], 2)
        if y < 2:
            builder.connect(switch, 3, at[x, y + 1], 4)
    return builder.build()


def dimension_order(fabric, first):
    """Return the LFT of the mesh in which paths follow the ``first`` dimension (0 or 1) before the other dimension."""
    lft = np.full((9, len(fabric.lids)), 255, np.uint8)
    for lid in range(1, lft.shape[1]):
        target = int(fabric.lids.switch[lid])
        for s in range(9):
            ahead = [target % 3 - s % 3, target // 3 - s // 3]
            along = first if ahead[first] else 1 - first
            lft[s, lid] = (1 + 2 * along + (ahead[along] < 0)) if any(ahead) else fabric.lids.port[lid]
    return lft


def test_figures_of_the_3x3_mesh():
    """The mesh has 24 channels.  Dimension order has 28 dependencies without a cycle, both orders together have 44 with
    cycles.
    """
    fabric = mesh_3x3()
    assert len(fabric.channels) == 24
    xy, yx = dimension_order(fabric, 0), dimension_order(fabric, 1)
    sl = np.zeros(xy.shape[1], np.uint8)
    graphs = [
        dependency_graph(fabric, Routing(lft, sl, identity_sl2vl(1), 1, 1, Provenance("dor"))) for lft in (xy, yx)
    ]
    assert [len(graph) for graph in graphs] == [28, 28]
    assert all(graph.order() is not None for graph in graphs)
    mixed = np.where(np.arange(xy.shape[1]) % 2, xy, yx)
    assert dependency_graph(fabric, Routing(mixed, sl, identity_sl2vl(1), 1, 1, Provenance("both"))).order() is None
    both = DependencyGraph.union(graphs)
    assert set(both.to_networkx().edges) == {edge for graph in graphs for edge in graph.to_networkx().edges}
    assert (len(both), both.order()) == (44, None)
