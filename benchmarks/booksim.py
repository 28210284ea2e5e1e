"""Compare the packet simulator with BookSim2 on an 8x8 torus with equal parameters.

The argument is the path of BookSim2's program `booksim`, which BookSim2's own makefile builds.  Both simulators have
packets of one flit, dimension-order paths with a dateline on two VLs, one queue for each VL of an input, and buffers of
equal size.  Their outputs serve the inputs of the crossbar in turn.  Both have uniform traffic, 3 cycles from switch to
switch, and 5 cycles until a credit can be used again.  A cycle is the time of one packet on a link.

ibnue and BookSim2 differ in one choice: the VL between a node and its switch.  BookSim2 takes any VL that has credits.
ibnue picks the VL at random when the packet is made, because the SL of an InfiniBand packet fixes its VL on each link.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.usage import parser_of
from routing.fabric import NO_PORT, Fabric
from routing.simulate.dimension_order import switch_positions
from routing.simulate.network import BLOCK, Network, Timing, build_network
from routing.simulate.options import Arbitration, Inputs, Switching
from routing.simulate.run import simulate
from routing.simulate.traffic import Flow, Pattern, Process, Traffic
from routing.tables import Provenance, Routing
from routing.topologies import generate

SIDE, BUFFER, LMC = 8, 8, 4
WARM_UP, MEASURED = 5000, 20_000
"""Number of cycles before the measurement, and number of cycles of the measurement."""
LOADS = (0.01, 0.2, 0.4, 0.5, 0.55, 0.58, 0.6)
"""Loads in packets per cycle and CA.  With most allocators and speedups, the last load is above saturation."""
SPEED_LOAD, RUNS = 0.2, 3
"""Load at which the speeds of the programs are measured, and number of runs for each speed."""
ARBITRATIONS = (Arbitration.CROSSBAR, Arbitration.ROUND_ROBIN)
"""Arbitrations of ibnue.  With ``CROSSBAR``, an output serves the inputs of the crossbar in turn, as with BookSim2's
allocator `islip(3)`.  With ``ROUND_ROBIN``, an output serves its VLs in turn, and then the inputs of the VL.
"""
ALLOCATORS = ("islip(3)", "max_size", "wavefront")
"""Allocators of BookSim2, which choose the packets that leave a switch in a cycle.  In `islip(3)`, as in ibnue, each
output serves the inputs of the crossbar in turn, and chooses only among inputs that are free.  If several outputs
choose the same input, the input sends to one of these outputs.  The other outputs choose again in the next round, of
three rounds in all.
`max_size` chooses the largest possible number of packets.  `wavefront` begins with another input in each cycle, and
chooses packets until no further packet can leave.  Another choice could have more packets.
"""

CONFIGURATION = f"""
topology = torus; k = {SIDE}; n = 2; routing_function = dim_order;
num_vcs = 2; packet_size = 1; traffic = uniform; injection_process = bernoulli;
speculative = 1; vc_allocator = piggyback;
routing_delay = 0; vc_alloc_delay = 1; sw_alloc_delay = 1; st_final_delay = 1; credit_delay = 0;
use_noc_latency = 0;
sample_period = {MEASURED}; warmup_periods = 1; max_samples = 4; latency_thres = 100000.0; sim_count = 1;
"""
"""Configuration of BookSim2.

