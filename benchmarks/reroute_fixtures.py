"""Pulls every link between switches of every fixture fabric: what it takes to mend the tables of four engines.

Lists whatever changed more than three entries for a broken one, or took a fresh run.
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
from routing.quality import all_to_all_share, channel_loads
from routing.reroute import Published, prepare, reroute

OPTIONS = EngineOptions(threads=1, effort=0.1)
MARKS = ("by_parts", "cleared", "copied", "exact", "fewest", "by_source", "rejoined")


def scan(engine: str) -> None:
    counts, share, ratio = Counter[str](), list[float](), list[float]()
    for name, fixture in FIXTURES.items():
        fabric = read_fabric(fixture.path)
        routing = ENGINES[engine].route(fabric, OPTIONS)
        home = Published(fabric, routing, prove(fabric, routing, threads=1))
        prepare(home, home)
        before = all_to_all_share(fabric, channel_loads(fabric, routing, threads=1))
        for link in np.unique(fabric.channels.link).tolist():
            less, start = fabric.without_links([link]), time.process_time_ns()
            found = reroute(ENGINES[engine], OPTIONS, home, less, home=home)
            counts["nanoseconds"] += time.process_time_ns() - start
            counts.update({found.how: 1, "links": 1, "changed": found.changed, "broken": found.broken})
            ratio.append(found.changed / max(1, found.broken))
            counts.update(mark for mark in MARKS if found.counts.get(mark))
            counts["endports only"] += found.proof.scope != "all" and home.proof.scope == "all"
            now = all_to_all_share(less, channel_loads(less, found.routing, threads=1))
            if np.isfinite(before) and np.isfinite(now) and before > 0:
                share.append(now / before)
            if found.changed > 3 * found.broken or found.how == "fresh":
                print(f"{engine:7} {name} link {link}: {found.changed} for {found.broken}; {found.how}: {found.reason}")
    milliseconds = counts.pop("nanoseconds") / 1e6
    print(
        f"{engine:7} {dict(counts)}; {milliseconds:.0f} ms; "
        f"changed / broken: {counts['changed'] / counts['broken']:.2f}, most {max(ratio):.2f}; "
        f"all-to-all share of what it was: mean {np.mean(share):.4f}, least {min(share):.4f}",
        flush=True,
    )


def main(words: Sequence[str] | None = None) -> None:
    """Print a line for each engine."""
    parser = parser_of("reroute_fixtures", __doc__)
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help=", ".join(ENGINES))
    for engine in parser.parse_args(words).engines or ["nue", "updn", "dfsssp", "lash"]:
        if engine not in ENGINES:
            parser.error(f"there is no engine {engine!r}")
        scan(engine)


if __name__ == "__main__":
    main()
