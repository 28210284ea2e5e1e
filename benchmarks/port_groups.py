"""Measure port groups for adaptive routing: number of ports in a group, and throughput compared with fixed tables.

There are two rules for a packet that has to wait.  By the rule commit, the packet waits for the port that the switch
has chosen.  By the rule escape, the packet takes whichever port of its group has room first.  Switches with the rule
commit have a queue for each output.  Switches with the rule escape have one queue for each VL of an input.

Each CA sends to one other CA at full rate.  The throughput is the traffic that a CA receives from packet time 250 to
1000, as a share of its link.  Each figure is the mean over three random permutations.  Packets have 4 blocks of 64
bytes, and the buffer of each VL has room for 8 packets.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from benchmarks.usage import parser_of
from routing.cli.fabric_argument import read
from routing.deadlock.port_groups import compute_port_groups, prove_port_groups
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.fabric import Fabric
from routing.port_groups import Rule
from routing.simulate.adaptive import Adaptive, Scheme, simulate_adaptive
from routing.simulate.mechanisms.port_choice import PortChoice
from routing.simulate.network import BLOCK, Timing, build_network
from routing.simulate.run import Simulation, simulate
from routing.simulate.traffic import permutation
from routing.tables import Routing

CASES = (
    ("kary-ntree:10,3", "updn", 1),
    ("kary-ntree:10,3", "nue", 4),
    ("torus:4x4x4,cas=4", "nue", 8),
    ("dragonfly:12,6,6,15", "nue", 8),
    ("random-regular:125,16,cas=8", "nue", 8),
    ("hyperx:8x8,cas=4", "nue", 8),
)
BLOCKS, FROM, UNTIL, SEEDS = 4, 250, 1000, 3


def delivered(simulation: Simulation) -> float:
    """Run a simulation, and return the mean throughput of a CA as a share of its link."""
    simulation.run(FROM * BLOCKS)
    before = simulation.totals()["delivered_bytes"]
    simulation.run(UNTIL * BLOCKS)
    share = (simulation.totals()["delivered_bytes"] - before) / BLOCK / (UNTIL - FROM) / BLOCKS
    return float(share / simulation.network.fabric.endports)


def throughput(fabric: Fabric, routing: Routing) -> tuple[float, float, float]:
    """Simulate random permutations with fixed tables, and with adaptive routing by the port groups of these tables.

    Returns
    -------
    fixed, commit, escape
        Mean throughput of a CA as a share of its link: with fixed tables, and with port groups of the rules "commit"
        and "escape" (:class:`~routing.port_groups.Rule`).
    """
    network = build_network(fabric, routing, Timing(1.0, 1, 1, 1.0, 8 * BLOCKS), vls=routing.vls)
    fixed = commit = escape = 0.0
    for seed in range(SEEDS):
        partner = list(range(fabric.endports))
        random.Random(seed).shuffle(partner)
        traffic = permutation(fabric, partner, bytes=BLOCK * BLOCKS, mtu=BLOCK * BLOCKS)
        fixed += delivered(simulate(network, traffic)) / SEEDS
        commit += delivered(simulate(network, traffic, mechanisms=[PortChoice()])) / SEEDS
        escape += delivered(simulate_adaptive(network, traffic, Adaptive(Scheme.GROUPS))) / SEEDS
    return fixed, commit, escape


def main(argv: Sequence[str] | None = None) -> None:
    """Measure the port groups of all fabrics, and print a table row for each fabric."""
    parser_of("port_groups", __doc__).parse_args(argv)
    print("fabric, engine, VLs | ports commit | ports escape | CPU s | proof CPU s | tables | commit | escape")
    for words, engine, vls in CASES:
        fabric = read(words)
        routing = ENGINES[engine].route(fabric, EngineOptions(vls=vls))
        proof = prove(fabric, routing)
        ports = []
        for rule in Rule:
            start = time.process_time()
            groups = compute_port_groups(fabric, routing, proof, rule)
            middle = time.process_time()
            found = prove_port_groups(groups, proof)
            end = time.process_time()
            assert found.certified
            ports.append(found.trace.ports / found.trace.groups)
        fixed, commit, escape = throughput(fabric, routing)
        print(
            f"{words}, {engine}, {routing.vls} | {ports[0]:.2f} | {ports[1]:.2f} | {middle - start:.2f} |"
            f" {end - middle:.2f} | {fixed:.3f} | {commit:.3f} | {escape:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
