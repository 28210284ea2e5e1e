"""Scenarios: files that say what to run and what has to come out.  docs/simulation.md describes the format."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from routing.errors import OptionError, ParseError
from routing.formats.toml_text import Toml, Where

FOLDER = Path(__file__).parent / "scenarios"
"""The scenarios that come with the package; the name of each is that of its file."""

Value = TypeVar("Value")


class Key(NamedTuple):
    """What may stand under a name in a table of a scenario."""

    types: tuple[type, ...]
    needed: bool = False


NUMBER, TEXT, LIST, TABLE, FLAG = (int, float), (str,), (list,), (dict,), (bool,)

TABLES: Mapping[str, Mapping[str, Key]] = {
    "": {
        "title": Key(TEXT, True), "source": Key(TEXT), "about": Key(TEXT), "fabric": Key(TABLE),
        "routing": Key(TABLE), "timing": Key(TABLE), "flow": Key(LIST), "traffic": Key(TABLE), "run": Key(TABLE),
        "case": Key(LIST, True),
    },
    "fabric": {
        "generator": Key(TEXT), "switches": Key(LIST), "cables": Key(LIST), "cas": Key(TABLE), "failed": Key(LIST),
        "faults": Key(LIST), "lmc": Key((int,)),
    },
    "routing": {
        "engine": Key(TEXT), "vls": Key((int, str)), "fill": Key(FLAG), "ways": Key(LIST), "seed": Key((int,)),
        "rule": Key(TEXT),
    },
    "timing": {"packet": Key((int,)), "wire": Key((int,)), "switch": Key((int,)), "buffer": Key(NUMBER)},
    "flow": {
        "name": Key(TEXT), "way": Key(LIST), "then": Key(LIST), "from": Key(TEXT), "to": Key((str, list)),
        "sl": Key((int,)), "process": Key(TEXT), "pattern": Key(TEXT), "load": Key(NUMBER), "burst": Key(NUMBER),
        "message": Key((int,)), "messages": Key((int,)), "start": Key(NUMBER), "stop": Key(NUMBER),
    },
    "traffic": {
        "pattern": Key(TEXT, True), "process": Key(TEXT), "load": Key(NUMBER), "message": Key((int,)),
        "by": Key((int,)), "rounds": Key((int,)), "hot": Key(LIST), "hot_share": Key(NUMBER),
    },
    "run": {"until": Key(NUMBER), "from": Key(NUMBER), "sample": Key(NUMBER), "seed": Key((int,))},
    "case": {
        "name": Key(TEXT, True), "what": Key(TEXT), "arbitration": Key(TEXT), "inputs": Key(TEXT),
        "buffer": Key(NUMBER), "load": Key(NUMBER), "seed": Key((int,)), "until": Key(NUMBER), "without": Key(LIST),
        "engine": Key(TEXT), "vls": Key((int, str)), "remedy": Key(TABLE), "expect": Key(TABLE, True),
        "from": Key(NUMBER), "buffers": Key(LIST), "seeds": Key((int,)), "graph": Key(TABLE), "tables": Key(TEXT),
        "change": Key(TABLE), "wire": Key((int,)), "pauses": Key(TABLE), "fault": Key(LIST), "chain": Key(TABLE),
        "adaptive": Key(TABLE), "loads": Key(LIST),
    },
    "adaptive": {
        "schemes": Key(LIST, True), "vls": Key((int,)), "ca_vls": Key((int,)), "stay": Key(FLAG), "detect": Key(NUMBER),
        "repeat": Key(NUMBER), "lasts": Key(NUMBER), "hold": Key(NUMBER), "sample": Key(NUMBER), "step": Key(NUMBER),
    },
    "pauses": {"xoff": Key(NUMBER, True), "xon": Key(NUMBER, True)},
    "fault": {"cable": Key(LIST, True), "at": Key(NUMBER, True), "until": Key(NUMBER), "reroute": Key(LIST)},
    "graph": {
        "waits": Key(LIST), "movable": Key(LIST), "grid": Key(LIST), "around": Key(FLAG), "one_way": Key(FLAG),
        "turns": Key(LIST),
    },
    "chain": {"channels": Key((int,), True), "escape": Key(LIST, True), "usable": Key((int,))},
    "change": {"how": Key(TEXT, True), "at": Key(NUMBER, True), "every": Key(NUMBER), "order": Key(LIST)},
    "remedy": {
        "hoq": Key(NUMBER), "stall_count": Key((int,)), "lifetime": Key(NUMBER), "breaker": Key(TEXT),
        "detect": Key(NUMBER), "repeat": Key(NUMBER), "release": Key(NUMBER), "extra": Key((int,)),
        "sample": Key(NUMBER), "move_others": Key(FLAG), "release_packets": Key((int,)), "rounds": Key((int,)),
    },
}  # fmt: skip
"""Every table of the format.  What is expected is up to what a case does, see :mod:`routing.simulate.play`."""


@dataclass(frozen=True)
class Case:
    """One run of a scenario.

    Attributes
    ----------
    name
        In the scenario.
    what
        What is done: a key of :data:`routing.simulate.play.PLAYERS`.
    table
        As read.
    expect
        What has to come out.
    where
        Its place in the file.
    """

    name: str
    what: str
    table: Mapping[str, Any]
    expect: Mapping[str, Any]
    where: Where


@dataclass(frozen=True)
class Scenario:
    """A scenario as read: every table has known names and values of the right types, no more is checked.

    Attributes
    ----------
    name
        Of the file.
    file
        As read.
    title, source, about
        For people.
    tables
        ``fabric``, ``routing``, ``timing``, ``traffic``, ``run``: each there, if empty.
    flows
        Of ``[[flow]]``.
    cases
        In the order of the file.
    """

    name: str
    file: Toml
    title: str
    source: str
    about: str
    tables: Mapping[str, Mapping[str, Any]]
    flows: tuple[Mapping[str, Any], ...]
    cases: tuple[Case, ...]

    def error(self, problem: str, *where: str | int, remedy: str | None = None) -> ParseError:
        """An error about the file, or a value in it."""
        return self.file.error(problem, *where, remedy=remedy)

    def choice(self, what: str, text: object, choices: Mapping[str, Value]) -> Value:
        """What a word stands for.

        Raises
        ------
        ParseError
            It stands for nothing.
        """
        if not isinstance(text, str) or text not in choices:
            raise self.error(f"{text!r} is no {what}", remedy=f"use {', '.join(choices)}")
        return choices[text]


def _check_table(file: Toml, table: Mapping[str, Any], kind: str, told: str, *where: str | int) -> None:
    known = TABLES[kind]
    for name, value in table.items():
        if name not in known:
            raise file.error(f"{told}: there is no {name!r}; there are {', '.join(known)}", *where, name)
        types = known[name].types
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            wanted = " or ".join(kind.__name__ for kind in types)
            raise file.error(f"{told}: {name} has to be {wanted}, it is {value!r}", *where, name)
        if isinstance(value, float) and not math.isfinite(value):
            raise file.error(f"{told}: {name} has to be a number, it is {value}", *where, name)
    for name, key in known.items():
        if key.needed and name not in table:
            raise file.error(f"{told}: {name} is missing", *where)


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file.

    Raises
    ------
    ParseError
        It is no TOML, has a name that the format does not know, or a value of the wrong type.
    EnvironmentProblem
        It cannot be read.
    """
    file = Toml.read(path)
    document = file.table
    _check_table(file, document, "", "the file")
    tables = {name: document.get(name, {}) for name in ("fabric", "routing", "timing", "traffic", "run")}
    for name, table in tables.items():
        if name != "traffic" or table:
            _check_table(file, table, name, f"[{name}]", name)
    flows = document.get("flow", [])
    for name, rows in (("flow", flows), ("case", document["case"])):
        for number, row in enumerate(rows):
            if not isinstance(row, dict):
                raise file.error(f"{name} has to be tables, written [[{name}]]", name, number)
            _check_table(file, row, name, f"[[{name}]]", name, number)
    called = [flow.get("name", f"f{number}") for number, flow in enumerate(flows)]
    for number, name in enumerate(called):
        if name in called[:number]:
            raise file.error(f"two flows are called {name!r}", "flow", number)
    cases = [_case(file, row, "case", number) for number, row in enumerate(document["case"])]
    names = [case.name for case in cases]
    for number, case in enumerate(cases):
        if case.name in names[:number]:
            raise file.error("two cases have the same name", *case.where, "name")
    title, source, about = (str(document.get(name, "")) for name in ("title", "source", "about"))
    return Scenario(path.stem, file, title, source, about, tables, tuple(flows), tuple(cases))


