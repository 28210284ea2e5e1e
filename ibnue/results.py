"""Define the results of the functions of :mod:`ibnue`: values with a summary, tables and pictures."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from routing import fabric as fabrics
from routing.cabling import Comparison
from routing.cli import check, compare, fabric, quality, route, simulate, transition, whatif
from routing.deadlock.plan_file import write_plan
from routing.deadlock.proof import Proof
from routing.deadlock.transition import Transition
from routing.deadlock.verdict import Verdict
from routing.deadlock.witness import CreditLoop
from routing.draw import Picture, Report, dot_text, picture_of, svg_text
from routing.draw.fabric_report import entry_table, link_table
from routing.draw.page import cable_table
from routing.errors import EnvironmentProblem, OptionError
from routing.formats.atomic import write_text_atomically
from routing.formats.csv_table import Table
from routing.formats.fabric_files import write_fabric
from routing.formats.table_files import write_tables
from routing.publish import VerifiedTables
from routing.quality import Quality
from routing.quality import measure as measure_quality
from routing.reroute import Rerouted
from routing.reroute.installed import Installed
from routing.simulate.case_runners import Result as CaseResult
from routing.simulate.scenario import Scenario
from routing.tables import Routing
from routing.whatif import Baseline, Effect

if TYPE_CHECKING:
    import pandas

StrPath = str | os.PathLike[str]


class Result:
    """Base class of all results.

    Subclasses define :meth:`report`, which all other methods use.
    """

    @abstractmethod
    def report(self) -> Report:
        """Return title, summary, tables and picture of the result."""

    def summary(self) -> str:
        """Return the summary of the report as text.  Each line has the name of a fact, and then the fact itself."""
        rows = self.report().summary
        wide = max((len(name) for name, _ in rows), default=0)
        return "\n".join(f"{name:<{wide}}  {text}".rstrip() for name, text in rows)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.report().title}>"

    def _repr_html_(self) -> str:
        rows = self.report().summary
        cells = "".join(f"<tr><th style='text-align:left'>{escape(n)}</th><td>{escape(t)}</td></tr>" for n, t in rows)
        return f"<table>{cells}</table>"

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the main table of the result as a pandas data frame.

        Raises
        ------
        EnvironmentProblem
            pandas is not installed.
        OptionError
            The result has no table.
        """
        try:
            import pandas  # noqa: PLC0415 - an optional package
        except ImportError:
            raise EnvironmentProblem(
                "to_dataframe() needs pandas, which is not installed: pip install pandas"
            ) from None
        table = self._table()
        return pandas.DataFrame.from_records(list(table.rows), columns=list(table.columns))

    def _table(self) -> Table:
        """Return the first table of the report, or raise OptionError if the report has no table."""
        tables = self.report().tables
        if not tables:
            raise OptionError(f"{type(self).__name__} has no table")
        return tables[0]

    def save(self, path: StrPath) -> None:
        """Write the result as a page (``.html``), or write its main table (``.csv``).

        Raises
        ------
        OptionError
            The file has another suffix.
        EnvironmentProblem
            The file cannot be written.
        """
        self.report().write(Path(path))


class Fabric(fabrics.Fabric, Result):
    """A :class:`routing.fabric.Fabric` that also has the methods of :class:`Result`.

    :func:`ibnue.load` and :func:`ibnue.generate` return such a fabric.  The main table has one row for each link.
    """

    @classmethod
    def of(cls, value: fabrics.Fabric) -> Fabric:
        """Convert a fabric of ``routing`` to a fabric of ``ibnue``.  The two fabrics share all data."""
        if isinstance(value, cls):
            return value
        own = cls.__new__(cls)
        own.__dict__.update(value.__dict__)
        return own

    def report(self) -> Report:
        """Return a report with figures about the fabric, a table of the links, and a picture of the fabric."""
        rows = tuple(fabric.facts(self, fabric.describe(self)))
        return Report(self.name, rows, (link_table(self),), lambda: picture_of(self))

    def write(self, path: StrPath) -> None:
        """Write the fabric as a file: ``.net`` (ibsim), ``.json`` or ``.graphml``, also with ``.gz``.

        Raises
        ------
        OptionError, FabricError
            The suffix is unknown, or the format cannot represent the fabric.
        EnvironmentProblem
            The file cannot be written.
        """
        write_fabric(self, Path(path))


