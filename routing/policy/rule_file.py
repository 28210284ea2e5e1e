"""Read policy files in TOML, whose ``[[rule]]`` tables select ports and set their properties."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, get_args

from routing.errors import OptionError, ParseError, raise_errors
from routing.formats.toml_text import Toml, Where
from routing.policy.model import (
    BREAKER_TIMES,
    EXTRA_MOST,
    HOQ_MOST,
    HOQ_NEVER,
    PROPERTIES,
    ROLES,
    STALL_MOST,
    Breaker,
    BreakerKind,
    Policy,
    Property,
    Role,
    Rule,
    Selector,
    Speed,
    Value,
    hoq_code,
    seconds_text,
)
from routing.rates import SPEED_OF

_SELECTS = ("switch", "ports", "role", "speed")
_SETS = ("hoq_life", "vl_stall_count", "loop_breaker", "deadlock_breaker")
_KEYS = ("name", *_SELECTS, *_SETS, "override")
_TIME = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ns|us|ms|s)", re.ASCII)
_POWER = {"ns": -9, "us": -6, "ms": -3, "s": 0}
_LONGEST = 1e6
"""Longest time that a policy file may contain, in seconds: more than a week."""
_SPEED = re.compile(r"(<=|>=|<|>|=)?\s*(\d+(?:\.\d+)?)", re.ASCII)
_RANGE = re.compile(r"\s*(\d{1,3})\s*(?:-\s*(\d{1,3})\s*)?", re.ASCII)
_LAST_PORT = 254
_LONG = 60
"""Maximum number of characters of a value that an error message shows."""


@dataclass(frozen=True)
class _Location:
    """Location of a rule in its file, and the list to which errors in the rule are added.

    Attributes
    ----------
    file, where
        The file, and the keys and indices that lead to the rule or to a TOML table inside the rule.
    errors
        The errors found so far in the file.
    """

    file: Toml
    where: Where
    errors: list[ParseError]

    def line(self, *where: str) -> int:
        """Return the line of the rule in the file, or the line of a key in the rule."""
        return self.file.line(*self.where, *where) or 1

    def within(self, key: str) -> _Location:
        """Return the location of the subtable that is the value of a key of the rule."""
        return _Location(self.file, (*self.where, key), self.errors)

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Record an error instead of raising it, so that the next value is read."""
        try:
            yield
        except ParseError as error:
            self.errors.append(error)

    def report(self, problem: str, key: str = "", remedy: str | None = None) -> None:
        """Record an error that points at the line of a key of the rule."""
        self.errors.append(self.file.error(problem, *self.where, key, remedy=remedy))

    def refuse(self, problem: str, key: str = "", remedy: str | None = None) -> NoReturn:
        """Raise a :class:`~routing.errors.ParseError` that points at the line of a key of the rule."""
        raise self.file.error(problem, *self.where, key, remedy=remedy)


def read_policy(path: str | Path) -> Policy:
    """Read and check a policy file.

    Raises
    ------
    EnvironmentProblem
        The file cannot be read.
    ParseError
        The file is not TOML, a key is unknown, or a value is out of range.  Or a rule sets no property, or sets two
        breakers, or has the name of another rule.  :class:`~routing.errors.ParseErrors`: there are several such errors.
    """
    file = Toml.read(path)
    remedy = "begin every rule with [[rule]]"
    errors = [file.error(f"unknown key {key!r}", key, remedy=remedy) for key in file.table if key != "rule"]
    rules = file.table.get("rule", [])
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        errors.append(file.error("rule is not a list of tables", "rule", remedy=remedy))
        rules = []
    locations = [_Location(file, ("rule", number), errors) for number in range(len(rules))]
    read = [
        _rule(table, location, number) for number, (table, location) in enumerate(zip(rules, locations, strict=True), 1)
    ]
    names = set[str]()
    for rule, location in zip(read, locations, strict=True):
        if rule.name in names:
            location.report(f"two rules are called {_quoted(rule.name)}", "name", "give each a name of its own")
        names.add(rule.name)
    raise_errors(errors)
    return Policy(str(path), tuple(read))


def _quoted(value: Any) -> str:
    """Return a value in the notation of the file, shortened if the value is long."""
    text = repr(value) if isinstance(value, str | int | float | list | dict) else str(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}..."


def _rule(table: Mapping[str, Any], location: _Location, number: int) -> Rule:
    unknown = [key for key in table if key not in _KEYS]
    for key in unknown:
        location.report(f"unknown key {_quoted(key)}", key, f"known are {', '.join(_KEYS)}")
    name, override = table.get("name", f"rule {number}"), table.get("override", False)
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > _LONG:
        location.report(f"name is {_quoted(name)}", "name", f"write a text of one line, {_LONG} characters at most")
        name = f"rule {number}"
    if not isinstance(override, bool):
        location.report(f"override is {_quoted(override)}", "override", "write true or false")
    values = _values(table, location)
    if not unknown and table.keys().isdisjoint(_SETS):
        location.report(f"{name} sets nothing", remedy=f"set {', '.join(_SETS[:-1])} or {_SETS[-1]}")
    ordered = tuple((what, values[what]) for what in PROPERTIES if what in values)
    lines = tuple((key, location.line(key)) for key in table)
    return Rule(name, location.line(), _selector(table, location), ordered, lines, override)


