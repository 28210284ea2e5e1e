"""Compute tables of a tree that suit both all-to-all traffic and bisections."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import Balanced, Targets
from routing._kernels.descent import DescentCosts, TreeSlots, descend
from routing.endports import reference_rate
from routing.fabric import Fabric
from routing.trees.closed_form import channel_indices
from routing.trees.levels import TreeOrder

FIRST_PRICE, LAST_PRICE = 0.03, 1.0
"""Price: the cost of a unit of utilisation above a ceiling, divided by the total weight of the destinations.

In the first of several passes, the price is 0.  The first value is the price in the second pass, and the second value
is the price in the last pass.  In between, the price rises from pass to pass.
"""
DISCOUNT = 0.5
"""Discount for pairs of flows that share two consecutive channels.  This value is for every second pass.

The descent counts the weight of a pair of flows at each channel that both flows share.  At the first of two consecutive
shared channels, the weight is multiplied by (1 - discount).  So with a discount of 1, a pair that shares consecutive
channels counts only once.  In the first pass, the discount is 0.  In the later passes, it is in turn this value and 1,
and in the last pass it is 1.  If the discount were 1 in all passes, more pairs of flows would share channels in the
final tables.
"""
THIN, MOST_THIN = 0.01, 0.06
"""Limits for the groups of switches whose cuts get separate ceilings (thin cuts), as shares of all senders.

A cut is all links from a group of switches to the next level of the tree.  Some small groups have so few links that
their cuts force the highest utilisation of the fabric.  The cuts with the highest forced utilisation get separate
ceilings, as long as their groups together have at most the first share of all senders.  The groups may have up to the
second share if the common ceiling then falls enough (:data:`WORTH_IT`).
"""
WORTH_IT = 1.15
"""Factor by which the common ceiling must fall, so that groups with more than :data:`THIN` and at most
:data:`MOST_THIN` of all senders get separate ceilings.
"""
MARGIN = 1.015
"""Factor by which a ceiling exceeds the lowest utilisation that a cut allows (:func:`ceilings`).

With a smaller factor, the descent would end with worse tables.  After the descent, another search lowers the peak
utilisation further.
"""
MOST_RATE = 1.05
"""Largest all-to-all share that ceilings aim at.  No ceiling is lower than the utilisation at which the all-to-all
share is this value.
"""
SLOW, SLOW_WEIGHT = 0.6, 0.5
"""Limit for slow end ports, and the weight of a slow end port.

An end port is slow if the rate of its link is below the first value times the reference rate.  The descent counts pairs
of flows that share channels.  In this count, the weight of a slow end port is the second value, and the weight of any
other end port is 1.
"""
VISITS_PER_SECOND = 100_000_000
"""Approximate number of channels that passes visit per second of CPU time.  Each pass visits about half of all channels
for each destination.
"""
LEAST_SWEEPS, MOST_SWEEPS = 3, 24
"""Least and largest number of passes ("sweeps") over all destinations that an effort allows
(:func:`affordable_sweeps`).  The descent ends earlier if a pass changes nothing and no channel with the common ceiling
exceeds this ceiling.
"""
FEW_SWEEPS = 8
"""A descent has few passes ("sweeps") if their number is below this value.

