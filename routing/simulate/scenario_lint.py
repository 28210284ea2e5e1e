"""Check a scenario file for keys that have no effect.

A key without effect is probably a mistake of the author, so it is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from routing.errors import ParseError
from routing.formats.toml_text import Toml
from routing.simulate.mechanisms.registry import BESIDE_ADAPTIVE, IN_CASES
from routing.simulate.scenario_conflicts import check_conflicts
from routing.simulate.scenario_schema import made_by
from routing.simulate.scenario_table_lint import check_unread

Table = Mapping[str, Any]

PACKETS = "packets"
"""Kind of a simulation case (value of its key ``what``) if the case does not state its kind."""
_ALWAYS = {"name", "what", "expect", "origin", "chosen"}
_TABLES = _ALWAYS | {"without", "engine", "vls", "routing"}
_RUN = _TABLES | {"arbitration", "inputs", "buffer", "wire", "pauses", "until", "speedup"}
_MECHANISMS = {mechanism.table for mechanism in IN_CASES}
_ADAPTIVE = {mechanism.table for mechanism in BESIDE_ADAPTIVE}
READ_BY: Mapping[str, set[str]] = {
    PACKETS: _RUN | _MECHANISMS | {"load", "window", "seed", "from", "remedy", "change", "fault", "watch", "adaptive"},
    "lock-times": (_RUN | {"load", "window", "seed", "remedy", "buffers"}) - {"buffer"},
    "seeds": _RUN | {"load", "window", "remedy", "seeds"},
    "detection": _RUN | {"load", "window", "seed", "remedy", "detection"},
    "shifts": _RUN | {"seed", "from"},
    "workload": (_RUN | _MECHANISMS | {"seed", "remedy", "workload", "adaptive"}) - {"without", "replies"},
    "adaptive": (_RUN | _ADAPTIVE | {"window", "seed", "from", "loads", "adaptive", "remedy", "fault"}) - {"speedup"},
    "request-grant": _ALWAYS | {"until", "from", "seed", "loads", "request_grant"},
    "pauses": _TABLES,
    "graph": _ALWAYS | {"graph"},
    "dependencies": _TABLES | {"tables"},
    "message-types": _ALWAYS | {"chain"},
    "tables": _TABLES,
}
"""Keys of a simulation case that have an effect, by the kind of the case (value of its key ``what``)."""

SENDING = {"from", "to", "process", "pattern", "load", "burst", "message", "messages", "window", "start", "stop"}
"""Keys of a flow in a scenario file that define the flow's traffic, as opposed to its path."""
PATTERN_KEYS: Mapping[str, set[str]] = {
    "all-to-all": {"pattern", "message", "window", "rounds"},
    "shift": {"pattern", "message", "window", "by"},
    "uniform": {"pattern", "message", "window", "process", "load"},
    "hotspot": {"pattern", "message", "window", "process", "load", "hot", "hot_share"},
}
BREAKER_KEYS: Mapping[str, set[str]] = {
    "detect": {"loop", "deadlock"},
    "repeat": {"loop", "deadlock"},
    "sample": {"loop", "deadlock"},
    "release": {"deadlock"},
    "extra": {"deadlock"},
    "move_others": {"loop"},
    "release_packets": {"loop"},
    "rounds": {"loop"},
}
SCHEME_KEYS: Mapping[str, set[str]] = {
    "ca_vls": {"none", "escape", "token", "bubble", "relay", "concurrent", "deflect"},
    "stay": {"escape"},
    "detect": {"token", "bubble", "relay", "concurrent", "deflect"},
    "repeat": {"bubble"},
    "lasts": {"bubble"},
    "hold": {"bubble"},
    "sample": {"bubble", "relay", "concurrent", "deflect"},
    "step": {"token"},
}
WORKLOAD_KEYS: Mapping[str, set[str]] = {
    "bytes": {"ring-allreduce", "halving-doubling", "all-to-all-v"},
    "skew": {"all-to-all-v"},
}
CHANGE_KEYS: Mapping[str, set[str]] = {
    "every": {"one by one", "rounds", "removed first", "drained", "single scheme", "double scheme"},
    "order": {"one by one", "rounds", "single scheme"},
    "shuffle": {"one by one", "rounds", "single scheme"},
}


