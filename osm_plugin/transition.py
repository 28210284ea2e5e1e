"""What the change from the last tables to these means for traffic that is under way, in one line for the log."""

from __future__ import annotations

from osm_plugin.state import Kept, fits
from routing.deadlock.transition import Transition, prove_transition
from routing.reroute.translate import translate

MOST_ROUNDS = 8
"""Of an order that is looked for: the next sweep wants the processor."""


def transition_line(before: Kept | None, after: Kept, *, threads: int = 2) -> str | None:
    """The verdict on a change of tables; None where there were none before, or nothing changes.

    OpenSM writes switches in an order of its own: only "any-order" means that there was no credit loop on the way.
    """
    if before is None or before is after or not fits(before, after.fabric):
        return None
    old = translate(before.routing, before.fabric, after.fabric)
    found = prove_transition(after.fabric, old, after.routing, rounds=MOST_ROUNDS, threads=threads)
    if not (found.entries or found.levels or found.lanes):
        return None
    return "; ".join([f"transition {found.verdict}: {found.reason}", *_details(found)])


def _details(found: Transition) -> list[str]:
    told = [f"{found.entries} entries of {found.lids} LIDs in {found.blocks} blocks"]
    if found.levels or found.lanes:
        told.append(" and ".join(["SLs"] * found.levels + ["SL2VL"] * found.lanes) + " change")
    if found.loop is not None:
        channels = [f"{turn.turn.switch} port {turn.turn.port}" for turn in found.loop.turns[:4]]
        more = ", ..." if len(found.loop) > len(channels) else ""
        told.append(f"credit loop of {len(found.loop)} channels while tables are mixed: {', '.join(channels)}{more}")
    if found.circling:
        told.append(f"packets for {found.circling} LIDs may circle meanwhile")
    if found.drops.old:
        told.append(f"{found.drops.old} old entries drop packets until they are written")
    return told
