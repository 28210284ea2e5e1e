"""Compare InfiniBand congestion control with its slow reference, and check effects that are known beforehand."""

import random
from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from sim_cases import incast
from sim_random import any_behaviour, any_flow, any_network
from slow_compare import assert_equal, slow_twin

from routing.errors import OptionError
from routing.simulate.mechanisms.congestion import CongestionControl
from routing.simulate.run import Simulation, simulate
from routing.simulate.traffic import Traffic


def any_control(rng):
    return CongestionControl(
        threshold=rng.randint(1, 4), marking_rate=rng.choice([0, 0, 2]), victims=rng.random() < 0.3,
        smallest=rng.choice([0, 0, 100]), notice=rng.choice([1, 7]), increase=rng.choice([1, 3]),
        limit=rng.choice([2, 20]), timer=rng.choice([5, 40]), step=rng.choice([0.0, 0.3, 2.0]),
    )  # fmt: skip


@examples(6)
@given(st.integers(0, 1 << 30))
def test_any_congestion_control_beside_the_slow_twin(seed):
    rng = random.Random(seed)
    blocks = rng.choice([1, 2, 4])
    network = any_network(rng, blocks)
    traffic = Traffic(tuple(any_flow(rng, network.fabric) for _ in range(rng.randint(3, 8))), 64 * blocks)
    control, behaviour = any_control(rng), any_behaviour(rng, blocks)
    fast = Simulation(network, traffic, *behaviour, [control])
    slow = slow_twin(network, traffic, *behaviour, [control])
    for stop in (60, 150, 250):
        fast.run(stop)
        slow.run(fast.now)
        assert_equal(fast, slow)
        twin, (marks, *rows) = slow.attached[0], fast.results_of(control).tolist()
        assert marks == twin.marked
        flows = range(len(traffic.flows))
        assert rows[::3] == [twin.becns.get(f, 0) for f in flows]
        assert rows[1::3] == [twin.ccti.get(f, 0) for f in flows]
        assert rows[2::3] == [twin.highest.get(f, 0) for f in flows]


def test_one_sender_is_never_marked_and_not_slowed():
    network, traffic = incast(1)
    simulation = simulate(network, traffic, mechanisms=[CongestionControl(threshold=2)])
    simulation.run(4000)
    assert simulation.results_of(CongestionControl()).tolist() == [0, 0, 0, 0]
    assert simulation.flows().bytes[0] >= 0.99 * 4000 * 64


def test_an_index_that_cannot_fall_leaves_the_rate_of_the_table():
    # Every packet of the second sender queues behind one of the first, so both reach the largest index and keep it.
    control = CongestionControl(threshold=1, limit=3, timer=1 << 40, step=1.0)
    network, traffic = incast(2)
    simulation = simulate(network, traffic, mechanisms=[control])
    simulation.run(4000)
    early = simulation.flows().bytes
    simulation.run(20_000)
    rate = (simulation.flows().bytes - early) / 64 / 16_000
    np.testing.assert_allclose(rate, 1 / (1 + 3), rtol=0.01)


def test_a_step_of_zero_marks_but_delays_nothing():
    network, traffic = incast(3)
    plain, marking = simulate(network, traffic), simulate(network, traffic, mechanisms=[CongestionControl(step=0.0)])
    for simulation in (plain, marking):
        simulation.run(5000)
    assert marking.results_of(CongestionControl())[0] > 100
    np.testing.assert_array_equal(plain.flows().bytes, marking.flows().bytes)


@pytest.mark.parametrize("setting", [{"threshold": 0}, {"step": -1.0}, {"limit": 1 << 14}, {"timer": 0}, {"notice": 0}])
def test_settings_out_of_range_are_refused(setting):
    network, traffic = incast(1)
    with pytest.raises(OptionError, match=next(iter(setting))):
        simulate(network, traffic, mechanisms=[replace(CongestionControl(), **setting)])
