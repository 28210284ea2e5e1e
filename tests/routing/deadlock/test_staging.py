from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from ghosts import NEW_ORDER, OLD_ORDER, ring, up_down
from hypothesis import given, settings
from slow_mixed import MixedWalker, mixed_slowly, transitions
from slow_proof import request_sl

from routing._kernels.cdg import Slots
from routing.deadlock import staging
from routing.deadlock.proof import prove
from routing.deadlock.staging import stage
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.reroute import Published, reroute
from routing.reroute.ground import moved_masks
from routing.reroute.translate import translate
from routing.tables import Provenance, Routing
from routing.topologies import generate


def waits_slowly(fabric, old, new, states, *, replies, wait):
    """A graph of what can wait for what (one for each round, if packets leave in between): every packet, every choice.

    What has got to a channel stays there while the rounds go on.
    """
    tables = [replace(old, lft=lft) for lft in [old.lft, *states]]
    graphs, last = [nx.DiGraph() for _ in states], MixedWalker(fabric, old, new)
    starts = set()
    for routing in (old, new):
        sl_of = MixedWalker(fabric, routing, routing)
        for start in starts_slowly(fabric, routing, sl_of, replies=replies):
            starts.add(start)
    for switch, port, sl, lid in starts:
        got = set()
        for number, (before, after) in enumerate(pairwise(tables)):
            walker = MixedWalker(fabric, replace(before, sl2vl=old.sl2vl), replace(after, sl2vl=new.sl2vl))
            graph = graphs[number if wait else 0]
            got = set() if wait else got
            left = [(switch, *step) for step in walker.steps(switch, port, sl, lid)] + list(got)
            got |= set(left)
            while left:
                here = left.pop()
                at, entry = last.plugs[here[:2]]
                for step in walker.steps(at, entry, sl, lid):
                    graph.add_edge(here, (at, *step))
                    if (at, *step) not in got:
                        got.add((at, *step))
                        left.append((at, *step))
    return graphs


def starts_slowly(fabric, routing, walker, *, replies):
    """(switch, in-port, SL, LID) of all that CAs and routers send and are sent."""
    receivers = walker.receivers
    for switch, port, lids in walker.walkers[0].senders():
        for lid, _, leave in receivers:
            for source in lids if port or leave else ():
                yield switch, port, request_sl(fabric, routing, switch, source, lid), lid
    for asker, at, from_port in receivers if replies else ():
        for lid, switch, port in receivers:
            if from_port or port:
                yield switch, port, request_sl(fabric, routing, at, asker, lid), asker


def delivered(fabric, routing, lft):
    """(switch, LID) of all that arrives."""
    hops = prove(fabric, replace(routing, lft=lft)).hops
    return set(zip(*np.nonzero(hops < 254), strict=True))


def check(fabric, old, new, stages, *, replies=False):
    states = list(stages.states(old.lft, new.lft))
    lids = np.flatnonzero(fabric.lids.switch >= 0)
    assert np.array_equal(states[-1][:, lids], new.lft[:, lids])
    for graph in waits_slowly(fabric, old, new, states, replies=replies, wait=stages.waits):
        assert nx.is_directed_acyclic_graph(graph)
    if (prove(fabric, new)).complete:
        reached = [delivered(fabric, new, lft) for lft in [old.lft, *states]]
        for number in range(1, len(reached)) if len(stages) > 1 else ():
            assert reached[number - 1] <= reached[number]


@pytest.mark.parametrize("replies", [False, True])
@pytest.mark.parametrize("told", [False, True])
@settings(deadline=None, derandomize=True, max_examples=40)
@given(transitions(max_switches=6, max_cas=1))
def test_no_packet_closes_a_loop_in_any_round(replies, told, case):
    fabric, old, new = case
    proofs = prove(fabric, old), prove(fabric, new)
    known = None
    if told and all(p.waits is not None and (p.strength == "reversible" or not replies) for p in proofs):
        known = proofs[0].waits | proofs[1].waits
    stages = stage(fabric, old, new, known=known, replies=replies)
    if stages is not None:
        check(fabric, old, new, stages, replies=replies)
    mixed = mixed_slowly(fabric, old, new, replies=replies, scope="endports")
    free = nx.is_directed_acyclic_graph(mixed)
    fixed = old.sl2vl.ndim == 1 and np.array_equal(old.sl2vl, new.sl2vl)
    assert (stages is not None and len(stages) == 1) == free or not fixed


def repaired(kind, size, engine, link):
    """What was published, the fabric with one link less, and the repair."""
    fabric = generate(kind, size, **({"cas": 1} if kind == "torus" else {}))
    chosen = EngineOptions(effort=0.1, vls=8)
    routing = ENGINES[engine].route(fabric, chosen)
    home = Published(fabric, routing, prove(fabric, routing))
    less = fabric.without_links([int(np.unique(fabric.channels.link)[link])])
    return home, less, reroute(ENGINES[engine], chosen, home, less, home=home)


