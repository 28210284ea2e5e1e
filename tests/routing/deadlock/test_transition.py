from dataclasses import replace
from functools import cache
from itertools import combinations, compress, pairwise, permutations, product

import networkx as nx
import numpy as np
import pytest
from examples import examples
from ghosts import NEW_ORDER, OLD_ORDER, ring, up_down
from hypothesis import assume, given
from slow_mixed import transition_slowly, transitions

from routing.cdg.graph import DependencyGraph
from routing.cdg.trace import dependency_graph
from routing.deadlock.double_scheme import double_scheme
from routing.deadlock.mixed import Mixture
from routing.deadlock.proof import prove
from routing.deadlock.transition import prove_transition
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.reroute.installed import installed
from routing.tables import Routing, identity_sl2vl
from routing.topologies import generate


@pytest.fixture(scope="module", params=[0, 1], ids=["one LID", "two LIDs"])
def ghosts(request):
    fabric = ring(request.param)
    return fabric, up_down(fabric, OLD_ORDER), up_down(fabric, NEW_ORDER)


def test_ghost_case_is_unsafe_in_any_order(ghosts):
    fabric, old, new = ghosts
    assert prove(fabric, old).certified
    assert prove(fabric, new).certified
    found = prove_transition(fabric, old, new)
    assert found.verdict != "any-order"
    assert found.certificate is None
    assert len(found.loop) == 4
    assert not found.loop.looping
    tables = {turn.entry for turn in found.loop.turns} | {turn.following for turn in found.loop.turns}
    assert {"old", "new"} <= tables


def test_ghost_case_has_six_dependencies_each_and_two_loops_together():
    fabric = ring(1)
    old, new = (up_down(fabric, rank) for rank in (OLD_ORDER, NEW_ORDER))
    names = [int(name[2:]) for name in fabric.switch_name]

    def edges(routing):
        graph = dependency_graph(fabric, routing, switch_pairs=False).to_networkx()
        path = [f"{names[a]}{names[b]}" for a, b in zip(fabric.channels.src, fabric.channels.dst, strict=True)]
        return {(path[a], path[b]) for (a, _), (b, _) in graph.edges}

    assert len(edges(old)) == len(edges(new)) == 6
    cycles = nx.simple_cycles(nx.DiGraph(edges(old) | edges(new)))
    assert sorted(map(sorted, cycles)) == [["12", "24", "31", "43"], ["13", "21", "34", "42"]]


def test_double_scheme_of_the_ghost_case_is_safe_in_each_step(ghosts):
    fabric, old, new = ghosts
    plan = double_scheme(fabric, old, new)
    assert [step.number for step in plan.steps] == [1, 2, 3, 4, 5]
    assert all(step.safe and step.inject.any() for step in plan.steps)
    assert plan.safe
    assert all(step.lost == 0 for step in plan.steps)
    assert plan.gapless == bool(fabric.endport_lmc[0])
    assert np.array_equal(plan.steps[-1].tables.lft, new.lft)
    for step in plan.steps:
        assert not (step.inject & step.drained).any()
        for flow in step.flows:
            assert prove(fabric, flow.routing).certified


@examples(60)
@given(transitions(max_switches=6, wrong=False))
def test_verdict_agrees_with_walking_every_packet(case):
    fabric, old, new = case
    found = prove_transition(fabric, old, new, rounds=30)
    slow = transition_slowly(fabric, old, new, replies=False, scope="endports")
    free = nx.is_directed_acyclic_graph(slow)
    assert (found.verdict == "any-order") == free == (found.loop is None)
    if found.verdict == "ordered":
        before = old.lft
        for after in found.plan.states(old.lft, new.lft):
            tables = [Routing(lft, r.sl, r.sl2vl, 1, 1, r.provenance) for lft, r in ((before, old), (after, new))]
            assert nx.is_directed_acyclic_graph(transition_slowly(fabric, *tables, replies=False, scope="endports"))
            before = after
        assert np.array_equal(before, new.lft)
    if found.loop is not None:
        at = [(t.turn.channel, t.turn.vl) for t in found.loop.turns]
        name = [(int(fabric.channels.src[c]), int(fabric.channels.port[c]), vl) for c, vl in at]
        assert all(slow.has_edge(a, b) for a, b in zip(name, name[1:] + name[:1], strict=True))
        assert "\n".join(found.describe())


