"""Choose channels and VLs for dimension-ordered paths.  The engines dor and torus-2qos share this module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from routing._kernels.assign_vls import NO_VL, PathGroups, assign_vls
from routing._kernels.symmetric_paths import LinkBundles
from routing.engines.base import EngineOptions
from routing.engines.destinations import Destinations, inverse_capacity
from routing.engines.grid_balance import VISITS, balance_detours, missing_links
from routing.engines.grid_flow import tree_flow
from routing.fabric import NO_PORT, Fabric
from routing.formats.torus_conf import read_torus_conf
from routing.grids.coordinates import Coordinates, find_coordinates
from routing.grids.miscabled import facts
from routing.grids.paths import NONE, GridPaths, grid_paths
from routing.grids.seeded import seeded

Rows = npt.NDArray[np.int64]
BALANCED = 4
"""Maximum number of balanced versions of the paths that are tried.  For each further version, the search moves fewer
paths: it may visit only half as many switches as it visited for the version before.
"""
MOST_FAILED = 100
"""A search for VLs ends when more groups of paths than this number fit on no VL.

If all searches with the paths in dimension order end for this reason, no balanced version of these paths is tried.
Balanced paths mostly need more VLs, so a version that fits is unlikely.
"""


@dataclass(frozen=True, eq=False)
class GridRoutes:
    """Dimension-ordered paths of a fabric, and the coordinates from which the paths were computed.

    Attributes
    ----------
    fabric, options
        Input of the engine.
    coordinates
        Coordinates of the switches.
    destinations
        The destinations.
    bundles
        Bundles of parallel links.
    paths
        Paths between switches.
    side
        int64[D], 0 or 1: which of the two sets of paths in ``paths`` each destination uses.  To a destination exactly
        half a ring away, both directions around the ring are equally short.  One set uses one direction, and the other
        set the other direction.
    cabling
        Record for the provenance: the coordinates, the links to attached switches, and the links that may be miscabled
        (the result of :func:`routing.grids.miscabled.facts`).
    """

    fabric: Fabric
    options: EngineOptions
    coordinates: Coordinates
    destinations: Destinations
    bundles: LinkBundles
    paths: GridPaths
    side: npt.NDArray[np.int64]
    cabling: dict[str, object]

    @classmethod
    def of(cls, fabric: Fabric, options: EngineOptions) -> GridRoutes:
        """Compute the coordinates and the dimension-ordered paths of a fabric.

        Raises
        ------
        NotAGrid
            The fabric has no coordinates.
        InputError
            The coordinates differ from the coordinates in ``torus_config``.
        """
        coordinates, destinations = find_coordinates(fabric), Destinations.of(fabric)
        if options.torus_config is not None:
            coordinates = seeded(coordinates, read_torus_conf(options.torus_config), fabric)
        bundles = LinkBundles.between_switches(fabric.channels, inverse_capacity(fabric, options.link_weights))
        paths = grid_paths(fabric, coordinates, bundles, same_side=options.reversible)
        side = np.zeros(len(destinations.root), np.int64) if options.reversible else _alternate(destinations)
        cabling = facts(fabric, coordinates)
        return cls(fabric, options, coordinates, destinations, bundles, paths, side, cabling)

    def balanced(self) -> Iterator[GridRoutes]:
        """Yield versions of the routes in which paths around missing links have moved for a better balance.

        The version with the most moved paths comes first.  Versions with fewer moved paths mostly need fewer VLs.  If
        no link is missing, or if no path can move, nothing is yielded.
        """
        if missing_links(self.fabric, self.coordinates, self.bundles) == 0:
            return
        destinations = self.destinations
        weight = np.zeros((2, self.fabric.switches))
        np.add.at(weight, (self.side, destinations.root), destinations.share)
        visits = round(VISITS * self.options.effort)
        for _ in range(BALANCED):
            paths, visited = balance_detours(self.fabric, self.bundles, self.paths, weight, visits=visits)
            if np.array_equal(paths.hop, self.paths.hop):
                return
            yield replace(self, paths=paths)
            visits = visited // 2

    @cached_property
    def used(self) -> npt.NDArray[np.bool_]:
        """Whether any LID of a switch uses a set of paths: bool[2, S] by set of paths (see :attr:`side`) and switch."""
        found = np.zeros((2, self.fabric.switches), bool)
        found[self.side, self.destinations.root] = True
        return found

    def is_mutual(self, of_paths: npt.NDArray[np.uint8]) -> bool:
        """Return whether each path has the same value as its reply path.

        ``of_paths`` (uint8[2, S, S]) has one value for each path, such as its SL, by set of paths (0 or 1, see
        :attr:`side`), destination and source.  Paths that no LID of their destination uses are not compared.  Suppose
        that the values are SLs and the result is True.  Then a reply on the SL of its request has the same path and SL
        as a request in the opposite direction.  So replies add no CDG edges.
        """
        return not any(
            ((of_paths[one] != of_paths[other].T) & self.used[one][:, None] & self.used[other]).any()
            for one, other in ((0, 0), (0, 1), (1, 1))
        )

    @cached_property
    def next_channel(self) -> npt.NDArray[np.uint8]:
        """Index of the next channel among the channels of the switch, uint8[D, S]; 255 for none."""
        destinations, hop = self.destinations, self.paths.hop[self.side, self.destinations.root]

        def flow() -> npt.NDArray[np.float64]:
            every = np.arange(self.fabric.switches)
            of_side = np.stack([tree_flow(self.fabric, self.bundles, self.paths.hop[side], every) for side in (0, 1)])
            return of_side[self.side, destinations.root] * destinations.share[:, None]

        return channels_of_bundles(self.fabric, self.options, self.bundles, hop, flow)

    def by_lid(self, of_paths: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Convert values of paths (uint8[2, S, S] by set of paths, destination and source) to uint8[S, L], by source
        switch and LID.
        """
        found = np.zeros((self.fabric.switches, len(self.fabric.lids)), np.uint8)
        found[:, self.destinations.lid] = of_paths[self.side, self.destinations.root].T
        return found

    def links_named(self, key: str) -> list[str]:
        """Return the names of the links that :attr:`cabling` lists under ``key``.  The keys are described at
        :func:`routing.grids.miscabled.facts`, such as ``surplus``: links that may be miscabled, because their bundles
        have more links than usual.
        """
        names = self.cabling.get(key, [])
        return list(names) if isinstance(names, list) else []

    def facts(self) -> dict[str, object]:
        """Return what the provenance records: the coordinates, miscabled links, and the number of detours."""
        found = dict(self.cabling)
        found["detours"] = int(np.count_nonzero(self.used[..., None] & ~self.paths.regular))
        return found


