"""Check progressive reconfiguration (PPR): the root of Up*/Down* tables moves switch by switch while CAs send."""

import random
from collections import deque

import numpy as np
import pytest

from routing.deadlock.proof import prove
from routing.deadlock.schedule_search import find_schedule
from routing.fabric import NO_PORT
from routing.simulate.network import Timing, build_network
from routing.simulate.run import simulate
from routing.simulate.traffic import all_to_all
from routing.tables import Provenance, Routing
from routing.topologies import generate


def cables(fabric):
    """Return for each switch its neighbours and the ports to them."""
    found = {switch: {} for switch in range(fabric.switches)}
    for near, far, port in zip(fabric.channels.src, fabric.channels.dst, fabric.channels.port, strict=True):
        if far < fabric.switches and near < fabric.switches:
            found[int(near)][int(far)] = int(port)
    return found


def updown(fabric, order):
    """Return Up*/Down* tables for an order of the switches.  A switch sends a packet down if it can, else up."""
    ports, place = cables(fabric), {switch: n for n, switch in enumerate(order)}
    lft = np.full((fabric.switches, len(fabric.lids)), NO_PORT, np.uint8)
    for lid in np.flatnonzero(fabric.lids.switch >= 0).tolist():
        goal = int(fabric.lids.switch[lid])
        hops, todo = {goal: 0}, deque([goal])
        lft[goal, lid] = fabric.lids.port[lid]
        while todo:
            low = todo.popleft()
            for high in sorted(ports[low]):
                if high not in hops and place[high] < place[low]:
                    hops[high], lft[high, lid] = hops[low] + 1, ports[high][low]
                    todo.append(high)
        for switch in order:
            if switch not in hops:
                more, up = min((hops[up], up) for up in ports[switch] if place[up] < place[switch])
                hops[switch], lft[switch, lid] = more + 1, ports[switch][up]
    highest = 1 + int(fabric.switch_ports.max())
    sl2vl = np.zeros((fabric.switches, highest, highest, 16), np.uint8)
    return Routing(lft, np.zeros_like(lft), sl2vl, 1, 1, Provenance("updown"))


def by_distance(fabric, root):
    """Return the switches in the order of their distance from a root."""
    ports, order = cables(fabric), [root]
    for switch in order:
        order += [near for near in sorted(ports[switch]) if near not in order]
    return order


def root_moved(order, switch):
    """Return an order in which a neighbour of the root is the root: only its own cables change direction."""
    return [switch, *(other for other in order if other != switch)]


@pytest.mark.parametrize(("kind", "size"), [("ring", "6"), ("mesh", "3x3"), ("torus", "3x3")])
def test_a_step_of_the_root_is_one_round(kind, size):
    # Pinkston, section 13.4: the channels of one switch change direction, which is safe in any order of writes.
    fabric = generate(kind, [size], cas=1)
    for root in range(fabric.switches):
        order = by_distance(fabric, root)
        old = updown(fabric, order)
        for near in sorted(cables(fabric)[root]):
            new = updown(fabric, root_moved(order, near))
            assert prove(fabric, new).certified
            schedule = find_schedule(fabric, old, new, threads=1)
            assert schedule is not None
            assert len(list(schedule.states(old.lft, new.lft))) == 1


def written_one_by_one(fabric, tables, seed):
    """Return the number of observed deadlocks and of lost packets.

    A ring under overload gets one row of the tables at a time, in random order.
    """
    network = build_network(fabric, tables[0], Timing(buffer=32))
    simulation = simulate(network, all_to_all(fabric))
    lft, now, deadlocks = tables[0].lft.copy(), 2000, 0
    for routing in tables[1:]:
        for row in random.Random(seed).sample(range(fabric.switches), fabric.switches):
            simulation.run(now)
            lft[row] = routing.lft[row]
            simulation.set_lft(lft)
            now += 2000
            deadlocks += bool(simulation.wait_graph().deadlocks)
    simulation.run(now)
    simulation.check()
    return deadlocks + bool(simulation.wait_graph().deadlocks), simulation.totals()["dropped"]


def test_the_root_moves_under_load_without_deadlock_or_loss():
    fabric = generate("ring", ["6"], cas=1)
    orders = [by_distance(fabric, 0)]
    for switch in (1, 2, 3):
        orders.append(root_moved(orders[-1], switch))
    steps = [updown(fabric, order) for order in orders]
    assert [written_one_by_one(fabric, steps, seed) for seed in range(8)] == [(0, 0)] * 8
    # Without the intermediate tables, some order of the writes locks the ring.
    direct = [steps[0], updown(fabric, by_distance(fabric, 3))]
    assert any(written_one_by_one(fabric, direct, seed)[0] for seed in range(8))
