"""Check remedies for packets that cannot move: lifetimes, Loop Breaker, and Deadlock Breaker."""

from dataclasses import replace

import numpy as np
import pytest
from sim_cases import PACKET, RING, cycles, fig4, fig4_simulation, flows_along
from slow_simulate.oracle import Oracle

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import OptionError
from routing.simulate.handmade import literal_fabric, tables_from_paths
from routing.simulate.network import build_network
from routing.simulate.options import (
    Arbitration,
    Breaker,
    Inputs,
    Remedies,
    Remedy,
    Switching,
    lifetime_ticks,
    option_arrays,
)
from routing.simulate.run import MOST_LOOP, simulate
from routing.simulate.state import Event, StopReason
from routing.simulate.traffic import Process, traffic_arrays, uniform
from routing.topologies import generate

LIFETIME = 20 * PACKET
BREAKS = Remedy(breaker=Breaker.DEADLOCK, detect=100 * PACKET, repeat=PACKET, release=10 * PACKET)
NO_CREDITS = Switching(fcp_period=1 << 40, speedup=2)


def rows(simulation, *events):
    """Return the log rows of some kinds of events."""
    log = simulation.log()
    return log[np.isin(log[:, 1], events)]


def with_room(network, packets=60):
    """Return the network with buffers for many packets from each CA."""
    arrays, room = network.arrays, network.arrays.buffer.copy()
    room[arrays.src >= arrays.switches] = packets * PACKET
    return replace(network, arrays=replace(arrays, buffer=room))


def blocked_line(remedies, room=60):
    """Return a simulation of a sender whose path leads over two switches, and the channel between these.

    The channel has credits for two packets, and gets no more during the run.
    """
    fabric = literal_fabric("line", ["x", "y"], [("x", "y")], {"a": "x", "b": "y"})
    routing = tables_from_paths(fabric, [("a", "x", "y", "b")])
    network = build_network(fabric, routing, cycles(2 * PACKET))
    traffic = flows_along(fabric, [("a", "x", "y", "b")])
    simulation = simulate(with_room(network, room), traffic, switching=NO_CREDITS, remedies=remedies)
    return simulation, network.channel_between("x", "y")


def test_lifetimes_are_powers_of_two_of_4096_nanoseconds():
    assert lifetime_ticks(0, 1e-9) == 4096
    assert lifetime_ticks(16, 1e-9) == 268_435_456
    assert lifetime_ticks(19, 1e-9) == 4096 << 19
    assert lifetime_ticks(20, 1e-9) == lifetime_ticks(31, 1e-9) == 0
    with pytest.raises(OptionError, match="not a lifetime limit"):
        lifetime_ticks(32, 1e-9)


def test_seven_heads_in_a_row_are_dropped_then_everything_for_eight_lifetimes():
    simulation, channel = blocked_line(Remedies(port=Remedy(hoq=LIFETIME, stall_count=7)))
    simulation.run(30 * LIFETIME)
    drops, stalls = rows(simulation, Event.HOQ_DROP), rows(simulation, Event.STALLED, Event.UNSTALLED)
    # the tail of the second packet has left; since its start, the third packet has been at the head
    blocked = 2 * PACKET + 1
    assert drops[0, 0] == pytest.approx(blocked + LIFETIME, abs=PACKET)
    assert (np.diff(drops[:7, 0]) == LIFETIME).all()
    assert drops[:7, 5].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert stalls[0].tolist()[:2] == [int(drops[6, 0]), Event.STALLED]
    assert stalls[1].tolist()[:2] == [int(drops[6, 0]) + 8 * LIFETIME, Event.UNSTALLED]
    counters = simulation.counters()
    assert counters.port_xmit_pkts[channel] == 2
    dropped = counters.port_xmit_discards[channel]
    assert dropped == counters.port_sw_hoq_lifetime_limit_discards[channel] + counters.vl_stalled_discards[channel]
    assert dropped == simulation.totals()["dropped"]
    # all packets that were waiting, and all that arrived in the meantime
    assert counters.vl_stalled_discards[channel] > 40


