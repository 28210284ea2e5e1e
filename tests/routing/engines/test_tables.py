"""Check the tables of minhop and updn on all kinds of fabrics."""

import json
from collections import Counter, defaultdict

import networkx as nx
import numpy as np
import pytest
from campaigns import some_of, without_slow
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from in_one_test import cases_in_one_test
from routing_cases import ANY_FABRIC
from slow_proof import prove_slowly
from strategies import Sketch, fabrics, pair_of_switches, random_fabric

from ibsim_fixtures.catalogue import FIXTURES
from routing.engines import ENGINES
from routing.engines.base import EngineOptions, Objective, Promise, offers_of
from routing.errors import RoutingError
from routing.fabric import NodeKind
from routing.formats.fabric_files import read_fabric
from routing.publish import verify
from routing.quality import channel_loads
from routing.topologies import generate

OBJECTIVES = st.sampled_from(list(Objective))


def distances(fabric):
    graph = nx.DiGraph(zip(fabric.channels.src.tolist(), fabric.channels.dst.tolist(), strict=True))
    graph.add_nodes_from(range(fabric.switches))
    return dict(nx.all_pairs_shortest_path_length(graph))


def only_known_parts(fabric, routing):
    """Return whether an entry is 255 exactly if no port has the LID, or if the LID is in another connected part."""
    part = fabric.component
    own_switch = np.where(fabric.lids.switch >= 0, np.append(part, -1)[fabric.lids.switch], -1)
    return np.array_equal(routing.lft != 255, part[:, None] == own_switch[None, :])


@examples(60, suppress_health_check=[HealthCheck.too_slow])
@given(fabrics(max_switches=16, connected=False, max_lmc=3), OBJECTIVES, st.integers(0, 99))
def test_every_path_of_minhop_is_a_shortest(fabric, objective, seed):
    engine = ENGINES["minhop"]
    routing = engine.route(fabric, EngineOptions(objective=objective, seed=seed, passes=2))
    proof = verify(fabric, routing, engine).proof
    hops = distances(fabric)
    for lid, own_switch in enumerate(fabric.lids.switch.tolist()):
        for switch in range(fabric.switches if own_switch >= 0 else 0):
            assert proof.hops[switch, lid] == hops[switch].get(own_switch, 255)
    assert only_known_parts(fabric, routing)


VLS = st.sampled_from(["auto", "min", 1, 2, 3, 4, 5, 6, 7, 8])


@examples(50, suppress_health_check=[HealthCheck.too_slow])
@given(fabrics(max_switches=14, connected=False, max_lmc=3), VLS, st.integers(0, 99))
def test_updn_is_certified_on_everything(fabric, vls, seed):
    engine = ENGINES["updn"]
    routing = engine.route(fabric, EngineOptions(vls=vls, seed=seed, passes=1, effort=0.001))
    proof = verify(fabric, routing, engine).proof
    assert proof.certified
    assert only_known_parts(fabric, routing)
    if routing.vls_needed == 1:
        assert proof.strength == "reversible"


@examples(25, suppress_health_check=[HealthCheck.too_slow])
@given(fabrics(max_switches=8, max_cas=2, connected=False), VLS)
def test_no_channel_waits_for_itself_by_walking_every_packet_of_updn(fabric, vls):
    """The check uses only LFT, SL and SL2VL tables with networkx, and nothing of the engine or the proof."""
    routing = ENGINES["updn"].route(fabric, EngineOptions(vls=vls, passes=1, effort=0.001))
    slow = prove_slowly(fabric, routing)
    assert nx.is_directed_acyclic_graph(slow.requests["all"])
    if routing.vls_needed == 1:
        assert nx.is_directed_acyclic_graph(slow.both["all"])
    assert slow.counts["undelivered"] == slow.dropped == 0


CASES = [(engine, name) for engine in ANY_FABRIC for name in FIXTURES]
# The engine auto runs all its candidates.  On these fixtures, this takes half a second or more.
SLOW = [
    ("auto", name)
    for name in ("cascade-3", "dragonfly-4-2-2", "dragonfly-faults", "kautz-2-3", "random-16-4", "random-24-3-faults",
                 "slimfly-3")
]  # fmt: skip


