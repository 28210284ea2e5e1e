"""Times re-routing after one lost link, with its proof, beside a full route of the same engine with its proof.

Milliseconds of processor time of all threads together, the making of the faulty fabric included; what is made once for
each set of tables, ahead of the fault, is timed apart.

Usage: python -m benchmarks.reroute [LINKS]     links that are pulled of each fabric, 24 if not given; 0: all
"""

from __future__ import annotations

import sys
import time
from collections import Counter

import numpy as np

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.fabric import Fabric
from routing.reroute import Published, prepare, reroute
from routing.topologies import generate

CASES = (
    ("torus 10x10x10, 4 CAs", "torus", "10x10x10", 4, ("nue", "dfsssp")),
    ("16-ary 3-tree", "kary-ntree", "16,3", 0, ("updn", "dfsssp")),
    ("torus 4x4x4, 4 CAs", "torus", "4x4x4", 4, ("nue",)),
)


def routed(fabric: Fabric, engine: str) -> tuple[Published, float]:
    start = time.process_time()
    routing = ENGINES[engine].route(fabric, EngineOptions())
    proof = prove(fabric, routing)
    return Published(fabric, routing, proof), 1e3 * (time.process_time() - start)


def pulled(fabric: Fabric, links: int) -> list[int]:
    every = np.unique(fabric.channels.link)
    return [int(link) for link in (every[:: max(1, len(every) // links)][:links] if links else every)]


def report(label: str, fabric: Fabric, engine: str, count: int) -> None:
    home, full = routed(fabric, engine)
    options, took, how, ratio, broken, changed = EngineOptions(threads=1), [], Counter[str](), [], 0, 0
    links = pulled(fabric, count)
    start = time.process_time()
    prepare(home, home)
    ready = 1e3 * (time.process_time() - start)
    for link in links:
        start = time.process_time()
        less = fabric.without_links([link])
        found = reroute(ENGINES[engine], options, home, less, home=home)
        took.append(1e3 * (time.process_time() - start))
        ratio.append(found.changed / max(1, found.broken))
        broken, changed = broken + found.broken, changed + found.changed
        for mark in ("levels", "by_parts", "by_source", "cleared", "copied", "exact", "fewest"):
            how[mark] += bool(found.counts.get(mark))
        how[found.how] += 1
    mid, most = np.median(took), max(took)
    worst = ", ".join(f"{took[k]:.0f} (link {links[k]})" for k in np.argsort(took)[::-1][:3])
    print(
        f"{label:22} {engine:7} full {full:6.0f} ms; ahead {ready:.0f}; "
        f"one link: median {mid:6.1f} ms (1/{full / mid:.0f}), "
        f"mean {np.mean(took):6.1f} (1/{full / np.mean(took):.0f}), "
        f"p99 {np.percentile(took, 99):6.1f}, most {most:6.1f} (1/{full / most:.1f}); "
        f"{1e3 * len(took) / sum(took):.0f} a second",
        f"{'':22} longest: {worst}",
        f"{'':22} broken {broken / len(took):.0f} a link, changed {changed / len(took):.0f}; "
        f"changed / broken: mean {np.mean(ratio):.2f}, "
        f"most {max(ratio):.2f}; {dict(how)}",
        sep="\n",
        flush=True,
    )


def main(arguments: list[str]) -> None:
    links = int(arguments[0]) if arguments else 24
    for label, kind, size, cas, engines in CASES:
        fabric = generate(kind, size.split(","), **({"cas": cas} if cas else {}))
        for engine in engines:
            report(label, fabric, engine, links)


if __name__ == "__main__":
    main(sys.argv[1:])
