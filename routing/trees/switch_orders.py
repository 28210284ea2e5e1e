"""Orders of a tree's switches in which paths lead up and then down."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric

MOST_HUBS = 6
"""Maximum number of orders with different hubs that are compared."""


def torn_leaves(fabric: Fabric, level: npt.NDArray[np.int32], position: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return bool[S], whether each switch is torn.  A switch is torn if some of its traffic can use only a part of its
    links up, because of the order of the switches.

    The array has all switches, not only leaves.  The upper neighbours of a switch are its neighbours of higher levels.
    A switch is torn in two cases:

    1. Some of its upper neighbours come before the switch in the order, and others come after it.  Traffic between the
       torn switch and other leaves uses only the upper neighbours that come before it: a path over one of the others
       would lead down and then up in the order.
    2. Some of its upper neighbours are turned over, and others are not.  (Upper neighbours that are top switches are
       left out here.)  A switch is turned over if one of its own upper neighbours comes after it in the order, as with
       the switches between the hub and the top switches.  Traffic from the top to the torn switch uses only the upper
       neighbours that are not turned over.  The reason: a channel from a top switch to a turned-over switch leads up in
       the order, and packets take paths down if possible.
    """
    src, dst = fabric.channels.src, fabric.channels.dst
    up = level[dst] > level[src]
    before = np.bincount(src[up & (position[dst] < position[src])], minlength=fabric.switches) > 0
    after = np.bincount(src[up & (position[dst] > position[src])], minlength=fabric.switches) > 0
    inner = up & (before | after)[dst]
    over = np.bincount(src[inner & after[dst]], minlength=fabric.switches) > 0
    usual = np.bincount(src[inner & ~after[dst]], minlength=fabric.switches) > 0
    return np.asarray((before & after) | (over & usual))


def hub_orders(
    fabric: Fabric, level: npt.NDArray[np.int32], senders: npt.NDArray[np.float64]
) -> Iterator[npt.NDArray[np.int32]]:
    """Yield orders of the switches, int32[S].  Each order begins with a different leaf, the hub of the order.

    Hubs with the most top switches above them come first.  Some switches with senders may be torn in the first order
    (:func:`torn_leaves`).  These switches are the hubs of further orders.  ``senders`` (float64[S]) is the weight of
    the senders at each switch.
    """
    below = _below(fabric, level)
    src, dst = fabric.channels.src, fabric.channels.dst
    has_lower = np.bincount(src[level[dst] < level[src]], minlength=fabric.switches) > 0
    hubs: list[list[int]] = []
    for component in range(int(fabric.component.max(initial=0)) + 1):
        members = np.flatnonzero(fabric.component == component)
        # Only leaves on the level with the most senders can be hubs.  So a switch below a leaf cannot be a hub.
        bottom = members[~has_lower[members]]
        weight = np.bincount(level[members], senders[members])[level[bottom]]
        leaves = bottom[weight == weight.max()]
        top = members[level[members] == level[members].max()]
        count = below[np.ix_(top, leaves)].sum(axis=0)
        seen, chosen = set(), list[int]()
        for leaf in leaves[np.argsort(-count, kind="stable")].tolist():
            above = below[:, leaf].copy()
            above[leaf] = False
            # Leaves of one pod have equal switches above them, so one leaf of each pod is enough.
            if above.tobytes() not in seen:
                seen.add(above.tobytes())
                chosen.append(leaf)
            if len(chosen) == MOST_HUBS:
                break
        hubs.append(chosen)
    torn: npt.NDArray[np.bool_] | None = None
    for rank in range(max(map(len, hubs), default=0)):
        position = _order(fabric, level, below, [chosen[min(rank, len(chosen) - 1)] for chosen in hubs])
        torn = torn_leaves(fabric, level, position) & (senders > 0) if torn is None else torn
        yield position
    for leaf in [] if torn is None else np.flatnonzero(torn)[:MOST_HUBS].tolist():
        part = int(fabric.component[leaf])
        yield _order(fabric, level, below, [leaf if n == part else chosen[0] for n, chosen in enumerate(hubs)])