def _case(file: Toml, row: Mapping[str, Any], *where: str | int) -> Case:
    of_case = f"of case {row['name']!r}"
    for part in ("remedy", "graph", "change", "pauses", "chain", "adaptive"):
        if part in row:
            _check_table(file, row[part], part, f"{part} {of_case}", *where, part)
    for name, value in row["expect"].items():
        number_wanted = name == "tolerance" or name.startswith(("at_least_", "at_most_"))
        if number_wanted and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise file.error(f"{name} {of_case} has to be a number, it is {value!r}", *where, "expect", name)
    for number, fault in enumerate(row.get("fault", [])):
        if not isinstance(fault, dict):
            raise file.error(f"fault {of_case} has to be tables", *where, "fault")
        _check_table(file, fault, "fault", f"fault {of_case}", *where, "fault", number)
    return Case(row["name"], row.get("what", "packets"), row, row["expect"], where)


def scenarios() -> dict[str, Path]:
    """The scenarios that come with the package, by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


def find_scenario(name: str) -> Scenario:
    """A scenario by its name, or by the path of a file of one's own.

    Raises
    ------
    OptionError
        There is none.
    ParseError
        It does not follow the format.
    """
    known = scenarios()
    if name in known:
        return read_scenario(known[name])
    path = Path(name)
    if path.suffix == ".toml" or path.exists():
        return read_scenario(path)
    near = difflib.get_close_matches(name.lower(), known, 3, 0.6)
    raise OptionError(
        f"there is no scenario {name!r}",
        remedy=f"did you mean {' or '.join(near)}?" if near else "give one of ibnue simulate --list, or a TOML file",
    )
