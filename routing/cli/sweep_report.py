"""Print the results of a sweep as text and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from routing.cli.output import echo_lines, print_rows, print_table
from routing.numerals import count_noun, per_second

if TYPE_CHECKING:
    from routing.draw.report import Report as Page
    from routing.sweep.ledger import Record
    from routing.sweep.summary import Comparison, Line

NAMED = 10
"""Maximum number of failures, and of regressions, that are printed; further failures and regressions are only counted.
"""


@dataclass(frozen=True)
class Report:
    """Results of a sweep that the command reports to the user.

    Attributes
    ----------
    records
        Result of each case that the user asked for.
    lines
        Summary of the results, one line for each engine and mode (method to compute tables after a fault).
    compared
        Comparison with an earlier ledger (file of results), or None.
    ran, seconds
        Number of cases that this command ran, and the elapsed time in seconds.
    """

    records: Sequence[Record]
    lines: Sequence[Line]
    compared: Comparison | None
    ran: int
    seconds: float

    @property
    def failures(self) -> list[Record]:
        """Results of the cases whose tables have no certificate."""
        return [record for record in self.records if not record.result.certified]

    @property
    def versions(self) -> list[str]:
        """Versions of ibnue with which the results were computed."""
        return sorted({record.version for record in self.records})

    @property
    def of_one_kind(self) -> bool:
        """Whether all results with OpenSM have one version of ibnue, and all results without OpenSM have one version.

        The two versions may differ.
        """
        kinds = {(record.task.mode == "lab", record.version) for record in self.records}
        return len(kinds) == len({live for live, _ in kinds})

    def as_object(self) -> dict[str, Any]:
        """Return the report as an object for ``--json``."""
        return {
            "cases": len(self.records),
            "cases_run": self.ran,
            "cases_certified": len(self.records) - len(self.failures),
            "seconds": self.seconds,
            "versions": self.versions,
            "summary": [_line_object(line) for line in self.lines],
            "failures": [_failure_object(record) for record in self.failures],
            "comparison": None if self.compared is None else _comparison_object(self.compared),
        }


def _line_object(line: Line) -> dict[str, Any]:
    return {
        "fabric_name": line.fabric or None,
        "engine": line.target,
        "mode": line.mode,
        "cases": line.cases,
        "outcomes": line.outcomes,
        "vls_needed_max": line.vls_needed,
        "entries_changed": line.changed,
        "entries_broken": line.broken,
        "all_to_all_min": line.a2a_least,
        "all_to_all_loss_mean": line.loss_mean,
        "all_to_all_loss_max": line.loss_most,
        "all_to_all_over_fresh_mean": line.over_fresh_mean,
        "all_to_all_over_fresh_max": line.over_fresh_most,
        "bisection_loss_mean": line.bisection_loss_mean,
        "bisection_loss_max": line.bisection_loss_most,
        "cut_off_max": line.cut_off,
        "seconds": line.seconds,
    }


def _failure_object(record: Record) -> dict[str, Any]:
    task, result = record.task, record.result
    return {
        "case": str(task),
        "id": task.id,
        "fabric_name": task.fabric,
        "engine": str(task.target),
        "mode": task.mode,
        "seed": task.seed,
        "fault": task.fault or None,
        "outcome": result.outcome,
        "error": result.error,
        "entries": result.entries,
        "entries_changed": result.changed,
        "entries_broken": result.broken,
        "vls": result.vls,
        "vls_needed": result.vls_needed,
        "seconds": result.seconds,
    }


def _comparison_object(compared: Comparison) -> dict[str, Any]:
    worse = [
        {"case": each.about, "id": each.task, "property": each.what, "before": each.before, "after": each.after}
        for each in compared.regressions
    ]
    return {
        "regressions": worse,
        "cases_same": compared.same,
        "cases_better": compared.better,
        "cases_other_tables": compared.other_tables,
        "cases_only_before": compared.only_before,
        "cases_only_now": compared.only_now,
    }


def show(report: Report, *, by_fabric: bool) -> None:
    """Print the summary, the first failures and the first regressions as text."""
    columns = ["engine", *(["fabric"] if by_fabric else []), "mode"]
    columns += ["cases", "certified", "VLs", "changed", "broken", "a2a"]
    columns += ["loss", "worst", "over fresh", "bisection", "seconds"]
    print_table(columns, [row(line) for line in report.lines], texts=len(columns) - 11)
    print_rows(facts(report))
    for record in report.failures[:NAMED]:
        echo_lines(f"{record.result.outcome}: {record.task}: {record.result.error or ''}".removesuffix(": "))
    if len(report.failures) > NAMED:
        echo_lines(f"... and {len(report.failures) - NAMED} more")
    regressions = () if report.compared is None else report.compared.regressions
    for worse in regressions[:NAMED]:
        echo_lines(f"worse: {worse.about}: {worse.what} {worse.before} -> {worse.after}")
    if len(regressions) > NAMED:
        echo_lines(f"... and {len(regressions) - NAMED} more")


def page_of(report: Report) -> Page:
    """Return the report with a table of all cases, and a table of the summary by engine and mode (method to compute
    tables after a fault).
    """
    from routing.draw.report import Report as Page
    from routing.formats.csv_table import Table

    cases = [
        {
            "fabric": record.task.fabric,
            "engine": str(record.task.target),
            "fault": record.task.fault,
            "seed": record.task.seed,
            "mode": record.task.mode,
            **{key: value for key, value in dataclasses.asdict(record.result).items() if key != "task"},
        }
        for record in report.records
    ]
    lines = [dataclasses.asdict(line) for line in report.lines]
    return Page("sweep", tuple(facts(report)), (Table.of("Cases", cases), Table.of("Engines", lines)))


def row(line: Line) -> list[str]:
    """Return a line of the summary as the cells of a table."""

    def number(value: float | None, form: str = "{}") -> str:
        return "-" if value is None else form.format(value)

    return [
        line.target,
        *([line.fabric] if line.fabric else []),
        line.mode,
        str(line.cases),
        str(line.outcomes["certified"]),
        number(line.vls_needed),
        number(line.changed),
        number(line.broken),
        number(line.a2a_least, "{:.3f}"),
        number(line.loss_mean, "{:.1%}"),
        number(line.loss_most, "{:.1%}"),
        number(line.over_fresh_most, "{:.1%}"),
        number(line.bisection_loss_mean, "{:.1%}"),
        f"{line.seconds:.1f}",
    ]


def facts(report: Report) -> Iterator[tuple[str, str]]:
    """Yield rows on the whole sweep: its run time, versions of ibnue, certified results, and comparison."""
    kept = len(report.records) - report.ran
    if report.ran:
        ran = f"{count_noun(report.ran, 'case')} in {report.seconds:.1f} s, {per_second(report.ran, report.seconds)}"
        yield "ran", f"{ran}; {count_noun(kept, 'was', 'were')} in the ledger"
    if not report.of_one_kind:
        yield "versions", ", ".join(report.versions)
    failures = len(report.failures)
    yield "certified", f"{len(report.records) - failures} of {len(report.records)}"
    found = report.compared
    if found is not None:
        yield (
            "compared",
            (
                f"{found.same} same, {found.better} better, {found.other_tables} with other tables,"
                f" {len(found.regressions)} worse; {found.only_before} only before, {found.only_now} only now"
            ),
        )
