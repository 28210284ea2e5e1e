"""Check routing by allowed turns on one VL: maximal sets of turns without a cycle, trees that use only these, and the
engines.
"""

import networkx as nx
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from slow_proof import prove_slowly
from strategies import fabrics, pull_links, random_fabric

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.engines.destinations import Destinations
from routing.engines.lturn import PAIRS, coordinates, direction_orders, directions
from routing.engines.segment import partition
from routing.engines.turn_rules import TurnGraph, TurnTrial
from routing.quality import measure
from routing.topologies import generate

TURN_ENGINES = ["segment", "lturn", "smart"]


def route(engine, fabric, **options):
    return ENGINES[engine].route(fabric, EngineOptions(**{"vls": 1, "effort": 0.1, **options}))


def random_turns(fabric, seed):
    graph = TurnGraph.of_fabric(fabric)
    return graph, graph.complete(graph.breadth_first([]), np.random.default_rng(seed).random(len(graph.edges)))


def test_a_similar_set_of_turns_changes_neither_the_result_nor_itself():
    fabric = generate("torus", ["4x4"])
    graph, near = random_turns(fabric, 1)
    kept = near.order.copy()
    priority = np.random.default_rng(2).random(len(graph.edges))
    turns = [graph.complete(graph.breadth_first([]), priority, given) for given in (None, near, near)]
    assert np.array_equal(near.order, kept)
    assert all(np.array_equal(each.allowed, turns[0].allowed) for each in turns)


@examples(40)
@given(fabrics(connected=False, min_switches=0, max_switches=10, max_cas=1), st.integers(0, 5))
def test_turns_have_no_cycle_and_one_more_closes_one(fabric, seed):
    graph, turns = random_turns(fabric, seed)
    before, after = fabric.channels.edges.channels()
    allowed = nx.DiGraph()
    allowed.add_nodes_from(range(len(fabric.channels)))
    kept = turns.allowed != 0
    allowed.add_edges_from(zip(before[kept].tolist(), after[kept].tolist(), strict=True))
    assert nx.is_directed_acyclic_graph(allowed)
    leads_on = fabric.channels.dst[after] != fabric.channels.src[before]
    for a, b in zip(before[~kept & leads_on].tolist()[::7], after[~kept & leads_on].tolist()[::7], strict=True):
        bundle = [np.flatnonzero(graph.of == graph.of[c]).tolist() for c in (a, b)]
        assert any(nx.has_path(allowed, other, one) for one in bundle[0] for other in bundle[1])


@examples(40)
@given(fabrics(connected=False, min_switches=0, max_switches=12, max_cas=2), st.integers(0, 5))
def test_trees_take_allowed_turns_only_and_reach_every_switch(fabric, seed):
    """Random turns leave many switches without a next hop, unless these switches use the spanning tree."""
    _, turns = random_turns(fabric, seed)
    destinations, channels = Destinations.of(fabric), fabric.channels
    trial = TurnTrial(fabric, destinations, EngineOptions(effort=0.1), 1)
    trees = trial.trees(turns, destinations.targets(), passes=2)
    before, after = channels.edges.channels()
    pairs = {(int(before[k]), int(after[k])) for k in np.flatnonzero(turns.allowed)}
    for target, root in enumerate(destinations.root.tolist()):
        chosen = trees.next_channel[target]
        for switch in range(fabric.switches):
            connected = fabric.component[switch] == fabric.component[root]
            assert (chosen[switch] != 255) == (connected and switch != root)
            last, at, hops = -1, switch, 0
            while connected and at != root:
                channel = int(channels.first[at] + chosen[at])
                assert last < 0 or (last, channel) in pairs
                last, at, hops = channel, int(channels.dst[channel]), hops + 1
                assert hops < fabric.switches
    load = np.zeros(len(channels))
    for target, root in enumerate(destinations.root.tolist()):
        for switch in range(fabric.switches):
            at, flow = switch, float(fabric.source_weight_at[switch]) * destinations.share[target]
            while trees.next_channel[target, at] != 255 and at != root:
                channel = int(channels.first[at] + trees.next_channel[target, at])
                load[channel] += flow
                at = int(channels.dst[channel])
    np.testing.assert_allclose(load, trees.load, atol=1e-6)


@examples(30)
@given(
    fabrics(connected=False, min_switches=0, max_switches=12, max_cas=2),
    st.sampled_from(TURN_ENGINES),
    st.sampled_from([1, "auto"]),
)
def test_random_and_broken_fabrics_are_certified(fabric, engine, vls):
    routing = route(engine, fabric, vls=vls)
    proof = prove(fabric, routing)
    assert proof.complete and (proof.strength, proof.scope) == ("reversible", "all")
    assert routing.vls_needed == 1


