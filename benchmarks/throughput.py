"""Simulate the throughput experiment of the Nue paper: one all-to-all exchange of 2 KiB messages over 4x QDR links.

The fabrics come from benchmarks.published_fabrics.  OpenSM's tables, including SLs, come from a real OpenSM on ibsim.
Each figure is the mean throughput of a CA until the last message has arrived, as a share of its link.  So the slowest
flow determines the figure, as for an application that waits for the exchange.  Every switch has virtual output queues,
round-robin arbitration, and a buffer of 4 packets for each VL and input.  The speedup of a switch is the number of
packets that an input of the switch can send at once.  If several speedups are given, a cell has a figure for each
speedup.  After a deadlock, the share of delivered messages is printed.  A star marks tables that have a credit loop for
some traffic.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import importlib.util
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path

from benchmarks.opensm_tables import opensm_tables
from benchmarks.published_fabrics import PUBLISHED
from benchmarks.usage import parser_of
from ibsim_fixtures.processes import LabError, missing_packages
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import IbnueError
from routing.fabric import Fabric
from routing.formats.fabric_files import write_net
from routing.numerals import parse_decimal
from routing.processes import fork_server
from routing.simulate.network import build_network
from routing.simulate.options import Switching
from routing.simulate.run import simulate
from routing.simulate.state import StopReason
from routing.simulate.traffic import all_to_all, senders
from routing.tables import DATA_VLS, Routing

MESSAGE = 2048
VLS = 8
OURS = ("nue/1", "nue/2", "nue/4", "nue/8", "updn", "lash", "dfsssp", "minhop")
OPENSM = ("nue", "updn", "lash", "dfsssp", "minhop", "ftree")
LIMIT = 10**10
"""Simulated time after which a run is given up, in nanoseconds."""


@dataclass(frozen=True)
class Result:
    """Result of simulating the all-to-all exchange with one engine's tables on one fabric.

    Attributes
    ----------
    fabric, engine
        Names of the fabric and the engine.
    shares
        Mean throughput of a CA, as a share of its link, for each speedup; None if there is no result.
    notes
        For each speedup, the text that the table has in place of a missing share.
    reason
        Error message of an engine that gave up; "" otherwise.
    certified
        Whether the tables were proven free of credit loops.
    """

    fabric: str
    engine: str
    shares: tuple[float | None, ...]
    notes: tuple[str, ...]
    certified: bool = False
    reason: str = ""


def one_exchange(fabric: Fabric, routing: Routing, speedup: int) -> tuple[float | None, str]:
    """Simulate the all-to-all exchange with given tables.

    ``speedup`` is the number of packets that an input of a switch can send at once; 0: any number.

    Returns
    -------
    share
        Mean throughput of a CA as a share of its link; None if the exchange did not finish.
    note
        Reason for which the exchange did not finish; "" otherwise.
    """
    simulation = simulate(
        build_network(fabric, routing),
        all_to_all(fabric, bytes=MESSAGE, mtu=MESSAGE),
        switching=Switching(speedup=speedup),
    )
    stop = simulation.run(LIMIT, stop_at_standstill=True)
    simulation.check()
    totals, cas = simulation.totals(), len(senders(fabric))
    if stop.reason is not StopReason.FINISHED:
        done = totals["delivered"] / (cas * (cas - 1))
        word = "deadlock" if stop.reason is StopReason.STANDSTILL else stop.reason.name.lower()
        return None, f"{word} after {done:.0%}"
    slowest = fabric.link_capacity[fabric.endport_link].min() / 8  # rate of the slowest link of a CA, in bytes per ns
    return float(totals["delivered_bytes"] / (stop.time * cas * slowest)), ""


def exchange(name: str, engine: str, fabric: Fabric, routing: Routing, speedups: Sequence[int]) -> Result:
    """Simulate the all-to-all exchange with given tables, once for each speedup, and return the result."""
    shares, notes = zip(*(one_exchange(fabric, routing, speedup) for speedup in speedups), strict=True)
    return Result(name, engine, shares, notes, prove(fabric, routing).certified)


def ours(name: str, engine: str, speedups: Sequence[int]) -> Result:
    """Route the fabric ``name`` with an engine of ibnue, and simulate the all-to-all exchange with each speedup.

    ``engine`` has the form name or name/VLs.
    """
    fabric = PUBLISHED[name]()
    kind, _, vls = engine.partition("/")
    try:
        routing = ENGINES[kind].route(fabric, EngineOptions(vls=int(vls or VLS), threads=1))
    except IbnueError as error:
        return Result(name, f"ibnue {engine}", (None,), ("gave up",), reason=str(error))
    return exchange(name, f"ibnue {engine}", fabric, routing, speedups)


def theirs(name: str, engine: str, speedups: Sequence[int]) -> Result:
    """Route the fabric ``name`` with an engine of OpenSM, and simulate the all-to-all exchange with each speedup."""
    with tempfile.TemporaryDirectory(prefix="ibnue-throughput-") as folder:
        net = Path(folder) / "fabric.net"
        write_net(PUBLISHED[name](), net)
        try:
            routed = opensm_tables(net, engine, vls=VLS, timeout=300)
        except LabError as error:
            reason = str(error).split("\n")[0].removeprefix("OpenSM: ")
            return Result(name, f"OpenSM {engine}", (None,), ("gave up",), reason=reason)
    fabric = dataclasses.replace(routed.fabric, name=name)
    return exchange(name, f"OpenSM {engine}", fabric, routed.routing, speedups)


def results(arguments: argparse.Namespace) -> Iterator[Result]:
    """Run all simulations in parallel, and yield the results ordered by engine."""
    speedups = arguments.speedup
    jobs = [(ours, name, engine, speedups) for engine in arguments.ours for name in arguments.fabrics]
    jobs += [(theirs, name, engine, speedups) for engine in arguments.opensm for name in arguments.fabrics]
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs, mp_context=fork_server()) as pool:
        for future in [pool.submit(*job) for job in jobs]:
            yield future.result()


def table(found: Iterable[Result], fabrics: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a Markdown table with a row for each engine and a column for each fabric.

    A line is yielded as soon as it is complete.
    """
    yield f"| engine | {' | '.join(fabrics)} |"
    yield f"| --- {'| --- ' * len(fabrics)}|"
    for engine, row in groupby(found, key=lambda result: result.engine):
        yield f"| {engine} | {' | '.join(_cell(result) for result in islice(row, len(fabrics)))} |"


