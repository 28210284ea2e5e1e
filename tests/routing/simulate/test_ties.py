"""Check ties: the time at which three flows lock depends on which of two heads of one tick is served first."""

import numpy as np
import pytest
from sim_cases import PACKET, pause_ring
from slow_simulate import Slow
from slow_simulate.ties import LowestPortFirst

from routing.simulate.options import Arbitration, Remedies, Switching, option_arrays
from routing.simulate.run import simulate
from routing.simulate.traffic import traffic_arrays

BY_ARRIVAL = Switching(Arbitration.ARRIVAL, speedup=2)


def slow_ring(kind, packets, window=None):
    network, traffic = pause_ring(3, packets * PACKET, window=window)
    options = option_arrays(network, BY_ARRIVAL, Remedies(), 2048)
    return kind(network.arrays, options, traffic_arrays(network, traffic))


def lock_time(kind, packets, window=None):
    """Return the last time at which a packet starts to move, in packet times."""
    slow = slow_ring(kind, packets, window)
    hops = -1
    while slow.totals["hops"] > hops:
        hops = slow.totals["hops"]
        slow.run(slow.now + 10 * PACKET)
    return max(slow.vc_sent) / PACKET - 1


@pytest.mark.parametrize("window", [None, 200])
@pytest.mark.parametrize(("packets", "locked"), [(8, 180.25), (32, 653.8125)])
def test_with_the_lowest_port_first_three_flows_lock_when_they_do_in_the_prototype(packets, locked, window):
    """The published times are 180 and 654 packet times."""
    assert lock_time(LowestPortFirst, packets, window) == locked


@pytest.mark.slow
def test_with_128_packets_they_settle_as_in_the_prototype_if_200_of_a_flow_are_in_flight():
    """The published shares are 0.38, 0.62 and 0.62."""
    slow = slow_ring(LowestPortFirst, 128, window=200)
    slow.run(2_000 * PACKET)
    before = [flow.got_packets for flow in slow.flows]
    slow.run(5_000 * PACKET)
    shares = [round((flow.got_packets - got) / 3_000, 2) for flow, got in zip(slow.flows, before, strict=True)]
    assert shares == [0.38, 0.62, 0.62]


@pytest.mark.slow
def test_with_128_packets_and_any_number_in_flight_they_lock():
    assert lock_time(LowestPortFirst, 128) == 3036.9375


@pytest.mark.parametrize("window", [193, 200, 213])
def test_shares_are_those_that_queues_of_a_window_give(window):
    """With arbitration by arrival, shares follow queue lengths: W / (2 W + B) for the flow that shares all its
    links.
    """
    network, traffic = pause_ring(3, 128 * PACKET, window=window)
    simulation = simulate(network, traffic, switching=BY_ARRIVAL)
    simulation.run(10_000 * PACKET)
    before = simulation.flows().packets
    simulation.run(30_000 * PACKET)
    f = window / (2 * window + 128)
    np.testing.assert_allclose((simulation.flows().packets - before) / 20_000, [f, 1 - f, 1 - f], rtol=0.02)
    assert not simulation.wait_graph().deadlocks


@pytest.mark.parametrize(("packets", "locked"), [(8, 205.25), (32, 653.625)])
def test_in_turn_they_lock_at_another_time_in_the_kernel_as_in_its_twin(packets, locked):
    network, traffic = pause_ring(3, packets * PACKET)
    simulation = simulate(network, traffic, switching=BY_ARRIVAL)
    simulation.run(1_000 * PACKET, stop_at_standstill=True)
    assert simulation.totals()["last_move"] / PACKET == lock_time(Slow, packets) == locked
