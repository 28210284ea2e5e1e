"""``ibnue simulate``: run a scenario, and compare the results with its expectations."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from routing.cli.command import FINDING
from routing.cli.fabric_argument import given, name_map_option, read
from routing.cli.output import echo_lines, json_option, print_json, print_rows, print_table, spinner
from routing.cli.report_options import report_options, write_reports
from routing.cli.simulate_sweep import sweep_loads, sweep_options
from routing.errors import OptionError

if TYPE_CHECKING:
    from routing.draw.report import Report
    from routing.simulate.case_runners import Result
    from routing.simulate.scenario import Scenario


def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return matching names of scenarios, and files.  Shells call this function to complete SCENARIO."""
    from routing.simulate.scenario import scenarios

    return [CompletionItem(name) for name in scenarios() if name.startswith(incomplete)] + [
        CompletionItem(incomplete, type="file")
    ]


@click.command()
@click.argument("scenario", required=False, shell_complete=complete)
@click.option("--list", "listing", is_flag=True, help="List the scenarios.")
@click.option("--case", "names", multiple=True, metavar="NAME", help="Run only this case; repeatable.")
@click.option("--plot", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Folder for a chart of every case as SVG: buffers and throughput over time, or accepted "
              "load over offered load.")  # fmt: skip
@click.option("--trace", is_flag=True, help="Report each drop and each action of a deadlock breaker, with its time.")
@click.option("--sweep", is_flag=True, help="Measure latency and throughput over load; SCENARIO is then a fabric.")
@sweep_options
@name_map_option
@report_options
@json_option
def simulate(
    *, scenario: str | None, listing: bool, names: tuple[str, ...], plot: Path | None, trace: bool, sweep: bool,
    as_json: bool, **sweeping: Any,
) -> int:  # fmt: skip
    """Simulate a SCENARIO packet by packet.  SCENARIO is the name of a scenario of ibnue, or a TOML file.

    \b
    ibnue simulate --list
    ibnue simulate one-vl-ring
    ibnue simulate torus:4x4 --sweep -e nue -e updn --loads 0.2,0.5

    Exit status 1 if a result differs from what the scenario expects.

    With --sweep, SCENARIO is a fabric instead: a file, or a generator such as torus:8x8,cas=1.  Its CAs send at several
    loads.  The command then prints the accepted load and the latency after the warm-up, with 95 % confidence intervals
    over seeds.
    """
    from routing.simulate.scenario import find_scenario

    ctx = click.get_current_context()
    if sweep:
        if scenario is None or listing or names or trace:
            raise click.UsageError("--sweep takes a fabric, and cannot be combined with --list, --case or --trace", ctx)
        return sweep_loads(read(scenario), sweeping, plot, source=scenario, as_json=as_json)
    refuse_sweep_options(ctx, sweeping)
    if listing == (scenario is not None):
        raise click.UsageError("give either a scenario or --list", ctx)
    if listing and (names or plot is not None or trace):
        raise click.UsageError("--list runs nothing", ctx)
    if scenario is None:
        return show_list(as_json)
    chosen = with_node_names(find_scenario(scenario))
    results = run_cases(chosen, names)
    if plot is not None:
        write_charts(plot, results)
    write_reports(lambda: report_of(chosen, results))
    if as_json:
        cases = [as_dict(result, trace=trace) for result in results]
        print_json("ibnue-simulate/1", {"scenario": chosen.name, "title": chosen.title, "case_results": cases})
    else:
        show(chosen, results)
        for result in results if trace else []:
            show_events(result)
    return 0 if all(result.right for result in results) else FINDING


def with_node_names(scenario: Scenario) -> Scenario:
    """Return the scenario with the device names of ``--node-name-map``.

    Raises
    ------
    OptionError
        The option is given, and the fabric of the scenario is not a file.
    """
    names = given().get("node_name_map")
    if names is None:
        return scenario
    if "file" not in scenario.tables["fabric"]:
        raise OptionError(
            f"--node-name-map has no effect on {scenario.name}", remedy="its fabric is not read from a file"
        )
    return dataclasses.replace(scenario, node_names=names)


def run_cases(scenario: Scenario, names: Sequence[str]) -> list[Result]:
    """Run the named cases of a scenario, or all cases if no name is given.

    Raises
    ------
    OptionError
        The scenario has no case of a given name.
    """
    from routing.simulate.case_runners import run_case

    for name in names:
        if name not in [case.name for case in scenario.cases]:
            known = ", ".join(case.name for case in scenario.cases)
            raise OptionError(f"{scenario.name} has no case {name!r}", remedy=f"its cases: {known}")
    results = []
    for case in scenario.cases:
        if not names or case.name in names:
            with spinner(f"{scenario.name}: {case.name}"):
                results.append(run_case(scenario, case))
    return results


def refuse_sweep_options(ctx: click.Context, options: Mapping[str, Any]) -> None:
    """Raise UsageError for an option that has an effect only with ``--sweep``."""
    for param in ctx.command.params:
        if param.name in options and options[param.name] not in (None, ()):
            raise click.UsageError(f"{param.opts[-1]} needs --sweep", ctx)


def show_list(as_json: bool) -> int:
    """Print the name and title of every scenario."""
    from routing.simulate.scenario import find_scenario, scenarios

    known = [find_scenario(name) for name in scenarios()]
    if as_json:
        listed = [{"name": one.name, "title": one.title, "source": one.source} for one in known]
        print_json("ibnue-simulate-list/1", {"scenarios": listed})
    else:
        print_rows([(one.name, one.title) for one in known])
    return 0