# In every run, each engine takes a seventh of the fixtures, and each fixture has a seventh of the engines.
@pytest.mark.parametrize(("engine", "name"), some_of(CASES, [case for case in CASES[::7] if case not in SLOW]))
def test_every_fixture(engine, name):
    fabric = read_fabric(FIXTURES[name].path)
    counts = [1, 4] if engine in ("minhop", "sssp", "updn") else ["min", 8]
    # Successive cases have different numbers of VLs.
    vls = counts[CASES.index((engine, name)) % 2]
    routing = ENGINES[engine].route(fabric, EngineOptions(vls=vls, effort=0.05))
    proof = verify(fabric, routing, ENGINES[engine]).proof
    assert only_known_parts(fabric, routing)
    assert ENGINES[engine].promise is Promise.NONE or proof.certified


@cases_in_one_test("name", FIXTURES)
def test_ftree_routes_every_fixture_that_is_a_tree(name):
    fabric, engine = read_fabric(FIXTURES[name].path), ENGINES["ftree"]
    try:
        routing = engine.route(fabric, EngineOptions())
    except RoutingError as refusal:
        assert not name.startswith(("tree", "xgft", "kary"))
        assert "not a tree" in str(refusal)
    else:
        assert verify(fabric, routing, engine).proof.strength == "reversible"


def test_layers_are_used_where_they_help():
    """Layers with separate orders on 4 VLs carry more traffic than a single order does."""
    fabric = generate("torus", ["5x5"], cas=2)
    one, four = (ENGINES["updn"].route(fabric, EngineOptions(vls=vls)) for vls in (1, 4))
    assert four.vls_needed == 4
    assert channel_loads(fabric, four).max() < channel_loads(fabric, one).max()
    assert verify(fabric, four, ENGINES["updn"]).proof.strength == "forward"


# The next tests have LIDs with an LMC.


def next_switches(fabric, routing, switch, lids):
    channel = fabric.channels.at_port[switch, routing.lft[switch, lids]]
    return fabric.channels.dst[channel].tolist()


def test_paths_of_a_port_leave_by_as_many_switches_as_there_are():
    """With minhop, the 2^LMC paths use all nearer switches equally often."""
    fabric = generate("kary-ntree", ["4", "2"], lmc=2)
    routing = ENGINES["minhop"].route(fabric, EngineOptions())
    hops, seen = distances(fabric), 0
    for endport, own_switch in enumerate(fabric.endport_switch.tolist()):
        lids = int(fabric.endport_lid[endport]) + np.arange(4)
        for switch in np.flatnonzero(fabric.terminals_at).tolist():
            nearer = {
                v for v in set(_neighbours(fabric, switch)) if hops[v].get(own_switch, 99) < hops[switch][own_switch]
            }
            if switch != own_switch:
                assert Counter(next_switches(fabric, routing, switch, lids)) == dict.fromkeys(nearer, 1)
                seen += 1
    assert seen == 16 * 3


def _neighbours(fabric, switch):
    return fabric.channels.dst[fabric.channels.first[switch] : fabric.channels.first[switch + 1]].tolist()


@examples(25)
@given(st.integers(0, 1000), st.integers(1, 3), st.integers(0, 4))
def test_paths_of_a_port_are_spread_evenly_over_next_switches(seed, lmc, passes):
    fabric = random_fabric(seed, switches=10, degree=5, cas=1, parallel=2, lmc=lmc)
    routing = ENGINES["minhop"].route(fabric, EngineOptions(passes=passes))
    hops = distances(fabric)
    for endport, own_switch in enumerate(fabric.endport_switch.tolist()):
        lids = int(fabric.endport_lid[endport]) + np.arange(1 << lmc)
        for switch in set(range(fabric.switches)) - {own_switch}:
            nearer = {v for v in _neighbours(fabric, switch) if hops[v][own_switch] < hops[switch][own_switch]}
            taken = Counter(next_switches(fabric, routing, switch, lids))
            counts = [taken[v] for v in nearer]
            assert max(counts) - min(counts) <= 1


