"""Compare the retransmission of lost packets with its slow reference, and check it as recovery from deadlock."""

import random

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from sim_cases import PACKET, fig4_simulation
from sim_random import any_behaviour, any_flow, any_network
from slow_compare import assert_equal, slow_twin

from routing.errors import OptionError
from routing.simulate.mechanisms.retransmission import Retransmission
from routing.simulate.options import Remedies, Remedy
from routing.simulate.run import Simulation, simulate
from routing.simulate.state import StopReason
from routing.simulate.traffic import Traffic


@examples(8)
@given(st.integers(0, 1 << 30))
def test_any_retransmission_beside_the_slow_twin(seed):
    rng = random.Random(seed)
    blocks = rng.choice([1, 2])
    network = any_network(rng, blocks)
    traffic = Traffic(tuple(any_flow(rng, network.fabric) for _ in range(rng.randint(3, 8))), 64 * blocks)
    again, (switching, _) = Retransmission(rng.choice([1, 9, 40])), any_behaviour(rng, blocks)
    remedies = Remedies(Remedy(hoq=rng.choice([3, 10]), stall_count=rng.choice([0, 2])))
    fast = Simulation(network, traffic, switching, remedies, [again])
    slow = slow_twin(network, traffic, switching, remedies, [again])
    for stop in (60, 150, 250):
        fast.run(stop)
        slow.run(fast.now)
        assert_equal(fast, slow)
        assert fast.results_of(again)[0] == slow.attached[0].resent
        fast.check()


def test_a_deadlock_is_resolved_and_every_packet_arrives():
    plain = fig4_simulation(True, 8, messages=400)
    assert plain.run(10**6, stop_at_standstill=True).reason is StopReason.STANDSTILL
    remedies = Remedies(Remedy(hoq=20 * PACKET, stall_count=0))
    for mechanisms in ([], [Retransmission(50 * PACKET)]):
        simulation = simulate(
            plain.network, plain.traffic, switching=plain.switching, remedies=remedies, mechanisms=mechanisms
        )
        assert simulation.run(10**8).reason is StopReason.FINISHED
        flows, dropped = simulation.flows(), simulation.totals()["dropped"]
        assert dropped > 0
        assert bool(flows.messages_done.sum() == 5 * 400) is bool(mechanisms)
    assert simulation.results_of(Retransmission()).tolist() == [dropped, 0]


def test_a_timeout_of_no_time_is_refused():
    with pytest.raises(OptionError, match="timeout"):
        Retransmission(0).numbers(None, None)
