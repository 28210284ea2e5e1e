"""Define the schema of scenario files: the keys of each table, the types of their values, and the bounds of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from routing.formats.toml_text import Toml
from routing.simulate.mechanisms.registry import IN_CASES
from routing.simulate.scenario_key import (
    BYTES,
    DELAY,
    FLAG,
    INTEGER,
    LIST,
    LOAD,
    LONGEST,
    NAMES,
    NEEDED_ROOM,
    NEEDED_TIME,
    NUMBER,
    ROOM,
    ROUNDS,
    SEED,
    SPEEDUP,
    TABLE,
    TEXT,
    TIME,
    VLS,
    WINDOW,
    WIRE,
    Key,
)

MOST_DIGITS = 24
"""Maximum number of digits of an integer that an error message shows."""
NAME_OF_TYPE = {
    str: "a text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "a table"
}  # fmt: skip
"""Names of types of values in error messages."""


TABLES: Mapping[str, Mapping[str, Key]] = {
    "": {
        "title": Key(TEXT, True), "source": Key(TEXT), "about": Key(TEXT), "origin": Key(TEXT),
        "fabric": Key(TABLE),
        "routing": Key(TABLE), "timing": Key(TABLE), "flow": Key(LIST), "traffic": Key(TABLE), "run": Key(TABLE),
        "case": Key(LIST, True),
    },
    "fabric": {
        "file": Key(TEXT), "guid2lid": Key(TEXT), "node_name_map": Key(TEXT), "generator": Key(TEXT),
        "switches": Key(LIST), "cables": Key(LIST), "cas": Key(TABLE),
        "failed": Key(LIST), "faults": NAMES, "lmc": Key(INTEGER, least=0, most=7),
    },
    "routing": {
        "engine": Key(TEXT), "tables": Key(TEXT), "vls": VLS, "fill": Key(FLAG), "paths": Key(LIST, item=NAMES),
        "seed": SEED, "rule": Key(TEXT),
    },
    "timing": {"packet": Key(INTEGER, least=1, most=0xFFFF), "wire": WIRE, "switch": DELAY, "buffer": ROOM},
    "flow": {
        "name": Key(TEXT), "path": NAMES, "then": NAMES, "from": Key(TEXT), "to": Key((str, list), item=Key(TEXT)),
        "sl": Key(INTEGER, least=0, most=15), "process": Key(TEXT), "pattern": Key(TEXT), "load": LOAD,
        "burst": Key(NUMBER, least=1, most=10**4), "message": BYTES, "messages": Key(INTEGER, least=1, most=10**15),
        "window": WINDOW, "start": TIME, "stop": TIME,
    },
    "traffic": {
        "pattern": Key(TEXT, True), "process": Key(TEXT), "load": LOAD, "message": BYTES,
        "by": Key(INTEGER, least=-(2**31), most=2**31 - 1), "rounds": Key(INTEGER, least=1, most=10**9), "hot": NAMES,
        "hot_share": Key(NUMBER, least=0, most=1), "window": WINDOW,
    },
    "run": {"until": TIME, "from": TIME, "sample": TIME, "seed": SEED, "speedup": SPEEDUP},
    "case": {
        "name": Key(TEXT, True), "what": Key(TEXT), "origin": Key(TEXT), "chosen": Key(TEXT),
        "arbitration": Key(TEXT), "inputs": Key(TEXT), "speedup": SPEEDUP,
        "buffer": ROOM, "load": LOAD, "seed": SEED, "until": TIME, "without": NAMES,
        "engine": Key(TEXT), "vls": VLS, "remedy": Key(TABLE), "expect": Key(TABLE, True),
        "from": TIME, "buffers": Key(LIST, item=ROOM), "seeds": Key(INTEGER, least=0, most=10**6), "graph": Key(TABLE),
        "tables": Key(TEXT), "change": Key(TABLE), "wire": WIRE, "pauses": Key(TABLE), "fault": Key(LIST),
        "watch": Key(TABLE), "detection": Key(TABLE),
        "chain": Key(TABLE), "adaptive": Key(TABLE), "loads": Key(LIST, item=LOAD),
        "window": WINDOW, "routing": Key(TABLE), "workload": Key(TABLE), "request_grant": Key(TABLE),
        **{mechanism.table: Key(TABLE) for mechanism in IN_CASES},
    },
    "routing of case": {"tables": Key(TEXT, True)},
    "adaptive": {
        "schemes": Key(LIST, True, item=Key(TEXT)), "vls": Key(INTEGER, least=1, most=15),
        "ca_vls": Key(INTEGER, least=1, most=15), "stay": Key(FLAG), "detect": TIME, "repeat": TIME, "lasts": TIME,
        "hold": TIME, "sample": TIME, "step": TIME,
    },
    "request_grant": {
        "scheme": Key(TEXT, True), "control": Key(TEXT), "adapters": Key(INTEGER, least=2, most=256),
        "radix": Key(INTEGER, least=2, most=64), "speedup": Key(NUMBER, least=0.1, most=100),
        "segment": Key(INTEGER, least=1, most=2048), "grant": Key(INTEGER, least=1, most=10**5),
        "grant_rate": Key(NUMBER, least=0.001, most=1000), "input_buffer": BYTES, "output_buffer": BYTES,
        "reassembly": BYTES, "packets": Key(TEXT), "burst": Key(NUMBER, least=1, most=10**4),
        "hotspots": Key(INTEGER, least=0, most=255), "over": Key(NUMBER, least=0, most=255),
        "shares": Key(LIST, item=Key(NUMBER, least=0, most=1)), "blocked": Key(LIST, item=TIME), "compare": Key(FLAG),
    },
    "workload": {
        "collective": Key(TEXT), "bytes": BYTES, "skew": Key(NUMBER, least=0, most=10), "trace": Key(TEXT),
    },
    **{mechanism.table: mechanism.keys for mechanism in IN_CASES},
    "pauses": {"xoff": NEEDED_ROOM, "xon": NEEDED_ROOM},
    "fault": {"cable": Key(LIST, True), "at": NEEDED_TIME, "until": TIME, "reroute": Key(LIST, item=TIME)},
    "watch": {"every": Key(NUMBER, True, 1, LONGEST)},
    "detection": {
        "timeouts": Key(LIST, True, item=Key(NUMBER, least=0, most=LONGEST)),
        "every": Key(NUMBER, least=0.01, most=LONGEST), "rule": Key(TEXT),
    },
    "graph": {
        "dependencies": Key(LIST), "movable": NAMES, "grid": Key(LIST), "around": Key(FLAG), "one_way": Key(FLAG),
        "turns": NAMES,
    },
    "chain": {
        "channels": Key(INTEGER, True, 0, 10**6), "escape": Key(LIST, True, item=Key(NUMBER, least=0, most=10**6)),
        "usable": Key(INTEGER, least=1, most=10**6),
    },
    "change": {
        "how": Key(TEXT, True), "at": NEEDED_TIME, "every": TIME, "order": NAMES, "shuffle": Key(FLAG),
        "engine": Key(TEXT), "vls": VLS, "seed": SEED, "tables": Key(TEXT), "reroute": Key(FLAG),
    },
    "remedy": {
        "hoq": TIME, "stall_count": Key(INTEGER, least=0, most=2**16 - 1), "lifetime": TIME, "breaker": Key(TEXT),
        "detect": TIME, "repeat": TIME, "release": TIME, "extra": Key(INTEGER, least=0, most=2048 * 64),
        "sample": TIME, "move_others": Key(FLAG), "release_packets": Key(INTEGER, least=1, most=2**15 - 1),
        "rounds": ROUNDS,
    },
}  # fmt: skip
"""Schema of every table of a scenario file.

