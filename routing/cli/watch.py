"""Check whether the counters of the switches indicate a credit loop: ``ibnue watch``."""

from __future__ import annotations

import itertools
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from routing.cli import fabric_argument, proof_report
from routing.cli.command import FINDING
from routing.cli.output import channel_object, echo_lines, fabric_object, json_option, print_json, print_rows, spinner
from routing.cli.param_types import Number
from routing.errors import EnvironmentProblem, TableError
from routing.numerals import count_noun

if TYPE_CHECKING:
    from routing.counters import CounterDeltas
    from routing.deadlock.counter_diagnosis import SuspectLoop, SuspectTurns
    from routing.deadlock.loop_breaking import LoopBreak
    from routing.fabric import Fabric
    from routing.tables import Routing


@click.command()
@click.argument("fabric", shell_complete=fabric_argument.complete)
@fabric_argument.tables_argument
@fabric_argument.sl_options
@click.option("--interval", type=Number(0.01, 86400), default=1.0, show_default=True, metavar="SECONDS",
              help="Time between two readings.")  # fmt: skip
@click.option(
    "--rounds", type=click.IntRange(1), metavar="N", help="Stop after N rounds (default: when a loop is found)."
)
@click.option("--once", is_flag=True, help="Read once, and evaluate the growth since the counters were reset.")
@click.option("--reset", is_flag=True, help="First reset the counters of ports that have a saturated counter.")
@click.option(
    "--all", "everywhere", is_flag=True, help="Watch all channels between switches, not only those on credit loops."
)
@click.option(
    "--propose",
    is_flag=True,
    help="Name the fewest LFT entries whose change removes the loop with the most suspected channels.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="DIR",
              help="With --propose: folder for the changed tables, written if they have no credit loop.")  # fmt: skip
@fabric_argument.name_map_option
@json_option
def watch(
    *,
    fabric: str,
    tables: Path,
    interval: float,
    rounds: int | None,
    once: bool,
    reset: bool,
    everywhere: bool,
    propose: bool,
    output: Path | None,
    as_json: bool,
) -> int:
    """Read the counters of FABRIC with perfquery.  Name the credit loop of TABLES on which the counters suggest a
    deadlock.

    \b
    ibnue watch ibnetdiscover.txt dump_fts.txt --interval 10

    A channel is suspected if it drops packets at the head of its queue, or if it waits and sends almost nothing.  A
    round is the time between two readings of the counters.  FABRIC must have the present LIDs of the switches, so use
    new output of ibnetdiscover.  Exit status 1 if a suspected channel was on a credit loop in any round.
    """
    if once and (rounds is not None or reset):
        other = "--rounds" if rounds is not None else "--reset"
        raise click.UsageError(f"--once cannot be combined with {other}", click.get_current_context())
    if output is not None and not propose:
        raise click.UsageError("--output needs --propose", click.get_current_context())
    import numpy as np

    from routing.deadlock.counter_diagnosis import SuspectTurns, suspect_loops
    from routing.deadlock.verdict import worst_case
    from routing.policy import loop_channels

    with spinner("reading"):
        subnet = fabric_argument.read(fabric)
        known = fabric_argument.tables(tables, subnet)
        note, routing = proof_report.vl_note(known), worst_case(known)
        on_loop = loop_channels(subnet, routing)
    watched = np.arange(len(on_loop), dtype=np.int32) if everywhere else np.flatnonzero(on_loop).astype(np.int32)
    report, unclassified = SuspectTurns((), ()), watched[:0]
    number_of_rounds = 0 if once else rounds
    for number, added in enumerate(rounds_of(subnet, watched, interval, number_of_rounds, reset=reset), 1):
        suspects = suspect_loops(subnet, routing, added.suspected)
        if suspects.loops or not report.loops:
            report, unclassified = suspects, added.unclassified
        if not as_json:
            if note is not None and number == 1:
                echo_lines(f"assumed: {note}")
            show(subnet, number, len(watched), added, suspects)
        if report.loops and rounds is None:
            break
    found = None
    if propose and report.loops:
        found = propose_change(subnet, routing, report.loops[0], output, quiet=as_json)
    if as_json:
        shown = {"fabric": fabric_object(subnet, fabric), **as_object(subnet, report, unclassified.tolist())}
        shown["proposal"] = None if found is None else found.as_object(subnet)
        print_json("ibnue-watch/1", {**shown, "assumed": proof_report.assumed(note)})
    elif not len(watched):
        echo_lines("these tables have no credit loop, so there is nothing to watch (--all watches every channel)")
    return FINDING if report.loops else 0


