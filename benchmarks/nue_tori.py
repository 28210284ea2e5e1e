"""Measure running times on 25 tori from 2x2x2 to 10x10x10, as in the Nue paper.

The tori have 4 CAs at each switch, and 1 % of their links have failed.  The output is a Markdown table.  With --plot, a
picture of the table is drawn, too.  With --table, the program measures nothing, and draws a picture of the table that
a given file contains, such as a page of the docs.  For ibnue, the figures are CPU and wall seconds of engine and proof
in a process that has loaded all modules.  For OpenSM, the seconds are from its own log, and include sending the tables
to the simulated switches.  An engine counts as "gave up" in two cases: it fails, or OpenSM's start and routing together
exceed the timeout.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.quality_table import listed, opensm_row
from benchmarks.usage import parser_of
from ibsim_fixtures.processes import missing_packages
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import NotEnoughVLs
from routing.fabric import Fabric
from routing.faults import apply_faults, random_faults
from routing.formats.fabric_files import write_net
from routing.quality import measure
from routing.topologies import generate

SIZES = [
    (a, b, c) for n in range(2, 11) for a, b, c in ((n, n, n), (n + 1, n, n), (n + 1, n + 1, n)) if max(a, b, c) <= 10
]
FAILED = 0.01
OTHERS = ("dfsssp", "lash")
SWITCHES, GAVE_UP = "switches", "gave up"


def torus(size: tuple[int, int, int]) -> Fabric:
    """Return a torus from which 1 % of the links between switches are removed, the same links in every run."""
    fabric = generate("torus", ["x".join(map(str, size))], cas=4)
    return apply_faults(fabric, random_faults(fabric, seed=str(size), rate=FAILED))


def ours(fabric: Fabric, vls: int) -> list[str]:
    """Route a torus with the engine ``nue``, and return the cells of its table row.

    The cells are CPU seconds, wall seconds, whether the tables are certified, number of LFT entries on the escape tree,
    and all-to-all share.
    """
    cpu, wall = time.process_time(), time.perf_counter()
    routing = ENGINES["nue"].route(fabric, EngineOptions(vls=vls, effort=0.1))
    proof = prove(fabric, routing)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    entries = routing.provenance.options["escape_entries"]
    share = measure(fabric, routing, shifts=0).all_to_all
    return [f"{cpu:.3f}", f"{wall:.3f}", "yes" if proof.certified else "NO", str(entries), f"{share:.3f}"]


def ours_too(fabric: Fabric, engine: str, vls: int) -> str:
    """Return the CPU seconds of an engine of ibnue as text.  The CPU seconds include the proof of the tables.

    The text is "gave up" if the engine needs more than ``vls`` VLs, and "NO" if the tables have no certificate.
    """
    cpu = time.process_time()
    try:
        proof = prove(fabric, ENGINES[engine].route(fabric, EngineOptions(vls=vls, effort=0.1)), explain=False)
    except NotEnoughVLs:
        return GAVE_UP
    return f"{time.process_time() - cpu:.3f}" if proof.certified else "NO"


def theirs(fabric: Fabric, engine: str, timeout: float) -> str:
    """Return the routing seconds of an OpenSM engine as text, or "gave up"."""
    with tempfile.TemporaryDirectory(prefix="ibnue-tori-") as folder:
        net = Path(folder) / "torus.net"
        write_net(fabric, net)
        row = opensm_row(net, engine, seed=1, timeout=timeout)
    return GAVE_UP if row.quality is None else f"{row.seconds:.3f}"


def rows_of(text: str) -> list[dict[str, str]]:
    """Return the rows of the first table of tori in a Markdown page.  The first column of such a table is "torus"."""
    lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines()]
    start = next((i for i, cells in enumerate(lines) if cells[0] == "torus" and SWITCHES in cells), len(lines))
    table = itertools.takewhile(lambda cells: len(cells) > 1, lines[start:])
    head, *rows = [cells for cells in table if not cells[0].startswith("---")] or [[]]
    return [dict(zip(head, row, strict=True)) for row in rows]


def plot(rows: Sequence[dict[str, str]], path: Path) -> None:
    """Draw the seconds over the number of switches, on logarithmic axes.

    Each column of seconds in the table is one line of the picture.  The column of wall seconds is left out.
    """
    import matplotlib as mpl  # noqa: PLC0415 - wanted for the plot only

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "tori"
    from matplotlib import pyplot  # noqa: PLC0415

    figure, axes = pyplot.subplots(figsize=(9, 5))
    for column in (name for name in rows[0] if name.endswith(" s") and "wall" not in name):
        measured = [(int(row[SWITCHES]), float(row[column])) for row in rows if row[column][:1].isdigit()]
        measured = [(switches, seconds) for switches, seconds in measured if seconds > 0]
        style = "--" if column.startswith("OpenSM") else "-"
        axes.plot(*zip(*measured, strict=True), style, marker=".", label=column.removesuffix(" s"))
    axes.set(xscale="log", yscale="log", xlabel="switches", ylabel="seconds")
    axes.set_title("Tori of 2x2x2 to 10x10x10 switches, 4 CAs each, 1 % of the links missing, 8 VLs")
    axes.legend(fontsize="small")
    axes.grid(which="both", alpha=0.2)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(words: Sequence[str] | None = None) -> int:
    """Route all tori and print the table.  With ``--table``, only draw a picture of a given table."""
    parser = parser_of("nue_tori", __doc__)
    parser.add_argument("--count", type=int, default=len(SIZES), help="number of tori, the smallest first")
    parser.add_argument("--vls", type=int, default=8)
    parser.add_argument("--opensm", type=listed, default=["nue", "dfsssp", "lash"], help="engines, separated by commas")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one OpenSM engine")
    parser.add_argument("--table", type=Path, help="measure nothing, and draw the table in this file")
    parser.add_argument("--plot", type=Path, help="an SVG or PNG file to draw (needs matplotlib)")
    arguments = parser.parse_args(words)
    if arguments.table is not None:
        plot(rows_of(arguments.table.read_text()), arguments.plot)
        return 0
    if missing_packages():
        arguments.opensm = []
    head = ["torus", SWITCHES, "nue CPU s", "nue wall s", "certified", "on the escape tree", "a2a"]
    head += [f"{engine} CPU s" for engine in OTHERS] + [f"OpenSM {engine} s" for engine in arguments.opensm]
    print(f"| {' | '.join(head)} |", "|---" * len(head) + "|", sep="\n")
    rows = []
    for size in SIZES[: arguments.count]:
        fabric = torus(size)
        cells = ["x".join(map(str, size)), str(fabric.switches), *ours(fabric, arguments.vls)]
        cells += [ours_too(fabric, engine, arguments.vls) for engine in OTHERS]
        cells += [theirs(fabric, engine, arguments.timeout) for engine in arguments.opensm]
        print(f"| {' | '.join(cells)} |", flush=True)
        rows.append(dict(zip(head, cells, strict=True)))
    if arguments.plot is not None:
        plot(rows, arguments.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
