"""Measure how much all-to-all rate is lost after many consecutive faults, compared with tables from scratch.

Links fail and return at random.  After each fault or return, the tables are re-routed.  The re-routed tables are then
rebalanced in steps, as a running subnet manager does between faults.  At the end all links return.  With --switches,
the program instead loses each switch alone, one switch after the other.

For each engine, a line compares the all-to-all rate with the rate of tables from scratch.  The line states the mean and
the largest loss in points (percent of the fault-free rate), before and after the steps of rebalancing.  A second line
counts the changes of tables by kind, and the changes for which no safe update rounds were found.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.usage import parser_of
from routing.cli.fabric_argument import read
from routing.deadlock.proof import prove
from routing.deadlock.schedule_search import find_schedule
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.fabric import Fabric
from routing.faults import apply_faults, every_switch
from routing.reroute import Published, Rerouted, reroute, spread
from routing.reroute.installed import installed

FABRICS = (
    "torus:4x4x4,cas=4",
    "random-regular:125,16,cas=8",
    "dragonfly:12,6,6,15",
    "kautz:7,3,cas=7",
    "torus:6x5x5,cas=7,redundancy=4",
    "kary-ntree:10,3,cas=11",
)
MOST_LOST = 0.16
"""Fraction of the links that may be gone at the same time."""


def published(fabric: Fabric, engine: str, options: EngineOptions) -> Published:
    routing = ENGINES[engine].route(fabric, options)
    return Published(fabric, routing, prove(fabric, routing))


def rate(tables: Published) -> float:
    return 1 / tables.highest_utilisation


def losses(fabric: Fabric, count: int, seed: int) -> Iterator[Fabric]:
    """Yield the fabric after each of ``count`` random changes, in which a link fails or returns.

    Afterwards all failed links return one by one, and the fabric after each return is yielded, too.
    """
    rng, links, gone = np.random.default_rng(seed), np.unique(fabric.channels.link).tolist(), list[int]()
    most = max(2, int(MOST_LOST * len(links)))
    while count:
        if gone and rng.random() < len(gone) / (2 * most):
            new = [link for link in gone if link != gone[rng.integers(len(gone))]]
        else:
            new = [*gone, links[rng.integers(len(links))]]
        less = fabric.without_links(sorted(set(new)))
        if len(set(new)) < len(new) or less.component.max() > 0:
            continue
        gone, count = new, count - 1
        yield less
    while gone:
        gone.pop(int(rng.integers(len(gone))))
        yield fabric.without_links(gone) if gone else fabric


class Run:
    """Tables in force during a series of faults, and the number of changes of each kind to these tables."""

    def __init__(self, baseline: Published, engine: str, options: EngineOptions, *, steps: int, entries: int) -> None:
        self.now = self.baseline = baseline
        self.engine, self.options, self.steps, self.entries = ENGINES[engine], options, steps, entries
        self.counts, self.seconds = Counter[str](), 0.0

    def change(self, fabric: Fabric) -> tuple[float, float]:
        """Re-route the tables in force for a changed fabric, and rebalance the result in steps.

        Returns
        -------
        repaired, rebalanced
            All-to-all rate after the re-route, and after the steps of rebalancing.
        """
        found = reroute(self.engine, self.options, self.now, fabric, baseline=self.baseline)
        self.take(fabric, found, found.how)
        repaired = rate(self.now)
        for _ in range(self.steps):
            if self.now.routing is self.baseline.routing:
                break  # The plugin does not rebalance tables that were computed from scratch.
            start = time.process_time()
            step = spread(self.engine, self.options, self.now, most=self.entries, baseline=self.baseline)
            self.seconds = max(self.seconds, time.process_time() - start)
            if step is None or step.how == "unchanged":
                break
            self.take(fabric, step, "step")
            self.counts["entries"] += step.changed
        return repaired, rate(self.now)

    def take(self, fabric: Fabric, found: Rerouted, how: str) -> None:
        """Replace the tables in force by re-routed tables, and count this change under the name ``how``."""
        before, self.now = self.now, Published(fabric, found.routing, found.proof)
        change = installed(before.routing, before.fabric, found.routing, fabric)
        replies = found.proof.strength == "reversible"
        schedule = find_schedule(change.fabric, change.old, change.new, lost=change.lost, replies=replies)
        self.counts[how] += 1
        self.counts["uncertified"] += found.proof.certificate is None
        self.counts[f"{how} without safe rounds"] += schedule is None


def history(fabric: Fabric, engine: str, options: EngineOptions, asked: Namespace) -> None:
    run = Run(published(fabric, engine, options), engine, options, steps=asked.steps, entries=asked.entries)
    whole, under, lost = rate(run.baseline), [], 0
    for number, less in enumerate(losses(fabric, asked.changes, asked.seed)):
        rates = run.change(less)
        lost = max(lost, fabric.links - less.links)
        if number < asked.changes and number % asked.every == asked.every - 1:
            fresh = rate(published(less, engine, options))
            under.append([100 * (fresh - one) / whole for one in rates])
            if asked.verbose:
                print(number + 1, [round(100 * x / whole, 1) for x in (*rates, fresh)], dict(run.counts), flush=True)
    back = 0
    while not np.array_equal(run.now.routing.lft, run.baseline.routing.lft) and back < 1000:
        step = spread(run.engine, options, run.now, most=asked.entries, baseline=run.baseline)
        if step is None:
            break
        run.take(fabric, step, "step back")
        back += 1
    report(f"{fabric.name} {engine}", under, run)
    same = np.array_equal(run.now.routing.lft, run.baseline.routing.lft)
    print(f"  at most {lost} links gone; back at the baseline: {same}, after {back} more steps", flush=True)


def report(label: str, under: list[list[float]], run: Run) -> None:
    (mean, steps_mean), (worst, steps_worst) = np.mean(under, axis=0), np.max(under, axis=0)
    print(
        f"{label}: points under fresh, mean / worst: repaired {mean:.1f} / {worst:.1f}, "
        f"rebalanced {steps_mean:.1f} / {steps_worst:.1f}; longest step {run.seconds:.2f} s\n"
        f"  {', '.join(f'{name} {count}' for name, count in sorted(run.counts.items()) if count)}",
        flush=True,
    )


def switches(fabric: Fabric, engine: str, options: EngineOptions, asked: Namespace) -> None:
    """Measure how much all-to-all rate is lost if a single switch fails.

    Only every ``asked.every``-th switch in the order of GUIDs is measured.  Before each switch fails, the tables of the
    fabric without faults are in force again.
    """
    baseline = published(fabric, engine, options)
    every, under, whole = every_switch(fabric), [], rate(baseline)
    run = Run(baseline, engine, options, steps=asked.steps, entries=asked.entries)
    for number in range(0, len(every), asked.every):
        less = apply_faults(fabric, every[number : number + 1])
        if less.component.max() > 0:
            continue
        run.now = baseline
        rates = run.change(less)
        fresh = rate(published(less, engine, options))
        under.append([100 * (fresh - one) / whole for one in rates])
        if asked.verbose:
            print(number, [round(100 * x / whole, 1) for x in (*rates, fresh)], flush=True)
    report(f"{fabric.name} {engine}", under, run)


def main(words: Sequence[str] | None = None) -> None:
    """Measure all engines on all fabrics, and print three lines (two with --switches) for each pair of
    fabric and engine.
    """
    parser = parser_of("accumulated", __doc__)
    parser.add_argument("fabrics", nargs="*", default=FABRICS, help="fabrics: files, or generators such as torus:4x4x4")
    parser.add_argument("--engines", default="updn,nue,dfsssp", help="routing engines")
    parser.add_argument("--switches", action="store_true", help="lose each switch alone, instead of changing links")
    parser.add_argument("--changes", type=int, default=100, help="number of changes: a link fails or returns")
    parser.add_argument("--steps", type=int, default=20, help="largest number of rebalance steps after each change")
    parser.add_argument(
        "--entries", type=int, default=256, help="largest number of entries that a rebalance step changes"
    )
    parser.add_argument(
        "--every", type=int, default=5, help="number of changes between two comparisons with tables from scratch"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the random changes")
    parser.add_argument("--effort", type=float, default=1.0, help="effort of the engines")
    parser.add_argument("--verbose", action="store_true", help="print a line for each comparison")
    asked = parser.parse_args(words)
    for name in asked.fabrics:
        fabric = read(name, lmc=0)
        for engine in asked.engines.split(","):
            (switches if asked.switches else history)(fabric, engine, EngineOptions(effort=asked.effort), asked)


if __name__ == "__main__":
    main()
