"""Check pauses in place of credits: the thresholds, the buffer space above them, and which flows lock."""

import numpy as np
import pytest
from sim_cases import PACKET, PAUSE_LINKS, cycles, flows_along, pause_ring, star

from routing.errors import OptionError
from routing.simulate.network import build_network
from routing.simulate.options import Arbitration, Breaker, Pauses, Remedies, Remedy, Switching
from routing.simulate.run import simulate
from routing.simulate.state import StopReason

THRESHOLDS = Pauses(8 * PACKET, 6 * PACKET)


def ring(flows, room, *, wire=16, arbitration=Arbitration.ARRIVAL, pauses=THRESHOLDS, remedies=None, fcp_period=0):
    """Return a simulation of the ring of four with two or three flows, and with buffers of ``room`` blocks."""
    network, traffic = pause_ring(flows, room, wire=wire)
    switching = Switching(arbitration, fcp_period=fcp_period, pauses=pauses, speedup=2)
    return simulate(network, traffic, switching=switching, remedies=remedies or Remedies())


@pytest.mark.parametrize("wire", [1, 16, 40])
def test_the_room_above_the_threshold_is_just_enough(wire):
    """The room is for the packet that reaches the threshold, and for the data sent before the pause arrives at the
    sender.
    """
    need = 8 * PACKET - 1 + PACKET + 2 * wire + 1
    with pytest.raises(OptionError, match=f"use at least {need}: room for a packet, and for the data of a round trip"):
        ring(3, need - 1, wire=wire)
    for arbitration in Arbitration:
        simulation = ring(3, need, wire=wire, arbitration=arbitration)
        most = 0
        for stop in range(0, 200 * PACKET, 7):
            simulation.run(stop)
            most = max(most, int(simulation.virtual_channels().occupancy.max()))
        assert most <= need
        assert simulation.virtual_channels().pauses.sum() > 0
        assert simulation.counters().buffer_overrun_errors.sum() == 0


def test_two_flows_pause_four_links_as_often_as_in_the_prototype():
    """In 40 M cycles, two links of the ring pause once in 6 packet times, and the links of the senders once in 9.  The
    counts are exact.
    """
    simulation = ring(2, 10 * PACKET)
    simulation.run(40_000_000)
    pauses = simulation.virtual_channels().pauses.sum(axis=1)
    counts = [int(pauses[simulation.network.channel_between(*link)]) for link in PAUSE_LINKS]
    assert counts == [0, 208329, 0, 208329, 138888, 138888]
    np.testing.assert_allclose(simulation.flows().bytes / 64 / 40_000_000, 0.5, rtol=0.001)


def test_a_packet_counts_until_its_tail_has_left():
    """The threshold is one packet.  The buffer stops the sender, and lets it go on when the tail has left."""
    fabric, routing, paths = star(1)
    network = build_network(fabric, routing, cycles(3 * PACKET, wire=5))
    simulation = simulate(network, flows_along(fabric, paths), switching=Switching(pauses=Pauses(PACKET, 0), speedup=2))
    vc = network.channel_between("s0", "sw")
    reported = []
    for stop in range(4 * PACKET):
        simulation.run(stop)
        if bool(simulation.virtual_channels().paused[vc, 0]) != len(reported) % 2:
            reported.append(stop)
    comes, gone = 5, 5 + PACKET  # the head of the first packet arrives, and its tail leaves
    assert reported[:2] == [comes + 5, gone + 5]


@pytest.mark.parametrize("wire", [1, 16, 64, 100, 200, 400])
def test_three_flows_lock_by_arrival_and_in_turn_on_the_longest_cables_alone(wire):
    room = 9 * PACKET + 2 * wire + 1
    by_arrival = ring(3, room, wire=wire)
    assert by_arrival.run(4_000 * PACKET, stop_at_standstill=True).reason is StopReason.STANDSTILL
    assert len(by_arrival.wait_graph().deadlocks[0].members) == 4
    in_turn = ring(3, room, wire=wire, arbitration=Arbitration.ROUND_ROBIN)
    stop = in_turn.run(4_000 * PACKET, stop_at_standstill=True)
    assert (stop.reason is StopReason.STANDSTILL) is (wire == 400)
    assert bool(in_turn.wait_graph().deadlocks) is (wire == 400)


def test_a_stopped_sender_waits_until_the_buffer_is_down_to_the_lower_threshold():
    simulation = ring(3, 10 * PACKET)
    simulation.run(4_000 * PACKET, stop_at_standstill=True)
    vcs = simulation.virtual_channels()
    stopped = vcs.paused.astype(bool) & (simulation.network.arrays.dst < simulation.network.arrays.switches)[:, None]
    assert stopped.sum() >= 4
    assert (vcs.occupancy[stopped] > 6 * PACKET).all()
    assert (vcs.credits + vcs.occupancy + vcs.flying + vcs.returning == vcs.buffer).all()
    assert (vcs.buffer == 10 * PACKET).all()


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"pauses": Pauses(6, 6)}, "use an xon of at least 0, and a larger xoff"),
        ({"pauses": Pauses(6, -1)}, "use an xon of at least 0, and a larger xoff"),
        ({"fcp_period": 3}, "need credits, which pauses replace"),
        ({"remedies": Remedies(Remedy(breaker=Breaker.DEADLOCK, detect=9))}, "need credits, which pauses replace"),
    ],
)
def test_pauses_that_cannot_be_are_refused(how, expected):
    with pytest.raises(OptionError, match=expected):
        ring(2, 10 * PACKET, **how)


def test_a_head_that_is_dropped_empties_a_buffer_too():
    simulation = ring(3, 10 * PACKET, remedies=Remedies(Remedy(hoq=100 * PACKET, stall_count=0)))
    simulation.run(2_000 * PACKET)
    before = simulation.flows().bytes
    simulation.run(4_000 * PACKET)
    assert (simulation.flows().bytes > before).all()
    assert simulation.totals()["dropped"] > 0
