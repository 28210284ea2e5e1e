"""Measure the time that a routing engine takes on fat trees and tori from about 100 to 2000 switches.

The output is a Markdown table.  Seconds are CPU seconds of engine and proof, summed over all threads.  The last column
is this time divided by the number of destinations and by the number of channels.  If the last column is constant, the
engine scales well.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from benchmarks.usage import parser_of
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.topologies import generate

PORTS = (8, 12, 20, 28, 40)
"""Number of ports of each switch, for each of the three-level fat trees.

Half of the ports of a leaf switch connect CAs.
"""
SIDES = (5, 8, 10, 12)


def fabrics() -> list[tuple[str, str, list[str], int]]:
    """Return the fabrics to route, as tuples: name, generator, arguments of the generator, and CAs at each switch.

    In fat trees, only leaf switches have CAs.
    """
    trees = [
        (f"fat tree of {k} ports", "xgft", [f"{k // 2}x{k // 2}x{k}", f"1x{k // 2}x{k // 2}"], k // 2) for k in PORTS
    ]
    return trees + [(f"torus {n}x{n}x{n}", "torus", [f"{n}x{n}x{n}"], 8) for n in SIDES]


def main(words: Sequence[str] | None = None) -> int:
    """Route all fabrics and print the table."""
    parser = parser_of("nue_curve", __doc__)
    parser.add_argument("--engine", default="nue", choices=sorted(ENGINES))
    parser.add_argument("--vls", type=int, default=8)
    parser.add_argument("--effort", type=float, default=0.1)
    options = parser.parse_args(words)
    print(
        "| fabric | switches | CAs | channels | CPU s | certified | ns a destination and channel |",
        "|---" * 7 + "|",
        sep="\n",
    )
    for name, generator, arguments, cas in fabrics():
        fabric = generate(generator, arguments, cas=cas)
        channels, start = len(fabric.channels), time.process_time()
        routing = ENGINES[options.engine].route(fabric, EngineOptions(vls=options.vls, effort=options.effort))
        proof = prove(fabric, routing)
        spent = time.process_time() - start
        level = 1e9 * spent / fabric.endports / channels
        cells = (
            name,
            fabric.switches,
            fabric.endports,
            channels,
            f"{spent:.2f}",
            "yes" if proof.certified else "NO",
            f"{level:.1f}",
        )
        print(f"| {' | '.join(map(str, cells))} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
