"""``ibnue route``: compute the tables of a fabric, and prove them before they are written."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from routing.cli import engine_options, fabric_argument, proof_report, reroute_options
from routing.cli.command import FINDING
from routing.cli.output import fabric_object, hint, json_option, print_json, print_rows, spinner
from routing.cli.param_types import Number
from routing.cli.quality import parts_facts
from routing.engines import ENGINES
from routing.errors import OptionError

if TYPE_CHECKING:
    from routing.engines.base import EngineOptions
    from routing.fabric import Fabric
    from routing.publish import VerifiedTables
    from routing.quality import Quality
    from routing.reroute import CapacityKept, Rerouted


@click.command()
@fabric_argument.fabric_argument
@fabric_argument.fault_options
@engine_options.engine_options
@click.option(
    "--budget",
    type=Number(0, 1e6, min_open=True),
    metavar="SECONDS",
    help="Estimated CPU seconds for the routing; sets the effort.",
)
@reroute_options.options
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="DIR",
              help="Folder for the tables, the certificate and the bundle; without it nothing is written.")  # fmt: skip
@json_option
def route(
    *, fabric: str, engine_name: str, budget: float | None, output: Path | None, as_json: bool, **given: Any
) -> int:
    """Compute the forwarding tables of FABRIC, prove them, write them.

    \b
    ibnue route torus:4x4x4 -e updn -o tables
    ibnue route ibnetdiscover.out -e updn --vls 4 --root spine1 --root spine2 -o tables
    ibnue route now.net --previous tables --was before.net -o new

    Exit status 1 if the engine finds no tables, or if the tables are incomplete or have a credit loop.  An engine that
    does not promise freedom from credit loops, such as minhop, may leave a loop.  The tables are written nevertheless,
    and the report names the loop.
    """
    from routing.publish import verify
    from routing.quality import bisection_share, measure

    earlier = reroute_options.pop_options(given)
    engine, options = ENGINES[engine_name], engine_options.pop_options(given)
    seconds: dict[str, float] = {}
    with step(f"reading {fabric}", seconds, "read"):
        subnet, whole = read(fabric, earlier)
    tables = None if earlier is None else fabric_argument.tables_of(earlier.tables, whole, "--was")
    if tables is not None:
        engine = reroute_options.engine_for(tables, engine_name)
        options = reroute_options.options_for(tables, whole, engine, options)
    if budget is not None:
        options = effort_for_budget(budget, options, subnet)
    rerouted = None
    with step(f"routing {subnet.name} with {engine.name}", seconds, "route"):
        if earlier is None or tables is None:
            routing = engine.route(subnet, options)
        else:
            rerouted = reroute_options.reroute(
                (whole, tables), engine, options, subnet, stability=earlier.stability, rebalance=earlier.rebalance
            )
    with step("proving", seconds, "prove"):
        made = verify(subnet, routing, engine, threads=options.threads) if rerouted is None else rerouted.tables
    with step("writing", seconds, "write"):
        files = write(output, made)
    with step("measuring", seconds, "measure"):
        quality = measure(subnet, made.routing, shifts=0, permutations=0, threads=options.threads)
        bisection = None if tables is None else bisection_share(whole, tables, threads=options.threads)
    result = Result(made, quality, seconds, files, rerouted, bisection)
    if as_json:
        print_json("ibnue-route/1", {"fabric": fabric_object(subnet, fabric), **as_object(result)})
    else:
        print_rows(facts(result))
        proof_report.print_findings(made.proof)
        if output is not None and made.proof.certified:
            hint(f"next: ibnue check {fabric} {output}; ibnue lab {fabric} rehearses them")
    return 0 if made.proof.certified else FINDING


def read(fabric: str, earlier: reroute_options.Previous | None) -> tuple[Fabric, Fabric]:
    """Read the fabric, apply the faults, and read the fabric of the earlier tables.

    Returns
    -------
    subnet : Fabric
        The fabric with the faults.
    whole : Fabric
        The fabric of the earlier tables: the fabric of ``--was`` if given, otherwise the fabric without the faults.
    """
    whole = fabric_argument.read(fabric)
    subnet = fabric_argument.broken(whole)
    if earlier is not None and earlier.was is not None:
        whole = fabric_argument.read(earlier.was)
    return subnet, whole


def effort_for_budget(budget: float, options: EngineOptions, fabric: Fabric) -> EngineOptions:
    """Return the engine options with an effort that is estimated to fit into a budget of CPU seconds.

    Raises
    ------
    OptionError
        The budget is too small, or ``--effort`` is given too.
    """
    from routing.engines.budget import effort_within

    if engine_options.is_given("effort"):
        raise OptionError("--effort and --budget both set the effort", remedy="give one of them")
    return replace(options, effort=effort_within(fabric, budget))


@dataclass(frozen=True)
class Result:
    """Result of ``ibnue route``: the tables, their proof and quality, and the files written."""

    tables: VerifiedTables
    quality: Quality
    seconds: Mapping[str, float]
    files: Sequence[Path]
    rerouted: Rerouted | None
    bisection_before: float | None
    """Bisection rate of the earlier tables on their fabric.  None without earlier tables, and NaN with fewer than two
    end ports.
    """

    @property
    def replies_at_offset(self) -> bool:
        """Whether replies are safe only if each reply goes to the same LID offset as its request.

        The LID offset is the difference between a LID and the lowest LID of its port.
        """
        from routing.deadlock.offset_replies import replies_need_offset

        return replies_need_offset(self.tables.fabric, self.tables.routing, self.tables.proof)

    def kept(self, rerouted: Rerouted) -> CapacityKept:
        """Return the rates of the re-routed tables and of tables from scratch, both divided by the rates of the earlier
        tables.
        """
        from routing.quality import bisection_share
        from routing.reroute import CapacityKept

        fresh = None if rerouted.fresh is None else bisection_share(self.tables.fabric, rerouted.fresh)
        bisection = self._kept(self.quality.bisection_mean)
        return CapacityKept(rerouted.kept, bisection, rerouted.fresh_kept, self._kept(fresh))

    def _kept(self, bisection: float | None) -> float | None:
        kept = bisection / self.bisection_before if bisection is not None and self.bisection_before else math.nan
        return kept if math.isfinite(kept) else None


@contextmanager
def step(text: str, seconds: dict[str, float], name: str) -> Iterator[None]:
    """Show a step on the terminal while it runs, and store its duration in seconds as ``seconds[name]``."""
    started = time.perf_counter()
    with spinner(text):
        yield
    seconds[name] = time.perf_counter() - started


def write(output: Path | None, tables: VerifiedTables) -> list[Path]:
    """Write the tables into the output folder, and return the paths of all files in this folder.  If ``output`` is
    None, write nothing.
    """
    if output is None:
        return []
    from routing.formats.atomic import make_parents
    from routing.formats.table_files import write_tables

    make_parents(output)
    write_tables(output, tables.fabric, tables.routing, tables.proof)
    return sorted(output.iterdir())


def facts(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the summary of the run as rows of a name and a text."""
    routing, quality = result.tables.routing, result.quality
    chosen = routing.provenance.options.get("chosen")
    yield "engine", routing.provenance.engine + (f": {chosen}" if chosen else "")
    yield "fabric", proof_report.fabric_line(result.tables.fabric)
    if result.rerouted is not None:
        yield from reroute_options.facts(result.rerouted, result.kept(result.rerouted))
    # If the tables need one VL, the report says "1 needed".  A higher number is reported as "at most N needed", because
    # a better search might find tables with fewer VLs.
    yield "VLs", f"{'' if routing.vls_needed == 1 else 'at most '}{routing.vls_needed} needed, {routing.vls} used"
    if "fallback" in routing.provenance.options:
        yield "paths", f"{routing.provenance.options['fallback']}: other paths were not found with this number of VLs"
    yield from proof_report.facts(result.tables.proof)
    if result.replies_at_offset:
        yield proof_report.REPLIES_AT_OFFSET
    elif "replies" in routing.provenance.options and result.tables.proof.strength != "reversible":
        yield "replies", str(routing.provenance.options["replies"])
    yield "hops", f"{quality.hops_mean:.2f} mean, {quality.hops_max} most, between the switches of two CAs"
    yield "all-to-all", proof_report.percentage(quality.all_to_all)
    yield from parts_facts(quality)
    yield "bisection", proof_report.percentage(quality.bisection_mean)
    yield from proof_report.part_facts(result.tables.fabric)
    if result.seconds:
        yield "seconds", ", ".join(f"{name} {seconds:.2f}" for name, seconds in result.seconds.items())
    if result.files:
        from routing.formats.table_files import AUTO_BYTES, FORMATS

        names = [path.name for path in result.files]
        yield "files", f"{result.files[0].parent}/: {', '.join(names)}"
        large = [name for name, form in FORMATS.items() if form.file not in names]
        if large:
            how = f"tables.write(DIR, formats={large}) of the Python library writes them"
            listed = ", ".join(FORMATS[name].file for name in large)
            yield "not written", f"{listed}: over {AUTO_BYTES >> 20} MB; {how}"


def as_object(result: Result) -> dict[str, Any]:
    """Return the summary of the run as an object for ``--json``."""
    routing = result.tables.routing
    return {
        **proof_report.as_object(result.tables.proof),
        "engine": routing.provenance.engine,
        "options": routing.provenance.options,
        "vls_needed": routing.vls_needed,
        "vls": routing.vls,
        "replies_at_offset": result.replies_at_offset,
        "quality": result.quality.as_dict(),
        "phase_seconds": result.seconds,
        "files": [str(path) for path in result.files],
        "rerouted": None
        if result.rerouted is None
        else reroute_options.as_object(result.rerouted, result.kept(result.rerouted)),
    }
