"""Compare mechanisms at the hooks of the simulator with their slow references."""

import random

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from sim_random import any_behaviour, any_flow, any_network
from slow_compare import assert_equal, slow_twin

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import OptionError
from routing.simulate.mechanisms.hold import Hold
from routing.simulate.network import Timing, build_network
from routing.simulate.run import Simulation, simulate
from routing.simulate.state import StopReason
from routing.simulate.traffic import Traffic, all_to_all, uniform
from routing.topologies import generate


@examples(6)
@given(st.integers(0, 1 << 30))
def test_holds_in_anything_small(seed):
    rng = random.Random(seed)
    blocks = rng.choice([1, 2, 4])
    network = any_network(rng, blocks)
    traffic = Traffic(tuple(any_flow(rng, network.fabric) for _ in range(rng.randint(2, 8))), 64 * blocks)
    switching, remedies = any_behaviour(rng, blocks)
    fast = Simulation(network, traffic, switching, remedies, [Hold()])
    slow = slow_twin(network, traffic, switching, remedies, [Hold()])
    for stop in (20, 90, 200, 500):
        fast.run(stop)
        slow.run(fast.now)
        assert_equal(fast, slow)
        lids = [int(lid) for lid in network.fabric.endport_lid if rng.random() < 0.5]
        Hold().hold(fast, lids)
        slow.command(0, lids)


@pytest.fixture
def torus():
    fabric = generate("torus", ["3x3"], cas=1)
    return build_network(
        fabric, ENGINES["updn"].route(fabric, EngineOptions(vls=1, threads=1, effort=0.05)), Timing(buffer=64)
    )


def test_a_hold_of_all_lids_empties_the_fabric_and_no_message_is_forgotten(torus):
    traffic = all_to_all(torus.fabric, rounds=3)
    held = simulate(torus, traffic, mechanisms=[Hold()])
    held.run(5000)
    assert held.totals()["in_flight"] > 0
    Hold().hold(held, torus.fabric.endport_lid.tolist())
    stop = held.run(100_000)
    assert held.totals()["in_flight"] == 0
    assert stop.reason is not StopReason.FINISHED
    delivered = held.totals()["delivered"]
    held.run(200_000)
    assert held.totals()["delivered"] == delivered
    Hold().hold(held, [])
    assert held.run(10**6).reason is StopReason.FINISHED
    assert held.totals()["delivered"] == 9 * 8 * 3


def test_a_mechanism_without_effect_changes_no_counter(torus):
    traffic = uniform(torus, 0.7)
    plain, with_hold = simulate(torus, traffic), simulate(torus, traffic, mechanisms=[Hold()])
    for simulation in (plain, with_hold):
        simulation.run(50_000)
    assert plain.totals() == with_hold.totals()
    np.testing.assert_array_equal(plain._handle.channels(), with_hold._handle.channels())


def test_wrong_uses_of_mechanisms(torus):
    traffic = uniform(torus, 0.5)
    with pytest.raises(OptionError, match="no mechanism 'hold'"):
        Hold().hold(simulate(torus, traffic), [1])
    with pytest.raises(OptionError, match="twice"):
        simulate(torus, traffic, mechanisms=[Hold(), Hold()])
    with pytest.raises(OptionError, match="is not a LID"):
        Hold().hold(simulate(torus, traffic, mechanisms=[Hold()]), [1 << 40])