def test_while_a_vl_is_stalled_all_that_comes_is_dropped_and_then_heads_wait_again():
    """The buffer of the sender has room for more packets than the whole run creates."""
    simulation, channel = blocked_line(Remedies(port=Remedy(hoq=LIFETIME, stall_count=7)), room=1_000)
    simulation.run(30 * LIFETIME)
    drops = rows(simulation, Event.HOQ_DROP)[:, 0]
    begin, end = rows(simulation, Event.STALLED, Event.UNSTALLED)[:2, 0].tolist()
    assert end - begin == 8 * LIFETIME
    assert not ((drops > begin) & (drops < end + LIFETIME)).any()
    assert (drops >= end + LIFETIME).sum() == 7
    again, _ = blocked_line(Remedies(port=Remedy(hoq=LIFETIME, stall_count=7)), room=1_000)
    for stop in (begin, end - 1):
        again.run(stop)
        heads = (stop - 1) // PACKET + 1  # number of heads that have arrived, the first one at tick 1
        lost = again.counters().vl_stalled_discards[channel]
        assert lost == heads - 2 - 7  # all except two that were sent, and seven that were dropped as heads


def test_a_packet_may_be_in_a_switch_for_so_long():
    simulation, channel = blocked_line(Remedies(lifetime=LIFETIME))
    simulation.run(LIFETIME)
    assert simulation.totals()["dropped"] == 0
    simulation.run(3 * LIFETIME)
    counters = simulation.counters()
    assert counters.port_sw_lifetime_limit_discards[channel] == counters.port_xmit_discards[channel] > 0
    assert counters.port_xmit_wait[channel] > LIFETIME


def test_leaf_ports_have_values_of_their_own():
    everywhere = Remedies(port=Remedy(hoq=LIFETIME), leaf=Remedy())
    only_leaves = Remedies(port=Remedy(), leaf=Remedy(hoq=LIFETIME))
    for remedies, drops in ((everywhere, True), (only_leaves, False)):
        simulation, _ = blocked_line(remedies)
        simulation.run(4 * LIFETIME)
        assert (simulation.totals()["dropped"] > 0) is drops


def test_a_port_that_is_not_there_is_refused():
    with pytest.raises(OptionError, match="no cabled port 9 at switch 0"):
        blocked_line(Remedies(ports={(0, 9): Remedy()}))


@pytest.mark.parametrize("wire", [1, 16])
@pytest.mark.parametrize("lifetime", [50, 100, 200])
def test_the_first_drop_is_that_of_the_first_head_that_will_never_go(wire, lifetime):
    """The first head that never moves is dropped a lifetime after its wait began.  The ports of the ring lock one after
    the other, so others still move then.
    """
    plain = fig4_simulation(True, 8, wire=wire)
    plain.run(100_000, stop_at_standstill=True)
    rows_of_packets, stuck = plain.packets(), plain.wait_graph().stuck
    heads = rows_of_packets[(rows_of_packets[:, 6] >= 0) & stuck[rows_of_packets[:, 2]]]
    waits_from, last_move = int(heads[:, 6].min()), plain.totals()["last_move"]
    assert last_move - 10 * PACKET < waits_from < last_move
    simulation = fig4_simulation(True, 8, wire=wire, remedies=Remedies(port=Remedy(hoq=lifetime * PACKET)))
    simulation.run((110 + lifetime) * PACKET)
    assert rows(simulation, Event.HOQ_DROP)[0, 0] == waits_from + lifetime * PACKET


@pytest.mark.parametrize(
    ("remedies", "permanent"),
    [
        (Remedies(), True),
        (Remedies(leaf=Remedy(hoq=100 * PACKET)), True),
        (Remedies(ports={(0, 1): Remedy(hoq=100 * PACKET)}), False),
        (Remedies(port=Remedy(hoq=100 * PACKET), leaf=Remedy()), False),
        (Remedies(lifetime=200 * PACKET), False),
        (Remedies(port=BREAKS, sample=PACKET), False),
        (Remedies(port=BREAKS, ports={(0, 1): Remedy()}, sample=PACKET), True),
        (Remedies(port=replace(BREAKS, breaker=Breaker.LOOP), sample=PACKET), True),
    ],
)
def test_a_knot_that_a_remedy_will_end_is_not_permanent(remedies, permanent):
    """The ring locks after 107 packet times.  Port 1 of switch 0 is the one along the ring."""
    simulation = fig4_simulation(True, 8, wire=16, remedies=remedies)
    simulation.run(150 * PACKET)
    (knot,) = simulation.wait_graph().deadlocks
    assert simulation.deadlocks() == ((knot,) if permanent else ())
    delivered = simulation.totals()["delivered"]
    simulation.run(1000 * PACKET)
    assert (simulation.totals()["delivered"] == delivered) is permanent


