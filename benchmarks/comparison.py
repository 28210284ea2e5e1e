"""Compare all engines of ibnue and of OpenSM on reference fabrics and fixture fabrics with failed links.

The results are stored in a JSON file.  Only results that are missing in this file are measured.  From the file, the
program writes two pictures (SVG) and the tables of docs/comparison.md.

Most fabrics are routed four times: with all links, and without 1, 5 and 10 % of the links between switches (at least
one link).  Large fabrics are routed only with all links and without 1 % of the links.  An engine that needs more than a
minute of CPU time on a large fabric counts as an engine without tables.  A link never fails if its loss would separate
switches.  All engines run with their default options, and OpenSM with QoS and 8 VLs.

Seconds of ibnue are CPU seconds of the engine alone, without the loading of modules.  Seconds of OpenSM include more
than the engine.  The seconds of OpenSM are the smaller of two times:

- the time from "building routing with" to "tables configured" in OpenSM's log;
- the CPU time of OpenSM up to the end of its first sweep.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import igraph
import numpy as np

from benchmarks.comparison_page import SHARES, SHARES_OF_LARGE, write_page, write_pictures
from benchmarks.opensm_tables import opensm_tables
from benchmarks.quality_table import VLS, listed
from benchmarks.torus_conf import torus_conf
from benchmarks.usage import parser_of
from ibsim_fixtures.catalogue import FIXTURES
from ibsim_fixtures.processes import LabError, missing_packages
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.auto import FEW_ENDPORTS, PATTERNS
from routing.engines.base import EngineOptions
from routing.errors import IbnueError
from routing.fabric import Fabric
from routing.faults.choose import between_switches
from routing.formats.atomic import atomic_write
from routing.formats.fabric_files import read_fabric, write_net
from routing.processes import describe_exit
from routing.quality import BISECTIONS, measure
from routing.tables import Routing
from routing.topologies import from_words

ROOT = Path(__file__).parents[1]
LEDGER, PAGE, PICTURES = ROOT / "docs/comparison.json", ROOT / "docs/comparison.md", ROOT / "docs"
OPENSM = ("minhop", "updn", "dnup", "ftree", "lash", "dor", "torus-2QoS", "sssp", "dfsssp", "nue")
REFERENCE = {
    "torus 4x4x4": "torus 4x4x4 cas=4",
    "torus 6x5x5, 4 links": "torus 6x5x5 cas=2 redundancy=4",
    "HyperX 12x8": "hyperx 12x8 cas=2",
    "random, degree 16": "random-regular 125 16 cas=2",
    "Kautz 5 3, 2 links": "kautz 5 3 cas=2 redundancy=2",
    "dragonfly 12 2 6 15": "dragonfly 12 2 6 15",
    "Slim Fly 5": "slimfly 5 cas=2",
    "10-ary 3-tree": "kary-ntree 10 3 cas=3",
}
"""Generator and arguments of each reference fabric, by the name that the fabric has in the tables of the page.

To save time, the fabrics have fewer CAs than the published fabrics.
"""
LARGE = {
    "torus 10x10x10": "torus 10x10x10 cas=1",
    "12-ary 3-tree": "kary-ntree 12 3 cas=12",
    "dragonfly 10 2 5 51": "dragonfly 10 2 5 51",
    "random, 512 switches": "random-regular 512 16 cas=2",
}
"""Generator and arguments of each large fabric, by the name that the fabric has in the tables of the page.

To save time, all these fabrics except the tree have fewer CAs than their switches have room for.
"""
KINDS = (
    "ring-5", "ring-8-double", "mesh-3x3", "mesh-4x4-hole", "torus-3x3", "torus-4x4-faults", "torus-5x4-double",
    "hypercube-4", "hyperx-3x4", "full-mesh-6", "tree-2-3", "tree-4-2-faults", "tree-slim", "tree-valley",
    "cluster-uneven", "rails-uneven", "director-3", "cascade-3", "dragonfly-4-2-2", "dragonfly-faults", "slimfly-3",
    "kautz-2-3", "random-16-4", "random-24-3-faults", "bridge", "mixed-speeds", "dual-port-two-switches",
)  # fmt: skip
"""Names of the fixture fabrics to compare, at least one of each kind of fixture."""
LOST = "the tables do not deliver all pairs of end ports"
"""Text that is stored in place of figures if tables lack paths between end ports.

Such tables carry less traffic, so their figures would seem better than the figures of complete tables.
"""
LIMIT = 60
"""CPU seconds within which an engine must compute its tables of a large fabric.

For OpenSM, the limit holds for all work up to the end of the first sweep.
"""
TOO_SLOW = f"no tables within {LIMIT} CPU seconds"
"""Text that is stored in place of figures if an engine exceeds :data:`LIMIT`."""
Result = dict[str, Any]
"""Figures of the tables of one engine on one fabric, by name.

