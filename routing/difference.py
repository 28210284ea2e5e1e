"""Compare two sets of tables, for one fabric or for a fabric before and after a change.

Switches and LIDs are matched by GUID, so that the comparison works although LIDs and row numbers have changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from routing.fabric import NO_PORT, Fabric
from routing.formats.bundle import Bundle
from routing.names import labels_of
from routing.quality import all_to_all_share, channel_loads
from routing.tables import Routing, Unknown

LFT_BLOCK = 64
"""Number of LIDs in one block of the LFT, which OpenSM sends in one SMP."""


@dataclass(frozen=True, eq=False)
class Tables:
    """The tables of a fabric, with the GUIDs of the switches and ports, so that other tables can be compared.

    Attributes
    ----------
    switch_guid, switch_name
        uint64[S], str[S]: GUID and name of each switch.
    owner_guid, owner_offset
        uint64[L] and uint8[L], by LID: GUID of the switch or port that has the LID (0: none), and difference between
        the LID and the port's base LID.
    routing
        The tables.
    fabric
        The fabric, or None if it is unknown.  Without the fabric, paths and loads are not compared.
    """

    switch_guid: npt.NDArray[np.uint64]
    switch_name: tuple[str, ...]
    owner_guid: npt.NDArray[np.uint64]
    owner_offset: npt.NDArray[np.uint8]
    routing: Routing
    fabric: Fabric | None = None

    @cached_property
    def switch_label(self) -> tuple[str, ...]:
        """Name of each switch for reports, with the GUID where the name is not unique."""
        if self.fabric is not None:
            return self.fabric.labels[: self.fabric.switches]
        return labels_of(self.switch_name, self.switch_guid.tolist())


@dataclass(frozen=True)
class Loads:
    """Figures of the channel loads under all-to-all traffic.  Each attribute is a pair of values: before and after the
    change of the tables.

    Attributes
    ----------
    most
        Highest load of a channel (edge forwarding index).
    all_to_all
        Rate that every end port gets at once, as a share of the :func:`~routing.endports.reference_rate`.
    """

    most: tuple[float, float]
    all_to_all: tuple[float, float]


@dataclass(frozen=True)
class Difference:
    """Differences between two sets of tables.

    Attributes
    ----------
    switches_gone, switches_new
        Labels of switches that only the tables before the change have, and of switches that only the tables after the
        change have.
    owners_gone, owners_new
        Number of LIDs that are assigned only before the change, and number of LIDs that are assigned only after the
        change.  LIDs are identified by the GUID of their port and the offset from its base LID.
    lids_moved
        Number of switches and end ports whose base LID has changed.
    entries, entries_changed
        Number of LFT entries that both tables have (a common switch and a common LID), and number of such entries that
        differ.
    changed_by_switch
        Label of each switch with changed entries, and the number of these entries, in descending order.
    blocks, blocks_changed
        Number of non-empty LFT blocks (64 LIDs each) after the change, and number of blocks that OpenSM would send for
        the change.  Each block is one SMP.  Blocks are compared by LID, not by GUID.
    sls_changed
        Number of SLs that differ.  None if SLs are unknown, or if only one of the two SL tables depends on the source
        LID.
    sl2vl_changed
        Whether the SL2VL tables differ; None if these tables are unknown.
    unknown
        Names of the parts ("SL", "SL2VL") that the files of one or both tables do not contain.  These parts are not
        compared.
    vls
        Number of data VLs used, before and after.
    paths, paths_changed
        Number of pairs of a sending end port and a destination LID, and number of such pairs whose path has changed.
        None if the fabric is unknown.
    loads
        Load of the channels; None without both fabrics.
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
    sl2vl_changed: bool | None
    unknown: tuple[Unknown, ...]
    vls: tuple[int, int]
    paths: int | None
    paths_changed: int | None
    loads: Loads | None

    @property
    def same(self) -> bool:
        """Whether both tables give the same next hops and the same SLs and VLs, as far as these values are known."""
        moved = self.switches_gone or self.switches_new or self.owners_gone or self.owners_new or self.lids_moved
        return not (
            moved or self.entries_changed or (self.sls_changed != 0 and "SL" not in self.unknown) or self.sl2vl_changed
        )


def tables_of_bundle(bundle: Bundle) -> Tables:
    """Return the tables in a bundle that ``ibnue route`` has written.

    The attribute ``fabric`` of the result is None.
    """
    return _tables(bundle, bundle.routing, None)


