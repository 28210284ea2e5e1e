"""Check workloads: collective operations and traces, whose messages depend on one another."""

import random
from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from sim_files import refusal
from sim_random import any_behaviour, any_network
from slow_compare import assert_equal, slow_twin

from routing.errors import OptionError, ParseError
from routing.simulate.goal import read_goal
from routing.simulate.handmade import literal_fabric, tables_from_paths
from routing.simulate.mechanisms.tasks import Tasks
from routing.simulate.network import Timing, build_network
from routing.simulate.options import Breaker
from routing.simulate.run import Simulation, simulate
from routing.simulate.workload import (
    Message,
    Workload,
    all_to_all_v,
    halving_doubling,
    read_trace,
    ring_allreduce,
)

SIZE = 8 * 4096


def star(count=8):
    """Return a network of one switch with CAs.  A tick is the time of a block, and the only delay is 1 tick for each
    cable.
    """
    names = [f"c{n}" for n in range(count)]
    fabric = literal_fabric("star", ["s"], [], dict.fromkeys(names, "s"))
    paths = [(a, "s", b) for a in names for b in names if a != b]
    return build_network(fabric, tables_from_paths(fabric, paths), Timing(1.0, 1, 0, 1.0, 64))


def run(network, workload, mtu=2048):
    tasks = Tasks(workload)
    simulation = simulate(network, workload.traffic(mtu), mechanisms=[tasks])
    simulation.run_to_end(limit=10**7)
    return tasks.times(simulation)


def any_workload(rng, fabric):
    lids = fabric.endport_lid.tolist()
    messages = []
    for number in range(rng.randint(4, 20)):
        source = rng.randrange(len(lids))
        lid = rng.choice([lid for lid in lids if lid != lids[source]])
        after = tuple(sorted(rng.sample(range(number), min(number, rng.randrange(3)))))
        messages.append(
            Message(
                source, lid, rng.randint(1, 500), after, float(rng.choice([0, 0, 60])), float(rng.randrange(9)),
                tuple(float(rng.choice([0, 3, 90])) for _ in after) if rng.random() < 0.5 else (),
            )
        )  # fmt: skip
    return Workload(tuple(messages))


@examples(10)
@given(st.integers(0, 1 << 30))
def test_any_workload_beside_the_slow_twin(seed):
    rng = random.Random(seed)
    network = any_network(rng, 2)
    switching, remedies = any_behaviour(rng, 2)
    if remedies.port.breaker is Breaker.DEADLOCK:
        remedies = replace(remedies, port=replace(remedies.port, breaker=Breaker.NONE))
    workload = any_workload(rng, network.fabric)
    tasks, traffic = Tasks(workload), workload.traffic(100)
    fast = Simulation(network, traffic, switching, remedies, [tasks])
    slow = slow_twin(network, traffic, switching, remedies, [tasks])
    for stop in (40, 150, 400):
        fast.run(stop)
        slow.run(fast.now)
        assert_equal(fast, slow)
        ready, arrived = tasks.times(fast)
        assert ready.tolist() == slow.attached[0].ready
        assert arrived.tolist() == slow.attached[0].arrived


@pytest.mark.parametrize("count", [2, 5, 8])
def test_a_ring_on_a_star_takes_what_the_formula_says(count):
    chunk = 4096
    _, arrived = run(star(count), ring_allreduce(star(count).fabric, chunk * count))
    # A step takes the blocks of a chunk, two cables, and one tick until the next chunk is ready.
    assert arrived.max() == 2 * (count - 1) * (chunk // 64 + 2 + 1) - 1


def test_halving_and_doubling_on_a_star_takes_what_the_formula_says():
    _, arrived = run(star(), halving_doubling(star().fabric, SIZE))
    assert arrived.max() == 2 * (SIZE * 7 // 8 // 64 + 3 * 3) - 1


@pytest.mark.parametrize("make", [ring_allreduce, halving_doubling])
def test_a_reduction_sends_the_least_and_every_ca_hears_of_every_other(make):
    fabric = star().fabric
    workload = make(fabric, SIZE)
    sent = np.bincount([m.source for m in workload.messages], [m.bytes for m in workload.messages])
    assert (sent == 2 * 7 * SIZE // 8).all()
    lids, known = fabric.endport_lid.tolist(), []
    for message in workload.messages:
        known.append(set().union({message.source}, *(known[before] for before in message.after)))
    for ca, lid in enumerate(lids):
        heard = [known[n] for n, message in enumerate(workload.messages) if message.lid == lid]
        assert set().union({ca}, *heard) == set(range(8))


def test_sizes_of_an_exchange():
    workload = all_to_all_v(star().fabric, 700, 1.0)
    sizes = [message.bytes for message in workload.messages if message.source == 3]
    assert sum(sizes) == pytest.approx(7 * 700, abs=7)
    assert sizes == sorted(sizes, reverse=True)
    assert {message.bytes for message in all_to_all_v(star().fabric, 700, 0.0).messages} == {700}


def test_a_trace_is_read_and_played_in_its_order(tmp_path):
    (tmp_path / "t").write_text("""
# three messages
c0 c1 4096 id=a at=5e9    # ticks of the star are seconds
c1 c2 64 after=a,b delay=100000000000
"c3" 2 64 id=b
""")
    network = star(4)
    workload = read_trace(tmp_path / "t", network.fabric)
    assert [message.after for message in workload.messages] == [(), (0, 2), ()]
    ready, arrived = run(network, workload)
    assert ready.tolist()[::2] == [5, 0]
    assert ready[1] == arrived[0] + 100
    assert arrived.tolist()[2] == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "there is no message"), ("c0 c1", "t:1: a message needs FROM"), ("c0 c9 5", "t:1: .*c9"),
        ("\nc0 c0 5", "t:2: c0 sends to itself"), ("c0 c1 no", "'no' is not a size"),
        ("c0 c1 0", "'0' is not a size"),
        ("c0 c1 5 at=-1", "'-1' is not a at|'-1' is not"), ("c0 c1 5 at=nan", "'nan' is not"),
        ("c0 c1 5 soon=1", "no option 'soon'"),
        ("c0 c1 5 after=x", "no message has the id 'x'"), ("c0 c1 5 id=x\nc0 c1 5 id=x", "t:2: two messages"),
        ('c0 "c1 5', "t:1: .*quotation"),
    ],
)  # fmt: skip
def test_wrong_traces_are_refused_with_file_and_line(tmp_path, text, expected):
    (tmp_path / "t").write_text(text)
    with pytest.raises(ParseError, match=expected):
        read_trace(tmp_path / "t", star(4).fabric)


