"""What a change of tables means for traffic that is under way, in one line for the log."""

from __future__ import annotations

import numpy as np

from osm_plugin.rounds import Change, in_switches
from routing.deadlock.stages import Stages
from routing.deadlock.transition import Transition, extent, prove_transition
from routing.deadlock.update_plan import BLOCK
from routing.fabric import NO_PORT
from routing.numerals import number_of

MOST_ROUNDS = 8
"""Of an order that is looked for: the next sweep wants the processor."""
MOST_DRAINED = 1 << 20
"""Entries of tables up to which a Double Scheme is looked for, which OpenSM cannot follow anyway."""


def transition_line(change: Change, *, threads: int = 2) -> str | None:
    """The verdict on a change of tables; None where nothing changes.

    Where rounds were found it is theirs.  What was written at once is judged here: OpenSM writes switches in an order
    of its own, so that only "any-order" means that there was no credit loop on the way.
    """
    if change.stages is not None:
        return _staged(change, change.stages)
    fabric, new = change.after.fabric, change.after.routing
    old = in_switches(change.before, fabric)
    small = new.lft.size <= MOST_DRAINED
    found = prove_transition(fabric, old, new, rounds=MOST_ROUNDS, drain=small, threads=threads)
    if not (found.entries or found.levels or found.lanes):
        return None
    return "; ".join([f"transition {found.verdict}: {found.reason}", *_details(found)])


def _staged(change: Change, stages: Stages) -> str | None:
    if not len(stages.lid):
        return None
    old = in_switches(change.before, change.after.fabric)
    blocks = np.unique(stages.switch << 16 | stages.lid // BLOCK)
    dropped = int(np.count_nonzero(old.lft[stages.switch, stages.lid] == NO_PORT))
    told = "any-order: no mixture of the tables has a credit loop"
    if len(stages) > 1:
        between = "packets leave" if stages.wait_from else "switches acknowledge"
        told = f"in rounds: none of {len(stages)} has a credit loop, as {between} between them"
    lids = len(np.unique(stages.lid))
    lines = [f"transition {told}", extent(len(stages.lid), lids, len(blocks))]
    if dropped:
        lines.append(_dropping(dropped))
    if stages.drained:
        lines.append(f"{number_of(stages.drained, 'old entry')} out of use for a while, as no mixture is safe")
    return "; ".join(lines)


def _details(found: Transition) -> list[str]:
    told = [extent(found.entries, found.lids, found.blocks)]
    if found.levels or found.lanes:
        told.append(" and ".join(["SLs"] * found.levels + ["SL2VL"] * found.lanes) + " change")
    if found.loop is not None:
        channels = [f"{turn.turn.switch} port {turn.turn.port}" for turn in found.loop.turns[:4]]
        more = ", ..." if len(found.loop) > len(channels) else ""
        told.append(
            f"credit loop of {number_of(len(found.loop), 'channel')} while tables are mixed:"
            f" {', '.join(channels)}{more}"
        )
    if found.circling:
        told.append(f"packets for {number_of(found.circling, 'LID')} may circle meanwhile")
    if found.drops.old:
        told.append(_dropping(found.drops.old))
    return told


def _dropping(entries: int) -> str:
    return f"{number_of(entries, 'old entry drops', 'old entries drop')} packets until written"