def test_deadlock_breaker_ends_no_knot_if_rules_are_shorter_than_the_period_of_credits():
    remedies = Remedies(port=replace(BREAKS, release=1), sample=PACKET)
    slow = Switching(speedup=2, fcp_period=400)
    simulation = fig4_simulation(True, 8, wire=16, remedies=remedies, switching=slow)
    simulation.run(1000 * PACKET)
    delivered = simulation.totals()["delivered"]
    assert len(simulation.deadlocks()) == 1
    simulation.run(3000 * PACKET)
    assert simulation.totals()["delivered"] == delivered


@pytest.mark.parametrize("seed", range(8))
def test_deadlock_breaker_ends_knots_of_single_queues_again_and_again(seed):
    """Rules are short.  Packets from beside the loop must not fill the added room while a rule ends."""
    fabric = generate("ring", ["7"], cas=2)
    routing = ENGINES["minhop"].route(fabric, EngineOptions(threads=1))
    network = build_network(fabric, routing, cycles(5))
    traffic = uniform(network, 1.0, bytes=64, mtu=64, process=Process.PERSISTENT)
    remedies = Remedies(port=Remedy(breaker=Breaker.DEADLOCK, detect=32, repeat=3, release=9, extra=64))
    switching = Switching(Arbitration.ARRIVAL, Inputs.FIFO, seed=seed, speedup=2)
    simulation = simulate(network, traffic, switching=switching, remedies=remedies)
    for stop in range(500, 8_001, 500):
        before = simulation.totals()["hops"]
        simulation.run(stop)
        assert simulation.totals()["hops"] > before


def test_a_knot_whose_buffers_have_no_room_for_a_head_packet_even_with_the_added_room_is_permanent():
    """Each buffer of the ring has 31 blocks and holds 32.  It gets 8 more, and a packet of 8 blocks needs 9."""
    fabric = generate("ring", ["7"], cas=3)
    routing = ENGINES["sssp"].route(fabric, EngineOptions(threads=1, seed=9057, effort=0.01))
    network = build_network(fabric, routing, cycles(31, wire=3, switch=4))
    traffic = uniform(network, 1.0, bytes=512, mtu=512, process=Process.PERSISTENT)
    remedy = Remedy(breaker=Breaker.DEADLOCK, detect=32, repeat=50, release=9, extra=512)
    switching = Switching(Arbitration.ARRIVAL, Inputs.FIFO, seed=9057, speedup=2, fcp_period=7)
    simulation = simulate(network, traffic, switching=switching, remedies=Remedies(port=remedy, sample=7))
    simulation.run(20_000)
    (knot,) = simulation.deadlocks()
    assert len(knot.members) == 7
    hops, rules = simulation.totals()["hops"], len(rows(simulation, Event.RULE))
    simulation.run(30_000)
    assert simulation.totals()["hops"] == hops
    assert len(rows(simulation, Event.RULE)) > rules


@pytest.mark.parametrize("length", [MOST_LOOP, MOST_LOOP + 1])
def test_deadlock_breaker_ends_a_knot_only_if_a_control_message_can_list_its_ports(length):
    names = [f"s{n}" for n in range(length)]
    cas = {f"{host}{n}": names[n] for n in range(length) for host in "hk"}
    fabric = literal_fabric("ring", names, [(names[n - 1], names[n]) for n in range(length)], cas)
    ring = names * 2
    paths = [(f"{host}{n}", *ring[n : n + 4], f"{host}{(n + 3) % length}") for n in range(length) for host in "hk"]
    network = build_network(fabric, tables_from_paths(fabric, paths), cycles(4))
    remedy = Remedy(breaker=Breaker.DEADLOCK, detect=20, repeat=20, release=200, extra=64)
    remedies = Remedies(port=remedy, sample=20)
    simulation = simulate(network, flows_along(fabric, paths, bytes=64), remedies=remedies)
    simulation.run(400)
    (knot,) = simulation.wait_graph().deadlocks
    assert len(knot.members) == length
    permanent, hops = bool(simulation.deadlocks()), simulation.totals()["hops"]
    simulation.run(2_000)
    assert permanent is (simulation.totals()["hops"] == hops) is (length > MOST_LOOP)


