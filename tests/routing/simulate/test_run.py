"""Check runs, the state at stops, changes of tables, and refused values."""

from dataclasses import fields, replace

import numpy as np
import pytest
from sim_cases import PACKET, cycles, fat_tree, fig4_simulation, flows_along, star, torus_dor

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import InputError, OptionError, RoutingError, TableError
from routing.fabric import NO_PORT
from routing.simulate.handmade import lid_of, literal_fabric, tables_from_paths
from routing.simulate.network import Timing, build_network
from routing.simulate.options import Arbitration, Inputs, Remedies, Remedy, Switching, VLArb
from routing.simulate.run import simulate
from routing.simulate.state import StopReason
from routing.simulate.traffic import Flow, Process, Traffic, all_to_all, permutation, uniform
from routing.topologies import generate


def test_everything_is_accounted_for_at_every_stop():
    fabric, routing = torus_dor(4)
    network = build_network(fabric, routing, cycles(4 * 4, wire=3, switch=2))
    traffic = uniform(network, 0.9, bytes=700, mtu=256)
    for switching in (
        Switching(),
        Switching(Arbitration.ARRIVAL, Inputs.FIFO, fcp_period=50, seed=3),
        Switching(Arbitration.RANDOM, vlarb=VLArb(), seed=4),
    ):
        simulation = simulate(network, traffic, switching=switching, remedies=Remedies(port=Remedy(hoq=200)))
        for stop in (1, 2, 3, 50, 51, 1000, 5000):
            simulation.run(stop)  # run checks all sums
            vcs, totals = simulation.virtual_channels(), simulation.totals()
            assert (vcs.credits + vcs.occupancy + vcs.flying + vcs.returning == vcs.buffer).all()
            assert (vcs.fccl - vcs.fctbs == vcs.credits).all()
            assert totals["injected"] == totals["delivered"] + totals["dropped"] + totals["in_flight"]
        assert totals["delivered"] > 500


def test_the_same_seed_gives_the_same_and_another_seed_another():
    fabric, routing = torus_dor(4)
    network = build_network(fabric, routing, cycles(16))

    def flows(seed, order=1):
        traffic = uniform(network, 0.5, bytes=256, mtu=256)
        traffic = replace(traffic, flows=traffic.flows[::order])
        simulation = simulate(network, traffic, switching=Switching(seed=seed))
        simulation.run(3_000)
        counts = simulation.flows()
        return {field.name: getattr(counts, field.name)[::order].tolist() for field in fields(counts)}

    assert flows(1) == flows(1) == flows(1, order=-1)
    assert flows(1) != flows(2)


def test_stopping_in_between_changes_nothing():
    whole, parts = (fig4_simulation(True, 8) for _ in range(2))
    whole.run(3_000)
    for stop in range(0, 3_001, 7):
        parts.run(min(stop, 3_000))
    parts.run(3_000)
    for field in fields(whole.virtual_channels()):
        np.testing.assert_array_equal(
            getattr(whole.virtual_channels(), field.name), getattr(parts.virtual_channels(), field.name)
        )


def test_an_exchange_ends_and_every_message_arrives():
    fabric, routing = fat_tree(4, 4)
    network = build_network(fabric, routing, cycles(4 * PACKET))
    simulation = simulate(network, all_to_all(fabric, bytes=5000, rounds=2))
    simulation.run_to_end(limit=10_000_000)
    flows = simulation.flows()
    assert (flows.messages_done == 30).all()
    assert flows.bytes.sum() == 16 * 15 * 2 * 5000
    assert simulation.run(10_000_000).reason is StopReason.FINISHED
    counters = simulation.counters()
    assert counters.port_xmit_data.sum() > 0
    assert not counters.waiting.any()


