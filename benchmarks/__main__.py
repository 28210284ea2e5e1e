"""Run every benchmark, or those that are named, one after the other and each in a process of its own."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from routing.formats.fabric_files import write_net
from routing.topologies import generate

ROOT = Path(__file__).parents[1]
TABLE_FABRICS = (("torus", "4x4x4"), ("kary-ntree", "4,3"), ("dragonfly", "4,2,2"), ("kautz", "3,3"))
"""Fabrics that the benchmark ``quality_table`` reads, as generator and arguments."""
NAMES = (
    "proof",
    "reroute",
    "reroute_fixtures",
    "read_fabrics",
    "sweep_seconds",
    "resweep_seconds",
    "sweep_scale",
    "quality_table",
    "real_fabrics",
    "degraded_trees",
    "message_sizes",
    "nue_curve",
    "nue_tori",
    "port_groups",
    "simulate",
    "swapped_cables",
    "whatif",
)


def arguments(name: str, folder: Path) -> list[str]:
    """Return the command-line arguments of a benchmark; files that the benchmark reads are written first."""
    if name != "quality_table":
        return []
    paths = []
    for topology, size in TABLE_FABRICS:
        paths.append(folder / f"{topology}-{size.replace(',', '-')}.net")
        write_net(generate(topology, [size]), paths[-1])
    return [str(path) for path in paths]


def main(words: Sequence[str] | None = None) -> int:
    """Run the benchmarks; return 1 if any of them failed, else 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    names = parser.parse_args(words).names
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}")
    failed = []
    with tempfile.TemporaryDirectory(prefix="ibnue-benchmarks-") as folder:
        for name in names or NAMES:
            print(f"\n== {name}", flush=True)
            command = [sys.executable, "-m", f"benchmarks.{name}", *arguments(name, Path(folder))]
            # "-m" makes Python search the working directory first, so it has to be the one that contains these
            # benchmarks.
            if subprocess.run(command, check=False, cwd=ROOT).returncode:
                failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