@pytest.mark.parametrize("engine", TURN_ENGINES)
def test_the_slow_proof_agrees(engine):
    fabric = random_fabric(4, 9, 4, lmc=1, parallel=2)
    slow = prove_slowly(fabric, route(engine, fabric))
    assert nx.is_directed_acyclic_graph(slow.both["all"]) and not slow.counts["undelivered"]


@pytest.mark.parametrize("engine", TURN_ENGINES)
def test_threads_do_not_change_the_tables(engine):
    fabric = random_fabric(5, 14, 4)
    one, two = (route(engine, fabric, threads=threads) for threads in (1, 2))
    assert np.array_equal(one.lft, two.lft)


@pytest.mark.parametrize("engine", TURN_ENGINES)
def test_lids_of_a_port_take_different_paths(engine):
    fabric = generate("torus", ["4x4"], cas=1, lmc=1)
    lft = route(engine, fabric).lft
    base = fabric.endport_lid
    assert (lft[:, base] != lft[:, base + 1]).mean() > 0.25


@examples(30)
@given(fabrics(connected=False, min_switches=0, max_switches=12, max_cas=0), st.booleans())
def test_every_link_on_a_cycle_is_in_one_segment(fabric, clustered):
    graph = TurnGraph.of_fabric(fabric)
    plan = partition(graph, 0, np.random.default_rng(1), clustered=clustered)
    taken = [tuple(sorted((int(graph.src[b]), int(graph.dst[b])))) for part in plan.segments for b in part]
    links = nx.Graph((int(a), int(b)) for a, b in zip(graph.src, graph.dst, strict=True))
    bridges = {tuple(sorted(link)) for link in nx.bridges(links)} if len(links) else set()
    assert len(taken) == len(set(taken))
    assert set(taken) == {tuple(sorted(link)) for link in links.edges} - bridges
    earlier = set()
    for part in plan.segments:
        path = [int(graph.src[part[0]]), *(int(graph.dst[bundle]) for bundle in part)]
        assert all(path[k + 1] == int(graph.dst[bundle]) for k, bundle in enumerate(part))
        assert not earlier & set(path[1:-1]) and len(set(path[1:-1])) == len(path) - 2
        earlier |= set(path)


def test_segments_beat_an_order_on_a_random_fabric():
    fabric = generate("random-regular", ["50", "6"], cas=1)
    updn, segment = (
        measure(fabric, route(engine, fabric, effort=0.3), bisections=1, shifts=0).all_to_all
        for engine in ("updn", "segment")
    )
    assert segment >= updn


@examples(30)
@given(fabrics(connected=False, min_switches=1, max_switches=12, max_cas=0), st.sampled_from(list(direction_orders())))
def test_turns_by_directions_have_no_cycle(fabric, rank):
    """This holds before any turn is allowed again, and with the turns of the spanning tree."""
    graph = TurnGraph.of_fabric(fabric)
    spanning, number, level = coordinates(graph, 0, np.arange(fabric.switches, dtype=float))
    direction = directions(graph, number, level)
    before, after = graph.turns
    kept = graph.useful & (rank[direction[before]] <= rank[direction[after]])
    allowed = nx.DiGraph(zip(before[kept].tolist(), after[kept].tolist(), strict=True))
    assert nx.is_directed_acyclic_graph(allowed)
    up = {int(bundle) for bundle in spanning[spanning >= 0]}
    tree = up | {int(graph.reverse[bundle]) for bundle in up}
    needed = [k for k in np.flatnonzero(graph.useful).tolist() if before[k] in tree and after[k] in tree]
    assert kept[needed].all()


def test_the_orders_of_directions_are_those_that_forbid_least():
    found = [tuple(rank.tolist()) for rank in direction_orders()]
    assert len(found) == len(set(found)) == 6
    assert (0, 0, 1, 1) in found and (0, 1, 0, 1) in found  # up before down; left before right
    for rank in found:
        assert all(rank[a] != rank[b] or (a, b) in PAIRS for a in range(4) for b in range(a + 1, 4))


@pytest.mark.parametrize("name", ["torus:4x4x4", "kautz:4,3", "random-regular:50,6"])
def test_smart_carries_more_than_an_order(name):
    kind, arguments = name.split(":")
    fabric = generate(kind, arguments.split(","), cas=1)
    updn, smart = (
        measure(fabric, route(engine, fabric, effort=0.5), bisections=1, shifts=0).all_to_all
        for engine in ("updn", "smart")
    )
    assert smart >= 1.05 * updn


def test_a_mesh_with_faults_stays_routed():
    fabric = pull_links(generate("mesh", ["5x5"], cas=1), 3, 0.2)
    for engine in TURN_ENGINES:
        assert prove(fabric, route(engine, fabric)).strength == "reversible"


def test_named_roots_are_the_roots():
    fabric = generate("torus", ["4x4"], cas=1)
    found = route("lturn", fabric, roots=(fabric.switch_name[5],))
    assert found.provenance.options["root"] == fabric.labels[5]
    assert prove(fabric, found).certified
