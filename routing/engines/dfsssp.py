"""DFSSSP: balanced shortest paths.  Each path from a switch to a LID gets an SL, which determines its VL.  The
dependencies of each VL have no cycle.
"""

from __future__ import annotations

import time

import numpy as np

from routing.engines.base import Engine, EngineOptions, Offers, Promise, refuse_unsupported
from routing.engines.destinations import Destinations, forwarding_tables
from routing.engines.layered import LayeredPaths, LayerSearch
from routing.engines.path_selection import FIRST_FOUND
from routing.engines.provenance import engine_tables
from routing.engines.uncounted import without_uncounted
from routing.engines.vl_assignment import round_robin_sls, vl_tables, vls_allowed
from routing.errors import NotEnoughVLs
from routing.fabric import Fabric
from routing.tables import Routing

TREE_FALLBACK = "paths up and then down a tree, of which some are longer than the shortest"
"""Text for the provenance if the fabric is a tree, and no shortest paths were found that fit into the VLs.  Paths that
lead up and then down are then used instead, of which some are longer.
"""

FALLBACK_PATHS = {"mirrored": "mirrored shortest paths", FIRST_FOUND: "shortest paths without balance, as in LASH"}
"""Texts for the provenance if simple paths are used instead of balanced paths, by the name of the rule that selected
the simple paths.  Simple paths need few layers and little work; their balance does not count
(:meth:`.LayerSearch._simple_paths`).
"""


def route_in_layers(engine: Engine, fabric: Fabric, options: EngineOptions, *, mutual: bool) -> Routing:
    """Compute tables of shortest paths in layers (VLs).

    With ``mutual``, all paths between two switches, in both directions, use one layer.

    Raises
    ------
    OptionError
        The engine does not support an option.
    NotEnoughVLs
        No paths were found that fit into the allowed VLs.
    """
    refuse_unsupported(engine, options)
    start = time.perf_counter()
    search = LayerSearch(fabric, Destinations.of(fabric), options, mutual)
    if search.is_tree_enough:
        return tree_tables(engine, search, start)
    try:
        best = search.run()
    except NotEnoughVLs:
        if search.tree is None:
            raise
        return tree_tables(engine, search, start, fallback=TREE_FALLBACK)
    return layered_tables(engine, fabric, options, best, mutual=mutual, start=start)


def tree_tables(engine: Engine, search: LayerSearch, start: float, **found: str) -> Routing:
    """Return the tables of a tree, whose paths need only one VL but are spread over all allowed VLs.

    Parameters
    ----------
    engine, search
        The engine, and its search, which has found the fabric to be a tree.
    start
        Time at which the engine began, in seconds.
    found
        Further values of the provenance.

    Notes
    -----
    All VLs share one order of the switches, so that any SL is safe.  If ``search.mutual`` is true, the paths between
    two switches have one SL in both directions.  Otherwise the SL depends on the LID alone.
    """
    assert search.tree is not None
    fabric, options, destinations = search.fabric, search.options, search.destinations
    vls = vls_allowed(options)
    sl = round_robin_sls(destinations, len(fabric.lids), vls)
    if search.mutual and vls > 1:
        sl = np.zeros((fabric.switches, len(fabric.lids)), np.uint8)
        numbers = np.arange(fabric.switches)
        sl[:, destinations.lid] = (numbers[:, None] + destinations.root) % vls
    first_switches = [fabric.labels[first] for first in np.flatnonzero(search.tree.order.position == 0)]
    return engine_tables(
        engine, fabric, options, start, lft=search.tree.lft, tables=vl_tables(sl, vls, options), vls_needed=1,
        paths="tree", left_to_chance=0, first_switches=first_switches, **found,
    )  # fmt: skip


def layered_tables(
    engine: Engine, fabric: Fabric, options: EngineOptions, best: LayeredPaths, *, mutual: bool, start: float
) -> Routing:
    """Return the tables for paths that have been assigned to layers.  ``best`` holds the paths and their layers.
    ``start`` is the time at which the engine began, in seconds.
    """
    destinations, layers = Destinations.of(fabric), best.layers
    found: dict[str, object] = {"paths": best.paths, "left_to_chance": layers.left_uncounted}
    if best.fallback:
        found["fallback"] = FALLBACK_PATHS[best.paths]
    return engine_tables(
        engine, fabric, options, start, lft=forwarding_tables(fabric, destinations, layers.next_channel),
        tables=vl_tables(best.service_levels(fabric, destinations, mutual=mutual), layers.used, options),
        vls_needed=layers.needed, **found,
    )  # fmt: skip


class DeadlockFreeSSSP:
    """Balanced shortest paths in layers.

    Notes
    -----
    After J. Domke, T. Hoefler, W. E. Nagel, "Deadlock-free oblivious routing for arbitrary topologies", IPDPS 2011.
    Differences: the published algorithm searches for cycles and breaks them.  This engine puts each path, the longest
    first, into the first layer that stays acyclic.  It also selects paths that need few layers
    (:mod:`routing.engines.path_selection`).
    """

    name = "dfsssp"
    summary = "balanced shortest paths; free of credit loops by virtual lanes"
    promise = Promise.DEADLOCK_FREE
    offers = Offers(options=("partition", "reversible", "objective"), needs_vls=True)

    @without_uncounted
    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`)."""
        return route_in_layers(self, fabric, options, mutual=options.reversible)


ENGINE = DeadlockFreeSSSP()
