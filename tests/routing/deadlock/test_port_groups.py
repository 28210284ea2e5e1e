from itertools import pairwise, product

import networkx as nx
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics, ring_fabric

from routing.deadlock.port_groups import compute_port_groups, prove_port_groups
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import RoutingError, TableError
from routing.port_groups import PortGroups, Rule
from routing.topologies import from_words


def routed(fabric, engine="nue", **options):
    routing = ENGINES[engine].route(fabric, EngineOptions(**options))
    return routing, prove(fabric, routing)


def packets(fabric, routing, proof):
    """Yield (switch, LID, VL) of every packet that enters the fabric, for each pair of LIDs."""
    lids, switches = fabric.lids, fabric.switches
    present = np.flatnonzero(lids.switch >= 0).tolist()
    for source, target in product(present, present):
        if proof.scope == "endports" and lids.port[source] == 0 == lids.port[target]:
            continue
        row = int(lids.switch[source]) if len(routing.sl) == switches else source
        sl = routing.sl[target] if routing.sl.ndim == 1 else routing.sl[row, target]
        yield int(lids.switch[source]), target, int(routing.sl2vl[sl])
        if proof.strength == "reversible":
            yield int(lids.switch[target]), source, int(routing.sl2vl[sl])


def walk(groups, proof):
    """Return the dependencies of all packets, hop by hop, and the longest paths from a group for each switch and
    LID.
    """
    fabric, routing = groups.fabric, groups.routing
    channels, graph, longest = fabric.channels, nx.DiGraph(), {}
    member = {int(lid): groups.channels(row) for row, lid in enumerate(groups.lids)}
    entered = {entry for entry in packets(fabric, routing, proof) if proof.hops[entry[0], entry[1]] != 255}
    todo, seen = [(s, lid, vl, None, 0) for s, lid, vl in entered], set()
    while todo:
        switch, lid, vl, came, hops = todo.pop()
        longest[switch, lid] = max(hops, longest.get((switch, lid), 0))
        if switch == fabric.lids.switch[lid]:
            continue
        table = int(channels.at_port[switch, routing.lft[switch, lid]])
        ports = [c for c in range(channels.first[switch], channels.first[switch + 1]) if member[lid][c]]
        assert table in ports
        for c in ports:
            if came is not None and (groups.rule is Rule.COMMIT or c == table):
                graph.add_edge((came, vl), (c, vl))
            state = (int(channels.dst[c]), lid, vl, c)
            if state not in seen:
                seen.add(state)
                todo.append((*state, hops + 1))
    return graph


@examples(40)
@given(
    fabrics(max_switches=9, max_lmc=1, connected=False),
    st.sampled_from([("nue", 1), ("nue", 3), ("updn", 2), ("dfsssp", 8), ("lash", 8)]),
    st.sampled_from(Rule),
)
def test_groups_are_acyclic_for_every_packet_and_lead_nearer(fabric, engine, rule):
    routing, proof = routed(fabric, engine[0], vls=engine[1])
    groups = compute_port_groups(fabric, routing, proof, rule)
    found = prove_port_groups(groups, proof)
    assert found.certified
    graph = walk(groups, proof)
    assert nx.is_directed_acyclic_graph(graph)
    before, after = fabric.channels.edges.channels()
    masks = found.trace.masks[fabric.channels.edges.numbers()]
    used = [(e, vl) for e in np.flatnonzero(masks).tolist() for vl in range(15) if masks[e] >> vl & 1]
    edges = {((int(before[e]), vl), (int(after[e]), vl)) for e, vl in used}
    assert edges == set(graph.edges)
    channels = fabric.channels
    for row, lid in enumerate(groups.lids.tolist()):
        for c in np.flatnonzero(groups.channels(row)).tolist():
            assert proof.hops[channels.dst[c], lid] < proof.hops[channels.src[c], lid]


