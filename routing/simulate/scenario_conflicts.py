"""Check a scenario file for cases whose parts exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from routing.formats.toml_text import Toml
from routing.simulate.mechanisms.registry import IN_CASES

TWO_CASES, ONE = "make two cases of it", "leave one of the two out"
WRITERS = {"change": "a change", "watch": "a watch", "re-route": "a re-route", "Loop Breaker": "Loop Breaker"}
"""Parts of a case that write tables during the run, each with its name in error messages."""
CONFLICTS = (
    ("watch", "change", "a watch beside a change or a fault", TWO_CASES),
    ("watch", "fault", "a watch beside a change or a fault", TWO_CASES),
    ("fault", "re-route beside a change", "a change beside a re-route, which would undo it", ONE),
    ("pauses", "Deadlock Breaker", "pauses beside Deadlock Breaker, which needs credits", ONE),
    ("pauses", "bubble", "pauses beside bubble, which needs credits", ONE),
    ("recn", "bubble", "recn beside bubble, which does not protect set-aside VLs", ONE),
    ("replies", "bubble", "replies beside bubble, which does not protect the VLs of replies", ONE),
    (
        "replies", "proven ports", "replies, whose SLs the proof of port groups does not cover, beside port_choice",
        "leave one of the two out, or let switches choose among all shortest paths (shortest = true)",
    ),
    *(
        (kind.table, part, f"{kind.table}, which uses the first tables, beside {name}, which writes tables", ONE)
        for kind in IN_CASES if kind.keeps_tables for part, name in WRITERS.items()
    ),
    *(
        ("adaptive", part, f"adaptive switches beside {name}, which writes tables", ONE)
        for part, name in WRITERS.items()
    ),
    *(
        ("adaptive", kind.table, f"adaptive switches beside {kind.table}, which needs output queues", ONE)
        for kind in IN_CASES if kind.output_queues
    ),
    (
        "adaptive", "random", "adaptive switches beside random arbitration, which adaptive switches do not have",
        "use round-robin or arrival",
    ),
    (
        "adaptive", "crossbar", 'adaptive switches beside arbitration "crossbar", which they do not support',
        "use round-robin or arrival",
    ),
    ("adaptive", "Deadlock Breaker", "adaptive switches beside Deadlock Breaker, which needs output queues", ONE),
    ("port_choice", "recn", "port_choice beside recn, which follows the paths of the tables", ONE),
    ("port_choice", "bubble", "port_choice beside bubble, whose rings follow the paths of the tables", ONE),
)  # fmt: skip
"""Pairs of parts of a case that exclude each other.  Each pair comes with the problem and the remedy that the error
states.
"""


def check_conflicts(file: Toml, case: Mapping[str, Any], *where: str | int) -> None:
    """Raise ParseError if two parts of a case exclude each other.

    Parameters
    ----------
    file, case, where
        Scenario file, the case, and its location in the file.
    """
    rerouted = any(fault.get("reroute") for fault in case.get("fault", []))
    parts = {
        **dict.fromkeys(case, True),
        "re-route": rerouted,
        "proven ports": "port_choice" in case and not case["port_choice"].get("shortest"),
        "re-route beside a change": "change" in case and rerouted,
        "Deadlock Breaker": case.get("remedy", {}).get("breaker") == "deadlock",
        **{name: case.get("arbitration") == name for name in ("random", "crossbar")},
        "Loop Breaker": case.get("remedy", {}).get("breaker") == "loop",
    }
    for part, other, problem, remedy in CONFLICTS:
        if parts.get(part) and parts.get(other):
            at = part if part in case else "fault"
            raise file.error(f"case {case['name']!r} has {problem}", *where, at, remedy=remedy)
