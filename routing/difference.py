"""What differs between two sets of tables, for the same fabric or before and after it changed.

Rows and columns are matched by GUID, so that tables made at different times compare although rows and LIDs have moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from routing.fabric import NO_PORT, Fabric
from routing.formats.bundle import Bundle
from routing.quality import all_to_all_share, channel_loads
from routing.tables import Routing

LFT_BLOCK = 64
"""LIDs whose entries travel in one SMP."""


@dataclass(frozen=True, eq=False)
class Tables:
    """A routing with the names of its rows and columns.

    Attributes
    ----------
    switch_guid, switch_name
        uint64[S], str[S]: rows.
    owner_guid, owner_offset
        uint64[L] (0: nobody) and uint8[L]: whose LID a column is, and which of its LIDs.
    routing
        The tables.
    fabric
        The fabric, if it is at hand: paths and loads need it.
    """

    switch_guid: npt.NDArray[np.uint64]
    switch_name: tuple[str, ...]
    owner_guid: npt.NDArray[np.uint64]
    owner_offset: npt.NDArray[np.uint8]
    routing: Routing
    fabric: Fabric | None = None


@dataclass(frozen=True)
class Loads:
    """Load of the channels under all-to-all traffic, before and after.

    Attributes
    ----------
    most
        The highest load (edge forwarding index).
    all_to_all
        The share that every end port gets.
    """

    most: tuple[float, float]
    all_to_all: tuple[float, float]


@dataclass(frozen=True)
class Difference:
    """What differs.

    Attributes
    ----------
    switches_gone, switches_new
        Names of switches that only the first, only the second tables have.
    owners_gone, owners_new
        How many LIDs only the first, only the second tables know, told by GUID.
    lids_moved
        How many GUIDs have other LIDs.
    entries, entries_changed
        Forwarding entries of switches and LIDs that both have; how many of them differ.
    changed_by_switch
        The switches with changed entries, most first.
    blocks, blocks_changed
        Blocks of 64 LIDs that the second tables fill; how many OpenSM would send, one SMP each, if the switches held
        the first ones (told by LID, as switches do).
    sls_changed
        Service levels that differ; None where the two tables are keyed in ways that cannot be compared.
    sl2vl_changed
        Whether SL-to-VL tables differ.
    vls
        Data VLs used, before and after.
    paths, paths_changed
        Pairs of a sending end port and a LID; those whose path differs.  None without the fabric.
    loads
        None without both fabrics.
    """

    switches_gone: tuple[str, ...]
    switches_new: tuple[str, ...]
    owners_gone: int
    owners_new: int
    lids_moved: int
    entries: int
    entries_changed: int
    changed_by_switch: tuple[tuple[str, int], ...]
    blocks: int
    blocks_changed: int
    sls_changed: int | None
    sl2vl_changed: bool
    vls: tuple[int, int]
    paths: int | None
    paths_changed: int | None
    loads: Loads | None

    @property
    def same(self) -> bool:
        """Whether the two say the same to switches and SL queries."""
        moved = self.switches_gone or self.switches_new or self.owners_gone or self.owners_new or self.lids_moved
        return not (moved or self.entries_changed or self.sls_changed != 0 or self.sl2vl_changed)


def tables_of_bundle(bundle: Bundle) -> Tables:
    """The tables in a bundle."""
    return _tables(bundle, bundle.routing, None)


def tables_of_fabric(fabric: Fabric, routing: Routing) -> Tables:
    """The tables of a fabric.

    Raises
    ------
    TableError
        They do not fit.
    """
    routing.check_shapes(fabric)
    return _tables(fabric, routing, fabric)


def _tables(names: Bundle | Fabric, routing: Routing, fabric: Fabric | None) -> Tables:
    lids = routing.lft.shape[1]
    guid, offset = np.zeros(lids, np.uint64), np.zeros(lids, np.uint8)
    own = names.switch_lid > 0
    guid[names.switch_lid[own]] = names.switch_guid[own]
    has = names.endport_lid > 0
    count = 1 << names.endport_lmc[has].astype(np.int64)
    within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    lid = np.repeat(names.endport_lid[has].astype(np.int64), count) + within
    guid[lid], offset[lid] = np.repeat(names.endport_guid[has], count), within
    return Tables(names.switch_guid, tuple(names.switch_name), guid, offset, routing, fabric)


def compare(before: Tables, after: Tables, *, threads: int = 2) -> Difference:
    """Everything that differs.

    Notes
    -----
    Cost: O(S L), and O(S L hops) with a fabric.
    """
    _, row_before, row_after = np.intersect1d(
        before.switch_guid, after.switch_guid, assume_unique=True, return_indices=True
    )
    column_before, column_after = _common_columns(before, after)
    cells_before, cells_after = np.ix_(row_before, column_before), np.ix_(row_after, column_after)
    differs = before.routing.lft[cells_before] != after.routing.lft[cells_after]
    whole = np.zeros(before.routing.lft.shape, bool)
    whole[cells_before] = differs
    per_switch = whole.sum(axis=1)
    order = np.argsort(-per_switch, kind="stable")
    paths = None if before.fabric is None else _paths(before.fabric, before.routing, whole, column_before)
    blocks = _blocks(before.routing.lft[row_before], after.routing, row_after)
    base_moved = (column_before != column_after) & (before.owner_offset[column_before] == 0)
    return Difference(
        switches_gone=_missing(before, after),
        switches_new=_missing(after, before),
        owners_gone=int((before.owner_guid > 0).sum()) - len(column_before),
        owners_new=int((after.owner_guid > 0).sum()) - len(column_after),
        lids_moved=int(base_moved.sum()),
        entries=differs.size,
        entries_changed=int(differs.sum()),
        changed_by_switch=tuple((before.switch_name[s], int(per_switch[s])) for s in order if per_switch[s]),
        blocks=blocks[0],
        blocks_changed=blocks[1],
        sls_changed=_changed_sls(before, after, (row_before, row_after), (column_before, column_after)),
        sl2vl_changed=not np.array_equal(before.routing.sl2vl, after.routing.sl2vl),
        vls=(before.routing.vls, after.routing.vls),
        paths=None if paths is None else paths[0],
        paths_changed=None if paths is None else paths[1],
        loads=_loads(before, after, threads),
    )


def _blocks(held: npt.NDArray[np.uint8], after: Routing, row_after: npt.NDArray[np.int64]) -> tuple[int, int]:
    """Blocks that hold any entry, and those that have to be sent to switches that hold other tables or none."""
    width = -(-max(held.shape[1], after.lft.shape[1]) // LFT_BLOCK) * LFT_BLOCK
    whole = np.full((2, len(after.lft), width), NO_PORT, np.uint8)
    whole[0, row_after, : held.shape[1]] = held
    whole[1, :, : after.lft.shape[1]] = after.lft
    held, wanted = whole.reshape(2, len(after.lft), width // LFT_BLOCK, LFT_BLOCK)
    filled = (wanted != NO_PORT).any(axis=2)
    return int(filled.sum()), int(((held != wanted).any(axis=2)).sum())


def _missing(here: Tables, there: Tables) -> tuple[str, ...]:
    gone = ~np.isin(here.switch_guid, there.switch_guid)
    return tuple(here.switch_name[row] for row in np.flatnonzero(gone).tolist())


def _common_columns(before: Tables, after: Tables) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The LIDs that both know, by whose they are."""
    kind = np.dtype([("guid", np.uint64), ("offset", np.uint8)])

    def keys(tables: Tables) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        lids = np.flatnonzero(tables.owner_guid > 0)
        key = np.empty(len(lids), kind)
        key["guid"], key["offset"] = tables.owner_guid[lids], tables.owner_offset[lids]
        return key, lids

    (key_before, lid_before), (key_after, lid_after) = keys(before), keys(after)
    _, at_before, at_after = np.intersect1d(key_before, key_after, assume_unique=True, return_indices=True)
    order = np.argsort(lid_before[at_before], kind="stable")
    return lid_before[at_before][order], lid_after[at_after][order]