def check_unused_keys(file: Toml) -> None:
    """Raise ParseError for the first key of a scenario file that has no effect.

    Parameters
    ----------
    file
        Scenario file whose tables have known keys and values of the right types.  An unknown value, such as an unknown
        kind of case (key ``what``), is not reported here.  It is reported when the value is used.
    """
    document = file.table
    cases = document["case"]
    _check_fabric(file, document.get("fabric", {}))
    _check_routing(file, document.get("routing", {}), any("engine" in case for case in cases))
    if document.get("traffic"):
        _check_traffic(file, document["traffic"])
    for number, flow in enumerate(document.get("flow", [])):
        _check_flow(file, flow, number)
    for number, case in enumerate(cases):
        _check_case(file, case, number)
    check_unread(file, [{"what": PACKETS, **case} for case in cases])


def _unused(file: Toml, *where: str | int, why: str, remedy: str = "leave it out") -> ParseError:
    """Return the error for a key of a scenario file that has no effect.  ``why`` is the reason.

    ``where`` is the location of the key in the file, and ``remedy`` the advice in the error message.
    """
    return file.error(f"{where[-1]} does nothing {why}", *where, remedy=remedy)


def _check_fabric(file: Toml, fabric: Table) -> None:
    """Raise ParseError for a key of ``[fabric]`` that has no effect because of another key of the table."""
    for leading, message, others in (
        ("file", "a file", ("generator", "switches", "cables", "cas")),
        ("generator", "a generator", ("switches", "cables", "cas", "lmc")),
    ):
        for key in others:
            if leading in fabric and key in fabric:
                raise _unused(file, "fabric", key, why=f"beside {message}", remedy="leave one of the two out")
    for key in ("guid2lid", "node_name_map"):
        if key in fabric and "file" not in fabric:
            raise _unused(file, "fabric", key, why="without a file")


def _check_routing(file: Toml, routing: Table, engine_later: bool) -> None:
    """Raise ParseError for a key of ``[routing]`` that has no effect because of another key of the table.

    ``engine_later`` is whether some case names an engine.  The engine of a case uses the keys ``seed`` and ``vls`` of
    ``[routing]``, even if ``[routing]`` itself names no engine.
    """
    leading = next((key for key in ("engine", "tables", "rule") if key in routing), None)
    for key in ("tables", "rule", "fill", "paths"):
        if key in routing and leading not in (None, key):
            raise _unused(file, "routing", key, why=f"beside {leading}", remedy="leave one of the two out")
    if "seed" in routing and "engine" not in routing and not engine_later:
        raise _unused(file, "routing", "seed", why="without an engine")
    if "vls" in routing and leading in ("rule", "tables") and not engine_later:
        raise _unused(file, "routing", "vls", why=f"beside {leading}")


def _check_traffic(file: Toml, traffic: Table) -> None:
    """Raise ParseError for a key of ``[traffic]`` that the chosen traffic pattern or arrival process does not use."""
    pattern = traffic["pattern"]
    for key in traffic:
        if key not in PATTERN_KEYS.get(pattern, traffic):
            raise _unused(file, "traffic", key, why=f"for {pattern}")
    if "load" in traffic and _persistent(traffic):
        raise _unused_load(file, "traffic", "load")


def _persistent(sender: Table) -> bool:
    """Return whether the messages of a table ``[[flow]]`` or ``[traffic]`` are sent at full rate, one after the other.

    If so, the key ``load`` of the table has no effect.
    """
    return bool(sender.get("process", "persistent") == "persistent")


def _unused_load(file: Toml, *where: str | int) -> ParseError:
    """Return the error for a key ``load`` that has no effect, because the traffic is sent at full rate."""
    remedy = 'give the traffic a process, such as "poisson"'
    return _unused(file, *where, why="if all traffic is sent as fast as possible", remedy=remedy)


