"""Small networks for the tests of the simulator: ticks are cycles, a block of 64 bytes takes one."""

from routing.simulate.network import Timing, build_network
from routing.simulate.options import Remedies, Switching
from routing.simulate.run import simulate
from routing.simulate.traffic import Flow, Traffic
from routing.simulate.ways import endport_of, lid_of, small_fabric, tables_of_ways

PACKET = 32
"""Blocks, and cycles on a wire, of a packet of 2048 bytes."""
RING = ("11", "23", "12", "22")
PLAIN, NOTHING = Switching(), Remedies()


def cycles(buffer, *, wire=1, switch=0):
    return Timing(tick=1.0, wire=wire, switch=switch, block=1.0, buffer=buffer)


def flows_along(fabric, ways, **how):
    return Traffic(
        tuple(Flow(endport_of(fabric, way[0]), (lid_of(fabric, way[-1]),), **how) for way in ways),
        how.get("bytes", 2048),
    )


def fig4(extra):
    """The ring of four with a host each: fabric, routing, ways."""
    cas = {f"h{name}": name for name in RING} | ({"x": "22"} if extra else {})
    fabric = small_fabric("ring", RING, [(RING[n], RING[(n + 1) % 4]) for n in range(4)], cas)
    ways = [(f"h{RING[n]}", RING[n], RING[(n + 1) % 4], RING[(n + 2) % 4], f"h{RING[(n + 2) % 4]}") for n in range(4)]
    if extra:
        ways.append(("x", "22", "11", "23", "h23"))
    return fabric, tables_of_ways(fabric, ways, fill=True), ways


def fig4_simulation(extra, packets, *, switching=PLAIN, remedies=NOTHING, **how):
    fabric, routing, ways = fig4(extra)
    network = build_network(fabric, routing, cycles(packets * PACKET))
    return simulate(network, flows_along(fabric, ways, **how), switching=switching, remedies=remedies)


def star(sources):
    """Some CAs that send to one, over one switch."""
    cas = {f"s{n}": "sw" for n in range(sources)} | {"sink": "sw"}
    fabric = small_fabric("star", ["sw"], [], cas)
    ways = [(f"s{n}", "sw", "sink") for n in range(sources)]
    return fabric, tables_of_ways(fabric, ways), ways
