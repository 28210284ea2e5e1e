"""Check Down*/Up* and MUD: the turn rule along every path, the roots, and the network of each destination."""

import networkx as nx
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from slow_proof import prove_slowly
from strategies import fabrics, random_fabric

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.engines.dnup import down_first
from routing.errors import OptionError
from routing.quality import measure
from routing.topologies import generate


def route(engine, fabric, **options):
    return ENGINES[engine].route(fabric, EngineOptions(**{"effort": 0.1, **options}))


def paths(fabric, routing, lid):
    """Yield the switches on the path from every switch to a LID."""
    channels = fabric.channels
    for switch in range(fabric.switches):
        found = [switch]
        while found[-1] != fabric.lids.switch[lid]:
            found.append(int(channels.dst[channels.at_port[found[-1], routing.lft[found[-1], lid]]]))
        yield found


@examples(40)
@given(
    fabrics(connected=False, min_switches=0, max_switches=12, max_cas=2),
    st.sampled_from(["dnup", "mud"]),
    st.sampled_from(["auto", "min", 3]),
)
def test_random_and_broken_fabrics_are_certified(fabric, engine, vls):
    routing = route(engine, fabric, vls=vls)
    proof = prove(fabric, routing)
    assert proof.complete and proof.certified and proof.scope == "all"
    assert proof.strength == "reversible" or (engine == "mud" and vls != "min")


@pytest.mark.parametrize("engine", ["dnup", "mud"])
@pytest.mark.parametrize("seed", range(3))
def test_the_slow_proof_agrees(engine, seed):
    fabric = random_fabric(seed, 9, 4, lmc=seed % 2)
    slow = prove_slowly(fabric, route(engine, fabric, vls=3))
    assert nx.is_directed_acyclic_graph(slow.requests["all"]) and not slow.counts["undelivered"]


def test_down_up_leads_away_from_the_root_first():
    """On a grid, the distance from the corner leaves no pair without a path."""
    fabric = generate("mesh", ["4x4"], cas=1)
    distance = np.array(fabric.graph.distances())
    corner = int(np.argmin(np.diff(fabric.channels.first)))
    routing = route("dnup", fabric, roots=(fabric.switch_name[corner],), vls=1)
    assert routing.provenance.options["roots"] == [fabric.labels[corner]]
    position = down_first(fabric, [corner])
    assert position[corner] == fabric.switches - 1
    for lid in fabric.endport_lid.tolist():
        for path in paths(fabric, routing, lid):
            steps = np.sign(np.diff(distance[corner, path]))
            # no path turns from a step towards the root to a step away from it
            assert not ((steps[:-1] < 0) & (steps[1:] > 0)).any()


def test_every_pair_has_a_path_where_ranks_alone_leave_none():
    """Down from the centre of a line, both ends are dead ends."""
    fabric = generate("mesh", ["5"], cas=1)
    proof = prove(fabric, route("dnup", fabric, roots=(fabric.switch_name[2],), vls=1))
    assert proof.complete and proof.strength == "reversible"


def test_each_network_has_its_own_root_and_the_sl_follows_from_the_destination():
    fabric = generate("torus", ["4x4"], cas=2, lmc=1)
    routing = route("mud", fabric, vls=4)
    roots = routing.provenance.options["roots"]
    assert len(set(roots)) == 4 == routing.vls_needed and routing.sl.ndim == 1
    senders = np.bincount(routing.sl[fabric.endport_lid], minlength=4)
    assert senders.max() <= 2 * senders.min()
    block = fabric.endport_lid[:, None] + np.arange(2)
    assert (routing.sl[block] == routing.sl[block[:, :1]]).all()


def test_named_roots_are_the_roots_and_missing_ones_an_error():
    fabric = generate("torus", ["4x4"], cas=1)
    names = fabric.switch_name[3], fabric.switch_name[9]
    routing = route("mud", fabric, vls=4, roots=names)
    assert routing.provenance.options["roots"] == [fabric.labels[3], fabric.labels[9]]
    assert set(np.unique(routing.sl[fabric.endport_lid])) == {0, 1}
    with pytest.raises(OptionError, match="no switch is named"):
        route("mud", fabric, roots=("nowhere",))
    with pytest.raises(OptionError, match="mud cannot make replies safe"):
        route("mud", fabric, reversible=True)


@pytest.mark.parametrize(
    ("kind", "arguments", "least"),
    [("torus", ["6x5x5"], 1.2), ("kautz", ["4", "3"], 1.1), ("dragonfly", ["4", "2", "2"], 1.1)],
)
def test_four_networks_carry_more_than_one_order(kind, arguments, least):
    fabric = generate(kind, arguments, cas=1)
    updn, mud = (
        measure(fabric, route(engine, fabric, vls=vls), bisections=1, shifts=0).all_to_all
        for engine, vls in (("updn", 1), ("mud", 4))
    )
    assert mud >= least * updn


@pytest.mark.parametrize("engine", ["dnup", "mud"])
def test_threads_do_not_change_the_tables(engine):
    fabric = random_fabric(5, 14, 4)
    one, two = (route(engine, fabric, vls=2, threads=threads) for threads in (1, 2))
    assert np.array_equal(one.lft, two.lft) and np.array_equal(one.sl, two.sl)