def pulled(*case):
    home, less, found = repaired(*case)
    return less, translate(home.routing, home.fabric, less), found.routing


@pytest.mark.parametrize(
    ("case", "rounds", "waits"),
    [
        (("torus", ["4x4"], "nue", 0), 1, False),
        (("torus", ["4x4"], "updn", 9), 2, False),
        (("kary-ntree", ["4", "2"], "nue", 0), 2, False),
        (("torus", ["4x4"], "dfsssp", 0), 2, True),
    ],
)
def test_a_repair_takes_few_rounds(case, rounds, waits):
    fabric, old, new = pulled(*case)
    stages = stage(fabric, old, new)
    check(fabric, old, new, stages)
    assert (len(stages), stages.waits) == (rounds, waits)


def test_a_switch_that_packets_come_back_to_is_written_first():
    fabric, old, new = pulled("torus", ["4x4"], "updn", 9)
    stages = stage(fabric, old, new)
    last = stages.round == 2
    assert 0 < last.sum() < len(last)
    assert (old.lft[stages.switch[last], stages.lid[last]] == 255).all()


@pytest.mark.parametrize("lmc", [0, 1])
def test_the_ghost_case_takes_a_wait(lmc):
    fabric = ring(lmc)
    old, new = up_down(fabric, OLD_ORDER), up_down(fabric, NEW_ORDER)
    stages = stage(fabric, old, new)
    assert stages.waits and len(stages) == 2
    check(fabric, old, new, stages)


def test_loops_of_old_or_new_tables_cannot_be_staged_away():
    fabric = generate("ring", ["5"], cas=1)
    minhop, updn = (ENGINES[name].route(fabric, EngineOptions(vls=1)) for name in ("minhop", "updn"))
    assert prove(fabric, minhop).certificate is None
    assert stage(fabric, minhop, updn) is None
    assert stage(fabric, updn, minhop) is None


def test_nothing_that_changes_is_one_round():
    fabric, old, _ = pulled("torus", ["4x4"], "updn", 9)
    stages = stage(fabric, old, old)
    assert len(stages) == 1 and len(stages.lid) == 0 and not stages.waits


def test_lanes_that_change_on_the_way_are_not_staged():
    fabric = generate("ring", ["5"], cas=1)
    routing = ENGINES["updn"].route(fabric, EngineOptions(vls=1))
    ports = 1 + int(fabric.switch_ports.max())
    lanes = np.zeros((fabric.switches, ports, ports, 16), np.uint8)
    lanes[0, 0] = 1
    by_port = Routing(routing.lft, routing.sl, lanes, 2, 1, Provenance("by port"))
    assert stage(fabric, by_port, by_port) is None


def test_threads_do_not_matter():
    case = pulled("kary-ntree", ["4", "2"], "updn", 3)
    one, three = (stage(*case, threads=n) for n in (1, 3))
    assert np.array_equal(one.round, three.round) and np.array_equal(one.switch, three.switch)


def changed_entries(stages):
    return sorted(zip(stages.lid.tolist(), stages.switch.tolist(), strict=True))


@pytest.mark.parametrize("case", [("torus", ["4x4"], "nue", 0), ("kary-ntree", ["4", "2"], "nue", 0)])
def test_columns_with_one_change_need_not_be_followed(case):
    """Beside what both tables are known to make wait, they are in the first round; the others are as without."""
    home, fabric, found = repaired(*case)
    old, new = translate(home.routing, home.fabric, fabric), found.routing
    known = moved_masks(home.proof.waits, home.fabric, fabric) | found.proof.waits
    changes = (old.lft != new.lft).sum(axis=0)
    assert (changes == 1).any()
    stages = stage(fabric, old, new, known=known)
    assert stages is not None and not stages.waits
    check(fabric, old, new, stages)
    assert (stages.round[changes[stages.lid] == 1] == 1).all()
    assert changed_entries(stages) == changed_entries(stage(fabric, old, new))


def test_large_tables_are_searched_at_length_only_when_told(monkeypatch):
    fabric, old, new = pulled("torus", ["4x4"], "dfsssp", 0)
    known = np.full(Slots.of(fabric).count, 0xFFFF, np.uint16)  # closes loops, so that nothing goes beside it
    monkeypatch.setattr(staging, "MOST_SEARCHED", old.lft.size - 1)
    assert stage(fabric, old, new, known=known) is None
    stages = stage(fabric, old, new, known=known, thorough=True)
    assert (len(stages), stages.waits) == (2, True)
    check(fabric, old, new, stages)
