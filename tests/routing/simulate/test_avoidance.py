"""Compare bubble flow control and injection limits with their slow references, and check where they avoid a
deadlock.
"""

import random
from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from sim_cases import cycles, flows_along
from sim_random import any_behaviour, any_flow, any_network
from slow_compare import assert_equal, slow_twin

from routing.errors import OptionError
from routing.simulate.dimension_order import dimension_order
from routing.simulate.handmade import literal_fabric, tables_from_paths
from routing.simulate.mechanisms.bubble import Bubbles, rings_of
from routing.simulate.mechanisms.injection_limit import InjectionLimit
from routing.simulate.network import build_network
from routing.simulate.options import Arbitration, Remedies, Switching
from routing.simulate.run import Simulation, simulate
from routing.simulate.traffic import Traffic, uniform
from routing.topologies import generate


def ring(rng, switches, blocks):
    """Return a ring of switches with a CA each, and flows that go clockwise over two to n - 1 links."""
    names = [f"s{n}" for n in range(switches)]
    cables = [(names[n], names[(n + 1) % switches]) for n in range(switches)]
    fabric = literal_fabric("ring", names, cables, {f"c{n}": names[n] for n in range(switches)})
    paths = []
    for n in range(switches):
        hops = rng.randint(2, switches - 1)
        paths.append([f"c{n}", *(names[(n + k) % switches] for k in range(hops + 1)), f"c{(n + hops) % switches}"])
    routing = tables_from_paths(fabric, paths)
    network = build_network(fabric, routing, cycles(rng.randint(2 * blocks, 4 * blocks), wire=rng.randint(1, 5)))
    return network, flows_along(fabric, paths, bytes=64 * blocks)


@examples(6)
@given(st.integers(0, 1 << 30))
def test_bubbles_beside_the_slow_twin_never_lock(seed):
    rng = random.Random(seed)
    blocks, (network, traffic) = 2, ring(rng, rng.randint(3, 5), 2)
    switching = Switching(rng.choice(list(Arbitration)), speedup=rng.choice([0, 1]), seed=seed % 100)
    _, remedies = any_behaviour(rng, blocks)
    remedies = type(remedies)()
    fast = Simulation(network, traffic, switching, remedies, [Bubbles()])
    slow = slow_twin(network, traffic, switching, remedies, [Bubbles()])
    for stop in (60, 200):
        fast.run(stop)
        slow.run(fast.now)
        assert_equal(fast, slow)
    fast.run(3000)
    early = fast.flows().packets.sum()
    fast.run(6000)
    assert not fast.wait_graph().deadlocks
    assert fast.flows().packets.sum() > early
    fast.check()


def test_the_same_ring_locks_without_bubbles():
    outcomes = []
    for bubbles in (False, True):
        network, traffic = ring(random.Random(5), 5, 2)
        how = Switching(Arbitration.ARRIVAL)
        simulation = simulate(network, traffic, switching=how, mechanisms=[Bubbles()] * bubbles)
        simulation.run(20_000)
        outcomes.append(bool(simulation.wait_graph().deadlocks))
    assert outcomes == [True, False]


def test_a_torus_on_one_vl_needs_bubbles():
    fabric = generate("torus", ["5x5"], cas=1)
    network = build_network(fabric, replace(dimension_order(fabric), sl2vl=np.zeros(16, np.uint8)), cycles(3), vls=1)
    traffic = uniform(network, 1.0, bytes=64, mtu=64)
    assert len(set(rings_of(network, traffic)) - {-1}) == 20  # five rows and five columns, two directions each
    shares = []
    for mechanisms in ([], [Bubbles()]):
        simulation = simulate(network, traffic, switching=Switching(Arbitration.RANDOM), mechanisms=mechanisms)
        simulation.run(30_000)
        early = simulation.totals()["delivered"]
        simulation.run(60_000)
        shares.append((simulation.totals()["delivered"] - early) / 30_000 / 25)
    assert shares[0] == 0.0
    assert shares[1] > 0.3


@examples(6)
@given(st.integers(0, 1 << 30))
def test_any_injection_limit_beside_the_slow_twin(seed):
    rng = random.Random(seed)
    blocks = rng.choice([1, 2])
    network = any_network(rng, blocks)
    traffic = Traffic(tuple(any_flow(rng, network.fabric) for _ in range(rng.randint(3, 8))), 64 * blocks)
    limit, behaviour = InjectionLimit(rng.choice([0.5, 1.0, 2.0])), any_behaviour(rng, blocks)
    fast = Simulation(network, traffic, *behaviour, [limit])
    slow = slow_twin(network, traffic, *behaviour, [limit])
    for stop in (60, 200):
        fast.run(stop)
        slow.run(fast.now)
        assert_equal(fast, slow)
    assert fast.results_of(limit)[0] == slow.attached[0].stops


def test_an_injection_limit_with_default_switches_beside_the_slow_twin():
    network, traffic = ring(random.Random(5), 5, 2)
    limit, behaviour = InjectionLimit(1.0), (Switching(), Remedies())
    fast = Simulation(network, traffic, *behaviour, [limit])
    slow = slow_twin(network, traffic, *behaviour, [limit])
    fast.run(200)
    slow.run(fast.now)
    assert_equal(fast, slow)
    assert fast.results_of(limit)[0] == slow.attached[0].stops > 0


def test_wrong_uses_are_refused():
    network, traffic = ring(random.Random(5), 4, 2)
    with pytest.raises(OptionError, match="one size"):
        Bubbles().numbers(network, Traffic(traffic.flows, 96))
    with pytest.raises(OptionError, match="no room for two"):
        Bubbles().numbers(build_network(network.fabric, network.routing, cycles(3)), traffic)
    with pytest.raises(OptionError, match="packets"):
        InjectionLimit(0).numbers(network, traffic)
