"""Measure the cost of re-routes after the loss of single links, for all fixture fabrics and four engines.

Each link between switches is lost alone.  The program prints the number of changed LFT entries, the CPU time, and the
lost share of the all-to-all rate.  It also lists the links after whose loss the re-route changed more than three LFT
entries for each broken entry, or computed all tables from scratch.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

import numpy as np

from benchmarks.usage import parser_of
from ibsim_fixtures.catalogue import FIXTURES
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.formats.fabric_files import read_fabric
from routing.reroute import Published, Stability, precompute, reroute

OPTIONS = EngineOptions(threads=1, effort=0.1)
MARKS = (
    "split_subtrees", "pruned_lids", "copied_lids", "traces", "fewest", "sls_by_source", "order_changed",
)  # fmt: skip


def scan(engine: str, stability: Stability) -> None:
    """Re-route every fixture fabric with one engine, after the loss of each of its links, and print a summary.

    ``stability`` states which valid entries a re-route may change.
    """
    counts, lost, ratio = Counter[str](), list[float](), list[float]()
    for name, fixture in FIXTURES.items():
        fabric = read_fabric(fixture.path)
        routing = ENGINES[engine].route(fabric, OPTIONS)
        baseline = Published(fabric, routing, prove(fabric, routing, threads=1))
        ahead = precompute(baseline, baseline)
        for link in np.unique(fabric.channels.link).tolist():
            less, start = fabric.without_links([link]), time.process_time_ns()
            found = reroute(
                ENGINES[engine], OPTIONS, baseline, less, stability=stability, baseline=baseline, precomputed=ahead
            )
            counts["nanoseconds"] += time.process_time_ns() - start
            counts.update({found.how: 1, "links": 1, "changed": found.changed, "broken": found.broken})
            ratio.append(found.changed / max(1, found.broken))
            counts.update(mark for mark in MARKS if found.statistics.counts().get(mark))
            counts["endports only"] += found.proof.scope != "all" and baseline.proof.scope == "all"
            if found.kept is not None:
                lost.append(max(0.0, 1 - found.kept))
            if found.changed > 3 * found.broken or found.how == "fresh":
                print(f"{engine:7} {name} link {link}: {found.changed} for {found.broken}; {found.how}: {found.reason}")
    milliseconds = counts.pop("nanoseconds") / 1e6
    print(
        f"{engine:7} {dict(counts)}; {milliseconds:.0f} ms; "
        f"changed / broken: {counts['changed'] / counts['broken']:.2f}, most {max(ratio):.2f}; "
        f"all-to-all lost: mean {np.mean(lost):.2%}, most {max(lost):.2%}",
        flush=True,
    )


def main(words: Sequence[str] | None = None) -> None:
    """Measure the engines that the command line names, and print one line for each engine."""
    parser = parser_of("reroute_fixtures", __doc__)
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help=", ".join(ENGINES))
    levels = [stability.value for stability in Stability]
    parser.add_argument("--stability", choices=levels, default=Stability.BALANCED.value)
    arguments = parser.parse_args(words)
    for engine in arguments.engines or ["nue", "updn", "dfsssp", "lash"]:
        if engine not in ENGINES:
            parser.error(f"there is no engine {engine!r}")
        scan(engine, Stability(arguments.stability))


if __name__ == "__main__":
    main()
