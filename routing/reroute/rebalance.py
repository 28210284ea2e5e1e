"""Rebalancing after a repair: moves entries off the most loaded channels, with the same acyclic dependencies."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.repair import (
    Rebalanced,
    RepairFabric,
    SearchLimits,
    ServiceLevelRules,
    rebalance,
)
from routing.cdg.acyclic import AcyclicCdg
from routing.counterparts import channel_numbers
from routing.fabric import Channels, Fabric
from routing.reroute.base_fabric import BaseNumbering
from routing.reroute.values import Published
from routing.tables import Routing

FURTHER_CHANGES = 6
"""Number of changed entries per missing entry if those of the budget leave the utilisation too far above the goal."""
MOST_OF_TABLE = 100
"""At most one of so many table entries is moved in addition to missing ones, but always up to :data:`FEW_ENTRIES`."""
FEW_ENTRIES = 256
TOLERANCE, FURTHER_TOLERANCE = 0.0075, 0.01
"""Fractions by which the highest utilisation may exceed the goal; a smaller excess is not worth a change."""
FURTHER_GAIN = 0.005
"""Fraction by which :data:`FURTHER_CHANGES` must lower the highest utilisation."""
LEAST_GAIN = 0.01
"""Fraction by which the all-to-all rate must grow before entries move while no entry is broken."""
LEAST_WORK, MOST_WORK = 4_000_000, 20_000_000
"""Bounds of the work limit in steps along paths; on large tables, it is at least one step per entry."""
WORK_FOR_ENTRY = 3000
"""Steps per missing entry, up to :data:`MOST_WORK`."""


@dataclass(frozen=True, eq=False)
class Utilisation:
    """Flow on the channels of a frame if every end port sends to every other.

    Attributes
    ----------
    load
        int64[C], flow on each channel of the frame's base.
    goal
        Lowest utilisation that the most loaded channel can have: that of the baseline tables, or the load that the
        channels of a single switch must carry together.  Unit: load times inverse capacity of the kernel.
    """

    load: npt.NDArray[np.int64]
    goal: int


def in_frame(frame: BaseNumbering, fabric: Fabric, flow: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the flow on a fabric's channels as int64[C] by the frame's channels, without channels not in the frame."""
    load = np.zeros(len(frame.base.channels), np.int64)
    number = frame.channel if fabric is frame.fabric else channel_numbers(fabric, frame.base)
    load[number[number >= 0]] = flow[number >= 0]
    return load


def fullest(channels: Channels, flow: npt.NDArray[np.int64]) -> float:
    """Return the highest utilisation of a channel: flow (int64[C]) over capacity."""
    return float((flow / channels.capacity).max(initial=0.0))


def kept_share(before: Published, channels: Channels, flow: npt.NDArray[np.int64]) -> float | None:
    """Return the all-to-all rate of an end port with the new tables, relative to its rate with the previous tables.

    Parameters
    ----------
    before
        The previous tables.
    channels, flow
        The channels, and the flow of the new tables on each of them (int64[C]).

    Returns
    -------
    float or None
        None if no flow crosses a channel, with the previous or the new tables.
    """
    was, now = fullest(before.fabric.channels, before.load), fullest(channels, flow)
    return was / now if was and now else None


def peak_in(frame: BaseNumbering, highest: float) -> int:
    """Convert a utilisation to the unit of the kernel (load times inverse capacity) for the channels of a frame."""
    return int(100 * highest * frame.base.channels.capacity.max(initial=0.0))