If the engine has no tables, the only key is ``refused``, whose value is the reason.
"""


@dataclass(frozen=True)
class Case:
    """Fabric from which a share of the links is removed.

    The fields are the name of the fabric on the page, the share of missing links (0 to 1), and a function that makes
    the fabric with all links.
    """

    name: str
    missing: float
    whole: Callable[[], Fabric]

    @property
    def key(self) -> str:
        """Key of the results of this fabric in the JSON file."""
        return f"{self.name} - {self.missing:.0%}"


def drawn_links(fabric: Fabric, missing: float, seed: int = 1) -> list[int]:
    """Draw random links between switches, such that the loss of all drawn links disconnects no switches.

    ``missing`` is the share of all links between switches to draw (0 to 1).  If this share is positive, at least one
    link is drawn if possible.  Fewer links are drawn if the loss of any further link would separate switches.
    """
    links = between_switches(fabric)
    wanted = max(1, round(missing * len(links))) if missing else 0
    gone: list[int] = []
    graph = igraph.Graph(n=fabric.switches, edges=fabric.link_device[links].tolist())
    graph.es["link"] = links.tolist()
    for link in np.random.default_rng(seed).permutation(links).tolist():
        if len(gone) == wanted:
            break
        edge = graph.es.find(link=link)
        if graph.edge_connectivity(*edge.tuple) > 1:
            graph.delete_edges(edge)
            gone.append(link)
    return gone


def cases(only: str) -> list[Case]:
    """Return the fabrics whose names contain the text ``only``, each with every share of missing links."""

    def reference(words: str) -> Callable[[], Fabric]:
        name, *rest = words.split()
        return lambda: from_words(name, rest)

    def fixture(path: Path) -> Callable[[], Fabric]:
        return lambda: read_fabric(path)

    fabrics: dict[str, Callable[[], Fabric]] = {name: reference(words) for name, words in (REFERENCE | LARGE).items()}
    fabrics |= {name: fixture(FIXTURES[name].path) for name in KINDS}
    return [
        Case(name, missing, make)
        for name, make in fabrics.items()
        for missing in (SHARES_OF_LARGE if name in LARGE else SHARES)
        if only in name
    ]


def figures(fabric: Fabric, routing: Routing, vls: int, seconds: float | None) -> Result:
    """Measure tables, and return their figures.  Tables that lack paths between end ports count as refused.

    Tables count as certified only if the certificate also covers traffic from end ports to LIDs of switches.  The
    bisection share is the mean over random bisections, as many as the engine ``auto`` uses to compare tables.

    Parameters
    ----------
    fabric, routing
        Fabric and its tables.
    vls
        Number of VLs that the tables need.
    seconds
        Running time of the engine; None if unknown.
    """
    patterns = PATTERNS if fabric.endports <= FEW_ENDPORTS else BISECTIONS
    quality = measure(fabric, routing, bisections=patterns, shifts=0, permutations=0, stretches=True)
    if quality.pairs_lost:
        return {"refused": LOST}
    found: Result = {"vls": vls, "certified": prove(fabric, routing, explain=False).certified}
    values = {
        "hops": quality.hops_mean,
        "stretch": quality.stretch.mean if quality.stretch is not None else 1.0,
        "all_to_all": quality.all_to_all,
        "bisection": quality.bisection_mean,
        "seconds": seconds,
    }
    found |= {name: float(f"{value:.4g}") for name, value in values.items() if value is not None and np.isfinite(value)}
    return found


def ours(fabric: Fabric, engine: str, *, routed: Callable[[], None] = lambda: None) -> Result:
    """Route a fabric with an engine of ibnue, and return the figures of the tables.

    The function ``routed`` is called after the routing and before the figures are measured.
    """
    start = time.process_time()
    try:
        routing = ENGINES[engine].route(fabric, EngineOptions())
    except IbnueError as error:
        return {"refused": shortened(str(error))}
    seconds = time.process_time() - start
    routed()
    return figures(fabric, routing, routing.vls_needed, seconds)


def within_limit(fabric: Fabric, engine: str) -> Result:
    """Return the result of :func:`ours`, or a refusal if the engine needs more than :data:`LIMIT` CPU seconds.

    The engine runs in a separate process, which the limit of CPU time ends.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def run() -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, hard))
        sender.send(ours(fabric, engine, routed=lambda: resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))))

    process = context.Process(target=run)
    process.start()
    sender.close()
    with receiver:
        try:
            result = dict(receiver.recv())
        except EOFError:
            result = {"refused": TOO_SLOW}
    process.join()
    if process.exitcode not in (0, -signal.SIGXCPU):
        raise ChildProcessError(f"{engine} on {fabric.name}: the process {describe_exit(process.exitcode or 0)}")
    return result


