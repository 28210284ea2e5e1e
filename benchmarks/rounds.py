"""Measure the search for safe update rounds after the loss and the return of a link: its success and its time.

New tables are written in rounds, so that old and new entries together never close a credit loop.  For each engine the
program prints the number of changes of tables by kind of update schedule:

- any order: the entries can be written in any order.
- acknowledged: there are several rounds.  Each round begins when the switches have acknowledged the previous round.
- waits: before some round, packets must have left the fabric.
- out of use: some entries are missing between two rounds.
- at once: no safe rounds were found, and no SL changes.
- at once, SLs change: no safe rounds were found, and SLs change, too.

The program also prints the largest number of entries that one change takes out of use, and the number of broken entries
of this change.  Times are the median and the largest CPU time in ms, summed over all threads.  The engines have the
options of the plugin's sweeps with 8 VLs.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.reroute import pulled
from benchmarks.usage import parser_of
from osm_plugin.base import base_of
from osm_plugin.options import SWEEP_EFFORT
from osm_plugin.route_or_reroute import options_key
from osm_plugin.snapshot import BLOCK, SwitchTables
from osm_plugin.staged_update import stage_update
from osm_plugin.state import SavedTables
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.fabric import Fabric
from routing.reroute import Stability, precompute, reroute
from routing.topologies import generate

CASES = (
    ("torus 10x10x10, 4 CAs", "torus", "10x10x10", 4, ("nue", "dfsssp")),
    ("16-ary 3-tree", "kary-ntree", "16,3", 0, ("updn", "dfsssp")),
    ("torus 4x4x4", "torus", "4x4x4", 1, ("nue", "dfsssp", "updn", "lash")),
)
OPTIONS = EngineOptions(effort=SWEEP_EFFORT, vls="auto", port_vls=8)


@dataclass
class Count:
    """Update schedules (rounds of writing) that were found for a series of table changes.

    Attributes
    ----------
    kinds
        Number of changes, by kind of schedule.
    milliseconds
        CPU time of the search for each schedule, in ms.
    out
        For each change that needs several rounds: number of LFT entries that are missing for a while between rounds,
        and number of LFT entries that the fault has broken.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    milliseconds: list[float] = field(default_factory=list)
    out: list[tuple[int, int]] = field(default_factory=list)

    def add(self, before: SavedTables, after: SavedTables, broken: int) -> SavedTables:
        """Search for update rounds between two states of the tables, and count the result.

        Parameters
        ----------
        before, after
            Tables before and after the change.
        broken
            Number of LFT entries that the fault has broken.

        Returns
        -------
        SavedTables
            The tables after the last round.
        """
        start = time.process_time()
        held = before.routing.lft
        known = np.ones((len(held), -(-held.shape[1] // BLOCK)), bool)
        tables = SwitchTables(held, known, np.full(len(held), held.shape[1] - 1, np.uint16), "ours")
        change = stage_update(base_of(after.fabric, tables, after.routing, [(before, True)]), after, wanted=True)
        self.milliseconds.append(1e3 * (time.process_time() - start))
        schedule = None if change is None else change.schedule
        if schedule is None:
            same = np.array_equal(before.routing.sl, after.routing.sl)
            self.kinds["at once" if same else "at once, SLs change"] += 1
        elif len(schedule) == 1:
            self.kinds["any order"] += 1
        else:
            self.kinds[
                "out of use" if schedule.drained else "waits" if schedule.first_draining_round else "acknowledged"
            ] += 1
            self.out.append((schedule.drained, broken))
        return replace(after, deferred=None)

    def line(self) -> str:
        """Return the numbers of update schedules by kind, and the times of the searches, as one line of text."""
        most, beside = max(self.out, default=(0, 0))
        kinds = ", ".join(f"{name} {count}" for name, count in sorted(self.kinds.items()))
        spent = f"{np.median(self.milliseconds):.0f} ms, most {max(self.milliseconds):.0f}"
        return f"{kinds}; out of use at most {most} (broken {beside}); {spent}"


def report(label: str, fabric: Fabric, name: str, links: int, stability: Stability) -> None:
    engine = ENGINES[name]
    routing = engine.route(fabric, OPTIONS)
    baseline = SavedTables(fabric, routing, prove(fabric, routing), name, options_key(OPTIONS))
    ahead = precompute(baseline, baseline)
    lost, back = Count(), Count()
    for link in pulled(fabric, links):
        less = fabric.without_links([link])
        found = reroute(engine, OPTIONS, baseline, less, stability=stability, baseline=baseline, precomputed=ahead)
        kept = lost.add(baseline, SavedTables(less, found.routing, found.proof, name, baseline.options), found.broken)
        found = reroute(engine, OPTIONS, kept, fabric, stability=stability, baseline=baseline)
        back.add(kept, SavedTables(fabric, found.routing, found.proof, name, baseline.options), found.broken)
    print(f"{label:22} {name:7} lost: {lost.line()}", f"{'':30} back: {back.line()}", sep="\n", flush=True)


def main(words: Sequence[str] | None = None) -> None:
    """Measure all engines on all fabrics, and print two lines for each pair of fabric and engine."""
    parser = parser_of("rounds", __doc__)
    parser.add_argument(
        "links", nargs="?", type=int, default=24, help="number of links to lose on each fabric (default: 24; 0: all)"
    )
    parser.add_argument("--stability", choices=["full", "balanced"], default="balanced")
    given = parser.parse_args(words)
    for label, kind, size, cas, engines in CASES:
        fabric = generate(kind, size.split(","), **({"cas": cas} if cas else {}))
        for name in engines:
            report(label, fabric, name, given.links, Stability(given.stability))


if __name__ == "__main__":
    main()
