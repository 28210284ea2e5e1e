"""Define the functions of :mod:`ibnue`, each of which corresponds to the command of the same name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

from ibnue.results import Cabling, Check, Drawing, Fabric, Faults, Measures, Simulation, StrPath, Tables, TransitionPlan
from routing import fabric as fabrics
from routing import topologies
from routing.cabling import compare_cabling
from routing.cli import draw as drawing
from routing.cli import fabric_argument, reroute_options
from routing.cli import simulate as simulating
from routing.cli import transition as changing
from routing.cli import whatif as exploring
from routing.deadlock.verdict import decide, worst_case
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import OptionError
from routing.faults import apply_faults, parse_fault
from routing.formats.guid_files import apply_node_names, read_node_name_map
from routing.formats.table_files import SlFiles, read_tables
from routing.publish import verify
from routing.quality import bisection_share
from routing.quality import measure as measure_quality
from routing.reroute import Stability
from routing.simulate.scenario import find_scenario
from routing.tables import Routing
from routing.whatif import Baseline, explore

FabricLike = fabrics.Fabric | StrPath
"""A fabric, a file, or a generator with its arguments such as ``"torus:4x4,cas=2"``."""
TablesLike = Tables | Routing | StrPath
"""Tables, or a file or folder of tables."""
StabilityName = Literal["full", "balanced", "fresh"]
Strength = Literal["forward", "reversible"]


def load(
    source: FabricLike,
    *,
    lmc: int = 0,
    guid2lid: StrPath | None = None,
    node_names: StrPath | None = None,
    faults: Sequence[str] = (),
) -> Fabric:
    """Return a fabric from a file, or from a generator with its arguments.

    Parameters
    ----------
    source
        File in any readable format, or a generator such as ``"torus:4x4,cas=2"``.
    lmc
        LMC for ports without LIDs in the file: each gets 2^LMC LIDs.
    guid2lid
        File guid2lid of OpenSM, from which the LIDs are read.
    node_names
        File with names of devices by GUID (node name map).
    faults
        Faults to apply to the fabric.  The name of a link or device removes it, such as ``"leaf1/36"`` or ``"spine2"``.
        Other faults begin with a word, such as ``"swap"`` (see :func:`routing.faults.parse_fault`).  A single fault can
        be given as a string instead of a list.

    Raises
    ------
    InputError
        There is no such file or generator, or its content or arguments are invalid.
    """
    if isinstance(source, fabrics.Fabric):
        found = source
    else:
        found = fabric_argument.read(str(source), lmc=lmc, guid2lid=None if guid2lid is None else Path(guid2lid))
    if node_names is not None:
        found = apply_node_names(found, read_node_name_map(Path(node_names)))
    if faults:
        found = apply_faults(
            found, [parse_fault(text, found) for text in ([faults] if isinstance(faults, str) else faults)]
        )
    return Fabric.of(found)


def generate(topology: str, *arguments: str | int, **options: Any) -> Fabric:
    """Return a fabric of a common topology, such as ``generate("kary-ntree", 4, 3, cas=2)``.

    Raises
    ------
    OptionError
        The topology or an option does not exist, or the arguments are invalid.
    """
    return Fabric.of(topologies.generate(topology, [str(each) for each in arguments], **options))


def load_tables(
    fabric: FabricLike, path: StrPath, *, sl: StrPath | None = None, sl2vl: StrPath | None = None
) -> Tables:
    """Return the tables of a file or folder: a bundle, tables of ibnue, or dumps of OpenSM.

    Parameters
    ----------
    fabric
        The fabric of the tables.
    path
        The file or folder of tables.
    sl, sl2vl
        Files with service levels and SL2VL tables, for a dump of LFTs.

    Raises
    ------
    InputError, EnvironmentProblem
        The path is missing or unreadable, or the tables belong to another fabric.
    """
    subnet = load(fabric)
    files = SlFiles(None if sl is None else Path(sl), None if sl2vl is None else Path(sl2vl))
    return Tables(subnet, read_tables(Path(path), subnet, files))


def route(
    fabric: FabricLike,
    engine: str | None = None,
    *,
    previous: Tables | None = None,
    stability: StabilityName = "balanced",
    rebalance: int = 0,
    **options: Any,
) -> Tables:
    """Return proven tables of a fabric.

    Parameters
    ----------
    fabric
        The fabric.
    engine
        Name of the engine.  By default, it is the engine of ``previous`` if known, otherwise ``"updn"``.
    previous
        Earlier tables, from which a re-route computes the new tables.  The fabric of the earlier tables may differ from
        ``fabric``.
    stability
        With ``previous``: how much may change in addition to broken entries: "full" (as little as possible), "balanced"
        (some entries, for better balance) or "fresh" (tables from scratch).
    rebalance
        With ``previous``: how many valid entries may change after the re-route, for better balance.
    **options
        Options of the engine, such as ``vls``, ``seed``, ``effort`` or ``reversible``.

    Raises
    ------
    OptionError
        There is no such engine, or it does not support an option.
    RoutingError
        The fabric does not allow the routing, or the proof fails.
    """
    subnet, given = load(fabric), _engine_options(options)
    if previous is None:
        if rebalance or stability != "balanced":
            raise OptionError("stability and rebalance are about earlier tables", remedy="add previous=TABLES")
        chosen = ENGINES[engine or "updn"]
        made = chosen.route(subnet, given)
        return Tables(subnet, made, verify(subnet, made, chosen, threads=given.threads))
    was, routing = previous.fabric, previous.routing
    chosen = ENGINES[engine or reroute_options.engine_of(routing) or "updn"]
    given = reroute_options.options_for(routing, was, chosen, given, options.__contains__)
    found = reroute_options.reroute(
        (was, routing), chosen, given, subnet, stability=stability, rebalance=rebalance, is_given=options.__contains__
    )
    before = bisection_share(was, routing, threads=given.threads)
    return Tables(subnet, found.routing, found.tables, found, before)


def _engine_options(options: Mapping[str, Any]) -> EngineOptions:
    """Return the options of an engine from keyword arguments, which have the names of the command line.

    Raises
    ------
    OptionError
        An option does not exist, or a value is out of its range.
    """
    known = EngineOptions.__dataclass_fields__
    for name in options:
        if name not in known:
            raise OptionError(f"engines have no option {name!r}", remedy=f"their options are {', '.join(known)}")
    return EngineOptions.of(options)


def check(
    fabric: FabricLike, tables: TablesLike, *, sl: StrPath | None = None, sl2vl: StrPath | None = None, threads: int = 2
) -> Check:
    """Return the verdict on whether tables are complete and free of credit loops.

    Parameters
    ----------
    fabric, tables
        The fabric and its tables.
    sl, sl2vl
        Files with service levels and SL2VL tables, for a dump of LFTs.
    threads
        Number of threads.  It never changes the result.

    Raises
    ------
    InputError
        The tables do not fit the fabric.
    """
    subnet = load(fabric)
    routing = _routing(subnet, tables, sl, sl2vl)
    return Check(subnet, routing, decide(subnet, routing, threads=threads))


def measure(
    fabric: FabricLike, tables: TablesLike, *, patterns: int = 100, seed: int = 1, threads: int = 2
) -> Measures:
    """Return the quality figures of tables: hops, loads and rates.

    Parameters
    ----------
    fabric, tables
        The fabric and its tables.
    patterns
        Number of random bisections, shifts and permutations.
    seed
        Seed of the patterns.
    threads
        Number of threads.  It never changes the result.

    Raises
    ------
    InputError
        The tables do not fit the fabric.
    """
    subnet = load(fabric)
    routing = _routing(subnet, tables)
    counts = {"bisections": patterns, "shifts": patterns, "permutations": patterns}
    figures = measure_quality(subnet, routing, seed=seed, stretches=True, threads=threads, **counts)
    return Measures(subnet, routing, figures)


def whatif(
    fabric: FabricLike,
    engine: str | None = None,
    *,
    tables: TablesLike | None = None,
    links: int | Literal["all"] | None = None,
    switches: int | Literal["all"] | None = None,
    cas: int | Literal["all"] | None = None,
    faults: Sequence[str] = (),
    stability: StabilityName = "balanced",
    jobs: int = 1,
    **options: Any,
) -> Faults:
    """Apply faults to a fabric one by one.  For each fault, re-route the tables, and prove and measure the new tables.

    Parameters
    ----------
    fabric
        The fabric.
    engine
        Name of the engine.  By default, it is the engine of ``tables`` if known, otherwise ``"updn"``.
    tables
        Tables in force.  By default the engine computes them.
    links, switches, cas
        How many links, switches and CAs to break, one at a time: ``"all"``, or a number of random ones.  If neither one
        of these three arguments nor ``faults`` is given, each link is broken alone.
    faults
        Names of further faults, each of which is applied alone.
    stability
        How much may change in addition to broken entries: "full" (as little as possible), "balanced" (some entries, for
        better balance) or "fresh" (tables from scratch).
    jobs
        Number of processes.
    **options
        Options of the engine.

    Raises
    ------
    OptionError
        A fault, the engine or an option does not exist.
    RoutingError
        The fabric without faults cannot be routed, or its tables are not proven.
    """
    subnet, given = load(fabric), _engine_options(options)
    routing = None if tables is None else worst_case(_routing(subnet, tables))
    made = None if routing is None else reroute_options.engine_of(routing)
    chosen = ENGINES[engine or made or "updn"]
    if routing is not None:
        given = reroute_options.options_for(routing, subnet, chosen, given, options.__contains__)
        if stability != "fresh":
            reroute_options.check_same(routing, subnet, chosen, given, "tables", is_given=options.__contains__)
    counts = {"links": _count(links), "switches": _count(switches), "cas": _count(cas)}
    scenarios = list(
        exploring.choose(
            subnet, seed=given.seed, samples=(), kinds=("link",), groups=None, named=faults, lists=(),
            together=False, **counts,
        )
    )  # fmt: skip
    baseline = Baseline.of(subnet, chosen, given, routing=routing, stability=Stability(stability))
    return Faults(baseline, tuple(explore(baseline, scenarios, jobs=jobs)))


def _count(parts: int | Literal["all"] | None) -> int | None:
    """Convert a number of links or devices, or ``"all"``, to the number that the command uses.  -1 stands for all."""
    if (isinstance(parts, Integral) and parts < 0) or (isinstance(parts, str) and parts != "all"):
        raise OptionError(f"{parts!r} is neither all nor a number", remedy='use "all", or a number from 0')
    return -1 if parts == "all" else parts


def compare(plan: FabricLike, real: FabricLike) -> Cabling:
    """Compare a real fabric with its plan: swapped, missing and extra cables, renamed and replaced devices.

    Parameters
    ----------
    plan, real
        The plan and the real fabric.

    Raises
    ------
    InputError
        The fabrics have no device in common.
    """
    planned, found = load(plan), load(real)
    return Cabling(planned, found, compare_cabling(planned, found))


def transition(
    fabric: FabricLike,
    old: TablesLike,
    new: TablesLike,
    *,
    old_fabric: FabricLike | None = None,
    require: Strength = "forward",
    rounds: int = 64,
    max_vls: int = 8,
    threads: int = 2,
) -> TransitionPlan:
    """Return whether old tables can be replaced by new tables while traffic runs, and in which order.

    Parameters
    ----------
    fabric
        The present fabric, to which the new tables belong.
    old, new
        The old and the new tables.
    old_fabric
        Fabric of the old tables.  By default it is the fabric of ``old`` if that is :class:`Tables`, otherwise
        ``fabric``.
    require
        Traffic that has to be safe: "forward" for requests, "reversible" for requests and replies.
    rounds
        Largest number of rounds.  0: no rounds are searched for.
    max_vls
        Number of data VLs that every port has.  The search for a Double Scheme may use all these VLs.  A Double Scheme
        is an update that drains first one set of LIDs and then all other LIDs.
    threads
        Number of threads.  It never changes the result.

    Raises
    ------
    InputError
        The tables do not fit their fabrics.
    """
    subnet = load(fabric)
    earlier = load(old_fabric) if old_fabric is not None else old.fabric if isinstance(old, Tables) else subnet
    before, after = _routing(earlier, old), _routing(subnet, new)
    return TransitionPlan(
        *changing.prove_change(
            (earlier, before), (subnet, after), require=require, rounds=rounds, max_vls=max_vls, threads=threads
        )
    )


def simulate(scenario: str, *, cases: Sequence[str] = ()) -> Simulation:
    """Simulate a scenario packet by packet: a scenario that is included in ibnue, or a TOML file.

    Parameters
    ----------
    scenario
        Name of the scenario, or the file.
    cases
        Names of the cases to run.  If empty, all cases run.

    Raises
    ------
    InputError
        There is no such scenario or case, or the file is invalid.
    """
    chosen = find_scenario(scenario)
    return Simulation(chosen, tuple(simulating.run_cases(chosen, tuple(cases))))


def draw(fabric: FabricLike, tables: TablesLike | None = None, *, faults: Sequence[str] = ()) -> Drawing:
    """Return a picture of a fabric, and of the load and the credit loop of its tables.

    Parameters
    ----------
    fabric
        The fabric.
    tables
        Tables, or None.  With ``faults``, these are tables of the fabric that remains after the faults.
    faults
        Faults by name.  The parts that they break are drawn as lost.

    Raises
    ------
    InputError
        A fault does not exist, or the tables do not fit the fabric.
    """
    whole = load(fabric)
    left = load(whole, faults=faults)
    routing = None if tables is None else _routing(left, tables)
    report, picture = drawing.report_of(whole, left, routing)
    return Drawing(picture, report.summary)


def _routing(fabric: Fabric, tables: TablesLike, sl: StrPath | None = None, sl2vl: StrPath | None = None) -> Routing:
    """Return the tables that an argument gives as an object, a file or a folder.

    Raise an error if the tables do not fit the fabric.

    Raises
    ------
    TableError
        The tables do not fit the fabric.
    OptionError
        ``sl`` or ``sl2vl`` is given, but the tables are not in a file.
    """
    if not isinstance(tables, Tables | Routing):
        return load_tables(fabric, tables, sl=sl, sl2vl=sl2vl).routing
    if sl is not None or sl2vl is not None:
        raise OptionError("sl and sl2vl need a dump of LFTs", remedy="leave them out")
    routing = tables.routing if isinstance(tables, Tables) else tables
    routing.check_shapes(fabric)
    return routing