def ranks(switches, edges, root):
    """Return an Up*/Down* order of the switches: by distance from the root, then by number."""
    graph = nx.Graph(edges)
    graph.add_nodes_from(switches)
    far = nx.single_source_shortest_path_length(graph, root)
    return sorted(far, key=lambda switch: (far[switch], switch))


@cache
def legal_turns(edges, order):
    """Return the turns of all shortest paths up and then down between any two switches."""
    position, paths = {switch: k for k, switch in enumerate(order)}, nx.DiGraph()
    for a, b in [*edges, *((b, a) for a, b in edges)]:
        down = position[b] > position[a]
        paths.add_edges_from([((a, False), (b, down)), ((a, True), (b, True))][: 1 + down])
    turns = set()
    for start, end in permutations(order, 2):
        far = nx.single_source_shortest_path_length(paths, (start, False))
        ends = [
            route for route in ((end, False), (end, True)) if route in far
        ]  # empty if the only path led over the lost root
        least = min((far[route] for route in ends), default=0)
        for route in (route for route in ends if far[route] == least):
            for path in nx.all_shortest_paths(paths, (start, False), route):
                hops = [(a, b) for (a, _), (b, _) in pairwise(path)]
                turns.update(pairwise(hops))
    return frozenset(turns)


def closes_loop(turns):
    channels = sorted({channel for turn in turns for channel in turn})
    at = {channel: k for k, channel in enumerate(channels)}
    pairs = sorted((at[a], at[b]) for a, b in turns)
    source, target = np.array(pairs, np.int64).reshape(-1, 2).T
    return DependencyGraph.of(len(channels), 1, source, target).order() is None


@pytest.mark.parametrize(("switches", "cases", "loops"), [(2, 1, 0), (3, 6, 0), (4, 84, 0), (5, 2280, 124)])
def test_smallest_fabrics_whose_new_root_makes_ghosts(switches, cases, loops):
    """In every connected fabric, root 0 is lost, and each other switch becomes the root.  Loops of old and new turns
    are counted.
    """
    rest, seen, bad = range(1, switches), 0, 0
    links = list(combinations(range(switches), 2))
    for chosen in product((False, True), repeat=len(links)):
        edges = tuple(compress(links, chosen))
        left = tuple(edge for edge in edges if 0 not in edge)
        graph, stays = nx.Graph(edges), nx.Graph(left)
        graph.add_nodes_from(range(switches))
        stays.add_nodes_from(rest)
        if not (nx.is_connected(graph) and nx.is_connected(stays)):
            continue
        old = legal_turns(left, tuple(ranks(range(switches), edges, 0)[1:]))
        for root in rest:
            new = legal_turns(left, tuple(ranks(rest, left, root)))
            assert not closes_loop(old)
            assert not closes_loop(new)
            seen, bad = seen + 1, bad + closes_loop(old | new)
    assert (seen, bad) == (cases, loops)


