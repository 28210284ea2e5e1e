"""Endpoints that answer requests: beside their slow twin, and message-dependent deadlock."""

import random

import pytest
from examples import examples
from hypothesis import given
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


@examples(8)
@given(st.integers(0, 1 << 30))
def test_any_replies_beside_the_slow_twin(seed):
    rng = random.Random(seed)
    blocks = rng.choice([1, 2])
    network = any_network(rng, blocks)
    flows = [any_flow(rng, network.fabric) for _ in range(rng.randint(3, 8))]
    flows = [flow for flow in flows if flow.process is not Process.TRACE and flow.bytes <= 64 * blocks and flow.stop]
    replies = Replies(
        rng.choice([0, network.vls - 1]), rng.randint(1, 3), rng.randint(1, 3), rng.choice([None, 1, 3]), 64 * blocks
    )  # fmt: skip
    traffic = replies.extended_traffic(network, Traffic(tuple(flows), 64 * blocks))
    if len(traffic.flows) == len(flows):
        return
    switching, _ = any_behaviour(rng, blocks)
    mechanisms = [replies, Retransmission(rng.choice([1, 20])), CongestionControl(threshold=2)][: rng.randint(1, 3)]
    remedies = Remedies(Remedy(hoq=rng.choice([0, 4]), stall_count=0))
    fast = Simulation(network, traffic, switching, remedies, mechanisms)
    slow = slow_twin(network, traffic, switching, remedies, mechanisms)
    for stop in (60, 150, 250):
        fast.run(stop)
        slow.run(fast.now)
        assert_equal(fast, slow)
        assert fast.results_of(replies)[0] == slow.attached[0].answered
        fast.check()


def two_nodes(vls, input=2, **how):  # noqa: A002
    """Figure 13.5: two nodes that send requests to each other."""
    fabric = literal_fabric("pair", ["s", "t"], [("s", "t")], {"a": "s", "b": "t"})
    routing = tables_from_paths(fabric, [("a", "s", "t", "b"), ("b", "t", "s", "a")], vls=vls)
    network = build_network(fabric, routing, cycles(4), vls=vls)
    ends = {name: (endport_of(fabric, name), lid_of(fabric, name)) for name in "ab"}
    flows = tuple(Flow(ends[a][0], (ends[b][1],), bytes=64, messages=500) for a, b in ("ab", "ba") * 3)
    replies = Replies(sl=1, input=input, output=2, bytes=64, **how)
    traffic = replies.extended_traffic(network, Traffic(flows, 64))
    return simulate(network, traffic, mechanisms=[replies]), replies


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
    for setting in ({"input": 0}, {"output": 0}, {"bytes": 65}, {"sl": 16}):
        with pytest.raises(OptionError, match=next(iter(setting))):
            Replies(**{"bytes": 64, **setting}).numbers(network, traffic)