@dataclass(frozen=True, eq=False, repr=False)
class Tables(Result):
    """Forwarding tables, SLs and SL2VL tables of a fabric.

    Attributes
    ----------
    fabric, routing
        The fabric and its tables.
    verified
        The tables with their proof, if :func:`ibnue.route` has computed the tables; None for tables from a file.
    rerouted
        Report on the change of earlier tables; None without earlier tables.
    bisection_before
        Bisection rate of the earlier tables on their fabric; None without earlier tables.
    """

    fabric: Fabric
    routing: Routing
    verified: VerifiedTables | None = None
    rerouted: Rerouted | None = None
    bisection_before: float | None = None

    @property
    def proof(self) -> Proof:
        """The proof of the tables.

        Raises
        ------
        OptionError
            The tables come from a file, and were not proven.
        """
        if self.verified is None:
            raise OptionError("these tables were read, and not proven", remedy="use ibnue.check(fabric, tables)")
        return self.verified.proof

    @cached_property
    def _quality(self) -> Quality:
        return measure_quality(self.fabric, self.routing, shifts=0, permutations=0)

    def report(self) -> Report:
        """Return the summary that ``ibnue route`` prints, and the picture of the load."""
        title = f"{self.fabric.name}: tables of {self.routing.provenance.engine}"
        rows: Sequence[tuple[str, str]] = [("tables", "read from a file, not proven")]
        if self.verified is not None:
            result = route.Result(self.verified, self._quality, {}, (), self.rerouted, self.bisection_before)
            rows = list(route.facts(result))
        loop = None if self.verified is None else self.verified.proof.credit_loop
        return Report(title, tuple(rows), (), lambda: picture_of(self.fabric, self.routing, loop=loop))

    def __repr__(self) -> str:
        return f"<Tables {self.routing!r}{'' if self.verified is None else f' {self.verified.proof!r}'}>"

    def _table(self) -> Table:
        return entry_table(self.fabric, self.routing)

    def save(self, path: StrPath) -> None:
        """Write a page with the load of the cables (``.html``), or all LFT entries (``.csv``)."""
        report = self.report()
        tables = (self._table(),) if Path(path).suffix == ".csv" else ()
        Report(report.title, report.summary, tables, report.picture).write(Path(path))

    def write(self, folder: StrPath, *, formats: Collection[str] | None = None) -> None:
        """Write the tables with their certificate into a folder, for OpenSM and its tools.

        ``formats`` names the formats to write, such as "path-records".  The bundle with tables and certificate is
        always written.  None: the formats that ``ibnue route`` writes.

        Raises
        ------
        OptionError
            The tables come from a file, and were not proven.
        EnvironmentProblem
            The folder cannot be written.
        """
        write_tables(Path(folder), self.fabric, self.routing, self.proof, formats=formats)


@dataclass(frozen=True, eq=False, repr=False)
class Check(Result):
    """Verdict on routing tables.  The data frame has one row for each channel of the credit loop.

    Attributes
    ----------
    fabric, routing
        The fabric and its tables.
    verdict
        The verdict with the proof.
    """

    fabric: Fabric
    routing: Routing
    verdict: Verdict

    @property
    def good(self) -> bool:
        """Whether the tables are complete and free of credit loops.

        If SLs or VLs are unknown, the tables must be free of credit loops with all possible SLs and VLs.
        """
        return self.verdict.certified

    @property
    def loop(self) -> CreditLoop | None:
        """A credit loop of the tables, or a loop that is possible because SLs or VLs are unknown.  None if there is no
        loop.
        """
        return self.verdict.possible_loop or self.verdict.proof.credit_loop

    def report(self) -> Report:
        """Return the report of the check: its verdict, the channels of the credit loop if there is one, and the picture
        of the fabric.
        """
        return check.report_of(self.fabric, self.routing, self.verdict, check.summary(self.fabric, self.verdict))

    def __repr__(self) -> str:
        return f"<Check {self.fabric.name}: loops {self.verdict.loops}, {self.verdict.proof!r}>"


@dataclass(frozen=True, eq=False, repr=False)
class Measures(Result):
    """Quality figures of routing tables.  The main table has one row for each channel, the highest load first.

    Attributes
    ----------
    fabric, routing
        The fabric and its tables.
    quality
        All quality figures.
    """

    fabric: Fabric
    routing: Routing
    quality: Quality

    def report(self) -> Report:
        """Return the figures, the channels by load, and the picture."""
        return quality.report_of(self.fabric, self.routing, self.quality)

    def __repr__(self) -> str:
        figures = self.quality
        rates = f"all-to-all {figures.all_to_all:.3f}, bisection {figures.bisection_mean:.3f}"
        return f"<Measures {self.fabric.name}: {rates}, hops {figures.hops_mean:.2f}>"


