"""When three flows by arrival lock hangs on which of two heads of one tick is first."""

import pytest
from sim_cases import PACKET, pause_ring
from slow_simulate import Slow
from slow_simulate.ties import LowestPortFirst

from routing.simulate.options import Arbitration, Remedies, Switching, option_arrays
from routing.simulate.run import simulate
from routing.simulate.traffic import traffic_arrays

BY_ARRIVAL = Switching(Arbitration.ARRIVAL)


def lock_time(kind, packets):
    """Packet time at which the last head of all leaves."""
    network, traffic = pause_ring(3, packets * PACKET)
    options = option_arrays(network, BY_ARRIVAL, Remedies(), 2048)
    slow = kind(network.arrays, options, traffic_arrays(network, traffic))
    hops = -1
    while slow.totals["hops"] > hops:
        hops = slow.totals["hops"]
        slow.run(slow.now + 10 * PACKET)
    return max(slow.lane_sent) / PACKET - 1


@pytest.mark.parametrize(("packets", "locked"), [(8, 180.25), (32, 653.8125), (128, 3036.9375)])
def test_with_the_lowest_port_first_three_flows_lock_when_published(packets, locked):
    """Published: 180 and 654 packet times; that they settle with 128 packets does not come out."""
    assert lock_time(LowestPortFirst, packets) == locked


@pytest.mark.parametrize(("packets", "locked"), [(8, 205.25), (32, 653.625)])
def test_in_turn_they_lock_at_another_time_in_the_kernel_as_in_its_twin(packets, locked):
    network, traffic = pause_ring(3, packets * PACKET)
    simulation = simulate(network, traffic, switching=BY_ARRIVAL)
    simulation.run(1_000 * PACKET, stop_at_standstill=True)
    assert simulation.totals()["last_move"] / PACKET == lock_time(Slow, packets) == locked