def test_updn_spreads_the_paths_of_a_port_too():
    """The paths use at least three of the four spines, as far as the up/down rule allows."""
    fabric = generate("kary-ntree", ["4", "2"], lmc=2)
    routing = ENGINES["updn"].route(fabric, EngineOptions())
    counts = Counter()
    for endport, own_switch in enumerate(fabric.endport_switch.tolist()):
        lids = int(fabric.endport_lid[endport]) + np.arange(4)
        for leaf in set(np.flatnonzero(fabric.terminals_at).tolist()) - {own_switch}:
            counts[len(set(next_switches(fabric, routing, leaf, lids)))] += 1
    assert counts[4] >= 44 and counts[3] == 48 - counts[4]


def test_all_paths_of_a_port_have_one_sl():
    fabric = random_fabric(6, switches=8, cas=2, lmc=2)
    for engine in (ENGINES["minhop"], ENGINES["updn"]):
        sl = engine.route(fabric, EngineOptions(vls=4)).sl
        assert all(len(set(sl[int(base) : int(base) + 4])) == 1 for base in fabric.endport_lid)


# The next tests have different speeds and parallel links.


@pytest.mark.parametrize("engine", [name for name in ENGINES if name not in ("dragonfly", "chain")])
def test_parallel_links_carry_the_same(engine):
    fabric = pair_of_switches([(4, 2.5)] * 4, cas=8)
    assert channel_loads(fabric, ENGINES[engine].route(fabric, EngineOptions())).tolist() == [16.0] * 8


@cases_in_one_test("engine", [*ANY_FABRIC, "dor", "torus-2qos"])
@cases_in_one_test("links", [[(4, 2.5), (4, 10.0)], [(1, 5.0), (4, 5.0)], [(4, 2.5), (4, 2.5), (12, 2.5)]], ids=str)
def test_a_link_carries_in_proportion_to_its_rate(engine, links):
    fabric = pair_of_switches(links, cas=10)
    loads = channel_loads(fabric, ENGINES[engine].route(fabric, EngineOptions()))
    assert (loads == 100 * fabric.channels.capacity / (fabric.channels.capacity.sum() / 2)).all()


def test_a_fast_path_round_is_worth_more_than_a_slow_one():
    """Two paths of equal length lead through a fast and a slow spine, whose rates have the ratio 9 to 1."""
    sketch = Sketch("spines")
    leaves = [sketch.add(NodeKind.SWITCH) for _ in range(4)]
    for width in (1, 9):
        spine = sketch.add(NodeKind.SWITCH)
        for leaf in leaves:
            sketch.cable(leaf, spine, width)
    for leaf in leaves:
        for _ in range(10):
            sketch.cable(sketch.add(NodeKind.CA), leaf)
    fabric = sketch.build()
    for engine, roots in (("minhop", ()), ("updn", ("sw5", "sw4"))):
        loads = channel_loads(fabric, ENGINES[engine].route(fabric, EngineOptions(vls=1, roots=roots)))
        by_rate = defaultdict(list)
        for rate, load in zip(fabric.channels.capacity.tolist(), loads.tolist(), strict=True):
            by_rate[rate].append(load)
        slow, fast = by_rate[min(by_rate)], by_rate[max(by_rate)]
        assert max(slow) <= 40 and max(fast) <= 280  # the loads would be 30 and 270, but a flow of 10 cannot be split


# The next test checks the provenance.


# The engine auto routes with all engines twice, which takes as long as all other cases.
@pytest.mark.parametrize("engine", without_slow(ANY_FABRIC, ["auto"]))
def test_provenance_says_all_that_makes_the_tables_again(engine, same_tables):
    fabric = random_fabric(4, switches=10)
    objective = Objective.BISECTION if "objective" in offers_of(ENGINES[engine]).options else Objective.ALLTOALL
    options = EngineOptions(vls=3, objective=objective, passes=2, effort=0.05, seed=5, threads=1)
    routing = ENGINES[engine].route(fabric, options)
    reported = routing.provenance
    assert reported.engine == engine and reported.fabric_digest == fabric.digest and set(reported.versions) == {"ibnue"}
    assert all(seconds >= 0.0 for seconds in reported.seconds.values()) and reported.seconds
    assert json.loads(json.dumps([reported.options, reported.versions, reported.seconds]))[0] == reported.options
    known = {name: reported.options[name] for name in ("vls", "passes", "effort", "seed", "partition")}
    again = EngineOptions(objective=Objective(reported.options["objective"]), **known)
    assert same_tables(ENGINES[engine].route(fabric, again), routing)
