"""How the results of a sweep are told."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from routing.cli.output import print_facts, print_table, tell
from routing.numerals import number_of, rate_of

if TYPE_CHECKING:
    from routing.sweep.ledger import Record
    from routing.sweep.summary import Comparison, Line

NAMED = 10
"""How many failures and regressions are named."""


@dataclass(frozen=True)
class Report:
    """All that a sweep has to say.

    Attributes
    ----------
    records
        The results that were asked for.
    lines
        Their summary.
    compared
        What became of an earlier ledger's results.
    ran, seconds
        Tasks that this run has done, and how long it took.
    """

    records: Sequence[Record]
    lines: Sequence[Line]
    compared: Comparison | None
    ran: int
    seconds: float

    @property
    def failures(self) -> list[Record]:
        """What was not certified."""
        return [record for record in self.records if not record.result.certified]

    @property
    def versions(self) -> list[str]:
        """Versions of ibnue that the results are from."""
        return sorted({record.version for record in self.records})

    @property
    def of_one_kind(self) -> bool:
        """Whether the same code found all results; live ones are of more code, so that theirs is another version."""
        kinds = {(record.task.mode == "lab", record.version) for record in self.records}
        return len(kinds) == len({live for live, _ in kinds})

    def as_object(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "tasks": len(self.records),
            "ran": self.ran,
            "seconds": self.seconds,
            "versions": self.versions,
            "certified": len(self.records) - len(self.failures),
            "lines": [dataclasses.asdict(line) for line in self.lines],
            "failures": [{"about": str(record.task), **dataclasses.asdict(record.result)} for record in self.failures],
            "comparison": None if self.compared is None else dataclasses.asdict(self.compared),
        }


def show(report: Report, *, by_fabric: bool) -> None:
    """The summary, for people."""
    columns = ["engine", *(["fabric"] if by_fabric else []), "mode"]
    columns += ["cases", "certified", "VLs", "changed", "broken", "a2a", "seconds"]
    print_table(columns, [row(line) for line in report.lines], texts=len(columns) - 7)
    print_facts(facts(report))
    for record in report.failures[:NAMED]:
        tell(f"{record.result.outcome}: {record.task}: {record.result.error or ''}".removesuffix(": "))
    if len(report.failures) > NAMED:
        tell(f"... and {len(report.failures) - NAMED} more")
    regressions = () if report.compared is None else report.compared.regressions
    for worse in regressions[:NAMED]:
        tell(f"worse: {worse.about}: {worse.what} {worse.before} -> {worse.after}")
    if len(regressions) > NAMED:
        tell(f"... and {len(regressions) - NAMED} more")


def row(line: Line) -> list[str]:
    """A line of the summary as a table has it."""

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
        f"{line.seconds:.1f}",
    ]


def facts(report: Report) -> Iterator[tuple[str, str]]:
    """What a table cannot say."""
    kept = len(report.records) - report.ran
    if report.ran:
        ran = f"{number_of(report.ran, 'case')} in {report.seconds:.1f} s, {rate_of(report.ran, report.seconds)}"
        yield "ran", f"{ran}; {number_of(kept, 'was', 'were')} in the ledger"
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