def theirs(fabric: Fabric, whole: Fabric, engine: str, timeout: float, cpu_limit: int | None) -> Result:
    """Route a fabric with an engine of OpenSM, and return the figures of the tables.

    Parameters
    ----------
    fabric, whole
        Fabric to route, and the fabric with all links.  The configuration of torus-2QoS is derived from both fabrics.
    engine
        Name of the engine in OpenSM.
    timeout
        Time limit in seconds of each wait for OpenSM, such as for the end of its first sweep or for its dumps.
    cpu_limit
        Limit of OpenSM's CPU seconds up to the end of its first sweep; None for no limit.
    """
    with tempfile.TemporaryDirectory(prefix="ibnue-comparison-") as folder:
        net, settings = Path(folder) / "fabric.net", {}
        write_net(fabric, net)
        if engine == "torus-2QoS":
            conf = torus_conf(fabric, whole)
            if conf is None:
                return {"refused": "not a torus or mesh of two or three dimensions"}
            settings["torus_config"] = Path(folder) / "torus-2QoS.conf"
            settings["torus_config"].write_text(conf)
        try:
            routed = opensm_tables(net, engine, vls=VLS, timeout=timeout, cpu_limit=cpu_limit, config=settings)
        except LabError as error:
            if str(error) == TOO_SLOW:
                return {"refused": TOO_SLOW}
            return {"refused": shortened(str(error).splitlines()[0].removeprefix("OpenSM: "))}
    vls = routed.vls_needed or {"nue": VLS, "torus-2QoS": 2}.get(engine, 1)
    return figures(routed.fabric, routed.routing, vls, min(routed.cpu_seconds, routed.seconds or routed.cpu_seconds))


def shortened(reason: str) -> str:
    """Return the reason of a refusal without names and numbers, so that equal reasons have equal texts."""
    reason = reason.removeprefix("no routing engine could route this fabric: ")
    reason = re.sub(r"^\w+: (ERR \w+: )?(updn: )?", "", reason)
    reason = re.split(r" \(|: |; |, ", reason)[0]
    return re.sub(r"0x[0-9a-f]+|\b\d+\b", "N", reason)


def measured(ledger: dict[str, dict[str, Result]], arguments: argparse.Namespace) -> None:
    """Measure all results that ``ledger`` lacks.  Add them to ``ledger``, and write its file after each case.

    A case is a fabric with a share of missing links.  ``ledger`` has the results by case and engine.
    """
    seen: dict[tuple[str, tuple[int, ...]], dict[str, Result]] = {}
    for case in cases(arguments.only):
        results = ledger.setdefault(case.key, {})
        wanted = [name for name in arguments.ours if name not in results]
        wanted += [f"OpenSM {name}" for name in arguments.opensm if f"OpenSM {name}" not in results]
        if not wanted:
            continue
        whole = case.whole()
        gone = drawn_links(whole, case.missing)
        # On a fabric with few links, two cases with different shares of missing links can lack the same links.  Such
        # cases are measured only once.
        known = seen.setdefault((case.name, tuple(gone)), results)
        fabric = whole.without_links(gone)
        for name in wanted:
            engine = name.removeprefix("OpenSM ")
            if name not in known:
                limit = LIMIT if case.name in LARGE else None
                if engine == name:
                    known[name] = within_limit(fabric, name) if limit else ours(fabric, name)
                else:
                    known[name] = theirs(fabric, whole, engine, arguments.timeout, limit)
            results[name] = known[name]
        print(f"{time.process_time():6.0f} CPU s  {case.key}: {len(wanted)} engines", file=sys.stderr, flush=True)
        write_ledger(ledger, arguments.json)


def read_ledger(path: Path) -> dict[str, dict[str, Result]]:
    """Read the stored results; the result is empty if the file does not exist."""
    return dict(json.loads(path.read_text())) if path.exists() else {}


def write_ledger(ledger: Mapping[str, Mapping[str, Result]], path: Path) -> None:
    """Write all results to the JSON file, with one line for each engine on each fabric."""
    blocks = []
    for case, results in ledger.items():
        lines = [f"{json.dumps(engine)}: {json.dumps(result)}" for engine, result in results.items()]
        blocks.append(f"{json.dumps(case)}: {{\n" + ",\n".join(lines) + "\n}")
    with atomic_write(path) as file:
        file.write(("{\n" + ",\n".join(blocks) + "\n}\n").encode())


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_of("comparison", __doc__)
    parser.add_argument("--json", type=Path, default=LEDGER, help="file of the results")
    parser.add_argument("--page", type=Path, default=PAGE, help="page that contains the tables")
    parser.add_argument("--pictures", type=Path, default=PICTURES, help="folder of the pictures")
    parser.add_argument(
        "--ours",
        type=listed,
        default=[name for name in ENGINES if name != "chain"],
        help="engines of ibnue, separated by commas",
    )
    parser.add_argument("--opensm", type=listed, default=list(OPENSM), help="engines of OpenSM, separated by commas")
    parser.add_argument("--only", default="", help="text that the names of the fabrics contain")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one OpenSM engine")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Measure the results that the JSON file lacks.  Write this file, the tables of the page and the pictures."""
    arguments = parsed(words)
    if arguments.opensm and (missing := missing_packages()):
        print(f"OpenSM's engines are left out: apt install {' '.join(missing)}", file=sys.stderr)
        arguments.opensm = []
    ledger = read_ledger(arguments.json)
    with warnings.catch_warnings():
        # Engines guess from missing links that cables are swapped, and warn of swapped cables.  Here the links are
        # missing on purpose.
        warnings.simplefilter("ignore")
        measured(ledger, arguments)
    write_page(ledger, list(REFERENCE), list(LARGE), arguments.page)
    write_pictures(ledger, list(REFERENCE), list(LARGE), arguments.pictures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
