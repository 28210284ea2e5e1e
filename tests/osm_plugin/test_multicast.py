import re
import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from campaigns import some_of
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics, random_fabric

from osm_plugin.multicast import choose_tree, multicast_tree
from routing.deadlock.multicast import group_edges, loop_with
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import NotEnoughVLs
from routing.topologies import generate

JOIN = Path(__file__).with_name("join_multicast.py")


def tree_of(fabric, engine="updn"):
    routing = ENGINES[engine].route(fabric, EngineOptions(vls=1, passes=1))
    return routing, multicast_tree(fabric, routing, prove(fabric, routing).hops)


def turns_of_routes(fabric, routing):
    """Return the pairs of channels that unicast packets take in direct succession."""
    channels, turns = fabric.channels, set()
    for lid in np.flatnonzero(fabric.lids.switch >= 0).tolist():
        for start in range(fabric.switches):
            before, row = -1, start
            for _ in range(fabric.switches):
                channel = int(channels.at_port[row, routing.lft[row, lid]])
                if channel < 0:
                    break
                if before >= 0:
                    turns.add((before, channel))
                before, row = channel, int(channels.dst[channel])
    return turns


def turns_of_tree(fabric, tree):
    """Return the pairs of channels that a packet on the tree may take in direct succession, for any sender."""
    channels = fabric.channels
    used = {}
    for row, up in enumerate(tree.parent.tolist()):
        if up >= 0:
            used.setdefault(row, []).append(int(channels.at_port[row, tree.up_port[row]]))
            used.setdefault(up, []).append(int(channels.at_port[up, tree.down_port[row]]))
    into = [(int(channels.dst[c]), c) for path in used.values() for c in path]
    return {(c, d) for row, c in into for d in used.get(row, []) if d != int(channels.reverse[c])}


def turns_on_vl(fabric, routing, vl):
    """Return the pairs of channels that unicast packets take in direct succession on a VL, from all switches with
    CAs.
    """
    channels, turns = fabric.channels, set()
    senders = sorted({int(switch) for switch in fabric.endport_switch.tolist() if switch >= 0})
    for lid in np.flatnonzero(fabric.lids.switch >= 0).tolist():
        for start in senders if fabric.lids.endport[lid] < 0 else range(fabric.switches):
            sl = routing.sl[lid] if routing.sl.ndim == 1 else routing.sl[start, lid]
            if routing.sl2vl[sl] != vl:
                continue
            before, row = -1, start
            while (channel := int(channels.at_port[row, routing.lft[row, lid]])) >= 0:
                if before >= 0:
                    turns.add((before, channel))
                before, row = channel, int(channels.dst[channel])
    return turns


@examples(40)
@given(
    fabric=fabrics(min_switches=3),
    engine=st.sampled_from(["nue", "dfsssp", "lash", "minhop"]),
    vls=st.integers(1, 3),
    first=st.integers(0, 1),
)
def test_a_certified_tree_closes_no_loop_with_unicast(fabric, engine, vls, first):
    try:
        routing = ENGINES[engine].route(fabric, EngineOptions(vls=vls, first_vl=first, passes=0))
    except NotEnoughVLs:
        return
    proof = prove(fabric, routing)
    choice = choose_tree(fabric, routing, proof)
    assert (choice.tree.parent < 0).sum() == fabric.component.max() + 1
    together = turns_on_vl(fabric, routing, 0) | turns_of_tree(fabric, choice.tree)
    if choice.certified:
        assert nx.is_directed_acyclic_graph(nx.DiGraph(together))
    if first == 1 and proof.cdg is not None:
        assert choice.certified  # no unicast packet is on VL 0
    edges = group_edges(fabric, choice.tree.links(fabric))
    if proof.cdg is not None and not choice.certified:
        assert not nx.is_directed_acyclic_graph(nx.DiGraph(together))
        assert loop_with(proof.cdg, edges, 0)


@pytest.mark.parametrize("engine", ["updn", "nue", "dfsssp", "lash"])
@pytest.mark.parametrize("words", [("torus", ["4x4x4"]), ("kautz", ["3", "2"]), ("kary-ntree", ["4", "3"])])
def test_multicast_is_proven_with_unicast_on_usual_fabrics(engine, words):
    fabric = generate(words[0], words[1])
    routing = ENGINES[engine].route(fabric, EngineOptions(vls=8, effort=0.1))
    choice = choose_tree(fabric, routing, prove(fabric, routing))
    assert choice.certified
    assert choice.describe() == "multicast on SL 0 included"


