"""Translate earlier tables to the present fabric.  Switches are identified by their GUIDs, and LIDs by the GUIDs of
their owners.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.shared_copy import Snapshot, forbid_writes, shared_copy
from routing.counterparts import channel_numbers, old_rows
from routing.fabric import NO_PORT, Fabric
from routing.formats.lid_map import lid_owner, old_columns
from routing.tables import Routing


@dataclass(frozen=True, eq=False)
class TranslatedTables:
    """Earlier tables in the rows and columns of the present fabric.

    Attributes
    ----------
    routing
        The entries that are still valid; 255 elsewhere.
    earlier
        uint8[S, L], all earlier entries, valid or not; 255 for new switches and LIDs.
    row
        int32[S], the earlier row of each switch, -1 for a new switch.
    column
        int64[L], the LID that the owner of each LID had in the earlier tables, -1 for a new owner.
    broken
        Number of earlier entries that became invalid.
    in_place
        Whether switches, LIDs and the ports that deliver them are the same as before, so that rows and columns agree.
    nothing_new
        Whether no switch and no delivered LID is new, and every LID is delivered at its earlier port.  Switches and
        LIDs may be gone.
    """

    routing: Routing
    earlier: npt.NDArray[np.uint8]
    row: npt.NDArray[np.int32]
    column: npt.NDArray[np.int64]
    broken: int
    in_place: bool
    nothing_new: bool


def translate(routing: Routing, old_fabric: Fabric, fabric: Fabric) -> Routing:
    """Return the tables of ``old_fabric`` in the rows and columns of ``fabric``, with 255 for invalid entries.

    An entry is valid if its port still leads to the same port of the same neighbour, or still delivers the LID.  If
    another switch delivers a LID now, the whole column is invalid.  In a split fabric, entries towards LIDs in other
    connected parts are invalid too.  SLs are translated as well: a new switch takes the SLs of a neighbour, and a new
    LID takes the SLs of another LID at its switch.

    Raises
    ------
    TableError
        The tables do not fit ``old_fabric``.

    Notes
    -----
    Cost: a copy of the tables, and a pass over the lost entries; about 2 ms for 1000 switches and 5000 LIDs.
    """
    return translate_tables(routing, old_fabric, fabric).routing


def translate_tables(
    routing: Routing, old_fabric: Fabric, fabric: Fabric, snapshot: Snapshot | None = None
) -> TranslatedTables:
    """Translate tables as :func:`translate` does, and also return how their rows and columns relate to the old tables.

    ``snapshot`` is a snapshot of the earlier LFTs, or None.  If possible, the translated LFTs share unchanged memory
    with this snapshot.
    """
    routing.check_shapes(old_fabric)
    if same_devices(old_fabric, fabric):
        return _in_place(routing, old_fabric, fabric, snapshot)
    row = old_rows(old_fabric, fabric)
    column = old_columns(lid_owner(old_fabric), lid_owner(fabric))
    earlier = reindex(reindex(routing.lft, column, 1, NO_PORT), row, 0, NO_PORT)
    valid = earlier.copy()
    _drop_lost_channels(valid, row, old_fabric, fabric)
    same_position, none_new = _drop_moved_lids(valid, row, column, old_fabric, fabric)
    if fabric.component.max(initial=0) > 0:
        _invalidate_unreachable(valid, fabric, np.arange(len(fabric.lids)))
    broken = 0 if valid is earlier else int(np.count_nonzero(earlier != valid))
    same = _is_identity(row, old_fabric.switches) and _is_identity(column, len(old_fabric.lids)) and same_position
    sls = _sls(routing, fabric, row, column)
    moved = replace(routing, lft=valid, sl=sls, sl2vl=take_sl2vl(routing, fabric, row))
    moved.check_shapes(fabric)
    return TranslatedTables(moved, earlier, row, column, broken, same, nothing_new=none_new and bool((row >= 0).all()))


def same_devices(one: Fabric, other: Fabric) -> bool:
    """Return whether two fabrics have the same switches and LIDs, delivered at the same ports.

    Tables of two such fabrics have the same rows and columns.  The cables may differ.
    """
    if one is other:
        return True
    mine, theirs = one.lids, other.lids
    return all(
        a is b or np.array_equal(a, b)
        for a, b in (
            (one.switch_guid, other.switch_guid),
            (one.switch_lid, other.switch_lid),
            (one.switch_ports, other.switch_ports),
            (one.endport_guid, other.endport_guid),
            (one.endport_lid, other.endport_lid),
            (one.endport_lmc, other.endport_lmc),
            (mine.switch, theirs.switch),
            (mine.port, theirs.port),
        )
    )


def _in_place(routing: Routing, old_fabric: Fabric, fabric: Fabric, snapshot: Snapshot | None) -> TranslatedTables:
    """Translate tables between fabrics with equal switches and LIDs: copy the tables, and set invalid entries to
    255.
    """
    nowhere = np.flatnonzero(fabric.lids.switch < 0)
    broken = int(np.count_nonzero(routing.lft[:, nowhere] != NO_PORT))
    # If the fabric is split, or the tables have entries for LIDs that are gone, every row may have invalid entries.
    # Then a copy can share hardly any memory with the snapshot, so the LFTs are copied as a whole.
    if fabric.component.max(initial=0) > 0 or broken:
        snapshot = None
    valid = routing.lft.copy() if snapshot is None else shared_copy(snapshot)
    row, column = np.arange(fabric.switches, dtype=np.int32), np.arange(len(fabric.lids))
    # Only invalid entries are written.  A write to every row would make the system copy a page of memory for every row
    # of the snapshot.
    if broken:
        valid[:, nowhere] = NO_PORT
    broken += invalidate_lost_entries(valid, old_fabric, fabric, column)
    return TranslatedTables(
        replace(routing, lft=valid), routing.lft, row, column, broken, in_place=True, nothing_new=True
    )


def invalidate_lost_entries(
    valid: npt.NDArray[np.uint8], old_fabric: Fabric, fabric: Fabric, lid: npt.NDArray[np.intp]
) -> int:
    """Set to 255 the entries in ``valid`` that have become invalid.

    ``valid`` (uint8[S, N]) has the entries of all switches towards the N LIDs in ``lid``.  Entries over lost channels
    are invalid, and so are entries towards LIDs in another connected part of the fabric.  Both fabrics must have the
    same switches and LIDs.

    Returns
    -------
    int
        Number of entries that were set to 255.
    """
    count = _drop_lost_channels(valid, np.arange(fabric.switches, dtype=np.int32), old_fabric, fabric)
    if fabric.component.max(initial=0) > 0:
        had = np.count_nonzero(valid != NO_PORT)
        _invalidate_unreachable(valid, fabric, lid)
        count += int(had - np.count_nonzero(valid != NO_PORT))
    return count


def _invalidate_unreachable(valid: npt.NDArray[np.uint8], fabric: Fabric, lid: npt.NDArray[np.intp]) -> None:
    """Set to 255 all entries in ``valid`` whose LID is in another connected part of the fabric than their switch."""
    parts, target = fabric.component, fabric.lids.switch[lid]
    valid[(parts[:, None] != parts[target]) & (target >= 0)] = NO_PORT


def _is_identity(numbers: npt.NDArray[np.signedinteger], count: int) -> bool:
    return len(numbers) == count and bool((numbers == np.arange(count)).all())


def reindex(
    table: npt.NDArray[np.uint8], number: npt.NDArray[np.signedinteger], axis: int, missing: int
) -> npt.NDArray[np.uint8]:
    """Return a table that consists of selected rows (``axis`` 0) or columns (``axis`` 1) of ``table``.

    ``number`` has for each row or column of the result its number in ``table``.  If this number is -1, the row or
    column of the result is filled with ``missing``.
    """
    if _is_identity(number, table.shape[axis]):
        return table
    if table.shape[axis] == 0:
        shape = list(table.shape)
        shape[axis] = len(number)
        return np.full(shape, missing, table.dtype)
    in_place = len(number) == table.shape[axis] and bool(((number < 0) | (number == np.arange(len(number)))).all())
    taken: npt.NDArray[np.uint8] = table.copy() if in_place else np.take(table, np.maximum(number, 0), axis=axis)
    np.moveaxis(taken, axis, 0)[number < 0] = missing
    return taken


def _drop_lost_channels(
    valid: npt.NDArray[np.uint8], row: npt.NDArray[np.int32], old_fabric: Fabric, fabric: Fabric
) -> int:
    """Set entries in ``valid`` over lost or re-cabled channels to 255, and return the number of these entries.

    ``row`` (int32[S]) is the row of each present switch in ``old_fabric``, -1 for a new switch.
    """
    count = 0
    for switch, port in zip(*lost_ports(row, old_fabric, fabric), strict=True):
        entries = valid[switch]
        lost = entries == port
        entries[lost] = NO_PORT
        count += int(np.count_nonzero(lost))
    forbid_writes(valid)
    return count


def lost_ports(
    row: npt.NDArray[np.int32], old_fabric: Fabric, fabric: Fabric
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Return the switch (present row) and the port of each earlier channel that is gone or leads elsewhere now.

    ``row`` (int32[S]) is the row of each present switch in the earlier fabric, -1 for a new switch.
    """
    old, to_now = old_fabric.channels, np.full(old_fabric.switches, -1, np.int32)
    to_now[row[row >= 0]] = np.flatnonzero(row >= 0)
    gone = np.flatnonzero(channel_numbers(old_fabric, fabric) < 0)
    gone = gone[to_now[old.src[gone]] >= 0]
    return to_now[old.src[gone]], old.port[gone]


