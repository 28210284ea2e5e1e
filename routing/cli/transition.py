"""Check whether tables can be replaced switch by switch in a running fabric: ``ibnue transition``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from routing.cli import fabric_argument, proof_report
from routing.cli.command import FINDING, UNDECIDED
from routing.cli.output import echo_lines, fabric_object, json_option, print_json, print_rows, spinner
from routing.cli.param_types import threads_option
from routing.numerals import count_noun

if TYPE_CHECKING:
    from routing.deadlock.double_scheme import DoubleScheme
    from routing.deadlock.transition import Transition
    from routing.deadlock.update_schedule import Round
    from routing.draw.report import Report
    from routing.fabric import Fabric
    from routing.reroute.installed import Installed
    from routing.tables import Routing


@click.command()
@fabric_argument.fabric_argument
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option(
    "--old-fabric",
    metavar="FABRIC",
    help="Fabric of the tables OLD, if it differs from FABRIC. Devices are matched by GUID.",
)
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), metavar="FILE",
              help="Write the rounds, or the steps of the Double Scheme, as JSON.")  # fmt: skip
@click.option("--require", type=click.Choice(["forward", "reversible"]), default="forward", show_default=True,
              help="Traffic that has to be safe: forward means requests, reversible also replies.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(0, 255), metavar="N", default=64, show_default=True,
              help="Maximum number of rounds of a safe order; 0: do not search for one.")  # fmt: skip
@click.option("--max-vls", type=click.IntRange(1, 15), metavar="N", default=8, show_default=True,
              help="Number of data VLs of every port, for the Double Scheme.")  # fmt: skip
@threads_option
@json_option
def transition(
    *,
    fabric: str,
    old: Path,
    new: Path,
    old_fabric: str | None,
    plan_file: Path | None,
    require: str,
    rounds: int,
    max_vls: int,
    threads: int,
    as_json: bool,
) -> int:
    """Check whether the tables OLD can be replaced by NEW on FABRIC while traffic runs, and in which order.

    \b
    ibnue transition fabric.net before after
    ibnue transition broken.net tables after --old-fabric fabric.net --plan plan.json

    OLD and NEW are bundles, folders that ibnue wrote, or folders with OpenSM's dump files.  While switches are written
    one by one, a packet may meet old and new entries on one path.  The proof includes every such mixture.  Exit status
    0: the switches may be written in any order, or in the order of the plan.  1: no order was found in which all rounds
    are safe.  3: unknown service levels decide the question.
    """
    from routing.deadlock.plan_file import write_plan
    from routing.formats.table_files import read_tables

    with spinner("reading"):
        subnet = fabric_argument.read(fabric)
        earlier = subnet if old_fabric is None else fabric_argument.read(old_fabric)
        before = fabric_argument.tables_of(old, earlier, "--old-fabric")
        after = read_tables(new, subnet)
    with spinner("proving"):
        sides, found, note = prove_change(
            (earlier, before), (subnet, after), require=require, rounds=rounds, max_vls=max_vls, threads=threads
        )
    if plan_file is not None:
        write_plan(plan_file, sides.fabric, sides.old, sides.new, found)
    if as_json:
        fabrics = {"fabric": fabric_object(subnet, fabric), "old_fabric": fabric_object(earlier, old_fabric or fabric)}
        print_json("ibnue-transition/1", {**fabrics, **as_object(found, note)})
    else:
        show(subnet, found, note)
    return 0 if found.safe else FINDING if note is None else UNDECIDED


def prove_change(
    old: tuple[Fabric, Routing],
    new: tuple[Fabric, Routing],
    *,
    require: str = "forward",
    rounds: int = 64,
    max_vls: int = 8,
    threads: int = 2,
) -> tuple[Installed, Transition, str | None]:
    """Prove the change from old to new tables.  ``old`` and ``new`` are pairs of a fabric and its tables.

    Returns
    -------
    Installed
        Old and new tables.  The rows of both are the switches of the new fabric.
    Transition
        The verdict on the change.
    str or None
        The assumption about unknown SLs or VLs; None if all are known.
    """
    from routing.deadlock.transition import prove_transition
    from routing.deadlock.verdict import on_one_vl
    from routing.reroute.installed import installed

    (earlier, before), (fabric, after) = old, new
    note = proof_report.vl_note(before, after)
    if note is not None:
        before, after = on_one_vl(before), on_one_vl(after)
    sides = installed(before, earlier, after, fabric)
    found = prove_transition(
        sides.fabric, sides.old, sides.new, lost=sides.lost, rewired=sides.rewired,
        rounds=rounds, max_vls=max_vls, threads=threads, require="reversible" if require == "reversible" else "forward",
    )  # fmt: skip
    return sides, found, note


def show(fabric: Fabric, found: Transition, note: str | None) -> None:
    """Print the verdict on a transition as text.  ``note`` is the assumption about unknown SLs or VLs, or None."""
    print_rows(facts(fabric, found, note))
    for line in (*found.describe(), *steps(found.drain)):
        echo_lines(line)


def report_of(fabric: Fabric, found: Transition, note: str | None) -> Report:
    """Return the report on a transition, with a table of the LFT blocks of each round."""
    from routing.draw.report import Report
    from routing.formats.csv_table import Table

    rows = tuple(
        (number, fabric.labels[switch], block)
        for number, part in enumerate(_rounds(found), 1)
        for switch, block in part.blocks
    )
    table = Table("LFT blocks to write", ("round", "switch", "block"), rows)
    return Report(f"{fabric.name}: transition", tuple(facts(fabric, found, note)), (table,))


def facts(fabric: Fabric, found: Transition, note: str | None) -> Iterator[tuple[str, str]]:
    """Yield the size of the change and the verdict as rows of a name and a text."""
    from routing.deadlock.transition import extent

    yield "fabric", proof_report.fabric_line(fabric)
    yield "changes", extent(found.entries, found.lids, found.blocks)
    if found.removed:
        yield "removes", f"{count_noun(found.removed, 'entry')} of these, towards LIDs that are gone or cut off"
    if found.sls_differ or found.sl2vl_differ:
        which = " and ".join(["SLs"] * found.sls_differ + ["SL2VL"] * found.sl2vl_differ)
        yield "also", f"{which} differ, and are assumed to be mixed during the whole change"
    if note is not None:
        yield "assumed", note
    decided = note is None or found.safe
    yield "verdict", f"{found.verdict}: {found.reason}" if decided else f"unknown: with this assumption, {found.reason}"
    if found.verdict == "any-order":
        yield "proof", f"{found.strength}, scope {found.scope}"
    if found.plan is not None and len(found.plan) > 1:
        for number, part in enumerate(_rounds(found), 1):
            text = f"{count_noun(len(part), 'entry')} in {count_noun(len(part.blocks), 'block')}"
            out = f"; {part.removed} of them removed" if part.removed else ""
            after = "packets have left" if part.drains else "all switches have acknowledged"
            yield f"round {number}", text + out + (f"; only after {after}" if number > 1 else "")


def _rounds(found: Transition) -> Iterator[Round]:
    """Yield the rounds of the plan of a transition; no rounds without a plan."""
    return iter(()) if found.plan is None else found.plan.rounds


def steps(drain: DoubleScheme | None) -> Iterator[str]:
    """Yield a line for each step of the Double Scheme (a transition that drains traffic); no line without such a
    scheme.
    """
    if drain is None:
        return
    reached = (
        "in each step, every CA and router is reachable" if drain.gapless else "traffic to the other LIDs has to wait"
    )
    yield f"Double Scheme in {count_noun(len(drain.steps), 'step')}; {reached}:"
    for step in drain.steps:
        state = "safe" if step.safe else f"credit loop of {count_noun(len(step.cycle), 'channel')}"
        lost = f", {count_noun(step.lost, 'entry drops', 'entries drop')} packets" if step.lost else ""
        wait = f"; wait {step.wait}" if step.wait else ""
        sent = f"sends to {count_noun(int(step.inject.sum()), 'LID')}, {int(step.drained.sum())} drained"
        yield f"  {step.number}. {step.title}: {sent}; {state}{lost}{wait}"


def as_object(found: Transition, note: str | None) -> dict[str, Any]:
    """Return the verdict on a transition as an object for ``--json``."""
    loop, drain = found.loop, found.drain
    return {
        "verdict": found.verdict if note is None or found.safe else "unknown",
        "assumed": proof_report.assumed(note),
        "safe": found.safe,
        "reason": found.reason,
        "strength": found.strength,
        "scope": found.scope,
        "entries_changed": found.entries,
        "lids_changed": found.lids,
        "blocks_changed": found.blocks,
        "entries_removed": found.removed,
        "sls_differ": found.sls_differ if note is None else None,
        "sl2vl_differ": found.sl2vl_differ if note is None else None,
        "any_order_loop": None if loop is None else [turn.as_object() for turn in loop.turns],
        "any_order_loop_needs_forwarding_loops": None if loop is None else loop.looping,
        "lids_in_forwarding_loops": found.looping,
        "forwarding_loops": [
            {"destination": cycle.destination, "lid": cycle.lid, "switch_labels": cycle.switches}
            for cycle in found.forwarding_loops
        ],
        "drops": dataclasses.asdict(found.drops),
        "rounds": [round_object(part) for part in _rounds(found)],
        "steps": [] if drain is None else [step_object(drain, number) for number in range(len(drain.steps))],
        "seconds": found.seconds,
    }


def round_object(part: Round) -> dict[str, Any]:
    """Return one round of a plan as an object for ``--json``."""
    size = {"entries_changed": len(part), "blocks_changed": len(part.blocks)}
    return {**size, "entries_removed": part.removed, "drains": part.drains}


def step_object(drain: DoubleScheme, number: int) -> dict[str, Any]:
    """Return one step of the Double Scheme as an object for ``--json``."""
    step = drain.steps[number]
    return {
        "number": step.number,
        "title": step.title,
        "safe": step.safe,
        "entries_dropping": step.lost,
        "lids_sent_to": int(step.inject.sum()),
        "lids_drained": int(step.drained.sum()),
        "wait": step.wait,
    }
