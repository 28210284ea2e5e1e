"""Figures that are known without simulating."""

import numpy as np
import pytest
from sim_cases import PACKET, cycles, fig4_simulation, flows_along, star

from routing.simulate.network import build_network
from routing.simulate.options import Arbitration, Switching
from routing.simulate.run import Why, simulate
from routing.simulate.traffic import Process


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_a_single_source_waits_as_a_queue_with_geometric_arrivals(load):
    fabric, routing, ways = star(1)
    network = build_network(fabric, routing, cycles(8 * PACKET))
    traffic = flows_along(fabric, ways, process=Process.BERNOULLI, probability=load / PACKET)
    simulation = simulate(network, traffic)
    simulation.run(12_000_000)
    flow = simulation.flows()
    waited = (flow.latency.sum() - flow.network_latency.sum()) / flow.packets.sum()
    assert waited == pytest.approx(load * (PACKET - 1) / (2 * (1 - load)), rel=0.03)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_many_sources_wait_as_a_queue_with_random_arrivals(load):
    fabric, routing, ways = star(32)
    network = build_network(fabric, routing, cycles(8 * PACKET))
    traffic = flows_along(fabric, ways, process=Process.POISSON, interval=32 * PACKET / load)
    simulation = simulate(network, traffic)
    simulation.run(12_000_000)
    flow = simulation.flows()
    waited = flow.latency.sum() / flow.packets.sum() - (PACKET + 2)
    assert waited == pytest.approx(PACKET * load / (2 * (1 - load)), rel=0.03)


@pytest.mark.parametrize("packets", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("wire", [1, 40])
def test_credits_limit_a_lane(packets, wire):
    fabric, routing, ways = star(1)
    network = build_network(fabric, routing, cycles(packets * PACKET, wire=wire, switch=3))
    simulation = simulate(network, flows_along(fabric, ways))
    simulation.run(100_000)
    round_trip = PACKET + 2 * wire + 3
    share = simulation.flows().bytes.sum() / 64 / 100_000
    assert share == pytest.approx(min(1.0, packets * PACKET / round_trip), rel=0.01)


@pytest.mark.parametrize("packets", [4, 8, 16, 32])
def test_a_ring_with_one_more_host_locks_after_fourteen_packets_for_each_of_the_buffer(packets):
    simulation = fig4_simulation(True, packets)
    stop = simulation.run(100_000, stop_at_standstill=True)
    assert stop.why is Why.STANDSTILL
    assert stop.time / PACKET == pytest.approx(14 * packets - 11.6, abs=0.1)
    (knot,) = simulation.waits().deadlocks
    assert len(knot.members) == 4


@pytest.mark.parametrize("packets", [8, 32])
def test_the_ring_without_it_runs_for_ever_in_turn_and_locks_by_arrival(packets):
    simulation = fig4_simulation(False, packets)
    assert simulation.run(200_000).why is Why.TIME
    np.testing.assert_allclose(simulation.flows().bytes / 64 / 200_000, 0.5, rtol=0.01)
    assert not simulation.waits().deadlocks
    locked = fig4_simulation(False, packets, switching=Switching(arbitration=Arbitration.ARRIVAL))
    assert locked.run(200_000, stop_at_standstill=True).why is Why.STANDSTILL
