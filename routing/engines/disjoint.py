"""Compute paths to the 2^LMC LIDs of each port that share as few links as possible, and VLs on which they form no
credit loop.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.disjoint import MOST_ORDERS, MOST_TREES, UNREACHED, TreeRequest, disjoint_trees, distances
from routing.engines.base import LONGER_PATHS, EngineOptions, Objective, Offers, Promise, refuse_unsupported
from routing.engines.destinations import Destinations, forwarding_tables, inverse_capacity
from routing.engines.disjoint_bundles import spread_over_bundles
from routing.engines.disjoint_orders import choose_orders, grid_orders
from routing.engines.disjoint_vls import Placement, place
from routing.engines.effort import visits_per_tree
from routing.engines.path_selection import PathSelector
from routing.engines.provenance import engine_tables
from routing.engines.uncounted import without_uncounted
from routing.engines.vl_assignment import most_vls, vl_tables
from routing.errors import NotEnoughVLs
from routing.fabric import Fabric
from routing.tables import DATA_VLS, Routing

WANTED = {1: 1, 2: 2, 4: 3, 8: 4}
"""Number of link-disjoint paths that the search aims at for each pair of switches, by the number of trees.  The engine
computes one tree for each LID of a port, but at most eight trees.
"""

EXTRA_HOPS = 2
"""Number of hops by which a path may be longer than the longest of all shortest paths."""

VISITS_PER_SECOND = 100_000_000
"""Number of channels that the local search may visit at effort 1 while it follows and compares paths.  These visits
take about a second on one core.  The passes that balance the first trees have the same limit.
"""

FEWEST_SWEEPS, MOST_SWEEPS, MOST_BALANCE_SWEEPS = 2, 10, 100


class Disjoint:
    """Compute one tree for each LID of a port, so that the paths to the LIDs of one port share as few links as
    possible.

    Notes
    -----
    All end ports of a switch have the same trees, one for each LID offset.  Where a path uses a bundle of parallel
    links, paths to different end ports of the switch use different links of the bundle in turn.  The tree of offset 0
    has balanced shortest paths.

    A branch of a tree is all switches whose paths reach the destination by the same link.  Each tree of a higher offset
    begins with some branches of the tree of offset 0.  Two of up to four trees mostly have no such branch in common;
    eight trees share branches.  Then each switch outside of these branches is attached to the tree.  If possible, its
    path shares no link with the switch's paths in earlier trees.  Then a local search changes next hops, so that more
    pairs of switches get the wanted number (:data:`WANTED`) of link-disjoint paths.  If possible, a path is at most
    :data:`EXTRA_HOPS` hops longer than the longest of all shortest paths.

    Each VL has an order of the switches, and its paths lead up and then down (:mod:`routing.engines.disjoint_orders`).
    If a path is allowed, its reverse is allowed too.  For each pair of switches and each offset, the paths in both
    directions use one VL.  So a reply on the request's SL is safe if both packets go to the same LID offset.
    With ``reversible``, the paths of all offsets between two switches use one VL, and every reply on the request's SL
    is safe.

    Cost for K trees of each destination: each pass of the local search compares O(S C K^2) paths.  The memory is
    O(S^2 K) bytes.
    """

    name = "disjoint"
    summary = "link-disjoint paths to the 2^LMC LIDs of a port; free of credit loops by virtual lanes"
    promise = Promise.DEADLOCK_FREE
    offers = Offers(options=("reversible", "objective"), refusals={"minimal": LONGER_PATHS}, needs_vls=True)

    @without_uncounted
    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`).

        Raises
        ------
        OptionError
            An option is not supported.
        NotEnoughVLs
            No trees were found whose paths fit into the allowed VLs.
        """
        refuse_unsupported(self, options)
        start = time.perf_counter()
        destinations = Destinations.of(fabric)
        trees = min(MOST_TREES, 1 << int(fabric.endport_lmc.max(initial=0)))
        found = _TreeSearch(fabric, distances(fabric.channels), trees, options).run()
        tree = _tree_of(fabric, destinations, trees)
        sl = np.zeros((fabric.switches, len(fabric.lids)), np.uint8)
        sl[:, destinations.lid] = found.vl[destinations.root, tree].T
        next_channel = np.ascontiguousarray(found.next_channel[destinations.root, tree])
        if found.by_order:
            next_channel = spread_over_bundles(fabric, destinations, next_channel, by_rate=trees == 1)
        return engine_tables(
            self, fabric, options, start, lft=forwarding_tables(fabric, destinations, next_channel),
            tables=vl_tables(sl, found.used, options), vls_needed=found.used, trees=trees, wanted=WANTED[trees],
        )  # fmt: skip


ENGINE = Disjoint()


def _tree_of(fabric: Fabric, destinations: Destinations, trees: int) -> npt.NDArray[np.int64]:
    """Return int64[D], the tree of each destination: the LID's offset modulo the number of trees; 0 for switches."""
    endport = fabric.lids.endport[destinations.lid]
    base = np.where(endport >= 0, fabric.endport_lid[endport] if fabric.endports else 0, destinations.lid)
    return np.asarray((destinations.lid - base.astype(np.int64)) % trees, np.int64)


