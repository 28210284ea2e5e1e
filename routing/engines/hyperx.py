"""HyperX: minimal dimension-ordered paths, and with an LMC non-minimal paths too, on two VLs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import Targets
from routing._kernels.symmetric_paths import LinkBundles
from routing.engines.base import EngineOptions, Offers, Promise, refuse_unsupported
from routing.engines.class_tables import ClassedPaths
from routing.engines.destinations import Destinations, balanced_trees, inverse_capacity
from routing.engines.effort import refinement_passes
from routing.engines.grid_flow import tree_flow
from routing.engines.grid_tables import channels_of_bundles
from routing.engines.hop_classes import fallback, highest_all_to_all
from routing.engines.uncounted import without_uncounted
from routing.engines.vl_assignment import most_vls
from routing.errors import NotEnoughVLs
from routing.fabric import Fabric
from routing.grids.cliques import clique_trees
from routing.grids.coordinates import Coordinates, Grid, Kind, NotAGrid, axes_inside, find_coordinates
from routing.grids.detours import add_detours, count_hops
from routing.grids.miscabled import facts
from routing.grids.paths import dimension_order
from routing.tables import Routing

NO_AXIS = -1
NONE = 255


class HyperX:
    """Dimension-ordered paths with at most two hops in each dimension: the first on one VL, the second on another.

    Notes
    -----
    The topology comes from J. Ahn, N. Binkert, A. Davis, M. McLaren, R. S. Schreiber, "HyperX: topology, routing, and
    packaging of efficient large-scale networks", SC 2009.  The base LID of a port has minimal paths.  Each other LID of
    the port has paths with an intermediate switch in each dimension.  A sender chooses the kind of path by the
    destination LID, for example by message size.  PARX uses LIDs in this manner: J. Domke et al., "HyperX topology:
    first at-scale implementation and comparison to the fat-tree", SC 2019.  Differences:

    - For each LID of a port, PARX ignores the links of a different half of the HyperX, and routes over the other links
      with DFSSSP.  So the quadrants of source and destination determine which LIDs have minimal paths.  Here the base
      LID has minimal paths from all sources.
    - PARX needs a HyperX of two dimensions with even sizes, and an LMC of 2.  Here any HyperX and any LMC are possible.
    - PARX weighs destinations by a communication profile.  Here all end ports count by their weights.
    - Two VLs are enough for all these paths: SL2VL selects the second VL if in-port and out-port lie in one dimension.

    Minimal paths use the dimensions in order, unless missing links make a path in another order shorter.  Pairs of
    switches with paths in another order use separate VLs, on which the dependencies close no cycle.
    """

    name = "hyperx"
    summary = "minimal paths on HyperX, and non-minimal ones for further LIDs, on two virtual lanes; replies are safe"
    promise = Promise.DEADLOCK_FREE
    offers = Offers(options=("reversible",), needs_vls=True)

    @without_uncounted
    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`).

        Cost: O(S) table lookups for each LID; cycle searches for detours.

        Raises
        ------
        NotAGrid
            The fabric has no coordinates of a HyperX.
        NotEnoughVLs
            The paths do not fit into the allowed VLs.
        """
        refuse_unsupported(self, options)
        start = time.perf_counter()
        paths = CliquePaths.of(fabric, options)
        base = 2 if paths.has_two_hops_in_a_dimension() else 1
        classed = ClassedPaths(
            fabric, paths.destinations, paths.next_channel, paths.irregular,
            pattern=np.zeros((fabric.switches, fabric.switches), np.int64), hop_class=paths.hop_class(), classes=base,
        )  # fmt: skip
        if base > most_vls(options):
            raise NotEnoughVLs(base, most_vls(options))
        try:
            found = classed.routing(self, options, start, **facts(fabric, paths.coordinates))
        except NotEnoughVLs:
            return fallback(self, fabric, options)
        if paths.irregular.any() and not (paths.destinations.offset > 0).any() and options.vls != "min":
            # If links or switches are missing, paths in dimension order may have uneven loads.  So the tables are
            # compared with the tables of LASH.
            with contextlib.suppress(NotEnoughVLs):
                return highest_all_to_all([found, fallback(self, fabric, options)], fabric, options)
        return found


