"""Find update schedules: rounds in which new tables can be written without a credit loop in any mixture of old and new
tables.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from osm_plugin.answer import DEFERRED
from osm_plugin.base import Base
from osm_plugin.state import SavedTables
from routing.deadlock.lost import LostLids
from routing.deadlock.schedule_search import find_schedule
from routing.deadlock.update_schedule import UpdateSchedule
from routing.fabric import NO_PORT
from routing.numerals import count_noun
from routing.tables import Routing


@dataclass(frozen=True, eq=False)
class Change:
    """The replacement of the tables in the switches by new tables, and the update schedule for it.

    Attributes
    ----------
    base
        The tables in the switches.
    after
        The new tables.  ``after.deferred`` lists the entries that later rounds write.
    schedule
        The update schedule; None: all entries are written at once, which is not proven safe.  The rounds of a schedule
        cannot cause a credit loop, except a first round that only removes entries.  While the switches write such a
        first round, a credit loop is possible.  Such a first round is needed if old entries are unknown.  It is also
        used if cables have changed at ports that old entries name, and the search found no schedule without it.
    asked
        Whether an update schedule was searched for.
    replies
        False if both the old and the new tables are proven for replies, but the update schedule is not safe for
        replies.  True in all other cases.
    qos_changed
        Whether the SLs or VLs of QoS classes change.  Mixtures of old and new SLs of classes are not checked.
    """

    base: Base
    after: SavedTables
    schedule: UpdateSchedule | None
    asked: bool
    replies: bool = True
    qos_changed: bool = False

    @property
    def any_sls(self) -> bool:
        """Return whether the change must be safe for every choice of SLs by the senders.

        Every choice must be safe if the SLs in use are unknown and the new tables use several VLs.
        """
        return self.base.sls == "unknown" and self.after.routing.vls > 1

    def describe(self) -> str:
        """Describe in a few words for the log how the new tables are written."""
        unknown = self.base.describe_unknown(self.after.fabric)
        text = f"{unknown}; {self._how(known=not unknown)}" if unknown else self._how()
        return f"{text}; the SLs of QoS classes change, which is not judged" if self.qos_changed else text

    def _how(self, *, known: bool = True) -> str:
        schedule, aside = self.schedule, "" if self.replies else ", without replies"
        if schedule is None and known and not self.base.changed:
            if self.base.sls == "unknown":
                return "no LFT entry changes, but the SLs in use are unknown"
            return "only SLs and SL-to-VL tables change, which have no rounds"
        if schedule is None:
            return "written at once" + ", for which no safe rounds were found" * (self.asked and known)
        if len(schedule) == 1:
            return f"safe to write in any order{aside}"
        *sizes, last = [np.count_nonzero(schedule.round == number) for number in range(1, len(schedule) + 1)]
        if schedule.only_removes:
            sizes[0] = np.count_nonzero((schedule.round == 1) | (schedule.removed_in_round == 1))
        sizes[0] += np.count_nonzero(self.base.unknown)
        if self.base.known:  # The schedule leaves out entries that lead nowhere, such as entries to a lost LID.
            sizes[0] += max(0, self.base.changed - len(schedule.lid))
        removed = ["all unknown entries"] * (not known)
        removed += ["entries of paths over changed cables"] * schedule.only_removes
        entries = f"{', '.join(map(str, sizes))} and {count_noun(int(last), 'entry')}"
        text = f"written in {len(schedule)} rounds of {entries}{aside}"
        if removed:
            text += f", of which the first removes {' and '.join(removed)}"
        if schedule.first_draining_round:
            text += f", with a wait before {_which(schedule)}"
        if schedule.drained:
            text += f", {schedule.drained} of them removed until their round"
        return text


def _which(schedule: UpdateSchedule) -> str:
    """Describe in words the rounds before which packets have to leave the fabric."""
    if schedule.first_draining_round == 2:
        return "each but the first"
    is_last = schedule.first_draining_round == len(schedule)
    return "the last" if is_last else f"each from round {schedule.first_draining_round} on"


def stage_update(
    base: Base, after: SavedTables, *, wanted: bool, qos_changed: bool = False, threads: int = 2
) -> Change | None:
    """Return the change from the tables in the switches to the new tables; None if nothing changes.

    If ``wanted`` is true, search for an update schedule.  The search treats unknown entries as missing entries.  If
    there are unknown entries, the first round only removes entries, among them all unknown entries.  Packets that
    follow unknown entries can be anywhere, so all packets have to leave the fabric before the second round.

    ``base`` has the tables in the switches, and ``after`` the new tables.  ``qos_changed`` states whether the SLs or
    VLs of QoS classes change.
    """
    same = _is_same(base)
    # Equal LFTs are a change, too, if senders may use other SLs than those of the new tables.
    other_sls = qos_changed or (base.sls == "unknown" and after.routing.vls > 1)
    if base.empty or (same and not other_sls):
        return None
    if not wanted or same:
        return Change(base, after, None, asked=False, qos_changed=qos_changed)
    schedule, replies = _find_schedule(base, after, threads=threads)
    if schedule is not None and not base.known and not schedule.only_removes:
        schedule = schedule.one_later(base.new.lft)
    if schedule is not None and len(schedule) > 1:
        after = replace(after, deferred=_deferred_entries(schedule, base.routing))
    return Change(base, after, schedule, asked=True, replies=replies, qos_changed=qos_changed)


def _is_same(base: Base) -> bool:
    old, new = base.routing, base.new
    if not base.known or not np.array_equal(old.lft, new.lft):
        return False
    return all(a is b or np.array_equal(a, b) for a, b in ((old.sl, new.sl), (old.sl2vl, new.sl2vl)))


def _find_schedule(base: Base, after: SavedTables, *, threads: int) -> tuple[UpdateSchedule | None, bool]:
    """Search for an update schedule without a credit loop.

    If both the old and the new tables are proven for requests and replies, the search first looks for a schedule that
    is safe for requests and replies.  If there is none, the search looks for a schedule that is safe for requests.

    ``base`` has the tables in the switches, and ``after`` the new tables.

    Returns
    -------
    schedule
        The update schedule; None if the search found none.
    replies
        False if both the old and the new tables are proven for replies, but the schedule is not safe for replies.  True
        in all other cases.
    """
    known = None
    if base.cdg is not None and after.proof.cdg is not None:
        known = base.cdg | after.proof.cdg
    old, new, lost = checked_tables(base)
    whole = {base.strength, after.proof.strength} == {"reversible"}
    for replies in (True, False) if whole else (False,):
        schedule = find_schedule(
            base.fabric, old, new, known=known, lost=lost, rewired=base.rewired, replies=replies, threads=threads
        )
        if schedule is not None:
            return schedule, replies or not whole
    return None, True


def checked_tables(base: Base) -> tuple[Routing, Routing, LostLids]:
    """Return the old and new tables for the check of a change.

    If the SLs in use are unknown, all paths of the returned tables use one VL.

    A credit loop on several VLs is also a loop of channels.  So paths without a credit loop on one VL have no credit
    loop on several VLs, for any SLs and any SL2VL tables.

    Returns
    -------
    old
        The tables in the switches.
    new
        The new tables.
    lost
        Former owners of LIDs that no port has any more.
    """
    if base.sls != "unknown" or base.new.vls == 1:
        return base.routing, base.new, base.lost
    sl, sl2vl = np.zeros(base.new.lft.shape[1], np.uint8), np.zeros(16, np.uint8)
    old, new = (replace(routing, sl=sl, sl2vl=sl2vl, vls=1, vls_needed=1) for routing in (base.routing, base.new))
    return old, new, LostLids.unknown(base.fabric, sl)


def _deferred_entries(schedule: UpdateSchedule, old: Routing) -> npt.NDArray[np.void]:
    """Return the entries that rounds after the first round write or remove, as an array of
    :data:`~osm_plugin.answer.DEFERRED`.

    Each element has the port of the entry before the write or removal.  An entry that one round removes and a later
    round writes has two elements.  The element of the removal has the old port, and the element of the write has port
    255 (no port).  If the first round removes the entry, there is only the element of the write.

    ``old`` are the tables before the first round.
    """
    late, out = np.flatnonzero(schedule.round > 1), np.flatnonzero(schedule.removed_in_round > 1)
    deferred = np.zeros(len(late) + len(out), DEFERRED)
    which = np.append(late, out)
    deferred["row"], deferred["lid"] = schedule.switch[which], schedule.lid[which]
    deferred["round"] = np.append(schedule.round[late], schedule.removed_in_round[out])
    deferred["port"] = old.lft[deferred["row"], deferred["lid"]]
    deferred["port"][: len(late)][schedule.removed_in_round[late] > 0] = NO_PORT
    return deferred


def plan_number(kept: SavedTables) -> int:
    """Return a number that identifies the update schedule of the tables ``kept``; 0 if no entry is deferred.

    The C part of the plugin (the shim) names the schedule by this number when it reports how many rounds are written.

    ``kept`` are the tables, with the entries that later rounds write.
    """
    if kept.deferred is None:
        return 0
    text = kept.fabric.digest.encode() + kept.deferred.tobytes()
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "little")


def as_written(kept: SavedTables, rounds: int) -> SavedTables:
    """Return the tables after ``rounds`` rounds.  Entries that these rounds have written are no longer deferred.

    ``kept`` are the tables, with the entries that later rounds write.
    """
    if kept.deferred is None:
        return kept
    left = kept.deferred[kept.deferred["round"] > max(rounds, 1)]
    if rounds and not len(left):
        return replace(kept, deferred=None)
    return kept if len(left) == len(kept.deferred) else replace(kept, deferred=left)
