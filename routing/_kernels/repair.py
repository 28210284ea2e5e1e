"""Kernel wrapper: repair LFT columns, and move entries for balance, without closing a credit loop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels.native import call, grouped, lib, struct_of
from routing._kernels.shared_copy import PAGE, forbid_writes, pages_that_may_differ, writable_copy
from routing.fabric import Channels
from routing.tables import ServiceLevels

KEEP_VALID_ENTRIES, SKIP, PRUNE_THEN_REPAIR = 0, 1, 2
"""Treatments of an LFT column by the repair.

- ``KEEP_VALID_ENTRIES``: fill the missing entries of the column.
- ``SKIP``: do not change the column.
- ``PRUNE_THEN_REPAIR``: first remove CDG edges that no path uses, and then fill the missing entries of the column.
"""
NOTHING_MISSING, REPAIRED, FAILED, COPIED = 0, 1, 2, 3
"""Outcomes of the repair of an LFT column.

- ``NOTHING_MISSING``: no entry was missing.
- ``REPAIRED``: all missing entries were filled.
- ``FAILED``: the repair failed, or the column was skipped although entries are missing.
- ``COPIED``: the column was copied from another LID.
"""


@dataclass(frozen=True, eq=False)
class RepairFabric:
    """The fabric on which tables are repaired, with channels that faults have removed.

    Attributes
    ----------
    channels
        All channels, including the lost channels, so that a fault does not change channel numbers.
    alive
        uint8[C], 0: the channel is lost.
    part
        int32[S], number of the connected part to which each switch belongs; -1: the switch is lost.
    lid_switch, lid_port
        int32[L], uint8[L]: switch and port that deliver each LID; switch -1: no switch delivers the LID.
    has_endport
        uint8[S], whether the switch has CAs or routers.
    inverse_capacity
        int64[C], inverse capacity of each channel, so that load times inverse capacity is the utilisation.
    sources, weight
        int64[S], int64[L]: their product is the flow from a switch to a LID.
    """

    channels: Channels
    alive: npt.NDArray[np.uint8]
    part: npt.NDArray[np.int32]
    lid_switch: npt.NDArray[np.int32]
    lid_port: npt.NDArray[np.uint8]
    has_endport: npt.NDArray[np.uint8]
    inverse_capacity: npt.NDArray[np.int64]
    sources: npt.NDArray[np.int64]
    weight: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ServiceLevelRules:
    """Rules that give the VL of each path, and the traffic for which the CDG must be acyclic.

    Attributes
    ----------
    sl
        SLs by destination LID, or by source switch and destination LID.
    vl_bit
        uint16[16], 1 << VL of each SL, 0 where packets are dropped.
    replies
        Whether the CDG has the dependencies of replies too.
    endports_only
        Whether traffic between switches is left out.
    sl_of_vl
        uint8[V], an SL for each VL that paths may move to, 255: paths must not move to this VL.
    by_parts
        Whether parts of a subtree may move to different VLs.
    """

    sl: ServiceLevels
    vl_bit: npt.NDArray[np.uint16]
    replies: bool
    endports_only: bool
    sl_of_vl: npt.NDArray[np.uint8]
    by_parts: bool = True


@dataclass(frozen=True, eq=False)
class Repaired:
    """Result of a repair.

    Attributes
    ----------
    lft, masks, order, load
        The tables, CDG edges, topological orders and loads after the repair.
    sl
        The SLs, changed where a path would have closed a cycle on its old VL.
    done
        uint8[L], outcome of each column: NOTHING_MISSING, REPAIRED, COPIED or FAILED.  A failed column keeps its
        entries, or is empty if its treatment was PRUNE_THEN_REPAIR.
    missing
        Number of entries that were missing.
    filled
        Number of missing entries that were filled.
    moved
        Number of valid entries that were changed so that missing entries could be filled.
    visited
        Number of channels that cycle searches visited.
    by_parts
        Number of subtrees whose packets were split over several VLs.
    """

    lft: npt.NDArray[np.uint8]
    sl: npt.NDArray[np.uint8]
    masks: npt.NDArray[np.uint16]
    order: npt.NDArray[np.int32]
    load: npt.NDArray[np.int64]
    done: npt.NDArray[np.uint8]
    missing: int
    filled: int
    moved: int
    visited: int
    by_parts: int


def repair(
    repair_fabric: RepairFabric,
    traffic: ServiceLevelRules,
    lft: npt.NDArray[np.uint8],
    *,
    preferred: npt.NDArray[np.uint8],
    masks: npt.NDArray[np.uint16],
    order: npt.NDArray[np.int32],
    load: npt.NDArray[np.int64],
    treatment: npt.NDArray[np.uint8],
    up_first: bool = False,
    withdraw: bool = True,
    forbidden: npt.NDArray[np.uint16] | None = None,
    missing_pages: npt.NDArray[np.uint8] | None = None,
    most_failed: int = 0,
) -> Repaired:
    """Fill the missing entries of ``lft`` such that the CDG stays acyclic.

    ``lft`` is uint8[S, L].  An entry is missing where it is 255 although the switch can reach the LID.

    For each missing entry, paths are tried in this order:

    1. the path over the out-port in ``preferred`` (uint8[S, L], the previous tables),
    2. the paths at most two hops longer than the shortest path, sorted by the highest utilisation of their channels,
    3. all other paths, the shortest first.

    If a column has several missing entries, the entries with the shortest paths are filled first.  A path is rejected
    if it would close a CDG cycle.  All switches whose paths lead through the switch with the missing entry (its
    subtree) follow the new path.

    If every path is rejected, further steps follow.  Another switch of the subtree, or a neighbour, takes another path.
    All packets of the subtree on one VL, or a part of them, get an SL with another VL.  Switches whose packets would
    close a cycle are detached from the subtree, and get other paths afterwards.

    Parameters
    ----------
    repair_fabric, traffic
        The fabric; the rules for VLs, and the traffic for which credit loops are avoided.
    lft, preferred
        The tables, and the entries to be preferred.
    masks
        uint16[edges], the VLs, as bits, on which each CDG edge may be used; the edges of new paths are added.
    order
        int32[V, C], position of each channel in a topological order of these edges on each VL; V = 0: credit loops are
        allowed.
    load
        int64[C], flow on each channel before the repair.
    treatment
        uint8[L], by column: KEEP_VALID_ENTRIES, SKIP or PRUNE_THEN_REPAIR.  Before the first repair, CDG edges that no
        path uses are removed, on the VLs of the packets to LIDs with PRUNE_THEN_REPAIR.  If the repair of such a column
        fails, all entries of the column are removed and computed from scratch.  If this fails too, the column of
        another LID is copied.
    up_first
        Whether ``order`` comes from an Up*/Down* order of the switches.  In this case, paths that lead up and then down
        need no cycle search, and are tried before other paths.
    withdraw
        Whether ``load`` still has the flow on broken paths.  If so, this flow is subtracted before the repair.
    forbidden
        uint16[edges], the VLs, as bits, on which new paths must not use each CDG edge; None: no edge is forbidden.
    missing_pages
        uint8[N], whether each page of :data:`~routing._kernels.shared_copy.PAGE` entries of ``preferred`` may contain
        the value 255; None: not known.  The kernel looks for missing entries of ``lft`` only in these pages, and in
        pages where ``lft`` may differ from ``preferred``.
    most_failed
        Once more than this number of columns have failed, all further columns fail, too; 0: no limit.

    Notes
    -----
    Cost: one pass over the LFT, and one pass over the CDG edges.  In addition, for every missing entry: the size of its
    subtree times the radix of the switches, the hops of the paths that are tried, and cycle searches.
    """
    masks, order = writable_copy(masks), np.array(order, np.int32, order="C")
    fabric = _fabric(
        repair_fabric, traffic, masks, order, preferred=preferred, forbidden=forbidden, monotone_first=up_first,
        withdraw=withdraw, by_parts=traffic.by_parts, most_failed=most_failed,
    )  # fmt: skip
    pages = pages_that_may_differ(lft, preferred)
    pages = np.ones(-(-lft.size // PAGE), np.uint8) if pages is None or missing_pages is None else pages | missing_pages
    lft = writable_copy(lft)
    load, sl = np.array(load, order="C"), np.array(traffic.sl.table, order="C")
    done, counts = np.zeros(lft.shape[1], np.uint8), np.zeros(5, np.int64)
    call(lib.ibn_repair_columns, fabric, treatment, lft, pages, PAGE, sl, masks, order, load, done, counts)
    forbid_writes(lft)
    forbid_writes(masks)
    return Repaired(lft, sl, masks, order, load, done, *counts.tolist())


@dataclass(frozen=True)
class SearchLimits:
    """Limits of the local search for better balance.

    Attributes
    ----------
    goal
        Load is moved off a channel only while its utilisation (load times inverse capacity) is above this value.
    budget
        Number by which the search may increase the number of entries that differ from the previous tables.
    work
        Work limit: hops followed along paths and channels visited by cycle searches.
    overshoot
        Percentage for an additional first pass.  A move of this pass may raise the utilisation of other channels above
        the utilisation of the channel that it relieves, by up to this percentage.  0: there is no such pass.
    restored
        Number of changed entries that may get their value in the previous tables again after each pass of moves.
    """

    goal: int
    budget: int
    work: int
    overshoot: int = 0
    restored: int = 2**63 - 1


@dataclass(frozen=True, eq=False)
class Rebalanced:
    """Result of the local search for better balance.

    Attributes
    ----------
    lft, masks, order, load
        The tables, CDG edges, topological orders and loads after the moves.
    spent
        Number of entries that the moves made different from the previous tables, minus the number of entries that got
        their previous value again.
    work
        Number of hops followed along paths, plus number of channels visited by cycle searches.
    moves
        Number of moves.
    sl
        The SLs that were passed to :func:`rebalance`, changed where a move needs another VL.
    """

    lft: npt.NDArray[np.uint8]
    masks: npt.NDArray[np.uint16]
    order: npt.NDArray[np.int32]
    load: npt.NDArray[np.int64]
    spent: int
    work: int
    moves: int
    sl: npt.NDArray[np.uint8]

    def followed_by(self, more: Rebalanced) -> Rebalanced:
        """Return the result of the further search ``more``, with the counts of both searches added up."""
        return replace(more, spent=self.spent + more.spent, work=self.work + more.work, moves=self.moves + more.moves)

    def peak(self, fabric: RepairFabric) -> int:
        """Return the highest utilisation of a channel: load times inverse capacity."""
        return int((self.load * fabric.inverse_capacity).max(initial=0))


def rebalance(
    repair_fabric: RepairFabric,
    traffic: ServiceLevelRules,
    lft: npt.NDArray[np.uint8],
    *,
    before: npt.NDArray[np.uint8],
    masks: npt.NDArray[np.uint16],
    order: npt.NDArray[np.int32],
    load: npt.NDArray[np.int64],
    limits: SearchLimits,
    up_first: bool = False,
    forbidden: npt.NDArray[np.uint16] | None = None,
    prepares_sls: bool = False,
) -> Rebalanced:
    """Move entries of complete tables (uint8[S, L]) off the channels with the highest utilisation.

    A move gives a switch another next hop towards one LID.  The new path is at most two hops longer than the shortest
    path that the switch can have if its neighbours keep their paths.  A move is made only if its CDG edges close no
    cycle with the edges in ``masks``.  Edges of replaced entries stay in ``masks``, so that most mixtures of old and
    new entries are free of credit loops too.  At the end, a changed entry gets its value in ``before`` again if this
    closes no cycle and raises no channel above the highest utilisation.

    Parameters
    ----------
    repair_fabric, traffic, masks, order, forbidden
        As in :func:`repair`.
    up_first
        Whether ``order`` comes from an Up*/Down* order of the switches.  In this case, all new paths lead up and then
        down.
    lft
        uint8[S, L], tables without missing entries.
    before
        uint8[S, L], the previous tables.  An entry counts as changed if it differs from the previous entry.  255: the
        previous tables have no entry.
    load
        int64[C], flow on each channel with the tables ``lft``.
    limits
        The goal of the search, and the limits of changes and work.
    prepares_sls
        Whether moves may change SLs.  Without effect unless SLs depend on the source switch.  If a move would close a
        cycle on a VL, the moved packets on this VL may get an SL with another VL.  The CDG of the other VL then gets
        the dependencies of the previous paths of these packets (by ``before``) and of their new paths, and must stay
        acyclic.
    """
    masks, order = writable_copy(masks), np.array(order, np.int32, order="C")
    fabric = _fabric(
        repair_fabric, traffic, masks, order, preferred=before, forbidden=forbidden, monotone_first=up_first,
        prepares_sls=prepares_sls,
    )  # fmt: skip
    pages = pages_that_may_differ(lft, before)
    written = np.ones(-(-lft.size // PAGE), np.uint8) if pages is None else pages
    lft = writable_copy(lft)
    load, sl = np.array(load, order="C"), np.array(traffic.sl.table, order="C")
    counts = np.zeros(3, np.int64)
    bounds = limits.goal, limits.budget, limits.work, limits.overshoot, limits.restored
    call(lib.ibn_repair_rebalance, fabric, lft, written, sl, masks, order, load, *bounds, PAGE, counts)
    forbid_writes(lft)
    forbid_writes(masks)
    spent, done, moves = counts.tolist()
    return Rebalanced(lft, masks, order, load, spent, done, moves, sl)


def _fabric(
    repair_fabric: RepairFabric,
    traffic: ServiceLevelRules,
    masks: npt.NDArray[np.uint16],
    order: npt.NDArray[np.int32],
    **fields: Any,
) -> Any:
    """Return the C struct with the fabric, the rules for VLs, and the sizes of ``masks`` and ``order``.

    ``fields`` are the fields of the struct that the other parameters do not give.
    """
    channels = repair_fabric.channels
    lids_at_first, lids_at = grouped(repair_fabric.lid_switch, len(repair_fabric.part))
    return struct_of(
        "repair_fabric", repair_fabric, channels, switches=len(repair_fabric.part), lids=len(repair_fabric.lid_switch),
        channels=len(channels), slots=len(masks), vls=len(order), sl_by_switch=traffic.sl.by_switch,
        replies=traffic.replies, endports_only=traffic.endports_only, vl_bit=traffic.vl_bit, sl_of_vl=traffic.sl_of_vl,
        slot=channels.edges.first, lids_at_first=lids_at_first, lids_at=lids_at, **fields,
    )  # fmt: skip