With the selected VL allocator `piggyback`, a packet gets its VL together with its turn on the crossbar.  With
BookSim2's other VL allocators, a VL stays idle for some cycles between packets of one flit.  In InfiniBand, packets
follow each other without such a gap.
"""


@dataclass(frozen=True)
class Result:
    """Figures of one run.

    Attributes
    ----------
    latency
        Mean latency of a packet in cycles.
    accepted
        Packets that arrive for each cycle and CA.
    speed
        Simulated cycles for each CPU second.
    """

    latency: float
    accepted: float
    speed: float


def _step(ahead: int, descends: int) -> int:
    """Return the direction of a path along a ring: 1 (ascending), -1 (descending), or 0 if no hop is needed.

    ``ahead`` is the number of hops in ascending direction.  If the two directions need equally many hops, the path
    takes the descending direction if ``descends`` is 1, else the ascending direction.
    """
    if ahead == 0:
        return 0
    return 1 if 2 * ahead < SIDE + (not descends) else -1


def balanced_tables(fabric: Fabric) -> Routing:
    """Compute dimension-order tables with a dateline in each ring, for every combination of the choices that BookSim2
    makes for each packet.

    Each CA has 16 LIDs (LMC 4), whose last four bits encode these choices.  Bits 0 and 1 state the direction in the
    first and in the second dimension where both directions need equally many hops: 0 is ascending, 1 is descending.
    Bit 2 is the VL from the CA to its switch, and bit 3 the VL from the last switch to the CA.  A sender picks one of
    the receiver's LIDs at random for each packet.

    Bit 0 of an SL is the VL from the CA to its switch, and bit 3 the VL to the CA.  Bit d + 1 is the VL in dimension d,
    which is 1 if the path crosses the dateline.
    """
    positions, _ = switch_positions(fabric)
    row = {position: switch for switch, position in enumerate(positions)}
    channels, lids = fabric.channels, fabric.lids
    ends = zip(channels.src.tolist(), channels.dst.tolist(), strict=True)
    port = dict(zip(ends, channels.port.tolist(), strict=True))
    width = 1 + int(fabric.switch_ports.max())
    lft = np.full((fabric.switches, len(lids)), NO_PORT, np.uint8)
    sl = np.zeros_like(lft)
    sl2vl = np.zeros((fabric.switches, width, width, 16), np.uint8)
    sl2vl[:] = np.arange(16) >> 3
    for switch, (x, y) in enumerate(positions):
        for dim, (dx, dy) in enumerate(((1, 0), (0, 1))):
            for step in (1, -1):
                there = row[(x + step * dx) % SIDE, (y + step * dy) % SIDE]
                sl2vl[switch, :, port[switch, there]] = np.arange(16) >> (dim + 1) & 1
        for lid in np.flatnonzero(lids.switch >= 0).tolist():
            to_x, to_y = positions[int(lids.switch[lid])]
            across = _step((to_x - x) % SIDE, lid & 1)
            along = _step((to_y - y) % SIDE, lid >> 1 & 1)
            wraps = ((to_x - x) * across < 0) << 1 | ((to_y - y) * along < 0) << 2
            sl[switch, lid] = wraps | lid >> 2 & 1 | (lid >> 3 & 1) << 3
            if across:
                lft[switch, lid] = port[switch, row[(x + across) % SIDE, y]]
            elif along:
                lft[switch, lid] = port[switch, row[x, (y + along) % SIDE]]
            else:
                lft[switch, lid] = lids.port[lid]
    return Routing(lft, sl, sl2vl, 2, 2, Provenance("dimension-order"))


def torus_network(buffer: int = BUFFER) -> Network:
    """Build the network of the torus: at each switch one CA that sends, and one CA that receives.

    With two CAs, a CA can also send to its own switch, as in BookSim2.
    ``buffer`` is the size in packets of the buffer for a VL of an input.
    """
    fabric = generate("torus", [f"{SIDE}x{SIDE}"], cas=2, lmc=LMC)
    timing = Timing(tick=1.0, wire=1, switch=2, block=1.0, buffer=buffer)
    return build_network(fabric, balanced_tables(fabric), timing)


def traffic_of(network: Network, load: float) -> Traffic:
    """Make uniform traffic from the first CA of each switch to the second CA of any switch."""
    receivers = tuple(lid + choice for lid in network.fabric.endport_lid[1::2].tolist() for choice in range(1 << LMC))
    return Traffic(
        tuple(
            Flow(sender, receivers, Pattern.UNIFORM, Process.BERNOULLI, BLOCK, probability=load)
            for sender in range(0, network.fabric.endports, 2)
        ),
        BLOCK,
    )


def equal_switching(speedup: int, arbitration: Arbitration = Arbitration.CROSSBAR) -> Switching:
    """Return the options of switches as BookSim2 has them: an input has one queue for each VL, and outputs serve the
    inputs of the crossbar in turn.

    ``speedup`` is the number of packets that an input of a switch can send at once.  ``arbitration`` replaces the order
    in which outputs serve inputs.
    """
    return Switching(arbitration, Inputs.FIFO, speedup=speedup)


def run_ibnue(network: Network, load: float, switching: Switching) -> Result:
    """Simulate one load with ibnue."""
    simulation = simulate(network, traffic_of(network, load), switching=switching)
    began = time.process_time()
    simulation.run(WARM_UP)
    packets, latency = simulation.totals()["delivered"], simulation.latency_sum()
    simulation.run(WARM_UP + MEASURED)
    seconds = time.process_time() - began
    got = simulation.totals()["delivered"] - packets
    mean = (simulation.latency_sum() - latency) / got
    return Result(mean, got / MEASURED / SIDE**2, (WARM_UP + MEASURED) / seconds)


def _figure(output: str, pattern: str) -> float:
    """Return the number after the last occurrence of ``pattern`` (a regular expression) in the output of BookSim2."""
    found = re.findall(pattern + r" = ([0-9.e+-]+)", output)
    if not found:
        raise SystemExit(f"BookSim2 printed no {pattern!r}:\n{output[-2000:]}")
    return float(found[-1])


def run_booksim(
    program: Path, load: float, speedup: int, allocator: str = ALLOCATORS[0], buffer: int = BUFFER
) -> Result:
    """Simulate one load with BookSim2.

    ``program`` is the path of BookSim2's program, ``allocator`` one of :data:`ALLOCATORS`, and ``buffer`` the size in
    packets of the buffer for a VL of an input.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "torus.cfg")
        file.write_text(CONFIGURATION)
        options = {
            "injection_rate": load,
            "input_speedup": speedup,
            "sw_allocator": allocator,
            "vc_buf_size": buffer,
        }
        words = [str(program), str(file), *(f"{key}={value}" for key, value in options.items())]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        # BookSim2 exits with status 255 after a run without an error, so the status has no meaning.
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        output = done.stdout if done.stdout.strip() else done.stderr
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cycles = re.findall(r"Time taken is (\d+) cycles", output)
    # The measured CPU time of a short run may be 0.  At least one microsecond is assumed, so that the speed is finite.
    seconds = max(after.ru_utime - before.ru_utime, 1e-6)
    return Result(
        _figure(output, "Packet latency average"),
        _figure(output, "Accepted packet rate average"),
        int(cycles[-1]) / seconds if cycles else float("nan"),
    )


