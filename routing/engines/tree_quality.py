"""Judge trees and the tables of trees: how regular a tree is, and how much traffic its tables carry."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing.engines.base import EngineOptions
from routing.engines.destinations import Destinations, inverse_capacity
from routing.engines.effort import is_moderate
from routing.fabric import Fabric
from routing.quality import all_to_all_share, bisection_share, channel_loads
from routing.quality.flows import Flows
from routing.quality.parts import stretch
from routing.tables import Routing
from routing.trees.descent import ceilings
from routing.trees.levels import MOST_LONGER, tree_order

Reals = npt.NDArray[np.float64]
Levels = npt.NDArray[np.int32]

TOLERANCE = 0.02
"""Fraction of a ceiling by which utilisations may exceed the ceiling.  If no utilisation exceeds it by more, no search
for better balanced tables is made.
"""
LOWER_PEAK = 1.02
"""Factor for the choice between tables by descent and tables in closed form.  One kind of tables is preferred if its
highest utilisation, times this factor, is still lower than the highest utilisation of the other kind.
"""
DOUBTFUL = 0.2
"""If the cost of a tree's switch order is higher, the fabric may not be a tree.  An example is a torus with CAs at
every second switch.  For such a fabric, :func:`carried` does not limit all-to-all shares to 1, and the engine ``nue``
also computes tables that do not follow this order.
"""
INFINITE = 1e9
"""All-to-all share that is assumed if no link between switches carries traffic."""


def carried(
    fabric: Fabric, tables: Routing | npt.NDArray[np.uint8], options: EngineOptions, *, is_doubtful: bool
) -> float:
    """Return the product of all-to-all share and bisection share of tables.  Return 0 if a path between end ports
    exceeds the shortest path by more than :data:`routing.trees.levels.MOST_LONGER` hops.

    An all-to-all share above 1 counts as 1, because the links of the CAs limit the rate.  With ``is_doubtful``, a share
    above 1 counts in full (up to :data:`INFINITE`).
    """
    longer = stretch(Flows.of(fabric, tables if isinstance(tables, np.ndarray) else tables.lft, options.threads))
    if longer is None or longer.more_most > MOST_LONGER:
        return 0.0
    share = all_to_all_share(fabric, channel_loads(fabric, tables, threads=options.threads))
    bisection = bisection_share(fabric, tables, seed=options.seed, threads=options.threads)
    return min(share, INFINITE if is_doubtful else 1.0) * bisection


def is_doubtful(fabric: Fabric) -> bool:
    """Return whether the fabric may be another fabric than a tree, although it has the levels of a tree.

    For such a fabric, the caller also computes tables that do not use the levels.  This would take too long for large
    fabrics, so the result is False for them.
    """
    order = tree_order(fabric) if is_moderate(fabric) else None
    return order is not None and order.cost > DOUBTFUL


def excess_utilisation(
    fabric: Fabric, destinations: Destinations, load: Reals, level: Levels, options: EngineOptions
) -> Reals:
    """Return float64[C]: the part of each channel's utilisation that is above its ceiling, divided by the ceiling; 0 if
    the utilisation is below the ceiling.

    Parameters
    ----------
    fabric, destinations, options
        The fabric, its destinations, and the options of the engine.
    load, level
        All-to-all load of each channel (float64[C]), and the level of each switch (int32[S]).
    """
    utilisation = load * inverse_capacity(fabric, options.link_weights)
    return np.maximum(utilisation / channel_ceilings(fabric, destinations, level, options) - 1.0, 0.0)


def channel_ceilings(fabric: Fabric, destinations: Destinations, level: Levels, options: EngineOptions) -> Reals:
    """Return float64[C], the ceiling of each channel (:func:`routing.trees.descent.ceilings`).

    The arguments are the fabric, its destinations, the level of each switch (int32[S]), and the options of the engine.
    """
    mass = np.bincount(destinations.root, destinations.share, fabric.switches).astype(np.float64)
    inverse_rate, sources = inverse_capacity(fabric, options.link_weights), fabric.source_weight_at.astype(np.float64)
    return ceilings(fabric, level, inverse_rate, sources, mass)[0]


def has_equal_leaves(fabric: Fabric) -> bool:
    """Return whether all links have one speed, and all leaves the same number of end ports."""
    ends, speeds = np.unique(fabric.senders_at[fabric.senders_at > 0]), np.unique(fabric.channels.capacity)
    return len(ends) <= 1 and len(speeds) <= 1


def is_regular(fabric: Fabric) -> bool:
    """Return whether the links and leaves of the fabric can be those of a regular tree.  This check does not need the
    levels of the switches.

    All links must have one speed.  All switches with end ports must have equally many end ports and equally many links,
    and these links must lead to switches without end ports.
    """
    channels, senders, links = fabric.channels, fabric.senders_at, np.diff(fabric.channels.first)
    leaf = senders > 0
    if not leaf.any() or leaf.all() or (leaf[channels.src] & leaf[channels.dst]).any():
        return False
    return all(len(np.unique(each)) == 1 for each in (channels.capacity, senders[leaf], links[leaf]))


def all_shortest(fabric: Fabric, destinations: Destinations, load: Reals) -> bool:
    """Return whether all flows have shortest paths.

    The sum of the loads of all channels is the sum of all flows, each times the hops of its path.  This sum is compared
    with the sum for shortest paths.
    """
    sources = fabric.source_weight_at.astype(np.float64)
    mass = np.bincount(destinations.root, destinations.share, fabric.switches).astype(np.float64)
    return bool(np.isclose(float(load.sum()), _least_load(fabric, sources, mass), rtol=1e-9))


def _least_load(fabric: Fabric, sources: Reals, mass: Reals) -> float:
    """Return the sum of the flows between all switches, each times the distance of the switches.

    A switch sends to every other switch its element of ``sources`` times the other switch's element of ``mass``
    (float64[S] each).  Two switches in different connected components exchange no flow.

    Cost: O(C S / 64) for each hop of the longest shortest path.
    """
    channels = fabric.channels
    receivers, linked = np.flatnonzero(mass), np.flatnonzero(np.diff(channels.first))
    near = np.zeros((fabric.switches, len(receivers)), bool)
    near[receivers, np.arange(len(receivers))] = True
    # In iteration h of the loop (from 0 on), row s of `rows` has one bit for each receiver: whether the receiver is at
    # most h hops from switch s.
    rows = np.packbits(near, axis=1)
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 8))).view(np.uint64)
    senders = np.flatnonzero(sources)
    reached: list[float] = []
    while True:
        bits = np.unpackbits(rows[senders].view(np.uint8), axis=1, count=len(receivers))
        reached.append(float(sources[senders] @ (bits @ mass[receivers])))
        further = rows.copy()
        if len(linked):
            further[linked] |= np.bitwise_or.reduceat(rows[channels.dst], channels.first[linked])
        if np.array_equal(further, rows):
            # `reached[h]` is the sum of all flows between switches that are at most h hops apart.  So the difference
            # `reached[-1] - reached[h]` is the sum of all flows over more than h hops.  A flow over n hops is part of
            # n of these differences (h = 0 to n - 1).  So the sum of all differences counts each flow once per hop.
            return sum(reached[-1] - each for each in reached)
        rows = further
