"""Compare switches that choose a port for each packet with their slow reference, and check throughput and deadlock."""

import random
from dataclasses import replace

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from sim_cases import flows_along
from sim_random import any_behaviour, any_flow, any_network
from slow_compare import assert_equal, slow_twin

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import OptionError, RoutingError
from routing.simulate.handmade import literal_fabric, tables_from_paths
from routing.simulate.mechanisms.port_choice import PortChoice
from routing.simulate.network import Timing, build_network
from routing.simulate.options import Breaker, Remedies, Remedy
from routing.simulate.run import Simulation, simulate
from routing.simulate.state import StopReason
from routing.simulate.traffic import Traffic, all_to_all, uniform
from routing.topologies import generate

BLOCKS = 4
PACKET = 64 * BLOCKS
UNPROVEN = PortChoice(shortest=True)


def network_of(fabric, routing, packets=4):
    return build_network(fabric, routing, Timing(1.0, 1, 1, 1.0, packets * BLOCKS))


@examples(20)
@given(st.integers(0, 1 << 30))
def test_any_network_beside_the_slow_twin(seed):
    rng = random.Random(seed)
    blocks = rng.choice([1, 2, 4])
    network = any_network(rng, blocks)
    traffic = Traffic(tuple(any_flow(rng, network.fabric) for _ in range(rng.randint(3, 8))), 64 * blocks)
    switching, remedies = any_behaviour(rng, blocks)
    if remedies.port.breaker is Breaker.LOOP:
        remedies = replace(remedies, port=replace(remedies.port, breaker=Breaker.DEADLOCK))
    fast = Simulation(network, traffic, switching, remedies, [UNPROVEN])
    slow = slow_twin(network, traffic, switching, remedies, [UNPROVEN])
    channel = rng.choice([c for c in range(network.channels) if network.arrays.dst[c] < network.fabric.switches])
    for stop, change in ((60, "fail"), (150, "restore"), (250, None)):
        fast.run(stop)
        slow.run(fast.now)
        assert_equal(fast, slow)
        twin = slow.attached[0]
        assert fast.results_of(UNPROVEN).tolist() == [twin.choices, twin.others]
        if change:
            getattr(fast, f"{change}_link")(channel)
            getattr(slow, change)(channel)
            slow.now = fast.now


def two_cables():
    """Return two switches with two cables and two senders.  The tables use only one of the cables."""
    cas = {"a": "x", "b": "x", "c": "y", "d": "y"}
    fabric = literal_fabric("two cables", ["x", "y"], [("x", "y"), ("x", "y")], cas)
    paths = [("a", "x", "y", "c"), ("b", "x", "y", "d")]
    return network_of(fabric, tables_from_paths(fabric, paths)), flows_along(fabric, paths, bytes=PACKET)


def accepted(simulation, packets=1000):
    """Return the throughput of each flow as a share of a link."""
    simulation.run(packets * BLOCKS)
    return simulation.flows().bytes / 64 / simulation.now


def test_two_senders_use_both_cables():
    network, traffic = two_cables()
    assert accepted(simulate(network, traffic)) == pytest.approx([0.5, 0.5], rel=0.03)
    simulation = simulate(network, traffic, mechanisms=[UNPROVEN])
    assert accepted(simulation) == pytest.approx([1, 1], rel=0.03)
    # Each packet of the two flows has a choice at one switch, and each cable carries about half of the packets.
    choices, others = simulation.results_of(UNPROVEN).tolist()
    assert choices == pytest.approx(2000, rel=0.03)
    assert others == pytest.approx(1000, rel=0.1)


def test_a_lone_sender_keeps_the_port_of_the_table():
    network, traffic = two_cables()
    simulation = simulate(network, replace(traffic, flows=traffic.flows[:1]), mechanisms=[UNPROVEN])
    assert accepted(simulation) == pytest.approx([1], rel=0.03)
    choices, others = simulation.results_of(UNPROVEN).tolist()
    assert choices == pytest.approx(1000, rel=0.03)
    assert others == 0


