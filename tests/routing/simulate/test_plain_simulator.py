"""Compare the simulator, tick by tick, with a second simulator that was written from the documentation alone."""

import random
from dataclasses import replace

import numpy as np
import pytest
from plain_simulator import PlainFlow, PlainSimulator
from sim_cases import cycles

from routing.simulate.handmade import endport_of, lid_of, literal_fabric, tables_from_paths
from routing.simulate.network import build_network
from routing.simulate.options import Switching
from routing.simulate.run import simulate
from routing.simulate.traffic import Flow, Traffic

TICKS = 200


def random_devices(rng):
    """Return the names of 1 to 6 switches, their random cables, and the switch of each CA by the CA's name."""
    switches = [f"s{n}" for n in range(rng.randint(1, 6))]
    cables = [(rng.choice(switches[:n]), switches[n]) for n in range(1, len(switches))]
    pairs = [(a, b) for n, b in enumerate(switches) for a in switches[:n] if (a, b) not in cables]
    cables += rng.sample(pairs, rng.randint(0, min(3, len(pairs))))
    return switches, cables, {f"c{n}": rng.choice(switches) for n in range(rng.randint(2, 9))}


def neighbours_by_port(switches, cables, cas):
    """Return the neighbours of each device, in the order of the device's ports."""
    ports = {name: [] for name in (*switches, *cas)}
    for near, far in (*cables, *cas.items()):
        ports[near].append(far)
        ports[far].append(near)
    return ports


def random_tree(rng, ports, target):
    """Return the next device on a random shortest path to ``target``, by device."""
    hops, border = {target: 0}, [target]
    for near in border:
        new = [far for far in ports[near] if far not in hops]
        hops |= dict.fromkeys(new, hops[near] + 1)
        border += new
    return {near: rng.choice([far for far in ports[near] if hops[far] < hops[near]] or [near]) for near in hops}


def random_flows(rng, ports, cas, vls):
    """Return flows between random CAs.  All flows to one CA follow one tree of paths."""
    trees = {ca: random_tree(rng, ports, ca) for ca in cas}
    vl_of = {(a, b): rng.randrange(vls) for a in cas for b in cas}
    flows = []
    for _ in range(rng.randint(2, 12)):
        source, target = rng.sample(list(cas), 2)
        path = [source]
        while path[-1] != target:
            path.append(trees[target][path[-1]])
        window = rng.choice([1, 2, 5, 999, 999])
        flows.append(PlainFlow(tuple(path), rng.randint(1, 4), vl_of[source, target], rng.randrange(30), window))
    return flows


def both_simulators(seed, ideal):
    """Return the simulator and the second simulator, both with one random network and its flows."""
    rng = random.Random(2 * seed + ideal)
    devices = random_devices(rng)
    fabric, ports = literal_fabric("random", *devices), neighbours_by_port(*devices)
    vls, delay = rng.randint(1, 3), rng.randrange(4)
    flows = random_flows(rng, ports, devices[2], vls)
    sl = {(flow.path[0], flow.path[-1]): flow.vl for flow in flows}
    routing = tables_from_paths(fabric, [flow.path for flow in flows], vls=vls, sl=sl)
    network = build_network(fabric, routing, cycles(4, switch=delay), vls=vls)
    channels = [tuple(network.path_name(c).split(" > ")) for c in range(network.channels)]
    length = {frozenset(ends): rng.randint(1, 9) for ends in channels}
    wires = {ends: length[frozenset(ends)] for ends in channels}
    buffers = {ends: rng.randint(4, 12) for ends in channels}
    arrays = replace(
        network.arrays,
        wire=np.array([wires[ends] for ends in channels], np.int32),
        buffer=np.array([[buffers[ends]] * vls for ends in channels], np.int32),
    )
    ends = [(endport_of(fabric, flow.path[0]), (lid_of(fabric, flow.path[-1]),)) for flow in flows]
    own = [
        Flow(*pair, bytes=64 * flow.blocks, start=flow.start, window=flow.window)
        for pair, flow in zip(ends, flows, strict=True)
    ]
    switching = Switching(speedup=0 if ideal else 1)
    simulation = simulate(replace(network, arrays=arrays), Traffic(tuple(own), 256), switching=switching)
    return simulation, PlainSimulator(ports, wires, buffers, delay, vls, flows, ideal)


@pytest.mark.parametrize("ideal", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_every_packet_leaves_and_arrives_at_the_tick_of_the_second_simulator(seed, ideal):
    """The comparison ends if two outputs need one input in the same tick, since a random output then gets the input.

    An ideal crossbar has no such ties.
    """
    simulation, plain = both_simulators(seed, ideal)
    compared, delivered = 0, 0
    for tick in range(TICKS):
        plain.tick()
        if plain.tied:
            break
        simulation.run(tick)
        counts = simulation.flows()
        assert counts.sent_packets.tolist() == plain.sent, tick
        assert counts.packets.tolist() == plain.delivered, tick
        compared, delivered = tick + 1, sum(plain.delivered)
    assert compared >= (TICKS if ideal else 20)
    assert delivered >= 4
