import networkx
import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics

from routing.cdg.acyclic import Cdg

VLS = 2
CASES = fabrics(connected=False, min_switches=1, max_switches=8), st.integers(0, 1000)


def some_cdg(fabric, seed, share=1.0):
    """Return a CDG with random edges on two VLs.  Numbers that stand for no edge are unused."""
    edges, rng = fabric.channels.edges, np.random.default_rng(seed)
    masks = np.zeros(edges.count, np.uint16)
    masks[edges.numbers()] = rng.integers(0, 1 << VLS, len(edges)) * (rng.random(len(edges)) < share)
    return Cdg(fabric, masks)


def turns(cdg):
    """Return the mask of each edge by a name that does not depend on the numbering: a switch and two out-ports."""
    channels, edges = cdg.fabric.channels, cdg.fabric.channels.edges
    before, after = edges.channels()
    names = zip(
        channels.src[before].tolist(), channels.port[before].tolist(), channels.port[after].tolist(), strict=True
    )
    return dict(zip(names, cdg.masks[edges.numbers()].tolist(), strict=True))


def as_networkx(cdg, vl):
    before, after = cdg.fabric.channels.edges.channels()
    used = cdg.masks[cdg.fabric.channels.edges.numbers()] >> vl & 1 > 0
    return networkx.DiGraph(zip(before[used].tolist(), after[used].tolist(), strict=True))


def pulled(fabric, seed, most=4):
    links, rng = np.unique(fabric.channels.link), np.random.default_rng(seed)
    return fabric.without_links(rng.permutation(links)[: rng.integers(0, most)].tolist())


@examples(60)
@given(*CASES)
def test_masks_follow_their_turns(fabric, seed):
    less, other, cdg = pulled(fabric, seed), pulled(fabric, seed + 1), some_cdg(fabric, seed)
    whole, fewer = turns(cdg), cdg.onto(less)
    assert cdg.onto(fabric) is cdg
    assert turns(fewer) == {turn: whole[turn] for turn in turns(fewer)}
    for there in (fabric, other):
        got, had = turns(fewer.onto(there)), turns(fewer)
        assert got == {turn: had.get(turn, 0) for turn in got}


@examples(40)
@given(*CASES)
def test_dependencies_among_some_channels(fabric, seed):
    cdg, rng = some_cdg(fabric, seed), np.random.default_rng(seed)
    left = np.flatnonzero(rng.random(len(fabric.channels)) < 0.7).astype(np.int32)
    found = cdg.among(left)
    for vl in range(VLS):
        assert set(as_networkx(found, vl).edges) == set(as_networkx(cdg, vl).subgraph(left.tolist()).edges)


@examples(80)
@given(*CASES, st.sampled_from([0.05, 0.2, 0.6]))
def test_an_order_is_found_where_there_is_no_cycle(fabric, seed, share):
    cdg = some_cdg(fabric, seed, share) | some_cdg(fabric, seed + 1, share)
    graphs = [as_networkx(cdg, vl) for vl in range(VLS)]
    found = cdg.sorted(VLS, threads=1)
    assert (found is not None) == all(networkx.is_directed_acyclic_graph(graph) for graph in graphs)
    if found is not None:
        assert found.follows(found.order)
        assert all(found.order[vl, a] < found.order[vl, b] for vl, graph in enumerate(graphs) for a, b in graph.edges)
    order = np.array([np.random.default_rng(seed + k).permutation(len(fabric.channels)) for k in range(VLS)], np.int32)
    forward = all(order[vl, a] < order[vl, b] for vl, graph in enumerate(graphs) for a, b in graph.edges)
    assert cdg.follows(order) == forward


@examples(60)
@given(*CASES, st.sampled_from([0.05, 0.2]))
def test_an_order_of_the_switches_gives_one_of_the_channels(fabric, seed, share):
    cdg = some_cdg(fabric, seed, share)
    position, found = cdg.switch_order(), cdg.sorted(VLS, threads=1)
    if position is not None:
        assert cdg.follows_switches(position)
    if position is not None and found is not None:
        along = found.along(position)
        assert along.follows(along.order)
        assert along.position is position
