"""Measure the throughput of the schemes of adaptive routing on an 8x8 torus with 4 VLs, for several loads.

A scheme is a method that handles deadlock (:class:`routing.simulate.adaptive.Scheme`).  A packet time is the time of
one packet on a link.  Each figure is the mean throughput of a CA from packet time 500 to 2000, as a share of its link.
Two of the VLs are escape VLs, on which packets follow dimension-order paths with a dateline.  The other two VLs are
adaptive.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.usage import parser_of
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.simulate.adaptive import Adaptive, Scheme, simulate_adaptive
from routing.simulate.chart import chart
from routing.simulate.dimension_order import dimension_order
from routing.simulate.network import BLOCK, Network, Timing, build_network
from routing.simulate.options import Arbitration
from routing.simulate.traffic import Flow, Process, Traffic, all_to_all, base_lids, message_interval, uniform
from routing.topologies import generate

LOADS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SIZES = ((1, 1), (4, 1), (4, 2), (16, 1), (16, 2), (32, 4))
"""Pairs of packet size in blocks of 64 bytes, and buffer size in packets."""
VLS, FROM, UNTIL = 4, 500, 2000
BITS = 6


def torus(blocks: int, packets: int, cas: int) -> Network:
    """Build the network of the 8x8 torus.

    A tick is the time of one block of 64 bytes on a link.  Cables and switches have a delay of one tick each.

    Parameters
    ----------
    blocks
        Size of a packet in blocks.
    packets
        Size of the input buffer of each VL, in packets.
    cas
        Number of CAs at each switch.
    """
    fabric = generate("torus", ["8x8"], cas=cas)
    return build_network(fabric, dimension_order(fabric), Timing(1.0, 1, 1, 1.0, blocks * packets), vls=VLS)


def any_to_any(network: Network, load: float, blocks: int) -> Traffic:
    """Make uniform random traffic between all CAs.

    ``load`` is the load of a CA's link (0 to 1), and ``blocks`` the size of a packet in blocks of 64 bytes.
    """
    return uniform(network, load, bytes=BLOCK * blocks, mtu=BLOCK * blocks, process=Process.BERNOULLI)


def to_partner(partner: Callable[[int], int], network: Network, load: float, blocks: int) -> Traffic:
    """Make traffic in which CA n sends only to CA ``partner(n)``, in packets of ``blocks`` blocks.

    Each switch has one CA.  A CA that is its own partner sends nothing.  ``load`` is a share of the link.
    """
    lids, size = base_lids(network.fabric).tolist(), BLOCK * blocks
    share = 1 / message_interval(network, 0, load, size)
    return Traffic(
        tuple(
            Flow(n, (lids[partner(n)],), process=Process.BERNOULLI, bytes=size, interval=1.0, probability=share)
            for n in range(len(lids))
            if partner(n) != n
        ),
        size,
    )


def reversed_bits(n: int) -> int:
    """Return the number whose six bits are the bits of n in reverse order."""
    return int(f"{n:0{BITS}b}"[::-1], 2)


def transposed(n: int) -> int:
    """Return the number of the switch in column r and row c of the 8x8 grid, if switch n is in row r and column c."""
    return n % 8 * 8 + n // 8


SCHEMES = (Scheme.NONE, Scheme.ESCAPE, Scheme.TOKEN, Scheme.BUBBLE)
"""Schemes that are measured.  Under all of these schemes, packets may use all VLs.