@dataclass(frozen=True, eq=False)
class _TreeSearch:
    """Search for trees whose paths fit into the allowed VLs.

    Attributes
    ----------
    fabric, options
        Input of the engine.
    distance
        uint16[S, S], hops between switches.
    trees
        Number of trees of each destination.
    """

    fabric: Fabric
    distance: npt.NDArray[np.uint16]
    trees: int
    options: EngineOptions

    def run(self) -> Placement:
        """Search for trees, and for VLs of their paths.  Several numbers of switch orders are tried, until the paths
        fit into the VLs.

        Raises
        ------
        NotEnoughVLs
            No trees were found whose paths fit into the allowed VLs.
        """
        if self.fabric.switches == 0:
            empty = np.zeros((0, self.trees, 0), np.uint8)
            return Placement(empty, empty, by_order=True)
        minimal = self.options.vls == "min"
        have = most_vls(self.options)
        directed = _dimension_ordered(self.fabric, self.options)
        for vls, orders in _attempts(have, minimal=minimal):
            for initial in (None,) if directed is None else (directed, None):
                found = self._attempt(vls, orders, initial)
                if found is not None:
                    return found
        for vls in range(have + 1, DATA_VLS + 1):
            if self._attempt(vls, min(vls, MOST_ORDERS), None) is not None:
                raise NotEnoughVLs(vls, have, proven=False)
        raise NotEnoughVLs(None, have)

    def _attempt(self, vls: int, count: int, initial: npt.NDArray[np.uint8] | None) -> Placement | None:
        """Search for trees whose paths lead up and then down in one of ``count`` switch orders, and for the VLs of the
        paths.  Returns None if the paths do not fit into ``vls`` VLs.

        ``initial`` is uint8[S, S], the first tree (LID offset 0) towards each switch; None: the search computes these
        trees.
        """
        fabric, distance, options, wanted = self.fabric, self.distance, self.options, WANTED[self.trees]
        most_hops = EXTRA_HOPS + int(distance[distance != UNREACHED].max(initial=0))
        required = grid_orders(fabric) if initial is not None else []
        orders = choose_orders(
            fabric, distance, required if len(required) <= count else [], count=count, wanted=wanted,
            most_hops=most_hops, seed=options.seed,
        )  # fmt: skip
        request = TreeRequest(
            fabric.channels, weight=fabric.terminals_at.astype(np.float64),
            inverse_capacity=inverse_capacity(fabric, options.link_weights), distance=distance,
            allowed=orders.allowed(fabric.channels), degree=orders.degree, initial=initial, trees=self.trees,
            wanted=wanted, most_hops=most_hops, balance_sweeps=_balance_sweeps(fabric, options),
            sweeps=_sweeps(fabric, self.trees, options), shared=options.reversible,
            concentrate=options.objective is Objective.BISECTION, seed=options.seed,
        )  # fmt: skip
        return place(request, disjoint_trees(request), orders, vls)


def _attempts(have: int, *, minimal: bool) -> Iterator[tuple[int, int]]:
    """Yield combinations of two numbers to try: the number of VLs, and the number of switch orders.

    ``have`` is the number of VLs that the engine may use.  If ``minimal``, combinations with fewer VLs come first.
    Otherwise every combination has all VLs, and the largest number of orders comes first.  If a combination has fewer
    orders than VLs, the VLs without an order serve paths that no order allows.
    """
    if minimal:
        yield from ((vls, min(vls, MOST_ORDERS)) for vls in range(1, have + 1))
        return
    most = min(have, MOST_ORDERS)
    for orders in sorted({most, most - 1, most - 2, most // 2} - {0, -1}, reverse=True):
        yield have, orders


def _dimension_ordered(fabric: Fabric, options: EngineOptions) -> npt.NDArray[np.uint8] | None:
    """Return uint8[S, S], the first tree (LID offset 0) towards each switch of grids, tori and hypercubes.  These trees
    are dimension-ordered, because such trees have the best balance on these fabrics.

    The result is None for other fabrics, for the objective bisection, for a fabric without end ports, and for a fabric
    in which a switch has no LID.
    """
    destinations = Destinations.of(fabric)
    roots, first = np.unique(destinations.root, return_index=True)
    if options.objective is Objective.BISECTION or len(roots) < fabric.switches or not fabric.endports:
        return None
    paths = PathSelector(fabric, destinations, options).dimension_ordered()
    return None if paths is None else np.ascontiguousarray(paths.next_channel[first])


def _visits_per_sweep(fabric: Fabric) -> int:
    """Return about how many channels one pass over the first trees (of LID offset 0) of all switches visits.

    The estimate of :func:`visits_per_tree` is at least three visits for each channel, to compare the channels.  All
    visits above this number are visits to follow paths.  Here they count twice: for each change of a next hop, the
    search follows a path with the old next hop, and a path with the new next hop.
    """
    return max(1, fabric.switches * (2 * visits_per_tree(fabric) - 3 * len(fabric.channels)))


def _balance_sweeps(fabric: Fabric, options: EngineOptions) -> int:
    """Return the number of passes that balance the first trees (of LID offset 0).  The number is 0 if the objective is
    bisection.
    """
    if options.objective is Objective.BISECTION:
        return 0
    visits = _visits_per_sweep(fabric)
    return min(MOST_BALANCE_SWEEPS, max(FEWEST_SWEEPS, round(options.effort * VISITS_PER_SECOND / visits)))


def _sweeps(fabric: Fabric, trees: int, options: EngineOptions) -> int:
    """Return the number of passes of the local search: the requested number, or the number that the effort allows."""
    if options.passes is not None:
        return options.passes
    visits = max(1, _visits_per_sweep(fabric) // 3 * trees * trees)
    return min(MOST_SWEEPS, max(FEWEST_SWEEPS, round(options.effort * VISITS_PER_SECOND / visits)))
