"""Check histograms of latencies: the bounds of buckets, and percentiles against those of the packets."""

import numpy as np
import pytest
from sim_cases import PACKET, cycles, flows_along, star

from routing._kernels.simulation_arrays import LATENCY_BUCKETS
from routing.errors import OptionError
from routing.simulate.latency import Latencies, bucket_bounds
from routing.simulate.network import build_network
from routing.simulate.run import simulate
from routing.simulate.traffic import Flow, Process, Traffic


def test_buckets_follow_each_other_and_are_narrow():
    bounds = bucket_bounds()
    assert len(bounds) == LATENCY_BUCKETS + 1
    usual = bounds[: 64 + 32 * 56 + 1]
    widths = np.diff(usual)
    assert (widths >= 1).all()
    assert (widths[:64] == 1).all()
    assert (widths[64:] <= usual[64:-1] / 32).all()


def test_one_packet_at_a_time_takes_the_time_of_its_path():
    # Messages far apart meet no other packet: two wires, one switch of 3 ticks, and the length of the packet.
    fabric, routing, _ = star(2)
    network = build_network(fabric, routing, cycles(8 * PACKET, wire=10, switch=3))
    lid = int(fabric.endport_lid[2])
    trace = tuple((1000 * n, lid, 64 * PACKET) for n in range(5))
    simulation = simulate(network, Traffic((Flow(0, process=Process.TRACE, trace=trace),)))
    simulation.run(900)
    before = simulation.latencies()
    simulation.run(10_000)
    after = simulation.latencies()
    assert before.packets.sum() == 1
    assert after.packets.sum() == after.messages.sum() == 5
    exact = 2 * 10 + 3 + PACKET
    assert after.packet_percentile(0) == after.packet_percentile(50) == after.message_percentile(100) == exact
    assert after.since(before).packets.sum() == 4
    assert before.since(before).packet_percentile(99) is None


def test_messages_of_two_packets_end_with_the_second():
    fabric, routing, paths = star(1)
    network = build_network(fabric, routing, cycles(8 * PACKET, wire=1, switch=0))
    traffic = flows_along(fabric, paths, bytes=4096, messages=1)
    simulation = simulate(network, Traffic(traffic.flows, mtu=2048))
    simulation.run(10_000)
    latencies = simulation.latencies()
    assert (latencies.packets.sum(), latencies.messages.sum()) == (2, 1)
    first, second = PACKET + 2, 2 * PACKET + 2
    assert latencies.packet_percentile(50) == first
    assert latencies.message_percentile(50) == pytest.approx(second, rel=1 / 64)


def test_the_mean_of_the_buckets_is_the_mean_of_the_flows():
    fabric, routing, paths = star(4)
    network = build_network(fabric, routing, cycles(8 * PACKET))
    simulation = simulate(network, flows_along(fabric, paths, process=Process.POISSON, interval=5 * PACKET))
    simulation.run(100_000)
    latencies, bounds = simulation.latencies(), bucket_bounds()
    middle = (bounds[:-1] + bounds[1:] - 1) / 2
    flows = simulation.flows()
    assert latencies.packets.sum() == flows.packets.sum()
    mean = (latencies.packets * middle).sum() / latencies.packets.sum()
    assert mean == pytest.approx(flows.latency.sum() / flows.packets.sum(), rel=0.01)
    assert latencies.packet_percentile(100) == pytest.approx(flows.worst.max(), rel=1 / 32)


@pytest.mark.parametrize("percent", [-1, 101, float("nan"), "50"])
def test_percentiles_are_0_to_100(percent):
    with pytest.raises(OptionError, match="is not a percentile"):
        Latencies(np.zeros(2048, np.int64), np.zeros(2048, np.int64)).packet_percentile(percent)
