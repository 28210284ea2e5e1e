"""Move all paths off some edges of the channel dependency graph (CDG)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.repair import FAILED, SearchLimits, ServiceLevelRules, rebalance, repair
from routing.cdg.acyclic import AcyclicCdg
from routing.fabric import NO_PORT
from routing.reroute.base_fabric import BaseNumbering
from routing.reroute.rebalance import LEAST_WORK, Utilisation
from routing.tables import Routing

ALL_VLS = 0xFFFF


@dataclass(frozen=True, eq=False)
class TablesInUse:
    """The tables in use, their CDG and their load.

    Attributes
    ----------
    frame
        The numbers of switches and channels, which are those of the present fabric.
    rules
        Rules that give the SL and the VL of each path.
    tables, dependencies
        The tables, and the CDG edges that they use.
    now
        The load of the tables, and the goal of the moves for balance.
    """

    frame: BaseNumbering
    rules: ServiceLevelRules
    tables: Routing
    dependencies: AcyclicCdg
    now: Utilisation


@dataclass(frozen=True, eq=False)
class Vacated:
    """Tables whose paths have left some CDG edges.

    Attributes
    ----------
    tables
        The tables.
    load
        int64[C], flow on each channel.
    """

    tables: Routing
    load: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NotVacated:
    """The reason why paths could not leave some CDG edges.

    Attributes
    ----------
    lids
        intp[N], the LIDs to which no path without these edges was found.  The array is empty if all LIDs have such
        paths, but too many entries or an SL would change.
    """

    lids: npt.NDArray[np.intp]


def edge_usage(
    frame: BaseNumbering, lft: npt.NDArray[np.uint8], lids: npt.NDArray[np.intp] | None = None
) -> npt.NDArray[np.int64]:
    """Return int64[edges], the number of LFT entries that use each CDG edge.  All VLs are counted together.

    Only the entries towards ``lids`` count; None: all entries.  Cost: O(S N) for N LIDs.
    """
    usage = np.zeros(frame.base.channels.edges.count, np.int64)
    for _, edges in _steps(frame, lft, range(len(lft)), lids):
        np.add.at(usage, edges, 1)
    return usage


def vacate(
    in_use: TablesInUse, *, vacated: npt.NDArray[np.uint16], forbidden: npt.NDArray[np.uint16], most: int
) -> Vacated | NotVacated:
    """Move all paths off some CDG edges.  Then balance the load by further changes, up to ``most`` changed entries in
    total.

    Parameters
    ----------
    in_use
        The tables to change, their CDG, their load, and the goal.
    vacated, forbidden
        uint16[edges] each: the VLs on which each edge is to be vacated, and the VLs on which no new path may use the
        edge.
    most
        Maximum number of entries that change.

    Returns
    -------
    Vacated or NotVacated
        The tables and their load.  NotVacated if a path is not found, or if too many entries or an SL would change.

    Notes
    -----
    The edges of the new paths close no cycle with the edges of the old paths.  Cost: O(S L), and the cost of the
    kernels.
    """
    rules, dependencies, now = in_use.rules, in_use.dependencies, in_use.now
    fabric, before = in_use.frame.repair_fabric, in_use.tables.lft
    lft = without_paths_over(in_use.frame, rules, before, vacated)
    repaired = repair(
        fabric, rules, lft, preferred=before, masks=dependencies.masks, order=dependencies.order, load=now.load,
        treatment=np.zeros(lft.shape[1], np.uint8), forbidden=forbidden,
    )  # fmt: skip
    budget = most - int(np.count_nonzero(repaired.lft != before))
    # Tables with other SLs are refused, because hosts keep the SLs of the path records that they already have.
    failed = np.flatnonzero(repaired.done == FAILED)
    if len(failed) or budget < 0 or not np.array_equal(repaired.sl, rules.sl.table):
        return NotVacated(failed)
    found = rebalance(
        fabric, rules, repaired.lft, before=before, masks=repaired.masks, order=repaired.order, load=repaired.load,
        limits=SearchLimits(now.goal, budget, max(LEAST_WORK, lft.size)), forbidden=forbidden,
    )  # fmt: skip
    return Vacated(replace(in_use.tables, lft=found.lft), found.load)


def without_paths_over(
    frame: BaseNumbering, rules: ServiceLevelRules, before: npt.NDArray[np.uint8], vacated: npt.NDArray[np.uint16]
) -> npt.NDArray[np.uint8]:
    """Return a copy of the LFTs ``before`` without the entries that use the edges ``vacated`` (uint16[edges], the VLs
    of each edge as bits).
    """
    lft, vls, (one, _) = before.copy(), lid_vls(rules, before.shape[1]), frame.base.channels.edges.channels()
    switches = np.unique(frame.base.channels.src[one[vacated[frame.base.channels.edges.numbers()] > 0]]).tolist()
    for switch, (lid, edges) in zip(switches, _steps(frame, before, switches), strict=True):
        lft[switch, lid[(vacated[edges] & vls[lid]) != 0]] = NO_PORT
    return lft


def lid_vls(rules: ServiceLevelRules, lids: int) -> npt.NDArray[np.uint16]:
    """Return uint16[L], the VLs of the packets to each LID, as bits."""
    if rules.replies:
        return np.full(lids, ALL_VLS, np.uint16)
    found: npt.NDArray[np.uint16] = np.bitwise_or.reduce(rules.vl_bit[rules.sl.matrix], axis=0)
    return found


def _steps(
    frame: BaseNumbering, lft: npt.NDArray[np.uint8], switches: Iterable[int], lids: npt.NDArray[np.intp] | None = None
) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]]:
    """Yield for each of ``switches`` the first CDG edge of its path to each of ``lids`` (None: to each LID).

    Paths with fewer than two channels have no CDG edge, so their LIDs are left out.

    Yields
    ------
    lid : intp[N]
        The LIDs.
    edges : int64[N]
        Number of the CDG edge between the first two channels of the path to each LID.
    """
    channels, target = frame.base.channels, frame.repair_fabric.lid_switch
    delivered = np.flatnonzero(target >= 0)
    lids = delivered if lids is None else np.intersect1d(lids, delivered)
    for s in switches:
        channel = channels.at_port[s, lft[s, lids]]
        here = np.flatnonzero((channel >= 0) & (target[lids] != s))
        lid, channel = lids[here], channel[here]
        then = channels.at_port[channels.dst[channel], lft[channels.dst[channel], lid]]
        further = (then >= 0) & (target[lid] != channels.dst[channel])
        lid, channel, then = lid[further], channel[further], then[further]
        edges = channels.edges.first[channel].astype(np.int64) + then - channels.edges.after[channel]
        yield lid, edges
