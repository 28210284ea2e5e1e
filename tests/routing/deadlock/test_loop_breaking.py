"""Check proposed changes that remove a credit loop, against all changes of one entry and a slow proof."""

from dataclasses import replace

import networkx as nx
import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from slow_proof import Walker, all_walks, prove_slowly, shortest_path_tables

from routing.deadlock.loop_breaking import break_loop
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.tables import Provenance, Routing
from routing.topologies import generate


def on_loops(graph):
    parts = nx.strongly_connected_components(graph)
    part = {vertex: number for number, members in enumerate(parts) for vertex in members}
    return sum(part[a] == part[b] for a, b in graph.edges)


def with_entry(routing, switch, lid, port):
    lft = routing.lft.copy()
    lft[switch, lid] = port
    return replace(routing, lft=lft)


def lids_by_walks(fabric, routing, here, following):
    """Return the LIDs of all requests that use two hops (switch, port, VL) in succession."""
    walks = all_walks(Walker(fabric, routing), replies=False, scope="endports")
    return {lid for (_, lid), walk in walks if (here, following) in zip(walk.hops, walk.hops[1:], strict=False)}


def single_entries_that_suffice(fabric, routing, cycle):
    """Yield all changes of one entry at an end of a dependency with one LID, after which a slow proof finds no loop."""
    for here, following in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        lids = lids_by_walks(fabric, routing, here, following)
        for switch in (here[0], following[0]) if len(lids) == 1 else ():
            for port in fabric.channels.port[fabric.channels.src == switch].tolist():
                (lid,) = lids
                slow = prove_slowly(fabric, with_entry(routing, switch, lid, port))
                if not slow.counts["undelivered"] and not on_loops(slow.requests["endports"]):
                    yield switch, lid, port


def any_tables(rng):
    """Return random shortest paths on a small fabric with cycles, on up to two VLs."""
    shapes = [("ring", ["4"]), ("ring", ["5"]), ("ring", ["6"]), ("torus", ["3x3"]), ("mesh", ["2x3"])]
    fabric = generate(*shapes[rng.integers(len(shapes))])
    vls = int(rng.integers(1, 3))
    lft = shortest_path_tables(fabric, rng)
    sl = rng.integers(0, vls, (fabric.switches, lft.shape[1])).astype(np.uint8)
    return fabric, Routing(lft, sl, np.arange(16, dtype=np.uint8) % vls, vls, vls, Provenance("random"))


@examples(40)
@given(st.integers(0, 1 << 30))
def test_a_change_removes_the_loop_and_is_as_good_as_the_best_single_entry(seed):
    fabric, routing = any_tables(np.random.default_rng(seed))
    proof = prove(fabric, routing, threads=1)
    if proof.credit_loop is None:
        return
    src = fabric.channels.src
    cycle = [(int(src[turn.channel]), turn.port, turn.vl) for turn in proof.credit_loop.turns]
    before = prove_slowly(fabric, routing)
    found = break_loop(fabric, routing, proof.credit_loop, threads=1)
    single = next(single_entries_that_suffice(fabric, routing, cycle), None)
    if found is None:
        assert single is None
        return
    after = prove_slowly(fabric, found.routing)
    graph = after.requests["endports"]
    assert not set(zip(cycle, [*cycle[1:], cycle[0]], strict=True)) <= set(graph.edges)
    assert found.before == on_loops(before.requests["endports"])
    assert found.left == on_loops(graph) < found.before
    assert found.loop_free == found.proof.certified == (found.left == 0)
    assert after.counts["undelivered"] == after.counts["looping"] == 0
    differing = np.argwhere(found.routing.lft != routing.lft)
    assert sorted(map(tuple, differing.tolist())) == sorted((one.switch, one.lid) for one in found.changes)
    for one in found.changes:
        assert int(after.hops[one.switch, one.lid]) - int(before.hops[one.switch, one.lid]) == one.hops
    assert single is None or (found.proof.certified and len(found.changes) == 1)


def test_one_entry_breaks_the_ring_of_four():
    """Every dependency of this ring has one LID, and the paths in both directions have equal lengths."""
    fabric = generate("ring", ["4"])
    routing = ENGINES["minhop"].route(fabric, EngineOptions(vls=1))
    found = break_loop(fabric, routing, prove(fabric, routing).credit_loop)
    assert found.describe(fabric) == [
        "proposed: 1 LFT entry to write; the tables then have no credit loop (proven)",
        "  sw0 LID 3: port 2 -> port 3 (0 hops more)",
    ]


def test_a_ring_of_one_direction_has_no_other_ports():
    """In a ring with tables of one direction, every detour returns to its switch."""
    fabric = generate("ring", ["5"])
    at_port, lids = fabric.channels.at_port, fabric.lids
    lft = np.full((5, len(lids)), 255, np.uint8)
    clockwise = [next(p for p in (2, 3) if fabric.channels.dst[at_port[s, p]] == (s + 1) % 5) for s in range(5)]
    for lid in np.flatnonzero(lids.switch >= 0).tolist():
        lft[:, lid] = clockwise
        lft[lids.switch[lid], lid] = lids.port[lid]
    routing = replace(ENGINES["minhop"].route(fabric, EngineOptions(vls=1)), lft=lft)
    assert break_loop(fabric, routing, prove(fabric, routing).credit_loop) is None
