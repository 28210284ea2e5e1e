"""Check that all packets and credits are accounted for, under all remedies, faults and changes of tables.

Check also that locked packets stay locked.
"""

import random
from dataclasses import replace

import numpy as np
from examples import examples
from hypothesis import event, given
from hypothesis import strategies as st
from sim_accounts import account
from sim_random import any_behaviour, any_flow, any_network

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.simulate.network import Timing, build_network
from routing.simulate.options import Arbitration, Inputs, Remedies, Switching
from routing.simulate.run import Simulation
from routing.simulate.state import StopReason
from routing.simulate.traffic import Flow, Traffic
from routing.topologies import generate

PACKET, BLOCKS = 200, 4


def any_remedies(rng, network):
    """Draw remedies.  A port of a switch has one of three remedies of its own, the common remedy, or the remedy of
    ports to CAs.
    """
    each = [any_behaviour(rng, BLOCKS)[1] for _ in range(3)]
    arrays = network.arrays
    ports = {
        (src, port): rng.choice(each).port
        for src, port in zip(arrays.src.tolist(), arrays.src_port.tolist(), strict=True)
        if src < arrays.switches and rng.random() < 0.5
    }
    return replace(each[0], ports=ports, leaf=rng.choice([None, each[1].port]))


@examples(60)
@given(st.integers(0, 1 << 30))
def test_packets_and_credits_add_up_at_any_stop(seed):
    rng = random.Random(seed)
    network = any_network(rng, BLOCKS)
    switching, _ = any_behaviour(rng, BLOCKS)
    traffic = Traffic(tuple(any_flow(rng, network.fabric) for _ in range(rng.randint(2, 8))), PACKET)
    simulation = Simulation(network, traffic, switching, any_remedies(rng, network))
    others = [ENGINES["minhop"].route(network.fabric, EngineOptions(vls=1, threads=1, seed=n)).lft for n in (1, 2)]
    channels, down = rng.sample(range(network.channels), 3), set()
    for _ in range(25):
        stop = simulation.run(simulation.now + rng.choice([0, 1, 7, 60, 200]), events=rng.choice([1, 40, 10**6, 10**6]))
        account(simulation)
        if stop.reason is StopReason.FINISHED:
            break
        action, channel = rng.randrange(5), rng.choice(channels)
        if action == 0:
            simulation.set_lft(rng.choice(others))
        elif action == 1:
            simulation.stop_flow(rng.randrange(len(traffic.flows)), simulation.now)
        elif action == 2:
            both = frozenset((channel, int(network.arrays.reverse[channel])))
            (simulation.restore_link if both in down else simulation.fail_link)(channel)
            down ^= {both}
            account(simulation)


def ring_or_torus(rng):
    """Return a network with shortest paths on one VL, and traffic of CAs that send all the time.  It often locks."""
    name, size = rng.choice([("ring", "4"), ("ring", "5"), ("ring", "6"), ("torus", "3x3")])
    cas = rng.choice([1, 2])
    fabric = generate(name, [size], cas=cas)
    routing = ENGINES["minhop"].route(fabric, EngineOptions(vls=1, threads=1))
    timing = Timing(1.0, rng.choice([1, 9]), rng.choice([0, 3]), 1.0, BLOCKS * rng.choice([1, 2, 5]))
    lids = fabric.endport_lid.tolist()
    far = [rng.choice([2, 2, 2, 1]) * cas for _ in lids]
    flows = tuple(
        Flow(source, (lids[(source + far[source]) % len(lids)],), bytes=PACKET) for source in range(fabric.endports)
    )
    return build_network(fabric, routing, timing), Traffic(flows, PACKET)


@examples(120)
@given(st.integers(0, 1 << 30))
def test_locked_packets_never_move(seed):
    """Without remedies, a knot keeps its packets for ever.  So do VLs whose packets can only wait for knots."""
    rng = random.Random(seed)
    switching = Switching(Arbitration(rng.randrange(3)), Inputs(rng.randrange(2)), rng.choice([0, 7]), seed=seed)
    simulation = Simulation(*ring_or_torus(rng), switching, Remedies())
    stuck, held, knots = np.zeros(0, np.int64), np.zeros(0), set()
    for _ in range(8):
        stop = simulation.run(simulation.now + rng.choice([20, 100, 400]))
        waits, occupancy = simulation.wait_graph(), simulation.virtual_channels().occupancy.ravel()
        found = {knot.members for knot in waits.deadlocks}
        assert all(any(set(old) <= set(new) for new in found) for old in knots)
        assert waits.stuck[stuck].all()
        assert (occupancy[stuck] >= held).all()
        assert (waits.verdict == "deadlocked") == bool(found) == bool(waits.stuck.any())
        if stop.reason is StopReason.STANDSTILL:
            assert found
        stuck, knots = np.flatnonzero(waits.stuck), found
        held = occupancy[stuck]
    event(f"locked: {bool(found)}")
