"""Measure the proof of tables and the check of its certificate, in milliseconds of CPU time (all threads together)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.usage import parser_of
from routing.cdg.certificate import check_certificate
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.fabric import Fabric
from routing.tables import Routing
from routing.topologies import generate

FABRICS = ("torus:10x10x10", "kary-ntree:16,3")


def spent(work: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """Run a function several times, and measure its CPU time.

    Returns
    -------
    milliseconds
        Lowest CPU time of all runs.
    result
        Result of the last run.
    """
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        result = work()
        best = min(best, 1e3 * (time.process_time() - start))
    return best, result


def variants(fabric: Fabric, routing: Routing) -> dict[str, Routing]:
    """Return the same tables in several forms.  The keys of the dictionary describe the forms.

    Packets take the same paths and VLs in all forms.  The SL table of a form has one element for each LID, for each
    pair of switch and LID, or for each pair of LIDs.  A form has one SL2VL table for all ports, or one for each pair of
    ports of a switch.
    """
    switches, lids, ports = fabric.switches, len(fabric.lids), 1 + int(fabric.switch_ports.max())
    by_port = np.tile(routing.sl2vl, (switches, ports, ports, 1))
    # One entry that no packet uses gets another VL, so that the SL2VL tables of the ports differ.  Otherwise the proof
    # would treat the tables of all ports as one table.
    by_port[0, 0, 0, 15] = 7
    by_switch = np.tile(routing.sl, (switches, 1))
    return {
        "SL by LID": routing,
        "SL by switch and LID": replace(routing, sl=by_switch),
        "SL by pair of LIDs": replace(routing, sl=np.tile(routing.sl, (lids, 1))),
        "SL by LID, SL2VL by port": replace(routing, sl2vl=by_port),
        "SL by switch and LID, SL2VL by port": replace(routing, sl=by_switch, sl2vl=by_port),
    }


def report(label: str, fabric: Fabric, routing: Routing) -> None:
    milliseconds, proof = spent(lambda: prove(fabric, routing))
    verdict = f"{proof.strength}, {proof.scope}" if proof.certified else f"loop of {len(proof.credit_loop)}"
    line = f"  {label:42} {milliseconds:7.0f} ms  {verdict:21}"
    if proof.certificate is not None:
        line += f"  check {spent(lambda: check_certificate(fabric, routing, proof.certificate), 1)[0]:7.0f} ms"
    print(line, flush=True)


def main(words: Sequence[str] | None = None) -> None:
    """Route and prove each fabric, and print the times."""
    parser = parser_of("proof", __doc__)
    parser.add_argument("fabrics", nargs="*", default=FABRICS, metavar="FABRIC", help="fabrics, such as torus:10x10x10")
    for name in parser.parse_args(words).fabrics:
        kind, _, arguments = name.partition(":")
        fabric = generate(kind, arguments.split(","), **({"cas": 4} if kind == "torus" else {}))
        print(f"{name}: {fabric.switches} switches, {len(fabric.lids) - 1} LIDs, {len(fabric.channels)} channels")
        report("minhop, 1 VL", fabric, ENGINES["minhop"].route(fabric, EngineOptions(vls=1, passes=0)))
        report("updn, 1 VL", fabric, ENGINES["updn"].route(fabric, EngineOptions(vls=1, passes=0)))
        layered = ENGINES["updn"].route(fabric, EngineOptions(vls=4, passes=0))
        for label, routing in variants(fabric, layered).items():
            report(f"updn, 4 VLs, {label}", fabric, routing)


if __name__ == "__main__":
    main()
