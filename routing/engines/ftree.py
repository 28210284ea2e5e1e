"""Fat-tree routing in closed form: D-mod-K on whole trees, and the least loaded paths where links are missing."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from routing.engines import tree_quality
from routing.engines.base import LONGER_PATHS, EngineOptions, Offers, Promise, refuse_unsupported
from routing.engines.destinations import Destinations, inverse_capacity
from routing.engines.provenance import engine_tables
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
"""Number of passes after the first pass, at effort 1.  Each pass chooses again the LFT entries that the closed form
leaves open because links are missing.
"""
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
        return engine_tables(
            self, fabric, options, start, lft=lft, tables=vl_tables(sl, vls, options),
            vls_needed=1, levels=int(order.level.max(initial=0)) + 1, **found,
            first_switches=[fabric.labels[first] for first in np.flatnonzero(order.position == 0)],
            **({"roots": [f"{int(guid):#018x}" for guid in fabric.switch_guid[list(roots)]]} if roots else {}),
        )  # fmt: skip


ENGINE = FatTree()


def _best_tables(
    fabric: Fabric, options: EngineOptions, roots: tuple[int, ...]
) -> tuple[npt.NDArray[np.uint8], TreeOrder, dict[str, object]]:
    """Return the tables (uint8[S, L]), the switch order that they follow, and values for the provenance.

    The tables are computed in closed form or by a local search (descent).  The values state which.  They also have two
    counts of the closed form (:class:`.TreeTables`), but only if its tables are returned.

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
        return paths.lft, paths.order, {"descent": True}
    found = None if has_files else better_by_descent(fabric, tables.lft, level, options)
    if found is not None:
        return *found, {"descent": True}
    counts: dict[str, object] = {"searched": tables.searched, "longer_paths": tables.filled_between_leaves}
    return tables.lft, closed_form_order(fabric, level), counts | {"descent": False}


def better_by_descent(
    fabric: Fabric, lft: npt.NDArray[np.uint8], level: npt.NDArray[np.int32], options: EngineOptions
) -> tuple[npt.NDArray[np.uint8], TreeOrder] | None:
    """Compute tables by descent.  Return these tables (uint8[S, L]) and their switch order if they are better than the
    tables of the closed form; else None.

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
    The first of these rules that applies decides.  "Notably" means by more than two percent:

    1. If the tree is regular and no link is missing, the closed form is kept.
    2. If the descent needs more time than the effort allows, the closed form is kept.
    3. If all paths of the closed form are shortest paths, and no utilisation is notably above its ceiling
       (:func:`routing.trees.descent.ceilings`), the closed form is kept.
    4. If all paths of the closed form are shortest paths, all leaves have equally many end ports, all links have one
       speed, and the highest utilisation is not notably above the highest ceiling, the closed form is kept.  No tables
       could carry notably more all-to-all traffic.
    5. If the descent finds no tables, the closed form is kept.
    6. If the highest utilisation of the tables by descent is notably lower than that of the closed form, the tables by
       descent are returned.
    7. Suppose that all paths of the tables by descent are shortest paths, but some paths of the closed form are
       longer.  If the highest utilisation of the tables by descent is not notably higher than that of the closed form,
       the tables by descent are returned.
    8. For each channel, the part of the utilisation above the ceiling is divided by the ceiling.  The sum over all
       channels is computed for the tables by descent and for the closed form, and the tables with the smaller sum are
       taken.  (The highest utilisation alone does not suffice here, because a leaf with few links may exceed its
       ceiling in any tables.)

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
    # The highest ceiling follows from the traffic that the links out of some group of switches must carry in any
    # tables.  So no tables have a highest utilisation much below this ceiling, and tables near it cannot be improved
    # much.  One kind of ceiling has another reason: it is the utilisation at which the all-to-all share is slightly
    # above 1.  Then the links of the end ports limit the rate.
    least_peak = ceiling.max(initial=0.0) if tree_quality.has_equal_leaves(fabric) else 0.0
    is_near = given.max(initial=0.0) <= TOLERANCE or utilisation.max() <= (1.0 + TOLERANCE) * least_peak
    is_shortest = tree_quality.all_shortest(fabric, destinations, load)
    if is_near and is_shortest:
        return None
    paths = tree_paths(fabric, destinations, options) or descended(fabric, destinations, options, order)
    if paths is None:
        return None
    shortens = not is_shortest and tree_quality.all_shortest(fabric, destinations, paths.load)
    # `paths.load` counts end ports by their weights.  For the comparison, these loads count all end ports equally, as
    # the loads of the closed form above (`load`) do.
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
