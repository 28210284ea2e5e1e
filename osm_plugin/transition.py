"""Describe in one line for the log whether a change of tables is safe, and how it affects the traffic in the fabric."""

from __future__ import annotations

import numpy as np

from osm_plugin.staged_update import Change, checked_tables
from routing.deadlock.transition import Transition, extent, prove_transition
from routing.deadlock.update_schedule import BLOCK, UpdateSchedule
from routing.fabric import NO_PORT
from routing.numerals import count_noun

MOST_ROUNDS = 8
"""Maximum number of rounds in a search for safe rounds.  The limit bounds the CPU time of the search, which may delay
the next sweep.
"""
MOST_DRAINED = 1 << 20
"""Maximum size of tables, in LFT entries, for which the worker searches for a Double Scheme (a transition with drained
traffic).

The result of this search is only information for the administrator, because OpenSM cannot execute a Double Scheme.
"""


def transition_line(change: Change, *, threads: int = 2) -> str | None:
    """Return a line for the log that states whether a change of tables is safe; None if nothing changes.

    If entries in the switches are unknown, or the SLs of QoS classes change, the line states that the change is not
    judged.  If the change has an update schedule, the line describes its rounds, which are safe.

    Without a schedule, OpenSM writes all switches at once, in an order that the plugin does not control.  This function
    then examines all mixtures of the old and the new tables.  The verdict "any-order" means that no mixture has a
    credit loop.  With every other verdict, a credit loop is possible during the change.  For the log, this function
    also searches for safe rounds, unless such a search has already failed or the SLs in use are unknown.
    """
    unknown = change.base.describe_unknown(change.after.fabric)
    if unknown:
        return f"transition not judged: {unknown}"
    if change.qos_changed:
        return "transition not judged: the SLs of QoS classes change, and senders may still use the old SLs"
    if change.schedule is not None:
        return _describe_rounds(change, change.schedule)
    old, new, lost = checked_tables(change.base)
    small = new.lft.size <= MOST_DRAINED
    rounds, drain = 0 if change.asked or change.any_sls else MOST_ROUNDS, small and not change.any_sls
    base = change.base
    found = prove_transition(
        base.fabric, old, new, lost=lost, rewired=base.rewired, rounds=rounds, drain=drain, threads=threads
    )
    is_safe = found.verdict == "any-order"
    if not (found.entries or found.sls_differ or found.sl2vl_differ) and (is_safe or not change.any_sls):
        return None
    if base.sls == "unknown" and not is_safe:
        why = "the SLs in use are unknown, and some SLs may cause a credit loop while tables are mixed"
        return f"transition not judged: {why}; {extent(found.entries, found.lids, found.blocks)}"
    return "; ".join([f"transition {found.verdict}: {found.reason}", *_assumed(change), *_details(found)])


def _assumed(change: Change) -> list[str]:
    """Return phrases with the unchecked assumptions of the verdict on a change of tables.

    The only possible assumption is that senders use certain SLs: the SLs of the state file, or of the tables published
    last.
    """
    source = {"state": "the state file", "last": "the tables published last"}.get(change.base.sls)
    if source and max(change.base.routing.vls, change.after.routing.vls) > 1:
        return [f"if senders use the SLs of {source}"]
    return []


def _describe_rounds(change: Change, schedule: UpdateSchedule) -> str | None:
    if not len(schedule.lid):
        return None
    old = change.base.routing
    blocks = np.unique(schedule.switch << 16 | schedule.lid // BLOCK)
    dropped = int(np.count_nonzero(old.lft[schedule.switch, schedule.lid] == NO_PORT))
    verdict = "any-order: no mixture of the tables has a credit loop"
    if len(schedule) > 1:
        between = "packets leave" if schedule.first_draining_round else "switches acknowledge"
        number = f"{'after the first ' if schedule.only_removes else ''}of {len(schedule)}"
        verdict = f"in rounds: none {number} has a credit loop, as {between} between them"
    lids = len(np.unique(schedule.lid))
    lines = [f"transition {verdict}", *_assumed(change), extent(len(schedule.lid), lids, len(blocks))]
    if dropped:
        lines.append(_dropping(dropped))
    if schedule.drained:
        why = "cables have changed places" if schedule.only_removes else "no mixture of old and new tables is safe"
        lines.append(f"{count_noun(schedule.drained, 'old entry')} removed for a while, because {why}")
    return "; ".join(lines)


def _details(found: Transition) -> list[str]:
    report = ["OpenSM does not follow these steps"] if found.verdict == "drained" else []
    report.append(extent(found.entries, found.lids, found.blocks))
    if found.sls_differ or found.sl2vl_differ:
        report.append(" and ".join(["SLs"] * found.sls_differ + ["SL2VL"] * found.sl2vl_differ) + " change")
    if found.loop is not None:
        channels = [f"{turn.turn.switch} port {turn.turn.port}" for turn in found.loop.turns[:4]]
        more = ", ..." if len(found.loop) > len(channels) else ""
        report.append(
            f"credit loop of {count_noun(len(found.loop), 'channel')} while tables are mixed:"
            f" {', '.join(channels)}{more}"
        )
    if found.looping:
        report.append(f"packets for {count_noun(found.looping, 'LID')} may loop until the tables are written")
    if found.drops.old:
        report.append(_dropping(found.drops.old))
    return report


def _dropping(entries: int) -> str:
    return f"{count_noun(entries, 'old entry drops', 'old entries drop')} packets until written"
