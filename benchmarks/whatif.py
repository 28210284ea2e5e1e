"""Measure how many faults per second the what-if analysis handles, as a Markdown table.

Each fault is the loss of one link between switches.  For each fault, the analysis computes new tables by a re-route,
and proves and measures them.  A fabric is given as a file, or as a generator with its arguments.  The option --most
limits the number of faults.  If the fabric has more links, the lost links are chosen at random.  The table has faults
per second of wall-clock time, and per second of CPU time of all processes.  The time for the tables before any fault is
not counted.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Sequence

from benchmarks.quality_table import listed
from benchmarks.usage import parser_of
from routing.cli import fabric_argument
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.faults import every_link, random_faults
from routing.reroute import Stability
from routing.whatif import Baseline, explore, single_faults

FABRICS = ("torus:4x4x4", "torus:4x4x4,cas=4", "kary-ntree:10,3")
EFFORT = 1.0


def row(name: str, engine: str, arguments: argparse.Namespace) -> str:
    """Measure the what-if analysis with an engine on a fabric, and return the table row."""
    fabric = fabric_argument.read(name)
    faults = every_link(fabric)
    if arguments.most < len(faults):
        faults = random_faults(fabric, seed=1, count=arguments.most)
    options = EngineOptions(effort=arguments.effort, threads=1)
    baseline = Baseline.of(fabric, ENGINES[engine], options, stability=Stability(arguments.stability))
    cpu, wall = processor_seconds(), time.perf_counter()
    effects = list(explore(baseline, single_faults(faults), jobs=arguments.jobs))
    cpu, wall = processor_seconds() - cpu, time.perf_counter() - wall
    certified = sum(effect.certified for effect in effects)
    changed = sum(effect.changed or 0 for effect in effects) / max(1, len(effects))
    broken = sum(effect.broken or 0 for effect in effects) / max(1, len(effects))
    worst = max((effect.loss or 0.0 for effect in effects), default=0.0)
    cells = [fabric.name, engine, arguments.stability, str(len(faults)), f"{wall:.2f}", f"{len(faults) / wall:.0f}"]
    cells += [f"{len(faults) / cpu:.0f}", str(certified), f"{broken:.1f}", f"{changed:.1f}", f"{100 * worst:.1f} %"]
    return f"| {' | '.join(cells)} |"


def processor_seconds() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def main(words: Sequence[str] | None = None) -> int:
    """Measure all engines on all fabrics, and print the table."""
    parser = parser_of("whatif", __doc__)
    parser.add_argument("fabrics", nargs="*", default=FABRICS)
    parser.add_argument("-e", "--engines", type=listed, default=["nue", "updn"], help="engines, separated by commas")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="number of processes")
    parser.add_argument(
        "--most", type=int, default=1 << 30, help="largest number of links; if there are more, random links are lost"
    )
    parser.add_argument("--effort", type=float, default=EFFORT)
    parser.add_argument("--stability", choices=[stability.value for stability in Stability], default="full")
    arguments = parser.parse_args(words)
    head = ["fabric", "engine", "stability", "links", "seconds", "a second", "a CPU second", "certified"]
    head += ["broken mean", "changed mean", "worst loss"]
    print(f"| {' | '.join(head)} |", "|---" * len(head) + "|", sep="\n")
    for name in arguments.fabrics:
        for engine in arguments.engines:
            print(row(name, engine, arguments), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