The table ``expect`` is not included: its keys depend on the kind of the case (:mod:`routing.simulate.case_runners`).
"""

NEW_TABLES = ("engine", "tables", "reroute")
"""Keys of ``[case.change]`` that name the source of the new tables."""

ORIGINS = ("paper", "theory", "program", "regression")
"""Origins of expected figures: the text of the source, a formula or theorem, the output of another program, or earlier
output of ibnue itself.
"""

OUTCOMES = ("deadlock", "progress", "starvation")
"""Values of the figure ``outcome`` of a simulation of packets."""

RENAMED: Mapping[str, str] = {"way": "path", "ways": "paths", "waits": "dependencies"}
"""Keys of earlier versions of the scenario format, with the names that replace them."""

EXPECTED = Key(NUMBER, least=-1e18, most=1e18)
"""Schema of an expected number in a scenario file (table ``expect``)."""
TOLERANCE = Key(NUMBER, least=0, most=1)


def made_by(routing: Mapping[str, Any], case: Mapping[str, Any]) -> str | None:
    """Return the source of the routing tables of a simulation case.

    The result is ``engine``, ``tables`` (files) or ``rule``.  None means that the tables are made from the paths that
    the scenario file lists.

    Parameters
    ----------
    routing
        Table ``[routing]`` of the file.  It applies if the case itself does not name a source.
    case
        Table of the case.
    """
    own = {"engine": "engine", "routing": "tables"}
    message = [own[key] for key in own if key in case] + [key for key in ("engine", "tables", "rule") if key in routing]
    return message[0] if message else None


def check_table(file: Toml, table: Mapping[str, Any], kind: str, message: str, *where: str | int) -> None:
    """Raise ParseError if a table has an unknown key or an invalid value, or lacks a mandatory key.

    ``kind`` is the kind of table (a key of :data:`TABLES`), and ``message`` names the table in the error.
    """
    known = TABLES[kind]
    for name, value in table.items():
        if name not in known:
            now = RENAMED.get(name)
            if now in known:
                raise file.error(f"{message}: the key {name!r} has the name {now!r} now", *where, name)
            raise file.error(f"{message}: there is no {name!r}; there are {', '.join(known)}", *where, name)
        check_value(file, value, known[name], f"{message}: {name}", *where, name)
    for name, key in known.items():
        if key.needed and name not in table:
            raise file.error(f"{message}: {name} is missing", *where, remedy=f"write {name} = ...")


def check_value(file: Toml, value: object, key: Key, message: str, *where: str | int) -> None:
    """Raise ParseError unless a value has an allowed type and its numbers are within bounds.  ``message`` names the
    value.
    """
    if not isinstance(value, key.types) or (isinstance(value, bool) and bool not in key.types):
        wanted = " or ".join(NAME_OF_TYPE[kind] for kind in key.types if kind is not int or float not in key.types)
        raise file.error(f"{message} has to be {wanted}, it is {shown(value)}", *where)
    if isinstance(value, int | float):
        remedy = f"use {shown(key.least)} to {shown(key.most)}"
        if not -math.inf < value < math.inf:
            raise file.error(f"{message} has to be a number, it is {value}", *where, remedy=remedy)
        if not key.least <= value <= key.most:
            raise file.error(f"{message} cannot be {shown(value)}", *where, remedy=remedy)
    elif isinstance(value, list) and key.item is not None:
        for number, item in enumerate(value):
            check_value(file, item, key.item, f"{message}, number {number + 1},", *where, number)


def check_expected(file: Toml, value: object, message: str, *where: str | int) -> None:
    """Raise ParseError if an expected value contains a number that no run can produce, such as NaN.

    Nested tables and lists are checked, too.
    """
    if isinstance(value, dict):
        for name, item in value.items():
            check_expected(file, item, f"{name} of {message}", *where, name)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            check_expected(file, item, message, *where, number)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        check_value(file, value, EXPECTED, message, *where)


def shown(value: object) -> str:
    """Return the text of a value for an error message.  A long integer is cut to its first digits."""
    text = repr(value)
    long = isinstance(value, int) and len(text) > MOST_DIGITS
    return f"{text[:MOST_DIGITS]}... ({len(text)} digits)" if long else text
