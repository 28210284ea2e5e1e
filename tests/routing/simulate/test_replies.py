"""Compare endpoints that answer requests with their slow reference, and check message-dependent deadlocks."""

import random
from dataclasses import replace

import pytest
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st
from sim_cases import cycles
from sim_random import any_behaviour, any_flow, any_network
from slow_compare import assert_equal, slow_twin

from routing.errors import OptionError
from routing.simulate.handmade import endport_of, lid_of, literal_fabric, tables_from_paths
from routing.simulate.mechanisms.congestion import CongestionControl
from routing.simulate.mechanisms.replies import Replies
from routing.simulate.mechanisms.retransmission import Retransmission
from routing.simulate.network import build_network
from routing.simulate.options import Remedies, Remedy
from routing.simulate.run import Simulation, simulate
from routing.simulate.state import StopReason
from routing.simulate.traffic import Flow, Process, Traffic


def assert_equal_to_twin(fast, slow, replies, stops):
    """Check that a simulation equals its slow reference at every stop; ``replies`` is its first mechanism."""
    for stop in stops:
        fast.run(stop)
        slow.run(fast.now)
        assert_equal(fast, slow)
        twin = slow.attached[0]
        assert fast.results_of(replies).tolist() == [twin.answered, twin.backed_off, twin.rescued]
        fast.check()


@examples(8)
@example(182)  # in this example, a flow with a full window continued in the tick of a delivery
@given(st.integers(0, 1 << 30))
def test_any_replies_beside_the_slow_twin(seed):
    rng = random.Random(seed)
    blocks = rng.choice([1, 2])
    network = any_network(rng, blocks)
    flows = [any_flow(rng, network.fabric) for _ in range(rng.randint(3, 8))]
    flows = [flow for flow in flows if flow.process is not Process.TRACE and flow.bytes <= 64 * blocks]
    sls = range(network.vls)
    remedy = rng.choice([
        {}, {"backoff": rng.randint(1, 60), "outstanding": rng.randint(1, 4)},
        {"rescue_sl": rng.choice(sls), "detect": rng.randint(1, 60), "step": rng.randint(1, 5)},
    ])  # fmt: skip
    if len({flow.source for flow in flows}) > 2:
        remedy["forward_sl"] = rng.choice([None, *sls]) if "backoff" not in remedy else rng.choice(sls)
    elif "backoff" in remedy:
        remedy = {}
    replies = Replies(
        **{
            "sl": rng.choice(sls),
            "input": rng.randint(1, 3),
            "output": rng.randint(1, 3),
            "bytes": 64 * blocks,
            "outstanding": rng.choice([None, 1, 3]),
            "shared_sl": rng.choice([None, *sls]),
            **remedy,
        }
    )
    traffic = replies.extended_traffic(network, Traffic(tuple(flows), 64 * blocks))
    if len(traffic.flows) == len(flows):
        return
    switching, _ = any_behaviour(rng, blocks)
    mechanisms = [replies, Retransmission(rng.choice([1, 20])), CongestionControl(threshold=2)][: rng.randint(1, 3)]
    remedies = Remedies(Remedy(hoq=rng.choice([0, 4]), stall_count=0))
    fast = Simulation(network, traffic, switching, remedies, mechanisms)
    slow = slow_twin(network, traffic, switching, remedies, mechanisms)
    assert_equal_to_twin(fast, slow, replies, stops=(60, 150, 250))


def two_nodes(vls, input=2, **how):  # noqa: A002
    """Return a simulation of the two nodes of figure 13.5, which send requests to each other."""
    fabric = literal_fabric("pair", ["s", "t"], [("s", "t")], {"a": "s", "b": "t"})
    routing = tables_from_paths(fabric, [("a", "s", "t", "b"), ("b", "t", "s", "a")], vls=vls)
    network = build_network(fabric, routing, cycles(4), vls=vls)
    ends = {name: (endport_of(fabric, name), lid_of(fabric, name)) for name in "ab"}
    flows = tuple(Flow(ends[a][0], (ends[b][1],), bytes=64, messages=500) for a, b in ("ab", "ba") * 3)
    replies = Replies(sl=1, input=input, output=2, bytes=64, **how)
    traffic = replies.extended_traffic(network, Traffic(flows, 64))
    return simulate(network, traffic, mechanisms=[replies]), replies


def star(cas, flows, vls, **how):
    """Return a star of CAs that send requests to each other in turn, with its traffic and its endpoints."""
    names = "abcd"[:cas]
    leaves = list(names.upper())
    fabric = literal_fabric(
        "star", [*leaves, "Z"], [(leaf, "Z") for leaf in leaves], dict(zip(names, leaves, strict=True))
    )
    paths = [(a, a.upper(), "Z", b.upper(), b) for a in names for b in names if a != b]
    network = build_network(fabric, tables_from_paths(fabric, paths, vls=vls), cycles(4), vls=vls)
    lids = {name: lid_of(fabric, name) for name in names}
    flows = [
        Flow(endport_of(fabric, a), tuple(lids[b] for b in names if b != a), bytes=64, messages=200)
        for a in names for _ in range(flows)
    ]  # fmt: skip
    replies = Replies(**{"input": 2, "output": 2, "bytes": 64, **how})
    return network, replies.extended_traffic(network, Traffic(tuple(flows), 64)), replies