def _cell(result: Result) -> str:
    star = "" if result.certified else "*"
    cells = (
        note if share is None else f"{share:.3f}{star}" for share, note in zip(result.shares, result.notes, strict=True)
    )
    return " / ".join(cells)


def _printed(coming: Iterable[Result], found: list[Result]) -> Iterator[Result]:
    """Yield the given results unchanged, but also append each result to ``found`` and print the result to standard
    error.
    """
    for result in coming:
        found.append(result)
        why = f": {result.reason}" if result.reason else ""
        print(f"{result.fabric}: {result.engine}: {_cell(result)}{why}", file=sys.stderr, flush=True)
        yield result


def plot(found: Sequence[Result], fabrics: Sequence[str], path: Path) -> None:
    """Draw a bar chart like the one of the Nue paper, with a group for each fabric and a bar for each engine.

    A bar shows the throughput with the first speedup.
    """
    import matplotlib as mpl  # noqa: PLC0415 - wanted for the plot only

    mpl.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    engines = list(dict.fromkeys(result.engine for result in found))
    by_position = {(result.engine, result.fabric): result.shares[0] or 0.0 for result in found}
    figure, axes = pyplot.subplots(figsize=(14, 5))
    width, colour = 0.85 / len(engines), mpl.colormaps["tab20"]
    for number, engine in enumerate(engines):
        positions = [group + number * width for group in range(len(fabrics))]
        axes.bar(
            positions, [by_position[engine, fabric] for fabric in fabrics], width, label=engine, color=colour(number)
        )
    axes.set_xticks([group + 0.42 for group in range(len(fabrics))], list(fabrics))
    axes.set_ylabel("received by a CA, share of its link")
    axes.set_title("One all-to-all exchange of 2 KiB messages, 4x QDR, 8 VLs")
    axes.legend(ncols=4, fontsize="small")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def listed(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def our_engines(text: str) -> list[str]:
    for engine in listed(text):
        kind, slash, vls = engine.partition("/")
        if kind not in ENGINES:
            raise argparse.ArgumentTypeError(f"{kind!r} is not an engine; there are {', '.join(ENGINES)}")
        if slash and not 1 <= (parse_decimal(vls) or 0) <= DATA_VLS:
            raise argparse.ArgumentTypeError(f"{engine!r} has no number of VLs from 1 to {DATA_VLS}")
    return listed(text)


def processes(text: str) -> int:
    if not parse_decimal(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes")
    return int(text)


def speedup_list(text: str) -> list[int]:
    speedups = [parse_decimal(part) for part in listed(text)]
    if not speedups or any(speedup is None for speedup in speedups):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers")
    return [speedup for speedup in speedups if speedup is not None]


def chart(text: str) -> Path:
    path = Path(text)
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{path.parent} is not a folder")
    if importlib.util.find_spec("matplotlib") is None:
        raise argparse.ArgumentTypeError("a chart needs matplotlib")
    return path


def main(words: Sequence[str] | None = None) -> int:
    parser = parser_of("throughput", __doc__)
    parser.add_argument("fabrics", nargs="*", metavar="FABRIC", help=f"of {', '.join(PUBLISHED)}; default: all")
    parser.add_argument("--ours", type=our_engines, default=list(OURS), help="name[/VLs], separated by commas")
    parser.add_argument("--opensm", type=listed, default=list(OPENSM), help="engines of OpenSM, separated by commas")
    parser.add_argument("--plot", type=chart, help="an SVG or PNG file to draw (needs matplotlib)")
    parser.add_argument(
        "--speedup",
        type=speedup_list,
        default=[1],
        help="speedups of the crossbars, separated by commas; 0: unlimited (default: 1)",
    )
    parser.add_argument("-j", "--jobs", type=processes, default=2)
    arguments = parser.parse_args(words)
    arguments.fabrics = arguments.fabrics or list(PUBLISHED)
    if unknown := sorted(set(arguments.fabrics) - set(PUBLISHED)):
        parser.error(f"there is no fabric {unknown[0]!r}; there are {', '.join(PUBLISHED)}")
    if arguments.opensm and (missing := missing_packages()):
        print(f"OpenSM's engines are left out: apt install {' '.join(missing)}", file=sys.stderr)
        arguments.opensm = []
    if not (arguments.ours or arguments.opensm):
        parser.error("no engine is left to run")
    found: list[Result] = []
    for line in table(_printed(results(arguments), found), arguments.fabrics):
        print(line, flush=True)
    if arguments.plot:
        plot(found, arguments.fabrics, arguments.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
