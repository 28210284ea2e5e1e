"""Compare the detection of deadlocks by time with the suspicions of the breakers, and check known delays."""

import random

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from sim_files import refusal
from sim_random import any_flow

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.simulate.detection_cases import Readings, activity_ticks
from routing.simulate.network import Timing, build_network
from routing.simulate.options import Arbitration, Breaker, Remedies, Remedy, Switching
from routing.simulate.run import Simulation, simulate
from routing.simulate.state import Event, StopReason
from routing.simulate.traffic import Flow, Pattern, Process, Traffic
from routing.topologies import generate


def readings_of(simulation, timeouts, until, every=1):
    network = simulation.network
    readings = Readings.of(timeouts, network.channels * network.vls)
    watched = np.repeat(network.arrays.src < network.arrays.switches, network.vls)
    for tick in range(every, until + 1, every):
        simulation.run(tick)
        readings.read(simulation, watched)
    return readings


@examples(8)
@given(st.integers(0, 1 << 30))
def test_alarms_without_a_loop_are_those_of_a_breaker(seed):
    """Without a loop, Deadlock Breaker only suspects ports.  It reads before the packets of a tick leave."""
    rng = random.Random(seed)
    name, size = rng.choice([("ring", "5"), ("torus", "3x3"), ("mesh", "2x2")])
    fabric = generate(name, [size], cas=1)
    routing = ENGINES["updn"].route(fabric, EngineOptions(vls=1, threads=1, effort=0.05))
    network = build_network(fabric, routing, Timing(1.0, rng.choice([1, 2]), rng.choice([0, 3]), 1.0, 8))
    traffic = Traffic(tuple(any_flow(rng, fabric) for _ in range(rng.randint(4, 9))), 256)
    timeout, switching = rng.choice([2, 8, 15]), Switching(Arbitration(rng.randrange(3)), seed=rng.randrange(99))
    breaker = Remedy(breaker=Breaker.DEADLOCK, detect=timeout + 1, extra=256)
    plain = Simulation(network, traffic, switching, Remedies())
    with_breaker = Simulation(network, traffic, switching, Remedies(breaker, control_delay=1000))
    (detector,) = readings_of(plain, [timeout], 400).detectors
    for simulation in (plain, with_breaker):
        simulation.run(401)
    np.testing.assert_array_equal(plain.flows().bytes, with_breaker.flows().bytes)
    log = with_breaker.log()
    assert detector.alarms == (log[:, 1] == Event.SUSPECTED).sum() == detector.false_alarms
    assert (detector.detected, detector.missed) == (0, 0)


@examples(3)
@given(st.integers(0, 1 << 30))
def test_stuck_vls_never_send_and_are_detected_after_the_timeout(seed):
    rng = random.Random(seed)
    fabric = generate("ring", ["6"], cas=1)
    routing = ENGINES["minhop"].route(fabric, EngineOptions(vls=1, threads=1))
    network = build_network(fabric, routing, Timing(1.0, 1, 0, 1.0, 4))
    lids = tuple(int(lid) for lid in fabric.endport_lid)
    flows = tuple(Flow(n, lids, Pattern.UNIFORM, Process.PERSISTENT, bytes=256) for n in range(fabric.endports))
    simulation = simulate(
        network, Traffic(flows, 256), switching=Switching(Arbitration.RANDOM, seed=rng.randrange(1000))
    )
    readings = Readings.of([6, 40], network.channels * network.vls)
    watched = np.repeat(network.arrays.src < network.arrays.switches, network.vls)
    stuck, sent = np.zeros(len(watched), bool), np.zeros(len(watched), np.int64)
    for tick in range(2, 1000, 2):
        simulation.run(tick)
        readings.read(simulation, watched)
        now, last = readings.stuck_since >= 0, simulation.virtual_channels().sent.ravel()
        assert (now | ~stuck).all()
        np.testing.assert_array_equal(last[stuck], sent[stuck])
        stuck, sent = now, last
    # At a standstill, everything that waits at a switch is stuck.
    if simulation.run(1000, stop_at_standstill=True).reason is not StopReason.STANDSTILL:
        return  # One network of fifty does not lock so early.
    readings.read(simulation, watched)
    waiting = watched & (simulation.virtual_channels().waiting.ravel() > 0)
    np.testing.assert_array_equal(readings.stuck_since >= 0, waiting)
    assert readings.episodes == waiting.sum() > 0
    if simulation.totals()["last_move"] > 900:
        return
    for detector in readings.detectors:
        assert (detector.detected, detector.missed) == (readings.episodes, 0)
        assert 0 <= detector.detected - (detector.alarms - detector.false_alarms) <= detector.false_alarms
        # A head may have waited before its VL was stuck, and the tail of a packet leaves later than its head.
        assert detector.delays <= readings.episodes * (detector.timeout + 4 + 2)
    fast, slow = readings.detectors
    assert fast.false_alarms >= slow.false_alarms