def chained_order(fabric: Fabric, level: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return int32[S], a switch order for fabrics in which director switches (chassis with leaves and spines) are below
    another director switch.

    In this order, the leaves and spines of a lower director switch alternate: each spine follows a leaf that has links
    to the upper director switch.  A leaf that has lost its own links to the upper director switch reaches it over every
    spine and the leaf before the spine.  In the orders of :func:`hub_orders`, such a leaf reaches the upper director
    switch over only one other leaf.
    """
    below, channels = _below(fabric, level), fabric.channels
    hubs = []
    for component in range(int(fabric.component.max(initial=-1)) + 1):
        members = np.flatnonzero(fabric.component == component)
        top = int(members[level[members].argmax()])
        hubs.append(int(channels.dst[channels.first[top]]) if channels.first[top] < channels.first[top + 1] else top)
    return _order(fabric, level, below, hubs, chained=True)


def breadth_first_orders(fabric: Fabric, level: npt.NDArray[np.int32], most: int) -> Iterator[npt.NDArray[np.int32]]:
    """Yield at most ``most`` orders of the switches, int32[S].  Each order sorts the switches by their distance from
    the root of their component.

    Orders whose roots have the highest levels come first.
    """
    roots = np.lexsort((np.arange(fabric.switches), -level, fabric.component))
    first = np.searchsorted(fabric.component[roots], np.arange(int(fabric.component.max(initial=0)) + 2))
    for rank in range(min(int(np.diff(first).max()), most)):
        chosen = roots[np.minimum(first[:-1] + rank, first[1:] - 1)].tolist()
        distance = np.asarray(fabric.graph.distances(source=chosen, mode="out"), float).min(axis=0)
        position = np.empty(fabric.switches, np.int32)
        position[np.lexsort((-level, distance))] = np.arange(fabric.switches, dtype=np.int32)
        yield position


def _below(fabric: Fabric, level: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return bool[S, S], whether a path that only goes down leads from the first switch to the second switch."""
    channels = fabric.channels
    below: npt.NDArray[np.bool_] = np.eye(fabric.switches, dtype=np.bool_)
    for switch in np.argsort(level, kind="stable").tolist():
        next_switches = channels.dst[channels.first[switch] : channels.first[switch + 1]]
        lower = next_switches[level[next_switches] < level[switch]]
        if len(lower):
            below[switch] |= below[lower].any(axis=0)
    return below


def _order(
    fabric: Fabric,
    level: npt.NDArray[np.int32],
    below: npt.NDArray[np.bool_],
    hubs: list[int],
    *,
    chained: bool = False,
) -> npt.NDArray[np.int32]:
    """Return int32[S], the position of each switch in an order.  First come the hubs with the switches above them, from
    the bottom up.  Then come the switches that the two steps below place.  All other switches come last, from the top
    down.

    A placed switch is a switch that already has a position.  A switch is joined if it is placed, or if it reaches a
    placed switch by a path that leads only up in the tree.  As long as some switches are not joined, one of two steps
    places more switches:

    1. Place all switches that are not joined, but are linked to a placed switch.
    2. If step 1 finds no switch, choose a switch that is joined but not placed, and is linked to a switch that is not
       joined.  Of several such switches, one of the highest level is chosen.  Above the chosen switch are joined
       switches and others.  First the joined ones are placed, from the highest level to the lowest.  Then the chosen
       switch is placed, and then the others, from the lowest level to the highest.

    With ``chained``, step 2 comes before step 1, and each step 2 places only one switch that is not joined.  ``below``
    is the result of :func:`_below`.
    """
    channels, switches = fabric.channels, fabric.switches
    placed: npt.NDArray[np.bool_] = np.zeros(switches, np.bool_)
    order: list[int] = []

    def turn_over(start: int, joined: npt.NDArray[np.bool_], most: int) -> None:
        # Place `start` and the switches above `start`: joined switches from the top down, then the other switches from
        # the bottom up.  So each switch, except a hub, has an earlier neighbour.
        above = np.flatnonzero(below[:, start] & ~placed)
        above = above[np.lexsort((level[above] * np.where(joined[above], -1, 1), ~joined[above]))]
        above = above[: int(joined[above].sum()) + most]
        order.extend(above.tolist())
        placed[above] = True

    for hub in hubs:
        turn_over(hub, np.zeros(switches, np.bool_), switches)
    while True:
        # A switch is joined if a path that only goes up leads from this switch to a placed switch.
        joined: npt.NDArray[np.bool_] = np.logical_or.reduce(below[placed])
        apart = ~joined
        if not apart.any():
            break
        across = np.flatnonzero(apart & (np.bincount(channels.src[placed[channels.dst]], minlength=switches) > 0))
        linked = joined & ~placed & (np.bincount(channels.src[apart[channels.dst]], minlength=switches) > 0)
        rows = np.flatnonzero(linked)
        # This is step 1.  It is also necessary for a tree of two parts without a common top switch, which are joined
        # only by links between switches of one level.
        if len(across) and not (chained and len(rows)):
            order.extend(across.tolist())
            placed[across] = True
            continue
        if len(rows) == 0:
            break
        rows = rows[level[rows] == level[rows].max()]
        joins = below[np.ix_(apart, rows)].sum(axis=0)
        # If several switches would join equally many others, the switch with the most switches above it is chosen.
        # Switches with fewer switches above them may have lost links up.
        if chained:
            joins = joins * switches + below[:, rows].sum(axis=0)
        turn_over(int(rows[joins.argmax()]), joined, 1 if chained else switches)
    rest = np.flatnonzero(~placed)
    order.extend(rest[np.argsort(-level[rest], kind="stable")].tolist())
    position = np.empty(switches, np.int32)
    position[order] = np.arange(switches, dtype=np.int32)
    return position