def channels_of_bundles(
    fabric: Fabric,
    options: EngineOptions,
    bundles: LinkBundles,
    hop: npt.NDArray[np.uint8],
    flow: Callable[[], npt.NDArray[np.float64]],
) -> npt.NDArray[np.uint8]:
    """Return uint8[D, S], the next channel among the channels of the switch; 255 for none.

    ``hop`` is uint8[D, S], the bundle of parallel links by which each switch sends.  ``flow`` returns float64[D, S],
    the traffic through each switch towards each destination.  If some bundle has several links, this function calls
    ``flow`` and distributes the traffic over the links.
    """
    channels = fabric.channels
    # In the order `by_bundle`, the channels of a bundle are consecutive, and sorted by their ports.
    by_bundle = np.argsort(bundles.of, kind="stable")
    size = np.bincount(bundles.of, minlength=len(bundles.dst))
    first = np.cumsum(size) - size
    channel = np.full((fabric.switches, 256), NONE, np.uint8)
    row = channels.src[by_bundle[first]]
    channel[row, np.arange(len(size)) - bundles.first[row]] = by_bundle[first] - channels.first[row]
    found = np.empty_like(hop)
    for switch, index in enumerate(np.ascontiguousarray(hop.T)):
        found[:, switch] = channel[switch].take(index)
    if len(by_bundle) > len(size):
        destination, row = np.nonzero(hop != NONE)
        bundle = (bundles.first[row] + hop[destination, row]).astype(np.int64)
        several = size[bundle] > 1
        destination, row, bundle = destination[several], row[several], bundle[several]
        inverse = inverse_capacity(fabric, options.link_weights)[by_bundle]
        turn = _parallel_links(bundle, flow()[destination, row], size, inverse)
        found[destination, row] = by_bundle[first[bundle] + turn] - channels.first[row]
    return found