def test_heads_that_are_dropped_let_the_ring_creep():
    remedies = Remedies(port=Remedy(hoq=100 * PACKET, stall_count=0))
    simulation = fig4_simulation(True, 8, wire=16, remedies=remedies)
    simulation.run(4_000_000)
    share = simulation.flows().bytes / 64 / 4_000_000
    assert np.sort(share) == pytest.approx([0.009, 0.010, 0.010, 0.019, 0.019], abs=0.001)
    assert simulation.totals()["dropped"] == 3567


def test_deadlock_breaker_frees_a_loop_that_passes_a_switch_twice():
    """The credit loop a1 > a2 > x > b1 > b2 > x > a1 has the form of an eight.  Each flow uses three channels of it."""
    loop = ("a1", "a2", "x", "b1", "b2", "x")
    cas = {f"{host}{name}": name for name in loop if name != "x" for host in "hk"}
    fabric = literal_fabric("eight", sorted({*loop}), [(loop[n - 1], loop[n]) for n in range(6)], cas)
    paths = [(host + loop[n], *(loop * 2)[n : n + 4], host + loop[n - 3]) for n in (0, 1, 3, 4) for host in "hk"]
    network = build_network(fabric, tables_from_paths(fabric, paths), cycles(2 * PACKET))
    remedy = Remedy(breaker=Breaker.DEADLOCK, detect=20 * PACKET, repeat=PACKET, release=10 * PACKET)
    simulation = simulate(network, flows_along(fabric, paths), remedies=Remedies(port=remedy, sample=PACKET))
    simulation.run(2_000 * PACKET)
    assert len(rows(simulation, Event.RULE)) > 100
    assert simulation.flows().packets.min() > 50


BREAKER = [
    (100, 10, [0.228, 0.196, 0.163, 0.131, 0.130]),
    (100, 50, [0.193, 0.166, 0.138, 0.110, 0.110]),
    (10, 10, [0.392, 0.336, 0.280, 0.224, 0.224]),
]


@pytest.mark.parametrize(("detect", "release", "shares"), BREAKER)
def test_deadlock_breaker_keeps_every_flow_going_without_a_drop(detect, release, shares):
    remedy = Remedy(breaker=Breaker.DEADLOCK, detect=detect * PACKET, repeat=PACKET, release=release * PACKET)
    simulation = fig4_simulation(True, 8, wire=16, remedies=Remedies(port=remedy, sample=PACKET))
    window = (107 + detect + release) * PACKET
    before = np.zeros(5, np.int64)
    most = 0
    for stop in range(window, 40 * window, window):
        simulation.run(stop)
        got = simulation.flows().bytes
        assert (got > before).all()
        before, vcs = got, simulation.virtual_channels()
        most = max(most, int((vcs.occupancy - 8 * PACKET).max()))
    simulation.run(2_000_000)
    assert simulation.totals()["dropped"] == 0
    assert most <= PACKET
    assert len(rows(simulation, Event.FOUND)) > 100  # the ring locks again and again
    # The figures are those of the oracle.  With messages, ports are released one after the other.
    np.testing.assert_allclose(simulation.flows().bytes / 64 / 2_000_000, shares, rtol=0.07)


