"""Earlier tables laid over the fabric of now: rows follow the GUIDs of switches, columns those of the LIDs' owners."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing.fabric import NO_PORT, Fabric
from routing.formats.lid_map import lid_owner, old_columns
from routing.tables import Routing


@dataclass(frozen=True, eq=False)
class Laid:
    """Earlier tables in the rows and columns of a fabric.

    Attributes
    ----------
    routing
        The entries that hold; 255 where there is none.
    earlier
        uint8[S, L], all entries as they were, 255 for switches and LIDs that were not there.
    row
        int32[S], the earlier row of each switch, -1 for a new one.
    column
        int64[L], the earlier LID of each LID's owner, -1 for a new one.
    broken
        Entries that were there and no longer hold.
    in_place
        Whether switches, LIDs and where these are delivered are all the same as before.
    nothing_new
        Whether all switches were there before, and all LIDs that are delivered, at the same ports.  Others may be gone.
    """

    routing: Routing
    earlier: npt.NDArray[np.uint8]
    row: npt.NDArray[np.int32]
    column: npt.NDArray[np.int64]
    broken: int
    in_place: bool
    nothing_new: bool


def translate(routing: Routing, old_fabric: Fabric, fabric: Fabric) -> Routing:
    """The tables of ``old_fabric`` in the rows and columns of ``fabric``, entries that no longer hold turned into 255.

    An entry holds if its port still leads to the same port of the same neighbour, or still delivers the LID.  Where a
    LID is delivered by another switch than before, its whole column is gone; so are entries towards other parts of a
    split fabric.  SL rows and columns go along; those of new switches and LIDs are taken from a neighbour and from a
    LID at the same switch, where there is one.

    Raises
    ------
    TableError
        The tables do not fit the fabric that is said to be theirs.

    Notes
    -----
    Cost: a copy of the tables, and what was lost; about 2 ms for 1000 switches and 5000 LIDs.
    """
    return lay_over(routing, old_fabric, fabric).routing


def lay_over(routing: Routing, old_fabric: Fabric, fabric: Fabric) -> Laid:
    """The same with what is needed to go on from there."""
    routing.check_shapes(old_fabric)
    if same_devices(old_fabric, fabric):
        return _in_place(routing, old_fabric, fabric)
    row = old_rows(old_fabric, fabric)
    column = old_columns(lid_owner(old_fabric), lid_owner(fabric))
    earlier = take(take(routing.lft, column, 1, NO_PORT), row, 0, NO_PORT)
    held = earlier.copy()
    _drop_lost_channels(held, row, old_fabric, fabric)
    same_place, none_new = _drop_moved_lids(held, row, column, old_fabric, fabric)
    if fabric.component.max(initial=0) > 0:
        _drop_apart(held, fabric, np.arange(len(fabric.lids)))
    broken = 0 if held is earlier else int(np.count_nonzero(earlier != held))
    same = _is_identity(row, old_fabric.switches) and _is_identity(column, len(old_fabric.lids)) and same_place
    levels = _levels(routing, old_fabric, fabric, row, column)
    moved = replace(routing, lft=held, sl=levels, sl2vl=_lanes(routing, fabric, row))
    moved.check_shapes(fabric)
    return Laid(moved, earlier, row, column, broken, same, nothing_new=none_new and bool((row >= 0).all()))


def same_devices(one: Fabric, other: Fabric) -> bool:
    """Whether switches, LIDs, and where these are delivered are the same: rows and columns mean the same, then."""
    if one is other:
        return True
    mine, theirs = one.lids, other.lids
    return all(
        np.array_equal(a, b)
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


def _in_place(routing: Routing, old_fabric: Fabric, fabric: Fabric) -> Laid:
    """What :func:`lay_over` says of fabrics with the same devices, at the cost of what was lost and of a copy."""
    held, nowhere = routing.lft.copy(), np.flatnonzero(fabric.lids.switch < 0)
    row, column = np.arange(fabric.switches, dtype=np.int32), np.arange(len(fabric.lids))
    broken = int(np.count_nonzero(held[:, nowhere] != NO_PORT))
    held[:, nowhere] = NO_PORT
    broken += drop_lost(held, old_fabric, fabric, column)
    return Laid(replace(routing, lft=held), routing.lft, row, column, broken, in_place=True, nothing_new=True)


def drop_lost(held: npt.NDArray[np.uint8], old_fabric: Fabric, fabric: Fabric, lid: npt.NDArray[np.intp]) -> int:
    """Take out entries (uint8[S, N], towards these LIDs) by lost channels, or towards other parts of a split fabric.

    Both fabrics have the same devices.  Returns how many entries that were.
    """
    count = _drop_lost_channels(held, np.arange(fabric.switches, dtype=np.int32), old_fabric, fabric)
    if fabric.component.max(initial=0) > 0:
        had = np.count_nonzero(held != NO_PORT)
        _drop_apart(held, fabric, lid)
        count += int(had - np.count_nonzero(held != NO_PORT))
    return count


def _drop_apart(held: npt.NDArray[np.uint8], fabric: Fabric, lid: npt.NDArray[np.intp]) -> None:
    """Entries towards LIDs in other parts of a split fabric."""
    parts, target = fabric.component, fabric.lids.switch[lid]
    held[(parts[:, None] != parts[target]) & (target >= 0)] = NO_PORT


def _is_identity(numbers: npt.NDArray[np.signedinteger], count: int) -> bool:
    return len(numbers) == count and bool((numbers == np.arange(count)).all())


def old_rows(old_fabric: Fabric, fabric: Fabric) -> npt.NDArray[np.int32]:
    """int32[S], the row in an earlier fabric of each switch of now, -1 for a new one."""
    place = np.searchsorted(old_fabric.switch_guid, fabric.switch_guid)
    known = place < old_fabric.switches
    known[known] = old_fabric.switch_guid[place[known]] == fabric.switch_guid[known]
    return np.where(known, place, -1).astype(np.int32)


def take(
    table: npt.NDArray[np.uint8], number: npt.NDArray[np.signedinteger], axis: int, missing: int
) -> npt.NDArray[np.uint8]:
    """Rows or columns by their earlier number; ``missing`` where that is -1."""
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
    held: npt.NDArray[np.uint8], row: npt.NDArray[np.int32], old_fabric: Fabric, fabric: Fabric
) -> int:
    """Entries by ports that do not lead to the same port of the same switch any more; how many these are."""
    count = 0
    for switch, port in zip(*lost_ports(row, old_fabric, fabric), strict=True):
        entries = held[switch]
        lost = entries == port
        entries[lost] = NO_PORT
        count += int(np.count_nonzero(lost))
    return count


def lost_ports(
    row: npt.NDArray[np.int32], old_fabric: Fabric, fabric: Fabric
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Switch (row of now) and port of the earlier channels that are gone or lead elsewhere."""
    old, now = old_fabric.channels, fabric.channels
    to_now = np.full(old_fabric.switches, -1, np.int32)
    to_now[row[row >= 0]] = np.flatnonzero(row >= 0)
    src = to_now[old.src]
    mine = np.flatnonzero(src >= 0)
    channel = now.at_port[src[mine], old.port[mine]]
    same = channel >= 0
    seen, before = channel[same], mine[same]
    same[same] = (now.dst[seen] == to_now[old.dst[before]]) & (now.dst_port[seen] == old.dst_port[before])
    gone = mine[~same]
    return src[gone], old.port[gone]