@examples(12)
@given(st.integers(0, 1 << 30))
def test_chains_and_their_remedies_beside_the_slow_twin(seed):
    rng = random.Random(seed)
    vls = rng.randint(1, 4)
    how = {
        "sl": rng.randrange(vls), "forward_sl": rng.randrange(vls), "shared_sl": rng.choice([None, rng.randrange(vls)]),
        "input": rng.randint(1, 3), "output": rng.randint(1, 3),
        **rng.choice([
            {}, {"backoff": rng.randint(1, 40), "outstanding": rng.randint(1, 6)},
            {"rescue_sl": rng.randrange(vls), "detect": rng.randint(1, 60), "step": rng.randint(1, 5)},
        ]),
    }  # fmt: skip
    network, traffic, replies = star(rng.randint(3, 4), rng.randint(1, 4), vls, **how)
    switching, _ = any_behaviour(rng, 1)
    remedies = Remedies(Remedy(hoq=rng.choice([0, 30]), stall_count=0))
    mechanisms = [replies, Retransmission(20)][: rng.randint(1, 2)]
    fast = Simulation(network, traffic, switching, remedies, mechanisms)
    slow = slow_twin(network, traffic, switching, remedies, mechanisms)
    assert_equal_to_twin(fast, slow, replies, stops=(100, 250, 400))


def test_a_flow_that_stops_at_once_is_not_taken_for_replies():
    network, traffic, replies = star(3, 1, 1, sl=0)
    flows = [flow for flow in traffic.flows if flow.stop]
    dead = [replace(flow, stop=0) for flow in flows]
    counts = []
    for mixed in (flows, [*dead, *flows], [*flows, *dead]):
        extended = replies.extended_traffic(network, Traffic(tuple(mixed), 64))
        simulation = simulate(network, extended, mechanisms=[replies])
        simulation.run(100_000)
        counts.append((simulation.totals()["delivered"], *simulation.results_of(replies).tolist()))
    assert counts == [(1200, 600, 0, 0)] * 3


@pytest.mark.parametrize(
    ("vls", "how", "locks"),
    [
        (1, {"sl": 0, "forward_sl": 0}, True),
        (2, {"sl": 1, "forward_sl": 0}, True),
        (2, {"sl": 0, "forward_sl": 1}, True),
        (3, {"sl": 2, "forward_sl": 1}, False),
        (3, {"sl": 2, "forward_sl": 1, "shared_sl": 0}, False),
        (2, {"sl": 1, "forward_sl": 0, "outstanding": 8}, True),
        (2, {"sl": 1, "forward_sl": 0, "outstanding": 8, "backoff": 50}, False),
        (2, {"sl": 0, "forward_sl": 0, "rescue_sl": 1, "detect": 200, "step": 2}, False),
    ],
)
def test_three_types_lock_where_two_share_a_vl_without_a_remedy(vls, how, locks):
    # Section 13.3.2: the queues of the types and their VLs form a cycle.  A VL for each type or a remedy breaks the
    # cycle.
    network, traffic, replies = star(3, 3, vls, **how)
    simulation = simulate(network, traffic, mechanisms=[replies])
    reason = simulation.run(10**6, stop_at_standstill=True).reason
    assert reason is (StopReason.STANDSTILL if locks else StopReason.FINISHED)
    assert bool(simulation.wait_graph().deadlocks) is locks
    answered, backed_off, rescued = simulation.results_of(replies).tolist()
    assert (answered == 1800) is not locks
    assert bool(backed_off) is ("backoff" in how)
    assert bool(rescued) is ("rescue_sl" in how)


def test_replies_behind_requests_lock_and_replies_on_a_vl_of_their_own_do_not():
    shared, replies = two_nodes(1)
    assert shared.run(10**6, stop_at_standstill=True).reason is StopReason.STANDSTILL
    assert shared.wait_graph().deadlocks
    assert shared.results_of(replies)[0] < 3000
    strict, replies = two_nodes(2)
    assert strict.run(10**6, stop_at_standstill=True).reason is StopReason.FINISHED
    assert not strict.wait_graph().deadlocks
    assert strict.results_of(replies)[0] == 3000


def test_room_for_all_outstanding_requests_avoids_the_deadlock():
    # Enough endpoint buffer (section 13.3.2): every request without a reply has room in the input queue.
    few, replies = two_nodes(1, outstanding=1, input=3)
    assert few.run(10**6, stop_at_standstill=True).reason is StopReason.FINISHED
    assert few.results_of(replies)[0] == 3000


def test_wrong_uses_are_refused():
    simulation, replies = two_nodes(2)
    network, traffic = simulation.network, simulation.traffic
    with pytest.raises(OptionError, match="several packets"):
        Replies(bytes=32).numbers(network, Traffic(traffic.flows, 32))
    with pytest.raises(OptionError, match="no flow carries replies"):
        replies.numbers(network, Traffic(traffic.flows[:6], 64))
    with pytest.raises(OptionError, match="third CA"):
        Replies(bytes=64, forward_sl=0).numbers(network, traffic)
    with pytest.raises(OptionError, match="back-off"):
        Replies(bytes=64, backoff=1).numbers(network, traffic)
    for setting in ({"input": 0}, {"output": 0}, {"bytes": 65}, {"sl": 16}, {"rescue_sl": 16}, {"step": 0}):
        with pytest.raises(OptionError, match=next(iter(setting))):
            Replies(**{"bytes": 64, **setting}).numbers(network, traffic)
