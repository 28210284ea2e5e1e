"""Search for an update schedule: rounds in which new tables can be written without a credit loop.

Rounds that only wait for acknowledgements of the switches are preferred.  A switch can be written after the next
switches on its new path have acknowledged their new entries.  Packets that use the switch's new entry then meet only
new entries at these next switches.  So such rounds need not wait until packets in flight have left the fabric.  The
search assumes that in all later rounds, packets from earlier rounds still occupy every channel that they may have
reached.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from routing._kernels.cdg import trace
from routing.cdg.acyclic import Cdg
from routing.deadlock.lost import LostLids
from routing.deadlock.mixed import Bytes, Mixture
from routing.deadlock.mixed_cdg import LidColumns, Masks, MixedDependencies
from routing.deadlock.per_lid_rounds import (
    FEW_DRAINED,
    MOST_FOLLOWED,
    Changes,
    rounds_per_lid,
    rounds_with_drain,
    rounds_without_drain,
)
from routing.deadlock.removal_rounds import rounds_with_removal
from routing.deadlock.update_plan import find_plan
from routing.deadlock.update_schedule import MOST_ROUNDS, UpdateSchedule
from routing.fabric import NO_PORT, Fabric
from routing.tables import Routing, SlForm

MOST_SEARCHED = 1 << 18
"""Largest number of LFT entries of the whole tables for which all searches are tried.  For larger tables, slow searches
are left out, because a sweep of the subnet manager waits for the result.
"""
MOST_TRACED = 1 << 24
"""Largest number of LFT entries for which all unchanged columns may be traced.  For larger tables, the second search of
:func:`find_schedule` is left out.
"""
MOST_REMOVED = 4
"""Limit for a first round that only removes entries: at most MOST_REMOVED times as many entries as there are old
entries over rewired cables.  Rewired cables connect other ports than before (:func:`find_schedule`).
"""
NO_HOPS = 254
"""A packet with this number of hops, or with more hops, counts as not delivered."""


def find_schedule(
    fabric: Fabric,
    old: Routing,
    new: Routing,
    *,
    known: Cdg | None = None,
    lost: LostLids | None = None,
    rewired: npt.NDArray[np.bool_] | None = None,
    replies: bool = False,
    few: int = FEW_DRAINED,
    threads: int = 2,
) -> UpdateSchedule | None:
    """Find rounds in which tables can be replaced without a credit loop of traffic from or to CAs and routers.

    Parameters
    ----------
    fabric, old, new
        A fabric, and tables in its rows and columns.  The old tables have all entries that are in the switches: entries
        with unconnected ports drop packets, and entries for LIDs that no port has any more still carry traffic.
    known
        Union of two CDGs: the CDG of the old tables alone, and the CDG of the new tables alone.  Traffic to LIDs that
        are gone is included.  If ``known`` is given, unchanged columns need not be traced.
    lost
        Former owners of the LIDs that are gone, if known.
    rewired
        bool[S, L], the old entries over rewired cables, which now connect other ports than before
        (:class:`routing.reroute.installed.Installed`).  If no other rounds are found, an additional first round removes
        such entries.
    replies
        Whether reply traffic is included.
    few
        Number of old entries that rounds may remove for a while in tables of any size.  In large tables, rounds may
        remove more (:func:`~routing.deadlock.per_lid_rounds.most_drained`).
    threads
        Worker threads; the result is the same with any number.

    Returns
    -------
    UpdateSchedule or None
        The rounds; a single round means that any order of writing is safe.  None if no rounds were found, although safe
        rounds may exist.  Examples: VLs change from hop to hop, changed SLs form a loop on the old or the new routes,
        or nearly all entries change.

    Raises
    ------
    TableError
        The shapes do not fit the fabric.

    Notes
    -----
    Packets may have the old or the new SL at all times.  A switch is assumed to forward by its new entries once the
    switch has acknowledged them.  Cost: the cost of the first search
    (:func:`~routing.deadlock.per_lid_rounds.rounds_per_lid`).

    If the old tables alone, or the new tables alone, have a credit loop of packets with old and new SLs, no order of
    writing is safe.  Then the result is None without a search.

    If the first search finds no rounds, a second search follows, which traces all columns.  For tables of at most
    :data:`MOST_SEARCHED` entries, the second search also follows in two other cases: if ``known`` is not given, or if
    some of the rounds found begin only when packets have left the fabric.  The second search is left out if the tables
    have more than :data:`MOST_TRACED` entries, or if too many columns change.  Rounds that remove old entries are the
    last choice (:mod:`~routing.deadlock.removal_rounds`).
    """
    mixture = Mixture.of(fabric, old, new, lost)
    if mixture.sl2vl[0].ndim > 1 or len(mixture.sl2vl) > 1:
        return None
    waiting, large = MixedDependencies(mixture, replies=replies, threads=threads), mixture.before.size > MOST_SEARCHED
    changes = _traced(waiting) if known is None else None
    base = None if known is None else _known_base(waiting, known)
    base = base if changes is None else np.bitwise_or(*changes[2])
    schedule = None if base is None else rounds_per_lid(waiting, base, few=few)
    again = schedule is None or not (large or (known is not None and not schedule.first_draining_round))
    if again and mixture.before.size <= MOST_TRACED:
        changes = _traced(waiting) if known is not None else changes
        schedule = schedule if changes is None else _searched(waiting, changes, new, schedule, few)
    if schedule is None and rewired is not None:
        return _without_rewired(waiting, old, new, rewired, few)
    return schedule


def _without_rewired(
    waiting: MixedDependencies, old: Routing, new: Routing, rewired: npt.NDArray[np.bool_], few: int
) -> UpdateSchedule | None:
    """Find rounds of which the first only removes old entries.  The other rounds wait until packets have left the
    fabric.

    Rewired cables connect other ports than before.  So entries over these cables (``rewired``) lead packets to other
    switches than before, and may close credit loops with other old entries.  Two first rounds are tried, one
    after the other, until safe rounds are found for the rest.  The first try removes the changing entries over rewired
    cables.  The second try removes all changing entries towards each LID that has an entry over a rewired cable.
    """
    fabric, lost, replies, threads = waiting.mixture.fabric, waiting.mixture.lost, waiting.replies, waiting.threads
    changing = (old.lft != new.lft) & (old.lft != NO_PORT) & (new.lft != NO_PORT)
    for removed in (changing & rewired, changing & rewired.any(axis=0)):
        if np.count_nonzero(removed) > MOST_REMOVED * np.count_nonzero(rewired):
            return None
        left = replace(old, lft=np.where(removed, np.uint8(NO_PORT), old.lft))
        found = None
        if removed.any():
            found = find_schedule(fabric, left, new, lost=lost, replies=replies, few=few, threads=threads)
        if found is not None:
            found = found.one_later(new.lft)
            off = np.where(removed[found.switch, found.lid], np.uint8(1), found.removed_in_round)
            return replace(found, removed_in_round=off, only_removes=True)
    return None


def _known_base(waiting: MixedDependencies, known: Cdg) -> Masks | None:
    """Return uint32[edges], the dependencies that the old tables alone or the new tables alone have.

    Paths that mix old and new entries are not included.  Packets may have the old or the new SL.

    Returns None if more than :data:`~routing.deadlock.per_lid_rounds.MOST_FOLLOWED` entries would have to be traced,
    because that takes too long.
    """
    mixture, masks = waiting.mixture, known.masks.astype(np.uint32)
    if len(mixture.sl) == 1:
        return masks
    # `known` already contains the dependencies of entries that the new tables only remove.  So these entries are not
    # traced again.
    changes = Changes.of(mixture)
    lids = np.union1d(changes.lid[~changes.removed], _with_other_sls(mixture, replies=waiting.replies))
    if len(lids) * mixture.fabric.switches > MOST_FOLLOWED:
        return None
    columns = waiting.columns(lids)
    return waiting.union(columns, columns.next_channels[0], waiting.union(columns, columns.next_channels[1], masks))


def _traced(waiting: MixedDependencies) -> tuple[LidColumns, Masks, tuple[Masks, Masks]] | None:
    """Trace the LFT columns that change, and all other columns.

    Returns
    -------
    columns : LidColumns
        The columns of all LIDs for which entries or SLs change, and of the LIDs that are gone.
    unchanged : Masks
        uint32[edges], the CDG edges of all other columns.
    tables : (Masks, Masks)
        Two arrays, uint32[edges] each: the CDG edges of the old tables alone, and the CDG edges of the new tables
        alone.  In both arrays, packets may have the old or the new SL.

    The result is None in two cases.  First, ``columns`` would have more than
    :data:`~routing.deadlock.per_lid_rounds.MOST_FOLLOWED` entries.  Second, one of the two arrays in ``tables`` has a
    cycle, so that no order of writing is safe.
    """
    mixture = waiting.mixture
    changed = np.union1d(mixture.changed, mixture.misdirected)
    lids = np.union1d(changed, _with_other_sls(mixture, replies=waiting.replies))
    if len(lids) * mixture.fabric.switches > MOST_FOLLOWED:
        return None
    columns, nothing = waiting.columns(lids), np.zeros(waiting.slots.count, np.uint32)
    old, new = (waiting.union(columns, entries, nothing) for entries in columns.next_channels)
    # The changed columns often have a cycle among themselves.  Then the other columns need not be traced.
    if any(waiting.order(masks, columns) is None for masks in (old, new)):
        return None
    unchanged = waiting.unchanged(lids)
    tables = (unchanged | old, unchanged | new)
    return None if any(waiting.order(masks, columns) is None for masks in tables) else (columns, unchanged, tables)


def _with_other_sls(mixture: Mixture, *, replies: bool) -> npt.NDArray[np.int64]:
    """Return the LIDs, int64, towards which packets may get another SL in the new tables.

    With ``replies``, the result has all LIDs in use if any SL changes.
    """
    if len(mixture.sl) == 1:
        return np.zeros(0, np.int64)
    switch, (one, other) = mixture.fabric.lids.switch, mixture.sl
    lids = np.flatnonzero(switch >= 0)
    if replies:
        # A reply has the SL of its request, which went to another LID.  So a change of one SL can affect packets to
        # any LID.
        return lids
    a, b = one.matrix, other.matrix
    if SlForm.BY_SOURCE_LID in (one.form, other.form):
        a, b = (each.matrix[each.row_of(switch[lids], lids)] for each in mixture.sl)
    return np.intersect1d(lids, np.flatnonzero((a != b).any(axis=0)))


def _searched(
    waiting: MixedDependencies, changes: tuple[LidColumns, Masks, tuple[Masks, Masks]], new: Routing,
    schedule: UpdateSchedule | None, few: int,
) -> UpdateSchedule | None:  # fmt: skip
    """Find rounds whose dependencies close no cycle with the dependencies of the LFT columns that do not change.

    ``changes`` is the result of :func:`_traced`.  ``schedule`` holds the rounds of :func:`rounds_per_lid`; None if that
    function found none.  If this search finds rounds, they replace ``schedule``.  Only if ``schedule`` is None,
    :func:`rounds_with_removal` is tried as the last choice.
    """
    (columns, unchanged, tables), size = changes, waiting.mixture.before.size
    order, large = waiting.order(unchanged, columns), size > MOST_SEARCHED
    assert order is not None  # The old tables contain these CDG edges, and have no cycle.
    if not large:
        rounds, admitted = rounds_without_drain(waiting, columns, unchanged, order)
        if admitted.all():
            return UpdateSchedule.of(columns.lids, rounds, drains=False)
    rounds, admitted = rounds_with_drain(waiting, columns, unchanged, order, all_or_none=True)
    if admitted.all():
        return UpdateSchedule.of(columns.lids, rounds, drains=True)
    found = None if large else _planned(waiting, columns, new) or schedule
    return found or rounds_with_removal(waiting, columns, tables, few)


def _planned(waiting: MixedDependencies, columns: LidColumns, new: Routing) -> UpdateSchedule | None:
    """Search for rounds that wait until packets have left the fabric, with
    :func:`~routing.deadlock.update_plan.find_plan`.
    """
    mixture, before = waiting.mixture, columns.next_channels[0]
    if waiting.trace(columns.between(before, before), np.zeros(waiting.slots.count, np.uint32)):
        return None
    hops = _hops(waiting, new.lft)
    plan = find_plan(mixture, hops, replies=waiting.replies, rounds=MOST_ROUNDS, threads=waiting.threads)
    reached = _hops(waiting, mixture.before) < NO_HOPS
    for state in () if plan is None else plan.states(mixture.before, mixture.after):
        reached, earlier = _hops(waiting, state) < NO_HOPS, reached
        if (earlier & ~reached).any():
            return None
    return plan


def _hops(waiting: MixedDependencies, lft: Bytes) -> Bytes:
    """Return uint8[S, L], hops between switches by the LFTs ``lft``, 255 where a packet is not delivered."""
    plain = waiting.mixture.plain()
    tables = Routing(lft, plain.sl, plain.sl2vl, 1, 1, plain.provenance)
    return trace(waiting.mixture.fabric, tables, waiting.slots, waiting.bits, threads=waiting.threads).hops
