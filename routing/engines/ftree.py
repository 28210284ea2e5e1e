"""Fat-tree routing in closed form: D-mod-K on whole trees, and the least loaded paths where links are missing."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from routing.engines import tree_quality
from routing.engines.base import LONGER_PATHS, EngineOptions, Offers, Promise, refuse_unsupported
from routing.engines.destinations import Destinations, inverse_capacity
from routing.engines.provenance import provenance
from routing.engines.roots import named_roots
from routing.engines.tree_paths import descended, may_descend, tree_paths
from routing.engines.tree_quality import LOWER_PEAK, TOLERANCE
from routing.engines.vl_assignment import round_robin_sls, vl_tables, vls_allowed
from routing.fabric import Fabric
from routing.formats.guid_files import read_guid_list
from routing.quality import channel_loads
from routing.tables import Routing
from routing.trees.closed_form import Leaves, NotATree, route_tree
from routing.trees.descent import is_whole, tree_slots
from routing.trees.levels import TreeOrder, closed_form_order

PASSES = 2
"""Number of passes, after the first, over the entries that the closed form leaves open, at effort 1."""
MOST_PASSES = 8


class FatTree:
    """Fat-tree routing: a path leads up to a top switch that depends on the destination alone, and then down.

    Notes
    -----
    On whole k-ary n-trees and XGFTs this is D-mod-K (E. Zahavi, 2010), which carries every cyclic shift of the end
    ports at full rate.  Where links are missing, the top switch of each LID follows from the numbers of LIDs and links,
    as in J. Gliksberg et al., "High-Quality Fault Resiliency in Fat Trees", 2019 (Dmodc).  Entries without a path to
    that top switch take the least loaded path.

    On trees that are not regular, the closed form loads some channels more than necessary, because it balances numbers
    of LIDs.  Such trees have leaves with different numbers of end ports, or links of different speeds.  For these
    trees, tables are also computed by descent (:mod:`routing.trees.descent`), and the better balanced tables are taken.

    Some pairs of upper switches have no path that leads up and then down in the tiers.  These pairs get a longer path,
    which leads up and then down in a switch order.  So the tables are complete, and free of credit loops on one VL.
    Replies are safe, too.

    Cost: O(S L), a table lookup for each entry.
    """

    name = "ftree"
    summary = "fat-tree routing in closed form; free of credit loops on one VL, for trees only"
    promise = Promise.DEADLOCK_FREE
    offers = Offers(
        options=("roots", "root_guid_file", "cn_guid_file", "io_guid_file", "reversible"),
        refusals={"minimal": LONGER_PATHS},
        up_down=True,
        opensm_options=("root_guid_file", "cn_guid_file", "io_guid_file"),
    )

    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`).

        Raises
        ------
        NotATree
            The fabric is not a tree, not even one with missing links.
        """
        refuse_unsupported(self, options)
        start = time.perf_counter()
        vls = vls_allowed(options) if isinstance(options.vls, int) else 1
        roots = tuple(named_roots(fabric, options))
        lft, order, found = _best_tables(fabric, options, roots)
        sl = round_robin_sls(Destinations.of(fabric), len(fabric.lids), vls)
        return Routing(
            lft=lft,
            **vl_tables(sl, vls, options),
            vls_needed=1,
            provenance=provenance(
                self.name,
                fabric,
                options,
                {"tables": time.perf_counter() - start},
                levels=int(order.level.max(initial=0)) + 1,
                **found,
                first_switches=[fabric.labels[first] for first in np.flatnonzero(order.position == 0)],
                **({"roots": [f"{int(guid):#018x}" for guid in fabric.switch_guid[list(roots)]]} if roots else {}),
            ),
        )


ENGINE = FatTree()


def _best_tables(
    fabric: Fabric, options: EngineOptions, roots: tuple[int, ...]
) -> tuple[npt.NDArray[np.uint8], TreeOrder, dict[str, object]]:
    """Return the tables (uint8[S, L]), the switch order that they follow, and values for the provenance.

    The tables are computed in closed form or by a local search (descent).

    Raises
    ------
    NotATree
        The fabric is not a tree.
    """
    inverse_rate = inverse_capacity(fabric, options.link_weights)
    has_files = options.cn_guid_file is not None or options.io_guid_file is not None
    leaves = Leaves(compute_nodes(fabric, options), roots)
    try:
        tables, level = route_tree(fabric, leaves, inverse_rate, passes=_passes(options), threads=options.threads)
    except NotATree:
        # A few links may join several trees.  Many pairs of leaves then have no switch above both, so the closed form
        # is impossible.  The search named descent is still possible, because it uses an order of the switches.
        paths = None if roots or has_files else tree_paths(fabric, Destinations.of(fabric), options)
        if paths is None:
            raise
        return paths.lft, paths.order, {"searched": 0, "longer_paths": 0, "descent": True}
    found = None if has_files else better_by_descent(fabric, tables.lft, level, options)
    lft, order = found or (tables.lft, closed_form_order(fabric, level))
    counts: dict[str, object] = {"searched": tables.searched, "longer_paths": tables.filled_between_leaves}
    return lft, order, counts | {"descent": found is not None}