def test_senders_that_keep_their_old_sl_count_on_the_new_routes():
    """There are two rings of turns, one on each VL.  Each ring is safe alone, but not with the SLs of the other
    ring.
    """
    fabric = ring(0)
    old, new = (up_down(fabric, rank) for rank in (OLD_ORDER, NEW_ORDER))
    lid = fabric.lids
    owner = np.array([int(fabric.switch_name[s][2:]) if s >= 0 else 0 for s in lid.switch])
    lft = new.lft.copy()
    lft[:, np.isin(owner, [1, 4])] = old.lft[:, np.isin(owner, [1, 4])]  # on VL 0 alone, this closes the loop
    apart = np.isin(owner, [2, 3]).astype(np.uint8)
    mixed = replace(new, lft=lft)
    assert not prove(fabric, mixed).certified
    vls = {"sl2vl": identity_sl2vl(2), "vls": 2}
    before, after = replace(old, **vls), replace(mixed, sl=apart, **vls)
    assert prove(fabric, before).certified
    assert prove(fabric, after).certified
    found = prove_transition(fabric, before, after)
    assert found.verdict == "drained"
    assert "on the new routes alone" in found.reason
    assert found.plan is None
    assert found.drain.shifted
    assert all(step.safe for step in found.drain.steps)
    vls_of_the_second = {int(found.drain.steps[0].tables.sl2vl[sl]) for sl in found.drain.shifted.values()}
    assert min(vls_of_the_second) == found.drain.above == 2


@examples(25)
@given(transitions(max_switches=5, max_cas=1, wrong=False))
def test_steps_of_the_double_scheme_agree_with_walking_what_is_in_flight(case):
    fabric, old, new = case
    plan = double_scheme(fabric, old, new, max_vls=15)
    assume(plan is not None)
    here, gone = fabric.lids.switch >= 0, Mixture.of(fabric, old, new).misdirected
    assert np.array_equal(np.flatnonzero(plan.first | plan.second), np.union1d(np.flatnonzero(here), gone))
    assert not (plan.first & plan.second).any()
    assert plan.first[gone].all()
    assert np.array_equal(plan.steps[-1].tables.lft, new.lft)
    assert np.array_equal(plan.steps[-1].tables.sl, new.sl)
    for before, step in pairwise(plan.steps):
        changed = (before.tables.lft != step.tables.lft).any(axis=0) & here
        assert not (changed & ~step.drained).any()
    for step in plan.steps:
        assert not (np.any([flow.lids for flow in step.flows], axis=0) & step.drained).any()
        in_flight = nx.DiGraph()
        assert not step.inject[gone].any()
        for flow in step.flows:
            tables = flow.masked()
            in_flight.add_edges_from(transition_slowly(fabric, tables, tables, replies=False, scope="endports").edges)
        assert step.safe == nx.is_directed_acyclic_graph(in_flight)
        assert step.safe == (not step.cycle)


@pytest.mark.parametrize("rounds", [1, 2, 64])
def test_rounds_that_remove_entries_are_an_order(rounds):
    """All orders of writing the tables after a lost link are unsafe, unless old entries are removed first."""
    fabric = generate("torus", ["4x3"], cas=1)
    less, options = fabric.without_links([2]), EngineOptions(effort=0, vls=1)
    old, new = (ENGINES["updn"].route(each, options) for each in (fabric, less))
    sides = installed(old, fabric, new, less)
    found = prove_transition(sides.fabric, sides.old, sides.new, lost=sides.lost, rounds=rounds, drain=False)
    assert found.verdict == ("ordered" if rounds > 1 else "unsafe")
    if rounds > 1:
        first, second = found.plan.rounds
        assert first.removed == found.plan.drained > 0
        assert f"; {first.removed} old entries are removed until a later round" in found.reason
        assert second.drains and not first.drains and not second.removed
        states = [sides.old.lft, *found.plan.states(sides.old.lft, sides.new.lft)]
        assert [np.count_nonzero(a != b) for a, b in pairwise(states)] == [len(first), len(second)]
        assert np.array_equal(states[-1], sides.new.lft)
        for before, after in pairwise(states):
            tables = [replace(sides.new, lft=lft) for lft in (before, after)]
            slow = transition_slowly(sides.fabric, *tables, replies=False, scope="endports")
            assert nx.is_directed_acyclic_graph(slow)


def test_a_double_scheme_that_no_packet_wants_is_not_looked_for(ghosts):
    found = prove_transition(*ghosts, rounds=0, drain=False)
    assert found.verdict == "unsafe" and found.drain is None
    assert "no Double Scheme was searched for" in found.reason