The scheme with port groups is left out, because its packets keep the VL of their SL (see
:mod:`benchmarks.port_groups`).
"""
TRAFFIC: Mapping[str, Callable[[Network, float, int], Traffic]] = {
    "uniform": any_to_any,
    "bit reversal": functools.partial(to_partner, reversed_bits),
    "transpose": functools.partial(to_partner, transposed),
}


def adaptive(scheme: Scheme, ca_vls: int, blocks: int, arbitration: Arbitration) -> Adaptive:
    """Return the options of adaptive routing for one scheme.

    After a wait of one packet time, a packet takes the token (scheme TOKEN) or sends a ping (scheme BUBBLE).  Pings are
    repeated after one packet time.  Marks expire after 20 packet times.  When a ping has found a cycle, the marks of
    the cycle are locked, and expire after 64 packet times.  :class:`routing.simulate.adaptive.Adaptive` explains all
    options.

    Parameters
    ----------
    scheme
        Method that handles deadlock.
    ca_vls
        Number of VLs on which CAs send.
    blocks
        Size of a packet in blocks, which is also the packet time in ticks.
    arbitration
        Order in which switches serve waiting packets.
    """
    return Adaptive(
        scheme, arbitration, ca_vls=ca_vls, detect=blocks, repeat=blocks, lasts=20 * blocks, hold=64 * blocks,
        sample=max(1, blocks // 2),
    )  # fmt: skip


def accepted(network: Network, traffic: Traffic, how: Adaptive) -> float:
    """Simulate traffic under the options ``how``, and return the mean throughput of a CA as a share of its link."""
    simulation, packet = simulate_adaptive(network, traffic, how), how.detect
    simulation.run(FROM * packet)
    early = simulation.totals()["delivered_bytes"]
    simulation.run(UNTIL * packet)
    got = simulation.totals()["delivered_bytes"] - early
    return got / BLOCK / ((UNTIL - FROM) * packet) / network.fabric.endports


def over_load(blocks: int, packets: int, cas: int, ca_vls: int, arbitration: Arbitration) -> dict[str, np.ndarray]:
    """Simulate every scheme at every load, and print the throughput as a table.

    Parameters
    ----------
    blocks, packets, cas
        Size of a packet in blocks, size of a buffer in packets, and number of CAs at each switch.
    ca_vls, arbitration
        Number of VLs on which CAs send, and order in which switches serve waiting packets.

    Returns
    -------
    dict
        float64[loads] by name of the scheme: throughput of a CA as a share of its link.
    """
    network = torus(blocks, packets, cas)
    curves: dict[str, list[float]] = {scheme.name.lower(): [] for scheme in SCHEMES}
    print(f"\n| offered | {' | '.join(curves)} |\n| --- | {'--- | ' * len(curves)}")
    for load in LOADS:
        traffic = any_to_any(network, load, blocks)
        for scheme in SCHEMES:
            curves[scheme.name.lower()].append(
                accepted(network, traffic, adaptive(scheme, ca_vls, blocks, arbitration))
            )
        print(f"| {load:.1f} | {' | '.join(f'{curve[-1]:.3f}' for curve in curves.values())} |", flush=True)
    return {name: np.asarray(curve) for name, curve in curves.items()}


def conditions(cas: int, arbitration: Arbitration) -> None:
    """Simulate all schemes at full load, and print the throughput as a table.

    The table has a row for each combination of traffic pattern, packet size, buffer size, and number of VLs on which
    CAs send.  ``cas`` is the number of CAs at each switch.
    """
    print("\n| traffic | packet | buffer | CA VLs | none | escape | token | bubble | over escape | over token |")
    print("| --- " * 10 + "|")
    for name, make in TRAFFIC.items():
        for blocks, packets in SIZES:
            if cas > 1 and name != "uniform":
                continue
            network = torus(blocks, packets, cas)
            traffic = make(network, 1.0, blocks)
            for ca_vls in (1, 2, 4):
                got = [accepted(network, traffic, adaptive(scheme, ca_vls, blocks, arbitration)) for scheme in SCHEMES]
                figures = [f"{share:.3f}" for share in got] + [f"{got[3] / got[n]:.2f}" for n in (1, 2)]
                print(f"| {name} | {blocks} | {packets} | {ca_vls} | {' | '.join(figures)} |", flush=True)


def exchange() -> None:
    """Simulate and print the all-to-all exchange of 1000 CAs on a 10-ary 3-tree with 4x QDR links and one VL.

    The figure can be compared with the figures of benchmarks.throughput for fixed tables.
    """
    fabric = generate("kary-ntree", ["10,3"], speed="QDR")
    routing = ENGINES["updn"].route(fabric, EngineOptions(vls=1, effort=0.1))
    stop = simulate_adaptive(build_network(fabric, routing, Timing(), vls=1), all_to_all(fabric)).run(1 << 40)
    share = (fabric.endports - 1) * 2048 / 4.0 / stop.time
    print(f"\nexchange of {fabric.endports} CAs on a tree: {share:.3f} of the links, {stop.reason.name.lower()}")


def main(words: Sequence[str] | None = None) -> None:
    """Simulate all schemes, and print the tables.  With ``--plot``, also draw the throughput over the load."""
    parser = parser_of("adaptive", __doc__)
    parser.add_argument("--plot", type=Path, help="SVG file for the throughput over the load")
    parser.add_argument("--all", action="store_true", help="also simulate full load under every condition")
    parser.add_argument(
        "--arrival",
        action="store_true",
        help="switches serve the packet that has waited longest, instead of inputs in turn",
    )
    chosen = parser.parse_args(words)
    arbitration = Arbitration.ARRIVAL if chosen.arrival else Arbitration.ROUND_ROBIN
    panels = [
        (f"{cas} CA{'s' * (cas > 1)} at a switch, on {ca_vls} VLs: accepted over offered load",
         over_load(4, 1, cas, ca_vls, arbitration))
        for cas, ca_vls in ((1, 4), (2, 2), (1, 1))
    ]  # fmt: skip
    if chosen.plot:
        note = "8x8 torus, 4 VLs, uniform traffic, packets of 4 blocks, a packet of buffer for each VL"
        chosen.plot.write_text(chart("Adaptive routing", note, np.asarray(LOADS), panels))
    if chosen.all:
        conditions(1, arbitration)
        conditions(2, arbitration)
        exchange()


if __name__ == "__main__":
    main()
