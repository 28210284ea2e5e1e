"""What a proof says, as lines and as JSON; shared by every command that proves."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from routing.cli.output import tell
from routing.numerals import number_of

if TYPE_CHECKING:
    from routing.deadlock.proof import Proof
    from routing.deadlock.witness import CreditLoop
    from routing.fabric import Fabric


NAMED = 4
"""How many channels of a loop go on one line."""

_NONE: Mapping[tuple[str | None, str | None], str] = {
    ("reversible", "all"): "none, also with replies and switch-to-switch traffic (reversible certificate)",
    ("reversible", "endports"): "none, also with replies, from or to CAs and routers (reversible certificate)",
    ("forward", "all"): "none, also with switch-to-switch traffic (forward certificate)",
    ("forward", "endports"): "none from or to CAs and routers (forward certificate)",
}


def fabric_line(fabric: Fabric) -> str:
    """The fabric in one line."""
    parts = 1 + int(fabric.component.max(initial=0))
    split = f", {parts} parts that are not connected" if parts > 1 else ""
    counts = (
        number_of(fabric.switches, "switch", "switches"),
        number_of(fabric.terminals, "CA or router", "CAs and routers"),
        number_of(fabric.links, "link"),
    )
    return f"{fabric.name}: {', '.join(counts)}{split}"


def facts(proof: Proof) -> Iterator[tuple[str, str]]:
    """The verdicts, line by line."""
    yield "complete", "yes" if proof.complete else "NO"
    yield "credit loops", "YES" if proof.certificate is None else _NONE[proof.strength, proof.scope]


def share(value: float, more: str = "") -> str:
    """A share of what the CAs' links can carry, and what else is to be said of it."""
    return f"{value:.3f} of the CAs' rate{more}" if math.isfinite(value) else "no channel carries anything"


def print_findings(proof: Proof) -> None:
    """What is not delivered, and the credit loop: by switch name, port and VL, with a pair that takes each turn.

    A loop that only switch-to-switch traffic closes takes one line.
    """
    for line in proof.unreachable.describe():
        tell(line)
    if proof.credit_loop is not None:
        for line in proof.credit_loop.describe():
            tell(line)
    if proof.switch_loop is not None:
        tell(_in_one_line(proof.switch_loop))


def _in_one_line(loop: CreditLoop) -> str:
    turns = [f"{turn.switch} port {turn.port}" for turn in loop.turns]
    named = ", ".join([*turns[:NAMED], *(["..."] if len(turns) > NAMED else [])])
    return f"only with switch-to-switch traffic there is a credit loop of {number_of(len(turns), 'channel')}: {named}"


def as_object(fabric: Fabric, proof: Proof) -> dict[str, Any]:
    """The proof for ``--json``."""
    return {
        "fabric": {
            "name": fabric.name,
            "digest": fabric.digest,
            "switches": fabric.switches,
            "terminals": fabric.terminals,
            "links": fabric.links,
        },
        "certified": proof.certified,
        "complete": proof.complete,
        "strength": proof.strength,
        "scope": proof.scope,
        "unreachable": dataclasses.asdict(proof.unreachable),
        "credit_loop": loop_object(proof.credit_loop),
        "reversible_loop": loop_object(proof.reversible_loop),
        "switch_loop": loop_object(proof.switch_loop),
    }


def loop_object(loop: CreditLoop | None) -> list[dict[str, Any]] | None:
    """The channels of a credit loop, each with who takes the turn to the next."""
    return None if loop is None else [dataclasses.asdict(turn) for turn in loop.turns]