def cut_bound(repair_fabric: RepairFabric) -> int:
    """Return a lower bound of the highest utilisation (load times inverse capacity) of any tables.

    All traffic between the end ports of a switch and other switches crosses the channels of this switch.  Their total
    capacity gives a bound for each switch and direction.  Cost: O(S + C + L).
    """
    channels, alive = repair_fabric.channels, repair_fabric.alive > 0
    switches = len(repair_fabric.part)
    here = repair_fabric.lid_switch >= 0
    into = np.bincount(repair_fabric.lid_switch[here], repair_fabric.weight[here], switches)
    parts = int(repair_fabric.part.max(initial=-1)) + 1
    inside = repair_fabric.part >= 0
    weight = np.bincount(repair_fabric.part[inside], into[inside], parts)[repair_fabric.part]
    sources = np.bincount(repair_fabric.part[inside], repair_fabric.sources[inside], parts)[repair_fabric.part]
    leaving = np.where(inside, repair_fabric.sources * (weight - into), 0)
    coming = np.where(inside, (sources - repair_fabric.sources) * into, 0)
    room = 1.0 / repair_fabric.inverse_capacity
    room_out = np.bincount(channels.src[alive], room[alive], switches)
    room_in = np.bincount(channels.dst[alive], room[alive], switches)
    out = np.divide(leaving, room_out, where=room_out > 0, out=np.zeros(switches))
    back = np.divide(coming, room_in, where=room_in > 0, out=np.zeros(switches))
    return int(max(out.max(initial=0), back.max(initial=0)))


@dataclass(frozen=True)
class Repaired:
    """Extent of the repair that the moves follow.

    Attributes
    ----------
    missing
        Number of entries that were missing before the repair.
    changed
        Number of entries that differ from the previous tables, without those that returned to the baseline.
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
    """Move entries of repaired tables off the most loaded channels; more of them if the first ones do not suffice.

    The first moves may bring the changed entries to ``changes`` per missing entry.  If these are used up and the loss
    is still above a point, further moves follow, up to :data:`FURTHER_CHANGES`.  Where a link had few entries
    with much flow, up to :data:`FEW_ENTRIES` may change.

    Parameters
    ----------
    frame, traffic, translated, earlier, dependencies, now
        See :func:`move_entries`.
    repaired
        Extent of the repair.
    changes
        Changed entries per missing one; 0: only entries that the repair has changed may move.

    Returns
    -------
    tables : Routing
        The tables with the moves.
    found : Rebalanced
        Result of the kernel, over all moves.
    """
    size, missing = translated.lft.size, repaired.missing
    work = max(LEAST_WORK, size, min(WORK_FOR_ENTRY * missing, MOST_WORK))
    most = max(size // MOST_OF_TABLE, FEW_ENTRIES)
    budget = min(max(0, changes * missing - repaired.changed), most)
    tables, found = move_entries(
        frame, traffic, translated, earlier, dependencies=dependencies, now=now, budget=budget, work=work
    )
    peak, enough = found.peak(frame.repair_fabric), now.goal * (1 + FURTHER_TOLERANCE)
    further = max(FURTHER_CHANGES * missing, min(size // MOST_OF_TABLE, FEW_ENTRIES)) - repaired.changed - found.spent
    if not changes or found.spent < budget or peak <= enough or further <= 0:
        return tables, found
    moved, more = move_entries(
        frame,
        traffic,
        tables,
        earlier,
        dependencies=dependencies.grown(found.masks, found.order),
        now=Utilisation(found.load, now.goal),
        budget=min(further, most),
        tolerance=FURTHER_TOLERANCE,
        work=work - found.work,
    )
    if more.peak(frame.repair_fabric) > (1 - FURTHER_GAIN) * peak:
        return tables, found
    return moved, replace(more, spent=found.spent + more.spent, moves=found.moves + more.moves)


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
) -> tuple[Routing, Rebalanced]:
    """Move entries off the most loaded channels, and return the tables and the result of the kernel.

    Parameters
    ----------
    frame, traffic, dependencies
        Numbering and SL rules of the repair, and the allowed dependencies.
    translated
        Complete tables, in the rows of the frame's fabric.
    earlier
        uint8[S, L], LFTs of the previous tables in the same rows; 255 where they have no entry.
    now
        The exact load of ``translated``, and the goal.
    budget
        Maximum number of moved entries, not counting entries that have changed already.
    tolerance
        Fraction by which the highest utilisation may exceed the goal.
    work
        Work limit in steps along paths.
    """
    found = rebalance(
        frame.repair_fabric,
        traffic,
        frame.in_base_rows(translated.lft),
        before=frame.in_base_rows(earlier),
        masks=dependencies.masks,
        order=dependencies.order,
        load=now.load,
        limits=SearchLimits(goal=int(now.goal * (1 + tolerance)), budget=budget, work=work),
        up_first=dependencies.position is not None,
    )
    return replace(translated, lft=frame.gathered(found.lft)), found