def test_a_run_that_would_not_end_reports_where_it_stands():
    simulation = fig4_simulation(True, 8, messages=1000)
    with pytest.raises(RoutingError, match=r"standstill.* on their way, the last one moved at tick 3244"):
        simulation.run_to_end(limit=1_000_000)
    endless = fig4_simulation(False, 8)
    assert endless.run(10**9, events=10_000).reason is StopReason.EVENTS
    assert endless.now < 10**5


def test_data_rates_come_from_the_links():
    fabric = literal_fabric("pair", ["x", "y"], [("x", "y")], {"a": "x", "b": "y"}, speed=25.78125)
    network = build_network(fabric, tables_from_paths(fabric, [("a", "x", "y", "b")]), Timing(buffer=1024))
    traffic = flows_along(fabric, [("a", "x", "y", "b")])
    simulation = simulate(network, traffic)
    simulation.run(1_000_000)  # a millisecond
    assert simulation.flows().bytes.sum() * 8 / 1e-3 / 1e9 == pytest.approx(100.0, rel=0.002)


def test_tables_change_in_flight():
    """A ring of four has two paths between two CAs.  The second half of the packets takes the other path, and none is
    lost.
    """
    fabric = literal_fabric(
        "ring", list("wxyz"), [("w", "x"), ("x", "y"), ("y", "z"), ("z", "w")], {"a": "w", "b": "y"}
    )
    there = [("a", "w", "x", "y", "b"), ("a", "w", "z", "y", "b")]
    old, new = (tables_from_paths(fabric, [path], fill=True) for path in there)
    network = build_network(fabric, old, cycles(4 * PACKET))
    simulation = simulate(network, flows_along(fabric, [there[0]], messages=100))
    simulation.run(50 * PACKET)
    simulation.set_lft(new.lft)
    simulation.run_to_end(limit=1_000_000)
    packets = simulation.counters().port_xmit_pkts
    first, second = (int(packets[network.channel_between("w", name)]) for name in "xz")
    assert first + second == 100
    assert 45 <= first <= 55
    with pytest.raises(TableError, match="lft is"):
        simulation.set_lft(new.lft[:2])


def test_tables_that_lose_a_destination_in_flight_show_in_counters():
    fabric, routing, paths = star(1)
    network = build_network(fabric, routing, cycles(4 * PACKET))
    simulation = simulate(network, flows_along(fabric, paths, messages=10))
    simulation.run(4 * PACKET)
    simulation.set_lft(np.full_like(routing.lft, NO_PORT))
    simulation.run(1_000 * PACKET)
    lost = simulation.counters().port_rcv_switch_relay_errors
    assert lost.sum() == simulation.totals()["dropped"] == 10 - simulation.totals()["delivered"] > 0


def test_a_flow_can_be_stopped():
    simulation = fig4_simulation(False, 8)
    for flow in range(4):
        simulation.stop_flow(flow, 10 * PACKET)
    assert simulation.run(1_000 * PACKET).reason is StopReason.FINISHED
    with pytest.raises(OptionError, match="no flow 4"):
        simulation.stop_flow(4, 0)


def pair():
    fabric = literal_fabric("pair", ["x", "y"], [("x", "y")], {"a": "x", "b": "y"})
    return fabric, tables_from_paths(fabric, [("a", "x", "y", "b"), ("b", "y", "x", "a")])


