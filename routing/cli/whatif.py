"""Break parts of a fabric, re-route the tables, and report the effect of each fault: ``ibnue whatif``."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from routing.cli import engine_options, fabric_argument, proof_report, reroute_options
from routing.cli.command import FINDING
from routing.cli.output import (
    echo_lines,
    fabric_object,
    json_option,
    print_json,
    print_rows,
    print_table,
    progress_bar,
    spinner,
)
from routing.cli.param_types import Number
from routing.cli.report_options import report_options, write_reports
from routing.engines import ENGINES
from routing.errors import OptionError
from routing.numerals import DIGITS, count_noun, parse_decimal, per_second

if TYPE_CHECKING:
    from routing.draw.report import Report
    from routing.engines.base import Engine, EngineOptions
    from routing.fabric import Fabric
    from routing.tables import Routing
    from routing.whatif import Baseline, Effect, Limits, Scenario

KINDS = ("link", "ca-link", "switch", "ca", "degrade", "swap", "group")
NAMED = 3
"""Maximum number of names that are printed; further names are only counted."""


def all_or(text: str) -> int:
    """Parse the value of ``--links``, ``--switches`` or ``--cas``: ``all`` or a number.

    A number means that this many links, switches or CAs are chosen at random.  The result for ``all`` is -1.
    """
    number = -1 if text == "all" else parse_decimal(text)
    if number is None:
        raise click.BadParameter(f"{text!r} is neither all nor a number of at most {DIGITS} digits")
    return number


def sample(text: str) -> tuple[int, int | None, float | None]:
    """Parse the value of ``--random``: ``N``, ``N:K`` or ``N:P%``.

    Returns
    -------
    count : int
        Number N of scenarios.
    faults : int or None
        Number K of faults in each scenario; None if P is given.
    rate : float or None
        Fraction P/100 of all components that fails in each scenario; None if P is not given.
    """
    found = re.fullmatch(r"([0-9]{1,18})(?::(?:([0-9]{1,18})|([0-9]+(?:\.[0-9]*)?)%))?", text, re.ASCII)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a sample: write 100, 100:3 or 100:1%")
    if found[3] is not None:
        if float(found[3]) > 100.0:
            raise click.BadParameter(f"{text!r} is not a sample: no more than 100% can break")
        return int(found[1]), None, float(found[3]) / 100.0
    return int(found[1]), int(found[2] or 2), None


def kinds_of(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    """Parse the value of ``--kinds``, which is words separated by commas."""
    kinds = tuple(word.strip() for word in value.split(","))
    for kind in kinds:
        if kind not in KINDS:
            raise click.BadParameter(f"{kind!r} is not one of {', '.join(KINDS)}")
    return kinds


@click.command()
@fabric_argument.fabric_argument
@fabric_argument.sl_options
@click.option("--links", type=all_or, metavar="all|N", help="Break each link between switches, or N random ones.")
@click.option("--switches", type=all_or, metavar="all|N", help="Break each switch, or N random ones.")
@click.option("--cas", type=all_or, metavar="all|N", help="Break each CA and router, or N random ones.")
@click.option("--random", "samples", type=sample, multiple=True, metavar="N[:K|:P%]",
              help="N random scenarios with K faults each (default 2), or P percent of all components.")  # fmt: skip
@click.option("--kinds", callback=kinds_of, default="link", show_default=True, metavar="KIND,...",
              help=f"Kinds of faults for --random: {', '.join(KINDS)}.")  # fmt: skip
@click.option("--groups", type=click.Path(path_type=Path), metavar="FILE",
              help="File of groups of faults that occur together, for --kinds group.")  # fmt: skip
@click.option("--fault", "named", multiple=True, metavar="FAULT", help="A fault by name, such as 'S1/3'.")
@click.option("--list", "lists", type=click.Path(path_type=Path), multiple=True, metavar="FILE",
              help="Faults in this file, each as a separate scenario.")  # fmt: skip
@click.option("--together", is_flag=True, help="Take all faults of --fault and --list as one scenario.")
@click.option("--tables", type=click.Path(path_type=Path),
              help="Tables in force (default: tables of the engine). Without -e, the engine that made these "
              "tables is used.")  # fmt: skip
@click.option("--stability", type=click.Choice(["full", "balanced", "fresh"]), default="balanced", show_default=True,
              help="Which valid entries may change: as few as possible, some for balance, or all.")  # fmt: skip
@click.option("--beside-fresh", is_flag=True,
              help="Also report the loss with tables computed from scratch after the fault.")  # fmt: skip
@click.option("--max-loss", type=Number(0, 1), metavar="SHARE",
              help="Exit status 1 if a scenario costs more than this share of the all-to-all traffic.")  # fmt: skip
@click.option("--require", "required", type=click.Choice(["certified", "connected"]), multiple=True,
              help="Exit status 1 if a scenario leaves tables without a certificate, or a part cut off.")  # fmt: skip
@click.option("--worst", type=click.IntRange(0), default=20, show_default=True, metavar="N",
              help="List the N worst scenarios.")  # fmt: skip
@click.option(
    "-j", "--jobs", type=click.IntRange(1, 1024), metavar="N", help="Number of processes (default: one per core)."
)
@report_options
@engine_options.engine_options
@json_option
def whatif(
    *, fabric: str, engine_name: str, tables: Path | None, stability: str,
    beside_fresh: bool, max_loss: float | None, required: tuple[str, ...], worst: int, jobs: int | None,
    as_json: bool, **given: Any,
) -> int:  # fmt: skip
    """Apply faults to FABRIC, repair the tables, prove them, and report the cost of each fault.

    \b
    ibnue whatif torus:4x4x4 -e nue --links all --switches all
    ibnue whatif fabric.net -e updn --random 1000:3 --kinds link,switch --json
    ibnue whatif fabric.net -e updn --fault 'leaf1/36 - spine1/1' --max-loss 0.1 --require certified

    Without options that choose faults, every single link between switches is one scenario.  A split fabric is not an
    error.  Each part stays routed, and the report lists the devices that are cut off.
    """
    from routing.memory import keep_freed_memory
    from routing.processes import cores
    from routing.reroute import Stability
    from routing.whatif import Baseline, Limits, explore

    chosen = {
        name: given.pop(name) for name in ("links", "switches", "cas", "samples", "kinds", "groups", "named", "lists")
    }
    together, seed = given.pop("together"), given["seed"]
    check_company({**chosen, "tables": tables}, together, as_json)
    if beside_fresh and stability == "fresh":
        raise OptionError("--beside-fresh has no effect with --stability fresh", remedy="leave it out")
    engine, options = ENGINES[engine_name], engine_options.pop_options(given)
    keep_freed_memory()
    with spinner(f"reading {fabric}"):
        subnet = fabric_argument.read(fabric)
    scenarios = list(choose(subnet, seed=seed, together=together, **chosen))
    routing = None
    if tables is not None:
        routing, engine, options = read(tables, subnet, engine_name, options, stability)
    with spinner(f"routing {subnet.name} with {engine.name}"):
        baseline = Baseline.of(
            subnet, engine, options, routing=routing, stability=Stability(stability), beside_fresh=beside_fresh
        )
    limits = Limits(max_loss, "certified" in required, "connected" in required)
    jobs = jobs or cores()
    started = time.perf_counter()
    # A signal may interrupt the loop over the scenarios.  Then `closing` closes the generator that `explore` returns,
    # which ends its worker processes.
    with closing(explore(baseline, scenarios, jobs=jobs)) as found:
        effects = list(watched(found, len(scenarios)))
    seconds = time.perf_counter() - started
    beyond = [effect for effect in effects if limits.exceeded(effect)]
    write_reports(lambda: report_of(baseline, effects, tables))
    if as_json:
        shown = {"fabric": fabric_object(subnet, fabric), **as_object(baseline, tables, effects, limits)}
        print_json("ibnue-whatif/1", shown)
    else:
        print_worst(effects, worst, beside_fresh=beside_fresh)
        print_rows([*facts(baseline, effects, tables), pace(len(effects), seconds, min(jobs, max(len(effects), 1)))])
        print_limits(limits, beyond)
    return FINDING if beyond else 0


def check_company(chosen: Mapping[str, Any], together: bool, as_json: bool) -> None:
    """Raise OptionError if an option has no effect together with the other options.

    ``chosen`` are the options that choose faults and tables, and ``together`` is the value of ``--together``.
    """
    source = click.get_current_context().get_parameter_source
    if chosen["tables"] is None and fabric_argument.has_sl_files():
        raise OptionError("--sl and --sl2vl have no effect without --tables", remedy="add --tables, or leave them out")
    if together and not (chosen["named"] or chosen["lists"]):
        raise OptionError("--together has no effect without --fault or --list", remedy="name faults, or leave it out")
    if as_json and source("worst") is click.core.ParameterSource.COMMANDLINE:
        raise OptionError("--worst has no effect with --json, which has every scenario", remedy="give one of the two")
    for name in ("kinds", "groups"):
        if source(name) is click.core.ParameterSource.COMMANDLINE and not chosen["samples"]:
            raise OptionError(f"--{name} has no effect without --random", remedy="add --random 100, or leave it out")
    if chosen["groups"] is not None and "group" not in chosen["kinds"]:
        raise OptionError("--groups has no effect without --kinds group", remedy="add --kinds group, or leave it out")


def read(
    tables: Path, fabric: Fabric, engine_name: str, options: EngineOptions, stability: str
) -> tuple[Routing, Engine, EngineOptions]:
    """Read the present tables, and choose the engine that repairs these tables.

    Returns
    -------
    Routing
        The tables.  If the files do not state the VLs of the packets, all packets are assumed to use one VL.
    Engine
        The engine of ``-e`` if given, otherwise the engine that computed the tables.
    EngineOptions
        The options of the engine.

    Raises
    ------
    OptionError
        The options contradict the tables.  For example, the options name another engine, another first VL, or fewer VLs
        than the tables use.
    """
    from routing.deadlock.verdict import worst_case

    routing = worst_case(fabric_argument.tables(tables, fabric))
    engine = reroute_options.engine_for(routing, engine_name)
    options = reroute_options.options_for(routing, fabric, engine, options)
    if stability != "fresh":
        reroute_options.check_same(routing, fabric, engine, options, "--tables")
    return routing, engine, options


def choose(
    fabric: Fabric,
    *,
    seed: int,
    links: int | None,
    switches: int | None,
    cas: int | None,
    samples: Sequence[tuple[int, int | None, float | None]],
    kinds: Sequence[str],
    groups: Path | None,
    named: Sequence[str],
    lists: Sequence[Path],
    together: bool,
) -> Iterator[Scenario]:
    """Yield the scenarios (sets of simultaneous faults) that the options describe, in the order of the help text."""
    from routing.faults import every_ca, every_link, every_switch, parse_fault, random_faults, read_faults
    from routing.whatif import Scenario, draw_faults, single_faults

    if links is switches is cas is None and not (samples or named or lists):
        links = -1
    for number, kind, every in ((links, "link", every_link), (switches, "switch", every_switch), (cas, "ca", every_ca)):
        if number is not None:
            yield from single_faults(
                every(fabric) if number < 0 else random_faults(fabric, seed=seed, count=number, kinds=(kind,))
            )
    cards = [] if groups is None else read_faults(groups, fabric)
    for count, several, rate in samples:
        yield from draw_faults(fabric, count, seed=seed, together=several, rate=rate, kinds=kinds, groups=cards)
    report = [parse_fault(text, fabric) for text in named]
    for path in lists:
        report += read_faults(path, fabric)
    yield from ([Scenario(tuple(report))] if together and report else single_faults(report))


def watched(effects: Iterable[Effect], count: int) -> Iterator[Effect]:
    """Yield the effects of the scenarios unchanged, and show a progress bar if standard error is a terminal."""
    with progress_bar("breaking", total=count) as advance:
        for effect in effects:
            yield effect
            advance(1)


def print_worst(effects: Sequence[Effect], worst: int, *, beside_fresh: bool) -> None:
    """Print a table of the scenarios with the most severe effects.  ``worst`` is the maximum number of scenarios."""
    from routing.whatif import severity

    ranked = sorted(effects, key=severity, reverse=True)[:worst]
    if not ranked:
        return
    columns = ["fault", "kind", "proof", "cut off", "how", "VLs", "changed", "broken", "a2a", "loss", "bisection loss"]
    columns += ["fresh"] if beside_fresh else []
    print_table(columns, [row(effect)[: len(columns)] for effect in ranked], texts=5)


def row(effect: Effect) -> list[str]:
    """Return the effect of a scenario as the cells of the table."""
    proof = effect.strength or "" if effect.certified else "NONE"
    count = [str(number) if number is not None else "-" for number in (effect.vls, effect.changed, effect.broken)]
    cut = names(effect.cut_off) or ("" if effect.connected else f"{effect.parts} parts")
    losses = [percent(value) for value in (effect.loss, effect.bisection_loss, effect.fresh_loss)]
    return [first_of(effect.faults), effect.kind, proof, cut, effect.how, *count, share(effect.a2a), *losses]


def share(value: float | None) -> str:
    """Format an all-to-all rate, given as a fraction of the reference rate."""
    return "-" if value is None or not math.isfinite(value) else f"{value:.3f}"


def percent(value: float | None) -> str:
    """Format a loss as a percentage."""
    return "-" if value is None else f"{100.0 * value + 0.0:.1f} %"


def names(every: Sequence[str]) -> str:
    """Format a list of names: the number of names, and the first few names."""
    return f"{len(every)}: {first_of(every)}" if every else ""


def first_of(every: Sequence[str]) -> str:
    """Format the first few names, and the number of further names."""
    more = f" ... and {len(every) - NAMED} more" if len(every) > NAMED else ""
    return (", ".join(every[:NAMED]) or "nothing") + more


def repairs(baseline: Baseline, tables: Path) -> str:
    """Describe which engine and stability the repairs have, and from which tables the repairs start."""
    maker = reroute_options.engine_of(baseline.published.routing) or "another program"
    by = f"by ibnue's engine {baseline.engine.name}, {baseline.stability.value}"
    return f"{by}, of {tables} (made by {maker}); another subnet manager may choose other paths"


def facts(baseline: Baseline, effects: Sequence[Effect], tables: Path | None) -> Iterator[tuple[str, str]]:
    """Yield the summary of all scenarios as rows of a name and a text."""
    from routing.whatif import bridges_and_cut_switches, severity
    from routing.whatif.connectivity import link_names

    before, total = baseline.published, len(effects)
    links, switches = bridges_and_cut_switches(before.fabric)
    yield "fabric", proof_report.fabric_line(before.fabric)
    yield "engine", f"{baseline.engine.name}, {count_noun(before.routing.vls, 'VL')}, all-to-all {share(baseline.a2a)}"
    if tables is not None:
        yield "repairs", repairs(baseline, tables)
    if (note := proof_report.vl_note(before.routing)) is not None:
        yield "assumed", note
    yield "bridges", names(link_names(before.fabric, links)) or "none"
    yield "cut switches", names([before.fabric.labels[row] for row in switches]) or "none"
    if not effects:
        yield "scenarios", "none: no faults were asked for, or the fabric has no parts of this kind"
        return
    yield "connected", f"after {sum(effect.connected for effect in effects)} of {count_noun(total, 'scenario')}"
    yield "certified", f"after {sum(effect.certified for effect in effects)} of {count_noun(total, 'scenario')}"
    yield "tables", ", ".join(f"{count} {how}" for how, count in Counter(e.how for e in effects).most_common())
    repaired = [effect for effect in effects if effect.changed is not None]
    if repaired:
        used = [effect.vls or 0 for effect in repaired]
        changed = [effect.changed or 0 for effect in repaired]
        yield "VLs", f"{min(used)} to {max(used)}"
        yield "changed", f"{sum(changed) / len(changed):.1f} entries mean, {max(changed)} most"
    yield from losses(effects)
    worst: dict[str, Effect] = {}
    for effect in sorted(effects, key=severity, reverse=True):
        worst.setdefault(effect.kind, effect)
    yield "hurts most", "; ".join(_described(effect) for effect in worst.values())


def _described(effect: Effect) -> str:
    """Return the kind and the faults of a scenario.  If the re-route failed, the reason follows."""
    names = first_of(effect.faults).removeprefix(f"{effect.kind} ")
    return f"{effect.kind} {names}" + (f" ({effect.reason})" if effect.how == "failed" else "")


def as_object(baseline: Baseline, tables: Path | None, effects: Sequence[Effect], limits: Limits) -> dict[str, Any]:
    """Return the effects of all scenarios as an object for ``--json``."""
    from routing.whatif import bridges_and_cut_switches
    from routing.whatif.connectivity import link_names

    before = baseline.published
    links, switches = bridges_and_cut_switches(before.fabric)
    return {
        "tables_file": tables,
        "tables_engine": reroute_options.engine_of(before.routing),
        "engine": baseline.engine.name,
        "stability": baseline.stability.value,
        "assumed": proof_report.assumed(proof_report.vl_note(before.routing)),
        "vls": before.routing.vls,
        "all_to_all": baseline.a2a,
        "bridges": link_names(before.fabric, links),
        "cut_switches": [before.fabric.labels[row] for row in switches],
        "scenarios": [{**effect.as_dict(), "limits_exceeded": limits.exceeded(effect)} for effect in effects],
    }


def report_of(baseline: Baseline, effects: Sequence[Effect], tables: Path | None = None) -> Report:
    """Return the report on fault scenarios: their summary, a table of all effects (the worst effect first), and a
    picture of the fabric with the loss at each cable.
    """
    from routing.draw.fabric_report import effect_table, loss_picture
    from routing.draw.report import Report
    from routing.whatif import severity

    fabric, ranked = baseline.published.fabric, sorted(effects, key=severity, reverse=True)
    return Report(
        f"{fabric.name}: faults",
        tuple(facts(baseline, effects, tables)),
        (effect_table(ranked),),
        lambda: loss_picture(fabric, effects),
    )


def losses(effects: Sequence[Effect]) -> Iterator[tuple[str, str]]:
    """Yield up to three rows with the mean and the largest loss over all scenarios where the loss is known: of the
    all-to-all rate, of the bisection rate, and of the all-to-all rate with tables from scratch.  A row is missing if
    its loss is known in no scenario.
    """
    for name, key in (("loss", "loss"), ("bisection", "bisection_loss"), ("fresh", "fresh_loss")):
        found = [(value, effect) for effect in effects if (value := getattr(effect, key)) is not None]
        if found:
            word = "" if name == "loss" else "loss "
            most, where = max(found, key=lambda pair: pair[0])
            mean = sum(value for value, _ in found) / len(found)
            yield name, f"{word}{percent(mean)} mean, {percent(most)} most: {first_of(where.faults)}"


def pace(count: int, seconds: float, jobs: int) -> tuple[str, str]:
    """Return a row on the run time: the number of scenarios, the seconds, and the number of processes."""
    done, rate = count_noun(count, "scenario"), per_second(count, seconds)
    return "seconds", f"{seconds:.2f}, {done}, {rate} on {count_noun(jobs, 'process')}"


def print_limits(limits: Limits, beyond: Sequence[Effect]) -> None:
    """Print the first few scenarios whose effects exceed the user's limits, and the number of further ones."""
    for effect in beyond[:NAMED]:
        echo_lines(f"beyond {' and '.join(limits.exceeded(effect))}: {first_of(effect.faults)}")
    if len(beyond) > NAMED:
        echo_lines(f"... and {len(beyond) - NAMED} more")
