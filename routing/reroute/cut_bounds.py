"""Compute lower bounds of the highest utilisation that any tables of a fabric have.

A cut divides the switches into two sets.  All flow from one set to the other crosses the channels of the cut.  So this
flow divided by the total capacity of these channels is a lower bound.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.repair import RepairFabric
from routing.fabric import Channels
from routing.reroute.base_fabric import BaseNumbering

CHANNELS_FOR_CUTS = 1 << 17
"""At most CHANNELS_FOR_CUTS / (number of channels) pairs of switches with a lost link are considered.  So in a large
fabric, some lost links may be ignored.
"""
ONE, OTHER = 1, 2
"""Values of a switch that is nearer to the first end of a link, and of a switch that is nearer to its second end.  A
switch at equal distance from both ends has the sum of both values.
"""


def cut_bound(repair_fabric: RepairFabric) -> int:
    """Return a lower bound of the highest utilisation (load times inverse capacity) that holds for any tables.

    All traffic between the end ports of a switch and other switches crosses the channels of this switch.  So this
    traffic divided by their total capacity is a bound, for each switch and direction.  Cost: O(S + C + L).
    """
    channels, switches = repair_fabric.channels, len(repair_fabric.part)
    here = repair_fabric.lid_switch >= 0
    into = np.bincount(repair_fabric.lid_switch[here], repair_fabric.weight[here], switches)
    parts = int(repair_fabric.part.max(initial=-1)) + 1
    inside = repair_fabric.part >= 0
    weight = np.bincount(repair_fabric.part[inside], into[inside], parts)[repair_fabric.part]
    sources = np.bincount(repair_fabric.part[inside], repair_fabric.sources[inside], parts)[repair_fabric.part]
    leaving = np.where(inside, repair_fabric.sources * (weight - into), 0)
    coming = np.where(inside, (sources - repair_fabric.sources) * into, 0)
    room = np.where(repair_fabric.alive > 0, 1.0 / repair_fabric.inverse_capacity, 0.0)
    room_out, room_in = (np.bincount(ends, room, switches) for ends in (channels.src, channels.dst))
    out = np.divide(leaving, room_out, where=room_out > 0, out=np.zeros(switches))
    back = np.divide(coming, room_in, where=room_in > 0, out=np.zeros(switches))
    return int(max(out.max(initial=0), back.max(initial=0)))


def lost_link_bound(numbering: BaseNumbering) -> float:
    """Return a lower bound of the highest utilisation (flow divided by capacity), from cuts that a lost link
    crossed.

    Each cut divides the switches into those nearer to one end of the lost link, and those nearer to its other end.  The
    remaining channels between both sets carry all flow between the sets.  The bound is this flow divided by the total
    capacity of these channels.
    """
    fabric, channels = numbering.repair_fabric, numbering.base.channels
    src, dst, switches = channels.src, channels.dst, len(fabric.part)
    lost = np.flatnonzero(fabric.alive == 0)
    lost = lost[(src[lost] < dst[lost]) & (fabric.part[src[lost]] == fabric.part[dst[lost]])]
    lost = lost[fabric.part[src[lost]] >= 0]
    ends = np.unique(src[lost].astype(np.int64) * switches + dst[lost])
    here = fabric.lid_switch >= 0
    into = np.bincount(fabric.lid_switch[here], fabric.weight[here], switches)
    best = 0.0
    for one, other in zip(*np.divmod(ends[: CHANNELS_FOR_CUTS // max(1, len(channels))], switches), strict=True):
        inside, nearer = fabric.part == fabric.part[one], _nearer_end(channels, one, other)
        # The link has the ends `one` and `other`.  Two cuts are tried.  Switches at equal distance from both ends
        # belong to `other` in the first cut, and to `one` in the second cut.
        for near_one in (inside & (nearer == ONE), inside & (nearer != OTHER)):
            for near in (near_one, inside & ~near_one):
                far = inside & ~near
                room = channels.capacity[(fabric.alive > 0) & near.take(src) & far.take(dst)].sum()
                best = max(best, float(fabric.sources[near].sum() * into[far].sum() / room) if room else 0.0)
    return best


def _nearer_end(channels: Channels, one: int, other: int) -> npt.NDArray[np.uint8]:
    """Return uint8[S], the end of a link to which each switch has fewer hops: :data:`ONE`, :data:`OTHER` or their sum.

    ``one`` and ``other`` are the switches at the ends of the link.  ``channels`` are the channels of the earlier
    fabric, which still has the lost links.  The value is 0 for switches in another connected part of the fabric.
    """
    linked = np.flatnonzero(np.diff(channels.first))
    nearer = np.zeros(len(channels.first) - 1, np.uint8)
    nearer[one], nearer[other] = ONE, OTHER
    while True:
        # In each round, the neighbours of the switches with a value get a value, unless they have a value already.
        near = np.zeros_like(nearer)
        near[linked] = np.bitwise_or.reduceat(nearer.take(channels.dst), channels.first[linked])
        near[nearer > 0] = 0
        if not near.any():
            return nearer
        nearer |= near