def _check_flow(file: Toml, flow: Table, number: int) -> None:
    """Raise ParseError for a key of a scenario file's table ``[[flow]]`` that has no effect.

    ``number`` is the position of the table in the file, counted from 0.
    """
    where, document = ("flow", number), file.table
    if document.get("traffic") and not any(case.get("what") == "pauses" for case in document["case"]):
        for key in flow:
            if key in SENDING:
                raise _unused(file, *where, key, why="beside [traffic]", remedy="leave one of the two out")
    for key in ("from", "to"):
        if key in flow and "path" in flow:
            raise _unused(file, *where, key, why="beside path", remedy="leave one of the two out")
    for key in ("then", "sl"):
        if key in flow and "path" not in flow:
            raise _unused(file, *where, key, why="without a path", remedy="give the flow a path")
    for key in ("engine", "tables", "rule"):
        if "sl" in flow and key in document.get("routing", {}):
            raise _unused(file, *where, "sl", why=f"beside {key} of [routing]")
    if "burst" in flow and flow.get("process") != "bursty":
        raise _unused(file, *where, "burst", why="for this process", remedy='use process = "bursty"')
    if "load" in flow and _persistent(flow):
        raise _unused_load(file, *where, "load")
    _check_then(file, flow, number)


def _check_then(file: Toml, flow: Table, number: int) -> None:
    """Raise ParseError if a flow's path after the change of tables (key ``then``) does not have the same two ends as
    its path before the change (key ``path``).
    """
    path, then = flow.get("path"), flow.get("then")
    if not path or then is None:
        return
    if not then or (path[0], path[-1]) != (then[0], then[-1]):
        message = f"from {then[0]} to {then[-1]}" if then else "nowhere"
        raise file.error(
            f"path goes from {path[0]} to {path[-1]}, then {message}",
            "flow",
            number,
            "then",
            remedy="give both paths the same ends",
        )


def _check_case(file: Toml, case: Table, number: int) -> None:
    """Raise ParseError for a key of a scenario file's table ``[[case]]`` that has no effect."""
    where, what, routing = ("case", number), case.get("what", PACKETS), file.table.get("routing", {})
    for key in case:
        if key not in READ_BY.get(what, case):
            others = " or ".join(f'"{kind}"' for kind, keys in READ_BY.items() if key in keys)
            raise _unused(file, *where, key, why=f"for {what}", remedy=f"leave it out, or use what = {others}")
    if "engine" in case and "routing" in case:
        raise _unused(file, *where, "routing", why="beside engine", remedy="leave one of the two out")
    made = made_by(routing, case)
    if "vls" in case and made in ("tables", "rule"):
        raise _unused(file, *where, "vls", why=f"beside {made}" + " of [routing]" * ("routing" not in case))
    if what == "dependencies" and case.get("tables") in ("new", "both"):
        _check_new_paths(file, case, *where, "tables")
    for key in ("load", "loads"):
        if key in case and what != "request-grant" and not _listens_to_load(file.table, case):
            raise _unused_load(file, *where, key)
    _check_words(file, case, "remedy", {case.get("remedy", {}).get("breaker", "none")}, BREAKER_KEYS, *where)
    _check_words(file, case, "change", {case.get("change", {}).get("how")}, CHANGE_KEYS, *where)
    _check_words(file, case, "workload", {case.get("workload", {}).get("collective", "a trace")}, WORKLOAD_KEYS, *where)
    if "adaptive" in case:
        _check_adaptive(file, case, *where)
    _check_request_grant(file, case, *where)
    check_conflicts(file, case, *where)
    if "stall_count" in case.get("remedy", {}) and not case["remedy"].get("hoq"):
        raise _unused(file, *where, "remedy", "stall_count", why="without hoq", remedy="give hoq a time")
    for key in ("turns", "around", "one_way"):
        if key in case.get("graph", {}) and "grid" not in case["graph"]:
            raise _unused(file, *where, "graph", key, why="without a grid", remedy="give grid two sides")