def _drop_moved_lids(
    held: npt.NDArray[np.uint8],
    row: npt.NDArray[np.int32],
    column: npt.NDArray[np.int64],
    old_fabric: Fabric,
    fabric: Fabric,
) -> tuple[bool, bool]:
    """Columns of LIDs that are delivered by another switch, or by none; entries by which none delivers any more.

    Whether every LID is delivered where it was, and whether all are that are delivered.
    """
    old, now = old_fabric.lids, fabric.lids
    known = column >= 0
    was, port = np.full(len(column), -1, np.int32), np.full(len(column), NO_PORT, np.uint8)
    was[known], port[known] = old.switch[column[known]], old.port[column[known]]
    at = np.flatnonzero(was >= 0)
    to_now = np.full(old_fabric.switches + 1, -1, np.int32)
    to_now[row[row >= 0]] = np.flatnonzero(row >= 0)
    place = to_now[was]
    held[:, (place != now.switch) | (now.switch < 0)] = NO_PORT
    other_port = at[(place[at] >= 0) & (place[at] == now.switch[at]) & (port[at] != now.port[at])]
    held[place[other_port], other_port] = NO_PORT
    same, here = (place == now.switch) & (port == now.port), now.switch >= 0
    return bool(same.all()), bool(same[here].all())


def _levels(
    routing: Routing,
    old_fabric: Fabric,
    fabric: Fabric,
    row: npt.NDArray[np.int32],
    column: npt.NDArray[np.int64],
) -> npt.NDArray[np.uint8]:
    sl, columns = routing.sl, _with_siblings(fabric, column)
    by_column = take(sl, columns, sl.ndim - 1, 0)
    if sl.ndim == 1:
        return by_column
    if len(sl) == old_fabric.switches:
        return take(by_column, _with_neighbours(fabric, row), 0, 0)
    return take(by_column, columns, 0, 0)


def _with_siblings(fabric: Fabric, column: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """A new LID takes after the lowest one that was there at its switch."""
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
    """A new switch takes after its first neighbour that was there."""
    row = row.copy()
    channels = fabric.channels
    for switch in np.flatnonzero(row < 0).tolist():
        there = row[channels.dst[channels.first[switch] : channels.first[switch + 1]]]
        if (there >= 0).any():
            row[switch] = there[there >= 0][0]
    return row


def _lanes(routing: Routing, fabric: Fabric, row: npt.NDArray[np.int32]) -> npt.NDArray[np.uint8]:
    table = routing.sl2vl
    if table.ndim == 1:
        return table
    table = take(table, np.maximum(row, 0), 0, 0)
    ports = 1 + int(fabric.switch_ports.max(initial=0))
    had = table.shape[1]
    if ports <= had:
        return table[:, :ports, :ports]
    return np.pad(table, ((0, 0), (0, ports - had), (0, ports - had), (0, 0)), mode="edge")
