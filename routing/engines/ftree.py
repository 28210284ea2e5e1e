"""Fat-tree routing in closed form: D-mod-K on whole trees, the least loaded paths where links are missing."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from routing.engines.base import LONGER_PATHS, EngineOptions, Offers, Promise, refuse_unsupported
from routing.engines.destinations import Destinations, inverse_capacity
from routing.engines.provenance import provenance
from routing.engines.roots import named_roots
from routing.engines.vl_assignment import round_robin_sls, vl_tables, vls_allowed
from routing.fabric import Fabric
from routing.formats.guid_files import read_guid_list
from routing.tables import Routing
from routing.trees.closed_form import Leaves, route_tree

PASSES = 2
"""Passes after the first over the entries that the closed form leaves open, at effort 1."""
MOST_PASSES = 8


class FatTree:
    """Fat-tree routing: up to a top switch that the destination determines, and down.

    Notes
    -----
    On whole k-ary n-trees and XGFTs this is D-mod-K (E. Zahavi, 2010), which carries every cyclic shift of the end
    ports at full rate.  Where links are missing, the tops follow from counts, as in J. Gliksberg et al., "High-Quality
    Fault Resiliency in Fat Trees", 2019 (Dmodc).  Entries without a path to their top take the least loaded path.

    Pairs of upper switches without a path up and down have a longer path, in one order of the switches.  So the tables
    are complete and free of credit loops on one VL.  Replies are safe, too.

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
        tables, level = route_tree(
            fabric,
            Leaves(compute_nodes(fabric, options), roots),
            inverse_capacity(fabric, options.link_weights),
            passes=_passes(options),
            threads=options.threads,
        )
        sl = np.zeros(len(fabric.lids), np.uint8)
        if vls > 1:
            sl = round_robin_sls(Destinations.of(fabric), len(fabric.lids), vls)
        return Routing(
            lft=tables.lft,
            **vl_tables(sl, vls, options),
            vls_needed=1,
            provenance=provenance(
                self.name,
                fabric,
                options,
                {"tables": time.perf_counter() - start},
                levels=int(level.max(initial=0)) + 1,
                searched=tables.searched,
                longer_paths=tables.filled_between_leaves,
                **({"roots": [f"{int(guid):#018x}" for guid in fabric.switch_guid[list(roots)]]} if roots else {}),
            ),
        )


ENGINE = FatTree()


def compute_nodes(fabric: Fabric, options: EngineOptions) -> npt.NDArray[np.bool_]:
    """Return bool[E], the end ports that are compute nodes: those of ``cn_guid_file``, or all but ``io_guid_file``.

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
    """Return the number of passes after the first: as requested, or by the effort."""
    return options.passes if options.passes is not None else min(MOST_PASSES, round(PASSES * options.effort))