@pytest.mark.parametrize(
    ("flow", "expected"),
    [
        (Flow(0, ()), "it has no destination"),
        (Flow(0, (3,)), "it has no destination"),
        (Flow(0, (77,)), "no CA or router has LID 77"),
        (Flow(0, (1,)), "no CA or router has LID 1"),
        (Flow(5, (4,)), "no end port 5"),
        (Flow(0, (4,), bytes=0), "no bytes"),
        (Flow(0, (4,), messages=0), "no messages"),
        (Flow(0, (4,), window=0), "no packet out"),
        (Flow(0, (4,), window=1 << 63), "no packet out"),
        (Flow(0, (4,), process=Process.POISSON, interval=0.0), "interval"),
        (Flow(0, (4,), process=Process.BERNOULLI, probability=1.5), "probability"),
        (Flow(0, (4,), start=9, stop=3), "stops before"),
        (Flow(0, (4,), hot_share=0.5), "hotspot"),
        (Flow(0, (4,), hot=(3,), hot_share=0.5), "a sends to itself"),
        (Flow(0, process=Process.TRACE, trace=((5, 4, 64), (6, 3, 64))), "a sends to itself"),
        (Flow(0, process=Process.TRACE, trace=((5, 4, 64), (3, 4, 64))), "order of time"),
    ],
)
def test_traffic_that_cannot_be_is_refused(flow, expected):
    fabric, routing = pair()
    assert (lid_of(fabric, "a"), lid_of(fabric, "b")) == (3, 4)
    with pytest.raises(InputError, match=expected):
        simulate(build_network(fabric, routing, cycles(PACKET)), Traffic((flow,)))


def test_buffers_tables_and_times_that_cannot_be_are_refused():
    fabric, routing = pair()
    flow = Traffic((Flow(0, (4,)),))
    with pytest.raises(OptionError, match="a packet of 2048 bytes does not fit a buffer of 1984"):
        simulate(build_network(fabric, routing, cycles(PACKET - 1)), flow)
    for bad in ({"buffer": 4096}, {"buffer": 0}, {"wire": 0}, {"tick": 0.0}, {"block": -1.0}):
        with pytest.raises(OptionError, match="is no"):
            Timing(**bad)
    lft = routing.lft.copy()
    lft[1, 4] = lft[1, 3]  # back to the switch before
    with pytest.raises(TableError, match=r"traffic from a to b \(LID 4\) runs into a forwarding loop"):
        simulate(build_network(fabric, replace(routing, lft=lft), cycles(PACKET)), flow)
    lft[1, 4] = NO_PORT
    with pytest.raises(TableError, match="has no path"):
        simulate(build_network(fabric, replace(routing, lft=lft), cycles(PACKET)), flow)
    network = build_network(fabric, routing, cycles(PACKET))
    with pytest.raises(OptionError, match="never serve VL 0"):
        simulate(network, flow, switching=Switching(vlarb=VLArb(low=((1, 4),))))
    with pytest.raises(OptionError, match="VL arbitration tables choose a VL first"):
        simulate(network, flow, switching=Switching(Arbitration.CROSSBAR, vlarb=VLArb()))
    simulation = simulate(network, flow)
    simulation.run(100)
    with pytest.raises(OptionError, match="it is 100"):
        simulation.run(50)
    with pytest.raises(OptionError, match="not a permutation"):
        permutation(fabric, [0, 0])


@pytest.mark.parametrize("engine", ["dfsssp", "lash", "nue", "updn"])
def test_tables_that_are_proven_never_lock(engine):
    fabric = generate("torus", ["4x4"], cas=1)
    routing = ENGINES[engine].route(fabric, EngineOptions(vls=4, threads=1, effort=0.05))
    network = build_network(fabric, routing, cycles(2 * 4))
    for arbitration in Arbitration:
        traffic = uniform(network, 1.0, bytes=256, mtu=256, process=Process.PERSISTENT)
        simulation = simulate(network, traffic, switching=Switching(arbitration))
        for stop in range(2_000, 10_001, 2_000):
            simulation.run(stop)
            assert not simulation.wait_graph().deadlocks
        assert (simulation.flows().packets > 100).all()


def test_shortest_paths_on_a_torus_do_lock():
    fabric = generate("torus", ["4x4"], cas=2)
    routing = ENGINES["minhop"].route(fabric, EngineOptions(vls=1, threads=1))
    network = build_network(fabric, routing, cycles(2 * 4))
    traffic = uniform(network, 1.0, bytes=256, mtu=256, process=Process.PERSISTENT)
    simulation = simulate(network, traffic, switching=Switching(Arbitration.RANDOM))
    simulation.run(200_000)
    assert simulation.wait_graph().deadlocks