def better_by_descent(
    fabric: Fabric, lft: npt.NDArray[np.uint8], level: npt.NDArray[np.int32], options: EngineOptions
) -> tuple[npt.NDArray[np.uint8], TreeOrder] | None:
    """Compute tables by descent.  Return these tables (uint8[S, L]) and their order if they are better balanced than
    the tables of the closed form; else None.

    Parameters
    ----------
    fabric
        The fabric.
    lft
        uint8[S, L], the tables of the closed form.
    level
        int32[S], level of each switch.
    options
        Options of the engine.

    Notes
    -----
    Tables are better if their highest utilisation is notably lower.  Otherwise, the comparison uses the part of each
    channel's utilisation above its ceiling (:func:`routing.trees.descent.ceilings`), divided by the ceiling.  The
    tables with the smaller sum over all channels are better.  The highest utilisation alone is not enough for the
    comparison, because a leaf with few links may exceed its ceiling in any tables.

    The closed form is kept for whole regular trees, and where the descent exceeds the effort.  If all paths of the
    closed form are shortest paths, the closed form is also kept in two other cases:

    - No utilisation is notably above its ceiling.
    - All leaves have equally many end ports, all links have one speed, and the highest utilisation is near the ceiling
      of the leaf with the fewest links.  Then no tables carry notably more all-to-all traffic.

    If only the closed form has paths that are longer than shortest paths, tables by descent are better unless their
    highest utilisation is notably higher.

    Cost: O(S L) for the comparison; see :func:`routing.trees.descent.tree_tables`.
    """
    inverse_rate, destinations = inverse_capacity(fabric, options.link_weights), Destinations.of(fabric)
    order = closed_form_order(fabric, level)
    is_whole_tree = tree_quality.is_regular(fabric) and is_whole(fabric, tree_slots(fabric, order))
    if is_whole_tree or not may_descend(fabric, destinations, options):
        return None
    load = channel_loads(fabric, lft, threads=options.threads)
    ceiling = tree_quality.channel_ceilings(fabric, destinations, level, options)
    utilisation = load * inverse_rate
    given = np.maximum(utilisation / ceiling - 1.0, 0.0)
    # With any tables, the highest utilisation is at least the highest ceiling, which is the ceiling of the leaf with
    # the fewest links.
    least_peak = ceiling.max(initial=0.0) if tree_quality.has_equal_leaves(fabric) else 0.0
    is_near = given.max(initial=0.0) <= TOLERANCE or utilisation.max() <= (1.0 + TOLERANCE) * least_peak
    is_shortest = tree_quality.all_shortest(fabric, destinations, load)
    if is_near and is_shortest:
        return None
    paths = tree_paths(fabric, destinations, options) or descended(fabric, destinations, options, order)
    if paths is None:
        return None
    shortens = not is_shortest and tree_quality.all_shortest(fabric, destinations, paths.load)
    # Unlike paths.load, these loads count all end ports equally, as the loads of the closed form do.
    new = channel_loads(fabric, paths.lft, threads=options.threads) * inverse_rate
    left = np.maximum(new / ceiling - 1.0, 0.0)
    peak, new_peak = float(utilisation.max()), float(new.max())
    is_lower = new_peak * LOWER_PEAK < peak or (shortens and new_peak < peak * LOWER_PEAK)
    return (paths.lft, paths.order) if is_lower or float(left.sum()) < float(given.sum()) * (1.0 - 1e-9) else None


def compute_nodes(fabric: Fabric, options: EngineOptions) -> npt.NDArray[np.bool_]:
    """Return bool[E], the end ports that are compute nodes: the end ports in the file of the option ``cn_guid_file``.
    Without this option, all end ports that are not in ``io_guid_file`` are compute nodes.

    The files list port GUIDs or node GUIDs.  GUIDs that no end port has are ignored.

    Raises
    ------
    ParseError
        A file does not follow its format.
    """
    chosen, named = options.cn_guid_file, True
    if chosen is None:
        chosen, named = options.io_guid_file, False
    if chosen is None:
        return np.ones(fabric.endports, bool)
    guids = np.array(sorted(read_guid_list(chosen)), np.uint64)
    listed = np.isin(fabric.endport_guid, guids) | np.isin(fabric.terminal_guid[fabric.endport_terminal], guids)
    return np.asarray(listed == named)


def _passes(options: EngineOptions) -> int:
    """Return the number of passes after the first: the requested number, or as many as the effort allows."""
    return options.passes if options.passes is not None else min(MOST_PASSES, round(PASSES * options.effort))