def _parallel_links(
    bundle: Rows, flow: npt.NDArray[np.float64], size: Rows, inverse: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Return int64[N], for each flow the index of the parallel link that it takes within its bundle.

    ``bundle`` and ``flow`` give the bundle and the traffic of each flow.  ``size`` is the number of channels of each
    bundle.  ``inverse`` is the inverse capacity of each channel; the channels of a bundle are consecutive.
    """
    turn, first = _deal_out(bundle, flow, size), np.cumsum(size) - size
    uneven = np.maximum.reduceat(inverse, first) > np.minimum.reduceat(inverse, first)
    for one in np.flatnonzero(uneven).tolist():
        rows = np.flatnonzero(bundle == one)
        turn[rows] = _by_rate(flow[rows], inverse[first[one] : first[one] + size[one]])
    return turn


def _deal_out(bundle: Rows, flow: npt.NDArray[np.float64], size: Rows) -> Rows:
    """Return int64[N], for each flow the index of the parallel link that it takes within its bundle.

    The flows of a bundle are assigned in order of size, the largest first.  They take the links of the bundle in turn,
    forwards and then backwards.
    """
    by_flow = np.lexsort((-np.round(flow, 9), bundle))
    rank = np.arange(len(by_flow)) - np.searchsorted(bundle[by_flow], bundle[by_flow])
    count = size[bundle[by_flow]]
    turn = rank % count
    found = np.empty(len(by_flow), np.int64)
    found[by_flow] = np.where(rank // count % 2 == 0, turn, count - 1 - turn)
    return found


def _by_rate(flow: npt.NDArray[np.float64], inverse: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return int64[N], for each flow the index of the parallel link that it takes, if the links have different
    capacities.  The largest flows are assigned first.
    """
    load, found = np.zeros(len(inverse)), np.empty(len(flow), np.int64)
    for row in np.argsort(-np.round(flow, 9), kind="stable").tolist():
        chosen = int(np.argmin(np.round((load + flow[row]) * inverse, 9)))
        load[chosen] += flow[row]
        found[row] = chosen
    return found


def _alternate(destinations: Destinations) -> npt.NDArray[np.int64]:
    """Return int64[D], the set of paths of each destination: alternately 0 and 1 for the LIDs of the end ports of each
    switch, 0 for LIDs of switches.

    At every switch, the first LID has set 0.  This does not give one side of a ring more traffic than the other,
    because within each set, neighbouring switches of a ring use different sides.
    """
    side = np.zeros(len(destinations.root), np.int64)
    own = np.flatnonzero(destinations.share > 0)
    own = own[np.argsort(destinations.root[own], kind="stable")]
    roots, first = np.unique(destinations.root[own], return_index=True)
    rank = np.arange(len(own)) - first[np.searchsorted(roots, destinations.root[own])]
    side[own] = rank % 2
    return side


@dataclass(frozen=True, eq=False)
class VlPlacement:
    """VLs of paths, such that the paths on each VL close no cycle of dependencies.

    Attributes
    ----------
    vl
        uint8[2, S, S] by set of paths (see :class:`GridPaths`), destination and source; 255 for paths without a VL.
    failed
        Number of groups without a VL.  A group is one path, or all paths between two switches (see :func:`place`).
    exhausted
        Whether the search reached its work limit.  If so, groups may have no VL although one exists.
    """

    vl: npt.NDArray[np.uint8]
    failed: int
    exhausted: bool = False

    @property
    def used(self) -> int:
        """Number of VLs up to the highest VL in use; 0 if there are no paths."""
        return 1 + int(self.vl[self.vl != NO_VL].max(initial=0)) if (self.vl != NO_VL).any() else 0


def place(
    routes: GridRoutes,
    wanted: npt.NDArray[np.bool_],
    start: npt.NDArray[np.uint8],
    vls: int,
    *,
    visits: int,
    detours_first: bool = False,
    mutual: bool = False,
) -> VlPlacement:
    """Assign a VL to each path that a LID uses.

    The VLs are tried in cyclic order from the path's start VL on.  The path gets the first VL on which it closes no
    cycle.

    With the option ``reversible`` or with ``mutual``, all paths between two switches, in both directions, form one
    group with one VL.  Otherwise each path is a group.  The search ends once more than :data:`MOST_FAILED` groups fit
    on no VL.

    Parameters
    ----------
    routes
        The paths.
    wanted
        bool[2, S, S] by set of paths, destination and source: the paths to place.  ``routes.side`` explains the two
        sets.
    start
        uint8[2, S, S]: VL that each path tries first.
    vls
        Number of VLs.
    visits
        Channels that cycle searches may visit.
    detours_first
        Whether paths with a detour are placed before paths without a detour, instead of after these paths.
    mutual
        Whether all paths between two switches form one group.  If so, ``wanted`` must mark either all paths of a group
        or none of them.
    """
    fabric, paths = routes.fabric, routes.paths
    switches, channels = fabric.switches, fabric.channels
    exists = wanted & (paths.hop != NONE) & routes.used[..., None]
    if routes.options.reversible:
        exists[1] = False
        exists[0] |= exists[0].T & (paths.hop[0] != NONE)
    side, root, source = np.nonzero(exists)
    irregular = ~paths.regular[side, root, source]
    pair = np.arange(len(root))
    if routes.options.reversible or mutual:
        detour = ~(paths.regular[:1] if routes.options.reversible else paths.regular)
        irregular = np.logical_or.reduce(detour | detour.transpose(0, 2, 1))[root, source]
        pair = np.minimum(root, source) * switches + np.maximum(root, source)
    by_pair = np.lexsort((side, root, pair, irregular ^ detours_first))
    side, root, source, pair = side[by_pair], root[by_pair], source[by_pair], pair[by_pair]
    heads = np.flatnonzero(np.diff(pair, prepend=-1))
    groups = PathGroups(
        np.append(heads, len(pair)).astype(np.int32),
        source.astype(np.int32),
        (side * switches + root).astype(np.int32),
        start[side[heads], root[heads], source[heads]] % np.uint8(vls),
    )
    vl, _, _, left = assign_vls(
        channels, np.tile(np.arange(switches, dtype=np.int32), 2), _forwarding_rows(routes), groups,
        masks=np.zeros(channels.edges.count, np.uint16),
        order=np.tile(np.arange(len(channels), dtype=np.int32), (vls, 1)), allowed_vls=np.ones(vls, bool),
        budget=visits, most_failed=MOST_FAILED,
    )  # fmt: skip
    found = np.full(exists.shape, NO_VL, np.uint8)
    found[side, root, source] = np.repeat(vl, np.diff(groups.first))
    return VlPlacement(found, int(np.count_nonzero(vl == NO_VL)), left <= 0)


def _forwarding_rows(routes: GridRoutes) -> npt.NDArray[np.uint8]:
    """Return uint8[S, 2 S], the out-port of each switch (row) towards each destination; 255 if there is no path.

    Each destination has two columns: column ``d`` for the first set of paths, and column ``S + d`` for the second set.

    The first channel of a bundle stands for all its parallel channels.  If the first channels close no cycle, the other
    channels close no cycle either.
    """
    channels, bundles, hop = routes.fabric.channels, routes.bundles, routes.paths.hop
    port = np.empty(len(bundles.dst) + 1, np.uint8)
    port[bundles.of[::-1]] = channels.port[::-1]
    bundle = np.minimum(bundles.first[:-1] + hop.astype(np.int64), len(bundles.dst))
    rows = np.where(hop == NONE, np.uint8(NO_PORT), port[bundle])
    return np.ascontiguousarray(rows.transpose(2, 0, 1).reshape(routes.fabric.switches, -1))
