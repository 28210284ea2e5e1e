"""Nue: routing on the channel dependency graph; free of credit loops on any fabric with any number of VLs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.nue import NueTrees, nue_trees
from routing.engines.base import LONGER_PATHS, EngineOptions, Offers, Promise, refuse_unsupported
from routing.engines.destinations import Destinations, forwarding_tables, inverse_capacity
from routing.engines.effort import is_moderate, visits_per_pass
from routing.engines.layered import LayeredPaths, LayerSearch
from routing.engines.nue_seeds import Seeds, by_order, by_region
from routing.engines.order_balance import balanced_in_orders, searched_orders
from routing.engines.orders import top_switches
from routing.engines.provenance import engine_tables
from routing.engines.smart import ENGINE as SMART
from routing.engines.tree_paths import NOTABLY as MORE
from routing.engines.tree_paths import OBJECTIVE_REFUSAL, routing_of_tree
from routing.engines.tree_quality import carried, is_doubtful
from routing.engines.uncounted import without_uncounted
from routing.engines.vl_assignment import round_robin_sls, vl_tables, vls_allowed
from routing.errors import NotEnoughVLs
from routing.fabric import Fabric
from routing.partition import regions
from routing.quality import all_to_all_bound, all_to_all_share, channel_loads
from routing.tables import Routing

FULL_PASS_UP_TO, PASS_UP_TO = 30_000_000, 500_000_000
"""Limits for the number of channels that one pass visits, at effort 1.  On larger fabrics, some passes are left out.
The limits do not apply if the option ``passes`` is given.

If a pass visits more channels than the first limit, there is no second pass over all destinations.  Further passes only
recompute the trees that use the most loaded channels.  These passes are left out, too, if a pass over all destinations
visits more channels than the second limit.
"""

PASSES_ON_ONE_VL = 5
"""Number of passes after the first if there is one layer, where each pass improves the balance a little.  Several
layers need only one such pass.
"""

GOOD_ENOUGH, GOOD_ENOUGH_ON_ONE_VL = 1.4, 1.2
"""Limits for the highest utilisation of a channel, divided by the mean utilisation.  If the trees of some seeds are
within the limit, their balance is good enough, and no further seeds are tried.  The second value is for one layer.
"""

NOTABLY = 1.005
"""The tables of the engine ``smart`` are taken if their all-to-all share is at least this factor times the share of the
other tables.
"""


class Nue:
    """Nue with balanced load.

    Notes
    -----
    After J. Domke, T. Hoefler, S. Matsuoka, "Routing on the Dependency Graph: A New Approach to Deadlock-Free
    High-Performance Routing", HPDC 2016.  Destinations are split into layers, one per VL.  In each layer, the trees of
    its destinations are computed one by one.  A tree uses only channels whose dependencies close no cycle with the
    dependencies in use.  Differences:

    - A layer begins with an order of the channels by the distance to its destinations
      (:mod:`routing.engines.nue_seeds`).
    - Dependencies are counted, so that trees can be removed and recomputed.  An incremental topological order avoids
      most cycle searches.
    - The balance considers the load along the whole path, and each switch takes the flow of upstream switches into
      account.
    - On trees, all paths lead up and then down in one switch order (:mod:`routing.engines.tree_paths`).  These paths
      need no cycle search, and balance both all-to-all traffic and bisections.  If the option ``partition`` is given,
      trees are routed like other fabrics.
    - If a switch cannot reach a destination otherwise, only this switch uses the escape tree, not all switches.

    An SL per destination is safe for requests (``forward``).  Replies use the SL of the request, which may belong to
    another layer.  With ``reversible``, up to three kinds of tables are computed, and the best balanced tables are
    returned.  In the first kind, each pair of switches has one layer for both directions, if such paths fit into the
    VLs (:mod:`routing.engines.layered`).  In the second kind, the trees of all destinations would close no cycle even
    on one VL.  The destinations are spread over the VLs.  The third kind is the tables of the engine ``smart``, on
    fabrics of moderate size that are not trees.
    """

    name = "nue"
    summary = "balanced paths on any fabric with any number of VLs; free of credit loops"
    promise = Promise.DEADLOCK_FREE
    offers = Offers(
        options=("partition", "reversible"),
        refusals={"minimal": LONGER_PATHS, "objective": OBJECTIVE_REFUSAL},
        opensm_options=("nue_max_num_vls",),
    )

    @without_uncounted
    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables (see :class:`routing.engines.base.Engine`).

        Cost: O(L S radix hops) per pass, and the searches for cycles.
        """
        refuse_unsupported(self, options)
        start = time.perf_counter()
        own = {"seeds": "tree", "escape_entries": 0, "escape_destinations": 0}
        tree = routing_of_tree(self, fabric, options, **own) if options.partition is None else None
        if tree is not None and (options.passes == 0 or not is_doubtful(fabric)):
            return tree
        found = self._search(fabric, Destinations.of(fabric), options, start)
        if tree is not None:
            shares = [carried(fabric, each, options, is_doubtful=True) for each in (tree, found)]
            return found if shares[1] > MORE * shares[0] else tree
        return _or_smart(found, fabric, options) if options.reversible else found

    def _search(self, fabric: Fabric, destinations: Destinations, options: EngineOptions, start: float) -> Routing:
        """Return the best tables that the methods of this engine find.  ``start`` is the time at which the run began,
        in seconds.
        """
        vls = vls_allowed(options)
        layers = 1 if options.reversible else vls
        pairs, is_best = _mirrored(fabric, destinations, options, vls) if options.reversible else (None, False)
        if pairs is not None and is_best:
            return self._of_pairs(fabric, destinations, options, pairs, start)
        job = _Job(fabric, destinations, _layers(fabric, destinations, layers, options), layers, options)
        trees, seeds = job.best()
        if pairs is not None and pairs.max_utilisation < _max_utilisation(trees) * (1 - 1e-9):
            return self._of_pairs(fabric, destinations, options, pairs, start)
        sl = round_robin_sls(destinations, len(fabric.lids), vls)
        if layers > 1:
            sl[destinations.lid] = trees.layer
        return engine_tables(
            self, fabric, options, start, lft=forwarding_tables(fabric, destinations, trees.next_channel),
            tables=vl_tables(sl, vls, options), vls_needed=max(len(np.unique(trees.layer)), 1), seeds=seeds.name,
            escape_entries=int(trees.escaped.sum()),
            escape_destinations=int(np.count_nonzero(_wholly_escaped(fabric, destinations, trees))),
        )  # fmt: skip

    def _of_pairs(
        self, fabric: Fabric, destinations: Destinations, options: EngineOptions, pairs: LayeredPaths, start: float
    ) -> Routing:
        """Return tables with a layer for each pair of switches.  ``pairs`` holds the paths and their layers.  ``start``
        is the time at which the run began, in seconds.
        """
        layers = pairs.layers
        return engine_tables(
            self, fabric, options, start, lft=forwarding_tables(fabric, destinations, layers.next_channel),
            tables=vl_tables(pairs.service_levels(fabric, destinations, mutual=True), layers.used, options),
            vls_needed=layers.needed, seeds=f"pairs of switches, {pairs.paths} paths", escape_entries=0,
            escape_destinations=0,
        )  # fmt: skip


