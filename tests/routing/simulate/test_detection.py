"""Detection of deadlock by time, beside the breakers' own suspicions, and where its delay is known."""

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
from routing.simulate.detection_cases import Readings
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
    routing = ENGINES["updn"].route(fabric, EngineOptions(vls=1, threads=1))
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
def test_what_is_stuck_never_moves_and_is_found_after_the_timeout(seed):
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
        # What makes no progress may have stopped before it was stuck, and a packet's tail leaves later than its head.
        assert detector.delays <= readings.episodes * (detector.timeout + 4 + 2)
    fast, slow = readings.detectors
    assert fast.false_alarms >= slow.false_alarms


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
    ],
)
def test_detections_that_cannot_be_are_refused(tmp_path, old, new, message):
    assert old in FILE
    refusal(tmp_path, FILE.replace(old, new), message)