@pytest.mark.parametrize("arbitration", [Arbitration.ARRIVAL, Arbitration.RANDOM])
def test_deadlock_breaker_keeps_every_flow_going_by_arrival_and_at_random_too(arbitration):
    detect, release = 100, 10
    remedy = Remedy(breaker=Breaker.DEADLOCK, detect=detect * PACKET, repeat=PACKET, release=release * PACKET)
    how = {"switching": Switching(arbitration, speedup=2), "remedies": Remedies(port=remedy, sample=PACKET)}
    simulation = fig4_simulation(True, 8, wire=16, **how)
    window, most = (107 + detect + release) * PACKET, 0
    for stop in range(window, 40 * window, window):
        before = simulation.flows().bytes
        for part in range(stop - window, stop + 1, window // 8):
            simulation.run(part)
            most = max(most, int((simulation.virtual_channels().occupancy - 8 * PACKET).max()))
        simulation.run(stop)
        assert (simulation.flows().bytes > before).all()
    assert simulation.totals()["dropped"] == 0
    assert most <= PACKET
    assert len(rows(simulation, Event.FOUND)) > 100


@pytest.mark.parametrize("arbitration", [Arbitration.ARRIVAL, Arbitration.RANDOM])
def test_dropped_heads_let_the_ring_creep_by_arrival_and_at_random_too(arbitration):
    remedies = Remedies(port=Remedy(hoq=100 * PACKET, stall_count=0))
    simulation = fig4_simulation(True, 8, wire=16, switching=Switching(arbitration, speedup=2), remedies=remedies)
    simulation.run(4_000_000)
    share = simulation.flows().bytes / 64 / 4_000_000
    assert share.min() > 0.007
    assert share.max() < 0.04
    assert simulation.totals()["dropped"] > 5_000


@pytest.mark.parametrize(("detect", "release", "shares"), BREAKER)
def test_an_oracle_in_place_of_messages_gives_the_shares_of_the_prototype(detect, release, shares):
    """The oracle notices a deadlock as soon as it has lasted long enough, and releases all ports of the loop at
    once.
    """
    fabric, routing, paths = fig4(True)
    network = build_network(fabric, routing, cycles(8 * PACKET, wire=16))
    loop = [network.channel_between(RING[n], RING[(n + 1) % 4]) for n in range(4)]
    options = option_arrays(network, Switching(speedup=2), Remedies(), 2048)
    options = replace(options, extra=np.full(network.channels, PACKET, np.int32))
    arrays = traffic_arrays(network, flows_along(fabric, paths))
    how = {"detect": detect * PACKET, "release": release * PACKET, "extra": PACKET}
    oracle = Oracle(network.arrays, options, arrays, loop, **how)
    while len(oracle.releases) < 3:
        oracle.run(oracle.now + 100 * PACKET)
    (start, before), (end, after) = oracle.releases[-2:]
    share = (np.array(after) - before) * PACKET / (end - start)
    np.testing.assert_allclose(share, shares, rtol=0.01)
    assert oracle.totals["dropped"] == 0


LOOP = Remedy(breaker=Breaker.LOOP, detect=40 * PACKET, repeat=PACKET)
LOOPS = Remedies(port=LOOP, sample=PACKET, move_others=True, release_packets=16)


def test_one_master_and_that_with_the_smallest_number_over_a_thousand_seeds():
    fabric, routing, paths = fig4(True)
    network = build_network(fabric, routing, cycles(8 * PACKET))
    masters = set()
    for seed in range(1000):
        simulation = simulate(
            network, flows_along(fabric, paths), switching=Switching(seed=seed, speedup=2), remedies=LOOPS
        )
        simulation.run(160 * PACKET)
        suspected, chosen = rows(simulation, Event.SUSPECTED), rows(simulation, Event.MASTER)
        assert len(chosen) == 1
        assert chosen[0, 4] == suspected[:, 3].min()
        assert chosen[0, 2] == suspected[suspected[:, 3].argmin(), 2]
        masters.add(int(chosen[0, 5]))
        assert len(rows(simulation, Event.REROUTED)) >= 1
    assert masters == set(range(4))


@pytest.mark.parametrize("seed", range(20))
def test_loop_breaker_ends_the_deadlock(seed):
    simulation = fig4_simulation(True, 8, switching=Switching(seed=seed, speedup=2), remedies=LOOPS)
    simulation.run(2_000 * PACKET)
    before = simulation.flows().bytes
    simulation.run(6_000 * PACKET)
    assert ((simulation.flows().bytes - before) / 64 / (4_000 * PACKET)).min() > 0.24
    assert len(rows(simulation, Event.MASTER)) == 1
    assert simulation.totals()["dropped"] == simulation.counters().buffer_overrun_errors.sum() <= 16
    network = simulation.network
    assert (simulation.lft() != network.routing.lft).sum() == len(rows(simulation, Event.REROUTED))


def test_control_messages_are_few():
    simulation = fig4_simulation(True, 8, remedies=Remedies(port=LOOP, sample=PACKET))
    simulation.run(1_000 * PACKET)
    control, suspected = simulation.counters().control_bytes, rows(simulation, Event.SUSPECTED)
    assert len(suspected) == 4
    assert control.sum() == 0  # no flow that comes over the ring has another path, so no switch asks to be master
    asking = fig4_simulation(True, 8, remedies=LOOPS)
    asking.run(1_000 * PACKET)
    periods = 1_000 - 138
    assert asking.counters().control_bytes.sum() <= 64 * 4 * periods


def test_a_false_suspicion_has_no_master():
    """Ports wait behind a port without credits, and there is no cycle."""
    fabric = literal_fabric("tree", list("xyzw"), [("x", "y"), ("z", "y"), ("y", "w")], {"a": "x", "b": "z", "c": "w"})
    paths = [("a", "x", "y", "w", "c"), ("b", "z", "y", "w", "c")]
    network = build_network(fabric, tables_from_paths(fabric, paths), cycles(4 * PACKET))
    network = with_room(network)
    for remedy in (LOOP, replace(LOOP, breaker=Breaker.DEADLOCK)):
        remedies = Remedies(port=remedy, sample=PACKET, move_others=True)
        simulation = simulate(network, flows_along(fabric, paths), switching=NO_CREDITS, remedies=remedies)
        simulation.run(1_000 * PACKET)
        assert len(rows(simulation, Event.SUSPECTED)) == 3
        assert len(rows(simulation, Event.CLCM)) > 100
        assert not len(rows(simulation, Event.MASTER, Event.FOUND, Event.RULE))


def test_without_any_remedy_a_lock_stays():
    simulation = fig4_simulation(True, 8)
    assert simulation.run(10_000 * PACKET).reason is StopReason.STANDSTILL
    moved = simulation.totals()["last_move"]
    simulation.run(20_000 * PACKET)
    assert simulation.totals()["last_move"] == moved
    (knot,) = simulation.wait_graph().deadlocks
    names = [simulation.network.vc_name(vc) for vc in knot.members]
    assert all(any(name.startswith(f"{switch}[") for switch in RING) for name in names)


def ring_with_a_feeder(seed, rounds):
    """Return a ring with a further switch that only sends into it, and the channel of that switch, which waits behind
    the loop.
    """
    fabric, _, paths = fig4(True)
    cables = [(RING[n], RING[(n + 1) % 4]) for n in range(4)]
    cas = {f"h{name}": name for name in RING} | {"x": "22", "y": "f"}
    fabric = literal_fabric("fed", [*RING, "f"], [*cables, ("f", "11")], cas)
    paths = [*paths, ("y", "f", "11", "23", "h23")]
    network = build_network(fabric, tables_from_paths(fabric, paths, fill=True), cycles(8 * PACKET))
    remedies = replace(LOOPS, rounds=rounds)
    simulation = simulate(
        network, flows_along(fabric, paths), switching=Switching(seed=seed, speedup=2), remedies=remedies
    )
    simulation.run(1_000 * PACKET)
    return simulation, network.channel_between("f", "11")


def test_a_port_behind_the_loop_can_hide_it_unless_numbers_are_drawn_again():
    hidden = 0
    for seed in range(20):
        simulation, feeder = ring_with_a_feeder(seed, 0)
        suspected, masters = rows(simulation, Event.SUSPECTED), rows(simulation, Event.MASTER)
        if not len(masters):
            assert suspected[suspected[:, 3].argmin(), 2] == feeder
            hidden += 1
        again, _ = ring_with_a_feeder(seed, 10)
        assert len(rows(again, Event.MASTER)) >= 1
    assert hidden >= 1