def compare(program: Path, speedup: int, loads: Sequence[float], buffer: int) -> None:
    """Simulate some loads with both programs, and print latency and throughput as a table.

    The columns of ibnue have the names of its arbitrations, and the columns of BookSim2 those of its allocators.  A
    percentage in brackets states by how much ibnue's latency with the first arbitration exceeds the latency in
    the column.
    ``program`` is the path of BookSim2, and ``speedup`` the number of packets that an input can send at once.
    ``loads`` are in packets per cycle and CA.  ``buffer`` is the size in packets of the buffer for a VL of an input.
    """
    network = torus_network(buffer)
    names = [arbitration.name.lower() for arbitration in ARBITRATIONS]
    heads = [f"{figure}, {name}" for figure in ("latency", "accepted") for name in (*names, *ALLOCATORS)]
    print(f"\nspeedup {speedup}\n", "| load | " + " | ".join(heads) + " |", "|---" * (1 + len(heads)) + "|", sep="\n")
    for load in loads:
        ours, *others = (run_ibnue(network, load, equal_switching(speedup, kind)) for kind in ARBITRATIONS)
        others += [run_booksim(program, load, speedup, allocator, buffer) for allocator in ALLOCATORS]
        print(f"| {load} | {ours.latency:.2f}", end="")
        for result in others:
            print(f" | {result.latency:.2f} ({100 * (ours.latency / result.latency - 1):+.1f} %)", end="")
        print("", *(f"{result.accepted:.4f}" for result in (ours, *others)), sep=" | ", end=" |\n", flush=True)


def speeds(program: Path, network: Network) -> None:
    """Print the speed of both programs at one load.  Each speed is the best of several runs.

    The speed of ibnue is measured twice: with the parameters of the comparison, and without options of switches (a
    queue for each output, and an ideal crossbar).  The runs of the three measurements alternate.
    """
    print(f"\ncycles for each CPU second at load {SPEED_LOAD}\n")
    best = dict.fromkeys(("BookSim2", "ibnue, equal parameters", "ibnue, all options off"), 0.0)
    for _ in range(RUNS):
        for name, result in zip(
            best,
            (
                run_booksim(program, SPEED_LOAD, 1),
                run_ibnue(network, SPEED_LOAD, equal_switching(1)),
                run_ibnue(network, SPEED_LOAD, Switching(speedup=0)),
            ),
            strict=True,
        ):
            best[name] = max(best[name], result.speed)
    print("| program | cycles/s | times |", "|---|---|---|", sep="\n")
    for name, speed in best.items():
        print(f"| {name} | {speed:.0f} | {speed / best['BookSim2']:.1f} |")


def main(words: Sequence[str] | None = None) -> None:
    """Run the comparison with speedups 1 and 2, and print the figures."""
    parser = parser_of("booksim", __doc__)
    parser.add_argument("program", type=Path, help="program of BookSim2, such as booksim2/src/booksim")
    parser.add_argument("--buffer", type=int, default=BUFFER, help="packets that the buffer for a VL of an input holds")
    parser.add_argument("--loads", type=float, nargs="+", default=LOADS, help="loads in packets per cycle and CA")
    arguments = parser.parse_args(words)
    program = arguments.program.resolve()
    if not os.access(program, os.X_OK) or program.is_dir():
        parser.error(f"{program} is not a program: build BookSim2 with `make` in its folder src, and name the result")
    for speedup in (1, 2):
        compare(program, speedup, arguments.loads, arguments.buffer)
    speeds(program, torus_network())


if __name__ == "__main__":
    main()
