"""Small networks for the tests of the simulator.  A tick is a cycle, in which a link transmits a block of 64 bytes."""

from dataclasses import replace

import numpy as np

from routing.simulate.dimension_order import dimension_order
from routing.simulate.handmade import endport_of, lid_of, literal_fabric, tables_from_paths
from routing.simulate.network import Timing, build_network
from routing.simulate.options import Remedies, Switching
from routing.simulate.run import simulate
from routing.simulate.traffic import Flow, Traffic
from routing.topologies import generate

PACKET = 32
"""Length of a packet of 2048 bytes in blocks, which is also its transmission time in cycles."""
RING = ("11", "23", "12", "22")
# With a speedup of 2, a crossbar never limits the flows of these rings.
PLAIN, NOTHING = Switching(speedup=2), Remedies()


def cycles(buffer, *, wire=1, switch=0):
    return Timing(tick=1.0, wire=wire, switch=switch, block=1.0, buffer=buffer)


def flows_along(fabric, paths, **how):
    return Traffic(
        tuple(Flow(endport_of(fabric, path[0]), (lid_of(fabric, path[-1]),), **how) for path in paths),
        how.get("bytes", 2048),
    )


def fig4(extra):
    """Return the fabric, tables and paths of a ring of four switches with a host each.

    With ``extra``, a second host at switch 22 sends to the host at switch 23.
    """
    cas = {f"h{name}": name for name in RING} | ({"x": "22"} if extra else {})
    # The order of the ports determines which input is served first. At switch 22 it is the first host, then the ring,
    # then the second host.
    cables = [("h22", "22"), *((RING[n], RING[(n + 1) % 4]) for n in range(4))]
    fabric = literal_fabric("ring", RING, cables, cas)
    paths = [(f"h{RING[n]}", RING[n], RING[(n + 1) % 4], RING[(n + 2) % 4], f"h{RING[(n + 2) % 4]}") for n in range(4)]
    if extra:
        paths.append(("x", "22", "11", "23", "h23"))
    return fabric, tables_from_paths(fabric, paths, fill=True), paths


def fig4_simulation(extra, packets, *, switching=PLAIN, remedies=NOTHING, wire=1, **how):
    fabric, routing, paths = fig4(extra)
    network = build_network(fabric, routing, cycles(PACKET, wire=wire))
    # The buffer may have more than the 2048 blocks that InfiniBand allows.
    room = np.full_like(network.arrays.buffer, packets * PACKET)
    network = replace(network, arrays=replace(network.arrays, buffer=room))
    return simulate(network, flows_along(fabric, paths, **how), switching=switching, remedies=remedies)


def pause_ring(flows, room, *, wire=16, switch=1, **how):
    """Return the network and the traffic of a ring of four switches, as in scenario 4 (two flows) or 5 (three flows).

    ``room`` is the size of each buffer in blocks.
    """
    switches = ("S1", "S2", "S3", "S4")
    cas = {"a": "S1", "c": "S3", "e": "S2", "to_f": "S4", "to_g": "S2", "to_b": "S3"}
    paths = [("a", *switches, "to_f"), ("c", "S3", "S4", "S1", "S2", "to_g"), ("e", "S2", "S3", "to_b")][:flows]
    fabric = literal_fabric("ring", switches, [(switches[n], switches[(n + 1) % 4]) for n in range(4)], cas)
    network = build_network(fabric, tables_from_paths(fabric, paths), cycles(PACKET, wire=wire, switch=switch))
    # The buffer may have more than the 2048 blocks that InfiniBand allows.
    room = np.full_like(network.arrays.buffer, room)
    return replace(network, arrays=replace(network.arrays, buffer=room)), flows_along(fabric, paths, **how)


PAUSE_LINKS = (("S1", "S2"), ("S2", "S3"), ("S3", "S4"), ("S4", "S1"), ("a", "S1"), ("c", "S3"))
"""Links l1 to l6 in the paper whose example :func:`pause_ring` builds."""


def star(sources):
    """Return the fabric, tables and paths of ``sources`` CAs that all send to one CA over a single switch."""
    cas = {f"s{n}": "sw" for n in range(sources)} | {"sink": "sw"}
    fabric = literal_fabric("star", ["sw"], [], cas)
    paths = [(f"s{n}", "sw", "sink") for n in range(sources)]
    return fabric, tables_from_paths(fabric, paths), paths


def torus_dor(k):
    """Return a torus of k x k switches with a CA each, and its dimension-ordered tables.

    Paths that cross the dateline of a dimension use a separate VL.
    """
    fabric = generate("torus", [f"{k}x{k}"], cas=1)
    return fabric, dimension_order(fabric)


def fat_tree(down, spines):
    """Return a tree of ``down`` leaves, with as many CAs per leaf as spines, and its tables.

    A path leads over the spine whose number is the number of the destination modulo the number of spines.
    """
    cas = {f"h{n}": f"l{n // spines}" for n in range(down * spines)}
    switches = [*(f"l{n}" for n in range(down)), *(f"s{n}" for n in range(spines))]
    fabric = literal_fabric("tree", switches, [(f"l{a}", f"s{b}") for a in range(down) for b in range(spines)], cas)
    paths = [
        (a, cas[a], b) if cas[a] == cas[b] else (a, cas[a], f"s{n % spines}", cas[b], b)
        for a in cas
        for n, b in enumerate(cas)
        if a != b
    ]
    return fabric, tables_from_paths(fabric, paths)


ADAPTIVE = """
title = "t"
[fabric]
generator = "torus:3x3,cas=1"
[routing]
rule = "dimension-order"
[traffic]
pattern = "uniform"
process = "bernoulli"
[timing]
packet = 128
switch = 1
[run]
until = 400
from = 100
[[case]]
name = "c"
what = "adaptive"
loads = [0.2, 0.4]
adaptive = { schemes = ["tables", "escape", "bubble"] }
expect = { deadlocked = [] }
"""
"""Text of a scenario with one case of adaptive routing."""


def incast(senders, **how):
    """Return CAs at one switch that all send packets of 4 blocks to the last CA.  A tick is the time of a block."""
    names = [f"c{n}" for n in range(senders + 1)]
    fabric = literal_fabric("star", ["s"], [], dict.fromkeys(names, "s"))
    paths = [(name, "s", names[-1]) for name in names[:-1]]
    network = build_network(fabric, tables_from_paths(fabric, paths), Timing(1.0, 1, 0, 1.0, 64))
    target = lid_of(fabric, names[-1])
    flows = tuple(Flow(endport_of(fabric, name), (target,), bytes=256, **how) for name in names[:-1])
    return network, Traffic(flows, 256)
