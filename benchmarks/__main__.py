"""Run every benchmark, or the named benchmarks, and mark each figure that differs from the stored figure.

The benchmarks run one after the other, each in a separate process.  There are two marks: one for times, which
depend on the machine, and one for all other figures.  --list prints each benchmark with the page of docs/ that shows
its figures.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import measured_page, records
from benchmarks.plots import write_plots
from benchmarks.usage import parser_of
from routing.formats.fabric_files import write_net
from routing.topologies import generate

ROOT = Path(__file__).parents[1]
STORED = Path(__file__).with_name("figures.json")
TABLE_FABRICS = (("torus", "4x4x4"), ("kary-ntree", "4,3"), ("dragonfly", "4,2,2"), ("kautz", "3,3"))
"""Fabrics that some benchmarks read from files, as pairs of a generator and its arguments."""

IDLE = "compares seconds of wall time, which are true only on an idle machine"
LONG = "runs for many minutes, and was not run again since the date in the table"


@dataclass(frozen=True)
class Benchmark:
    """One benchmark: the page that shows its figures, and the arguments of its program.

    Attributes
    ----------
    page
        Page of docs/ with the figures, and the heading above them.
    arguments
        Arguments of the program.
    files
        Whether the program is called with the files of :data:`TABLE_FABRICS`.
    quick
        Whether the program takes about a minute at most.
    opensm
        Whether the program runs OpenSM's engines, too.
    date
        Date of the figures on the page.
    unrecorded
        Reason why there is no stored record, for docs/measured.md; an empty text if nothing prevents a record.
    """

    page: str
    arguments: tuple[str, ...] = ()
    files: bool = False
    quick: bool = False
    opensm: bool = False
    date: str = "2026-11-25"
    unrecorded: str = ""


BENCHMARKS: Mapping[str, Benchmark] = {
    "accumulated": Benchmark("reroute.md#measured", ("torus:4x4x4,cas=4",), unrecorded=LONG),
    "adaptive": Benchmark("simulation.md#adaptive-routing", quick=True, date="2026-11-22"),
    "comparison": Benchmark(
        "comparison.md#reference-fabrics", opensm=True, unrecorded="its record is `docs/comparison.json`"
    ),
    "degraded_trees": Benchmark("engines.md#how-the-fat-tree-engine-works", unrecorded=LONG),
    "instructions": Benchmark("../CONTRIBUTING.md#benchmarks"),
    "least_full": Benchmark("reroute.md#measured", date="2026-11-28", unrecorded="it needs the package scipy"),
    "link_loss": Benchmark("reroute.md#measured", ("torus:4x4x4,cas=4",)),
    "message_sizes": Benchmark("engines.md#how-hyperx-works", quick=True),
    "nue_curve": Benchmark("nue.md#measured", quick=True, date="2026-11-20"),
    "nue_seeds": Benchmark("nue.md#measured", files=True, quick=True, date="2026-11-20"),
    "nue_tori": Benchmark("nue.md#measured", opensm=True, date="2026-11-20", unrecorded=IDLE),
    "port_groups": Benchmark("port-groups.md#measured"),
    "proof": Benchmark("proof.md#cost"),
    "quality_table": Benchmark("engines.md#measured", files=True, opensm=True, date="2026-11-20"),
    "read_fabrics": Benchmark("formats.md#speed", quick=True),
    "real_fabrics": Benchmark("fabrics.md#tables", opensm=True, date="2026-11-24", unrecorded=LONG),
    "reroute": Benchmark("reroute.md#measured", ("200",), date="2026-11-23"),
    "reroute_fixtures": Benchmark("reroute.md#measured"),
    "resweep_seconds": Benchmark("reroute.md#beside-opensm", opensm=True, date="2026-11-22", unrecorded=IDLE),
    "rounds": Benchmark("reroute.md#limits", ("0",), unrecorded=LONG),
    "simulate": Benchmark("simulation.md#results", quick=True),
    "swapped_cables": Benchmark("simulation.md#comparison-with-figures-from-other-sources", date="2026-11-22"),
    "sweep_scale": Benchmark("sweeps.md#results", date="2026-11-23", unrecorded=IDLE),
    "sweep_seconds": Benchmark("engines.md#in-a-sweep-of-opensm", opensm=True, date="2026-11-20", unrecorded=IDLE),
    "throughput": Benchmark("throughput.md#results", opensm=True, date="2026-11-24", unrecorded=LONG),
    "whatif": Benchmark("faults.md#speed", date="2026-11-28"),
}


def files_in(folder: Path) -> list[str]:
    """Write the fabrics of :data:`TABLE_FABRICS` as files into a folder, and return the paths of the files."""
    paths = []
    for topology, size in TABLE_FABRICS:
        paths.append(folder / f"{topology}-{size.replace(',', '-')}.net")
        write_net(generate(topology, [size]), paths[-1])
    return [str(path) for path in paths]


def main(words: Sequence[str] | None = None) -> int:
    """Run the benchmarks.  Return the exit status: 1 if any benchmark failed, otherwise 0."""
    parser = parser_of("__main__", __doc__)
    parser.prog = "python -m benchmarks"
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument(
        "--list", action="store_true", help="print each benchmark with the page of docs/ that shows its figures"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="file for the records (JSON)")
    parser.add_argument(
        "--against", type=Path, default=STORED, metavar="FILE", help="file of the stored records (JSON) to compare with"
    )
    parser.add_argument(
        "--tolerance", type=float, default=0.05, help="share by which a figure may differ from the stored figure"
    )
    parser.add_argument("--quick", action="store_true", help="run only the benchmarks that take about a minute at most")
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="run each benchmark N times, to measure how much times vary"
    )
    parser.add_argument(
        "--plots", type=Path, metavar="DIR", help="folder for a plot (SVG) of the tables of each benchmark"
    )
    parser.add_argument("--store", action="store_true", help="replace the stored records by the new records")
    parser.add_argument(
        "--page", action="store_true", help="run no benchmark, and write docs/measured.md from the stored records"
    )
    given = parser.parse_args(words)
    unknown = sorted(set(given.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    if given.page and (given.names or given.store):
        parser.error("--page runs no benchmark: first store the records, then give --page alone")
    if given.list:
        print("| benchmark | page |", "|---|---|", sep="\n")
        print(*(f"| {name} | docs/{benchmark.page} |" for name, benchmark in BENCHMARKS.items()), sep="\n")
        return 0
    stored = records.read(given.against) if given.against.exists() else {}
    if given.page:
        measured_page.write(places(), stored)
        return 0
    found = run_all(
        given.names or [name for name in BENCHMARKS if BENCHMARKS[name].quick or not given.quick], given.repeat
    )
    if given.plots:
        write_plots(given.plots, found, stored)
    if given.output:
        records.write(given.output, found)
    report(stored, found, given.tolerance)
    if given.store:
        records.write(STORED, stored | {name: record for name, record in found.items() if not record.exit_status})
    return 1 if any(record.exit_status for record in found.values()) else 0


def places() -> dict[str, measured_page.Place]:
    """Return, by name of the benchmark, the place in the documentation that shows its figures."""
    return {
        name: measured_page.Place(each.page, each.opensm, each.date, each.unrecorded)
        for name, each in BENCHMARKS.items()
    }


def run_all(names: Sequence[str], repeat: int = 1) -> dict[str, records.Record]:
    """Run benchmarks one after the other, each ``repeat`` times, and return their records by name."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="ibnue-benchmarks-") as folder:
        for name in names:
            print(f"\n== {name}", flush=True)
            benchmark = BENCHMARKS[name]
            files = files_in(Path(folder)) if benchmark.files else []
            # With "-m", Python imports from the working directory first.  So the working directory has to be the folder
            # that contains the package ``benchmarks``.
            command = ["-m", f"benchmarks.{name}", *benchmark.arguments, *files]
            record = records.run(command, f"docs/{benchmark.page}", ROOT, repeat)
            # The temporary folder has another name in each run, so the record leaves it out.
            found[name] = replace(record, command=record.command.replace(f"{folder}/", ""))
    return found


def report(stored: Mapping[str, records.Record], found: Mapping[str, records.Record], tolerance: float) -> None:
    """Print the differences between new and stored records, and the names of benchmarks that failed.

    Parameters
    ----------
    stored, found
        Stored records and new records, by name of the benchmark.
    tolerance
        Relative difference up to which two figures count as equal (0.05: five percent).
    """
    for name, record in found.items():
        if record.exit_status:
            print(f"\n{name}: failed with exit status {record.exit_status}")
        elif name not in stored:
            print(f"\n{name}: no stored record; --store keeps this one")
        else:
            differ = list(records.differences(stored[name], record, tolerance))
            since = f"{stored[name].date}, {stored[name].commit}"
            print(f"\n{name}: {len(differ)} differences from {since}", *(f"  {line}" for line in differ), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
