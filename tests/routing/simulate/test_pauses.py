"""Pauses instead of credits: thresholds, the room above them, what locks."""

import numpy as np
import pytest
from sim_cases import PACKET, cycles, flows_along

from routing.errors import OptionError
from routing.simulate.network import build_network
from routing.simulate.options import Arbitration, Breaker, Pauses, Remedies, Remedy, Switching
from routing.simulate.run import simulate
from routing.simulate.state import Why
from routing.simulate.ways import small_fabric, tables_of_ways

CABLES = [("S1", "S2"), ("S2", "S3"), ("S3", "S4"), ("S4", "S1")]
CAS = {"a": "S1", "c": "S3", "e": "S2", "to_f": "S4", "to_g": "S2", "to_b": "S3"}
WAYS = [("a", "S1", "S2", "S3", "S4", "to_f"), ("c", "S3", "S4", "S1", "S2", "to_g"), ("e", "S2", "S3", "to_b")]
THRESHOLDS = Pauses(8 * PACKET, 6 * PACKET)


def ring(flows, room, *, wire=16, arbitration=Arbitration.ARRIVAL, pauses=THRESHOLDS, remedies=None, fcp_period=0):
    """The ring of four of two and three flows, buffers of so many blocks."""
    fabric = small_fabric("ring", ["S1", "S2", "S3", "S4"], CABLES, CAS)
    network = build_network(fabric, tables_of_ways(fabric, WAYS[:flows]), cycles(room, wire=wire))
    switching = Switching(arbitration, fcp_period=fcp_period, pauses=pauses)
    traffic = flows_along(fabric, WAYS[:flows])
    return simulate(network, traffic, switching=switching, remedies=remedies or Remedies())


@pytest.mark.parametrize("wire", [1, 16, 40])
def test_the_room_above_the_threshold_is_just_enough(wire):
    """A packet that brings the buffer to it, and what sets out before the pause is heard."""
    need = 8 * PACKET - 1 + PACKET + 2 * wire
    with pytest.raises(OptionError, match=f"use at least {need}: a packet, and what comes in the time of a round trip"):
        ring(3, need - 1, wire=wire)
    for arbitration in Arbitration:
        simulation = ring(3, need, wire=wire, arbitration=arbitration)
        most = 0
        for stop in range(0, 200 * PACKET, 7):
            simulation.run(stop)
            most = max(most, int(simulation.lanes().occupancy.max()))
        assert most <= need
        assert simulation.lanes().pauses.sum() > 0
        assert simulation.counters().buffer_overrun_errors.sum() == 0


def test_two_flows_pause_the_four_links_that_the_analysis_names():
    simulation = ring(2, 10 * PACKET)
    simulation.run(10_000 * PACKET)
    network = simulation.network
    pauses = simulation.lanes().pauses.sum(axis=1)
    links = [*CABLES, ("a", "S1"), ("c", "S3")]
    counts = [int(pauses[network.channel_between(*link)]) for link in links]
    assert counts[0] == counts[2] == 0
    assert min(counts[1], *counts[3:]) > 2_000
    np.testing.assert_allclose(simulation.flows().bytes / 64 / (10_000 * PACKET), 0.5, rtol=0.01)


@pytest.mark.parametrize("wire", [1, 16, 64, 100, 200, 400])
def test_three_flows_lock_by_arrival_and_in_turn_on_the_longest_cables_alone(wire):
    room = 9 * PACKET + 2 * wire
    by_arrival = ring(3, room, wire=wire)
    assert by_arrival.run(4_000 * PACKET, stop_at_standstill=True).why is Why.STANDSTILL
    assert len(by_arrival.waits().deadlocks[0].members) == 4
    in_turn = ring(3, room, wire=wire, arbitration=Arbitration.ROUND_ROBIN)
    stop = in_turn.run(4_000 * PACKET, stop_at_standstill=True)
    assert (stop.why is Why.STANDSTILL) is (wire == 400)
    assert bool(in_turn.waits().deadlocks) is (wire == 400)


def test_a_stopped_sender_waits_until_the_buffer_is_down_to_the_lower_threshold():
    simulation = ring(3, 10 * PACKET)
    simulation.run(4_000 * PACKET, stop_at_standstill=True)
    lanes = simulation.lanes()
    stopped = lanes.paused.astype(bool) & (simulation.network.arrays.dst < simulation.network.arrays.switches)[:, None]
    assert stopped.sum() >= 4
    assert (lanes.occupancy[stopped] > 6 * PACKET).all()
    assert (lanes.credits + lanes.occupancy + lanes.flying + lanes.returning == lanes.buffer).all()
    assert (lanes.buffer == 10 * PACKET).all()


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"pauses": Pauses(6, 6)}, "let xoff be over xon"),
        ({"pauses": Pauses(6, -1)}, "let xoff be over xon"),
        ({"fcp_period": 3}, "pauses take their place"),
        ({"remedies": Remedies(Remedy(breaker=Breaker.DEADLOCK, detect=9))}, "pauses take their place"),
    ],
)
def test_pauses_that_cannot_be_are_refused(how, told):
    with pytest.raises(OptionError, match=told):
        ring(2, 10 * PACKET, **how)


def test_a_head_that_is_dropped_empties_a_buffer_too():
    simulation = ring(3, 10 * PACKET, remedies=Remedies(Remedy(hoq=100 * PACKET, stall_count=0)))
    simulation.run(2_000 * PACKET)
    before = simulation.flows().bytes
    simulation.run(4_000 * PACKET)
    assert (simulation.flows().bytes > before).all()
    assert simulation.totals()["dropped"] > 0
