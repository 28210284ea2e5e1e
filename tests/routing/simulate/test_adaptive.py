"""Check adaptive routing: each scheme under more traffic than the links can carry, and settings that are refused."""

import random
from dataclasses import replace

import numpy as np
import pytest
from sim_accounts import account
from sim_cases import flows_along, torus_dor

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import OptionError
from routing.fabric import NO_PORT
from routing.simulate.adaptive import Adaptive, Scheme, simulate_adaptive
from routing.simulate.handmade import literal_fabric, tables_from_paths
from routing.simulate.mechanisms.congestion import CongestionControl
from routing.simulate.mechanisms.retransmission import Retransmission
from routing.simulate.network import Timing, build_network
from routing.simulate.options import Arbitration, Breaker, Remedies, Remedy
from routing.simulate.run import simulate
from routing.simulate.state import Event, StopReason
from routing.simulate.traffic import Process, Traffic, all_to_all, permutation, uniform
from routing.topologies import generate

BLOCKS = 4
BYTES = 64 * BLOCKS


def torus(k=8, *, vls=4, buffer=BLOCKS, routing=None):
    fabric, tables = torus_dor(k)
    return build_network(fabric, routing or tables, Timing(1.0, 1, 1, 1.0, buffer), vls=vls)


def overload(scheme, *, network=None, load=1.0, seed=1, **how):
    network = network or torus()
    traffic = uniform(network, load, bytes=BYTES, mtu=BYTES, process=Process.BERNOULLI)
    usual = {"ca_vls": network.vls, "detect": BLOCKS, "repeat": BLOCKS, "lasts": 80, "hold": 256, "sample": 2}
    return simulate_adaptive(network, traffic, Adaptive(scheme, seed=seed, **(usual | how)))


def share(simulation, until=4000, since=1000):
    simulation.run(since)
    before = simulation.totals()["delivered_bytes"]
    simulation.run(until)
    return (simulation.totals()["delivered_bytes"] - before) / 64 / (until - since) / simulation.network.fabric.endports


ON_ANY_VL = [scheme for scheme in Scheme if scheme is not Scheme.GROUPS]


def test_without_load_every_scheme_takes_what_comes():
    for scheme in ON_ANY_VL:
        assert share(overload(scheme, load=0.2)) == pytest.approx(0.2, rel=0.05)


def test_without_a_scheme_a_torus_locks_for_ever():
    simulation = overload(Scheme.NONE)
    stop = simulation.run(100_000, stop_at_standstill=True)
    assert stop.reason is StopReason.STANDSTILL
    assert simulation.wait_graph().verdict == "deadlocked"
    assert simulation.totals()["in_flight"] > 0


def test_schemes_under_overload():
    escape, token, bubble = (share(overload(scheme)) for scheme in (Scheme.ESCAPE, Scheme.TOKEN, Scheme.BUBBLE))
    assert bubble > 0.7
    assert 0.3 < escape < 0.45
    assert 0.01 < token < 0.1


def ring_of_six(scheme, seed):
    fabric = generate("ring", ["6"], cas=2)
    routing = ENGINES["updn"].route(fabric, EngineOptions(vls=1, threads=1, effort=0.05))
    network = build_network(fabric, routing, Timing(1.0, 1, 1, 1.0, BLOCKS), vls=1)
    return overload(scheme, network=network, seed=seed, detect=20)


@pytest.mark.parametrize("seed", range(1, 6))
def test_ordered_spare_buffers_never_lock_and_deflection_needs_room(seed):
    """With deflection, packets wait for ever once all buffers are full, because no deflection is possible then."""
    concurrent, deflect = ring_of_six(Scheme.CONCURRENT, seed), ring_of_six(Scheme.DEFLECT, seed)
    for stop in range(1000, 20_001, 1000):
        concurrent.run(stop)
        assert not concurrent.wait_graph().deadlocks
    assert concurrent.totals()["diverted"] > 1000
    deflect.run(20_000)
    assert deflect.totals()["deflected"] > 0
    assert deflect.wait_graph().deadlocks
    assert deflect.totals()["last_move"] < 10_000


def test_concurrent_recovery_sustains_more_than_one_token():
    assert share(overload(Scheme.CONCURRENT)) > 5 * share(overload(Scheme.TOKEN))


def test_few_packets_in_front_of_switches_do_not_lock():
    """Switches lock if injection leaves no room for packets in transit."""
    for scheme in ON_ANY_VL:
        assert share(overload(scheme, ca_vls=1)) > 0.5


def test_one_seed_one_result():
    first, again, other = (overload(Scheme.BUBBLE, seed=seed) for seed in (7, 7, 8))
    for simulation in (first, again, other):
        simulation.run(1000)
    np.testing.assert_array_equal(first._handle.channels(), again._handle.channels())
    assert first.totals() == again.totals() != other.totals()


