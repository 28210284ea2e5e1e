"""What a proof says, as lines and as JSON; shared by every command that proves."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from routing.deadlock.proof import Proof
    from routing.deadlock.witness import CreditLoop
    from routing.fabric import Fabric


def fabric_line(fabric: Fabric) -> str:
    """The fabric in one line."""
    parts = 1 + int(fabric.component.max(initial=0))
    split = f", {parts} parts that are not connected" if parts > 1 else ""
    counts = f"{fabric.switches} switches, {fabric.terminals} CAs and routers, {fabric.links} links"
    return f"{fabric.name}: {counts}{split}"


def facts(proof: Proof) -> Iterator[tuple[str, str]]:
    """The verdicts, line by line."""
    yield "complete", "yes" if proof.complete else "NO"
    if proof.certificate is None:
        yield "credit loops", "YES"
    elif proof.strength == "reversible":
        yield "credit loops", "none, also with replies on the way back (reversible certificate)"
    else:
        yield "credit loops", "none (forward certificate)"


def print_findings(proof: Proof) -> None:
    """What is not delivered, and the credit loop: by switch name, port and VL, with a pair that takes each turn."""
    for line in proof.unreachable.describe():
        click.echo(line)
    if proof.credit_loop is not None:
        for line in proof.credit_loop.describe():
            click.echo(line)


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
        "unreachable": dataclasses.asdict(proof.unreachable),
        "credit_loop": loop_object(proof.credit_loop),
        "reversible_loop": loop_object(proof.reversible_loop),
    }


def loop_object(loop: CreditLoop | None) -> list[dict[str, Any]] | None:
    """The channels of a credit loop, each with who takes the turn to the next."""
    return None if loop is None else [dataclasses.asdict(turn) for turn in loop.turns]
