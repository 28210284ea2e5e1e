"""Measure the CPU seconds of the packet simulator on one core.

Two kinds of traffic are simulated.  On a torus, 64 CAs send random traffic, in packets of 1 or 32 blocks of 64 bytes.
On a tree, each CA sends one message to every other CA.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from benchmarks.usage import parser_of
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.simulate.network import Network, Timing, build_network
from routing.simulate.options import Breaker, Remedies, Remedy
from routing.simulate.run import Simulation, simulate
from routing.simulate.traffic import Process, all_to_all, uniform
from routing.topologies import generate


def torus(blocks: int) -> Network:
    """Build the network of an 8x8 torus with one CA at each switch, for packets of ``blocks`` blocks.

    A tick is the time of one block of 64 bytes on a link.
    """
    fabric = generate("torus", ["8x8"], cas=1)
    routing = ENGINES["dfsssp"].route(fabric, EngineOptions(vls="min"))
    return build_network(fabric, routing, Timing(1.0, 1, 1, 1.0, buffer=8 if blocks == 1 else 4 * blocks))


def print_line(what: str, simulation: Simulation, seconds: float, ticks: int | None = None) -> None:
    """Print the speed of a simulation as one line: packet-hops, events and ticks per second.

    Parameters
    ----------
    what
        Name of the simulation in the output.
    simulation
        Simulation that has run.
    seconds, ticks
        CPU seconds and ticks of the run.  If ``ticks`` is None, the line has no ticks per second.
    """
    totals = simulation.totals()
    speed = "" if ticks is None else f"{ticks / seconds / 1e3:9.0f} k cycles/s"
    print(
        f"{what:44} {seconds:6.2f} s {totals['hops'] / seconds / 1e6:6.1f} M packet-hops/s"
        f" {totals['events'] / seconds / 1e6:6.1f} M events/s {speed}",
        flush=True,
    )


def timed(simulation: Simulation, ticks: int) -> float:
    """Run a simulation to tick ``ticks``, and return the CPU seconds that it took."""
    began = time.process_time()
    simulation.run(ticks)
    return time.process_time() - began


def main(words: Sequence[str] | None = None) -> None:
    """Run all simulations, and print the speed of each."""
    parser_of("simulate", __doc__).parse_args(words)
    for blocks, load, ticks in ((1, 0.2, 200_000), (1, 0.5, 60_000), (32, 0.2, 4_000_000), (32, 0.5, 1_000_000)):
        network = torus(blocks)
        size = 64 * blocks
        traffic = uniform(network, load, bytes=size, mtu=size, process=Process.BERNOULLI)
        simulation = simulate(network, traffic)
        print_line(f"torus 8x8, {blocks} blocks, load {load}", simulation, timed(simulation, ticks), ticks)
    network = torus(32)
    limits = Remedy(hoq=1 << 20, breaker=Breaker.DEADLOCK, detect=1 << 16, repeat=1 << 12, release=1 << 12)
    remedies = Remedies(port=limits, lifetime=1 << 22, sample=1 << 12)
    simulation = simulate(network, uniform(network, 0.5, process=Process.POISSON), remedies=remedies)
    print_line("the same, all limits and a breaker on", simulation, timed(simulation, 1_000_000), 1_000_000)
    fabric = generate("kary-ntree", ["10,3"], speed="QDR")
    network = build_network(fabric, ENGINES["updn"].route(fabric, EngineOptions(effort=0.1)), Timing())
    simulation = simulate(network, all_to_all(fabric))
    began = time.process_time()
    stop = simulation.run_to_end(limit=1 << 40)
    print_line(f"all-to-all, {fabric.endports} CAs, {stop.time / 1e6:.2f} ms", simulation, time.process_time() - began)


if __name__ == "__main__":
    main()
