"""Measure ibnue's engines and OpenSM's engines on fabrics like those of real clusters.

The output is a Markdown table for each fabric.  The fabrics are generated.  Each tree has four variants: complete, with
an aggregation node at each switch, without its management leaf, and with missing links.  OpenSM runs on ibsim with QoS
and 8 VLs.  The columns are:

- a2a: all-to-all share of all end ports that count in traffic.
- compute: all-to-all share among the compute ports, without storage and management.
- ebb: effective bisection bandwidth.
- permutations: mean throughput of random permutations.
- stretch: mean length of the paths relative to shortest paths, and the largest number of additional hops of any path.
- seconds: for ibnue, CPU seconds of the engine.  For OpenSM, seconds of its log, which include sending the tables.

The row "limit by cuts" has the all-to-all shares that the links of the worst cut allow with any tables.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import igraph
import numpy as np

from benchmarks.opensm_tables import opensm_tables
from benchmarks.quality_table import OPENSM_ENGINES, VLS, line, listed, loss, verdict
from benchmarks.usage import parser_of
from ibsim_fixtures.processes import LabError, missing_packages
from routing.class_settings import PortClass
from routing.deadlock.proof import prove
from routing.endports import reference_rate
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import IbnueError
from routing.fabric import Fabric
from routing.faults import apply_faults, parse_fault
from routing.formats.fabric_files import write_net
from routing.port_classes import PortClasses
from routing.quality import Quality, measure
from routing.tables import Routing
from routing.topologies import from_words
from routing.trees.levels import tree_levels

CLASSES = PortClasses(patterns=(("storage*", PortClass.STORAGE), ("management*", PortClass.MANAGEMENT)))
OURS = ("auto", "ftree", "updn", "nue", "dfsssp", "lash", "disjoint")
COLUMNS = ("a2a", "compute", "ebb", "permutations", "mean hops", "max", "stretch")
HEAD = ("engine", *COLUMNS, "VLs", "seconds", "proof")
MISSING = 0.03
"""Share of the links between switches that are removed from a tree in the variant with missing links."""


@dataclass(frozen=True)
class Kind:
    """Fabric to generate, and the parts to remove from it.

    Attributes
    ----------
    words
        Generator with its arguments and options.
    without
        Name of a switch to remove; "" for none.
    missing
        Share of the links between switches to remove (0 to 1).
    """

    words: str
    without: str = ""
    missing: float = 0.0

    @property
    def title(self) -> str:
        """Title of the fabric: its generator, and the parts that are removed."""
        name, *rest = self.words.split()
        removed = f" without `{self.without}`" if self.without else ""
        return f"`{name}:{','.join(rest)}`{removed}" + (
            f", {self.missing:.0%} of the links gone" if self.missing else ""
        )

    def fabric(self) -> Fabric:
        """Return the fabric.  The classes of end ports follow from the names of their devices."""
        name, *rest = self.words.split()
        fabric = replace(from_words(name, rest), port_classes=CLASSES)
        if self.without:
            fabric = apply_faults(fabric, [parse_fault(f"switch {self.without}", fabric)])
        if self.missing:
            links = np.unique(fabric.channels.link)
            drawn = np.random.default_rng(1).choice(links, round(self.missing * len(links)), replace=False)
            fabric = fabric.without_links(drawn.tolist())
        return fabric


def variants(words: str) -> tuple[Kind, ...]:
    """Return four variants of a tree: unchanged, with aggregation nodes, without the switch "leaf-management", and with
    aggregation nodes but without a share of the links between switches.

    ``words`` is the generator of the tree with its arguments.
    """
    return (
        Kind(words),
        Kind(f"{words} aggregation=1"),
        Kind(words, without="leaf-management"),
        Kind(f"{words} aggregation=1", missing=MISSING),
    )


KINDS = (
    *variants("rails 4x8x16 8 speed=NDR"),
    *variants("cluster 4x8x8 8x4"),
    Kind("director 6 12 8 12 cas=4"),
    Kind("director 6 12 8 12 cas=4 aggregation=1"),
    Kind("cascade 2 cas=2"),
)


def cut_limit(fabric: Fabric, port_class: PortClass | None = None) -> float:
    """Return the all-to-all share that the links of the worst cut allow with any tables.

    A cut divides the switches into two sets.  The links between the two sets limit the traffic.  The function tries
    each single switch with end ports.  On trees, it also ignores the switches above each level in turn, and tries each
    connected part that remains.  Only end ports of the class ``port_class`` send and receive; None: all end ports.
    """
    counted = fabric.counted & (fabric.endport_switch >= 0)
    if port_class is not None:
        counted = counted & (fabric.endport_class == port_class)
    at = np.bincount(fabric.endport_switch[counted], minlength=fabric.switches).astype(float)
    level = tree_levels(fabric, fabric.senders_at.astype(float))
    heights = range(1) if level is None else range(int(level.max()))
    room = []
    for height in heights:
        src, dst = fabric.channels.src, fabric.channels.dst
        inside = np.zeros(len(src), bool) if level is None else (level[src] <= height) & (level[dst] <= height)
        graph = igraph.Graph(n=fabric.switches, edges=np.stack([src, dst], axis=1)[inside].tolist())
        part = np.array(graph.connected_components("weak").membership)
        own, out = np.bincount(part, at), part[src] != part[dst]
        capacity = np.bincount(part[src[out]], fabric.channels.capacity[out], len(own))
        flow = own * (at.sum() - own)
        lower = np.bincount(part, np.zeros(len(part)) if level is None else level > height) == 0
        room += (capacity[lower & (flow > 0)] / flow[lower & (flow > 0)]).tolist()
    return min(room, default=math.inf) * (at.sum() - 1) / reference_rate(fabric)


def share(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else ""


def cells(quality: Quality) -> list[str]:
    """Return the table cells with the figures of an engine's tables."""
    classes = {each.label: each.all_to_all for each in quality.classes}
    stretch = quality.stretch
    return [
        share(quality.all_to_all),
        share(classes.get("compute", math.nan)),
        share(quality.bisection_mean),
        share(quality.permutation_mean),
        f"{quality.hops_mean:.2f}",
        str(quality.hops_max),
        "" if stretch is None else f"{stretch.mean:.3f}, +{stretch.more_most}",
    ]


