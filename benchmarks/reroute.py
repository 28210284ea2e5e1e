"""Compare the time of a re-route after the loss of one link or switch with the time of routing from scratch.

Both times include the proof.  Times are milliseconds of CPU time, summed over all threads.  The time of a re-route also
includes the construction of the faulty fabric.  A part of every re-route can be computed before any fault.  The time of
this part is measured separately, and printed as "ahead".
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

import numpy as np

from benchmarks.usage import parser_of
from routing.cli import fabric_argument
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.fabric import Fabric
from routing.faults import apply_faults, every_switch
from routing.memory import keep_freed_memory
from routing.reroute import Published, precompute, reroute
from routing.topologies import generate

MARKS = (
    "changed_sls", "split_subtrees", "sls_by_source", "pruned_lids", "copied_lids", "traces", "fewest",
    "proven_by_changes",
)  # fmt: skip
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
    return some(np.unique(fabric.channels.link).tolist(), links)


def some(every: Sequence[int], count: int) -> list[int]:
    """Return ``count`` items, at even distances from each other, of the list ``every``; 0: return the whole list."""
    return list(every[:: max(1, len(every) // count)][:count] if count else every)


def without(fabric: Fabric, what: str, number: int) -> Fabric:
    if what == "link":
        return fabric.without_links([number])
    return apply_faults(fabric, every_switch(fabric)[number : number + 1])


def report(label: str, fabric: Fabric, engine: str, what: str, count: int) -> None:
    """Re-route after the loss of single links or switches, and print the times and the numbers of changed LFT entries.

    Parameters
    ----------
    label, fabric
        Name of the fabric in the output, and the fabric.
    engine
        Name of the engine.
    what
        Kind of part that is lost: "link" or "switch".
    count
        Number of parts that are lost, each part alone; 0: all parts.
    """
    lost = pulled(fabric, count) if what == "link" else some(range(fabric.switches), count)
    baseline, full = routed(fabric, engine)
    options, took, how, ratio, broken, changed = EngineOptions(threads=1), [], Counter[str](), [], 0, 0
    start = time.process_time()
    ahead = precompute(baseline, baseline)
    ready = 1e3 * (time.process_time() - start)
    for one in lost:
        start = time.process_time()
        less = without(fabric, what, one)
        found = reroute(ENGINES[engine], options, baseline, less, baseline=baseline, precomputed=ahead)
        took.append(1e3 * (time.process_time() - start))
        ratio.append(found.changed / max(1, found.broken))
        broken, changed = broken + found.broken, changed + found.changed
        for mark in MARKS:
            how[mark] += bool(found.statistics.counts().get(mark))
        how[found.how] += 1
    mid, most = np.median(took), max(took)
    worst = ", ".join(f"{took[k]:.0f} ({what} {lost[k]})" for k in np.argsort(took)[::-1][:3])
    print(
        f"{label:22} {engine:7} full {full:6.0f} ms; ahead {ready:.0f}; "
        f"one {what}: median {mid:6.1f} ms (1/{full / mid:.0f}), "
        f"mean {np.mean(took):6.1f} (1/{full / np.mean(took):.0f}), "
        f"p99 {np.percentile(took, 99):6.1f}, most {most:6.1f} (1/{full / most:.1f}); "
        f"{1e3 * len(took) / sum(took):.0f} a second",
        f"{'':22} longest: {worst}",
        f"{'':22} broken {broken / len(took):.0f} a {what}, changed {changed / len(took):.0f}; "
        f"changed / broken: mean {np.mean(ratio):.2f}, "
        f"most {max(ratio):.2f}; {dict(how)}",
        sep="\n",
        flush=True,
    )


def main(words: Sequence[str] | None = None) -> None:
    """Measure all engines on all fabrics, and print three lines for each pair of fabric and engine."""
    parser = parser_of("reroute", __doc__)
    parser.add_argument("--switches", action="store_true", help="lose switches instead of links")
    parser.add_argument(
        "number",
        nargs="?",
        type=int,
        default=24,
        help="number of links or switches to lose on each fabric (default: 24; 0: all)",
    )
    parser.add_argument("--fabric", help="generator with its arguments, instead of the fabrics of the table")
    parser.add_argument("--engine", default="updn", help="engine for the fabric of --fabric")
    asked = parser.parse_args(words)
    keep_freed_memory()  # The plugin's worker also keeps freed memory.
    what = "switch" if asked.switches else "link"
    if asked.fabric:
        report(asked.fabric, fabric_argument.read(asked.fabric), asked.engine, what, asked.number)
        return
    for label, kind, size, cas, engines in CASES:
        fabric = generate(kind, size.split(","), **({"cas": cas} if cas else {}))
        for engine in engines:
            report(label, fabric, engine, what, asked.number)


if __name__ == "__main__":
    main()
