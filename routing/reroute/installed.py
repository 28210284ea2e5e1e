"""Convert the tables that the switches hold to the rows and columns of the new tables."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing.counterparts import channel_numbers, old_rows
from routing.deadlock.lost import LostLids
from routing.fabric import NO_PORT, Fabric
from routing.reroute.previous_sls import PreviousSls
from routing.reroute.translate import reindex, take_sl2vl
from routing.tables import Routing

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.signedinteger]


@dataclass(frozen=True, eq=False)
class Installed:
    """The old and the new tables of a transition, in the rows and columns of one fabric.

    Attributes
    ----------
    fabric
        The present fabric, with LIDs up to the highest LID for which the old or new tables have entries.
    old
        The tables in the switches, and the SLs that senders still use.  These tables include entries over ports without
        a link and towards LIDs that are gone.
    new
        The tables to write, with 255 towards LIDs that are gone.
    lost
        The earlier owners of the LIDs that are gone.
    rewired
        bool[S, L], the old entries that now use a new channel: a channel that did not exist in the fabric of the old
        tables, for example because cables have changed.  The proof of the old tables does not cover the dependencies of
        these entries.  None if there are no such entries.
    """

    fabric: Fabric
    old: Routing
    new: Routing
    lost: LostLids
    rewired: npt.NDArray[np.bool_] | None


def installed(
    old: Routing, old_fabric: Fabric, new: Routing, fabric: Fabric, *, present: Bytes | None = None
) -> Installed:
    """Return the old and the new tables in the same rows and columns, for the proof of a transition.

    A switch stores a port for each LID number.  So an old entry keeps its LID number, even if another device has that
    LID now.  The entry also keeps its port, even if the port leads elsewhere now.  A new switch has the entries of
    ``present``, or no entries (255) if ``present`` is None.

    A sender stores an SL for each LID number.  So an old SL belongs to the same sender (the port with the same GUID)
    and to the same LID number, even if another device has that LID now.

    Parameters
    ----------
    old, old_fabric
        The tables that were written last, and their fabric.  If ``present`` is given, only their SLs, their SL2VL
        tables and the owners of their LIDs are used.
    new, fabric
        The tables to write, and the present fabric.
    present
        uint8[S, M], the LFTs that the switches of ``fabric`` hold, if they may differ from the LFTs of ``old``:
        out-port towards each LID, 255 where there is none.  M may be more or less than the number of LIDs in use.

    Returns
    -------
    Installed
        The arguments of :func:`~routing.deadlock.transition.prove_transition` and
        :func:`~routing.deadlock.schedule_search.find_schedule`.  Where no device is gone or new, the tables are not
        copied.

    Raises
    ------
    TableError
        The tables do not fit their fabrics.

    Notes
    -----
    Cost: O(L log L), and a copy of the tables if rows or columns differ.  If SLs are by source switch and a port has
    moved to another switch: O(L^2).
    """
    old.check_shapes(old_fabric)
    new.check_shapes(fabric)
    row = old_rows(old_fabric, fabric)
    lft = reindex(old.lft, row, 0, NO_PORT) if present is None else present
    wide = fabric.with_lids(_used(lft, len(fabric.lids)))
    lft = _of_width(lft, len(wide.lids))
    sls = PreviousSls.of(old, old_fabric, new, wide, row)
    before = replace(old, lft=lft, sl=sls.table(), sl2vl=_sl2vl(old, new, wide, row))
    after = widened(new, fabric, wide)
    return Installed(wide, before, after, sls.lost(), _rewired(lft, old_fabric, fabric))


def widened(routing: Routing, fabric: Fabric, wide: Fabric) -> Routing:
    """Return the tables with columns for the additional LIDs of the fabric ``wide``; the added columns have no entries
    (255).
    """
    count, more = len(fabric.lids), len(wide.lids) - len(fabric.lids)
    if not more:
        return routing
    columns = np.append(np.arange(count), np.full(more, -1))
    sl = reindex(routing.sl, columns, -1, 0)
    if routing.service_levels.by_source_lid:
        sl = reindex(sl, columns, 0, 0)
    return replace(routing, lft=_of_width(routing.lft, len(wide.lids)), sl=sl)


def _used(lft: Bytes, least: int) -> int:
    """Return the number of LFT columns up to the last column with an entry, but at least ``least``."""
    named = np.flatnonzero((lft[:, least:] != NO_PORT).any(axis=0))
    return least + 1 + int(named[-1]) if len(named) else least


def _of_width(lft: Bytes, count: int) -> Bytes:
    """Cut or extend LFTs to ``count`` columns; added columns have no entries (255)."""
    if lft.shape[1] >= count:
        return lft if lft.shape[1] == count else np.ascontiguousarray(lft[:, :count])
    return np.pad(lft, ((0, 0), (0, count - lft.shape[1])), constant_values=NO_PORT)


def _sl2vl(old: Routing, new: Routing, fabric: Fabric, row: Numbers) -> Bytes:
    """Return the old SL2VL tables with a row for each present switch.  A new switch gets its row of the new tables."""
    table, fresh = take_sl2vl(old, fabric, row), row < 0
    if not old.sl_to_vl.uniform and fresh.any():
        table = table.copy()
        table[fresh] = new.sl2vl if new.sl_to_vl.uniform else new.sl2vl[fresh]
    return table


def _rewired(lft: Bytes, old_fabric: Fabric, fabric: Fabric) -> npt.NDArray[np.bool_] | None:
    """Return bool[S, L], the entries that use a channel of the present fabric that did not exist in the old fabric.

    Returns None if there are no such entries.
    """
    now, found = fabric.channels, np.zeros(lft.shape, bool)
    for c in np.flatnonzero(channel_numbers(fabric, old_fabric) < 0).tolist():
        found[now.src[c]] |= lft[now.src[c]] == now.port[c]
    return found if found.any() else None
