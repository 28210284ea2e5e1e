"""Read policy files in TOML, whose ``[[rule]]`` tables select ports and set their properties."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, get_args

from routing.errors import OptionError
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
    """Location of a rule in its file, for error messages."""

    file: Toml
    where: Where

    def line(self, *where: str) -> int:
        """Return the line of the rule in the file, or the line of a key in the rule."""
        return self.file.line(*self.where, *where) or 1

    def within(self, key: str) -> _Location:
        """Return the location of the subtable that is the value of a key of the rule."""
        return _Location(self.file, (*self.where, key))

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
        breakers, or has the name of another rule.
    """
    file = Toml.read(path)
    strange = [key for key in file.table if key != "rule"]
    rules = file.table.get("rule", [])
    if strange or not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        problem = f"unknown key {strange[0]!r}" if strange else "rule is not a list of tables"
        raise file.error(problem, strange[0] if strange else "rule", remedy="begin every rule with [[rule]]")
    locations = [_Location(file, ("rule", number)) for number in range(len(rules))]
    read = [
        _rule(table, location, number) for number, (table, location) in enumerate(zip(rules, locations, strict=True), 1)
    ]
    names = set[str]()
    for rule, location in zip(read, locations, strict=True):
        if rule.name in names:
            location.refuse(f"two rules are called {_quoted(rule.name)}", "name", "give each a name of its own")
        names.add(rule.name)
    return Policy(str(path), tuple(read))


def _quoted(value: Any) -> str:
    """Return a value in the notation of the file, shortened if the value is long."""
    text = repr(value) if isinstance(value, str | int | float | list | dict) else str(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}..."


def _rule(table: Mapping[str, Any], location: _Location, number: int) -> Rule:
    for key in table:
        if key not in _KEYS:
            location.refuse(f"unknown key {_quoted(key)}", key, f"known are {', '.join(_KEYS)}")
    name, override = table.get("name", f"rule {number}"), table.get("override", False)
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > _LONG:
        location.refuse(f"name is {_quoted(name)}", "name", f"write a text of one line, {_LONG} characters at most")
    if not isinstance(override, bool):
        location.refuse(f"override is {_quoted(override)}", "override", "write true or false")
    values = _values(table, location)
    if not values:
        location.refuse(f"{name} sets nothing", remedy=f"set {', '.join(_SETS[:-1])} or {_SETS[-1]}")
    ordered = tuple((what, values[what]) for what in PROPERTIES if what in values)
    lines = tuple((key, location.line(key)) for key in table)
    return Rule(name, location.line(), _selector(table, location), ordered, lines, override)


def _values(table: Mapping[str, Any], location: _Location) -> dict[Property, Value]:
    values: dict[Property, Value] = {}
    if "hoq_life" in table:
        values["hoq_life"] = _hoq_life(table["hoq_life"], location)
    if "vl_stall_count" in table:
        stall = table["vl_stall_count"]
        values["vl_stall_count"] = _integer(stall, (1, STALL_MOST), "vl_stall_count", location, "; 0 is undefined")
    breakers = [key for key in ("loop_breaker", "deadlock_breaker") if key in table]
    if len(breakers) > 1:
        location.refuse("a rule sets one breaker, not both", breakers[1], "leave one of them out")
    for key in breakers:
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
    roles = _texts(table, "role", location)
    for role in roles:
        if role not in ROLES:
            location.refuse(f"unknown role {_quoted(role)}", "role", f"known are {', '.join(ROLES)}")
    return Selector(
        switches=_texts(table, "switch", location),
        ports=_ports(table["ports"], location) if "ports" in table else (),
        roles=tuple(role for role in get_args(Role) if role in roles),
        speed=_speed(table["speed"], location) if "speed" in table else None,
    )


def _texts(table: Mapping[str, Any], key: str, location: _Location) -> tuple[str, ...]:
    found = table.get(key, [])
    texts = [found] if isinstance(found, str) else found
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts) or found == "":
        location.refuse(f"{key} is {_quoted(found)}", key, "write a text or a list of texts")
    if key in table and not texts:
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
