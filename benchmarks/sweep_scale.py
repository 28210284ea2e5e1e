"""Measure the speed of ``ibnue sweep`` with different numbers of worker processes, as a Markdown table.

Every run has equal tasks.  The time to start the workers is included.  The figures are meaningful only on an idle
machine.  The columns are:

- wall s: wall-clock seconds of the run.
- times one: speed relative to one process.
- cases a second: number of tasks per second.
- workers CPU s, ledger CPU s: CPU seconds of the workers, and of the program that distributes the tasks and stores the
  results in the ledger.
- of the processors: CPU seconds of the run, divided by the wall-clock seconds and by the number of processors that the
  workers can use.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.usage import parser_of
from routing.cli.fabric_argument import read
from routing.sweep.executors import Processes
from routing.sweep.ledger import Ledger
from routing.sweep.run import Run
from routing.sweep.spec import Block, Plan, expand
from routing.sweep.work import Batch, pack


def once(plan: Plan, processes: int) -> tuple[float, float, float]:
    """Run all tasks of a sweep once.

    Returns
    -------
    wall, work, own
        Wall-clock seconds of the run, CPU seconds of the workers, and CPU seconds of this process.
    """
    packed = {digest: pack(fabric) for digest, fabric in plan.fabrics.items()}
    before, started = os.times(), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="ibnue-scale-") as folder, Ledger(Path(folder) / "ledger.db") as ledger:
        crew = Processes(processes)
        Run(
            ledger,
            ledger.begin(""),
            crew,
            lambda tasks: Batch(packed[tasks[0].digest], tuple(tasks)),
            lambda pairs: None,
        ).finish(plan.tasks)
        work = worker_seconds(crew)
        crew.close()
        assert len(ledger.done()) == len(plan.tasks)
    wall, after = time.perf_counter() - started, os.times()
    return wall, work, after.user + after.system - before.user - before.system


def worker_seconds(crew: Processes) -> float:
    """Return the CPU seconds of the workers.

    The seconds are read from /proc, because the workers are not children of this process.
    """
    tick = os.sysconf("SC_CLK_TCK")
    total = 0.0
    for pid in crew.pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / tick
    return total


def main(words: Sequence[str] | None = None) -> int:
    """Run all tasks once with each number of worker processes, and print the table."""
    parser = parser_of("sweep_scale", __doc__)
    parser.add_argument("--processes", default="1,2", help="numbers of processes, separated by commas")
    parser.add_argument("--fabric", default="torus:4x4x4")
    parser.add_argument("--engine", default="nue:effort=0.1")
    parser.add_argument("--cases", type=int, default=600)
    arguments = parser.parse_args(words)
    plan = expand([Block((arguments.fabric,), (arguments.engine,), random=(f"{arguments.cases}:1%",))], read)
    print("| processes | wall s | times one | cases a second | workers CPU s | ledger CPU s | of the processors |")
    print("|---" * 7 + "|")
    one = None
    for count in map(int, arguments.processes.split(",")):
        wall, work, own = once(plan, count)
        one = one or wall * count
        share = (work + own) / (wall * min(count, os.cpu_count() or 1))
        cells = [f"{wall:.2f}", f"{one / wall:.2f}", f"{len(plan.tasks) / wall:.0f}", f"{work:.2f}", f"{own:.2f}"]
        print(f"| {count} | {' | '.join(cells)} | {share:.0%} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
