"""Measure how well ibnue's engines and OpenSM's engines balance traffic, as a Markdown table for each fabric.

OpenSM runs on ibsim with QoS and 8 VLs.  OpenSM's seconds are the time between two messages in its log, "building
routing with" and "tables configured".  They include sending the tables to the simulated switches.  For ibnue, the
seconds are the time of engine and proof in a process that has loaded all modules.  If an engine gives up, the table
states the reason.  OpenSM's fallback engine is not measured.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.opensm_tables import opensm_tables
from benchmarks.usage import parser_of
from ibsim_fixtures.processes import LabError, missing_packages
from routing.deadlock.proof import Proof, prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions, Objective
from routing.errors import IbnueError, OptionError
from routing.fabric import Fabric
from routing.formats.fabric_files import read_fabric, write_net
from routing.quality import Quality, measure
from routing.tables import Routing

OPENSM_ENGINES = ("minhop", "updn", "ftree", "sssp", "dfsssp", "lash", "nue")
VLS = 8


@dataclass(frozen=True)
class Row:
    """Result of one engine on one fabric, which is a row of the table.

    Attributes
    ----------
    engine
        Name of the engine.
    quality
        Figures of the tables; None if the engine gave up.
    vls
        Number of VLs that the tables need, as text.
    seconds
        Running time; None if unknown.
    note
        Result of the proof, or the reason for which the engine gave up.
    """

    engine: str
    quality: Quality | None = None
    vls: str = ""
    seconds: float | None = None
    note: str = ""

    def cells(self) -> list[str]:
        figures = [""] * 5
        if self.quality is not None:
            q = self.quality
            figures = [f"{q.all_to_all:.3f}", f"{q.bound:.3f}", f"{q.bisection_mean:.3f}"]
            figures += [f"{q.permutation_mean:.3f}", f"{q.hops_mean:.3f}"]
        return [self.engine, *figures, self.vls, "" if self.seconds is None else f"{self.seconds:.3g}", self.note]


HEAD = ("engine", "a2a", "bound", "ebb", "permutations", "mean hops", "VLs", "seconds", "note")


def figures(fabric: Fabric, routing: Routing, seed: int) -> Quality:
    return measure(fabric, routing, seed=seed, shifts=0)


def loss(quality: Quality) -> str:
    return f"{quality.pairs_lost:.0f} pairs are not delivered" if quality.pairs_lost else ""


def opensm_row(net: Path, engine: str, *, seed: int, timeout: float) -> Row:
    """Route a fabric file with an engine of a real OpenSM, and measure the tables that OpenSM dumps.

    Parameters
    ----------
    net, engine
        File of the fabric, and name of the engine in OpenSM.
    seed
        Seed of the random traffic patterns.
    timeout
        Time limit in seconds for OpenSM.
    """
    name = f"OpenSM {engine}"
    try:
        routed = opensm_tables(net, engine, vls=VLS, timeout=timeout)
    except LabError as error:
        return Row(name, note=f"gave up: {str(error).splitlines()[0].removeprefix('OpenSM: ')}")
    quality = figures(routed.fabric, routed.routing, seed)
    vls = routed.vls_needed or (VLS if engine == "nue" else 1)
    return Row(name, quality, str(vls), routed.seconds, loss(quality))


@dataclass(frozen=True)
class Spec:
    """Engine of ibnue with its options.  The form on the command line is name[/objective[/VLs]], in which the
    objective is the traffic pattern to optimise for.
    """

    name: str
    options: EngineOptions

    @classmethod
    def parse(cls, text: str, seed: int) -> Spec:
        name, objective, vls, *rest = [*text.split("/"), "", ""][: max(3, text.count("/") + 1)]
        if name not in ENGINES or rest or objective not in ("", *(o.value for o in Objective)):
            raise OptionError(f"{text!r} names no engine", remedy=f"name[/objective[/VLs]] of {', '.join(ENGINES)}")
        chosen = Objective(objective or Objective.ALLTOALL.value)
        return cls(text, EngineOptions(objective=chosen, vls=int(vls) if vls.isdigit() else vls or "auto", seed=seed))


def verdict(proof: Proof) -> str:
    if proof.certified:
        return f"proven {proof.strength}{', end ports' if proof.scope == 'endports' else ''}"
    return "credit loop" if proof.credit_loop else "not certified"


def our_row(fabric: Fabric, spec: Spec, *, seed: int) -> Row:
    """Route a fabric with an engine of ibnue, prove the tables and measure them.

    ``spec`` names the engine and its options, and ``seed`` is the seed of the random traffic patterns.
    """
    name = f"ibnue {spec.name}"
    start = time.perf_counter()
    try:
        routing = ENGINES[spec.name.split("/")[0]].route(fabric, spec.options)
    except IbnueError as error:
        return Row(name, note=f"gave up: {error}")
    proof = prove(fabric, routing)
    seconds = time.perf_counter() - start
    quality = figures(fabric, routing, seed)
    return Row(
        name, quality, str(routing.vls_needed), seconds, "; ".join(filter(None, [verdict(proof), loss(quality)]))
    )


def rows(fabric: Fabric, arguments: argparse.Namespace) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="ibnue-quality-") as folder:
        net = Path(folder) / "fabric.net"
        write_net(fabric, net)
        for engine in arguments.opensm:
            yield opensm_row(net, engine, seed=arguments.seed, timeout=arguments.timeout)
    for text in arguments.ours:
        yield our_row(fabric, Spec.parse(text, arguments.seed), seed=arguments.seed)


def listed(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_of("quality_table", __doc__)
    parser.add_argument("fabrics", nargs="+", type=Path, metavar="FABRIC")
    parser.add_argument(
        "--opensm", type=listed, default=list(OPENSM_ENGINES), help="engines of OpenSM, separated by commas"
    )
    parser.add_argument(
        "--ours", type=listed, default=list(ENGINES), help="name[/objective[/VLs]], separated by commas"
    )
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one OpenSM engine")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(words)


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main(words: Sequence[str] | None = None) -> int:
    arguments = parsed(words)
    if arguments.opensm and (missing := missing_packages()):
        print(f"OpenSM's engines are left out: apt install {' '.join(missing)}", file=sys.stderr)
        arguments.opensm = []
    for path in arguments.fabrics:
        fabric = read_fabric(path)
        print(f"\n**{fabric.name}**: {fabric.switches} switches, {fabric.endports} end ports, {fabric.links} links\n")
        print(line(HEAD), line(["---"] * len(HEAD)), sep="\n")
        for row in rows(fabric, arguments):
            print(line(row.cells()), flush=True)
    print(f"\n{os.cpu_count()} cores, seed {arguments.seed}, load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
