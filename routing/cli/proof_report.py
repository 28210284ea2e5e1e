"""Print proofs and verdicts as text and as JSON, for all commands that prove tables."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from routing.cli.output import echo_lines
from routing.numerals import count_noun

if TYPE_CHECKING:
    from routing.deadlock.proof import Proof
    from routing.deadlock.verdict import Verdict
    from routing.deadlock.witness import CreditLoop
    from routing.fabric import Fabric
    from routing.tables import Routing


NAMED = 4
"""Maximum number of channels of a credit loop that are named in one line."""

_ALSO: Mapping[tuple[str | None, str | None], str] = {
    ("reversible", "all"): ", also with replies and switch-to-switch traffic (reversible certificate)",
    ("reversible", "endports"): ", also with replies, from or to CAs and routers (reversible certificate)",
    ("forward", "all"): ", also with switch-to-switch traffic (forward certificate)",
    ("forward", "endports"): " from or to CAs and routers (forward certificate)",
}


REPLIES_AT_OFFSET = ("replies", "safe on the request's SL only if sent to the LID offset of the request")
"""Row (name and text) of a report on tables.  The row states that replies on the SL of the request may close a credit
loop, unless each reply goes to the same LID offset as its request.  (LID offset: the LID minus the port's first LID.)
"""


def part_facts(fabric: Fabric) -> Iterator[tuple[str, str]]:
    """Yield a row if the fabric has several parts that are not connected.  The row states how rates such as the
    all-to-all rate treat flows between parts.

    Yield nothing if the fabric is connected.
    """
    if fabric.component.max(initial=0) > 0:
        yield "parts", "all-to-all traffic stays within a part; other patterns count flows between parts as 0"


def fabric_line(fabric: Fabric) -> str:
    """Describe a fabric in one line: its name and its numbers of devices and links."""
    parts = 1 + int(fabric.component.max(initial=0))
    split = f", {parts} parts that are not connected" if parts > 1 else ""
    inside = int(fabric.aggregation_nodes.sum())
    counts = (
        count_noun(fabric.switches, "switch", "switches"),
        count_noun(fabric.terminals - inside, "CA or router", "CAs and routers"),
        *([count_noun(inside, "aggregation node")] if inside else []),
        count_noun(fabric.links, "link"),
    )
    return f"{fabric.name}: {', '.join(counts)}{split}"


def facts(proof: Proof) -> Iterator[tuple[str, str]]:
    """Yield the results of a proof as rows of a name and a text."""
    yield "complete", "yes" if proof.complete else "NO"
    yield "credit loops", "YES" if proof.certificate is None else f"none{_ALSO[proof.strength, proof.scope]}"


def vl_note(*tables: Routing) -> str | None:
    """Return a text that names the unknown parts of the given tables (SLs or SL2VL tables), and the assumption about
    these parts.

    The result is None if everything is known.
    """
    from routing.deadlock.verdict import is_known

    unknown = {part for routing in tables if not is_known(routing) for part in routing.provenance.assumptions}
    if not unknown:
        return None
    names = {"SL": "service levels", "SL2VL": "SL2VL tables"}
    parts = " and ".join(name for part, name in names.items() if part in unknown)
    return f"all packets share one VL, because {parts} are unknown"


def assumed(note: str | None) -> list[str]:
    """Return the value of the key ``assumed`` for ``--json``: a list with at most one text.  ``note`` is this text, or
    None (the result of :func:`vl_note`).
    """
    return [] if note is None else [note]


def verdict_rows(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """Yield the verdict about tables as rows of a name and a text.  The SLs or SL2VL tables may be unknown."""
    if not verdict.any_sl and verdict.loops != "unknown":
        yield from facts(verdict.proof)
        yield "VLs", str(verdict.proof.vls)
        return
    yield "complete", "yes, by the LFTs alone" if verdict.proof.complete else "NO"
    if verdict.any_sl:
        also = _ALSO[verdict.proof.strength, verdict.proof.scope]
        yield "credit loops", f"none, whatever SLs and VLs packets use{also}"
    else:
        yield "credit loops", f"possible: {_unknown(verdict)}"
    yield "VLs", "unknown"


def _unknown(verdict: Verdict) -> str:
    """Describe in a few words which SLs or SL2VL tables are unknown, what is assumed, and what follows from this."""
    if verdict.assumed.get("SL") == "SL 0 for every path":
        text = "service levels unknown, SL 0 assumed"
    elif "SL" in verdict.assumed:
        text = "some service levels unknown, so the service levels of other paths are assumed"
    else:
        text = "SL2VL tables unknown, SL n on VL n modulo 8 assumed"
    return (
        text
        if verdict.proof.credit_loop is not None
        else f"{text}; under this assumption there is no loop, but there is one if all packets share one VL"
    )


def print_verdict(verdict: Verdict) -> None:
    """Print the traffic that is not delivered, and the credit loop if there is one.

    If the loop is only possible, because SLs or SL2VL tables are unknown, the assumptions are printed as well.
    """
    if verdict.possible_loop is None and not verdict.any_sl:
        print_findings(verdict.proof)
        return
    for line in verdict.proof.unreachable.describe():
        echo_lines(line)
    if verdict.possible_loop is None:
        return
    for assumption in verdict.assumed.values():
        echo_lines(f"assumed, because the files do not state it: {assumption}")
    echo_lines(
        "possible loop, unless --sl and --sl2vl state SLs or VLs that prevent it:", *verdict.possible_loop.describe()
    )


def percentage(value: float, more: str = "") -> str:
    """Format a rate, which is given and printed as a fraction of the data rate of the CAs' links.  ``more`` is a text
    to append.  If the rate is infinite or NaN, the text is instead that no channel carries traffic.
    """
    return f"{value:.3f} of the CAs' rate{more}" if math.isfinite(value) else "no channel carries traffic"


def print_findings(proof: Proof) -> None:
    """Print the traffic that is not delivered, and the credit loop if there is one.

    Each channel of the loop is a line with switch, port and VL.  The line also names two LIDs.  The path between the
    two LIDs uses this channel and the next channel of the loop.  A credit loop that only switch-to-switch traffic
    causes is printed as one line.
    """
    for line in proof.unreachable.describe():
        echo_lines(line)
    if proof.credit_loop is not None:
        for line in proof.credit_loop.describe():
            echo_lines(line)
    if proof.switch_loop is not None:
        echo_lines(_in_one_line(proof.switch_loop))


def _in_one_line(loop: CreditLoop) -> str:
    turns = [f"{turn.switch} port {turn.port}" for turn in loop.turns]
    named = ", ".join([*turns[:NAMED], *(["..."] if len(turns) > NAMED else [])])
    return f"only with switch-to-switch traffic there is a credit loop of {count_noun(len(turns), 'channel')}: {named}"


def as_object(proof: Proof) -> dict[str, Any]:
    """Return a proof as an object for ``--json``."""
    return {
        "certified": proof.certified,
        "complete": proof.complete,
        "strength": proof.strength,
        "scope": proof.scope,
        "unreachable": dataclasses.asdict(proof.unreachable),
        "credit_loop": loop_object(proof.credit_loop),
        "reversible_loop": loop_object(proof.reversible_loop),
        "switch_loop": loop_object(proof.switch_loop),
    }


def verdict_object(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as an object for ``--json``.

    If a result depends on assumptions, the value of its key is None.
    """
    report = as_object(verdict.proof)
    if verdict.loops == "unknown":
        report |= dict.fromkeys(("strength", "scope", "credit_loop", "reversible_loop"))
    if verdict.vls is None:
        report["switch_loop"] = None
    return report | {
        "certified": verdict.certified,
        "verdict": verdict.loops,
        "any_sl": verdict.any_sl,
        "assumed": list(verdict.assumed.values()),
        "possible_loop": loop_object(verdict.possible_loop),
        "vls": verdict.vls,
    }


def loop_object(loop: CreditLoop | None) -> list[dict[str, Any]] | None:
    """Return a list with one object for ``--json`` for each channel of a credit loop.  Without a loop, return None.

    The object of a channel contains two LIDs.  The path between the two LIDs uses the channel and the next channel of
    the loop.
    """
    return None if loop is None else [turn.as_object() for turn in loop.turns]
