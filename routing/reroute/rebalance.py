"""Rebalance repaired tables: move entries off the most loaded channels, and keep the CDG acyclic."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.repair import Rebalanced, SearchLimits, ServiceLevelRules, rebalance
from routing.cdg.acyclic import AcyclicCdg
from routing.counterparts import channel_numbers
from routing.fabric import Channels, Fabric
from routing.reroute.base_fabric import BaseNumbering
from routing.reroute.budget import LARGEST_MEDIUM_TABLE
from routing.reroute.flow import highest_utilisation
from routing.reroute.values import Published
from routing.tables import Routing

FURTHER_CHANGES = 6
"""Limit of changed entries per missing entry in the third and last search of :func:`balance_repaired`.  The third
search runs only if the highest utilisation is still well above the goal.
"""
MOST_OF_TABLE, FEW_ENTRIES, MOST_MOVES = 100, 256, 1.5
"""One search of :func:`balance_repaired` may move at most the largest of three numbers of entries: 1 / MOST_OF_TABLE of
all entries, FEW_ENTRIES entries, and MOST_MOVES entries for each missing entry.
"""
LARGE_TABLE_WORK, LARGE_TABLE_CHANGES = 2, 1 / 5000
"""Limits of the last search of :func:`balance_repaired` in large tables.  The search may follow the hops that the first
search has left of its work limit.  To these hops, LARGE_TABLE_WORK hops for each table entry are added (at most
:data:`MOST_WORK` hops).  The limit of changed entries is at least LARGE_TABLE_CHANGES for each table entry.  The limits
are high, because no further moves follow this search.
"""
TOLERANCE = 0.0075
"""By default, a search ends when the highest utilisation exceeds the goal by at most this fraction.  So small an excess
is not worth a change of entries.
"""
ENOUGH = (0.01, 0.02)
"""Two fractions of the goal.  If the highest utilisation exceeds the goal by more than the first fraction, the second
search of :func:`balance_repaired` runs.  If the highest utilisation exceeds the goal by more than the second fraction,
the third search runs.
"""
FURTHER_TOLERANCE = 0.01
"""The second and the third search of :func:`balance_repaired`, and the searches of :mod:`.strategies.further_moves`,
end when the highest utilisation exceeds the goal by at most this fraction.
"""
FURTHER_GAIN = 0.005
"""Fraction by which the second and the third search of :func:`balance_repaired`, and each search of
:mod:`.strategies.further_moves`, must lower the highest utilisation.  Otherwise the moves of the search are discarded.
"""
LEAST_GAIN = 0.01
"""Fraction by which the all-to-all rate must grow before entries move in a fabric without broken entries."""
LEAST_WORK, MOST_WORK = 4_000_000, 100_000_000
"""Work limit of :func:`balance_repaired`, in hops: at least LEAST_WORK, and at least one hop for each table entry.  If
many entries are missing, the limit rises up to MOST_WORK.
"""
WORK_FOR_ENTRY = 3000
"""Number of hops for each missing entry that :func:`balance_repaired` may follow, up to :data:`MOST_WORK` in total."""


@dataclass(frozen=True, eq=False)
class Utilisation:
    """Flow on the channels if every end port sends to every other end port, and the utilisation that a rebalancing
    should reach.

    Attributes
    ----------
    load
        int64[C], flow on each channel, in the channel numbers of the repair (see ``BaseNumbering``).
    goal
        Utilisation that no channel should exceed after the search.  Unit: load times the kernel's inverse capacity.
    """

    load: npt.NDArray[np.int64]
    goal: int


def in_frame(frame: BaseNumbering, fabric: Fabric, flow: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Convert the flow on a fabric's channels (``flow``) to the channel numbers of a repair, as int64[C].

    ``frame`` gives the channel numbers of the repair.  Channels of ``fabric`` without such a number are left out.
    """
    if fabric is frame.base:
        return flow
    load = np.zeros(len(frame.base.channels), np.int64)
    number = frame.channel if fabric is frame.fabric else channel_numbers(fabric, frame.base)
    load[number[number >= 0]] = flow[number >= 0]
    return load


def kept_share(before: Published, channels: Channels, flow: npt.NDArray[np.int64]) -> float | None:
    """Return the all-to-all rate of an end port with the new tables, as a fraction of its rate with the previous
    tables.

    Parameters
    ----------
    before
        The previous tables.
    channels, flow
        The channels, and the flow of the new tables on each of them (int64[C]).

    Returns
    -------
    float or None
        None if the previous or the new tables send no flow over any channel.
    """
    was, now = before.highest_utilisation, highest_utilisation(channels, flow)
    return was / now if was and now else None


def peak_in(frame: BaseNumbering, highest: float) -> int:
    """Convert a utilisation to the unit of the repair kernel: load times inverse capacity."""
    return int(100 * highest * frame.base.channels.capacity.max(initial=0.0))


@dataclass(frozen=True)
class Repaired:
    """Numbers of entries that limit the moves for balance after a repair.

    Attributes
    ----------
    missing
        Number of entries that were missing before the repair.
    changed
        Number of entries that differ from the previous tables, without entries restored from the baseline tables.
    """

    missing: int
    changed: int