def show_events(result: Result) -> None:
    """Print the events of a case, one per line, with the time of each event in packet times."""
    if result.events:
        echo_lines("", f"{result.case}:")
    for time, text in result.events:
        echo_lines(f"{time:10.2f}  {text}")


def as_dict(result: Result, *, trace: bool) -> dict[str, Any]:
    """Return the result of a case as an object for ``--json``."""
    return {
        "case": result.case,
        "ok": result.right,
        "unmet_expectations": list(result.wrong),
        "origin": result.origin,
        "chosen": result.chosen or None,
        "settings": result.stated,
        "figures": result.found,
        "trace": [{"time": time, "text": text} for time, text in result.events] if trace else None,
    }


def short(value: Any) -> str:
    """Format a setting or a figure of a case for the table of results."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {inner(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(inner(item) for item in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def inner(value: Any) -> str:
    """Format a value that is part of a larger value, in parentheses if the value has several items."""
    return f"({short(value)})" if isinstance(value, Mapping | list | tuple) and len(value) > 1 else short(value)


def part(found: Any, wanted: Any) -> Any:
    """Return the part of a result (``found``) for which the scenario states an expectation (``wanted``).

    If both are mappings, only the keys of ``wanted`` are returned.  Otherwise the whole result is returned.
    """
    if isinstance(found, Mapping) and isinstance(wanted, Mapping):
        return {name: part(value, wanted[name]) for name, value in found.items() if name in wanted}
    return found


def describe_result(result: Result) -> str:
    """Format the outcome of a case, and the figures that the scenario expects."""
    wanted = [
        name.removeprefix("at_least_").removeprefix("at_most_") for name in result.expected if name != "tolerance"
    ]
    names = dict.fromkeys([name for name in ("outcome", *wanted) if name in result.found])
    return "; ".join(f"{name.replace('_', ' ')} {short(part(result.found[name], result.expected.get(name)))}"
                     for name in names)  # fmt: skip


def show(scenario: Scenario, results: list[Result]) -> None:
    """Print the scenario and the results of its cases as text."""
    print_rows(summary(scenario))
    columns = 5 if any(result.origin for result in results) else 4
    rows = [(*case_row(result), result.origin or "") for result in results]
    print_table(["case", "given", "found", "", "origin"][:columns], [row[:columns] for row in rows], texts=columns)
    for result in results:
        if result.chosen:
            echo_lines(f"{result.case}: {result.chosen}")
        for line in result.wrong:
            echo_lines(f"{result.case}: {line}")


def summary(scenario: Scenario) -> list[tuple[str, str]]:
    """Return the description of a scenario as rows of a name and a text."""
    source = [("source", scenario.source)] if scenario.source else []
    return [("scenario", f"{scenario.name}: {scenario.title}"), *source]


def case_row(result: Result) -> tuple[str, str, str, str]:
    """Return the result of a case as the cells of the table."""
    given = short({k: v for k, v in result.stated.items() if v != "none"})
    return result.case, given, describe_result(result), "as expected" if result.right else "OTHERWISE"


def report_of(scenario: Scenario, results: list[Result]) -> Report:
    """Return the report on a scenario: its cases, and the expectations that were not met."""
    from routing.draw.report import Report
    from routing.formats.csv_table import Table

    cases = Table("Cases", ("case", "given", "found", "verdict"), tuple(map(case_row, results)))
    wrong = tuple((result.case, line) for result in results for line in result.wrong)
    more = [Table("Not as expected", ("case", "what"), wrong)] if wrong else []
    return Report(f"{scenario.name}: simulation", tuple(summary(scenario)), (cases, *more))


def write_charts(folder: Path, results: list[Result]) -> None:
    """Write an SVG chart for each case that has results over time or over load.

    For each other case, a line on standard error states that there is no chart.
    """
    from routing.formats.atomic import make_folder, write_text_atomically

    make_folder(folder)
    for result in results:
        picture = picture_of(result)
        if picture is None:
            echo_lines(f"no chart of {result.case}: the case has no figures over time or load", err=True)
            continue
        name = "".join(letter if letter.isalnum() else "-" for letter in result.case)
        write_text_atomically(folder / f"{result.scenario}-{name}.svg", picture)


def picture_of(result: Result) -> str | None:
    """Return a chart of a case over time or over offered load as SVG; None if the case has no such results."""
    import numpy as np

    from routing.simulate.chart import chart

    title = f"{result.scenario}: {result.case}"
    given = short({k: v for k, v in result.stated.items() if v != "none"})
    if result.series is not None:
        panels = (
            ("packets in the buffer at the end of a channel", result.series.buffers),
            ("throughput of flows, share of a link", result.series.throughput),
        )
        return chart(title, f"{given}; time in packet times", result.series.time, panels)
    lines = {name: sorted((float(load), share) for load, share in curve.items())
             for name, curve in result.found.get("curves", {}).items()}  # fmt: skip
    if min(map(len, lines.values()), default=0) < 2:
        return None
    loads = np.array([load for load, _ in next(iter(lines.values()))])
    accepted = {name: np.array([share for _, share in line]) for name, line in lines.items()}
    return chart(title, f"{given}; over offered load", loads, [("accepted, share of a CA's link", accepted)])