ENGINE = HyperX()


@dataclass(frozen=True, eq=False)
class CliquePaths:
    """Trees of a HyperX, one for each destination.

    Attributes
    ----------
    fabric, coordinates, destinations
        The fabric, its coordinates, and its destinations.
    axis, rank
        int64[C] and int32[C], dimension of each channel, and its place in the order of dimensions.  A channel that fits
        no coordinates has the dimension -1 and the highest rank.
    next_channel
        uint8[D, S], index of the next channel among the channels of the switch, 255 for none.
    """

    fabric: Fabric
    coordinates: Coordinates
    destinations: Destinations
    axis: npt.NDArray[np.int64]
    rank: npt.NDArray[np.int32]
    next_channel: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, fabric: Fabric, options: EngineOptions) -> CliquePaths:
        """Compute the coordinates and the trees.

        Raises
        ------
        NotAGrid
            The fabric has no coordinates of a HyperX.
        """
        coordinates, destinations = find_coordinates(fabric), Destinations.of(fabric)
        for grid in coordinates.grids:
            _check_rows(grid)
        bundles = LinkBundles.between_switches(fabric.channels, inverse_capacity(fabric, options.link_weights))
        orders = [dimension_order(grid, fabric, bundles) for grid in coordinates.grids]
        axis, rank = _axes(fabric, coordinates, orders)
        offset = destinations.offset
        trees = np.full((len(offset), fabric.switches), NONE, np.uint8)
        base, further = np.flatnonzero(offset == 0), np.flatnonzero(offset > 0)
        trees[base] = _minimal_trees(fabric, options, destinations, base, rank)
        if len(further):
            port = destinations.port[further]
            hop = np.full((len(further), fabric.switches), NONE, np.uint8)
            roots = destinations.root[further].astype(np.int64)
            for grid, order in zip(coordinates.grids, orders, strict=True):
                own, row = np.flatnonzero(np.isin(roots, grid.switches)), np.searchsorted(grid.switches, roots)
                hop[own] = clique_trees(
                    grid, order, bundles, fabric.switches, root=row[own], port=port[own], offset=offset[further[own]]
                )
            add_detours(fabric, bundles, hop, np.ones(hop.shape, bool), roots)
            trees[further] = channels_of_bundles(
                fabric, options, bundles, hop,
                lambda: tree_flow(fabric, bundles, hop, roots) * destinations.share[further, None],
            )  # fmt: skip
        return cls(fabric, coordinates, destinations, axis, rank, trees)

    @cached_property
    def _shape(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return bool[D, S], whether each path is irregular, and bool[D, S], whether its first two hops are in one
        dimension.

        A regular path uses the dimensions in order, with at most two hops in each dimension.
        """
        channels, roots = self.fabric.channels, self.destinations.root.astype(np.int64)
        there = self.next_channel != NONE
        channel = np.where(there, channels.first[:-1] + self.next_channel.astype(np.int64), len(channels))
        following = np.append(channels.dst, self.fabric.switches).astype(np.int64)[channel]
        following[np.arange(len(roots)), roots] = roots
        hops = count_hops(following, roots)
        axis, rank = np.append(self.axis, NO_AXIS)[channel], np.append(self.rank, 0)[channel]
        irregular, twice = np.zeros(there.shape, bool), np.zeros(there.shape, bool)
        for length in range(1, int(hops.max(initial=0)) + 1):
            tree, switch = np.nonzero(hops == length)
            onward = following[tree, switch]
            same = (axis[tree, onward] == axis[tree, switch]) & (hops[tree, onward] > 0)
            later = (rank[tree, onward] > rank[tree, switch]) | (hops[tree, onward] == 0)
            fits = (axis[tree, switch] != NO_AXIS) & (later | (same & ~twice[tree, onward]))
            irregular[tree, switch] = irregular[tree, onward] | ~fits
            twice[tree, switch] = same
        return irregular, twice

    @cached_property
    def irregular(self) -> npt.NDArray[np.bool_]:
        """Pairs of switches with an irregular path in either direction, bool[S, S].  A regular path uses the dimensions
        in order, with at most two hops in each dimension.
        """
        found = np.zeros((self.fabric.switches, self.fabric.switches), bool)
        np.logical_or.at(found, self.destinations.root, self._shape[0])
        return found | found.T

    def has_two_hops_in_a_dimension(self) -> bool:
        """Return whether a regular path has two hops in a dimension."""
        irregular, twice = self._shape
        return bool((twice & ~irregular).any())

    def hop_class(self) -> npt.NDArray[np.uint8]:
        """Return uint8[1, S, P, P], the hop class of each hop by switch, in-port and out-port.

        The hop class is 1 if both ports lie in one dimension, 0 otherwise.  The first axis of the array has length 1:
        unlike in dragonflies, the hop class is the same for all pairs of source and destination.
        """
        fabric, channels = self.fabric, self.fabric.channels
        ports = 1 + int(fabric.switch_ports.max(initial=0))
        into, out = np.full((fabric.switches, ports), NO_AXIS), np.full((fabric.switches, ports), NO_AXIS - 1)
        into[channels.dst, channels.dst_port] = out[channels.src, channels.port] = self.axis
        out[out == NO_AXIS] = NO_AXIS - 1
        return np.asarray((into[:, :, None] == out[:, None, :])[None], np.uint8)


def _check_rows(grid: Grid) -> None:
    """Check that the switches of each row of the grid form a clique: every two of them are linked.

    Raises
    ------
    NotAGrid
        In some dimension, the switches of a row form a line or a ring.
    """
    for size, kind in zip(grid.size, grid.kind, strict=True):
        if kind is not Kind.CLIQUE and size > 2:
            raise NotAGrid(
                f"the {size} switches of a row form a {kind.value}, and in a HyperX all switches of a row are linked "
                "(use dor or torus-2qos)"
            )


def _axes(
    fabric: Fabric, coordinates: Coordinates, orders: Sequence[Sequence[int]]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the dimension of each channel and its place in the order of dimensions (see :class:`CliquePaths`).

    For each grid, ``orders`` lists the dimensions in the order in which paths use them.
    """
    channels = fabric.channels
    axis, rank = np.full(len(channels), NO_AXIS, np.int64), np.full(len(channels), max(map(len, orders), default=0))
    for grid, order in zip(coordinates.grids, orders, strict=True):
        inside, along = axes_inside(grid, channels.src, channels.dst)
        axis[inside] = along
        fitting = inside[along != NO_AXIS]
        rank[fitting] = np.argsort(order)[axis[fitting]]
    return axis, rank.astype(np.int32)


def _minimal_trees(
    fabric: Fabric,
    options: EngineOptions,
    destinations: Destinations,
    rows: npt.NDArray[np.int64],
    rank: npt.NDArray[np.int32],
) -> npt.NDArray[np.uint8]:
    """Return uint8[R, S], balanced shortest paths to the R destinations with the numbers ``rows``.

    The values are the index of the next channel among the channels of the switch, 255 for none.  The paths take the
    dimensions in order.  ``rank`` (int32[C]) is the place of each channel's dimension in this order.  If a missing link
    makes a path in another order shorter, the path takes the dimensions in that order.
    """
    targets = Targets.single(
        np.ascontiguousarray(destinations.root[rows]), np.ascontiguousarray(destinations.share[rows])
    )
    return balanced_trees(fabric, options, targets, passes=refinement_passes(fabric, options), rank=rank).next_channel