def row(name: str, fabric: Fabric, routing: Routing, vls: int, seconds: float | None) -> list[str]:
    """Prove and measure the tables of an engine, and return the table row.

    Parameters
    ----------
    name, fabric, routing
        Name of the engine, the fabric and its tables.
    vls, seconds
        Number of VLs that the tables need, and running time of the engine (None: unknown).
    """
    quality = measure(fabric, routing, shifts=0, stretches=True)
    proven = "; ".join(filter(None, [verdict(prove(fabric, routing)), loss(quality)]))
    return [name, *cells(quality), str(vls), "" if seconds is None else f"{seconds:.2g}", proven]


def gave_up(name: str, reason: str) -> list[str]:
    """Return the table row of an engine without tables, with the beginning of its error message."""
    reason = reason.removeprefix("no routing engine could route this fabric: ")
    reason = re.sub(r"^\w+: (ERR \w+: )?(updn: )?", "", reason)
    return [name, *[""] * (len(COLUMNS) + 2), f"gave up: {re.split(': |, ', reason)[0]}"]


def rows(fabric: Fabric, arguments: argparse.Namespace) -> Iterator[list[str]]:
    """Yield the table rows of all engines: the engines of ibnue, followed by the engines of OpenSM."""
    for engine in arguments.ours:
        start = time.process_time()
        try:
            routing = ENGINES[engine].route(fabric, EngineOptions())
        except IbnueError as error:
            yield gave_up(engine, str(error).split(" (")[0])
            continue
        yield row(engine, fabric, routing, routing.vls_needed, time.process_time() - start)
    with tempfile.TemporaryDirectory(prefix="ibnue-real-") as folder:
        net = Path(folder) / "fabric.net"
        write_net(fabric, net)
        for engine in arguments.opensm:
            name = f"OpenSM {engine}"
            try:
                found = opensm_tables(net, engine, vls=VLS, timeout=arguments.timeout)
            except LabError as error:
                yield gave_up(name, str(error).splitlines()[0].removeprefix("OpenSM: "))
                continue
            named = replace(found.fabric, port_classes=CLASSES)
            vls = found.vls_needed or (VLS if engine == "nue" else 1)
            yield row(name, named, found.routing, vls, found.seconds)


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_of("real_fabrics", __doc__)
    parser.add_argument(
        "--opensm", type=listed, default=list(OPENSM_ENGINES), help="engines of OpenSM, separated by commas"
    )
    parser.add_argument("--ours", type=listed, default=list(OURS), help="engines of ibnue, separated by commas")
    parser.add_argument("--only", default="", help="text that the names of the fabrics contain")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one OpenSM engine")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    arguments = parsed(words)
    if arguments.opensm and (missing := missing_packages()):
        print(f"OpenSM's engines are left out: apt install {' '.join(missing)}", file=sys.stderr)
        arguments.opensm = []
    for kind in KINDS:
        if arguments.only not in kind.title:
            continue
        fabric = kind.fabric()
        limits = [share(cut_limit(fabric, each)) for each in (None, PortClass.COMPUTE)]
        print(f"\n### {kind.title}\n\n{fabric.switches} switches, {int(fabric.counted.sum())} CAs, ", end="")
        print(f"{int(fabric.aggregation.sum())} aggregation nodes\n")
        print(line(HEAD), line(["---"] * len(HEAD)), sep="\n")
        print(line(["limit by cuts", *limits, *[""] * (len(HEAD) - 3)]))
        for each in rows(fabric, arguments):
            print(line(each), flush=True)
    print(f"\n{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