def _drop_moved_lids(
    valid: npt.NDArray[np.uint8],
    row: npt.NDArray[np.int32],
    column: npt.NDArray[np.int64],
    old_fabric: Fabric,
    fabric: Fabric,
) -> tuple[bool, bool]:
    """Set to 255 the columns of LIDs that moved to another switch, and delivery entries that name another port.

    Returns
    -------
    same : bool
        Whether every LID is delivered at the switch and port that delivered it in the old fabric.
    none_new : bool
        Whether each LID that is delivered now was delivered at the same switch and port in the old fabric.  LIDs that
        are not delivered any more do not count.
    """
    old, now = old_fabric.lids, fabric.lids
    known = column >= 0
    was, port = np.full(len(column), -1, np.int32), np.full(len(column), NO_PORT, np.uint8)
    was[known], port[known] = old.switch[column[known]], old.port[column[known]]
    at = np.flatnonzero(was >= 0)
    to_now = np.full(old_fabric.switches + 1, -1, np.int32)
    to_now[row[row >= 0]] = np.flatnonzero(row >= 0)
    position = to_now[was]
    valid[:, (position != now.switch) | (now.switch < 0)] = NO_PORT
    other_port = at[(position[at] >= 0) & (position[at] == now.switch[at]) & (port[at] != now.port[at])]
    valid[position[other_port], other_port] = NO_PORT
    same, here = (position == now.switch) & (port == now.port), now.switch >= 0
    return bool(same.all()), bool(same[here].all())


