"""Check a scenario file for tables and keys that none of its cases uses.

Such a table or key is probably a mistake of the author, so it is an error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from routing.errors import ParseError
from routing.formats.toml_text import Toml
from routing.simulate.scenario_schema import TABLES, made_by

Table = Mapping[str, Any]

_TIMING, _TRAFFIC = frozenset(TABLES["timing"]), frozenset(TABLES["traffic"])
_ENDS = frozenset({"from", "to"})
_SENT = frozenset(TABLES["flow"]) - {"name", "path", "then", "sl"}
READ_OF: Mapping[str, Mapping[str, Collection[str]]] = {
    "packets": {"timing": _TIMING, "run": TABLES["run"], "traffic": _TRAFFIC, "flow": _SENT},
    "lock-times": {
        "timing": _TIMING - {"buffer"}, "run": ("until", "seed", "speedup"), "traffic": _TRAFFIC, "flow": _SENT,
    },
    "seeds": {"timing": _TIMING, "run": ("until", "speedup"), "traffic": _TRAFFIC, "flow": _SENT},
    "detection": {
        "timing": _TIMING, "run": ("until", "seed", "speedup"), "traffic": _TRAFFIC, "flow": _SENT,
    },
    "workload": {"timing": _TIMING, "run": ("until", "seed", "speedup")},
    "shifts": {"timing": _TIMING, "run": ("until", "from", "seed", "speedup")},
    "adaptive": {
        "timing": _TIMING, "run": ("until", "from", "seed"), "traffic": _TRAFFIC - {"load"}, "flow": _SENT - {"load"},
    },
    "pauses": {"flow": _ENDS},
    "dependencies": {"traffic": ("pattern", "by"), "flow": _ENDS},
    "tables": {},
    "graph": {},
    "message-types": {},
    "request-grant": {"run": ("until", "from", "seed")},
}  # fmt: skip
"""Keys of the tables ``timing``, ``run``, ``traffic`` and ``flow`` that have an effect, by kind of case (its ``what``).

For the tables ``fabric`` and ``routing`` see :data:`BARE`.
"""

BARE = {"graph", "message-types", "request-grant"}
"""Kinds of cases (values of ``what``) that use neither a fabric nor routing tables."""
BY_CASE = ("buffer", "wire", "until", "from", "seed", "load", "window", "speedup")
"""Keys that a simulation case can override.  The value in the case replaces the value in ``[timing]``, ``[run]``,
``[traffic]`` or a flow.
"""


def check_unread(file: Toml, cases: Collection[Table]) -> None:
    """Raise ParseError for the first table or key of a scenario file that no case uses.

    Parameters
    ----------
    file
        Scenario file whose tables have known keys and values of the right types.
    cases
        Tables of the cases, each with the key ``what``.
    """
    document = file.table
    for name in ("fabric", "routing"):
        if document.get(name) and all(case["what"] in BARE for case in cases):
            raise _unread(file, cases, name)
    _check_routing(file, cases, document.get("routing", {}))
    for name in ("timing", "run", "traffic"):
        _check_keys(file, cases, document.get(name, {}), name)
    for number, flow in enumerate(document.get("flow", [])):
        running = [case for case in cases if flow.get("name", f"f{number}") not in case.get("without", ())]
        if not running or not any(_inspects(document, case, flow) for case in running):
            raise _unread(file, running, "flow", number)
        _check_keys(file, running, {key: flow[key] for key in flow if key in _SENT}, "flow", number)
        if "then" in flow and not any(map(_changes, running)):
            raise file.error(
                "then does nothing without a change", "flow", number, "then",
                remedy='leave it out, or give a case a change, or dependencies tables = "new"',
            )  # fmt: skip


def _check_routing(file: Toml, cases: Collection[Table], routing: Table) -> None:
    """Raise ParseError for a key of ``[routing]`` that has no effect because every simulation case overrides it."""
    routed = [case for case in cases if case["what"] not in BARE]
    if all("engine" in case or "routing" in case for case in routed):
        own = "an engine or tables" if any("routing" in case for case in routed) else "an engine"
        for key in [key for key in routing if key not in ("vls", "seed")]:
            raise _own(file, "routing", key, own=f"{own} of its own")
    if "vls" in routing and all("vls" in case or "routing" in case for case in routed):
        raise _own(file, "routing", "vls", own="its own" + ", or tables" * any("routing" in case for case in routed))


def _changes(case: Table) -> bool:
    """Return whether a simulation case uses the paths that flows take after a change of tables.

    The key ``then`` of a flow in the scenario file gives this path.
    """
    return "change" in case or case.get("tables") in ("new", "both")


def _inspects(document: Table, case: Table, flow: Table) -> bool:
    """Return whether a simulation case uses a flow.

    A case uses a flow if it sends the flow's traffic, or if it makes routing tables from the flow's path.
    """
    what, routing = case["what"], document.get("routing", {})
    if "flow" in READ_OF.get(what, {"flow": ()}) and not (document.get("traffic") and what != "pauses"):
        return True
    return "path" in flow and what not in BARE and made_by(routing, case) is None


def _check_keys(file: Toml, cases: Collection[Table], table: Table, *where: str | int) -> None:
    """Raise ParseError if no case uses a table or one of its keys, or if every case overrides a key."""
    name = str(where[0])
    reading = {key: list(_reading(cases, name, key)) for key in table}
    if table and name != "flow" and not any(name in READ_OF.get(case["what"], {name}) for case in cases):
        raise _unread(file, cases, *where)
    for key, readers in reading.items():
        if not readers:
            raise _unread(file, cases, *where, key)
        if key in BY_CASE and all(key in case for case in readers):
            raise _own(file, *where, key)


def _reading(cases: Collection[Table], name: str, key: str) -> Iterator[Table]:
    """Yield the cases for which the key ``key`` in the scenario file's table ``name`` has an effect."""
    for case in cases:
        tables = READ_OF.get(case["what"])
        if tables is None or key in tables.get(name, ()):
            yield case


def _unread(file: Toml, cases: Collection[Table], *where: str | int) -> ParseError:
    """Return the error for a table or key of a scenario file that no case uses."""
    what = " and ".join(sorted({str(case["what"]) for case in cases}))
    message = f"for {what}" if what else "if every case leaves it out"
    name = next(str(part) for part in reversed(where) if isinstance(part, str))
    return file.error(f"{name} does nothing {message}", *where, remedy="leave it out")


def _own(file: Toml, *where: str | int, own: str = "its own") -> ParseError:
    """Return the error for a key that has no effect because every simulation case overrides it.

    ``own`` is the part of the error message that names what each case has instead of the key, such as "an engine".
    """
    return file.error(f"{where[-1]} does nothing if every case has {own}", *where, remedy="leave it out")