def _check_adaptive(file: Toml, case: Table, *where: str | int) -> None:
    """Raise ParseError if a key of a case with adaptive switches has no effect, or if the schemes are not allowed.

    Only a case with ``what = "adaptive"`` may name several schemes, or the scheme "tables".  Every other case must name
    exactly one scheme.
    """
    schemes = set(case["adaptive"].get("schemes", []))
    _check_words(file, case, "adaptive", schemes, SCHEME_KEYS, *where)
    if case.get("what", PACKETS) != "adaptive" and (len(schemes) != 1 or "tables" in schemes):
        raise file.error(
            f"case {case['name']!r} needs one scheme of adaptive switches", *where, "adaptive", "schemes",
            remedy='name one scheme, or use what = "adaptive"',
        )  # fmt: skip
    for key in ("inputs", "pauses", "speedup"):
        if key in case and "tables" not in schemes:
            raise _unused(file, *where, key, why='without "tables" among the schemes')
    if "stall_count" in case.get("remedy", {}) and "tables" not in schemes:
        raise _unused(file, *where, "remedy", "stall_count", why='without "tables" among the schemes')


def _check_request_grant(file: Toml, case: Table, *where: str | int) -> None:
    """Raise ParseError for a key of a case on requests and grants that has no effect because of another key."""
    table = case.get("request_grant", {})
    for key in ("over", "blocked", "compare"):
        if key in table and not table.get("hotspots"):
            raise _unused(file, *where, "request_grant", key, why="without hotspots", remedy="give hotspots a number")
    if "shares" in table and "hotspots" in table:
        raise _unused(file, *where, "request_grant", "hotspots", why="beside shares", remedy="leave one of the two out")
    if "shares" in table and "loads" in case:
        raise _unused(file, *where, "loads", why="beside shares", remedy="leave one of the two out")


def _check_new_paths(file: Toml, case: Table, *where: str | int) -> None:
    """Raise ParseError if a simulation case refers to new paths of flows (key ``then``), but no new path has an effect.

    New paths have no effect if the tables of the case come from an engine, a rule or files, or if no flow has the key
    ``then``.
    """
    made = made_by(file.table.get("routing", {}), case)
    if made is not None:
        raise _unused(file, *where, why=f"beside {made}, which reads no paths", remedy="leave one of the two out")
    if not any("then" in flow for flow in file.table.get("flow", [])):
        raise _unused(file, *where, why="if no flow has another path", remedy="give a flow another path with then")


def _listens_to_load(document: Table, case: Table) -> bool:
    """Return whether the key ``load`` has an effect on any traffic of a simulation case.

    ``document`` is the content of the whole file.
    """
    if document.get("traffic"):
        pattern = document["traffic"]["pattern"]
        return "load" in PATTERN_KEYS.get(pattern, {"load"}) and not _persistent(document["traffic"])
    without = case.get("without", [])
    names = ((flow.get("name", f"f{number}"), flow) for number, flow in enumerate(document.get("flow", [])))
    return not all(_persistent(flow) for name, flow in names if name not in without)


def _check_words(
    file: Toml, case: Table, part: str, words: Iterable[object], read_by: Mapping[str, set[str]], *where: str | int
) -> None:
    """Raise ParseError if a key in a subtable of a case has no effect with the options that the subtable chooses.

    Parameters
    ----------
    file, case, where
        Scenario file, the case, and its location in the file.
    part
        Name of the subtable in the case, such as ``remedy``.
    words
        Chosen options, such as the kind of deadlock breaker.
    read_by
        For each key, the options for which the key has an effect.
    """
    for key in case.get(part, {}):
        readers = read_by.get(key)
        if readers is not None and readers.isdisjoint(words):
            message = " and ".join(sorted(map(str, words)))
            raise _unused(
                file, *where, part, key, why=f"for {message}", remedy=f"it is for {', '.join(sorted(readers))}"
            )