def tables_of_fabric(fabric: Fabric, routing: Routing) -> Tables:
    """Return the tables together with their fabric, so that paths and loads can be compared too.

    Raises
    ------
    TableError
        The tables do not fit the fabric.
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
    """Compare two sets of tables in every respect that :class:`Difference` lists.

    Notes
    -----
    O(S L) without a fabric, and O(S L hops) with a fabric to follow the paths.
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
    unknown: set[Unknown] = {*before.routing.provenance.assumptions, *after.routing.provenance.assumptions}
    sl2vl_changed = not np.array_equal(before.routing.sl2vl, after.routing.sl2vl)
    rows, columns = (row_before, row_after), (column_before, column_after)
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
        changed_by_switch=tuple((before.switch_label[s], int(per_switch[s])) for s in order if per_switch[s]),
        blocks=blocks[0],
        blocks_changed=blocks[1],
        sls_changed=None if "SL" in unknown else _changed_sls(before, after, rows, columns),
        sl2vl_changed=None if "SL2VL" in unknown else sl2vl_changed,
        unknown=tuple(sorted(unknown)),
        vls=(before.routing.vls, after.routing.vls),
        paths=None if paths is None else paths[0],
        paths_changed=None if paths is None else paths[1],
        loads=_loads(before, after, threads),
    )


def _blocks(installed: npt.NDArray[np.uint8], after: Routing, row_after: npt.NDArray[np.int64]) -> tuple[int, int]:
    """Count the LFT blocks (64 LIDs each) that are not empty, and the blocks that OpenSM would have to send.

    N switches exist before and after the change.  ``installed`` is uint8[N, L], their entries before the change.
    ``row_after`` is int64[N], their rows in ``after``.

    Returns
    -------
    filled : int
        Number of blocks of ``after`` with at least one entry.
    to_send : int
        Number of blocks that differ from ``installed``.  A new switch starts with empty blocks.
    """
    width = -(-max(installed.shape[1], after.lft.shape[1]) // LFT_BLOCK) * LFT_BLOCK
    whole = np.full((2, len(after.lft), width), NO_PORT, np.uint8)
    whole[0, row_after, : installed.shape[1]] = installed
    whole[1, :, : after.lft.shape[1]] = after.lft
    installed, wanted = whole.reshape(2, len(after.lft), width // LFT_BLOCK, LFT_BLOCK)
    filled = (wanted != NO_PORT).any(axis=2)
    return int(filled.sum()), int(((installed != wanted).any(axis=2)).sum())


def _missing(here: Tables, there: Tables) -> tuple[str, ...]:
    gone = ~np.isin(here.switch_guid, there.switch_guid)
    return tuple(here.switch_label[row] for row in np.flatnonzero(gone).tolist())


def _common_columns(before: Tables, after: Tables) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the LIDs that both tables have, before and after the change.

    Returns
    -------
    before, after : int64[N]
        LIDs before the change, in ascending order, and the LIDs of the same ports after the change.  Two LIDs match if
        owner GUID and offset from the base LID are equal.
    """
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
    """Count the SLs that differ, for the switches and LIDs that exist before and after the change.

    ``rows`` has these switches and ``columns`` these LIDs, each as two arrays int64[N]: before and after the change.
    An SL table has an SL for each destination LID, or for each pair of a source and a destination LID.  The source is
    a switch or a LID.  The result is None if only one of the two SL tables depends on the source LID.
    """
    sls = before.routing.service_levels, after.routing.service_levels
    if sls[0].by_source_lid != sls[1].by_source_lid:
        return None
    if sls[0].by_lid and sls[1].by_lid:
        return int((sls[0].table[columns[0]] != sls[1].table[columns[1]]).sum())
    rows = columns if sls[0].by_source_lid else rows
    first, second = (each.with_rows(len(t.routing.lft)) for each, t in zip(sls, (before, after), strict=True))
    return int((first[np.ix_(rows[0], columns[0])] != second[np.ix_(rows[1], columns[1])]).sum())


def _paths(
    fabric: Fabric, routing: Routing, differs: npt.NDArray[np.bool_], columns: npt.NDArray[np.int64]
) -> tuple[int, int]:
    """Count all paths, and the paths that have changed.

    ``differs`` is bool[S, L], the LFT entries that have changed.  ``columns`` is int64[N], the destination LIDs to
    count.

    Returns
    -------
    pairs : int
        Number of pairs of a sending end port and a LID in ``columns``.
    changed : int
        Number of these pairs whose path uses a changed LFT entry.
    """
    channel = np.take_along_axis(fabric.channels.at_port, routing.lft.astype(np.intp), axis=1)[:, columns]
    # -1 stands for "no channel towards the LID".  In NumPy, index -1 is the last element, so `towards` gets an
    # additional last element.  Its value is not used.
    towards = np.append(fabric.channels.dst, 0)
    following = np.where(channel >= 0, towards[channel], np.arange(fabric.switches)[:, None])
    own = differs[:, columns]
    changed = own
    for _ in range(fabric.switches):
        further = own | np.take_along_axis(changed, following, axis=0)
        if np.array_equal(further, changed):
            break
        changed = further
    senders = fabric.senders_at
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
