"""The kernel and the slow twin come to the same counters at every stop."""

import random
from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from sim_cases import fig4, flows_along
from slow_simulate import NEVER, Slow

from routing._kernels.simulate import LANE_FIELDS
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.simulate.network import Timing, build_network
from routing.simulate.options import (
    Arbitration,
    Breaker,
    Inputs,
    Pauses,
    Remedies,
    Remedy,
    Switching,
    VLArb,
    option_arrays,
)
from routing.simulate.run import Simulation
from routing.simulate.traffic import Flow, Pattern, Process, Traffic, traffic_arrays
from routing.topologies import generate


def both(network, traffic, switching, remedies, stops, faults=None):
    """Run both, and compare all that they tell at every stop; ``faults``: channels whose link goes down or up then."""
    fast = Simulation(network, traffic, switching, remedies)
    slow = Slow(
        network.arrays, option_arrays(network, switching, remedies, traffic.mtu), traffic_arrays(network, traffic)
    )
    for stop in stops:
        fast.run(stop)
        slow.run(fast.now)  # which is earlier where everything is delivered
        handle = fast._handle
        np.testing.assert_array_equal(handle.channels(), np.array(slow.channel_rows()))
        np.testing.assert_array_equal(handle.lanes().reshape(-1, len(LANE_FIELDS)), np.array(slow.lane_rows()))
        np.testing.assert_array_equal(handle.flows()[:, [0, 1, 3, 4, 5, 6, 7, 8, 9]], np.array(slow.flow_rows()))
        np.testing.assert_array_equal(fast.lft(), slow.lft)
        for channel in (faults or {}).get(stop, ()):
            if slow.busy[channel] == NEVER:
                fast.restore_link(channel)
                slow.restore(channel)
            else:
                assert fast.fail_link(channel) == slow.fail(channel)
            fast.check()
    return fast


TOPOLOGIES = ("ring:3", "ring:4", "ring:5", "mesh:2x2", "torus:3x3", "kary-ntree:2,2")
ENGINE_VLS = {"minhop": (1, 2, 3), "updn": (1, 2, 3), "dfsssp": (4,)}
TABLES = VLArb(((1, 3),), ((0, 2), (1, 4), (2, 1), (3, 9)), 1)


def any_flow(rng, fabric):
    lids = tuple(int(lid) for lid in fabric.endport_lid)
    source = rng.randrange(fabric.endports)
    others = [lid for lid in lids if lid != lids[source]]
    return Flow(
        source, lids, Pattern(rng.randrange(3)), Process(rng.randrange(5)),
        bytes=rng.randint(1, 600), messages=rng.choice([None, 3, 20]),
        interval=rng.uniform(1, 30), probability=rng.uniform(0.05, 1), burst=rng.uniform(1, 4), gap=rng.uniform(0, 50),
        hot=tuple(others[:2]), hot_share=0.5, start=rng.randrange(20), stop=rng.choice([1 << 62, 150]),
        trace=tuple(sorted((rng.randrange(200), rng.choice(others), rng.randint(1, 500)) for _ in range(5))),
    )  # fmt: skip


def any_network(rng, blocks):
    name, _, size = rng.choice(TOPOLOGIES).partition(":")
    fabric = generate(name, size.split(","), **({} if name == "kary-ntree" else {"cas": 1}))
    engine = rng.choice(list(ENGINE_VLS))
    routing = ENGINES[engine].route(fabric, EngineOptions(vls=rng.choice(ENGINE_VLS[engine]), threads=1))
    buffer = blocks * rng.choice([1, 2, 5])
    timing = Timing(1.0, rng.choice([1, 2, 9]), rng.choice([0, 1, 3]), rng.choice([1.0, 2.5, 0.7]), buffer)
    return build_network(fabric, routing, timing)