def test_wrong_workloads_are_refused():
    circle = Workload((Message(0, 2, 9, (1,)), Message(1, 1, 9, (0,))))
    for workload, expected in (
        (circle, "waits for itself"), (Workload((Message(0, 2, 0),)), "has 0 bytes"),
    ):  # fmt: skip
        with pytest.raises(OptionError, match=expected):
            Tasks(workload)
    with pytest.raises(OptionError, match="power of two"):
        halving_doubling(star(5).fabric, 100)


FILE = """
title = "t"
[fabric]
generator = "ring:3,cas=1"
[routing]
engine = "updn"
[run]
until = 300
[[case]]
name = "c"
what = "workload"
workload = { collective = "ring-allreduce", bytes = 9000 }
expect = { outcome = "progress" }
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (", bytes = 9000", "", "needs bytes"),
        ('collective = "ring-allreduce"', 'trace = "t"', "bytes does nothing for a trace"),
        ("workload = {", "# {", "needs a collective operation or a trace"),
        ('"ring-allreduce", bytes = 9000', '"dance"', "not a valid collective"),
        ("9000", "9000, skew = 1", "skew does nothing for ring-allreduce"),
        ("ring-allreduce", "halving-doubling", "power of two"),
        ('collective = "ring-allreduce", bytes = 9000', 'trace = "gone"', "gone"),
    ],
)  # fmt: skip
def test_wrong_cases_are_refused(tmp_path, old, new, expected):
    refusal(tmp_path, FILE.replace(old, new), expected)


GOAL = """num_ranks 3
rank 0 {  // comments end lines
a: calc 20
b: send 64b to 1 tag 7 cpu 0 nic 0
b requires a
}
/* a block
of two lines */
rank 1 {
r: recv 64b from 0 tag 7
s: recv 64b from 2
slow: calc 100
fast: calc 5
slow requires r
fast requires s
t: send 128b to 2 tag 1
t requires slow
t requires fast
u: send 64b to 2
u irequires slow
}
rank 2 {
x: send 64b to 1
y: recv 128b from 1 tag 1
z: recv 64b from 1
}
"""


def seconds(workload):
    """Return a workload in which a tick of the star stands for a nanosecond of the schedule."""
    return Workload(tuple(
        replace(one, at=one.at * 1e9, delays=tuple(delay * 1e9 for delay in one.delays)) for one in workload.messages
    ))  # fmt: skip


def test_a_schedule_in_goal_starts_its_messages_as_its_text_says(tmp_path):
    (tmp_path / "t.goal").write_text(GOAL)
    network = star(3)
    workload = seconds(read_goal(tmp_path / "t.goal", network.fabric))
    assert [one.bytes for one in workload.messages] == [64, 128, 64, 64]
    ready, arrived = run(network, workload)
    b, t, u, x = ready.tolist()
    assert (b, x) == (20, 0)
    # The calc of 100 ns follows the message of rank 0, and the calc of 5 ns that of rank 2.
    assert t == max(arrived[0] + 100, arrived[3] + 5)
    assert u == arrived[0] + 1


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("num_ranks 3", "num_ranks 9", "t.goal:1: the schedule has 9 ranks"),
        ("rank 2 {", "rank 5 {", "there is no rank 5"), ("64b to 1 tag 7", "64b to 0 tag 7", "t.goal:4: rank 0 cannot"),
        ("b requires a", "b requires c", "t.goal:5: no operation of rank 0 has the label 'c'"),
        ("tag 7\ns:", "tag 8\ns:", "t.goal:10: no rank sends"),
        ("z: recv 64b from 1", "", "t.goal:19: no rank receives"),
        ("a: calc 20", "a: sleep 20", "t.goal:3: 'a: sleep 20' is not a line"),
        ("rank 0 {", "rnk 0 {", "t.goal:2: 'rnk"),
        ("slow requires r", "slow requires r\nr requires slow", "t.goal:10: this operation requires itself"),
    ],
)  # fmt: skip
def test_wrong_schedules_are_refused_with_file_and_line(tmp_path, old, new, expected):
    assert old in GOAL
    (tmp_path / "t.goal").write_text(GOAL.replace(old, new))
    with pytest.raises(ParseError, match=expected):
        read_goal(tmp_path / "t.goal", star(3).fabric)
