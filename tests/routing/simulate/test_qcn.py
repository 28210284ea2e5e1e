"""Compare QCN with its slow reference, and check rates that follow from its formulas."""

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
from routing.simulate.mechanisms.qcn import FULL, Qcn
from routing.simulate.run import Simulation, simulate
from routing.simulate.traffic import Traffic


def any_qcn(rng):
    return Qcn(
        equilibrium=rng.randint(1, 3), weight=rng.choice([0, 2]), sample=rng.choice([1, 4]),
        notice=rng.choice([1, 7]), cycle=rng.choice([100, 700]), timer=rng.choice([5, 40]),
        increase=rng.choice([0.0, 0.01, 0.2]), least=rng.choice([0.01, 0.3]),
    )  # fmt: skip


@examples(6)
@given(st.integers(0, 1 << 30))
def test_any_settings_beside_the_slow_twin(seed):
    rng = random.Random(seed)
    blocks = rng.choice([1, 2, 4])
    network = any_network(rng, blocks)
    traffic = Traffic(tuple(any_flow(rng, network.fabric) for _ in range(rng.randint(3, 8))), 64 * blocks)
    qcn, behaviour = any_qcn(rng), any_behaviour(rng, blocks)
    fast = Simulation(network, traffic, *behaviour, [qcn])
    slow = slow_twin(network, traffic, *behaviour, [qcn])
    for stop in (60, 150, 250):
        fast.run(stop)
        slow.run(fast.now)
        assert_equal(fast, slow)
        twin, (samples, *rows) = slow.attached[0], fast.results_of(qcn).tolist()
        assert samples == twin.samples
        flows = [twin.flows[f] for f in range(len(traffic.flows))]
        assert rows[::3] == [flow.notified for flow in flows]
        assert rows[1::3] == [flow.rate for flow in flows]
        assert rows[2::3] == [flow.lowest for flow in flows]


def test_one_sender_is_never_notified():
    qcn = Qcn(equilibrium=4, sample=1)
    network, traffic = incast(1)
    simulation = simulate(network, traffic, mechanisms=[qcn])
    simulation.run(4000)
    assert simulation.results_of(qcn).tolist()[1:] == [0, FULL, FULL]
    assert simulation.flows().bytes[0] >= 0.99 * 4000 * 64


def test_without_recovery_senders_keep_the_lowest_rate():
    """Rates never rise here.  Each of eight senders has a throughput of `least` of the link, together at least 0.8."""
    qcn = Qcn(equilibrium=1, sample=1, cycle=1 << 40, timer=1 << 40, least=0.1)
    network, traffic = incast(8)
    simulation = simulate(network, traffic, mechanisms=[qcn])
    simulation.run(20_000)
    early = simulation.flows().bytes
    simulation.run(60_000)
    rates = simulation.results_of(qcn)[2::3] / FULL
    np.testing.assert_allclose((simulation.flows().bytes - early) / 64 / 40_000, rates, rtol=0.02)
    assert rates.sum() <= 1.0
    assert rates.min() >= 0.0999


def test_fast_recovery_halves_the_distance_to_the_target():
    """The second sender ends early.  Five cycles of the timer halve the distance, and later cycles raise the target."""
    qcn = Qcn(equilibrium=5, sample=29, cycle=1 << 40, timer=2000, increase=0.05, least=0.001)
    network, traffic = incast(2)
    flows = (traffic.flows[0], replace(traffic.flows[1], messages=16))
    simulation = simulate(network, replace(traffic, flows=flows), mechanisms=[qcn])
    rates = []
    for tick in range(1000, 100_000, 250):
        simulation.run(tick)
        notified, rate, _ = simulation.results_of(qcn)[1:4].tolist()
        assert notified == 4
        rates += [rate] if not rates or rate != rates[-1] else []
    distances = np.diff(rates[:6])
    np.testing.assert_allclose(distances[1:], distances[:-1] / 2, atol=1)
    target, expected = rates[0] + 2 * distances[0], rates[5]
    for rate in rates[6:9]:
        target = min(target + 0.05 * FULL, FULL)
        expected = (expected + target) / 2
        assert rate == pytest.approx(expected, abs=8)
    assert rates[-1] == FULL


def test_senders_share_a_hotspot():
    qcn = Qcn(equilibrium=4, sample=5, cycle=50 * 256, timer=400)
    network, traffic = incast(4)
    simulation = simulate(network, traffic, mechanisms=[qcn])
    simulation.run(20_000)
    early = simulation.flows().bytes
    simulation.run(100_000)
    shares = (simulation.flows().bytes - early) / 64 / 80_000
    assert 0.85 <= shares.sum() <= 1.0
    assert shares.min() >= 0.1


@pytest.mark.parametrize(
    "setting", [{"equilibrium": 0}, {"increase": -1.0}, {"least": 0.0}, {"timer": 0}, {"notice": 0}, {"weight": 101}]
)
def test_settings_out_of_range_are_refused(setting):
    network, traffic = incast(1)
    with pytest.raises(OptionError, match=next(iter(setting))):
        simulate(network, traffic, mechanisms=[replace(Qcn(), **setting)])