Pair = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def _changed_sls(before: Tables, after: Tables, rows: Pair, columns: Pair) -> int | None:
    """Service levels that differ: by destination, by switch and destination, or by source and destination."""
    kinds = [_sl_kind(tables) for tables in (before, after)]
    first, second = before.routing.sl, after.routing.sl
    if kinds[0] != kinds[1]:
        if "by source LID" in kinds:
            return None
        first, second = (np.broadcast_to(t.routing.sl, t.routing.lft.shape) for t in (before, after))
        kinds = ["by switch"]
    if kinds[0] == "by destination":
        return int((first[columns[0]] != second[columns[1]]).sum())
    rows = columns if kinds[0] == "by source LID" else rows
    return int((first[np.ix_(rows[0], columns[0])] != second[np.ix_(rows[1], columns[1])]).sum())


def _sl_kind(tables: Tables) -> str:
    if tables.routing.sl.ndim == 1:
        return "by destination"
    return "by switch" if tables.routing.sl.shape == tables.routing.lft.shape else "by source LID"


def _paths(
    fabric: Fabric, routing: Routing, differs: npt.NDArray[np.bool_], columns: npt.NDArray[np.int64]
) -> tuple[int, int]:
    """Pairs of an end port and a LID of the columns; those whose path meets an entry that differs."""
    channel = np.take_along_axis(fabric.channels.at_port, routing.lft.astype(np.intp), axis=1)[:, columns]
    towards = np.append(fabric.channels.dst, 0)  # the entry that -1, no channel, picks
    following = np.where(channel >= 0, towards[channel], np.arange(fabric.switches)[:, None])
    own = differs[:, columns]
    changed = own
    for _ in range(fabric.switches):
        further = own | np.take_along_axis(changed, following, axis=0)
        if np.array_equal(further, changed):
            break
        changed = further
    senders = fabric.terminals_at
    return int(senders.sum()) * len(columns), int(senders @ changed.sum(axis=1))


def _loads(before: Tables, after: Tables, threads: int) -> Loads | None:
    if before.fabric is None or after.fabric is None:
        return None
    first = channel_loads(before.fabric, before.routing, threads=threads)
    second = channel_loads(after.fabric, after.routing, threads=threads)
    return Loads(
        most=(float(first.max(initial=0)), float(second.max(initial=0))),
        all_to_all=(all_to_all_share(before.fabric, first), all_to_all_share(after.fabric, second)),
    )