In the first pass of a descent, some next hops can be preferred.  With few passes, this is always done, because few
passes could not make up for a bad first pass.  Preferred are the next hops of tables in closed form if the caller has
such tables, and else the next hops that follow from slots (:func:`tree_slots`).  With more passes, the next hops that
follow from slots are preferred if no link of the tree is missing.  If links are missing, no next hops are preferred.
"""
MOST_TURNS = 1 << 28
"""Largest number of turns (pairs of a channel and the next channel) for which the descent is used."""


def tree_tables(
    fabric: Fabric,
    order: TreeOrder,
    targets: Targets,
    *,
    lid: npt.NDArray[np.int32],
    inverse_capacity: npt.NDArray[np.float64],
    sources: npt.NDArray[np.float64],
    sweeps: int,
    seed: int,
    start: npt.NDArray[np.uint8] | None = None,
) -> Balanced:
    """Compute trees in which few pairs of flows share channels.  Utilisation above a ceiling adds to the cost of the
    trees.  The ceilings follow from cuts of the fabric (:func:`ceilings`).

    Parameters
    ----------
    fabric, order
        The fabric, and the levels and switch order of the tree.
    targets, lid
        The destinations, and their LIDs (int32[D]).
    inverse_capacity
        float64[C], inverse capacity of each channel.
    sources
        float64[S], weight of the senders at each switch.
    sweeps
        Passes over all destinations.
    seed
        Random seed.
    start
        uint8[S, L], tables whose next hops are preferred in the first pass if there are fewer than :data:`FEW_SWEEPS`
        passes.  None: the next hops that follow from slots (:func:`tree_slots`) are preferred instead, which suits only
        trees without missing links.

    Notes
    -----
    In a random bisection, a flow gets half of its rate where it meets another flow with another source and destination.
    So the number of pairs of flows that meet, each pair counted once, determines the bisection bandwidth.
    """
    mass = np.bincount(targets.root, weights=targets.share, minlength=fabric.switches).astype(np.float64)
    meet_source, meet_target = _meeting_weights(fabric, lid)
    ceiling, least_peak = ceilings(fabric, order.level, inverse_capacity, sources, mass)
    discount, price = _schedule(sweeps)
    return descend(
        fabric.channels,
        inverse_capacity,
        sources,
        targets,
        tree=_start(fabric, order, sweeps),
        order=np.lexsort((fabric.lids.port[lid], targets.root)).astype(np.int32),
        costs=DescentCosts(
            meet_source=sources * meet_source,
            meet_target=targets.share * meet_target,
            ceiling=ceiling,
            least_peak=least_peak,
            discount=discount,
            price=price * float(mass.sum()),
        ),
        seed=seed,
        start=channel_indices(fabric, start, lid) if start is not None and sweeps < FEW_SWEEPS else None,
    )


def _schedule(sweeps: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return two costs for each pass over the destinations, float64[sweeps] each: the discount and the relative price.

    The descent lowers a sum over all channels: the weights of the pairs of flows that share the channel.  If two flows
    share two channels in a row, their pair is in the sum twice.  The discount is the part (0 to 1) of the weight that
    is subtracted because of this double count.  The relative price is the cost of utilisation above a ceiling, divided
    by the total weight of the destinations.
    """
    price = np.zeros(sweeps)
    price[1:] = np.round(np.geomspace(FIRST_PRICE, LAST_PRICE, sweeps - 1), 6)
    price[-1] = LAST_PRICE
    discount = np.where(np.arange(sweeps)[::-1] % 2 == 0, 1.0, DISCOUNT)
    discount[0] = 0.0
    return discount, price


def affordable_sweeps(fabric: Fabric, destinations: int, effort: float) -> int:
    """Return the number of passes that an effort allows, at least LEAST_SWEEPS; 0 if the turns need too much memory.

    Effort 1 is about a second for 1000 switches.
    """
    channels = fabric.channels
    out, into = np.diff(channels.first).astype(np.int64), np.diff(channels.into_first)
    if int((out * into).sum()) > MOST_TURNS:
        return 0
    seconds = effort * fabric.switches / 1000
    visits = destinations * len(channels) / 2
    return int(min(max(seconds * VISITS_PER_SECOND / max(visits, 1), LEAST_SWEEPS), MOST_SWEEPS))