ENGINE = Nue()


def _or_smart(found: Routing, fabric: Fabric, options: EngineOptions) -> Routing:
    """Return ``found``, or the tables of the engine ``smart`` if these carry notably more all-to-all traffic.

    Tables of ``smart`` are loop-free with replies on one VL, so they may replace ``found``.  ``smart`` does not run if
    the fabric is a tree or large, if the options allow no refinement passes, or if ``found`` is close to the upper
    bound of all-to-all traffic.
    """
    if options.passes == 0 or options.effort == 0 or top_switches(fabric) or not is_moderate(fabric):
        return found
    loads = channel_loads(fabric, found, threads=options.threads)
    share = all_to_all_share(fabric, loads)
    if share * NOTABLY >= all_to_all_bound(fabric, loads):
        return found
    other = SMART.route(fabric, replace(options, partition=None))
    if all_to_all_share(fabric, channel_loads(fabric, other, threads=options.threads)) < share * NOTABLY:
        return found
    made, own = found.provenance, {"seeds": "tables of smart", "escape_entries": 0, "escape_destinations": 0}
    return replace(other, provenance=replace(made, options={**made.options, **own}))


def _mirrored(
    fabric: Fabric, destinations: Destinations, options: EngineOptions, vls: int
) -> tuple[LayeredPaths | None, bool]:
    """Search for shortest paths in which both directions between two switches are in one layer, as in the engine
    ``lash``.

    Returns
    -------
    LayeredPaths or None
        Paths that all fit into ``vls`` layers; None if no such paths were found.
    bool
        Whether no shortest paths can have a lower utilisation.
    """
    search = LayerSearch(fabric, destinations, replace(options, vls=vls), mutual=True, optional=True)
    try:
        found = search.run()
    except NotEnoughVLs:
        return None, False
    return (None, False) if found.layers.left_uncounted else (found, search.is_best_possible)


