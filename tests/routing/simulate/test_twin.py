"""Compare the counters of the kernel with those of its slow reference at every stop."""

import random
from dataclasses import replace

import numpy as np
import pytest
from campaigns import some_of
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from sim_cases import fig4, flows_along
from sim_random import any_behaviour, any_flow, any_network
from slow_simulate import NEVER, Slow

from routing._kernels.simulate import VC_FIELDS
from routing.simulate.network import Timing, build_network
from routing.simulate.options import (
    Arbitration,
    Breaker,
    Pauses,
    Remedies,
    Remedy,
    Switching,
    option_arrays,
)
from routing.simulate.run import Simulation
from routing.simulate.traffic import Traffic, traffic_arrays


def both(network, traffic, switching, remedies, stops, faults=None):
    """Run the kernel and its slow reference, and compare all that they report at every stop.

    ``faults`` maps a stop to channels whose links go down, or come up, after the stop.
    """
    fast = Simulation(network, traffic, switching, remedies)
    slow = Slow(
        network.arrays, option_arrays(network, switching, remedies, traffic.mtu), traffic_arrays(network, traffic)
    )
    for stop in stops:
        fast.run(stop)
        slow.run(fast.now)  # all packets may be delivered before the stop
        handle = fast._handle
        np.testing.assert_array_equal(handle.channels(), np.array(slow.channel_rows()))
        np.testing.assert_array_equal(handle.virtual_channels().reshape(-1, len(VC_FIELDS)), np.array(slow.vc_rows()))
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


@examples(60)
@given(st.integers(0, 1 << 30))
def test_small_random_networks(seed):
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


@pytest.mark.parametrize("arbitration", some_of(list(Arbitration), list(Arbitration)[:1]))
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
    fabric, routing, paths = fig4(True)
    network = build_network(fabric, routing, Timing(1.0, 1, 0, 1.0, 16))
    traffic = flows_along(fabric, paths, bytes=256)
    remedies = Remedies(remedy, sample=2, move_others=True, release_packets=2, rounds=3)
    both(network, traffic, Switching(arbitration), remedies, stops=(100, 500, 1500))
