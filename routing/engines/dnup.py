"""Down*/Up*: paths lead away from the roots first, and then towards them; free of credit loops on one VL."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from routing._kernels.order import build_order
from routing.engines.base import LONGER_PATHS, EngineOptions, Offers, Promise, refuse_unsupported
from routing.engines.destinations import Destinations
from routing.engines.orders import VISITS_PER_SECOND, OrderSearch, central_switch, top_switches
from routing.engines.roots import named_roots
from routing.engines.tree_paths import routing_of_tree
from routing.engines.uncounted import without_uncounted
from routing.engines.updn import tables_in_orders
from routing.engines.vl_assignment import vls_allowed
from routing.fabric import Fabric
from routing.tables import Routing

__all__ = ["ENGINE", "DownUp", "down_first"]

ROOTS_TRIED = 16
"""Number of roots that are tried if no root is named."""


class DownUp:
    """Down*/Up*: each path leads away from the roots first, and then towards them.

    Notes
    -----
    The turn rule is the reverse of the rule of Up*/Down* (M. D. Schroeder et al., "Autonet: a high-speed,
    self-configuring local area network using point-to-point links", IEEE J. Sel. Areas Commun. 9, 1991).  So traffic
    does not meet at the roots, and end ports may be at the roots or at other upper switches.  OpenSM's engine ``dnup``
    has the same purpose.  Differences from OpenSM's engine:

    - OpenSM compares the distances of switches from the roots (ranks).  Some pairs of switches then have no path,
      because no switch lies below both.  Here the switches have an order (:func:`down_first`): the switch farthest from
      the roots comes first, and every other switch has a neighbour before it.  So every pair has a path, and one VL is
      free of credit loops on every fabric.
    - Paths balance the load, with a small cost per hop.  If no root is named, several roots are tried.
    - On a tree, if no root is named, the leaves are the roots: paths lead up and then down
      (:mod:`routing.engines.tree_paths`).

    If several VLs are allowed, the destinations are spread over the VLs.  All VLs have the same order of the switches.
    """

    name = "dnup"
    summary = "Down*/Up* on any fabric: away from the roots first; free of credit loops on one VL"
    promise = Promise.DEADLOCK_FREE
    offers = Offers(
        options=("roots", "root_guid_file", "reversible"),
        refusals={"minimal": LONGER_PATHS},
        up_down=True,
        opensm_options=("root_guid_file",),
    )

    @without_uncounted
    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`).

        Cost: O(L S radix hops) per pass.  The trial of roots visits a limited number of channels.
        """
        refuse_unsupported(self, options)
        start = time.perf_counter()
        roots = named_roots(fabric, options)
        if not roots and (tree := routing_of_tree(self, fabric, options)) is not None:
            return tree
        destinations = Destinations.of(fabric)
        candidates = [roots] if roots else _candidate_roots(fabric, options.seed)
        orders = [down_first(fabric, found) for found in candidates]
        visits = round(VISITS_PER_SECOND * options.effort)
        search = OrderSearch(fabric, destinations, visits, options.seed, options.threads)
        position = search.pick(orders)
        best = candidates[next(k for k, order in enumerate(orders) if order is position)]
        return tables_in_orders(
            self, fabric, destinations, options, layer=np.zeros(len(destinations.lid), np.int32),
            position=position[None], vls=vls_allowed(options), start=start,
            found={"roots": [fabric.labels[root] for root in best]},
        )  # fmt: skip


ENGINE = DownUp()


def down_first(fabric: Fabric, roots: list[int]) -> npt.NDArray[np.int32]:
    """Return int32[S], an Up*/Down* order in which "up" leads away from the roots.

    The order begins with the switch farthest from the roots.  Then each step considers the neighbours of all switches
    in the order so far, and adds the neighbour that is farthest from the roots.
    """
    if fabric.switches == 0:
        return np.zeros(0, np.int32)
    distance = np.asarray(fabric.graph.distances(source=roots, mode="out"), float).min(axis=0)
    distance[~np.isfinite(distance)] = 0.0
    return build_order(fabric.channels, -distance, pull=0.0)


def _candidate_roots(fabric: Fabric, seed: int) -> list[list[int]]:
    """Return sets of roots to try: the top switches of a tree, the most central switch, and randomly chosen
    switches.
    """
    if fabric.switches == 0:
        return [[]]
    tops = top_switches(fabric)
    rng = np.random.default_rng(seed)
    single = [central_switch(fabric), *rng.permutation(fabric.switches)[:ROOTS_TRIED].tolist()]
    return [*([tops] if tops else []), *([root] for root in dict.fromkeys(single))]