def test_a_named_root_stays_the_root():
    fabric = generate("torus", ["4x4"], cas=1)
    routing = ENGINES["dfsssp"].route(fabric, EngineOptions(vls=8, effort=0.1))
    guid = int(fabric.switch_guid[5])
    choice = choose_tree(fabric, routing, prove(fabric, routing), (guid,))
    assert np.flatnonzero(choice.tree.parent < 0).tolist() == [5]


@examples(60)
@given(fabric=fabrics(connected=False))
def test_multicast_trees_use_real_cables_and_span_every_part(fabric):
    _, tree = tree_of(fabric)
    graph = nx.Graph()
    graph.add_nodes_from(range(fabric.switches))
    channels = fabric.channels
    for row, up in enumerate(tree.parent.tolist()):
        if up < 0:
            assert tree.up_port[row] == tree.down_port[row] == 255
            continue
        channel = int(channels.at_port[row, tree.up_port[row]])
        assert (channels.dst[channel], channels.dst_port[channel]) == (up, tree.down_port[row])
        graph.add_edge(row, up)
    parts = len(set(fabric.component.tolist()))
    assert nx.is_forest(graph) and nx.number_connected_components(graph) == parts


@examples(25)
@given(fabric=fabrics(min_switches=3))
def test_beside_up_down_multicast_closes_no_credit_loop(fabric):
    routing, tree = tree_of(fabric)
    turns = turns_of_routes(fabric, routing) | turns_of_tree(fabric, tree)
    assert nx.is_directed_acyclic_graph(nx.DiGraph(turns))


def test_without_an_order_the_root_is_in_the_middle():
    fabric = random_fabric(8, switches=15, degree=3)
    _, tree = tree_of(fabric, "minhop")
    (root,) = np.flatnonzero(tree.parent < 0).tolist()
    graph = nx.Graph(zip(fabric.channels.src.tolist(), fabric.channels.dst.tolist(), strict=True))
    assert nx.eccentricity(graph, root) == nx.radius(graph)


def join(lab, device, port_guid, sm_lid):
    subprocess.run([sys.executable, JOIN, hex(port_guid), str(sm_lid)], env=lab.ibsim.environment(device), check=True)


def groups(lab):
    """Return the ports by switch GUID of each multicast LID, from OpenSM's dump."""
    found, switch = {}, 0
    for line in (lab.opensm.folder / "opensm.mcfdbs").read_text().splitlines():
        if head := re.match(r"Switch 0x([0-9a-f]+)", line):
            switch = int(head[1], 16)
        elif row := re.match(r"0x([0-9A-F]+) :(.*)", line):
            found.setdefault(int(row[1], 16), {})[switch] = {int(port, 16) for port in row[2].split()}
    return found


@pytest.mark.lab
@pytest.mark.parametrize("count", some_of([1, 2, 6], [6]))
def test_a_live_group_is_a_tree_whose_leaves_are_its_members(live, nets, count):
    with live(nets("torus", "4x4", cas=2), "ibnue-updn,no_fallback") as lab:
        fabric = lab.fabric()
        sm_lid = int(re.search(r"sm lid (\d+)", lab.ibsim.run("sminfo"))[1])
        members = list(range(1, fabric.endports, 5))[:count]
        for endport in members:
            join(lab, fabric.endport_name[endport], int(fabric.endport_guid[endport]), sm_lid)
        lab.opensm.resweep()
        (ports,) = groups(lab).values()
        row_of = {int(guid): row for row, guid in enumerate(fabric.switch_guid.tolist())}
        wanted = {(int(fabric.endport_switch[e]), int(fabric.endport_switch_port[e])) for e in members}
        edges = set()
        for guid, out in ports.items():
            for port in out:
                channel = int(fabric.channels.at_port[row_of[guid], port])
                if channel < 0:
                    wanted.remove((row_of[guid], port))
                else:
                    edges.add(channel)
        assert not wanted
        assert {int(fabric.channels.reverse[channel]) for channel in edges} == edges
        graph = nx.Graph([(int(fabric.channels.src[c]), int(fabric.channels.dst[c])) for c in edges])
        graph.add_nodes_from(row_of[guid] for guid in ports)
        assert nx.is_tree(graph) and len(edges) == 2 * (len(graph) - 1)
        leaves = {row for row, degree in graph.degree() if degree <= 1}
        assert leaves <= {int(fabric.endport_switch[e]) for e in members}
        assert lab.opensm.errors == []
