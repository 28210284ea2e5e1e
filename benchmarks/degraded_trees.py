"""Measure engines on trees with missing links, as a Markdown table with a row for each fabric and engine.

FABRIC is a generator with its arguments, such as kary-ntree:16,3.  For each share of missing links, random links
between switches are removed, with several random seeds.  Each engine runs in a separate process for each seed.

The columns are:

- certified: number of seeds for which the tables are certified.
- least of limit: smallest all-to-all share over all seeds, divided by the share that the worst cut of the tree allows.
- mean: mean of this quotient over all seeds.
- stretch: mean length of the paths between end ports relative to shortest paths, and the largest number of additional
  hops of any path.
- route s, proof s: largest CPU seconds of any seed, for the engine and for the proof.
- MB: largest memory of any process after the proof.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from benchmarks.quality_table import line, listed
from benchmarks.real_fabrics import cut_limit
from benchmarks.usage import parser_of
from routing.cli import fabric_argument
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import IbnueError
from routing.fabric import Fabric
from routing.quality import all_to_all_share, channel_loads
from routing.quality.flows import Flows
from routing.quality.parts import stretch

FABRICS = ("kary-ntree:16,3",)
HEAD = (
    "fabric", "gone", "engine", "certified", "least of limit", "mean", "stretch", "VLs", "route s", "proof s", "MB",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One run of an engine on a fabric with missing links.

    Attributes
    ----------
    words
        Generator of the fabric, with its arguments.
    missing, seed
        Share of the links between switches that are removed (0 to 1), and the random seed that selects them.
    engine
        Engine of ibnue.
    """

    words: str
    missing: float
    seed: int
    engine: str

    def fabric(self) -> Fabric:
        """Return the fabric without the missing links."""
        fabric = fabric_argument.read(self.words)
        links = np.unique(fabric.channels.link)
        drawn = np.random.default_rng(self.seed).choice(links, round(self.missing * len(links)), replace=False)
        return fabric.without_links(drawn.tolist())


@dataclass(frozen=True)
class Outcome:
    """Figures of one run of an engine.

    Attributes
    ----------
    certified
        Whether the tables are proven complete and free of credit loops.
    of_limit
        All-to-all share relative to the share that the worst cut allows.
    stretch_mean, stretch_most
        Mean length of the paths relative to shortest paths, and the largest number of additional hops.
    vls
        Number of VLs that the tables need.
    route, proof
        CPU seconds of the engine, and of the proof.
    megabytes
        Largest resident memory of the process up to the end of the proof.
    problem
        Error of the engine; "" if there was no error.
    """

    certified: bool
    of_limit: float
    stretch_mean: float
    stretch_most: int
    vls: int
    route: float
    proof: float
    megabytes: float
    problem: str = ""


def run(case: Case) -> Outcome:
    """Run an engine on a fabric with missing links, prove the tables, and measure them."""
    fabric = case.fabric()
    _ = fabric.channels, fabric.lids
    start = time.process_time()
    try:
        routing = ENGINES[case.engine].route(fabric, EngineOptions())
    except IbnueError as error:
        return Outcome(False, 0.0, 0.0, 0, 0, time.process_time() - start, 0.0, 0.0, str(error))
    routed = time.process_time()
    certified = prove(fabric, routing).certified
    proven = time.process_time()
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    longer = stretch(Flows.of(fabric, routing, 2))
    assert longer is not None
    share = all_to_all_share(fabric, channel_loads(fabric, routing)) / cut_limit(fabric)
    figures = share, longer.mean, longer.more_most, routing.vls_needed
    return Outcome(certified, *figures, routed - start, proven - routed, megabytes)


def row(words: str, missing: float, engine: str, outcomes: Sequence[Outcome]) -> list[str]:
    """Return the table row of an engine on a fabric, which summarises the outcomes of all seeds."""
    good = [each for each in outcomes if not each.problem]
    certified = f"{sum(each.certified for each in good)} of {len(outcomes)}"
    if not good:
        return [f"`{words}`", f"{missing:.0%}", engine, certified, *[""] * 6, outcomes[0].problem]
    return [
        f"`{words}`",
        f"{missing:.0%}",
        engine,
        certified,
        f"{min(each.of_limit for each in good):.4f}",
        f"{np.mean([each.of_limit for each in good]):.4f}",
        f"{np.mean([each.stretch_mean for each in good]):.4f}, +{max(each.stretch_most for each in good)}",
        str(max(each.vls for each in good)),
        f"{max(each.route for each in good):.2f}",
        f"{max(each.proof for each in good):.2f}",
        f"{max(each.megabytes for each in good):.0f}",
    ]


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_of("degraded_trees", __doc__)
    parser.add_argument("fabrics", nargs="*", default=FABRICS, metavar="FABRIC")
    parser.add_argument(
        "--gone", type=listed, default=["0.01", "0.03", "0.05"], help="shares of missing links, separated by commas"
    )
    parser.add_argument("--seeds", type=int, default=3, help="number of random seeds for each share of missing links")
    parser.add_argument(
        "--engines", type=listed, default=["ftree", "updn", "nue", "dfsssp"], help="engines, separated by commas"
    )
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Run all engines on all fabrics with missing links, and print the table."""
    arguments = parsed(words)
    print(line(HEAD), line(["---"] * len(HEAD)), sep="\n", flush=True)
    # Each run has a separate process, because the largest memory of a process includes earlier runs.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
        for fabric in arguments.fabrics:
            for missing in map(float, arguments.gone):
                seeds = range(1, 1 + (arguments.seeds if missing else 1))
                for engine in arguments.engines:
                    cases = [Case(fabric, missing, seed, engine) for seed in seeds]
                    print(line(row(fabric, missing, engine, list(pool.map(run, cases)))), flush=True)
    print(f"\n{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
