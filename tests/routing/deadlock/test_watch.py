"""Suspected channels and the loops that they point at; what perfquery prints."""

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from slow_proof import routed

from routing.deadlock.cdg import dependency_graph
from routing.deadlock.waitfor import WaitFor
from routing.deadlock.watch import Readings, loops_pointed_at, read_channels
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import ParseError
from routing.formats.perf_counters import parse_counters
from routing.topologies import generate

PLAIN = """# Port counters: Lid 4 port 2 (CapMask: 0x1300)
PortSelect:......................2
CounterSelect:...................0x0000
PortXmitDiscards:................5
PortXmitData:....................{data}
PortXmitWait:....................{wait}
"""
DETAILS = """# PortXmitDiscardDetails counters: Lid 4 port 2
PortSelect:......................2
PortSwLifetimeLimitDiscards:.....1
PortSwHOQLifetimeLimitDiscards:..{hoq}
"""


@pytest.fixture(scope="module")
def torus():
    fabric = generate("torus", ["4x4"])
    return fabric, ENGINES["minhop"].route(fabric, EngineOptions(vls=1))


@pytest.fixture(scope="module")
def ring():
    fabric = generate("ring", ["5"])
    return fabric, ENGINES["minhop"].route(fabric, EngineOptions(vls=1))


def channels_of(pointed):
    return [turn.channel for turn in pointed.loop.turns]


def test_counters_of_perfquery():
    text = PLAIN.format(data=12, wait=3) + DETAILS.format(hoq=7)
    found = parse_counters(text, "PortXmitData", "PortSwHOQLifetimeLimitDiscards")
    assert (found["PortXmitData"], found["PortXmitWait"], found["PortSwHOQLifetimeLimitDiscards"]) == (12, 3, 7)
    assert found["CounterSelect"] == 0
    with pytest.raises(ParseError, match="gave no PortXmitWait: timeout"):
        parse_counters("timeout on Lid 4\n", "PortXmitWait")


def test_readings_by_channel(ring):
    fabric = ring[0]
    asked = []

    def run(command):
        asked.append(command)
        lid, port = int(command[-2]), int(command[-1])
        return DETAILS.format(hoq=lid) if "--xmtdisc" in command else PLAIN.format(data=port, wait=lid + port)

    wanted = np.array([3, 8], np.int32)
    found = read_channels(fabric, wanted, run)
    lids, ports = fabric.switch_lid[fabric.channels.src[wanted]], fabric.channels.port[wanted]
    assert found.hoq_discards.tolist() == lids.tolist()
    assert found.xmit_data.tolist() == ports.tolist()
    assert found.xmit_wait.tolist() == (lids.astype(int) + ports).tolist()
    assert len(asked) == 4


def readings(*rows):
    table = np.array(rows, np.int64)
    return Readings(np.arange(len(rows), dtype=np.int32), table[:, 0], table[:, 1], table[:, 2])


def test_who_is_suspected():
    """Drops at the head; waits and sends nothing, or little; waits but sends; sends; does nothing; was reset."""
    before = readings((1, 0, 5), (0, 10, 50), (0, 0, 50), (0, 10, 50), (0, 10, 50), (3, 4, 5), (90, 0, 0))
    now = readings((2, 0, 9), (0, 20, 50), (0, 400, 54), (0, 400, 55), (0, 10, 90), (3, 4, 5), (2, 0, 0))
    added = now.since(before)
    assert added.hoq_discards.tolist() == [1, 0, 0, 0, 0, 0, 2]
    assert added.suspected.tolist() == [0, 1, 2, 6]


def test_a_loop_that_is_suspected_all_the_way_round(ring):
    fabric, routing = ring
    ports = fabric.channels.at_port
    clockwise = np.sort([ports[s, 3] for s in range(5)]).astype(np.int32)
    told = loops_pointed_at(fabric, routing, clockwise)
    (pointed,) = told.loops
    assert pointed.complete
    assert sorted(channels_of(pointed)) == clockwise.tolist()
    assert told.elsewhere == ()
    assert pointed.describe()[0].startswith("5 of 5 channels suspected: credit loop of 5 channels on VL 0")
    assert all(line.startswith("* sw") for line in pointed.describe()[1:])


def test_a_few_suspected_channels_point_at_the_loop_that_has_most_of_them(ring):
    fabric, routing = ring
    some = np.sort([fabric.channels.at_port[s, 3] for s in (0, 2)]).astype(np.int32)
    (pointed,) = loops_pointed_at(fabric, routing, some).loops
    assert not pointed.complete
    assert sum(pointed.suspected) == 2
    assert len(pointed.suspected) == 5
    assert sum(line.startswith("*") for line in pointed.describe()) == 2


def test_two_loops_are_told_apart(ring):
    fabric, routing = ring
    every = np.arange(len(fabric.channels), dtype=np.int32)
    told = loops_pointed_at(fabric, routing, every)
    assert [pointed.complete for pointed in told.loops] == [True, True]
    assert sorted(channels_of(told.loops[0]) + channels_of(told.loops[1])) == every.tolist()


def test_congestion_points_at_no_loop(torus):
    fabric = torus[0]
    tree = ENGINES["updn"].route(fabric, EngineOptions(vls=1))
    told = loops_pointed_at(fabric, tree, np.array([2, 7], np.int32))
    assert told.loops == ()
    assert told.elsewhere == (2, 7)
    assert loops_pointed_at(*torus, np.zeros(0, np.int32)).loops == ()


@examples(40)
@given(routed(), st.integers(0, 10_000), st.sampled_from([0.1, 0.4, 1.0]))
def test_loops_are_cycles_of_the_dependencies(case, seed, share):
    """Every loop named is one, no two name the same channel as new, and every suspected channel is accounted for."""
    fabric, routing = case
    rng = np.random.default_rng(seed)
    suspected = np.flatnonzero(rng.random(len(fabric.channels)) < share).astype(np.int32)
    told = loops_pointed_at(fabric, routing, suspected)
    graph = dependency_graph(fabric, routing, switch_pairs=False)
    edges = set(graph.to_networkx().edges)
    cyclic = WaitFor.of_dependencies(graph).on_cycle.reshape(graph.vls, graph.channels).any(axis=0)
    assert list(told.elsewhere) == [c for c in suspected.tolist() if not cyclic[c]]
    named = set()
    for pointed in told.loops:
        way = [(turn.channel, turn.vl) for turn in pointed.loop.turns]
        assert all(edge in edges for edge in zip(way, [*way[1:], way[0]], strict=True))
        assert list(pointed.suspected) == [turn.channel in suspected for turn in pointed.loop.turns]
        assert any(pointed.suspected)
        named |= {channel for channel, _ in way}
    if len(told.loops) < 8:
        assert {c for c in suspected.tolist() if cyclic[c]} <= named
