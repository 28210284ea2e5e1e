"""``ibnue simulate FABRIC --sweep``: latency and throughput over offered load, for several engines and patterns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from routing.cli.output import echo_lines, fabric_object, print_json, print_rows, print_table, spinner
from routing.cli.report_options import write_reports
from routing.errors import OptionError, RoutingError
from routing.numerals import count_noun

if TYPE_CHECKING:
    from routing.draw.report import Report
    from routing.fabric import Fabric
    from routing.simulate.load_curve import Measurement
    from routing.simulate.mechanisms.base import Mechanism
    from routing.simulate.mechanisms.port_choice import PortChoice
    from routing.simulate.network import Network

Command = TypeVar("Command", bound=Callable[..., Any])
MOST_LOADS = 100


def read_loads(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[float, ...] | None:
    """Parse offered loads (fractions of a link's rate): a list with commas, or ``first:last:step``.  If ``text`` is
    None, the result is None.
    """
    if text is None:
        return None
    try:
        loads = _range_of_loads(text) if ":" in text else tuple(float(part) for part in text.split(","))
    except ValueError:
        loads = ()
    if not loads or not all(0 < load <= 1 for load in loads):
        raise click.BadParameter(
            f"{text!r} is not a list of loads such as 0.1,0.5 or 0.1:0.9:0.1, each over 0 and up to 1", ctx, param
        )
    return loads


def _range_of_loads(text: str) -> tuple[float, ...]:
    first, last, step = (float(part) for part in text.split(":"))
    if not (step > 0 and (last - first) / step < MOST_LOADS):
        return ()
    return tuple(round(first + step * n, 9) for n in range(int((last - first) / step + 1e-9) + 1))


@dataclass(frozen=True)
class Curve:
    """One curve of a sweep over loads: the tables of an engine, or a scheme of adaptive routing, under one traffic
    pattern.

    Attributes
    ----------
    label
        Name of the curve in the results, which names the engine, the scheme, or both.
    network
        The simulated network with its tables.
    scheme
        Name of the scheme of adaptive routing.  None: packets follow the tables, or a mechanism chooses their ports.
    mechanisms
        Mechanisms that the simulation adds to the network, such as the choice among the ports of port groups.
    pattern
        Name of the traffic pattern.
    """

    label: str
    network: Network
    scheme: str | None
    mechanisms: tuple[Mechanism, ...]
    pattern: str


@dataclass(frozen=True)
class Settings:
    """Settings of all runs of a sweep over loads.

    The settings are: the arrival process, the mean number of messages in a burst, the bytes of a message, the bytes of
    a packet, and the speedup of the switches.
    """

    process: str
    burst: float
    message: int
    packet: int
    speedup: int

    def as_object(self) -> dict[str, Any]:
        """Return the settings as an object for ``--json``."""
        return {
            "process": self.process,
            "burst_messages": self.burst,
            "message_bytes": self.message,
            "packet_bytes": self.packet,
            "speedup": self.speedup,
        }


def sweep_options(command: Command) -> Command:
    """Add the options of ``--sweep`` to a command, as one parameter ``sweep`` that is a dictionary."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _option(*names: str, help: str, **how: Any) -> Callable[[Command], Command]:  # noqa: A002 - click's word
    return click.option(*names, help=f"With --sweep: {help}", **how)


COMMIT = "commit"
"""Name of the scheme in which switches choose a port when a packet arrives."""
_OPTIONS = (
    _option("-e", "--engine", "engines", multiple=True, metavar="ENGINE",
            help="tables to compare (default: updn and nue); may be given several times."),
    _option("--vls", type=click.IntRange(1, 15), metavar="N", help="data VLs (default: 8)."),
    _option("--scheme", "schemes", multiple=True,
            type=click.Choice([COMMIT, "escape", "groups", "token", "bubble", "none"]),
            help="scheme of adaptive routing; may be given several times. commit: switches choose a port of the proven "
            "port groups of each engine's tables by its load. Other schemes: escape paths of updn on one VL."),
    _option("--pattern", "patterns", multiple=True, metavar="PATTERN",
            help="uniform (default), permutation, neighbour, tornado, transpose, bit-complement, bit-reverse, hotspot "
            "or incast; may be given several times."),
    _option("--loads", callback=read_loads, metavar="LOADS",
            help="offered loads as shares of a CA's link, such as 0.2,0.5 or 0.1:0.9:0.2 (default: 0.1:0.9:0.1)."),
    _option("--process", type=click.Choice(["poisson", "bernoulli", "bursty"]),
            help="process by which CAs create messages (default: poisson)."),
    _option("--burst", type=click.FloatRange(1, 10**6), metavar="N",
            help="mean number of messages in a burst (default: 8)."),
    _option("--message", type=click.IntRange(1, 1 << 24), metavar="BYTES", help="size of a message (default: 2048)."),
    _option("--speedup", type=click.IntRange(0, 255), metavar="N",
            help="packets that an input of a switch can send at once (default: 1; 0: any number)."),
    _option("--buffer", type=click.IntRange(1, 2048), metavar="BLOCKS",
            help="64-byte blocks of each VL's input buffer (default: 128)."),
    _option("--seeds", type=click.IntRange(1, 1000), metavar="N", help="runs of each point (default: 3)."),
    _option("-j", "--jobs", type=click.IntRange(1, 4096), metavar="N",
            help="number of processes (default: one per core)."),
)  # fmt: skip
PARAMETERS = (
    "engines", "vls", "schemes", "patterns", "loads", "process", "burst", "message", "speedup", "buffer", "seeds",
    "jobs",
)  # fmt: skip
"""Names of the parameters that :func:`sweep_options` adds."""
DEFAULTS: dict[str, Any] = {
    "engines": ("updn", "nue"), "vls": 8, "patterns": ("uniform",), "process": "poisson", "burst": 8.0, "message": 2048,
    "loads": tuple(round(0.1 * n, 1) for n in range(1, 10)), "speedup": 1, "buffer": 128, "seeds": 3,
}  # fmt: skip


def sweep_loads(fabric: Fabric, given: dict[str, Any], plot: Path | None, *, source: str, as_json: bool) -> int:
    """Simulate each curve at each load, print the results, and write the files for which the user asked.

    The files are a report, and charts in the folder ``plot``.
    """
    options: dict[str, Any] = {name: given[name] or DEFAULTS.get(name) for name in PARAMETERS}
    options["speedup"] = DEFAULTS["speedup"] if given["speedup"] is None else given["speedup"]
    if given["schemes"] and not given["engines"]:
        options["engines"] = ()
    settings = Settings(
        options["process"], options["burst"], options["message"], min(options["message"], 2048), options["speedup"]
    )
    curves = make_curves(fabric, options)
    loads, seeds = options["loads"], options["seeds"]
    with spinner(f"{len(curves) * len(loads) * seeds} runs"):
        rows = measure_all(curves, loads, range(1, seeds + 1), settings, options["jobs"])
    write_reports(lambda: report_of(fabric, rows, seeds, settings))
    if plot is not None:
        write_chart(plot, fabric, rows, settings)
    if as_json:
        shown = {"fabric": fabric_object(fabric, source), "seeds": seeds, **settings.as_object(), "points": rows}
        print_json("ibnue-simulate-sweep/1", shown)
    else:
        show_points(fabric, rows, seeds, settings)
    return 0


def make_curves(fabric: Fabric, options: dict[str, Any]) -> list[Curve]:
    """Route the fabric with each engine, and return the curves for which the options ask.

    Each traffic pattern has one curve for the tables of each engine, and one for each scheme of adaptive routing.  The
    scheme "commit" has one curve for each engine.

    Raises
    ------
    OptionError
        An engine or a pattern is unknown, a pattern does not fit the number of CAs, or the tables of an engine have no
        port groups.
    RoutingError
        An engine does not find tables.
    """
    from routing.engines import ENGINES
    from routing.engines.base import EngineOptions
    from routing.simulate.network import Timing, build_network
    from routing.simulate.patterns import pattern_traffic

    timing = Timing(buffer=options["buffer"])
    networks: list[tuple[str, Network, str | None, tuple[Mechanism, ...]]] = []
    commits = COMMIT in (options["schemes"] or ())
    for name in options["engines"] or (("updn",) if commits else ()):
        if name not in ENGINES:
            raise OptionError(f"there is no engine {name!r}", remedy=f"use {', '.join(ENGINES)}")
        routing = ENGINES[name].route(fabric, EngineOptions(vls=options["vls"]))
        network = build_network(fabric, routing, timing)
        if options["engines"]:
            networks.append((name, network, None, ()))
        if commits:
            networks.append((f"{name}, {COMMIT}", network, None, (_port_choice(name, network),)))
    schemes = [scheme for scheme in options["schemes"] or () if scheme != COMMIT]
    if schemes:
        escape = ENGINES["updn"].route(fabric, EngineOptions(vls=1))
        vls = max(options["vls"], 2)
        network = build_network(fabric, escape, timing, vls=vls)
        networks += [(f"adaptive, {scheme}", network, scheme, ()) for scheme in schemes]
    for pattern in options["patterns"]:
        # This call only checks the pattern, and its result is not used.  So an error in a pattern is reported before
        # the first run.
        pattern_traffic(networks[0][1], pattern, 0.5)
    return [Curve(*network, pattern) for pattern in options["patterns"] for network in networks]


def _port_choice(engine: str, network: Network) -> PortChoice:
    """Return the mechanism by which switches choose among the ports of the proven port groups of an engine's tables.

    Raises
    ------
    OptionError
        No port groups can be proven for the tables.
    """
    from routing.simulate.mechanisms.port_choice import PortChoice

    try:
        return PortChoice(allowed=PortChoice().channels(network))
    except OptionError as error:
        raise OptionError(f"no port groups for {engine}: {error.problem}", remedy=error.remedy) from None
    except RoutingError as error:
        raise OptionError(f"no port groups for {engine}: {error}", remedy="use tables without a credit loop") from None


def measure_point(curve: Curve, load: float, seed: int, settings: Settings) -> Measurement:
    """Simulate one curve at one offered load with one seed, in a worker process."""
    from routing.simulate.adaptive import Scheme
    from routing.simulate.load_curve import measure, simulation_of
    from routing.simulate.patterns import PROCESSES, pattern_traffic

    traffic = pattern_traffic(
        curve.network, curve.pattern, load, process=PROCESSES[settings.process], burst=settings.burst,
        bytes=settings.message, mtu=settings.packet, seed=seed,
    )  # fmt: skip
    scheme = None if curve.scheme is None else Scheme[curve.scheme.upper()]
    simulation = simulation_of(
        curve.network, traffic, scheme, mechanisms=curve.mechanisms, speedup=settings.speedup, seed=seed
    )
    return measure(simulation, traffic, load)


def measure_all(
    curves: Sequence[Curve], loads: Sequence[float], seeds: Sequence[int], settings: Settings, jobs: int | None
) -> list[dict[str, Any]]:
    """Measure each curve at each load in parallel processes, and return one row for each curve and load."""
    import concurrent.futures

    from routing.processes import cores, fork_server

    points = [(curve, load) for curve in curves for load in loads]
    with concurrent.futures.ProcessPoolExecutor(jobs or cores(), mp_context=fork_server()) as pool:
        futures = [[pool.submit(measure_point, *point, seed, settings) for seed in seeds] for point in points]
        return [
            row_of(curve, load, [future.result() for future in group])
            for (curve, load), group in zip(points, futures, strict=True)
        ]


def row_of(curve: Curve, load: float, runs: Sequence[Measurement]) -> dict[str, Any]:
    """Combine the runs of one curve at one load into a row: means, confidence intervals, and a verdict.

    The verdict is "deadlock" if a run ended in a deadlock.  Otherwise it is "settled" if in all runs the latency became
    stationary and the network accepted the offered load, else "saturated".  Only a settled row has latencies.
    """
    from routing.simulate.load_curve import mean_and_error

    settled = all(run.settled for run in runs)
    accepted, accepted_error = mean_and_error([run.accepted for run in runs])
    row: dict[str, Any] = {
        "routing": curve.label,
        "pattern": curve.pattern,
        "load": load,
        "accepted": accepted,
        "accepted_error": accepted_error,
        "latency_us": None,
        "latency_error_us": None,
        "packet_p50_us": None,
        "packet_p99_us": None,
        "message_p99_us": None,
        "verdict": "deadlock" if any(run.deadlock for run in runs) else "settled" if settled else "saturated",
    }
    if settled and row["verdict"] == "settled":
        tick = curve.network.timing.tick * 1e6
        latency, error = mean_and_error([run.latency * tick for run in runs if run.latency is not None])
        row |= {"latency_us": latency, "latency_error_us": error}
        for name in ("packet_p50", "packet_p99", "message_p99"):
            row[f"{name}_us"] = mean_and_error([getattr(run, name) * tick for run in runs])[0]
    return row


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _with_error(value: float | None, error: float | None, digits: int) -> str:
    return _number(value, digits) + ("" if error is None else f" ±{error:.{digits}f}")


def summary(fabric: Fabric, seeds: int, settings: Settings) -> list[tuple[str, str]]:
    """Return the fabric and its traffic as rows of a name and a text."""
    sending = (
        f"{settings.process}, messages of {settings.message} bytes, {count_noun(seeds, 'seed')},"
        f" speedup {settings.speedup or 'unlimited'}"
    )
    return [("fabric", fabric.name), ("traffic", sending)]


def show_points(fabric: Fabric, rows: Sequence[dict[str, Any]], seeds: int, settings: Settings) -> None:
    """Print a table with a row for each curve and offered load.

    A row has the accepted load, the latency, and the verdict (:func:`row_of`).
    """
    print_rows(summary(fabric, seeds, settings))
    print_table(
        ["routing", "pattern", "load", "accepted", "latency us", "median", "p99", "message p99", ""],
        [
            (
                row["routing"], row["pattern"], f"{row['load']:g}",
                _with_error(row["accepted"], row["accepted_error"], 3),
                _with_error(row["latency_us"], row["latency_error_us"], 2), _number(row["packet_p50_us"], 2),
                _number(row["packet_p99_us"], 2), _number(row["message_p99_us"], 2), row["verdict"],
            )
            for row in rows
        ],
        texts=2,
    )  # fmt: skip
    if seeds > 1:
        echo_lines("± is half the 95 % confidence interval over the seeds.")


def report_of(fabric: Fabric, rows: Sequence[dict[str, Any]], seeds: int, settings: Settings) -> Report:
    """Return the report on a sweep over loads, with a table that has a row for each curve and load."""
    from routing.draw.report import Report
    from routing.formats.csv_table import Table

    return Report(f"{fabric.name}: loads", tuple(summary(fabric, seeds, settings)), (Table.of("Points", rows),))


def write_chart(folder: Path, fabric: Fabric, rows: Sequence[dict[str, Any]], settings: Settings) -> None:
    """Write one chart for each pattern: accepted load and latency over offered load."""
    import numpy as np

    from routing.formats.atomic import make_folder, write_text_atomically
    from routing.simulate.chart import chart

    make_folder(folder)
    loads = sorted({row["load"] for row in rows})
    for pattern in dict.fromkeys(row["pattern"] for row in rows):
        panels = []
        for title, key in (
            ("accepted load, share of a CA's link", "accepted"),
            ("mean latency in us, while it is stationary", "latency_us"),
        ):
            lines = {}
            for label in dict.fromkeys(row["routing"] for row in rows):
                found = {row["load"]: row[key] for row in rows if (row["routing"], row["pattern"]) == (label, pattern)}
                lines[label] = np.array([np.nan if found[load] is None else found[load] for load in loads])
            panels.append((title, lines))
        note = f"{settings.process}, messages of {settings.message} bytes; over offered load"
        text = chart(f"{fabric.name}: {pattern}", note, np.array(loads), panels)
        write_text_atomically(folder / f"sweep-{pattern}.svg", text)
