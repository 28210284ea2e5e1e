"""Measure how much of the all-to-all rate is lost when a single link between switches fails.

Each link fails alone.  After each failure the tables are re-routed with stability ``balanced``, and separately with
stability ``full``.  For a sample of the links, the tables are also computed from scratch.  The table has one row for
each fabric and engine.  Unless stated otherwise, a column has the mean and the largest value over all links:

- cut: loss that no tables can avoid, because all traffic of a switch has to use the links of this switch.
- fresh: loss with tables from scratch.
- balanced, full: loss after the re-route.
- over fresh, over cut: loss with ``balanced``, minus the loss in the column fresh or cut for the same link.
- changed / broken: number of changed LFT entries for each broken entry.  The first column of this name is for
  ``balanced``, the second for ``full``.
- ms, ms full: median CPU time of the re-route and its proof in ms, with ``balanced`` and with ``full``.

Losses are in percent of the all-to-all rate without faults.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from benchmarks.quality_table import listed
from benchmarks.reroute import pulled
from benchmarks.usage import parser_of
from routing.cli import fabric_argument
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.fabric import Fabric
from routing.reroute import Precomputed, Published, Stability, precompute, reroute
from routing.reroute.base_fabric import BaseNumbering
from routing.reroute.cut_bounds import cut_bound
from routing.reroute.rebalance import peak_in

FABRICS = (
    "torus:4x4x4,cas=4",
    "random-regular:125,16,cas=8",
    "dragonfly:12,6,6,15",
    "kautz:5,3,cas=7,redundancy=2",
    "torus:6x5x5,cas=7,redundancy=4",
    "kary-ntree:10,3,cas=11",
    "kary-ntree:16,3",
)


@dataclass
class Costs:
    """Results for all links that were lost, each link alone.

    Attributes
    ----------
    link
        Row of each lost link.
    cut, balanced, full, fresh
        Lost share of the all-to-all rate (0 to 1).  ``cut`` is a lower bound for any tables.  The other three
        attributes are the losses with each stability.  ``fresh`` is NaN for links that were not measured with tables
        from scratch.
    ratio, full_ratio
        Number of changed LFT entries for each broken entry, with ``balanced`` and with ``full``.
    milliseconds, full_milliseconds
        CPU time of the re-route in ms, with ``balanced`` and with ``full``.
    """

    link: list[int] = field(default_factory=list)
    cut: list[float] = field(default_factory=list)
    balanced: list[float] = field(default_factory=list)
    full: list[float] = field(default_factory=list)
    fresh: list[float] = field(default_factory=list)
    ratio: list[float] = field(default_factory=list)
    full_ratio: list[float] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    full_milliseconds: list[float] = field(default_factory=list)


def lost(before: Published, less: Fabric, engine: str, stability: Stability, ahead: Precomputed) -> tuple[float, ...]:
    """Re-route after the loss of a link.

    Parameters
    ----------
    before, less
        Tables in force, and the fabric without the link.
    engine, stability
        Name of the engine, and the stability of the re-route.
    ahead
        Data for the re-route that were computed before the loss, because the data depend only on ``before``.

    Returns
    -------
    share
        Lost share of the all-to-all rate (0 to 1).
    ratio
        Number of changed LFT entries for each broken entry.
    took
        CPU time in ms.
    """
    start = time.process_time_ns()
    found = reroute(
        ENGINES[engine],
        EngineOptions(threads=1),
        before,
        less,
        stability=stability,
        baseline=before if stability is not Stability.FRESH else None,
        precomputed=ahead,
    )
    took = (time.process_time_ns() - start) / 1e6
    share = 0.0 if found.kept is None else max(0.0, 1 - found.kept)
    return share, found.changed / max(1, found.broken), took


def forced(before: Published, less: Fabric) -> float:
    """Return the share of the all-to-all rate that any tables lose on the fabric ``less``, by the cut bound.

    The share is relative to the rate of the tables ``before`` on the fabric with all links.
    """
    numbering = BaseNumbering.of(less, [before.fabric])
    bound = cut_bound(numbering.repair_fabric)
    return max(0.0, 1 - peak_in(numbering, before.highest_utilisation) / max(1, bound))


def costs_of(name: str, engine: str, links: int, fresh: int) -> Costs:
    """Remove single links of a fabric, each alone, and measure the lost rate, the changed LFT entries and the CPU time.

    Parameters
    ----------
    name, engine
        Fabric in the form that commands accept (a file, or a generator with arguments), and name of the engine.
    links
        Number of links to lose, each alone; 0: all links.
    fresh
        Number of these links for which tables are also computed from scratch.
    """
    fabric, costs = fabric_argument.read(name), Costs()
    routing = ENGINES[engine].route(fabric, EngineOptions(threads=1))
    before = Published(fabric, routing, prove(fabric, routing, threads=1))
    ahead = precompute(before, before)
    every = pulled(fabric, links)
    beside = set(every[:: max(1, -(-len(every) // fresh))]) if fresh else set()
    for link in every:
        less = fabric.without_links([link])
        costs.link.append(link)
        costs.cut.append(forced(before, less))
        for stability, loss, ratio, took in (
            (Stability.BALANCED, costs.balanced, costs.ratio, costs.milliseconds),
            (Stability.FULL, costs.full, costs.full_ratio, costs.full_milliseconds),
        ):
            share, changes, milliseconds = lost(before, less, engine, stability, ahead)
            loss.append(share)
            ratio.append(changes)
            took.append(milliseconds)
        costs.fresh.append(lost(before, less, engine, Stability.FRESH, ahead)[0] if link in beside else np.nan)
    return costs


def two(values: Sequence[float] | np.ndarray, factor: float = 100, digits: int = 1) -> str:
    """Return the mean and the largest of some values as text, after multiplication by ``factor``.

    Values that are NaN are left out.  ``digits`` is the number of decimals.
    """
    known = np.asarray(values)[~np.isnan(values)] * factor
    return f"{known.mean():.{digits}f} / {known.max():.{digits}f}" if len(known) else "-"


def row(name: str, engine: str, costs: Costs) -> str:
    """Return the table row of an engine on a fabric.  ``name`` is the name of the fabric."""
    cells = [name, engine, str(len(costs.link)), two(costs.cut), two(costs.fresh), two(costs.balanced)]
    cells += [two(np.array(costs.balanced) - costs.fresh), two(np.array(costs.balanced) - costs.cut)]
    cells += [two(costs.ratio, 1, 2), two(costs.full), two(costs.full_ratio, 1, 2)]
    cells += [f"{np.median(costs.milliseconds):.1f}", f"{np.median(costs.full_milliseconds):.1f}"]
    return f"| {' | '.join(cells)} |"


def main(words: Sequence[str] | None = None) -> int:
    """Measure all engines on all fabrics, and print the table."""
    parser = parser_of("link_loss", __doc__)
    parser.add_argument("fabrics", nargs="*", default=FABRICS)
    parser.add_argument(
        "-e", "--engines", type=listed, default=["updn", "nue", "dfsssp"], help="engines, separated by commas"
    )
    parser.add_argument(
        "--links", type=int, default=0, help="number of links of each fabric, at even distances; 0: all links"
    )
    parser.add_argument(
        "--fresh", type=int, default=24, help="number of links for which tables are also computed from scratch"
    )
    parser.add_argument("-j", "--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--csv", type=argparse.FileType("w"), help="file for the figures of each link")
    arguments = parser.parse_args(words)
    head = ["fabric", "engine", "links", "cut", "fresh", "balanced", "over fresh", "over cut", "changed / broken"]
    head += ["full", "changed / broken", "ms", "ms full"]
    print(f"| {' | '.join(head)} |", "|---" * len(head) + "|", sep="\n", flush=True)
    with ProcessPoolExecutor(arguments.jobs) as pool:
        asked = [(name, engine) for name in arguments.fabrics for engine in arguments.engines]
        found = [pool.submit(costs_of, *case, arguments.links, arguments.fresh) for case in asked]
        for (name, engine), future in zip(asked, found, strict=True):
            costs = future.result()
            print(row(name, engine, costs), flush=True)
            if arguments.csv:
                for k, link in enumerate(costs.link):
                    figures = (costs.cut, costs.fresh, costs.balanced, costs.full, costs.ratio, costs.full_ratio)
                    values = ",".join(f"{values[k]:.4f}" for values in figures)
                    print(f'"{name}",{engine},{link},{values}', file=arguments.csv, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