@dataclass(frozen=True, eq=False, repr=False)
class Faults(Result):
    """Effects of fault scenarios.  The main table has one row for each scenario, the most severe scenario first.

    Attributes
    ----------
    baseline
        Fabric, tables and options before any fault.
    effects
        The effects, in the order of the scenarios.
    """

    baseline: Baseline
    effects: tuple[Effect, ...]

    def report(self) -> Report:
        """Return the summary, the effects, and a picture.

        In the picture, each cable shows the all-to-all loss that the failure of this cable alone causes.
        """
        return whatif.report_of(self.baseline, self.effects)

    def __repr__(self) -> str:
        certified = sum(effect.certified for effect in self.effects)
        return f"<Faults {self.baseline.published.fabric.name}: {certified} of {len(self.effects)} certified>"


@dataclass(frozen=True, eq=False, repr=False)
class Cabling(Result):
    """Differences between a plan and a real fabric.  The main table has one row for each difference.

    Attributes
    ----------
    plan, real
        The plan and the real fabric.
    comparison
        The findings of the comparison.
    """

    plan: Fabric
    real: Fabric
    comparison: Comparison

    @property
    def same(self) -> bool:
        """Whether the real fabric is cabled as planned.  Renamed and replaced devices are allowed."""
        return self.comparison.same

    def report(self) -> Report:
        """Return the counts, and a table of all findings."""
        return compare.report_of(f"{self.real.name} compared with {self.plan.name}", self.comparison)

    def __repr__(self) -> str:
        found = self.comparison
        return f"<Cabling {self.real.name}: {found.matched} devices in both, {len(found.cables)} findings about cables>"


@dataclass(frozen=True, eq=False, repr=False)
class TransitionPlan(Result):
    """Verdict on the change from old to new routing tables.  The main table lists the LFT blocks of each round.

    Attributes
    ----------
    sides
        Old and new tables.  In both, a row belongs to the same switch, and a column to the same LID.
    transition
        The verdict, and the rounds if there are any.
    assumed
        Assumption about tables with unknown SLs or VLs.  None if all are known.
    """

    sides: Installed
    transition: Transition
    assumed: str | None

    @property
    def safe(self) -> bool:
        """Whether the change is proven safe, in any order or in the rounds of the plan."""
        return self.transition.safe

    def report(self) -> Report:
        """Return the verdict, and the LFT blocks of each round."""
        return transition.report_of(self.sides.fabric, self.transition, self.assumed)

    def __repr__(self) -> str:
        return f"<TransitionPlan {self.sides.fabric.name}: {self.transition.verdict}>"

    def write(self, path: StrPath) -> None:
        """Write the plan as JSON (``ibnue transition --plan``)."""
        write_plan(Path(path), self.sides.fabric, self.sides.old, self.sides.new, self.transition)


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Result):
    """Results of a scenario.  The main table has one row for each case.

    Attributes
    ----------
    scenario
        The scenario.
    results
        The results of its cases.
    """

    scenario: Scenario
    results: tuple[CaseResult, ...]

    @property
    def good(self) -> bool:
        """Whether all results are as the scenario expects."""
        return all(result.right for result in self.results)

    def report(self) -> Report:
        """Return the scenario and its cases."""
        return simulate.report_of(self.scenario, list(self.results))

    def __repr__(self) -> str:
        right = sum(result.right for result in self.results)
        return f"<Simulation {self.scenario.name}: {right} of {len(self.results)} as expected>"


@dataclass(frozen=True, eq=False, repr=False)
class Drawing(Result):
    """Picture of a fabric and its routing tables.  The main table has one row for each cable between switches.

    A notebook shows the picture.

    Attributes
    ----------
    picture
        Contents of the picture.
    facts
        Facts about the fabric and the tables, as rows of a name and a text.
    """

    picture: Picture
    facts: tuple[tuple[str, str], ...] = field(default=())

    def report(self) -> Report:
        """Return the verdict on the tables, and the picture."""
        return Report(self.picture.fabric.name, self.facts, (), lambda: self.picture)

    def _table(self) -> Table:
        return cable_table(self.picture)

    def svg(self) -> str:
        """Return the picture as an SVG document."""
        return svg_text(self.picture, self.picture.fabric.name)

    def dot(self) -> str:
        """Return the picture as a DOT graph."""
        return dot_text(self.picture, self.picture.fabric.name)

    def _repr_html_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"<Drawing {self.picture.fabric.name}: {self.picture.layout.kind}>"

    def save(self, path: StrPath) -> None:
        """Write the picture as a page (``.html``), ``.svg`` or ``.dot``, or write the cables as ``.csv``.

        Raises
        ------
        OptionError
            The file has another suffix.
        EnvironmentProblem
            The file cannot be written.
        """
        suffix, makers = Path(path).suffix, {".svg": self.svg, ".dot": self.dot}
        if suffix in makers:
            write_text_atomically(Path(path), makers[suffix]())
        else:
            report = self.report()
            tables = (self._table(),) if suffix == ".csv" else ()
            Report(report.title, report.summary, tables, report.picture).write(Path(path))