@pytest.mark.parametrize("later", [1, 5000, 1 << 44])
def test_a_later_start_of_flows_changes_no_result(later):
    """The simulator skips ticks without an event.  Otherwise the test would not end for the longest wait."""
    sent = []
    for start in (1, later):
        simulation = overload(Scheme.NONE)
        flows = tuple(replace(flow, start=start) for flow in simulation.traffic.flows)
        simulation = simulate_adaptive(
            simulation.network, replace(simulation.traffic, flows=flows), Adaptive(Scheme.NONE, ca_vls=4, seed=1)
        )
        assert simulation.run(start + 3000).time == start + 3000
        reported = simulation.totals()
        sent.append({**reported, "now": reported["now"] - start, "last_move": reported["last_move"] - start})
    assert sent[0] == sent[1]
    assert sent[0]["delivered"] > 0


def test_running_in_steps_changes_nothing():
    whole, parts = overload(Scheme.BUBBLE), overload(Scheme.BUBBLE)
    whole.run(2000)
    for until in range(100, 2001, 100):
        parts.run(until)
    assert whole.totals() == parts.totals()


@pytest.mark.parametrize("scheme", ON_ANY_VL[1:])
def test_every_packet_of_an_exchange_arrives(scheme):
    network = torus(4, buffer=BLOCKS)
    simulation = simulate_adaptive(
        network, all_to_all(network.fabric, bytes=BYTES, mtu=BYTES, rounds=20), Adaptive(scheme, ca_vls=4, detect=8)
    )
    stop = simulation.run(1_000_000)
    assert stop.reason is StopReason.FINISHED
    assert simulation.totals()["delivered"] == 16 * 15 * 20
    vcs = simulation.virtual_channels()
    np.testing.assert_array_equal(vcs.credits + vcs.returning, vcs.buffer)  # the last credits are still on the wires
    assert simulation.wait_graph().can_move.all()


def test_paths_are_shortest():
    """A path has as many hops as its distance between switches, and two more: to the first switch and to the CA."""
    network = torus(5)
    simulation = simulate_adaptive(network, all_to_all(network.fabric, bytes=BYTES, mtu=BYTES))
    simulation.run(1_000_000)
    fabric, hops = network.fabric, network.arrays.distance.astype(int)
    pairs = [(a, b) for a in range(fabric.endports) for b in range(fabric.endports) if a != b]
    expected = sum(2 + hops[fabric.endport_switch[a], fabric.endport_switch[b]] for a, b in pairs)
    assert simulation.totals()["hops"] == expected


@pytest.mark.parametrize("scheme", [Scheme.TOKEN, Scheme.BUBBLE, Scheme.RELAY])
@pytest.mark.parametrize(("name", "size"), [("ring", "7"), ("torus", "4x4"), ("torus", "3x3x3"), ("hypercube", "4")])
def test_networks_that_lock_without_a_scheme_do_not_lock_with_it(scheme, name, size):
    fabric = generate(name, [size], cas=3)
    routing = ENGINES["updn"].route(fabric, EngineOptions(vls=1, threads=1, effort=0.05))
    network = build_network(fabric, routing, Timing(1.0, 1, 1, 1.0, BLOCKS), vls=1)
    assert overload(Scheme.NONE, network=network).run(20_000, stop_at_standstill=True).reason is StopReason.STANDSTILL
    simulation, before = overload(scheme, network=network), 0
    for until in range(1000, 10_001, 1000):
        simulation.run(until)
        assert simulation.totals()["delivered"] > before
        before = simulation.totals()["delivered"]


def test_escape_tables_need_vls_of_their_own():
    with pytest.raises(OptionError, match="escape tables use 2 VLs of 2"):
        overload(Scheme.ESCAPE, network=torus(4, vls=2))


def test_escape_tables_with_a_loop_are_refused():
    fabric, _ = torus_dor(4)
    routing = ENGINES["minhop"].route(fabric, EngineOptions(vls=1, threads=1))
    with pytest.raises(OptionError, match="close a loop"):
        overload(Scheme.ESCAPE, network=torus(4, vls=2, routing=routing))


def test_longer_escape_paths_are_not_left_again():
    fabric, _ = torus_dor(4)
    network = torus(4, vls=3, routing=ENGINES["updn"].route(fabric, EngineOptions(vls=1, threads=1)))
    with pytest.raises(OptionError, match="some escape paths are not shortest paths"):
        overload(Scheme.ESCAPE, network=network)
    assert share(overload(Scheme.ESCAPE, network=network, stay=True)) > 0.1