def any_behaviour(rng, blocks):
    tables = rng.choice([None, None, replace(TABLES, limit=rng.choice([0, 1, 255]))])
    switching = Switching(
        Arbitration(rng.randrange(3)), Inputs(rng.randrange(2)), rng.choice([0, 0, 7, 30]), tables, rng.randrange(1000)
    )
    remedy = Remedy(
        hoq=rng.choice([0, 0, 20, 60]), stall_count=rng.choice([0, 1, 3]), breaker=Breaker(rng.choice([0, 0, 1, 2])),
        detect=rng.choice([10, 40]), repeat=rng.choice([3, 8]), release=rng.choice([5, 40]), extra=blocks * 64,
    )  # fmt: skip
    return switching, Remedies(
        remedy, lifetime=rng.choice([0, 0, 0, 100]), sample=rng.choice([1, 4]), control_delay=rng.choice([1, 5]),
        release_packets=rng.choice([1, 3]), move_others=rng.random() < 0.5, rounds=rng.choice([0, 2, 5]),
    )  # fmt: skip


@examples(60)
@given(st.integers(0, 1 << 30))
def test_anything_small(seed):
    rng = random.Random(seed)
    packet = rng.choice([64, 100, 256])
    blocks = -(-packet // 64)
    network = any_network(rng, blocks)
    flows = tuple(any_flow(rng, network.fabric) for _ in range(rng.randint(2, 8)))
    both(network, Traffic(flows, packet), *any_behaviour(rng, blocks), stops=(30, 31, 200, 700))


@examples(60)
@given(st.integers(0, 1 << 30))
def test_pauses_in_anything_small(seed):
    rng = random.Random(seed)
    packet = rng.choice([64, 100, 256])
    blocks = -(-packet // 64)
    network = any_network(rng, blocks)
    xoff = rng.randint(1, 4 * blocks)
    switching, remedies = any_behaviour(rng, blocks)
    if remedies.port.breaker is Breaker.DEADLOCK:
        remedies = replace(remedies, port=replace(remedies.port, breaker=Breaker.LOOP))
    switching = replace(switching, fcp_period=0, pauses=Pauses(xoff, rng.randrange(xoff)))
    arrays = network.arrays
    trip = -(-(2 * int(arrays.wire[0]) + int(arrays.switch_delay[0])) * (1 << 20) // (int(arrays.cost[0]) * 64))
    room = np.full_like(arrays.buffer, xoff - 1 + blocks + trip)
    network = replace(network, arrays=replace(arrays, buffer=room))
    flows = tuple(any_flow(rng, network.fabric) for _ in range(rng.randint(2, 8)))
    fast = both(network, Traffic(flows, packet), switching, remedies, (30, 31, 200, 700))
    if remedies.port.breaker is Breaker.NONE:
        assert not fast.counters().buffer_overrun_errors.any()


@examples(60)
@given(st.integers(0, 1 << 30))
def test_faults_in_anything_small(seed):
    rng = random.Random(seed)
    packet = rng.choice([64, 100, 256])
    blocks = -(-packet // 64)
    network = any_network(rng, blocks)
    flows = tuple(any_flow(rng, network.fabric) for _ in range(rng.randint(2, 8)))
    channels = [rng.randrange(network.channels) for _ in range(3)]
    stops = (30, 31, 90, 200, 201, 700)
    faults = {stop: [channels[rng.randrange(3)]] for stop in stops[:-1]}
    both(network, Traffic(flows, packet), *any_behaviour(rng, blocks), stops, faults)


@pytest.mark.parametrize("arbitration", list(Arbitration))
@pytest.mark.parametrize(
    "remedy",
    [
        Remedy(),
        Remedy(hoq=60, stall_count=0),
        Remedy(hoq=40, stall_count=3),
        Remedy(breaker=Breaker.DEADLOCK, detect=40, repeat=4, release=20, extra=256),
        Remedy(breaker=Breaker.LOOP, detect=40, repeat=4),
    ],
)
def test_a_ring_that_locks(arbitration, remedy):
    fabric, routing, ways = fig4(True)
    network = build_network(fabric, routing, Timing(1.0, 1, 0, 1.0, 16))
    traffic = flows_along(fabric, ways, bytes=256)
    remedies = Remedies(remedy, sample=2, move_others=True, release_packets=2, rounds=3)
    both(network, traffic, Switching(arbitration), remedies, stops=(100, 500, 3000))
