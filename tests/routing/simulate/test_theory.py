"""Compare simulations with figures that theory gives."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from sim_cases import PACKET, cycles, fat_tree, fig4_simulation, flows_along, star, torus_dor

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.simulate.handmade import literal_fabric, tables_from_paths
from routing.simulate.network import build_network
from routing.simulate.options import Arbitration, Inputs, Switching, VLArb
from routing.simulate.run import simulate
from routing.simulate.state import StopReason
from routing.simulate.traffic import Flow, Process, Traffic, all_to_all, shift, uniform


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_a_single_source_waits_as_a_queue_with_geometric_arrivals(load):
    fabric, routing, paths = star(1)
    network = build_network(fabric, routing, cycles(8 * PACKET))
    traffic = flows_along(fabric, paths, process=Process.BERNOULLI, probability=load / PACKET)
    simulation = simulate(network, traffic)
    simulation.run(12_000_000)
    flow = simulation.flows()
    waited = (flow.latency.sum() - flow.network_latency.sum()) / flow.packets.sum()
    assert waited == pytest.approx(load * (PACKET - 1) / (2 * (1 - load)), rel=0.03)


@pytest.mark.parametrize(("sources", "load"), [(32, 0.5), (32, 0.8), (32, 0.9), (16, 0.5), (16, 0.8)])
def test_many_sources_wait_as_a_queue_with_random_arrivals(sources, load):
    fabric, routing, paths = star(sources)
    network = build_network(fabric, routing, cycles(8 * PACKET))
    traffic = flows_along(fabric, paths, process=Process.POISSON, interval=sources * PACKET / load)
    simulation = simulate(network, traffic)
    simulation.run(12_000_000)
    flow = simulation.flows()
    waited = flow.latency.sum() / flow.packets.sum() - (PACKET + 2)
    assert waited == pytest.approx(PACKET * load / (2 * (1 - load)), rel=0.03)


@pytest.mark.parametrize("packets", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("wire", [1, 40])
def test_credits_limit_a_vl(packets, wire):
    fabric, routing, paths = star(1)
    network = build_network(fabric, routing, cycles(packets * PACKET, wire=wire, switch=3))
    simulation = simulate(network, flows_along(fabric, paths))
    simulation.run(100_000)
    round_trip = PACKET + 2 * wire + 3
    share = simulation.flows().bytes.sum() / 64 / 100_000
    assert share == pytest.approx(min(1.0, packets * PACKET / round_trip), rel=0.01)


@pytest.mark.parametrize("packets", [1, 2, 4, 8])
@pytest.mark.parametrize("wire", [1, 100])
def test_credits_limit_the_vl_to_a_ca(packets, wire):
    # Four sources together could fill the link.  A buffer of the CA is free again when the tail of its packet has
    # arrived.  So the data of all buffers can be sent once in a packet time plus two wires.
    fabric, routing, paths = star(4)
    network = build_network(fabric, routing, cycles(packets * PACKET, wire=wire, switch=0))
    simulation = simulate(network, flows_along(fabric, paths))
    simulation.run(100_000)
    share = simulation.flows().bytes.sum() / 64 / 100_000
    assert share == pytest.approx(min(1.0, packets * PACKET / (PACKET + 2 * wire)), rel=0.01)


@pytest.mark.parametrize("inputs", list(Inputs))
@pytest.mark.parametrize(("speedup", "expected"), [(1, 0.5), (2, 1.0), (3, 1.0), (0, 1.0)])
def test_the_speedup_of_the_crossbar_limits_an_input(speedup, expected, inputs):
    # One CA sends to two others alternately, at twice the rate of their links.  So its input must feed two outputs at
    # once.  With a single queue per VL (FIFO), one packet at a time leaves.
    fabric, _, _ = star(3)
    routing = ENGINES["minhop"].route(fabric, EngineOptions(threads=1))
    network = build_network(fabric, routing, cycles(8 * PACKET))
    arrays = network.arrays
    slow = np.where(arrays.dst >= arrays.switches, 2 * arrays.cost, arrays.cost)
    network = replace(network, arrays=replace(arrays, cost=slow))
    lids = tuple(fabric.endport_lid.tolist())
    traffic = Traffic((Flow(0, lids[1:3], bytes=64 * PACKET),), 64 * PACKET)
    simulation = simulate(network, traffic, switching=Switching(inputs=inputs, speedup=speedup))
    simulation.run(100_000)
    share = simulation.flows().bytes.sum() / 64 / 100_000
    assert share == pytest.approx(0.5 if inputs is Inputs.FIFO else expected, rel=0.01)


@pytest.mark.parametrize("window", [1, 2, 3, 7])
@pytest.mark.parametrize("wire", [1, 50])
def test_a_window_limits_a_flow(window, wire):
    fabric, routing, paths = star(1)
    network = build_network(fabric, routing, cycles(32 * PACKET, wire=wire, switch=3))
    simulation = simulate(network, flows_along(fabric, paths, window=window))
    most = 0
    for stop in range(0, 2_000, 7):
        simulation.run(stop)
        flows = simulation.flows()
        most = max(most, int((flows.sent_packets - flows.packets).max()))
    simulation.run(100_000)
    away = PACKET + 2 * wire + 3 + 1  # the last 1 is the tick until the next packet leaves
    assert simulation.flows().bytes.sum() / 64 / 100_000 == pytest.approx(min(1.0, window * PACKET / away), rel=0.01)
    assert most == min(window, -(-away // PACKET))


@pytest.mark.parametrize("packets", [4, 8, 16, 32, 64, 128])
def test_a_ring_with_one_more_host_locks_after_fourteen_packets_for_each_of_the_buffer(packets):
    simulation = fig4_simulation(True, packets)
    stop = simulation.run(100_000, stop_at_standstill=True)
    assert stop.reason is StopReason.STANDSTILL
    assert simulation.totals()["last_move"] / PACKET == 14 * packets - 10.625  # 45.4, 101.4, 213.4 ... 1781.4
    (knot,) = simulation.wait_graph().deadlocks
    assert len(knot.members) == 4


@pytest.mark.parametrize("packets", [8, 32])
def test_the_ring_without_it_runs_for_ever_in_turn_and_locks_by_arrival(packets):
    simulation = fig4_simulation(False, packets)
    assert simulation.run(200_000).reason is StopReason.TIME
    np.testing.assert_allclose(simulation.flows().bytes / 64 / 200_000, 0.5, rtol=0.01)
    assert not simulation.wait_graph().deadlocks
    locked = fig4_simulation(False, packets, switching=Switching(arbitration=Arbitration.ARRIVAL, speedup=2))
    assert locked.run(200_000, stop_at_standstill=True).reason is StopReason.STANDSTILL


def test_hops_and_latency_of_an_empty_torus():
    fabric, routing = torus_dor(8)
    network = build_network(fabric, routing, cycles(8, wire=1, switch=1))
    exchange = simulate(network, all_to_all(fabric, bytes=64, mtu=64))
    assert exchange.run_to_end(limit=1_000_000).reason is StopReason.FINISHED
    totals = exchange.totals()
    assert totals["injected"] == totals["delivered"] == 64 * 63
    switches = 4 * 64 / 63 + 1  # number of switches on an average path, which has one channel more
    assert totals["hops"] / totals["injected"] == pytest.approx(switches + 1, abs=1e-9)
    quiet = simulate(network, uniform(network, 0.002, bytes=64, mtu=64, process=Process.BERNOULLI))
    quiet.run(200_000)
    flows = quiet.flows()
    assert flows.latency.sum() / flows.packets.sum() == pytest.approx((switches + 1) + switches + 1, rel=0.03)


def test_dimension_order_on_a_torus_falls_short_of_the_bisection():
    fabric, routing = torus_dor(8)
    network = build_network(fabric, routing, cycles(4 * 8, wire=1, switch=1))
    simulation = simulate(network, uniform(network, 1.0, bytes=512, mtu=512, process=Process.PERSISTENT))
    simulation.run(4_000)
    early = simulation.flows().bytes.sum()
    simulation.run(16_000)
    accepted = (simulation.flows().bytes.sum() - early) / 64 / 64 / 12_000
    assert 0.5 < accepted < 0.9  # 1.0 is the capacity of the bisection
    assert not simulation.wait_graph().deadlocks


def ring_under_more_than_fits(vls, arbitration):
    """Return a simulation of a ring of four switches with two CAs each and shortest paths between all pairs.

    With two VLs, paths over the dateline (s3 to s0) use the second VL.
    """
    switches, cas = [f"s{n}" for n in range(4)], {f"{side}{n}": f"s{n}" for n in range(4) for side in "pq"}
    fabric = literal_fabric("ring4", switches, [(f"s{n}", f"s{(n + 1) % 4}") for n in range(4)], cas)
    paths, sl = [], {}
    for start, steps, a, b in product(range(4), (0, 1, 2, -1), "pq", "pq"):
        if (steps, a) == (0, b):
            continue
        stops = [(start + n * (1 if steps > 0 else -1)) % 4 for n in range(abs(steps) + 1)]
        paths.append((f"{a}{start}", *(f"s{n}" for n in stops), f"{b}{stops[-1]}"))
        sl[paths[-1][0], paths[-1][-1]] = vls - 1 if {0, 3} in map(set, pairwise(stops)) else 0
    network = build_network(fabric, tables_from_paths(fabric, paths, vls=vls, sl=sl), cycles(4 * PACKET))
    traffic = uniform(network, 1.0, process=Process.PERSISTENT)
    return simulate(network, traffic, switching=Switching(arbitration))


@pytest.mark.parametrize("arbitration", list(Arbitration))
def test_a_ring_of_four_locks_on_one_vl_and_not_with_a_dateline(arbitration):
    one = ring_under_more_than_fits(1, arbitration)
    one.run(1_000_000, stop_at_standstill=True)
    assert one.wait_graph().deadlocks
    two = ring_under_more_than_fits(2, arbitration)
    for stop in range(100_000, 1_000_001, 100_000):
        before = two.flows().bytes
        two.run(stop)
        assert (two.flows().bytes > before).all()
        assert not two.wait_graph().deadlocks


@pytest.mark.parametrize("by", range(1, 16))
def test_every_shift_is_free_on_a_fat_tree(by):
    fabric, routing = fat_tree(4, 4)
    network = build_network(fabric, routing, cycles(4 * PACKET))
    simulation = simulate(network, shift(fabric, by))
    simulation.run(20_000)
    assert simulation.flows().bytes.min() / 64 / 20_000 > 0.985


@pytest.mark.parametrize(("inputs", "least", "most"), [(Inputs.FIFO, 0.57, 0.61), (Inputs.VOQ, 0.93, 1.0)])
def test_single_queues_at_inputs_stop_at_two_minus_root_two(inputs, least, most):
    names = [f"h{n}" for n in range(32)]
    fabric = literal_fabric("crossbar", ["sw"], [], dict.fromkeys(names, "sw"))
    routing = tables_from_paths(fabric, [], fill=True)
    network = build_network(fabric, routing, cycles(32 * 4))
    how = Switching(arbitration=Arbitration.RANDOM, inputs=inputs)
    traffic = uniform(network, 1.0, bytes=256, mtu=256, process=Process.PERSISTENT)
    simulation = simulate(network, traffic, switching=how)
    simulation.run(10_000)
    early = simulation.flows().bytes.sum()
    simulation.run(60_000)
    assert least <= (simulation.flows().bytes.sum() - early) / 64 / 32 / 50_000 <= most


def test_a_cycle_of_dependencies_need_not_lock():
    """Three flows close a cycle on a ring of six.  Each shares its destination with two flows that start at the last
    switch.
    """
    switches = [f"s{n}" for n in range(6)]
    cas = {f"h{n}": f"s{n}" for n in range(6)} | {f"{side}{n}": f"s{n}" for n in (1, 3, 5) for side in "pq"}
    fabric = literal_fabric("ring6", switches, [(f"s{n}", f"s{(n + 1) % 6}") for n in range(6)], cas)
    paths = []
    for start in (0, 2, 4):
        end = (start + 3) % 6
        paths.append((f"h{start}", *(f"s{(start + n) % 6}" for n in range(4)), f"h{end}"))
        paths += [(f"{side}{end}", f"s{end}", f"h{end}") for side in "pq"]
    network = build_network(fabric, tables_from_paths(fabric, paths), cycles(8 * PACKET))
    simulation = simulate(network, flows_along(fabric, paths))
    simulation.run(200_000)
    np.testing.assert_allclose(simulation.flows().bytes / 64 / 200_000, 1 / 3, rtol=0.03)
    assert simulation.wait_graph().verdict != "deadlocked"
    by_arrival = simulate(network, flows_along(fabric, paths), switching=Switching(arbitration=Arbitration.ARRIVAL))
    by_arrival.run(200_000)
    share = by_arrival.flows().bytes / 64 / 200_000
    assert share.min() > 0.3
    assert share.max() < 0.36


def test_credits_that_come_in_packets_of_their_own_cost_throughput_where_buffers_are_small():
    fabric, routing, paths = star(1)
    network = build_network(fabric, routing, cycles(4 * PACKET))
    shares = []
    for period in (0, PACKET, 8 * PACKET):
        simulation = simulate(network, flows_along(fabric, paths), switching=Switching(fcp_period=period))
        simulation.run(100_000)
        shares.append(simulation.flows().bytes.sum() / 64 / 100_000)
    assert shares[0] == pytest.approx(1.0, rel=0.01)
    assert shares[1] == pytest.approx(1.0, rel=0.01)
    assert shares[2] == pytest.approx(4 / 8, rel=0.02)  # one buffer of data per period


def test_weights_of_vl_arbitration_share_a_link():
    cas = {"a": "x", "b": "x", "c": "y", "d": "y"}
    fabric = literal_fabric("two", ["x", "y"], [("x", "y")], cas)
    paths = [("a", "x", "y", "c"), ("b", "x", "y", "d")]
    routing = tables_from_paths(fabric, paths, vls=2, sl={("a", "c"): 0, ("b", "d"): 1})
    network = build_network(fabric, routing, cycles(8 * PACKET))
    for tables, share in (
        (VLArb(low=((0, 3 * PACKET), (1, PACKET))), 0.75),
        (VLArb(high=((0, PACKET),), low=((1, PACKET),), limit=255), 1.0),
        (VLArb(high=((0, PACKET),), low=((1, PACKET),), limit=0), 0.5),
        (VLArb(high=((0, 255),), low=((1, PACKET),), limit=1), 2 / 3),
        (None, 0.5),
    ):
        simulation = simulate(network, flows_along(fabric, paths), switching=Switching(vlarb=tables))
        simulation.run(200_000)
        assert simulation.flows().bytes[0] / 64 / 200_000 == pytest.approx(share, rel=0.02), tables


@pytest.mark.parametrize("inputs", list(Inputs))
@pytest.mark.parametrize("vls", [2, 4])
@pytest.mark.parametrize("speedup", [0, 1, 2])
def test_a_switch_that_serves_crossbar_inputs_in_turn(speedup, vls, inputs):
    """CA a sends on all VLs, and CA b on VL 0 only.  Both share the link from switch x to switch y."""
    fabric = literal_fabric(
        "two", ["x", "y"], [("x", "y")], {"a": "x", "b": "x"} | {f"c{vl}": "y" for vl in range(vls)}
    )
    paths = [("b", "x", "y", "c0"), *(("a", "x", "y", f"c{vl}") for vl in range(vls))]
    sls = {("b", "c0"): 0} | {("a", f"c{vl}"): vl for vl in range(vls)}
    network = build_network(fabric, tables_from_paths(fabric, paths, vls=vls, sl=sls), cycles(8 * PACKET))
    crossbar_inputs_of_a = min(speedup or vls, vls)
    for arbitration, share in (
        (Arbitration.CROSSBAR, 1 / (crossbar_inputs_of_a + 1)),
        (Arbitration.ROUND_ROBIN, 1 / (2 * vls)),
    ):
        switching = Switching(arbitration, inputs, speedup=speedup)
        simulation = simulate(network, flows_along(fabric, paths), switching=switching)
        simulation.run(200_000)
        shares = simulation.flows().bytes / 64 / 200_000
        assert shares[0] == pytest.approx(share, rel=0.02)
        assert shares.sum() == pytest.approx(1, rel=0.01)
        if arbitration is Arbitration.CROSSBAR:
            np.testing.assert_allclose(shares[1:], (1 - share) / vls, rtol=0.02)