def _meeting_weights(
    fabric: Fabric, lid: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return two factors.  Their product is the weight of a flow when the descent counts pairs of flows that share a
    channel.

    The first factor (float64[S]) is the mean weight of the senders at each switch.  The second factor (float64[D]) is
    the weight of the end port of each LID.  End ports with slow links have a lower weight (:data:`SLOW`).
    """
    rate = fabric.link_capacity[fabric.endport_link]
    weight = np.where(rate < SLOW * reference_rate(fabric), SLOW_WEIGHT, 1.0)
    counted = np.flatnonzero((fabric.endport_switch >= 0) & fabric.counted)
    switch = fabric.endport_switch[counted]
    total = np.bincount(switch, weights=weight[counted], minlength=fabric.switches)
    owner = fabric.lids.endport[lid]
    of_lid = np.ones(len(lid))
    of_lid[owner >= 0] = weight[owner[owner >= 0]]
    return total / np.maximum(np.bincount(switch, minlength=fabric.switches), 1), of_lid


def ceilings(
    fabric: Fabric,
    level: npt.NDArray[np.int32],
    inverse_capacity: npt.NDArray[np.float64],
    sources: npt.NDArray[np.float64],
    mass: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], float]:
    """Return ceilings: the utilisation up to which all-to-all traffic should fill each channel.

    The ceilings follow from cuts.  Without the links above some level, the switches fall apart into groups.  All flow
    from a group to other switches has to cross the cut: the links from the group to the next level.  If a group has few
    senders, but also few links, its cut is thin (:data:`THIN`).  The channels of thin cuts have separate ceilings.

    Parameters
    ----------
    fabric, level, inverse_capacity
        The fabric, the level of each switch (int32[S]), and the inverse capacity of each channel (float64[C]).
    sources, mass
        float64[S] each: flow that each switch sends to every destination, and weight of the destinations at each
        switch.

    Returns
    -------
    ceiling : float64[C]
        The ceilings.
    least_peak : float
        The highest utilisation that any cut without a separate ceiling forces.
    """
    src, dst = fabric.channels.src, fabric.channels.dst
    senders, total = float(sources.sum()), float(mass.sum())
    forced = np.zeros(len(src))
    cuts, parts = [np.zeros(0)], [np.zeros(0)]
    for height in range(int(level.max(initial=0))):
        inside = level <= height
        group = _joined(fabric, inside[src] & inside[dst])
        out = np.bincount(group[inside], weights=sources[inside], minlength=fabric.switches)
        into = np.bincount(group[inside], weights=mass[inside], minlength=fabric.switches)
        leaving = np.flatnonzero(inside[src] & ~inside[dst])
        room = np.bincount(group[src[leaving]], weights=1.0 / inverse_capacity[leaving], minlength=fabric.switches)
        flow = np.maximum(out * (total - into), into * (senders - out))
        cut = np.where(room > 0, flow / np.where(room > 0, room, 1.0), 0.0)
        forced[leaving] = np.maximum(forced[leaving], cut[group[src[leaving]]])
        cuts.append(cut)
        parts.append(out / max(senders, 1e-9))
    forced = np.maximum(forced, forced[fabric.channels.reverse])
    every, part = np.concatenate(cuts), np.concatenate(parts)
    falling = np.argsort(-every, kind="stable")
    behind = np.cumsum(part[falling])
    least, lower = (float(every[falling[behind > share]].max(initial=0.0)) for share in (THIN, MOST_THIN))
    margin = MARGIN
    if 0.0 < lower * WORTH_IT < least:
        # The common ceiling falls enough (WORTH_IT).  So the channels of the cuts that limit all-to-all traffic get
        # separate ceilings above the common ceiling.  These ceilings have no margin (MARGIN), so that all channels of
        # such a cut get equal loads.
        least, margin = lower, 1.0
    common = max(least * MARGIN, total / MOST_RATE, 1e-9)
    return np.where(forced * MARGIN > common * (1.0 + 1e-6), forced * margin, common), least


def tree_slots(fabric: Fabric, order: TreeOrder) -> TreeSlots:
    """Return the slots of the switches: their numbers within groups.  A group is the switches of one level that are
    connected with each other by links to the level below.

    The slots are for the first pass.  The destination selects a slot at each level, and each switch sends up to the
    upper switch with the selected slot.  From one destination to the next, the selected slots change like the digits of
    a counter: at the leaves, the selected slot advances by one with each destination.  At each higher level, it
    advances by one whenever the selected slot of the level below returns to the first slot.
    """
    level, (src, dst) = order.level, (fabric.channels.src, fabric.channels.dst)
    slot, slots, stride = (np.full(fabric.switches, value, np.int32) for value in (0, 1, 1))
    step = 1
    for height in range(int(level.max(initial=0))):
        low, high = np.minimum(level[src], level[dst]), np.maximum(level[src], level[dst])
        group = _joined(fabric, (low == height) & (high == height + 1))
        upper = np.flatnonzero(level == height + 1)
        upper = upper[np.argsort(group[upper], kind="stable")]
        size = np.bincount(group[upper], minlength=fabric.switches)
        slot[upper] = np.arange(len(upper)) - (np.cumsum(size) - size)[group[upper]]
        lower = np.flatnonzero(level == height)
        slots[lower] = np.maximum(size[group[lower]], 1)
        stride[lower] = step
        if len(lower):
            step *= int(np.bincount(slots[lower]).argmax())
    return TreeSlots(order.position, level, slot, slots, stride)


def _start(fabric: Fabric, order: TreeOrder, sweeps: int) -> TreeSlots:
    """Return the slots of the switches for the first pass (see :func:`tree_slots`).

    If there are :data:`FEW_SWEEPS` or more passes, and links of the tree are missing, the slots must have no effect.
    In this case, ``level`` in the result is 0 for every switch.  Slots matter only for channels to a switch of a higher
    level, so with equal levels they have no effect.
    """
    tree = tree_slots(fabric, order)
    if sweeps < FEW_SWEEPS or is_whole(fabric, tree):
        return tree
    return replace(tree, level=np.zeros_like(order.level))


def is_whole(fabric: Fabric, tree: TreeSlots) -> bool:
    """Return whether no link of the tree is missing: each switch must be linked to all upper switches in its group (see
    :func:`tree_slots`), by equally many parallel links.
    """
    src, dst, level = fabric.channels.src, fabric.channels.dst, tree.level
    up = level[dst] == level[src] + 1
    pairs, parallel = np.unique(src[up].astype(np.int64) * fabric.switches + dst[up], return_counts=True)
    lower = pairs // max(fabric.switches, 1)
    linked = np.bincount(lower, minlength=fabric.switches)
    most, fewest = np.zeros(fabric.switches, np.int64), np.full(fabric.switches, len(src), np.int64)
    np.maximum.at(most, lower, parallel)
    np.minimum.at(fewest, lower, parallel)
    same = (linked == tree.slots) & (most == fewest)
    return bool(same[(tree.slots > 1) | (linked > 0)].all())


def _joined(fabric: Fabric, kept: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return int64[S], the lowest switch number in each group of switches that the kept channels connect."""
    src, dst = fabric.channels.src[kept], fabric.channels.dst[kept]
    label = np.arange(fabric.switches)
    while True:
        lower = label.copy()
        np.minimum.at(lower, src, label[dst])
        lower = lower[lower]
        if np.array_equal(lower, label):
            return label
        label = lower
