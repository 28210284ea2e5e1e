"""Measure OpenSM's routing time after a cable is pulled and after it is put back.

The program compares pairs of engines: an engine of OpenSM and an engine of ibnue.  A fabric is given as a file, or as a
generator with its arguments (torus:10x10x10,cas=4).  The seconds are the time between two messages in OpenSM's log,
"building routing with" and "tables configured".  The columns are:

- first: seconds of the first sweep.
- cable pulled, cable back: median seconds of the sweeps after a cable between two switches was pulled, and after it was
  put back.  The cables are equal for both engines of a pair.
- ratio: seconds of ibnue's engine divided by seconds of OpenSM's engine, after a cable was pulled.
- changed: median number of LFT entries that changed after a cable was pulled.
- used: median number of LFT entries that led over the pulled cable.
- most: largest ratio of changed entries to used entries.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.sweep_seconds import built_plugin, settings
from benchmarks.usage import parser_of
from ibsim_fixtures.lab import Lab
from ibsim_fixtures.opensm import Plugin
from ibsim_fixtures.opensm_log import Sweep
from ibsim_fixtures.processes import LabError
from routing.cli import fabric_argument
from routing.faults import Fault, random_faults
from routing.formats.fabric_files import write_net

FABRICS: Mapping[str, str] = {
    "torus:10x10x10,cas=4": "nue:ibnue-nue,dfsssp:ibnue-dfsssp",
    "kary-ntree:16,3": "updn:ibnue-updn,dfsssp:ibnue-dfsssp",
}
Tables = dict[int, dict[int, int]]


@dataclass
class Seconds:
    """Measured routing seconds of one engine, and numbers of LFT entries for each pulled cable.

    ``changed`` counts the LFT entries that changed, and ``leading`` the LFT entries that led over the pulled cable.
    """

    first: float = 0.0
    pulled: list[float] = field(default_factory=list)
    back: list[float] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    leading: list[int] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def add(self, sweep: Sweep, to: list[float]) -> None:
        self.used.add(sweep.engine or "none")
        to.append(sweep.routing_seconds or 0.0)


def different(before: Tables, now: Tables) -> int:
    """Return the number of LFT entries that differ or are missing after a change of tables.

    Only switches that still exist count.  ``before`` and ``now`` have the out-port by switch GUID and LID.
    """
    return sum(now[guid].get(lid) != port for guid, old in before.items() if guid in now for lid, port in old.items())


def measure(net: Path, engine: str, plugin: Plugin | None, faults: Sequence[Fault], vls: int) -> Seconds:
    """Run OpenSM with an engine, and measure its sweeps while cables are pulled and put back.

    Parameters
    ----------
    net, engine
        File of the fabric, and ``routing_engine`` of opensm.conf.
    plugin
        Plugin with the engine; None for an engine of OpenSM.
    faults
        Losses of cables.  Each loss is applied alone.
    vls
        Number of data VLs that OpenSM may use.
    """
    found = Seconds()
    with Lab(net, routing_engine=engine, config=settings(vls), plugin=plugin, timeout=300.0) as lab:
        assert lab.sweep is not None
        found.first = lab.sweep.routing_seconds or 0.0
        for fault in faults:
            before = lab.dumped_lfts()
            found.add(lab.unlink(*fault.ports[0]), found.pulled)
            found.changed.append(different(before, lab.dumped_lfts()))
            found.leading.append(sum(list(before[guid].values()).count(port) for guid, port in fault.ports))
            found.add(lab.relink(*fault.ports[0]), found.back)
    return found


def row(name: str, engine: str, found: Seconds, theirs: Seconds | None) -> str:
    """Return the table row of an engine.

    ``found`` has the results of this engine, and ``theirs`` the results of OpenSM's engine.  The column "ratio" has the
    seconds of this engine divided by the seconds of OpenSM's engine.  If ``theirs`` is None, this column is empty.
    """
    pulled, back = statistics.median(found.pulled), statistics.median(found.back)
    ratio = "" if theirs is None else f"{pulled / statistics.median(theirs.pulled):.3f}"
    used = "" if found.used == {engine.removesuffix(",no_fallback")} else f" (then {', '.join(sorted(found.used))})"
    cells = [name, engine + used, f"{found.first:.2f}", f"{pulled:.3f}", f"{back:.3f}", ratio]
    cells += [f"{statistics.median(found.changed):.0f}", f"{statistics.median(found.leading):.0f}"]
    most = max(changed / max(1, leading) for changed, leading in zip(found.changed, found.leading, strict=True))
    return f"| {' | '.join([*cells, f'{most:.2f}'])} |"


def main(words: Sequence[str] | None = None) -> None:
    """Measure all pairs of engines on all fabrics, and print the table."""
    parser = parser_of("resweep_seconds", __doc__)
    parser.add_argument("fabrics", nargs="*", default=list(FABRICS))
    parser.add_argument("--pairs")
    parser.add_argument("--faults", type=int, default=3)
    parser.add_argument("--vls", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        plugin = built_plugin(folder, arguments.vls)
        print("| fabric | engine | first s | cable pulled s | cable back s | ratio | changed | used | most |")
        print("|---|---|---|---|---|---|---|---|---|", flush=True)
        for name in arguments.fabrics:
            net = folder / "fabric.net"
            fabric = fabric_argument.read(name)
            write_net(fabric, net)
            faults = random_faults(fabric, seed=arguments.seed, count=arguments.faults)
            for pair in (arguments.pairs or FABRICS.get(name, "updn:ibnue-updn")).split(","):
                theirs, _, ours = pair.partition(":")
                known = None
                if theirs:
                    try:
                        known = measure(net, f"{theirs},no_fallback", None, faults, arguments.vls)
                        print(row(name, theirs, known, None), flush=True)
                    except LabError as error:
                        print(f"| {name} | {theirs} | {str(error).splitlines()[0]} |", flush=True)
                print(row(name, ours, measure(net, ours, plugin, faults, arguments.vls), known), flush=True)


if __name__ == "__main__":
    main()
