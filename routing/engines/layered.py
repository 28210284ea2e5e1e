"""Search for shortest paths in layers (VLs).  The aim is the fewest layers, or the best balance in a given number of
layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from routing._kernels.layering import MOST_LAYERS, Layers, layering
from routing.engines.base import AUTO_VLS, EngineOptions, Objective
from routing.engines.destinations import Destinations
from routing.engines.layer_seeds import LayerSeed, random_orders
from routing.engines.orders import breadth_first, top_switches
from routing.engines.path_selection import DIRECTED, RING_SYMMETRIC, PathSelector, PathSet
from routing.engines.tree_paths import TreePaths, may_descend, tree_paths
from routing.engines.tree_quality import TOLERANCE as TREE_TOLERANCE
from routing.engines.tree_quality import excess_utilisation
from routing.engines.vl_assignment import most_vls
from routing.errors import NotEnoughVLs
from routing.fabric import Fabric
from routing.partition import regions

TOLERANCE = 1.03
"""Paths have a fair balance if their highest utilisation is at most this factor times the lowest one that is known for
the fabric.  If the fewest VLs are wanted, paths with a fair balance may be chosen instead of the best balanced paths.
"""

TOO_UNBALANCED = 1.3
"""Candidate paths are unbalanced if their highest utilisation is more than this factor times the lowest value of all
candidates so far.  Unbalanced paths are tried only if no other paths fit into the layers.  Dimension-ordered paths are
tried in their turn, even if they are unbalanced.
"""

TIGHT = 1.05
"""The search for a better balance ends when the utilisation is within this factor of the lower bound."""

ATTEMPTS = 6
"""Number of seeds with random switch orders that are tried for each set of paths and each number of layers."""

VISITS_PER_SECOND = 25_000_000
"""Number of channels that cycle searches may visit in all attempts after the first, at effort 1.  These visits take
about three seconds, although the name of the constant says "per second".  At any effort, the number is also the limit
of each search of :meth:`LayerSearch._fewest_of`.
"""

OPTIONAL_VISITS = 5_000_000
"""Number of channels that cycle searches may visit at effort 1 if the search is optional: the caller has other tables
in case no paths fit.  These visits take about half a second.
"""

FIRST_VISITS = 100_000_000
"""Number of channels that cycle searches may visit in the first attempt, at any effort."""

SIMPLE_VISITS = 60_000_000
"""Number of channels that cycle searches may visit in each attempt with simple paths
(:meth:`LayerSearch._simple_paths`).
"""

MOST_ORDERS = 4
"""Maximum number of layers that begin with a switch order.  All further layers begin without one."""

SPARE_VISITS = 1_000_000
"""Number of channels that cycle searches may visit for paths between switches without end ports, at effort 1."""

UNLOAD_ROUNDS = 64


@dataclass(frozen=True, eq=False)
class LayeredPaths:
    """Paths that were assigned to layers (VLs).

    Attributes
    ----------
    paths
        Name of the path selection.
    layers
        Result of the layering kernel.
    max_utilisation
        Highest utilisation of a channel (load over capacity).
    fallback
        Whether these paths are simple paths (:meth:`LayerSearch._simple_paths`).
    """

    paths: str
    layers: Layers
    max_utilisation: float
    fallback: bool = False

    def service_levels(self, fabric: Fabric, destinations: Destinations, *, mutual: bool) -> npt.NDArray[np.uint8]:
        """Return uint8[S, L], the layer of the path from each switch to each LID."""
        sl = np.zeros((fabric.switches, len(fabric.lids)), np.uint8)
        sl[:, destinations.lid] = self.layers.layer[:, destinations.root] if mutual else self.layers.layer.T
        return sl


@dataclass(eq=False)
class LayerSearch:
    """Search for paths that fit into layers (VLs).

    Attributes
    ----------
    fabric, destinations, options
        Input of the engine.
    mutual
        Whether all paths between two switches, in both directions, use one layer.
    optional
        Whether the caller has other tables in case no paths fit.  If so, the work limit of the search is lower and
        includes the first attempt, and :meth:`_last_resort` is not tried.
    maker
        Computes the candidate paths.
    visits
        Channels that cycle searches may still visit.
    found
        Results so far whose paths all have a layer.
    lowest, bound
        The lowest ``max_utilisation`` and the highest ``bound`` of all candidate paths so far (see :class:`PathSet`).
    tried
        Whether an attempt has been made.
    ended_early
        Whether the first attempt ended at its limit of visits.
    """

    fabric: Fabric
    destinations: Destinations
    options: EngineOptions
    mutual: bool
    optional: bool = False
    maker: PathSelector = field(init=False)
    visits: int = field(init=False)
    found: list[LayeredPaths] = field(init=False, default_factory=list)
    lowest: float = field(init=False, default=np.inf)
    bound: float = field(init=False, default=0.0)
    tried: bool = field(init=False, default=False)
    ended_early: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.maker = PathSelector(self.fabric, self.destinations, self.options)
        self.visits = round((OPTIONAL_VISITS if self.optional else VISITS_PER_SECOND) * self.options.effort)

    def run(self) -> LayeredPaths:
        """Search for paths in layers, and return the best paths that were found.

        Raises
        ------
        NotEnoughVLs
            No paths were found that fit into the layers.
        """
        minimal = self.options.vls == "min"
        have = most_vls(self.options)
        tried, uneven = [], []
        for paths in self._candidates():
            tried.append(paths)
            self.lowest, self.bound = min(self.lowest, paths.max_utilisation), max(self.bound, paths.bound)
            # Dimension-ordered paths are tried now, even with a bad balance.  The attempt is cheap, and if links are
            # missing, perhaps only dimension-ordered paths fit.
            if paths.name not in (DIRECTED, RING_SYMMETRIC) and self._is_too_unbalanced(paths):
                uneven.append(paths)
            elif minimal:
                self._fewest(paths, have)
            else:
                self._fit(paths, have)
            if self._is_enough(paths, minimal):
                break
        if not self.found:
            for paths in uneven:
                self._fit(paths, have)
        if not self.found and self.optional:
            raise NotEnoughVLs(None, have)
        if not self.found:
            return self._last_resort(tried, have)
        best = self._best(minimal)
        if minimal and best.layers.needed > AUTO_VLS:
            return self._simple_paths(AUTO_VLS, 1) or best
        return best

    @cached_property
    def tree(self) -> TreePaths | None:
        """Paths up and then down in one switch order of a tree, which close no cycle on one VL.

        None if the fabric is not a tree, or if the options exclude such paths.
        """
        if self.options.objective is Objective.BISECTION or self.options.partition == "metis":
            return None
        return tree_paths(self.fabric, self.destinations, self.options)

    @property
    def is_tree_enough(self) -> bool:
        """Return whether the paths in :attr:`tree` make a search unnecessary.

        No search is necessary if all paths between end ports are shortest paths, and if no other paths have a
        notably better balance.  On large trees, the balance is not compared with other paths, because the computation
        of these paths takes minutes.
        """
        if self.tree is None or self.tree.order.longer > 0:
            return False
        if not may_descend(self.fabric, self.destinations, self.options):
            return True
        load, level = self.tree.load, self.tree.order.level
        excess = excess_utilisation(self.fabric, self.destinations, load, level, self.options)
        if excess.max(initial=0.0) <= TREE_TOLERANCE:
            return True
        peak = float((load * self.maker.inverse_capacity).max(initial=0.0))
        return peak <= TOLERANCE * self.maker.any_shortest.max_utilisation

    @property
    def is_best_possible(self) -> bool:
        """Whether the best paths found have the lowest utilisation that any shortest paths can have."""
        best = min((found.max_utilisation for found in self.found), default=np.inf)
        return best <= self.bound * (1 + 1e-9)

    def _candidates(self) -> Iterator[PathSet]:
        """Yield candidate paths; the paths that probably need the fewest layers come first."""
        if self.options.objective is Objective.BISECTION or not self.maker.sources.any():
            yield self.maker.any_shortest
            return
        if top_switches(self.fabric):
            yield self.maker.any_shortest
        if self.mutual and self.maker.rings is not None:
            yield self.maker.ring_symmetric(self.maker.rings)
        dimension_ordered = self.maker.dimension_ordered()
        if dimension_ordered is not None:
            yield dimension_ordered
        yield self.maker.symmetric
        if not top_switches(self.fabric):
            yield self.maker.any_shortest

    @property
    def least(self) -> float:
        """The lowest ``max_utilisation`` (highest utilisation of a channel) of all candidate paths so far.

        If this value is not close to the lower bound, the balanced shortest paths without restrictions
        (:attr:`.PathSelector.any_shortest`) are included, too.  The first access may have to compute these paths, which
        takes time.
        """
        return (
            self.lowest
            if self.lowest <= TIGHT * self.bound
            else min(self.lowest, self.maker.any_shortest.max_utilisation)
        )

    def _is_tight(self, one: PathSet | LayeredPaths) -> bool:
        return one.max_utilisation <= TIGHT * self.bound

    def _is_too_unbalanced(self, paths: PathSet) -> bool:
        return (
            paths.max_utilisation > TOO_UNBALANCED * self.bound and paths.max_utilisation > TOO_UNBALANCED * self.least
        )

    def _is_fair(self, found: LayeredPaths) -> bool:
        if self.options.vls != "min" and self._is_tight(found):
            return True
        return found.max_utilisation <= TOLERANCE * self.least * (1 + 1e-9)

    def _is_enough(self, paths: PathSet, minimal: bool) -> bool:
        """Return whether the search can end, given the latest candidate ``paths``.

        The search can end if some result has a fair balance.  With ``minimal`` (the fewest layers are wanted), one of
        two further conditions must hold: the best result needs only one layer, or the utilisation of ``paths`` is close
        to the lower bound.
        """
        fair = [found for found in self.found if self._is_fair(found)]
        if not fair or not minimal:
            return bool(fair)
        return self._best(minimal).layers.needed == 1 or (self._is_tight(paths) and paths.name != RING_SYMMETRIC)

    def _best(self, minimal: bool) -> LayeredPaths:
        if not minimal:
            return min(self.found, key=lambda found: (round(found.max_utilisation, 6), found.layers.needed))
        fair = [found for found in self.found if self._is_fair(found)]
        if not any(found.layers.needed <= AUTO_VLS for found in fair):
            # Few ports have more than 8 VLs.  Paths that fit into 8 layers are therefore preferred to paths with a
            # better balance.
            fair = [found for found in self.found if found.layers.needed <= AUTO_VLS] or fair
        return min(fair or self.found, key=lambda found: (found.layers.needed, round(found.max_utilisation, 6)))

    def _fit(self, paths: PathSet, have: int) -> None:
        for seed in self._seeds(paths, have):
            if self._attempt(paths, have, have, seed):
                return

    def _fewest(self, paths: PathSet, have: int) -> None:
        """Try to fit ``paths`` into fewer and fewer layers, until no attempt succeeds.

        The first attempt allows ``have`` layers.  But if there are earlier results with a fair balance, the first
        attempt allows one layer less than the result with the fewest layers.
        """
        fair = [found.layers.needed for found in self.found if self._is_fair(found)]
        most = min(fair, default=have + 1) - 1
        while most >= 1:
            if not any(self._attempt(paths, most, 1, seed) for seed in self._seeds(paths, most)):
                return
            most = min(most, self.found[-1].layers.needed) - 1

    def _attempt(self, paths: PathSet, most: int, have: int, seed: LayerSeed) -> bool:
        """Try to put the paths into at most ``most`` layers and return whether they fit with a fair balance.

        The paths are spread over at least ``have`` layers.  Paths that fit are stored in ``found``, whatever their
        balance.
        """
        first = not self.found and not self.tried and not self.optional
        if self.visits <= 0 and not first:
            return False
        layers = self._layers(paths, most, have, seed, FIRST_VISITS if first else self.visits)
        self.tried = True
        self.ended_early |= first and layers.visited > FIRST_VISITS
        self.visits -= 0 if first else layers.visited
        if layers.left:
            return False
        self.found.append(LayeredPaths(paths.name, layers, self._max_utilisation(layers)))
        return self._is_fair(self.found[-1])

    def _layers(self, paths: PathSet, most: int, have: int, seed: LayerSeed, budget: int) -> Layers:
        bisection = self.options.objective is Objective.BISECTION
        metis = self.options.partition == "metis"
        return layering(
            self.fabric.channels, self.maker.inverse_capacity, self.maker.sources, root=self.destinations.root,
            share=self.destinations.share, next_channel=paths.next_channel, load=paths.load,
            counted=self.fabric.terminals_at > 0, avoid=seed.avoid, order=seed.order, most=most, have=have,
            mutual=self.mutual, rechoose=True, unload_rounds=0 if bisection else UNLOAD_ROUNDS,
            region=regions(self.fabric, most, seed=self.options.seed) if metis else None, budget=budget,
            spare=round(SPARE_VISITS * self.options.effort),
        )  # fmt: skip

    def _seeds(self, paths: PathSet, layers: int) -> Iterator[LayerSeed]:
        """Yield initial states (seeds) of the layers for these paths: several sets of random orders of the switches,
        and a seed without forbidden dependencies (:attr:`.LayerSeed.avoid` is None).

        For dimension-ordered paths and on trees, the seed without forbidden dependencies comes first, because it gives
        better results for these paths.  Ring-symmetric paths (:meth:`.PathSelector.ring_symmetric`) have a single seed.
        In each layer, this seed cuts each ring of the torus at one switch: dependencies that lead along the ring
        through this switch are forbidden (:meth:`.Rings.cuts`), except for paths that fit into no layer otherwise.  If
        there are too few layers for this seed, ring-symmetric paths have none.
        """
        if paths.name == RING_SYMMETRIC and self.maker.rings is not None:
            if self.maker.rings.layers <= layers:
                yield LayerSeed(*self.maker.rings.cuts(self.fabric))
            return
        tops = top_switches(self.fabric)
        plain = LayerSeed(None, None)
        if tops:
            plain = LayerSeed.from_orders(self.fabric, [breadth_first(self.fabric, tops)], strict=False)
        if tops or paths.name == DIRECTED:
            yield plain
        for attempt in range(ATTEMPTS):
            yield random_orders(self.fabric, min(layers, MOST_ORDERS), self.options.seed + 1000 * attempt)
        if not tops and paths.name != DIRECTED:
            yield plain

    def _last_resort(self, tried: list[PathSet], have: int) -> LayeredPaths:
        """Return paths in at most ``have`` layers, whatever their balance.

        Two methods are tried: a search for the fewest layers, and then simple paths, which need few visits.  If the
        first attempt of the run reached its limit of visits, the simple paths are tried first, because the search would
        probably reach its limit, too.

        Raises
        ------
        NotEnoughVLs
            No such paths were found.  The error states the smallest number of layers found.
        """
        spread = 1 if self.options.vls == "min" else have
        found = self._simple_paths(have, spread) if self.ended_early else None
        if found is not None:
            return found
        try:
            if self.options.vls == "min":
                return self._fewest_of(tried, have)
            found = self._as_with_min(have)
            # If the search for the fewest layers has returned simple paths, these paths are not spread over all VLs.
            # So simple paths are computed again, and spread over all VLs.
            return self._simple_paths(have, have) or found if found.fallback else found
        except NotEnoughVLs as problem:
            found = None if self.ended_early else self._simple_paths(have, spread)
            if found is None:
                raise NotEnoughVLs(problem.needed, have, proven=False) from None
            return found

    def _fewest_of(self, tried: list[PathSet], have: int) -> LayeredPaths:
        """Return the paths that need the fewest layers, of all paths in ``tried``.

        Raises
        ------
        NotEnoughVLs
            All tried paths need more than ``have`` layers, or the search for their layers reached its work limit.
        """
        results = [
            (self._layers(paths, MOST_LAYERS, 1, LayerSeed(None, None), VISITS_PER_SECOND), paths.name)
            for paths in tried
        ]
        layers, name = min(results, key=lambda result: result[0].needed if not result[0].left else MOST_LAYERS + 1)
        if layers.left or layers.needed > have:
            raise NotEnoughVLs(None if layers.left else layers.needed, have, proven=False)
        return LayeredPaths(name, layers, self._max_utilisation(layers))

    def _as_with_min(self, have: int) -> LayeredPaths:
        """Search for paths in the fewest layers, and return them if they fit.

        Raises
        ------
        NotEnoughVLs
            The result needs more than ``have`` layers.
        """
        search = LayerSearch(self.fabric, self.destinations, replace(self.options, vls="min"), self.mutual)
        # The candidate paths do not depend on the number of VLs, so they need not be computed again.
        search.maker = self.maker
        if self.ended_early and self.visits <= 0:
            # The search so far has used up its visits, and the new search would probably use them up, too.  So the new
            # search gets no visits for attempts with seeds, and tries only its last resort.
            search.tried, search.ended_early, search.visits = True, True, 0
        found = search.run()
        if found.layers.needed > have:
            raise NotEnoughVLs(found.layers.needed, have, proven=False)
        return found

    def _simple_paths(self, most: int, have: int) -> LayeredPaths | None:
        """Search for paths that need few layers and little work; their balance does not count.

        Return None if the search finds no paths that fit into ``most`` layers.  Otherwise, the paths are spread over
        ``have`` layers.

        A layer that has a switch order accepts all paths that Up*/Down* allows in this order, without a cycle search.
        So the seeds give switch orders to layers.  The first seed, which is tried on trees only, gives an order to one
        layer.  The other seed gives an order to all layers but the last two, and to one layer at least.
        """
        for paths in self._simple_candidates():
            for seed in self._simple_seeds(most):
                layers = self._layers(paths, most, have, seed, SIMPLE_VISITS)
                if not layers.left:
                    return LayeredPaths(paths.name, layers, self._max_utilisation(layers), fallback=True)
        return None

    def _simple_candidates(self) -> Iterator[PathSet]:
        if self.maker.sources.any():
            yield self.maker.symmetric
        yield self.maker.first_found()

    def _simple_seeds(self, most: int) -> Iterator[LayerSeed]:
        tops = top_switches(self.fabric)
        if tops:
            yield LayerSeed.from_orders(self.fabric, [breadth_first(self.fabric, tops)])
        yield random_orders(self.fabric, max(most - 2, 1), self.options.seed)

    def _max_utilisation(self, layers: Layers) -> float:
        return float((layers.load * self.maker.inverse_capacity).max(initial=0.0))
