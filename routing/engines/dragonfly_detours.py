"""Tables of a dragonfly with paths over intermediate groups to further LIDs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.symmetric_paths import LinkBundles
from routing.engines.base import Engine, EngineOptions
from routing.engines.class_tables import ClassedPaths
from routing.engines.destinations import Destinations, inverse_capacity
from routing.engines.dragonfly_middles import CLASSES, Flags, Ints, Middles
from routing.engines.grid_flow import tree_flow
from routing.engines.grid_tables import channels_of_bundles
from routing.engines.path_selection import PathSet
from routing.engines.vl_assignment import vls_allowed
from routing.grids.detours import next_switches
from routing.tables import Routing

NONE = 255
MIDDLES = 2
"""Maximum number of different middles (intermediate groups) that all sending groups use towards one LID.

Two middles are enough.  Each pair of a sending group and the LID's group has a pattern: a set of groups that may be
middles between the two groups.  Two middles can be chosen such that the pattern of each sending group has at least one
of them.
"""


def allows_detours(destinations: Destinations, options: EngineOptions) -> bool:
    """Return whether ports have several LIDs, and there are enough VLs for paths over a middle (intermediate group)."""
    return options.vls != "min" and bool(destinations.offset.any()) and vls_allowed(options) >= CLASSES


def detour_routing(
    engine: Engine, middles: Middles, options: EngineOptions, base: PathSet, start: float, **facts: object
) -> Routing:
    """Return tables with the given paths to base LIDs, and with paths over middles (intermediate groups) to all other
    LIDs.

    Parameters
    ----------
    engine, options
        The engine, and the options of the run.
    middles
        The fabric, and the middles of each pattern.
    base
        Paths to the base LIDs.
    start
        Start of the run, by ``time.perf_counter``.
    facts
        Further results for the provenance.

    Raises
    ------
    NotEnoughVLs
        The paths do not fit into the allowed VLs.
    """
    fabric, channels, group = middles.fabric, middles.fabric.channels, middles.group
    destinations = Destinations.of(fabric)
    roots, further = destinations.root.astype(np.int64), np.flatnonzero(destinations.offset)
    bundles = LinkBundles.between_switches(channels, inverse_capacity(fabric, options.link_weights))
    trees = base.next_channel[destinations.port]
    index = np.append(bundles.of - bundles.first[channels.src], NONE)
    hop = index[np.where(trees == NONE, len(channels), channels.first[:-1] + trees.astype(np.int64))].astype(np.uint8)
    longer = _over_middles(middles, bundles, roots[further], hop[further])
    regular = middles.are_regular(next_switches(bundles, longer, roots[further]), roots[further])
    # Missing links can make a path over a middle irregular.  Then all switches of the group in which this path begins
    # keep their paths without a middle to the LID.
    spoiled = np.zeros((len(further), int(group.max(initial=-1)) + 1), bool)
    np.logical_or.at(spoiled.T, group, ~regular.T)
    hop[further] = np.where(spoiled[:, group], hop[further], longer)
    trees[further] = channels_of_bundles(
        fabric, options, bundles, hop[further],
        lambda: tree_flow(fabric, bundles, hop[further], roots[further]) * destinations.share[further, None],
    )  # fmt: skip
    irregular = np.zeros((fabric.switches, fabric.switches), bool)
    np.logical_or.at(irregular, roots, ~middles.are_regular(next_switches(bundles, hop, roots), roots))
    paths = ClassedPaths(
        fabric, destinations, trees, irregular | irregular.T, pattern=middles.of_switches,
        hop_class=middles.hop_class(), classes=CLASSES,
    )  # fmt: skip
    return paths.routing(engine, options, start, **facts)


def _over_middles(
    middles: Middles, bundles: LinkBundles, roots: Ints, hop: npt.NDArray[np.uint8]
) -> npt.NDArray[np.uint8]:
    """Return ``hop`` with paths over middles (intermediate groups) instead of paths without a middle.

    ``roots`` is int64[R], the switch of each destination.  ``hop`` and the result are uint8[R, S]: the bundle by which
    each switch sends.  The result differs from ``hop`` only at switches whose group sends over a middle.  The
    destination's own group does not send over a middle, and a group that is a middle towards a destination does not
    send to this destination over another middle.
    """
    group, links = middles.group, _Links.of(middles, bundles)
    target, turn = np.full(hop.shape, -1), np.zeros(len(roots), np.int64)
    for number in range(int(group.max(initial=-1)) + 1):
        own = np.flatnonzero(group[roots] == number)
        turn[own] = np.arange(len(own))
        target[own] = _targets(middles, links, number, len(own))[:, group]
    row, switch = np.nonzero(target >= 0)
    middle, found = target[row, switch], hop.copy()
    found[row, switch] = links.bundle[switch, middle, turn[row] % links.count[switch, middle]]
    return found


@dataclass(frozen=True, eq=False)
class _Links:
    """Bundles of links towards other groups.

    Attributes
    ----------
    bundle, count
        uint8[S, groups, N] and int64[S, groups]: for each switch and each other group, up to N bundles by which the
        switch can send to the group, and the number of these bundles.  A switch with bundles to the group uses only
        those bundles.  Any other switch sends by its bundles to those switches of its own group that have a bundle to
        the other group.
    complete
        bool[groups, groups], whether every switch of a group (first index) can send to another group (second index) by
        a bundle.
    """

    bundle: npt.NDArray[np.uint8]
    count: Ints
    complete: Flags

    @classmethod
    def of(cls, middles: Middles, bundles: LinkBundles) -> _Links:
        """Return the bundles by which each switch of the fabric can send to each group."""
        group, switches = middles.group, middles.fabric.switches
        groups = int(group.max(initial=-1)) + 1
        src, dst = np.repeat(np.arange(switches), np.diff(bundles.first)), bundles.dst
        between = group[src] != group[dst]
        leads, own = np.zeros((len(src), groups), bool), np.zeros((switches, groups), bool)
        leads[between, group[dst[between]]] = own[src[between], group[dst[between]]] = True
        leads[~between] = own[dst[~between]] & ~own[src[~between]]
        number, to = np.nonzero(leads)
        at = src[number]
        by_group = np.lexsort((number, to, at))
        number, at, to = number[by_group], at[by_group], to[by_group]
        count = np.zeros((switches, groups), np.int64)
        np.add.at(count, (at, to), 1)
        rank = np.arange(len(at)) - np.searchsorted(at * groups + to, at * groups + to)
        bundle = np.full((switches, groups, int(count.max(initial=0))), NONE, np.uint8)
        bundle[at, to, rank] = number - bundles.first[at]
        complete = np.ones((groups, groups), bool)
        np.logical_and.at(complete, group, count > 0)
        return cls(bundle, count, complete)


def _targets(middles: Middles, links: _Links, group: int, count: int) -> Ints:
    """Return int64[N, groups], the middle (intermediate group) over which each group sends to each of N LIDs of
    ``group``; -1 if a group sends over no middle.

    Each group uses all of its possible middles about equally often.
    """
    # `usable` (bool[groups, groups]): whether a group (first index) can send to `group` over a middle (second index).
    usable = middles.is_middle[middles.of_groups[group]] & links.complete & links.complete[:, group]
    usable[group] = usable[:, group] = False
    found, use = np.full((count, len(usable)), -1), np.zeros(usable.shape)
    for row in found:
        left = usable.copy()
        for _ in range(MIDDLES):
            times = (use * left).sum(axis=0) / np.maximum(left.sum(axis=0), 1) + use.mean(axis=0)
            middle = int(np.where(left.any(axis=0), times, np.inf).argmin())
            row[left[:, middle]] = middle
            # Switches in the middle itself send directly to the group of the LID, without a further middle.
            row[middle] = -1
            left[(row >= 0) | (np.arange(len(left)) == middle)] = False
        use[row >= 0, row[row >= 0]] += 1
    return found
