"""``ibnue adaptive``: compute or check port groups for adaptive routing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from routing.cli import fabric_argument, proof_report
from routing.cli.command import FINDING
from routing.cli.output import echo_lines, fabric_object, json_option, print_json, print_rows, spinner
from routing.cli.param_types import threads_option
from routing.errors import OptionError
from routing.numerals import count_noun

if TYPE_CHECKING:
    from routing.deadlock.port_groups import GroupProof
    from routing.deadlock.proof import Proof
    from routing.port_groups import PortGroups

RULES = {
    "commit": "a packet waits for the port that the switch has chosen",
    "escape": "a packet takes whichever port of its group has room first",
}


@click.command()
@fabric_argument.fabric_argument
@click.argument("tables", type=click.Path(path_type=Path))
@fabric_argument.sl_options
@click.option("--rule", type=click.Choice(list(RULES)),
              help="What a switch does with a packet that has to wait. commit (the default): the packet waits for the"
                   " port that the switch has chosen. escape: the packet takes whichever port of"
                   " its group has room first.")  # fmt: skip
@click.option("--groups", "given", type=click.Path(path_type=Path), metavar="FILE",
              help="Check the port groups in FILE instead of computing some.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the port groups.")
@threads_option
@json_option
def adaptive(
    *, fabric: str, tables: Path, rule: str | None, given: Path | None, output: Path | None, threads: int, as_json: bool
) -> int:
    """Compute port groups by which switches may route adaptively, and prove that packets cannot deadlock.

    \b
    ibnue adaptive fabric.net tables -o groups.txt

    TABLES are proven tables of FABRIC.  A group has the port of the tables, and further ports that lead nearer to the
    destination.  Exit status 1 if packets that follow the groups can deadlock, circulate, or find no port.
    """
    from routing.deadlock.port_groups import compute_port_groups, prove_port_groups
    from routing.deadlock.proof import prove
    from routing.deadlock.verdict import on_one_vl
    from routing.formats.port_groups import read_port_groups, write_port_groups
    from routing.port_groups import Rule

    if given is not None and (rule is not None or output is not None):
        name = "--rule" if rule is not None else "--output"
        raise OptionError(f"{name} has no effect with --groups", remedy="leave out one of them")
    with spinner("reading"):
        subnet = fabric_argument.read(fabric)
        routing = fabric_argument.tables(tables, subnet)
    note = proof_report.vl_note(routing)
    routing = routing if note is None else on_one_vl(routing)
    with spinner("computing"):
        proof = prove(subnet, routing, threads=threads)
        if given is None:
            groups = compute_port_groups(subnet, routing, proof, Rule(rule or "commit"))
        else:
            groups = read_port_groups(given, subnet, routing)
        found = prove_port_groups(groups, proof, threads=threads)
    if output is not None and found.certified:
        write_port_groups(output, groups)
    if as_json:
        print_json(
            "ibnue-adaptive/1", {"fabric": fabric_object(subnet, fabric), **as_object(groups, proof, found, note)}
        )
    else:
        print_rows(summary(groups, proof, found, note))
        for line in cycle_lines(groups, found):
            echo_lines(line)
    return 0 if found.certified else FINDING


def summary(groups: PortGroups, proof: Proof, found: GroupProof, note: str | None) -> Iterator[tuple[str, str]]:
    """Yield the verdict on port groups as rows of a name and a text.

    ``proof`` is the proof of the tables, and ``found`` the proof of the port groups.  ``note`` is the assumption about
    unknown parts of the tables (:func:`.proof_report.vl_note`).
    """
    trace = found.trace
    yield "fabric", proof_report.fabric_line(groups.fabric)
    yield "rule", f"{groups.rule.value}: {RULES[groups.rule.value]}"
    if note is not None:
        yield "assumed", note
    yield (
        "groups",
        f"{count_noun(trace.groups, 'group')} with {trace.ports / max(trace.groups, 1):.2f} ports on average",
    )
    yield "choices", f"{trace.choices / max(trace.groups, 1):.1%} of the groups have two ports or more"
    yield "VLs", str(proof.vls)
    for name, count in faults(found):
        yield name, str(count)
    if found.cdg is None:
        yield "deadlock", "POSSIBLE"
    elif not found.certified:
        yield "deadlock", "none, but packets do not arrive"
    else:
        also = ", also with replies" if proof.strength == "reversible" else ""
        yield "deadlock", f"none{also}: every packet arrives, whichever ports it takes"


def faults(found: GroupProof) -> Iterator[tuple[str, int]]:
    """Yield the name and the number of errors of each kind that the proof has found in the port groups."""
    trace = found.trace
    kinds = {
        "without a port": trace.dead_ends,
        "without the port of the tables": trace.without_table,
        "LIDs whose packets can circulate": trace.circulating,
    }
    yield from ((name, count) for name, count in kinds.items() if count)


def cycle_lines(groups: PortGroups, found: GroupProof) -> Iterator[str]:
    """Yield lines that describe the first error in the port groups and a cycle of dependencies.

    If the proof has found no error, there is no line about an error.  If it has found no cycle, there are no lines
    about a cycle.
    """
    fabric, channels = groups.fabric, groups.fabric.channels
    if found.trace.first_fault is not None:
        row, switch = found.trace.first_fault
        yield f"first fault: at {fabric.labels[switch]}, of packets to LID {int(groups.lids[row])}"
    if found.cycle:
        yield f"cycle of {count_noun(len(found.cycle), 'channel')}, each waits for the next:"
    for channel, vl in found.cycle:
        ends = fabric.labels[int(channels.src[channel])], fabric.labels[int(channels.dst[channel])]
        ports = int(channels.port[channel]), int(channels.dst_port[channel])
        yield f"  {ends[0]} port {ports[0]} -> {ends[1]} port {ports[1]}, VL {vl}"


def as_object(groups: PortGroups, proof: Proof, found: GroupProof, note: str | None) -> dict[str, Any]:
    """Return the verdict on port groups as an object for ``--json``."""
    fabric, channels, trace = groups.fabric, groups.fabric.channels, found.trace
    return {
        "rule": groups.rule.value,
        "ok": found.certified,
        "strength": proof.strength,
        "scope": proof.scope,
        "vls": proof.vls,
        "assumed": [] if note is None else [note],
        "groups": trace.groups,
        "ports_mean": trace.ports / max(trace.groups, 1),
        "groups_with_choice": trace.choices,
        "groups_missing": trace.dead_ends,
        "groups_without_table_port": trace.without_table,
        "lids_circulating": trace.circulating,
        "dependency_cycle": [
            {"switch": fabric.labels[int(channels.src[channel])], "port": int(channels.port[channel]), "vl": vl}
            for channel, vl in found.cycle
        ],
    }