def test_all_shortest_paths_of_a_tree_are_taken():
    fabric = from_words("kary-ntree", ["4,3"])
    routing, proof = routed(fabric, "updn")
    trace = prove_port_groups(compute_port_groups(fabric, routing, proof), proof).trace
    channels, lids = fabric.channels, fabric.lids
    distance = np.array(fabric.graph.distances())
    nearer = sum(
        int(distance[channels.dst[c], lids.switch[lid]] < distance[channels.src[c], lids.switch[lid]])
        for lid in np.flatnonzero(lids.endport >= 0)
        for c in range(len(channels))
    )
    assert trace.ports == nearer + fabric.switches * (fabric.switches - 1)  # LIDs of switches keep one port


def everything(groups):
    """Return groups of all channels that lead nearer to the LID, whatever their dependencies."""
    fabric, member = groups.fabric, np.zeros((len(groups.lids), len(groups.fabric.channels)), bool)
    distance = np.array(fabric.graph.distances())
    for row, lid in enumerate(groups.lids.tolist()):
        goal = fabric.lids.switch[lid]
        member[row] = distance[fabric.channels.dst, goal] < distance[fabric.channels.src, goal]
    return PortGroups(fabric, groups.routing, groups.rule, groups.lids, np.packbits(member, axis=1, bitorder="little"))


def test_a_loop_is_found():
    fabric = from_words("torus", ["4x4"])
    routing, proof = routed(fabric, "nue", vls=1)
    found = prove_port_groups(everything(compute_port_groups(fabric, routing, proof)), proof)
    assert not found.certified
    assert found.cdg is None
    (first, vl), *rest = found.cycle
    path = [first, *(c for c, _ in rest), first]
    channels = fabric.channels
    assert vl == 0
    assert len(path) > 2
    assert all(channels.dst[a] == channels.src[b] for a, b in pairwise(path))


@pytest.mark.parametrize(
    "change, fault",
    [(lambda member: member & 0, "dead_ends"), (lambda member: member | 255, "circulating")],
)
def test_faults_of_groups_are_counted(change, fault):
    fabric = ring_fabric(4, cas=1)
    routing, proof = routed(fabric, "updn")
    groups = compute_port_groups(fabric, routing, proof)
    found = prove_port_groups(PortGroups(fabric, routing, groups.rule, groups.lids, change(groups.member)), proof)
    assert getattr(found.trace, fault) > 0
    assert found.trace.first_fault is not None
    assert not found.certified


def test_groups_without_the_port_of_the_table_are_counted():
    fabric = from_words("torus", ["4x4"])
    routing, proof = routed(fabric, "updn")
    groups = compute_port_groups(fabric, routing, proof)
    row = int(np.flatnonzero(fabric.lids.endport[groups.lids] >= 0)[0])
    channels, lid = fabric.channels, int(groups.lids[row])
    member = groups.member.copy()
    for switch in range(fabric.switches):
        c = channels.at_port[switch, routing.lft[switch, lid]]
        if c >= 0 and groups.channels(row)[channels.first[switch] : channels.first[switch + 1]].sum() > 1:
            member[row, c // 8] &= ~np.uint8(1 << c % 8)
    found = prove_port_groups(PortGroups(fabric, routing, groups.rule, groups.lids, member), proof)
    assert found.trace.without_table > 0
    assert not found.certified


def test_result_does_not_depend_on_threads():
    fabric = from_words("dragonfly", ["4,2,2,5"])
    routing, proof = routed(fabric, "nue", vls=4)
    groups = compute_port_groups(fabric, routing, proof)
    one, four = (prove_port_groups(groups, proof, threads=threads).trace for threads in (1, 4))
    assert (one.masks == four.masks).all()
    assert (one.ports, one.choices) == (four.ports, four.choices)


def test_tables_with_a_loop_or_with_vls_by_port_are_refused():
    fabric = from_words("torus", ["5x5"])
    with pytest.raises(RoutingError, match="credit loop"):
        compute_port_groups(fabric, *routed(fabric, "minhop"))
    with pytest.raises(TableError, match="SL2VL tables differ"):
        compute_port_groups(fabric, *routed(fabric, "torus-2qos", vls=2))