def locked_ring(rng):
    """Return a simulation of a ring of six on which shortest paths lock, and the number of ticks for which a channel
    counts as active.
    """
    fabric = generate("ring", ["6"], cas=1)
    routing = ENGINES["minhop"].route(fabric, EngineOptions(vls=1, threads=1))
    network = build_network(fabric, routing, Timing(1.0, rng.choice([1, 3]), rng.choice([0, 2]), 1.0, 4))
    lids = tuple(int(lid) for lid in fabric.endport_lid)
    process = {"process": Process.BERNOULLI, "probability": rng.choice([0.15, 0.25]), "bytes": 256}
    flows = tuple(Flow(n, lids, Pattern.UNIFORM, **process) for n in range(fabric.endports))
    switching = Switching(Arbitration(rng.randrange(3)), seed=rng.randrange(1000))
    return simulate(network, Traffic(flows, 256), switching=switching), activity_ticks(network, 4)


@examples(8)
@given(st.integers(0, 1 << 30))
def test_flow_control_beside_flags_that_are_kept_at_each_tick(seed):
    """A packet's flag states whether it came to an active channel.  A packet that leaves sets the flags of others."""
    simulation, active = locked_ring(random.Random(seed))
    network, flags = simulation.network, {}
    readings = Readings.of([7], network.channels * network.vls, active)
    watched = np.repeat(network.arrays.src < network.arrays.switches, network.vls)
    last = simulation.virtual_channels().sent.ravel().copy()
    for tick in range(1, 500):
        simulation.run(tick)
        readings.read(simulation, watched)
        sent = simulation.virtual_channels().sent.ravel().copy()
        heads = {(row[2], row[3], row[6]) for row in simulation.packets().tolist() if row[6] >= 0}
        flags = {
            head: flags.get(head, head[2] <= last[head[1]] + active) or bool(sent[head[1]] != last[head[1]])
            for head in heads
        }
        last = sent
        (detector,) = readings.detectors
        for vc in np.flatnonzero(watched):
            mine = [(came, flag) for (_, out, came), flag in flags.items() if out == vc]
            idle = bool(mine) and tick - max(sent[vc], readings.waiting_since[vc]) >= 7
            assert detector.suspected[vc] == (idle and any(flag for _, flag in mine))


@examples(12)
@given(st.integers(0, 1 << 30))
def test_flow_control_suspects_a_channel_of_every_knot(seed):
    simulation, active = locked_ring(random.Random(seed))
    network = simulation.network
    simulation.run(4000, stop_at_standstill=True)
    readings = Readings.of([50], network.channels * network.vls, active)
    watched = np.repeat(network.arrays.src < network.arrays.switches, network.vls)
    for _ in range(2):
        readings.read(simulation, watched)
        simulation.run(simulation.now + 100)
    for knot in simulation.wait_graph().deadlocks:
        assert readings.detectors[0].suspected[list(knot.members)].any()


FILE = """
title = "t"
[fabric]
generator = "ring:4,cas=1"
[routing]
engine = "updn"
vls = 1
[traffic]
pattern = "uniform"
[run]
until = 300
[[case]]
name = "c"
what = "detection"
detection = { timeouts = [5, 50], every = 1 }
expect = { stuck = 0, missed = { 5 = 0, 50 = 0 } }
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("detection = {", "remedy = { hoq = 9 } #", "has no table detection"),
        ("timeouts = [5, 50], ", "", "timeouts"),
        ("until = 300", "until = 1000000", "reads 1000000 times .*let it be 100000 at most"),
        ("every = 1", "every = 0", "every"),
        ("every = 1", 'rule = "guess"', "'guess' is not a valid rule of detection"),
    ],
)
def test_detections_that_cannot_be_are_refused(tmp_path, old, new, message):
    assert old in FILE
    refusal(tmp_path, FILE.replace(old, new), message)