def test_choice_does_not_delay_packets_at_half_load():
    fabric = generate("torus", ["4x4"], cas=2)
    network = network_of(fabric, ENGINES["torus-2qos"].route(fabric, EngineOptions(vls=1)))
    traffic = uniform(network, 0.5, bytes=PACKET, mtu=PACKET)
    slowest = []
    for mechanisms in ([], [PortChoice()]):
        simulation = simulate(network, traffic, mechanisms=mechanisms)
        assert accepted(simulation, 10000).mean() == pytest.approx(0.5, rel=0.02)
        slowest.append(simulation.latencies().packet_percentile(99))
    fixed, chosen = slowest
    assert chosen <= 1.05 * fixed


def test_a_port_whose_link_is_down_is_not_chosen():
    network, traffic = two_cables()
    simulation = simulate(network, traffic, mechanisms=[UNPROVEN])
    simulation.run(100 * BLOCKS)
    lost = simulation.fail_link(network.channel_between("x", "y"))
    before = simulation.flows().bytes.sum()
    simulation.run(1100 * BLOCKS)
    assert simulation.totals()["dropped"] == lost
    assert (simulation.flows().bytes.sum() - before) / 64 == pytest.approx(1000 * BLOCKS, rel=0.03)


@pytest.mark.parametrize("choice", [PortChoice(), UNPROVEN])
def test_only_unproven_ports_deadlock(choice):
    """On a ring, ports on shortest paths close a cycle; the proven groups of any tables do not."""
    fabric = generate("ring", ["6"], cas=2)
    network = network_of(fabric, ENGINES["updn"].route(fabric, EngineOptions(vls=1, effort=0.05)), packets=1)
    simulation = simulate(network, all_to_all(fabric, bytes=PACKET, mtu=PACKET), mechanisms=[choice])
    simulation.run(4000 * BLOCKS)
    assert bool(simulation.wait_graph().deadlocks) is choice.shortest


@pytest.mark.parametrize("engine", ["updn", "nue", "lash"])
@pytest.mark.parametrize("words", ["ring 5", "torus 3x3", "kary-ntree 2,3", "random-regular 8,3"])
def test_proven_ports_deliver_everything(words, engine):
    name, sizes = words.split()
    fabric = generate(name, sizes.split(","), **({} if name == "kary-ntree" else {"cas": 2}))
    network = network_of(fabric, ENGINES[engine].route(fabric, EngineOptions(vls=2)), packets=1)
    simulation = simulate(network, all_to_all(fabric, bytes=PACKET, mtu=PACKET, rounds=20), mechanisms=[PortChoice()])
    assert simulation.run(10**6).reason is StopReason.FINISHED
    assert simulation.totals()["dropped"] == 0


def test_tables_with_a_credit_loop_have_no_proven_ports():
    fabric = generate("ring", ["6"], cas=2)
    network = network_of(fabric, ENGINES["minhop"].route(fabric, EngineOptions(vls=1)))
    with pytest.raises(RoutingError, match="credit loop"):
        PortChoice().channels(network)


def test_vls_that_depend_on_ports_are_refused():
    fabric = generate("torus", ["5x5"], cas=1)
    network = network_of(fabric, ENGINES["torus-2qos"].route(fabric, EngineOptions(vls=2)))
    for choice in (PortChoice(), UNPROVEN):
        with pytest.raises(OptionError, match="differ between ports"):
            choice.channels(network)


def test_tables_cannot_change_beside_a_choice_of_ports():
    network, traffic = two_cables()
    simulation = simulate(network, traffic, mechanisms=[UNPROVEN])
    with pytest.raises(OptionError, match="tables cannot change beside port-choice"):
        simulation.set_lft(network.arrays.lft)
    with pytest.raises(OptionError, match="tables cannot change beside port-choice"):
        simulate(network, traffic, remedies=Remedies(Remedy(breaker=Breaker.LOOP)), mechanisms=[UNPROVEN])