def propose_change(
    fabric: Fabric, routing: Routing, suspect: SuspectLoop, output: Path | None, *, quiet: bool
) -> LoopBreak | None:
    """Find the fewest LFT entries whose change removes a credit loop, and print the change.

    ``suspect`` is the credit loop with its suspected channels.  The result is None if no change of a few LFT entries
    removes this loop.  The changed tables are written into the folder ``output``, unless ``output`` is None.  With
    ``quiet``, nothing is printed.

    Raises
    ------
    TableError
        The changed tables still have a credit loop.
    """
    from routing.cli.route import write
    from routing.deadlock.loop_breaking import break_loop
    from routing.publish import Demand, Shortfall, admit

    found = break_loop(fabric, routing, suspect.loop)
    if not quiet:
        echo_lines(*(["no change of a few LFT entries removes the loop"] if found is None else found.describe(fabric)))
    if output is None or found is None:
        return found
    tables = admit(fabric, found.routing, found.proof, Demand("forward"))
    if isinstance(tables, Shortfall):
        raise TableError(
            f"the changed tables have {tables.value}", remedy="route the fabric with an engine without credit loops"
        )
    write(output, tables)
    return found


def rounds_of(
    fabric: Fabric, watched: Any, interval: float, rounds: int | None, *, reset: bool
) -> Iterator[CounterDeltas]:
    """Yield for each round by how much the counters of the watched channels have grown.

    A round is the time between two readings, ``interval`` seconds.  If ``rounds`` is None, the rounds do not end.  If
    ``rounds`` is 0, only the values of the counters are yielded: how much the counters have grown since they were last
    reset.  With ``reset``, the counters of ports that have a saturated counter are reset first.  If no channel is
    watched, nothing is yielded.
    """
    from routing.counters import check_lids, empty_counters, read_channels

    if not len(watched):
        return
    with spinner("reading counters"):
        check_lids(fabric, watched, run)
        before = read_channels(fabric, watched, run)
        if reset and before.full.any():
            empty_counters(fabric, before, run)
            before = read_channels(fabric, watched, run)
    if rounds == 0:
        yield before
    for _ in itertools.repeat(None) if rounds is None else range(rounds):
        time.sleep(interval)
        with spinner("reading counters"):
            now = read_channels(fabric, watched, run)
        yield now.since(before)
        before = now


def run(command: Sequence[str]) -> str:
    """Run a program, and return its standard output.

    Raises
    ------
    EnvironmentProblem
        The program is not installed, fails, or does not end within 60 seconds.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except FileNotFoundError:
        raise EnvironmentProblem(f"{command[0]} is not installed", remedy="apt install infiniband-diags") from None
    except subprocess.TimeoutExpired:
        raise EnvironmentProblem(f"{' '.join(command)} does not end", remedy="run it by hand") from None
    if done.returncode != 0:
        output = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        remedy = "run it as root on a host with an active InfiniBand port" if "UMAD" in output[-1] else "run it by hand"
        raise EnvironmentProblem(f"{' '.join(command)}: {output[-1]}", remedy=remedy)
    return done.stdout


def show(fabric: Fabric, number: int, watched: int, added: CounterDeltas, suspects: SuspectTurns) -> None:
    """Print the suspected channels of one round, and the credit loops that contain these channels.

    ``number`` is the number of the round, ``watched`` the number of watched channels, and ``added`` the increments of
    their counters.
    """
    if number == 1:
        print_rows([("fabric", proof_report.fabric_line(fabric)), ("watched", count_noun(watched, "channel"))])
    echo_lines(f"round {number}: {count_noun(len(added.suspected), 'channel')} suspected")
    if len(added.unclassified):
        first = channel_name(fabric, int(added.unclassified[0]))
        more = f" and {len(added.unclassified) - 1} more" if len(added.unclassified) > 1 else ""
        echo_lines(f"not judged, because a counter is saturated (--reset resets it): {first}{more}")
    for suspect in suspects.loops:
        echo_lines(*suspect.describe())
    for channel in suspects.elsewhere:
        echo_lines(f"suspected, but on no credit loop: {channel_name(fabric, channel)}")


def channel_name(fabric: Fabric, channel: int) -> str:
    """Format a channel for messages: its source switch and port."""
    channels = fabric.channels
    return f"{fabric.labels[channels.src[channel]]} port {int(channels.port[channel])}"


def as_object(fabric: Fabric, suspects: SuspectTurns, unclassified: Sequence[int]) -> dict[str, Any]:
    """Return the suspected channels of one round, and their credit loops, as an object for ``--json``.

    ``suspects`` and ``unclassified`` are the results of one round.  ``unclassified`` lists channels that cannot be
    judged, because a counter is saturated.  The caller passes the last round in which a suspected channel was on a
    credit loop.  If there was no such round, the caller passes the last round.
    """
    loops = [
        {"suspected": list(suspect.suspected), "credit_loop": [turn.as_object() for turn in suspect.loop.turns]}
        for suspect in suspects.loops
    ]
    others = {"suspected_elsewhere": suspects.elsewhere, "unclassified": unclassified}
    return {
        "credit_loops": loops,
        **{what: [channel_object(fabric, number) for number in of] for what, of in others.items()},
    }