def test_escape_paths_that_end_are_refused():
    """Either the tables have no entry, or the path leads to VL 15, which switches drop."""
    fabric, _ = torus_dor(4)
    routing = ENGINES["updn"].route(fabric, EngineOptions(vls=1, threads=1, effort=0.05))
    lft = routing.lft.copy()
    lft[3, fabric.endport_lid[9]] = NO_PORT
    for ends, reported in (
        (replace(routing, lft=lft), f"LID {fabric.endport_lid[9]} ends at {fabric.switch_name[3]} "),
        (replace(routing, sl2vl=np.full(16, 15, np.uint8)), "on a VL that does not exist"),
    ):
        with pytest.raises(OptionError, match=reported):
            overload(Scheme.ESCAPE, network=torus(4, vls=3, routing=ends), stay=True)


def test_escape_paths_are_asked_for_within_each_part_of_a_fabric():
    cables, cas = [("a", "b"), ("c", "d")], {"ha": "a", "hb": "b", "hc": "c", "hd": "d"}
    fabric = literal_fabric("parts", list("abcd"), cables, cas)
    paths = [("ha", "a", "b", "hb"), ("hc", "c", "d", "hd")]
    routing = tables_from_paths(fabric, [*paths, *(path[::-1] for path in paths)], fill=True)
    network = build_network(fabric, routing, Timing(1.0, 1, 1, 1.0, BLOCKS), vls=2)
    simulation = simulate_adaptive(
        network, flows_along(fabric, paths, messages=20, bytes=BYTES), Adaptive(Scheme.ESCAPE)
    )
    assert simulation.run(100_000).reason is StopReason.FINISHED
    assert simulation.totals()["delivered"] == 40