def balance_repaired(
    frame: BaseNumbering,
    traffic: ServiceLevelRules,
    translated: Routing,
    earlier: npt.NDArray[np.uint8],
    *,
    dependencies: AcyclicCdg,
    now: Utilisation,
    repaired: Repaired,
    changes: int,
) -> tuple[Routing, Rebalanced]:
    """Move entries of repaired tables off the most loaded channels.

    Missing entries are those that the fault made invalid.  Up to three searches follow each other.  Each search has a
    limit for the total number of changed entries, which includes the changes of the repair and of earlier searches:

    - The limit of the first search is ``changes`` entries for each missing entry.
    - The second search runs if the highest utilisation is more than 1 % above the goal.  Its limit is ``changes`` + 0.5
      entries for each missing entry.
    - The third search runs if the highest utilisation is more than 2 % above the goal.  Its limit is
      :data:`FURTHER_CHANGES` entries for each missing entry.  The limit is never below the smaller of two numbers:
      :data:`FEW_ENTRIES` entries, and 1 % of all entries.  This matters if few entries are missing, because a few
      entries can carry much flow.

    Independent of these totals, :data:`MOST_OF_TABLE` limits the moves of each single search.

    For tables of more than :data:`routing.reroute.budget.LARGEST_MEDIUM_TABLE` entries, the second search is left out.
    The third search may then change more entries and follow more hops, because :mod:`.strategies.further_moves` makes
    no further moves in such tables.

    Parameters
    ----------
    frame, traffic, translated, earlier, dependencies, now
        As in :func:`move_entries`.
    repaired
        Number of missing entries, and number of entries that the repair changed.
    changes
        Changed entries per missing entry; 0: only entries that the repair has changed may move.

    Returns
    -------
    tables : Routing
        The tables with the moves.
    found : Rebalanced
        Result of the kernel, over all searches.
    """
    size, missing = translated.lft.size, repaired.missing
    work = max(LEAST_WORK, size, min(WORK_FOR_ENTRY * missing, MOST_WORK))
    most = max(size // MOST_OF_TABLE, FEW_ENTRIES, int(MOST_MOVES * missing))
    tables, found = move_entries(
        frame, traffic, translated, earlier, dependencies=dependencies, now=now,
        budget=min(max(0, changes * missing - repaired.changed), most), work=work,
    )  # fmt: skip
    last = max(FURTHER_CHANGES * missing, min(size // MOST_OF_TABLE, FEW_ENTRIES))
    limits = [(changes * missing + missing // 2, ENOUGH[0]), (last, ENOUGH[1])]
    if size > LARGEST_MEDIUM_TABLE:
        limits = [(max(last, int(LARGE_TABLE_CHANGES * size)), ENOUGH[1])]
        work += min(LARGE_TABLE_WORK * size, MOST_WORK)
    for limit, enough in limits if changes else ():
        peak, further = found.peak(frame.repair_fabric), limit - repaired.changed - found.spent
        if peak <= now.goal * (1 + enough) or further <= 0:
            continue
        moved, more = move_entries(
            frame, traffic, tables, earlier, dependencies=dependencies.grown(found.masks, found.order),
            now=Utilisation(found.load, now.goal), budget=min(further, most), tolerance=FURTHER_TOLERANCE,
            work=work - found.work,
        )  # fmt: skip
        if more.peak(frame.repair_fabric) <= (1 - FURTHER_GAIN) * peak:
            tables, found = moved, found.followed_by(more)
    return tables, found


def move_entries(
    frame: BaseNumbering,
    traffic: ServiceLevelRules,
    translated: Routing,
    earlier: npt.NDArray[np.uint8],
    *,
    dependencies: AcyclicCdg,
    now: Utilisation,
    budget: int,
    tolerance: float = TOLERANCE,
    work: int = LEAST_WORK,
    overshoot: int = 0,
    prepares_sls: bool = False,
) -> tuple[Routing, Rebalanced]:
    """Move entries off the most loaded channels by a local search, without a cycle in the CDG.

    Parameters
    ----------
    frame
        The switch and channel numbers of the repair.
    traffic
        Rules for SLs and VLs, which determine the CDG edges that a path adds.
    translated
        Tables without missing entries, in the rows of the present fabric.
    earlier
        uint8[S, L], LFTs of the previous tables in the same rows; 255 where they have no entry.
    dependencies
        The CDG edges in use, with a topological order.
    now
        The exact load of ``translated`` on each channel, and the goal.
    budget
        Maximum number of moved entries, not counting entries that differ from ``earlier`` already.
    tolerance
        Fraction by which the highest utilisation may exceed the goal.
    work
        Work limit in hops that the search follows.
    overshoot
        If not 0, a first pass may make moves that raise other channels above the relieved channel.  The other
        channels may exceed the utilisation of the relieved channel by at most this percentage.  Later passes make no
        such moves.
    prepares_sls
        Whether to accept moves that need other SLs, which have to be written in a step before the moves (see
        :mod:`.strategies.prepared_sls`).  If a move closes a cycle on the VL of its packets, these packets may take
        another VL.  On that VL, neither their present paths nor their new paths may close a cycle.

    Returns
    -------
    tables : Routing
        The tables with the moved entries, and with the SLs of ``translated``.
    found : Rebalanced
        Result of the kernel.  The SLs that the moves need are in ``found.sl``.
    """
    found = rebalance(
        frame.repair_fabric, traffic, frame.in_base_rows(translated.lft), before=frame.in_base_rows(earlier),
        masks=dependencies.masks, order=dependencies.order, load=now.load,
        limits=SearchLimits(goal=int(now.goal * (1 + tolerance)), budget=budget, work=work, overshoot=overshoot),
        up_first=dependencies.position is not None, prepares_sls=prepares_sls,
    )  # fmt: skip
    return replace(translated, lft=frame.gathered(found.lft)), found
