"""Read scenario files, each of which defines simulations (cases) and their expected results.

docs/scenarios.md describes the format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from routing.errors import EnvironmentProblem, InputError, OptionError, ParseError
from routing.formats.toml_text import Toml, Where
from routing.names import similar_or
from routing.simulate.mechanisms.registry import IN_CASES
from routing.simulate.scenario_lint import PACKETS, check_unused_keys
from routing.simulate.scenario_schema import ORIGINS, OUTCOMES, TOLERANCE, check_expected, check_table, check_value

FOLDER = Path(__file__).parent / "scenarios"
"""Folder of the scenario files in this package.  A scenario has the name of its file without the suffix."""

Value = TypeVar("Value")


@dataclass(frozen=True)
class Case:
    """One case of a scenario file: one simulation or analysis with its expected results.

    Attributes
    ----------
    name
        Name of the case, unique in its scenario.
    what
        Kind of the case: a key of :data:`routing.simulate.case_runners.CASE_RUNNERS`.
    table
        Table of the case, as the file states it.
    expect
        Expected figures by name.
    origin
        Origin of the expected figures, one of ``ORIGINS``; None if the file does not state it.
    chosen
        Text about settings that were chosen so that the simulation gives the expected figures, with the range of values
        that gives these figures.  Empty: the file has no such text.
    where
        Location of the case in the file, for error messages.
    """

    name: str
    what: str
    table: Mapping[str, Any]
    expect: Mapping[str, Any]
    origin: str | None
    chosen: str
    where: Where


@dataclass(frozen=True)
class Scenario:
    """Content of a scenario file.

    All tables have known keys and values of the right types.  Other errors are found when a case runs.

    Attributes
    ----------
    name
        Name of the file without suffix.
    file
        The parsed TOML file, from which errors take their line numbers.
    title, source, about
        Descriptions for readers: title, origin and explanation of the scenario.
    tables
        Tables ``fabric``, ``routing``, ``timing``, ``traffic`` and ``run``; empty if the file has no such table.
    flows
        Tables ``[[flow]]``.
    cases
        Cases in the order of the file.
    node_names
        Names of devices by GUID, instead of the names in the fabric file; None: the names in the file apply.
    """

    name: str
    file: Toml
    title: str
    source: str
    about: str
    tables: Mapping[str, Mapping[str, Any]]
    flows: tuple[Mapping[str, Any], ...]
    cases: tuple[Case, ...]
    node_names: Mapping[int, str] | None = None

    def error(self, problem: str, *where: str | int, remedy: str | None = None) -> ParseError:
        """Return an error about the file, or about the value at location ``where`` in it."""
        return self.file.error(problem, *where, remedy=remedy)

    @contextmanager
    def placed(self, *where: str | int, remedy: str | None = None) -> Iterator[None]:
        """Convert input errors in a ``with`` block to errors that name a location in the scenario file.

        Parameters
        ----------
        where
            Location of the value that is being processed.
        remedy
            Advice to print instead of the errors' own advice.  None: the errors' own advice is printed.

        Raises
        ------
        ParseError
            An input error without a line number, or a problem of the environment, occurred.
        """
        try:
            yield
        except InputError as error:
            if error.line is not None:
                raise
            problem = error.problem if error.path is None else f"{error.path}: {error.problem}"
            raise self.error(problem, *where, remedy=remedy or error.remedy) from None
        except EnvironmentProblem as error:
            raise self.error(str(error), *where) from None

    def flow_at(self, flow: Mapping[str, Any], key: str) -> Where:
        """Return the location in the file of a key of one flow, for error messages.

        ``flow`` is one of the tables from :func:`routing.simulate.scenario_setup.flows_of`.
        """
        return ("flow", [flow_name(number, one) for number, one in enumerate(self.flows)].index(flow["name"]), key)

    def choice(self, what: str, text: object, choices: Mapping[str, Value]) -> Value:
        """Return the value that ``choices`` has for ``text``, a word of the file.

        ``what`` describes the word in the error message.

        Raises
        ------
        ParseError
            The word is not among the choices.
        """
        if not isinstance(text, str) or text not in choices:
            raise self.error(f"{text!r} is not a valid {what}", remedy=f"use {', '.join(choices)}")
        return choices[text]


def flow_name(number: int, flow: Mapping[str, Any]) -> str:
    """Return the name of a flow in the results: the name in the file, or "f" and the number of the flow in the file."""
    return str(flow.get("name", f"f{number}"))


def read_scenario(path: Path) -> Scenario:
    """Read and check a scenario file; the cases are not run.

    Raises
    ------
    ParseError
        The file is not valid TOML, has an unknown key, or a value of the wrong type.
    EnvironmentProblem
        The file cannot be read.
    """
    file = Toml.read(path)
    document = file.table
    check_table(file, document, "", "the scenario")
    tables = {name: document.get(name, {}) for name in ("fabric", "routing", "timing", "traffic", "run")}
    for name, table in tables.items():
        if name != "traffic" or table:
            check_table(file, table, name, f"[{name}]", name)
    flows = document.get("flow", [])
    for name, rows in (("flow", flows), ("case", document["case"])):
        for number, row in enumerate(rows):
            if not isinstance(row, dict):
                raise file.error(f"{name} has to be tables, written [[{name}]]", name, number)
            check_table(file, row, name, f"[[{name}]]", name, number)
    called = [flow_name(number, flow) for number, flow in enumerate(flows)]
    for number, name in enumerate(called):
        if name in called[:number]:
            raise file.error(f"two flows are called {name!r}", "flow", number, remedy="rename one of them")
    if "origin" in document:
        _check_origin(file, document["origin"], "origin")
    cases = [_case(file, row, document.get("origin"), "case", number) for number, row in enumerate(document["case"])]
    names = [case.name for case in cases]
    for number, case in enumerate(cases):
        if case.name in names[:number]:
            raise file.error(f"two cases are called {case.name!r}", *case.where, "name", remedy="rename one of them")
    check_unused_keys(file)
    title, source, about = (str(document.get(name, "")) for name in ("title", "source", "about"))
    return Scenario(path.stem, file, title, source, about, tables, tuple(flows), tuple(cases))


def _check_origin(file: Toml, origin: str, *where: str | int) -> None:
    """Raise ParseError if the stated origin of expected figures is none of the allowed words."""
    if origin not in ORIGINS:
        raise file.error(f"{origin!r} is not an origin of figures", *where, remedy=f"use {', '.join(ORIGINS)}")


def _case(file: Toml, row: Mapping[str, Any], origin: str | None, *where: str | int) -> Case:
    """Check the table of one simulation case (``row``), and return the case.

    ``origin`` is the origin of the expected figures if the case itself states no origin.  ``where`` is the location of
    the case in the file.
    """
    if "origin" in row:
        _check_origin(file, row["origin"], *where, "origin")
    of_case = f"of case {row['name']!r}"
    mechanisms = [mechanism.table for mechanism in IN_CASES]
    own = ("remedy", "graph", "change", "pauses", "chain", "adaptive", "workload", "request_grant", "watch")
    for part in (*own, "detection", *mechanisms):
        if part in row:
            check_table(file, row[part], part, f"{part} {of_case}", *where, part)
    if "routing" in row:
        check_table(file, row["routing"], "routing of case", f"routing {of_case}", *where, "routing")
    for name, value in row["expect"].items():
        number_wanted = name == "tolerance" or name.startswith(("at_least_", "at_most_"))
        if number_wanted and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise file.error(f"{name} {of_case} has to be a number, it is {value!r}", *where, "expect", name)
        check_expected(file, value, f"{name} {of_case}", *where, "expect", name)
    if (outcome := row["expect"].get("outcome", OUTCOMES[0])) not in OUTCOMES:
        where_it_is = *where, "expect", "outcome"
        raise file.error(f"{outcome!r} is not an outcome", *where_it_is, remedy=f"use {', '.join(OUTCOMES)}")
    if "tolerance" in row["expect"]:
        check_value(file, row["expect"]["tolerance"], TOLERANCE, f"tolerance {of_case}", *where, "expect", "tolerance")
    for number, fault in enumerate(row.get("fault", [])):
        if not isinstance(fault, dict):
            raise file.error(f"fault {of_case} has to be tables", *where, "fault")
        check_table(file, fault, "fault", f"fault {of_case}", *where, "fault", number)
    return Case(
        row["name"],
        row.get("what", PACKETS),
        row,
        row["expect"],
        row.get("origin", origin),
        row.get("chosen", ""),
        where,
    )


def scenarios() -> dict[str, Path]:
    """Return the paths of the scenario files in this package, by name of the scenario."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


def find_scenario(name: str) -> Scenario:
    """Read a scenario, given the name of a scenario in this package or the path of a file.

    Raises
    ------
    OptionError
        There is no such scenario.
    ParseError
        The file does not follow the format.
    """
    known = scenarios()
    if name in known:
        return read_scenario(known[name])
    path = Path(name)
    if path.suffix == ".toml" or path.exists():
        return read_scenario(path)
    remedy = similar_or("give one of ibnue simulate --list, or a TOML file", name.lower(), known, 3)
    raise OptionError(f"there is no scenario {name!r}", remedy=remedy)