def _values(table: Mapping[str, Any], location: _Location) -> dict[Property, Value]:
    values: dict[Property, Value] = {}
    if table.keys() >= {"loop_breaker", "deadlock_breaker"}:
        location.report("a rule sets one breaker, not both", "deadlock_breaker", "leave one of them out")
    for key in (key for key in _SETS if key in table):
        with location.collected():
            if key == "hoq_life":
                values["hoq_life"] = _hoq_life(table[key], location)
            elif key == "vl_stall_count":
                stall = _integer(table[key], (1, STALL_MOST), key, location, "; 0 is undefined")
                values["vl_stall_count"] = stall
            else:
                kind: BreakerKind = "loop" if key == "loop_breaker" else "deadlock"
                values["breaker"] = _breaker(table[key], kind, key, location)
    return values


def _integer(value: Any, bounds: tuple[int, int], key: str, location: _Location, more: str = "") -> int:
    least, most = bounds
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        location.refuse(f"{key} is {_quoted(value)}", key, f"write a whole number from {least} to {most}{more}")
    return value


def _hoq_life(value: Any, location: _Location) -> int:
    if value == "never":
        return HOQ_NEVER
    if not isinstance(value, str):
        return _integer(value, (0, HOQ_MOST), "hoq_life", location, ', a time such as "2ms", or "never"')
    seconds = _seconds(value, "hoq_life", location, f', a number from 0 to {HOQ_MOST} without quotes, or "never"')
    try:
        return hoq_code(seconds)
    except OptionError as error:
        location.refuse(error.problem, "hoq_life", error.remedy)


def _seconds(value: Any, key: str, location: _Location, more: str = "") -> float:
    found = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    seconds = 0.0 if found is None else float(f"{found[1]}e{_POWER[found[2]]}")
    if not 0.0 < seconds <= _LONGEST:
        location.refuse(f"{key} is {_quoted(value)}", key, f'write a time such as "100us" or "2ms"{more}')
    return seconds


def _breaker(value: Any, kind: BreakerKind, key: str, location: _Location) -> Breaker:
    if value is False:
        return Breaker("none")
    table = {} if value is True else value
    known = ("on", *list(BREAKER_TIMES)[: 2 if kind == "loop" else 3], *(() if kind == "loop" else ("extra_mtus",)))
    if not isinstance(table, dict):
        location.refuse(f"{key} is {_quoted(value)}", key, f"write true, false or a table of {', '.join(known)}")
    inner = location.within(key)
    for part in table:
        if part not in known:
            inner.refuse(f"unknown key {_quoted(part)} of {key}", part, f"known are {', '.join(known)}")
    if not isinstance(table.get("on", True), bool):
        inner.refuse(f"on is {_quoted(table['on'])}", "on", "write true or false")
    if not table.get("on", True):
        return Breaker("none")
    times = {
        name: _seconds(table[name], name, inner) if name in table else usual for name, usual in BREAKER_TIMES.items()
    }
    extra = _integer(table.get("extra_mtus", 1), (1, EXTRA_MOST), "extra_mtus", inner)
    if times["check_period"] > times["detect_time"]:
        shorter = "detect_time" if "check_period" not in table else "check_period"
        message = f"check_period of {key} ({seconds_text(times['check_period'])}) is longer than detect_time"
        inner.refuse(message, shorter, "check at least once while detecting")
    return Breaker(kind, times["detect_time"], times["check_period"], times["release_period"], extra)


def _selector(table: Mapping[str, Any], location: _Location) -> Selector:
    found: dict[str, Any] = {}
    readers = (
        ("switch", "switches", _texts),
        ("ports", "ports", _ports),
        ("role", "roles", _roles),
        ("speed", "speed", _speed),
    )
    for key, name, read in readers:
        with location.collected():
            if key in table:
                found[name] = read(table[key], location)
    return Selector(**found)


def _roles(value: Any, location: _Location) -> tuple[Role, ...]:
    roles = _texts(value, location, "role")
    for role in roles:
        if role not in ROLES:
            location.report(f"unknown role {_quoted(role)}", "role", f"known are {', '.join(ROLES)}")
    return tuple(role for role in get_args(Role) if role in roles)


def _texts(found: Any, location: _Location, key: str = "switch") -> tuple[str, ...]:
    texts = [found] if isinstance(found, str) else found
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts) or found == "":
        location.refuse(f"{key} is {_quoted(found)}", key, "write a text or a list of texts")
    if not texts:
        location.refuse(f"{key} is empty", key, "leave it out to mean all")
    return tuple(texts)


def _ports(value: Any, location: _Location) -> tuple[int, ...]:
    ports: set[int] = set()
    wrong: Callable[[], NoReturn] = lambda: location.refuse(  # noqa: E731
        f"ports is {_quoted(value)}", "ports", f'write numbers from 1 to {_LAST_PORT}, as [1, 2] or "1-4,7"'
    )
    words = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    for word in words:
        found = _RANGE.fullmatch(str(word)) if not isinstance(word, bool) else None
        if found is None:
            wrong()
        first, last = int(found[1]), int(found[2] or found[1])
        if not 1 <= first <= last <= _LAST_PORT:
            wrong()
        ports.update(range(first, last + 1))
    if not ports:
        wrong()
    return tuple(sorted(ports))


def _speed(value: Any, location: _Location) -> Speed:
    if isinstance(value, str) and value.upper() in SPEED_OF:
        return Speed(lane_speed=SPEED_OF[value.upper()])
    text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    found = _SPEED.fullmatch(text.strip()) if isinstance(text, str) else None
    gigabits = 0.0 if found is None else float(found[2])
    if found is None or not 0.0 < gigabits < math.inf:
        known = 'write a name such as "EDR", or Gb/s over 0 such as 100 or ">=100"'
        location.refuse(f"speed is {_quoted(value)}", "speed", known)
    return Speed(found[1] or "=", gigabits)
