"""``ibnue watch``: check whether the counters of the switches indicate a credit loop."""

from __future__ import annotations

import itertools
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from routing.cli import fabrics, findings
from routing.cli.command import FINDING
from routing.cli.numbers import Number
from routing.cli.output import json_option, phase, print_facts, print_json, tell
from routing.errors import EnvironmentProblem
from routing.numerals import number_of

if TYPE_CHECKING:
    from routing.counters import Readings
    from routing.deadlock.watch import Pointers
    from routing.fabric import Fabric


@click.command()
@click.argument("fabric", shell_complete=fabrics.complete)
@click.argument("tables", type=click.Path(path_type=Path))
@fabrics.sl_options
@click.option("--interval", type=Number(0.01, 86400), default=1.0, show_default=True, metavar="SECONDS",
              help="Between two readings.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(1), metavar="N", help="Stop after N; without it, when a loop is found.")
@click.option("--once", is_flag=True, help="Read once, and judge what the counters hold since they were reset.")
@click.option("--reset", is_flag=True, help="First empty the counters of ports of which one is full.")
@click.option("--all", "everywhere", is_flag=True, help="All channels between switches, not only those on loops.")
@fabrics.name_map_option
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
    as_json: bool,
) -> int:
    """Read the counters of FABRIC with perfquery and name the credit loop of TABLES that they point at.

    A channel is suspected if it drops at the head of its queue, or waits and sends next to nothing.  FABRIC has to have
    the LIDs that the switches have now (the output of ibnetdiscover has).  Exit status 1 if suspected channels are on a
    credit loop, in any round.
    """
    if once and (rounds is not None or reset):
        other = "--rounds" if rounds is not None else "--reset"
        raise click.UsageError(f"--once reads once: give it or {other}", click.get_current_context())
    import numpy as np

    from routing.deadlock.verdict import worst_case
    from routing.deadlock.watch import Pointers, loops_pointed_at
    from routing.policy import loop_channels

    with phase("reading"):
        subnet = fabrics.read(fabric)
        known = fabrics.tables(tables, subnet)
        note, routing = findings.vl_note(known), worst_case(known)
        on_loop = loop_channels(subnet, routing)
    watched = np.arange(len(on_loop), dtype=np.int32) if everywhere else np.flatnonzero(on_loop).astype(np.int32)
    told, unjudged = Pointers((), ()), watched[:0]
    number_of_rounds = 0 if once else rounds
    for number, added in enumerate(rounds_of(subnet, watched, interval, number_of_rounds, reset=reset), 1):
        pointed = loops_pointed_at(subnet, routing, added.suspected)
        if pointed.loops or not told.loops:
            told, unjudged = pointed, added.unjudged
        if not as_json:
            if note is not None and number == 1:
                tell(f"assumed: {note}")
            show(subnet, number, len(watched), added, pointed)
        if told.loops and rounds is None:
            break
    if as_json:
        print_json({**as_object(subnet, told, unjudged.tolist()), "assumed": note})
    elif not len(watched):
        tell("these tables have no credit loop, so there is nothing to watch (--all: everything)")
    return FINDING if told.loops else 0


def rounds_of(fabric: Fabric, watched: Any, interval: float, rounds: int | None, *, reset: bool) -> Iterator[Readings]:
    """Yield the counter changes of every round; nothing if no channel is watched.

    With ``rounds`` 0, yield the counters since their last reset, once.
    """
    from routing.counters import check_lids, empty_counters, read_channels

    if not len(watched):
        return
    with phase("reading counters"):
        check_lids(fabric, watched, run)
        before = read_channels(fabric, watched, run)
        if reset and before.full.any():
            empty_counters(fabric, before, run)
            before = read_channels(fabric, watched, run)
    if rounds == 0:
        yield before
    for _ in itertools.repeat(None) if rounds is None else range(rounds):
        time.sleep(interval)
        with phase("reading counters"):
            now = read_channels(fabric, watched, run)
        yield now.since(before)
        before = now


def run(command: Sequence[str]) -> str:
    """Run a program, and return its standard output.

    Raises
    ------
    EnvironmentProblem
        The program is not installed, fails or does not end.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except FileNotFoundError:
        raise EnvironmentProblem(f"there is no {command[0]} (apt install infiniband-diags)") from None
    except subprocess.TimeoutExpired:
        raise EnvironmentProblem(f"{' '.join(command)} does not end") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        remedy = " (run it as root on a host with an active InfiniBand port)" if "UMAD" in said[-1] else ""
        raise EnvironmentProblem(f"{' '.join(command)}: {said[-1]}{remedy}")
    return done.stdout


def show(fabric: Fabric, number: int, watched: int, added: Readings, told: Pointers) -> None:
    """Print the results of one round."""
    if number == 1:
        print_facts([("fabric", findings.fabric_line(fabric)), ("watched", number_of(watched, "channel"))])
    tell(f"round {number}: {number_of(len(added.suspected), 'channel')} suspected")
    if len(added.unjudged):
        first = channel_name(fabric, int(added.unjudged[0]))
        more = f" and {len(added.unjudged) - 1} more" if len(added.unjudged) > 1 else ""
        tell(f"not judged, as a counter is full and says no more (--reset empties it): {first}{more}")
    for pointed in told.loops:
        tell(*pointed.describe())
    for channel in told.elsewhere:
        tell(f"suspected, but on no credit loop: {channel_name(fabric, channel)}")


def channel_name(fabric: Fabric, channel: int) -> str:
    """Return a channel's name: its source switch and port."""
    channels = fabric.channels
    return f"{fabric.labels[channels.src[channel]]} port {int(channels.port[channel])}"


def as_object(fabric: Fabric, told: Pointers, unjudged: Sequence[int]) -> dict[str, Any]:
    """Return the last round with a loop, else the last round, for ``--json``."""
    loops = [
        {"suspected": list(pointed.suspected), "turns": [turn.as_object() for turn in pointed.loop.turns]}
        for pointed in told.loops
    ]
    others = {"elsewhere": told.elsewhere, "unjudged": unjudged}
    return {"loops": loops, **{what: [channel_name(fabric, number) for number in of] for what, of in others.items()}}
