"""Determine the SLs in use after switches and end ports have returned to the fabric.

A device that returns may still have open connections.  The SLs of these connections, from the device and to the device,
come from the tables that were in force when the device left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from osm_plugin.state import SavedTables
from routing.counterparts import old_rows
from routing.fabric import NO_PORT, Fabric
from routing.tables import Routing, SlForm

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Left = Mapping[int, SavedTables | None]
MOST_PAIRS = 1 << 26
"""Maximum number of SLs in a table with one SL for each pair of LIDs.  Each SL takes one byte.  If a table would need
more SLs, the SLs in use count as unknown.
"""


@dataclass(frozen=True, eq=False)
class ReturnedGroup:
    """The switches and LIDs that left the fabric while one set of tables was in force, and that have returned.

    Attributes
    ----------
    tables
        The tables that were in force.
    rows
        Rows of the returned switches.
    lids
        bool[L], the LIDs of the returned switches and end ports.
    known
        bool[L], the LIDs for which the tables have SLs.
    """

    tables: SavedTables
    rows: npt.NDArray[np.int64]
    lids: Mask
    known: Mask


def returned_groups(
    lft: Bytes, fabric: Fabric, kept: SavedTables, left: Left, earlier: Sequence[SavedTables] = ()
) -> list[ReturnedGroup] | None:
    """Return the switches and LIDs that are back in the fabric, in groups.

    The devices of a group left while the same tables were in force.

    Parameters
    ----------
    lft
        uint8[S, L], the entries in the switches of ``fabric``.
    fabric
        The present fabric.
    kept
        The tables that were in force before this change, without the returned devices.
    left
        The key is the GUID of a switch or end port that has left the fabric.  The value is the set of tables that was
        in force when this device left; None: these tables are not stored any more.
    earlier
        Earlier tables.  A switch that left the fabric while it was being written may still have entries of these
        tables.

    Returns
    -------
    The groups; None in three cases:

    - A returned switch has entries of unknown tables.
    - The tables that were in force when a returned device left are not stored any more.
    - The LID of a returned device has changed.
    """
    rows = np.flatnonzero(old_rows(kept.fabric, fabric) < 0)
    filled = rows[(lft[rows] != NO_PORT).any(axis=1)]
    if any(left.get(guid) is None for guid in fabric.switch_guid[filled].tolist()):
        return None
    owner = _owners(fabric, len(fabric.lids))
    absent = np.flatnonzero((owner > 0) & (_owners(kept.fabric, len(owner)) == 0))
    found: dict[int, tuple[SavedTables, list[int]]] = {}
    for lid, guid in zip(absent.tolist(), owner[absent].tolist(), strict=True):
        if guid in left:
            tables = left[guid]
            if tables is None:
                return None
            found.setdefault(id(tables), (tables, []))[1].append(lid)
    groups = []
    for tables, lids in found.values():
        there = np.zeros(len(owner), bool)
        there[lids] = True
        before = _owners(tables.fabric, len(owner))
        own = rows[[left.get(guid) is tables for guid in fabric.switch_guid[rows].tolist()]]
        present = np.full_like(lft, NO_PORT)
        present[own] = lft[own]
        if (before[there] != owner[there]).any() or not are_entries_of(present, tables, fabric, earlier):
            return None
        groups.append(ReturnedGroup(tables, own, there, before > 0))
    return groups


def sls_after_return(
    old: Routing, old_fabric: Fabric, returned: Sequence[tuple[ReturnedGroup, Routing]], fabric: Fabric
) -> Bytes | None:
    """Return the SLs that senders use after devices have returned.

    Senders to the LIDs of a returned device, and the returned device itself, use the SLs of the tables that were in
    force when the device left.  All other SLs come from the tables ``old``.

    Parameters
    ----------
    old
        The tables that were in force before the devices returned, with the rows and columns of ``fabric``.
    old_fabric
        The fabric for which the tables ``old`` were computed.
    returned
        The returned devices, and the tables that were in force when these devices left, with the rows and columns of
        ``fabric``.
    fabric
        The fabric with the returned devices.

    Returns
    -------
    The SL table; None in two cases:

    - The tables ``old`` and the tables in ``returned`` have different SL2VL tables.
    - The result needs one SL per pair of LIDs, for example because senders at one switch use different SLs.  But the
      fabric has too many LIDs for such a table (:data:`MOST_PAIRS`).
    """
    if any(not np.array_equal(before.sl2vl, old.sl2vl) for _, before in returned):
        return None
    forms = {each.service_levels.form for each in (old, *(before for _, before in returned))}
    found = None if len(forms) > 1 or SlForm.BY_SOURCE_LID in forms else _by_switch(old, old_fabric, returned, fabric)
    return _by_source_lid(old, returned, fabric) if found is None else found


def _by_switch(
    old: Routing, old_fabric: Fabric, returned: Sequence[tuple[ReturnedGroup, Routing]], fabric: Fabric
) -> Bytes | None:
    """Return the table of :func:`sls_after_return` as uint8[S, L]: by the sender's switch and by the destination LID.

    If the SLs of the tables ``old`` depend on the destination alone, and all rows are equal, return only one row,
    uint8[L].  Return None if two senders at one switch use different SLs.
    """
    by_lid = old.service_levels.by_lid
    # Even if SLs depend on the destination alone, returned devices may use other SLs than all other senders.  So the
    # table gets a row for each switch.
    sl = np.tile(old.sl, (fabric.switches, 1)) if by_lid else old.sl.copy()
    for group, before in returned:
        sl[:, group.lids] = before.sl[..., group.lids]
    # `settled` (bool[L]) marks the LIDs of senders whose SLs are in `sl` already, in the row of the sender's switch.
    settled = _owners(old_fabric, len(fabric.lids)) > 0
    for group, before in returned:
        for row in np.unique(fabric.lids.switch[group.lids]).tolist():
            wanted = (before.sl if by_lid else before.sl[row])[group.known]
            if not (settled & (fabric.lids.switch == row)).any():
                sl[row, group.known] = wanted
            elif not np.array_equal(sl[row, group.known], wanted):
                return None
        settled |= group.lids
    return sl[0] if by_lid and (sl == sl[0]).all() else sl


def _by_source_lid(old: Routing, returned: Sequence[tuple[ReturnedGroup, Routing]], fabric: Fabric) -> Bytes | None:
    """Return the table of :func:`sls_after_return` as uint8[L, L]: by the sender's LID and by the destination LID.
    Return None if the table would have more than :data:`MOST_PAIRS` SLs.
    """
    if len(fabric.lids) ** 2 > MOST_PAIRS:
        return None
    sl = _by_sender(old, fabric)
    tables = [(group, _by_sender(before, fabric)) for group, before in returned]
    for group, before in tables:
        sl[:, group.lids] = before[:, group.lids]
    for group, before in tables:
        pairs = np.ix_(group.lids, group.known)
        sl[pairs] = before[pairs]
    return sl


def _by_sender(routing: Routing, fabric: Fabric) -> Bytes:
    """Return the SLs of the tables ``routing`` as uint8[L, L]: by the LID of the sender and by the destination LID."""
    sls, switch = routing.service_levels, np.maximum(fabric.lids.switch, 0)
    return sls.matrix[sls.row_of(switch, np.arange(len(switch)))]


def _owners(fabric: Fabric, count: int) -> npt.NDArray[np.uint64]:
    """Return the GUID of the switch or end port that owns each of the first ``count`` LIDs; 0: no owner."""
    lids = fabric.lids
    least = min(count, len(lids))
    switch, endport = lids.switch[:least], lids.endport[:least]
    owner = np.zeros(count, np.uint64)
    own, ends = np.flatnonzero((switch >= 0) & (endport < 0)), np.flatnonzero((switch >= 0) & (endport >= 0))
    owner[own], owner[ends] = fabric.switch_guid[switch[own]], fabric.endport_guid[endport[ends]]
    return owner


def are_entries_of(lft: Bytes, remembered: SavedTables, fabric: Fabric, earlier: Sequence[SavedTables] = ()) -> bool:
    """Return whether the entries in the switches, ``lft``, equal the entries of the tables ``remembered``.

    An entry in a switch may differ from these tables in three cases.  The entry is missing.  The entry is written by an
    update round that may not be complete.  Or the entry equals the entry of one of the tables ``earlier``.
    """
    others = _other_entries(lft, remembered, fabric)
    for tables in earlier if len(others) else ():
        rest = np.full_like(lft, NO_PORT)
        rest.flat[others] = lft.flat[others]
        others = _other_entries(rest, tables, fabric)
    return not len(others)


def _other_entries(lft: Bytes, remembered: SavedTables, fabric: Fabric) -> npt.NDArray[np.int64]:
    """Return the entries in the switches, ``lft``, that differ from the tables ``remembered``, as flat indices in
    ``lft``.  Missing entries, and entries of update rounds that may not be complete, are not returned.
    """
    was, row = remembered.routing.lft, np.asarray(old_rows(remembered.fabric, fabric), np.int64)
    lids = min(lft.shape[1], was.shape[1])
    if len(row) == len(was) and lids == lft.shape[1] and bool((row == np.arange(len(row))).all()):
        then = was[:, :lids]
    else:
        then = np.full_like(lft, NO_PORT)
        then[:, :lids] = np.where(row[:, None] >= 0, was[row, :lids], np.uint8(NO_PORT))
    others = np.flatnonzero((lft != then) & (lft != NO_PORT))
    if remembered.deferred is None or not len(others):
        return others
    width = max(lft.shape[1], was.shape[1])
    open_entries = remembered.deferred["row"].astype(np.int64) * width + remembered.deferred["lid"]
    return others[~np.isin(row[others // lft.shape[1]] * width + others % lft.shape[1], open_entries)]