def test_on_a_tree_it_needs_no_scheme():
    fabric = generate("kary-ntree", ["4,2"])
    routing = ENGINES["updn"].route(fabric, EngineOptions(vls=1, threads=1, effort=0.05))
    network = build_network(fabric, routing, Timing(1.0, 1, 1, 1.0, 2 * BLOCKS), vls=4)
    assert share(overload(Scheme.NONE, network=network)) > 0.8


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ({"detect": 0}, "detect is 0 ticks"),
        ({"ca_vls": 5}, "CAs cannot send on 5 VLs of 4"),
        ({"arbitration": Arbitration.RANDOM}, "in turn or by arrival"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_invalid_settings_are_refused(how, problem):
    with pytest.raises(OptionError, match=problem):
        overload(Scheme.BUBBLE, **how)


def test_time_goes_on():
    simulation = overload(Scheme.NONE)
    simulation.run(10)
    with pytest.raises(OptionError, match="cannot run to tick 5"):
        simulation.run(5)


def routed(fabric, engine, vls):
    routing = ENGINES[engine].route(fabric, EngineOptions(vls=vls, threads=1, effort=0.05))
    return build_network(fabric, routing, Timing(1.0, 1, 1, 1.0, 2 * BLOCKS), vls=routing.vls)


@pytest.mark.parametrize(("name", "size", "engine", "vls"), [("torus", "4x4", "nue", 2), ("hypercube", "4", "updn", 1)])
def test_port_groups_never_lock_under_overload(name, size, engine, vls):
    simulation = overload(Scheme.GROUPS, network=routed(generate(name, [size], cas=3), engine, vls))
    for until in range(500, 5001, 500):
        assert simulation.run(until).reason is not StopReason.STANDSTILL
        assert not simulation.wait_graph().deadlocks


def test_port_groups_of_a_tree_carry_a_permutation_that_fixed_paths_do_not():
    """Fixed tables send several flows over one link, though the links of the whole tree could carry all flows.

    With one VL, a packet that waits at the head of its queue blocks the packets behind it, so port groups gain nothing.
    """
    fabric = generate("kary-ntree", ["4,2"])
    network, partner = routed(fabric, "nue", 4), list(range(fabric.endports))
    random.Random(1).shuffle(partner)
    traffic = permutation(fabric, partner, bytes=BYTES, mtu=BYTES)
    by_tables, by_groups = simulate(network, traffic), simulate_adaptive(network, traffic, Adaptive(Scheme.GROUPS))
    assert share(by_groups) > 1.1 * share(by_tables)


def test_port_groups_need_one_vl_for_each_path():
    with pytest.raises(OptionError, match="SL2VL tables differ between ports"):
        overload(Scheme.GROUPS, network=torus(4))


def exchange(scheme, *, remedies=Remedies(), mechanisms=(), rounds=5):  # noqa: B008
    network = torus(4)
    traffic = all_to_all(network.fabric, bytes=BYTES, mtu=BYTES, rounds=rounds)
    adaptive = Adaptive(scheme, ca_vls=network.vls, detect=8)
    return simulate_adaptive(network, traffic, adaptive, remedies=remedies, mechanisms=mechanisms)


@pytest.mark.parametrize("scheme", ON_ANY_VL)
def test_packets_that_head_of_queue_lifetimes_drop_are_sent_again(scheme):
    """Packets of several CAs meet at each switch, so some packets wait for longer than a packet time."""
    remedies = Remedies(Remedy(hoq=BLOCKS + 1))
    dropping = exchange(scheme, remedies=remedies)
    stop = dropping.run(1_000_000)
    totals = dropping.totals()
    assert stop.reason is StopReason.FINISHED
    assert totals["dropped"] == dropping.counters().port_sw_hoq_lifetime_limit_discards.sum() > 0
    assert (dropping.log()[:, 1] == Event.HOQ_DROP).sum() == totals["dropped"]
    resending = exchange(scheme, remedies=remedies, mechanisms=[Retransmission(timeout=50)])
    assert resending.run(1_000_000).reason is StopReason.FINISHED
    assert resending.totals()["delivered"] == 16 * 15 * 5
    assert resending.totals()["dropped"] > 0
    account(resending)


def test_dropping_resolves_the_deadlock_of_adaptive_routing():
    locked = overload(Scheme.NONE)
    assert locked.run(100_000, stop_at_standstill=True).reason is StopReason.STANDSTILL
    simulation = simulate_adaptive(
        locked.network, locked.traffic, locked.adaptive, remedies=Remedies(Remedy(hoq=20 * BLOCKS)),
        mechanisms=[Retransmission(timeout=100)],
    )  # fmt: skip
    delivered = 0
    for until in range(2000, 20_001, 2000):
        simulation.run(until)
        assert simulation.totals()["delivered"] > delivered
        delivered = simulation.totals()["delivered"]
        account(simulation)


@pytest.mark.parametrize("scheme", ON_ANY_VL)
def test_a_link_that_fails_loses_packets_which_are_sent_again(scheme):
    simulation = exchange(scheme, mechanisms=[Retransmission(timeout=50)])
    channel = int(np.flatnonzero(simulation.network.arrays.dst < 16)[0])
    simulation.run(100)
    simulation.fail_link(channel)
    simulation.run(400)
    assert simulation.totals()["dropped"] == simulation.counters().link_down_discards.sum() > 0
    sent = simulation.counters().port_xmit_pkts[channel]
    account(simulation)
    simulation.restore_link(channel)
    assert simulation.run(1_000_000).reason is StopReason.FINISHED
    assert simulation.counters().port_xmit_pkts[channel] > sent
    assert simulation.totals()["delivered"] == 16 * 15 * 5
    account(simulation)


def test_a_packet_takes_another_path_around_a_failed_link_only_if_one_is_shortest():
    """Several shortest paths lead from corner to corner of a 3x3 mesh, but only one leads to a neighbouring switch."""
    fabric = generate("mesh", ["3x3"], cas=1)
    routing = ENGINES["updn"].route(fabric, EngineOptions(vls=1, threads=1, effort=0.05))
    network = build_network(fabric, routing, Timing(1.0, 1, 1, 1.0, BLOCKS), vls=1)
    arrays, near = network.arrays, fabric.endport_switch.tolist()
    first = int(near[0])
    channel = int(np.flatnonzero((arrays.src == first) & (arrays.dst < arrays.switches))[0])
    beside, across = int(arrays.dst[channel]), int(arrays.distance[first].astype(int).argmax())
    for goal, lost in ((beside, 10), (across, 0)):
        flow = replace(
            permutation(fabric, [*range(1, 9), 0]).flows[0], bytes=BYTES, messages=10,
            destinations=(int(fabric.endport_lid[near.index(goal)]),),
        )  # fmt: skip
        simulation = simulate_adaptive(network, Traffic((flow,), BYTES))
        simulation.fail_link(channel)
        assert simulation.run(10_000).reason is StopReason.FINISHED
        assert simulation.totals()["dropped"] == simulation.counters().link_down_discards[channel] == lost
        assert simulation.totals()["delivered"] == 10 - lost


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ({"remedies": Remedies(Remedy(breaker=Breaker.DEADLOCK, detect=8))}, "a deadlock breaker needs output queues"),
        ({"remedies": Remedies(leaf=Remedy(breaker=Breaker.LOOP, detect=8))}, "a deadlock breaker needs output queues"),
        ({"mechanisms": [CongestionControl()]}, "congestion needs output queues"),
    ],
)
def test_mechanisms_that_need_output_queues_are_refused(how, problem):
    with pytest.raises(OptionError, match=problem):
        exchange(Scheme.NONE, **how)
    with pytest.raises(OptionError, match="tables cannot change beside adaptive"):
        simulation = exchange(Scheme.NONE)
        simulation.set_lft(simulation.lft())