def _sls(
    routing: Routing, fabric: Fabric, row: npt.NDArray[np.int32], column: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint8]:
    sls, columns = routing.service_levels, _with_siblings(fabric, column)
    by_column = reindex(sls.table, columns, -1, 0)
    if sls.by_lid:
        return by_column
    if sls.by_switch:
        return reindex(by_column, _with_neighbours(fabric, row), 0, 0)
    return reindex(by_column, columns, 0, 0)


def _with_siblings(fabric: Fabric, column: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return int64[L], the column of the earlier SL tables from which each LID takes its SLs.

    ``column`` has the number of this column for each LID with an earlier owner, and -1 for new LIDs.  A new LID takes
    its SLs from the same column as another LID: the lowest LID at its switch that is not new.  If there is no such LID,
    the new LID keeps -1.
    """
    now = fabric.lids
    fresh = np.flatnonzero((column < 0) & (now.switch >= 0))
    if not len(fresh):
        return column
    known = np.flatnonzero((column >= 0) & (now.switch >= 0))[::-1]
    sibling = np.full(fabric.switches, -1, np.int64)
    sibling[now.switch[known]] = column[known]
    column = column.copy()
    column[fresh] = sibling[now.switch[fresh]]
    return column


def _with_neighbours(fabric: Fabric, row: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return ``row`` with a value for new switches: a new switch gets the value of its first neighbour that has a value
    already.

    ``row`` (int32[S]) is the row of each present switch in the earlier tables, -1 for a new switch.  A new switch
    without such a neighbour keeps -1.
    """
    row = row.copy()
    channels = fabric.channels
    for switch in np.flatnonzero(row < 0).tolist():
        there = row[channels.dst[channels.first[switch] : channels.first[switch + 1]]]
        if (there >= 0).any():
            row[switch] = there[there >= 0][0]
    return row


def take_sl2vl(routing: Routing, fabric: Fabric, row: npt.NDArray[np.int32]) -> npt.NDArray[np.uint8]:
    """Return the SL2VL tables with a row for each present switch, and with as many ports as the present fabric needs.

    ``row`` (int32[S]) is the row of each present switch in the earlier tables.  A new switch (-1) takes the table of
    the first earlier switch.
    """
    table = routing.sl2vl
    if routing.sl_to_vl.uniform:
        return table
    table = reindex(table, np.maximum(row, 0), 0, 0)
    ports = 1 + int(fabric.switch_ports.max(initial=0))
    had = table.shape[1]
    if ports <= had:
        return table[:, :ports, :ports]
    return np.pad(table, ((0, 0), (0, ports - had), (0, ports - had), (0, 0)), mode="edge")


def set_delivery_entries(routing: Routing, fabric: Fabric) -> Routing:
    """Set the entry of every LID, at the switch that delivers the LID, to the port of its owner."""
    here = np.flatnonzero(fabric.lids.switch >= 0)
    switch, port = fabric.lids.switch[here], fabric.lids.port[here]
    if (routing.lft[switch, here] == port).all():
        return routing
    lft = routing.lft.copy()
    lft[switch, here] = port
    return replace(routing, lft=lft)
