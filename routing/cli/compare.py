"""``ibnue compare``: compare a planned fabric with a real fabric."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from routing.cli import fabric_argument
from routing.cli.command import FINDING
from routing.cli.output import echo_lines, fabric_object, json_option, print_json, print_rows, spinner
from routing.cli.report_options import report_options, write_reports
from routing.numerals import count_noun

if TYPE_CHECKING:
    from routing.cabling import CableFinding, Comparison, RateFinding
    from routing.draw.report import Report

MOST_LINES = 40
"""Maximum number of findings that are printed; ``--all`` prints all findings."""


@click.command()
@click.argument("plan")
@click.argument("real")
@click.option("--all", "everything", is_flag=True, help=f"List all findings, not only the first {MOST_LINES}.")
@fabric_argument.name_map_option
@report_options
@json_option
def compare(*, plan: str, real: str, everything: bool, as_json: bool) -> int:
    """Compare the fabric REAL with the fabric PLAN: swapped, missing, extra and slower cables, renamed and replaced
    devices.

    \b
    ibnue compare plan.csv ibnetdiscover.txt

    PLAN and REAL are fabrics: files of any format, or generators.  Devices are matched by GUID, by name and by cables.
    Rates are compared if most cables have the planned rate.  Exit status 1 if devices are missing, extra or
    exchanged, or if cables or their rates differ.  Renamed and replaced devices do not change the exit status.
    """
    from routing.cabling import compare_cabling

    with spinner(f"comparing {plan} and {real}"):
        planned, cabled = fabric_argument.read(plan), fabric_argument.read(real)
        found = compare_cabling(planned, cabled)
    write_reports(lambda: report_of(f"{real} compared with {plan}", found))
    if as_json:
        fabrics = {"fabric": fabric_object(cabled, real), "plan": fabric_object(planned, plan)}
        print_json("ibnue-compare/1", {**fabrics, **as_object(found)})
    else:
        show(found, None if everything else MOST_LINES)
    return 0 if found.same else FINDING


def facts(found: Comparison) -> list[tuple[str, str]]:
    """Return the counts of a comparison as rows of a name and a text."""
    rows = [("devices", f"{found.matched} in both")]
    rows += [(name, count_noun(len(lines), "device")) for name, lines in devices(found) if lines]
    others = found.lost_cables or found.new_cables
    planned = "all others as planned" if others else "all as planned"
    rows.append(("cables", planned if not found.cables else f"{count_noun(found.edits, 'cable')} to reconnect"))
    if others:
        rows.append(("their cables", f"{found.lost_cables} of missing devices, {found.new_cables} of extra devices"))
    if found.rates is None:
        rows.append(("rates", "not compared, because most cables have another rate than in the plan"))
    elif found.rates:
        slower = sum(finding.is_slower for finding in found.rates)
        others = len(found.rates) - slower
        parts = [count_noun(slower, "cable") + " slower than planned"] if slower else []
        parts += [count_noun(others, "cable") + " faster than planned"] if others else []
        rows.append(("rates", ", ".join(parts)))
    return rows


def devices(found: Comparison) -> tuple[tuple[str, list[str]], ...]:
    """Return the findings about devices: for each kind, such as "renamed", the kind and one text for each finding."""
    return (
        ("renamed", [f"{a} is called {b}" for a, b in found.renamed]),
        ("replaced", [f"{a} has another GUID" if a == b else f"{b} is in the place of {a}" for a, b in found.replaced]),
        ("exchanged", [f"{a} and {b} have changed places" for a, b in found.exchanged]),
        ("missing device", list(found.missing_devices)),
        ("extra device", list(found.extra_devices)),
    )


def report_of(title: str, found: Comparison) -> Report:
    """Return the report of a comparison: the counts, and a table of all findings."""
    from routing.draw.report import Report
    from routing.formats.csv_table import Table

    rows = [(kind, text, "") for kind, texts in devices(found) for text in texts]
    rows += [(each.kind, "; ".join(each.planned), "; ".join(each.found)) for each in found.cables]
    rows += [(speed_of(each), f"{each.cable}: {each.planned}", each.found) for each in found.rates or ()]
    return Report(title, tuple(facts(found)), (Table("findings", ("finding", "plan", "real"), tuple(rows)),))


def show(found: Comparison, most: int | None) -> None:
    """Print the numbers of findings, and then a line for each finding.

    At most ``most`` lines are printed (None: all).
    """
    print_rows(facts(found))
    lines = [f"{name}: {line}" for name, texts in devices(found) for line in texts]
    lines += [line for finding in found.cables for line in describe(finding)]
    lines += [
        f"{speed_of(each)}: {each.cable} has {each.found} instead of {each.planned}" for each in found.rates or ()
    ]
    if lines:
        echo_lines("", *lines[:most])
    if most is not None and len(lines) > most:
        echo_lines(f"... and {len(lines) - most} lines more (--all)")


def as_object(found: Comparison) -> dict[str, Any]:
    """Return a comparison as an object for ``--json``."""

    def pairs(devices: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
        return [{"plan_device": planned, "real_device": real} for planned, real in devices]

    return {
        "same": found.same,
        "edits": found.edits,
        "matched_devices": found.matched,
        "renamed": pairs(found.renamed),
        "replaced": pairs(found.replaced),
        "exchanged": pairs(found.exchanged),
        "missing_devices": found.missing_devices,
        "extra_devices": found.extra_devices,
        "missing_device_cables": found.lost_cables,
        "extra_device_cables": found.new_cables,
        "cable_findings": [
            {"kind": each.kind, "plan_cables": each.planned, "real_cables": each.found} for each in found.cables
        ],
        "rate_findings": None
        if found.rates is None
        else [
            {"kind": speed_of(each), "cable": each.cable, "plan_rate": each.planned, "real_rate": each.found}
            for each in found.rates
        ],
    }


def speed_of(finding: RateFinding) -> str:
    """Return the kind of a finding about a rate."""
    return "slower" if finding.is_slower else "faster"


def describe(finding: CableFinding) -> list[str]:
    """Return the lines that describe a finding about cables."""
    if finding.kind == "missing":
        return [f"missing: {cable}" for cable in finding.planned]
    if finding.kind == "extra":
        return [f"extra: {cable}" for cable in finding.found]
    planned = [f"  plan: {cable}" for cable in finding.planned]
    return [f"{finding.kind}:", *planned, *(f"  real: {cable}" for cable in finding.found)]