def _layers(fabric: Fabric, destinations: Destinations, layers: int, options: EngineOptions) -> npt.NDArray[np.int32]:
    """Return int32[D], the layer of each destination: the region of the destination's switch, if METIS partitions the
    switches into regions.  Otherwise switches are assigned to layers round robin.
    """
    if options.partition == "none":
        turn = np.argsort(np.argsort(fabric.senders_at == 0, kind="stable"))
        return np.asarray(turn[destinations.root] % layers, np.int32)
    return regions(fabric, layers, seed=options.seed)[destinations.root]


def _wholly_escaped(fabric: Fabric, destinations: Destinations, trees: NueTrees) -> npt.NDArray[np.bool_]:
    """Return bool[D], whether all switches use the escape tree towards a destination, except the switch that delivers
    the destination.
    """
    part_size = np.bincount(fabric.component, minlength=1)[fabric.component]
    others = part_size[destinations.root] - 1
    return np.asarray((trees.escaped >= others) & (others > 0))


@dataclass(frozen=True, eq=False)
class _Job:
    fabric: Fabric
    destinations: Destinations
    layer: npt.NDArray[np.int32]
    layers: int
    options: EngineOptions

    def best(self) -> tuple[NueTrees, Seeds]:
        """Return the best trees and the seeds from which they were computed.

        The search ends with the first seeds whose trees have a highest utilisation close to the mean utilisation.
        """
        outcomes = []
        good_enough = GOOD_ENOUGH if self.layers > 1 else GOOD_ENOUGH_ON_ONE_VL
        for seeds in self.seeds():
            trees = self.build_trees(seeds)
            outcomes.append((trees, seeds))
            if _max_utilisation(trees) <= good_enough * self.mean_load(trees):
                break
        return min(outcomes, key=lambda outcome: (_max_utilisation(outcome[0]), int(outcome[0].escaped.sum())))

    def mean_load(self, trees: NueTrees) -> float:
        """Return the mean utilisation of all channels.  With perfect balance, all channels have this utilisation."""
        utilisation = trees.load * inverse_capacity(self.fabric, self.options.link_weights)
        return float(utilisation.mean()) if len(utilisation) else 0.0

    def seeds(self) -> Iterator[Seeds]:
        """Yield initial states of the layers; the states that are probably the best come first.

        The first state orders the channels by their distance from the destinations of each layer.  This state may lead
        to a bad balance if there are few layers, or if the fabric is a tree with faults.  The second state, from
        Up*/Down* trees, is then often better.
        """
        if self.fabric.switches == 0:
            yield Seeds("none", np.zeros((self.layers, 0), np.int32), np.zeros((self.layers, 0)))
            return
        yield by_region(self.fabric, self.destinations, self.layer, self.layers, self.options.threads)
        position = searched_orders(self.fabric, self.destinations, self.layer, self.options, self.layers)
        yield self.up_down(position)

    def build_trees(self, seeds: Seeds) -> NueTrees:
        options = self.options
        return nue_trees(
            self.fabric.channels, inverse_capacity(self.fabric, options.link_weights),
            self.fabric.source_weight_at.astype(np.float64), self.destinations.targets(self.layer),
            parent=seeds.parent, rank=seeds.rank, start=seeds.start,
            passes=self.passes() if options.passes is None else options.passes,
            full_passes=2 if options.passes is not None or self.visits() <= FULL_PASS_UP_TO else 1, seed=options.seed,
            threads=options.threads,
        )  # fmt: skip

    def up_down(self, position: npt.NDArray[np.int32]) -> Seeds:
        """Return start values of the layers (seeds) whose first trees are Up*/Down* trees.

        ``position`` (int32[layers, S]) has the order of the switches in each layer, for the up/down rule.
        """
        trees = balanced_in_orders(self.fabric, self.destinations, self.layer, position, self.options)
        return replace(by_order(self.fabric, position), name="updn", start=trees.next_channel)

    def passes(self) -> int:
        if self.visits() > PASS_UP_TO:
            return 0
        return 1 if self.layers > 1 else PASSES_ON_ONE_VL

    def visits(self) -> float:
        """Return the number of channel visits of a pass, for comparison with limits at effort 1.

        The number is divided by the effort of the run, and is infinite for effort 0.
        """
        return visits_per_pass(self.fabric) / self.options.effort if self.options.effort > 0.0 else np.inf


def _max_utilisation(trees: NueTrees) -> float:
    """Return the highest utilisation of a channel (load over capacity) after the best pass."""
    done = trees.max_utilisation[trees.max_utilisation > 0.0]
    return float(done.min()) if len(done) else 0.0
