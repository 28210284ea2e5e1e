"""Up*/Down*: paths lead up and then down in an order of the switches.  Such paths are free of credit loops on one VL on
any fabric.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from routing.engines.base import LONGER_PATHS, Engine, EngineOptions, Offers, Promise, refuse_unsupported
from routing.engines.destinations import Destinations, forwarding_tables
from routing.engines.order_balance import balanced_in_orders, searched_orders
from routing.engines.orders import breadth_first
from routing.engines.provenance import engine_tables
from routing.engines.roots import named_roots
from routing.engines.tree_paths import OBJECTIVE_REFUSAL, routing_of_tree
from routing.engines.uncounted import without_uncounted
from routing.engines.vl_assignment import round_robin_sls, vl_tables, vls_allowed
from routing.fabric import Fabric
from routing.partition import regions
from routing.tables import Routing


class UpDown:
    """Up*/Down* with a consistent choice of one next hop per switch and LID.

    Notes
    -----
    After M. D. Schroeder et al., "Autonet: a high-speed, self-configuring local area network using point-to-point
    links", IEEE J. Sel. Areas Commun. 9, 1991.  Differences:

    - Unless roots are named, the engine searches for an order of the switches (:mod:`routing.engines.orders`).
    - Paths are not the shortest paths up and then down, but paths that balance the load, with a small cost per hop.
    - A switch may send packets for a LID up although it has a path down to the LID.  This is allowed if no packets for
      the LID reach the switch from above.  OpenSM's ``updn`` decides this by hops alone, which is wrong on fabrics
      other than trees.
    - On trees, unless roots or a partition are named, paths are the shortest paths up and then down, and balance
      all-to-all traffic and bisections at once (:mod:`routing.trees.descent`).  The paths on all VLs then follow one
      switch order.

    If several VLs are allowed, the destinations are spread over the VLs, and all VLs share one switch order.  Replies
    are then safe on any SL (``reversible``).

    If the option ``partition`` is ``metis``, or is not given while ``vls`` is a number, METIS splits the destinations
    into one region for each VL.  Each region has its own VL, and its own switch order if that balances better.  With
    separate orders, only requests are safe (``forward``).  With the option ``reversible``, there are no regions.
    """

    name = "updn"
    summary = "Up*/Down* on any fabric; free of credit loops on one VL"
    promise = Promise.DEADLOCK_FREE
    offers = Offers(
        options=("roots", "root_guid_file", "partition", "reversible"),
        refusals={"minimal": LONGER_PATHS, "objective": OBJECTIVE_REFUSAL},
        up_down=True,
        opensm_options=("root_guid_file",),
    )

    @without_uncounted
    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`).

        Cost: O(L S radix hops) per pass.  The search for an order visits a limited number of channels.
        """
        refuse_unsupported(self, options)
        start = time.perf_counter()
        tree = None if _names_order(options) else routing_of_tree(self, fabric, options)
        if tree is not None:
            return tree
        vls = vls_allowed(options)
        destinations = Destinations.of(fabric)
        layers = vls if _wants_layers(options) else 1
        layer = regions(fabric, layers, seed=options.seed)[destinations.root]
        position = _orders(fabric, destinations, layer, options)
        found = {"first_switches": [fabric.labels[int(order.argmin())] for order in position if order.size]}
        if roots := named_roots(fabric, options):
            found["roots"] = [f"{int(guid):#018x}" for guid in fabric.switch_guid[roots]]
        return tables_in_orders(
            self, fabric, destinations, options, layer=layer, position=position, vls=vls, start=start, found=found
        )


ENGINE = UpDown()


def tables_in_orders(
    engine: Engine,
    fabric: Fabric,
    destinations: Destinations,
    options: EngineOptions,
    *,
    layer: npt.NDArray[np.int32],
    position: npt.NDArray[np.int32],
    vls: int,
    start: float,
    found: Mapping[str, object],
) -> Routing:
    """Return balanced tables whose paths lead up and then down in an order of the switches.  Each layer (VL) may have a
    separate order.

    Parameters
    ----------
    engine, fabric, destinations, options
        The engine, and its input.
    layer
        int32[D], the layer of each destination.  If there are several layers, each layer is a VL.  If there is one
        layer, the destinations are spread over all VLs.
    position
        int32[layers, S], position of each switch in the order of each layer.
    vls
        Number of VLs.
    start
        Time at which the engine began, in seconds.
    found
        Further values of the provenance.
    """
    sl = round_robin_sls(destinations, len(fabric.lids), vls)
    if len(position) > 1:
        sl[destinations.lid] = layer
    trees = balanced_in_orders(fabric, destinations, layer, position, options)
    return engine_tables(
        engine, fabric, options, start, lft=forwarding_tables(fabric, destinations, trees.next_channel),
        tables=vl_tables(sl, vls, options), vls_needed=max(len(np.unique(position, axis=0)), 1), **found,
    )  # fmt: skip


def _names_order(options: EngineOptions) -> bool:
    """Return whether the options name roots, or request a partition into layers with separate switch orders."""
    return bool(options.roots) or options.root_guid_file is not None or options.partition == "metis"


def _wants_layers(options: EngineOptions) -> bool:
    wants = options.partition == "metis" or (options.partition is None and isinstance(options.vls, int))
    return wants and not options.reversible


def _orders(
    fabric: Fabric, destinations: Destinations, layer: npt.NDArray[np.int32], options: EngineOptions
) -> npt.NDArray[np.int32]:
    """Return int32[layers, S], the order of each layer: from the named roots, or found by a search."""
    layers = int(layer.max(initial=0)) + 1
    roots = named_roots(fabric, options)
    if fabric.switches == 0:
        return np.zeros((layers, 0), np.int32)
    if roots:
        return np.tile(breadth_first(fabric, roots), (layers, 1))
    return searched_orders(fabric, destinations, layer, options, layers)
