"""The published experiment on running time: 25 tori from 2x2x2 to 10x10x10, 4 CAs a switch, 1 % of the links failed.

usage: python -m benchmarks.nue_tori [--count 25] [--vls 8] [--opensm nue,dfsssp,lash] [--timeout 60]

A Markdown table.  Ours: processor and wall seconds of engine and proof in a warm process.  OpenSM's seconds are from
its own log, sending the tables to the simulated switches included; an engine that gives up is said to.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.quality_table import listed, opensm_row
from ibsim_fixtures.processes import missing_packages
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.fabric import Fabric
from routing.faults import apply_faults, random_faults
from routing.formats.fabric_files import write_net
from routing.quality import measure
from routing.topologies import generate

SIZES = [
    (a, b, c) for n in range(2, 11) for a, b, c in ((n, n, n), (n + 1, n, n), (n + 1, n + 1, n)) if max(a, b, c) <= 10
]
FAILED = 0.01


def torus(size: tuple[int, int, int]) -> Fabric:
    """The torus with 1 % of its links between switches pulled, the same ones every time."""
    fabric = generate("torus", ["x".join(map(str, size))], cas=4)
    return apply_faults(fabric, random_faults(fabric, seed=str(size), rate=FAILED))


def ours(fabric: Fabric, vls: int) -> list[str]:
    """Processor seconds, wall seconds, verdict, entries on the escape tree, all-to-all share."""
    cpu, wall = time.process_time(), time.perf_counter()
    routing = ENGINES["nue"].route(fabric, EngineOptions(vls=vls, effort=0.1))
    proof = prove(fabric, routing)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    entries = routing.provenance.options["escape_entries"]
    share = measure(fabric, routing, shifts=0).all_to_all
    return [f"{cpu:.3f}", f"{wall:.3f}", "yes" if proof.certified else "NO", str(entries), f"{share:.3f}"]


def theirs(fabric: Fabric, engine: str, timeout: float) -> str:
    """Seconds of an OpenSM engine, or that it gave up."""
    with tempfile.TemporaryDirectory(prefix="ibnue-tori-") as folder:
        net = Path(folder) / "torus.net"
        write_net(fabric, net)
        row = opensm_row(net, engine, seed=1, timeout=timeout)
    return "gave up" if row.quality is None else f"{row.seconds:.3f}"


def main(words: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nue_tori", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=len(SIZES), help="tori, the smallest first")
    parser.add_argument("--vls", type=int, default=8)
    parser.add_argument("--opensm", type=listed, default=["nue", "dfsssp", "lash"], help="engines, with commas")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one OpenSM engine")
    arguments = parser.parse_args(words)
    if missing_packages():
        arguments.opensm = []
    head = ["torus", "switches", "CPU s", "wall s", "certified", "on the escape tree", "a2a"]
    head += [f"OpenSM {engine} s" for engine in arguments.opensm]
    print(f"| {' | '.join(head)} |", "|---" * len(head) + "|", sep="\n")
    for size in SIZES[: arguments.count]:
        fabric = torus(size)
        cells = ["x".join(map(str, size)), str(fabric.switches), *ours(fabric, arguments.vls)]
        cells += [theirs(fabric, engine, arguments.timeout) for engine in arguments.opensm]
        print(f"| {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
