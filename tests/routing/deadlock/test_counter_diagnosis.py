"""Check suspected channels, the loops to which they belong, and the reading of perfquery's output."""

from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from slow_proof import routed

from routing.cdg.trace import dependency_graph
from routing.counters import CounterDeltas, check_lids, empty_counters, read_channels
from routing.deadlock.counter_diagnosis import suspect_loops
from routing.deadlock.waitfor import WaitFor
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import FabricError, ParseError
from routing.formats.perf_counters import parse_counters
from routing.topologies import generate

PLAIN = """# Port counters: Lid 4 port {port} (CapMask: {capabilities})
PortSelect:......................{port}
CounterSelect:...................0x0000
PortXmitDiscards:................5
PortXmitData:....................{data}
PortXmitWait:....................{wait}
"""
WIDE = """# Port extended counters: Lid 4 port {port} (CapMask: 0x1300 CapMask2: 0x0000000)
PortSelect:......................{port}
PortXmitData:....................{data}
"""
DETAILS = """# PortXmitDiscardDetails counters: Lid 4 port {port}
PortSelect:......................{port}
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


def channels_of(suspects):
    return [turn.channel for turn in suspects.loop.turns]


def plain(port, data, wait, capabilities="0x1000"):
    return PLAIN.format(port=port, data=data, wait=wait, capabilities=capabilities)


def test_counters_of_perfquery():
    text = plain(2, 12, 3) + plain(7, 5, 6, "0x1300")
    found = parse_counters(text, (2, 7), "PortXmitData", "PortXmitWait")
    assert [found[port]["PortXmitData"] for port in (2, 7)] == [12, 5]
    assert [found[port]["PortXmitWait"] for port in (2, 7)] == [3, 6]
    assert [found[port]["CapMask"] for port in (2, 7)] == [0x1000, 0x1300]
    assert found[2]["CounterSelect"] == 0
    for output, ports in (("timeout on Lid 4\n", (1,)), (text, (2, 3)), (DETAILS.format(port=2, hoq=7), (2,))):
        with pytest.raises(ParseError, match=f"gave no PortXmitWait of port {ports[-1]}: "):
            parse_counters(output, ports, "PortXmitWait")


class Switches:
    """Stand-in for perfquery and smpquery of switches: data by port, waits and drops by LID, in the width of the
    ports.
    """

    def __init__(self, fabric, wide):
        self.fabric, self.wide, self.asked = fabric, wide, []

    def __call__(self, command):
        self.asked.append(command)
        if command[0] == "smpquery":
            (row,) = np.flatnonzero(self.fabric.switch_lid == int(command[-1])).tolist()
            return f"# Node info: Lid {command[-1]}\nGuid:.......0x{self.fabric.switch_guid[row]:016x}\n"
        lid, ports = int(command[-2]), [int(port) for port in command[-1].split(",")]
        if "--xmtdisc" in command:
            return DETAILS.format(port=ports[0], hoq=lid)
        if "-x" in command:
            return "".join(WIDE.format(port=port, data=(1 << 40) + port) for port in ports)
        capabilities = "0x1300" if self.wide else "0x1100"
        return "".join(plain(port, min((port - 1) << 31, 0xFFFFFFFF), lid + port, capabilities) for port in ports)


@pytest.mark.parametrize("wide", [True, False])
def test_readings_by_channel(ring, wide):
    """All ports of a switch are read with one call, and the drops of each port with another call.  Ports may have
    64-bit counters.
    """
    fabric = ring[0]
    run = Switches(fabric, wide)
    wanted = np.array([8, 3, 9], np.int32)
    found = read_channels(fabric, wanted, run)
    lids, ports = fabric.switch_lid[fabric.channels.src[wanted]], fabric.channels.port[wanted]
    assert found.channel.tolist() == wanted.tolist()
    assert found.hoq_discards.tolist() == lids.tolist()
    assert found.xmit_wait.tolist() == (lids.astype(int) + ports).tolist()
    assert found.xmit_data.tolist() == [
        (1 << 40) + port if wide else {2: 1 << 31, 3: 0xFFFFFFFF}[port] for port in ports.tolist()
    ]
    assert found.full.tolist() == [[False] * 3, [False] * 3, [not wide and port == 3 for port in ports.tolist()]]
    assert len(run.asked) == 3 + (4 if wide else 2)
    assert ["perfquery", "-l", str(lids[0]), "2,3"] in run.asked


def test_a_counter_of_64_bits_can_be_full_too(ring):
    """Ports without counters answer with all bits set.  Half of this number already exceeds a signed number."""

    def run(command):
        reported = switches(command)
        return reported.replace(str((1 << 40) + 2), str((1 << 64) - 1)).replace(str((1 << 40) + 3), str(1 << 63))

    fabric = ring[0]
    switches = Switches(fabric, wide=True)
    wanted = np.array([8, 9], np.int32)
    found = read_channels(fabric, wanted, run)
    assert fabric.channels.port[wanted].tolist() == [2, 3]
    assert found.xmit_data.tolist() == [(1 << 63) - 1] * 2
    assert found.full[2].tolist() == [True, False]


def test_lids_that_are_of_other_switches_are_reported(ring):
    fabric = ring[0]
    check_lids(fabric, np.arange(10, dtype=np.int32), Switches(fabric, wide=True))
    moved = replace(fabric, switch_lid=np.roll(fabric.switch_lid, 1))
    with pytest.raises(FabricError, match="LID 5 belongs to 0x0000000000200004, and not to sw0") as error:
        check_lids(moved, np.arange(10, dtype=np.int32), Switches(fabric, wide=True))
    assert "ibnetdiscover" in error.value.remedy


def readings(*rows, full=()):
    table = np.array(rows, np.int64)
    mask = np.zeros((3, len(rows)), bool)
    for position in full:
        mask[position] = True
    return CounterDeltas(np.arange(len(rows), dtype=np.int32), table[:, 0], table[:, 1], table[:, 2], mask)


def test_suspected_channels():
    """The channels: drops at the head; waits and sends nothing, or little; waits but sends; sends; does nothing; was
    reset.
    """
    before = readings((1, 0, 5), (0, 10, 50), (0, 0, 50), (0, 10, 50), (0, 10, 50), (3, 4, 5), (90, 0, 0))
    now = readings((2, 0, 9), (0, 20, 50), (0, 400, 54), (0, 400, 55), (0, 10, 90), (3, 4, 5), (2, 0, 0))
    added = now.since(before)
    assert added.hoq_discards.tolist() == [1, 0, 0, 0, 0, 0, 2]
    assert added.suspected.tolist() == [0, 1, 2, 6]
    assert added.unclassified.tolist() == []


def test_years_of_data_are_no_standstill():
    """A hundred times the sent data exceeds 64 bits."""
    assert readings((0, 0xFFFFFFFE, 1 << 57), (0, 0xFFFFFFFE, (1 << 63) - 1)).suspected.tolist() == []


def test_counters_that_are_full_say_no_more():
    """A saturated counter of sent data does not indicate a standstill.  The increase of a saturated counter is
    unknown.
    """
    most = 0xFFFFFFFF
    before = readings((0, 10, most), (0, 10, most - 1), (0, most, 50), (65535, 0, 50), (0, 9, most), (0, most, 7),
                      full=[(2, 0), (1, 2), (0, 3), (2, 4), (1, 5)])  # fmt: skip
    now = readings((0, 999, most), (0, 999, most), (0, most, 50), (65535, 0, 60), (0, 999, 3), (1, most, 7),
                   full=[(2, 0), (2, 1), (1, 2), (0, 3), (1, 5)])  # fmt: skip
    added = now.since(before)
    # the counter was reset in between; a packet was dropped at the head of a queue
    assert added.suspected.tolist() == [4, 5]
    assert added.unclassified.tolist() == [0, 1, 2, 3]
    # Since the last reset, the true value of a saturated counter is at least its maximum.
    assert now.suspected.tolist() == [2, 3, 4, 5]
    assert now.unclassified.tolist() == []
    assert readings((0, most, 10**9), (0, 7, most), full=[(1, 0), (2, 1)]).unclassified.tolist() == [0]


def test_full_counters_are_emptied(ring):
    fabric = ring[0]
    run = Switches(fabric, wide=False)
    found = read_channels(fabric, np.array([2, 9], np.int32), run)
    run.asked.clear()
    empty_counters(fabric, found, lambda command: run.asked.append(command) or "")
    lid, port = str(fabric.switch_lid[fabric.channels.src[9]]), str(fabric.channels.port[9])
    assert run.asked == [["perfquery", "-R", lid, port], ["perfquery", "--xmtdisc", "-R", lid, port]]


def test_a_loop_that_is_suspected_all_the_path_round(ring):
    fabric, routing = ring
    ports = fabric.channels.at_port
    clockwise = np.sort([ports[s, 3] for s in range(5)]).astype(np.int32)
    reported = suspect_loops(fabric, routing, clockwise)
    (suspects,) = reported.loops
    assert suspects.complete
    assert sorted(channels_of(suspects)) == clockwise.tolist()
    assert reported.elsewhere == ()
    assert suspects.describe()[0].startswith("5 of 5 channels suspected: credit loop of 5 channels on VL 0")
    assert all(line.startswith("* sw") for line in suspects.describe()[1:])


def test_a_few_suspected_channels_point_at_the_loop_that_has_most_of_them(ring):
    fabric, routing = ring
    some = np.sort([fabric.channels.at_port[s, 3] for s in (0, 2)]).astype(np.int32)
    (suspects,) = suspect_loops(fabric, routing, some).loops
    assert not suspects.complete
    assert sum(suspects.suspected) == 2
    assert len(suspects.suspected) == 5
    assert sum(line.startswith("*") for line in suspects.describe()) == 2


def test_two_loops_are_distinguished(ring):
    fabric, routing = ring
    every = np.arange(len(fabric.channels), dtype=np.int32)
    reported = suspect_loops(fabric, routing, every)
    assert [suspects.complete for suspects in reported.loops] == [True, True]
    assert sorted(channels_of(reported.loops[0]) + channels_of(reported.loops[1])) == every.tolist()


def test_congestion_points_at_no_loop(torus):
    fabric = torus[0]
    tree = ENGINES["updn"].route(fabric, EngineOptions(vls=1, effort=0.05))
    reported = suspect_loops(fabric, tree, np.array([2, 7], np.int32))
    assert reported.loops == ()
    assert reported.elsewhere == (2, 7)
    assert suspect_loops(*torus, np.zeros(0, np.int32)).loops == ()


@examples(40)
@given(routed(), st.integers(0, 10_000), st.sampled_from([0.1, 0.4, 1.0]))
def test_loops_are_cycles_of_the_dependencies(case, seed, share):
    """Every reported loop is a cycle, no channel is reported as new twice, and each suspected channel is in a
    result.
    """
    fabric, routing = case
    rng = np.random.default_rng(seed)
    suspected = np.flatnonzero(rng.random(len(fabric.channels)) < share).astype(np.int32)
    reported = suspect_loops(fabric, routing, suspected)
    graph = dependency_graph(fabric, routing, switch_pairs=False)
    edges = set(graph.to_networkx().edges)
    cyclic = WaitFor.of_dependencies(graph).on_cycle.reshape(graph.vls, graph.channels).any(axis=0)
    assert list(reported.elsewhere) == [c for c in suspected.tolist() if not cyclic[c]]
    named = set()
    for suspects in reported.loops:
        path = [(turn.channel, turn.vl) for turn in suspects.loop.turns]
        assert all(edge in edges for edge in zip(path, [*path[1:], path[0]], strict=True))
        assert list(suspects.suspected) == [turn.channel in suspected for turn in suspects.loop.turns]
        assert any(suspects.suspected)
        named |= {channel for channel, _ in path}
    if len(reported.loops) < 8:
        assert {c for c in suspected.tolist() if cyclic[c]} <= named
