"""Ways and layers together: the search for the fewest layers, or for the best balance in those that there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.layering import MOST_LAYERS, Layers, layering, turns
from routing._kernels.order import grow_order
from routing.engines.base import AUTO_VLS, EngineOptions, Objective
from routing.engines.destinations import Destinations
from routing.engines.lanes import vls_allowed
from routing.engines.orders import breadth_first, top_switches
from routing.engines.ways import DIRECTED, RINGED, WayMaker, Ways
from routing.errors import NotEnoughVLs
from routing.fabric import Fabric
from routing.partition import regions
from routing.tables import DATA_VLS

TOLERANCE = 1.03
"""How much fuller than with the best balance the fullest channel may be for the sake of fewer VLs."""

HOPELESS = 1.3
"""Ways whose fullest channel is so much fuller are tried only if nothing else fits."""

TIGHT = 1.05
"""At so much over what no shortest paths come below nothing better is looked for."""

ATTEMPTS = 6
"""Sets of orders that are tried for one number of layers."""

LOOKS = 25_000_000
"""Channels that searches for cycles may come by after the first attempt, at effort 1: about three seconds."""

FIRST_LOOKS = 100_000_000
"""The same for the first attempt, at any effort."""

MOST_ORDERS = 4
"""Layers that begin with an order; further ones begin empty."""

SPARE_LOOKS = 1_000_000
"""The same for ways between switches without end ports, at effort 1."""

EASING_ROUNDS = 64


@dataclass(frozen=True, eq=False)
class Layered:
    """Ways in layers.

    Attributes
    ----------
    ways
        How they were chosen.
    layers
        What the kernel returned.
    worst
        Load over capacity of the fullest channel.
    """

    ways: str
    layers: Layers
    worst: float


@dataclass(eq=False)
class LayerSearch:
    """One search; ``mutual``: all ways between two switches, there and back, in one layer."""

    fabric: Fabric
    destinations: Destinations
    options: EngineOptions
    mutual: bool
    maker: WayMaker = field(init=False)
    looks: int = field(init=False)
    found: list[Layered] = field(init=False, default_factory=list)
    lowest: float = field(init=False, default=np.inf)
    bound: float = field(init=False, default=0.0)
    tried: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.maker = WayMaker(self.fabric, self.destinations, self.options)
        self.looks = round(LOOKS * self.options.effort)

    def run(self) -> Layered:
        """The best that was found.

        Raises
        ------
        NotEnoughVLs
            No ways were found that fit.
        """
        minimal = self.options.vls == "min"
        have = DATA_VLS - self.options.first_vl if minimal else vls_allowed(self.options)
        tried, uneven = [], []
        for ways in self._candidates():
            tried.append(ways)
            self.lowest, self.bound = min(self.lowest, ways.worst), max(self.bound, ways.bound)
            # Ways of grids cost next to nothing to try, and with links missing they may be all that fits.
            if ways.name not in (DIRECTED, RINGED) and self._is_hopeless(ways):
                uneven.append(ways)
            elif minimal:
                self._fewest(ways, have)
            else:
                self._fit(ways, have)
            if self._is_enough(ways, minimal):
                break
        if not self.found:
            for ways in uneven:
                self._fit(ways, have)
        if not self.found:
            return self._last_resort(tried, have)
        return self._best(minimal)

    def _candidates(self) -> Iterator[Ways]:
        """The ways worth trying, the likeliest to need few layers first."""
        if self.options.objective is Objective.BISECTION or not self.maker.sources.any():
            yield self.maker.free
            return
        if top_switches(self.fabric):
            yield self.maker.free
        if self.mutual and self.maker.rings is not None:
            yield self.maker.ringed(self.maker.rings)
        directed = self.maker.directed()
        if directed is not None:
            yield directed
        yield self.maker.mirrored()
        if not top_switches(self.fabric):
            yield self.maker.free

    @property
    def least(self) -> float:
        """Load of the fullest channel with the best balance that is known; takes its time when first asked for."""
        return self.lowest if self.lowest <= TIGHT * self.bound else min(self.lowest, self.maker.free.worst)

    def _is_tight(self, one: Ways | Layered) -> bool:
        return one.worst <= TIGHT * self.bound

    def _is_hopeless(self, ways: Ways) -> bool:
        return ways.worst > HOPELESS * self.bound and ways.worst > HOPELESS * self.least

    def _is_fair(self, found: Layered) -> bool:
        if self.options.vls != "min" and self._is_tight(found):
            return True
        return found.worst <= TOLERANCE * self.least * (1 + 1e-9)

    def _is_enough(self, ways: Ways, minimal: bool) -> bool:
        """Further ways are not worth their time: a fair balance, in one layer if the fewest are asked for."""
        fair = [found for found in self.found if self._is_fair(found)]
        if not fair or not minimal:
            return bool(fair)
        return self._best(minimal).layers.needed == 1 or (self._is_tight(ways) and ways.name != RINGED)

    def _best(self, minimal: bool) -> Layered:
        if not minimal:
            return min(self.found, key=lambda found: (round(found.worst, 6), found.layers.needed))
        fair = [found for found in self.found if self._is_fair(found)]
        if not any(found.layers.needed <= AUTO_VLS for found in fair):
            # Hardly a port has more than 8 VLs: a few percent of balance are worth less than tables that can be used.
            fair = [found for found in self.found if found.layers.needed <= AUTO_VLS] or fair
        return min(fair or self.found, key=lambda found: (found.layers.needed, round(found.worst, 6)))

    def _fit(self, ways: Ways, have: int) -> None:
        for beginning in self._beginnings(ways, have):
            if self._attempt(ways, have, have, beginning):
                return

    def _fewest(self, ways: Ways, have: int) -> None:
        """Down from what one attempt needs, or from what was found with other ways, as far as it goes."""
        fair = [found.layers.needed for found in self.found if self._is_fair(found)]
        most = min(fair, default=have + 1) - 1
        while most >= 1:
            if not any(self._attempt(ways, most, 1, beginning) for beginning in self._beginnings(ways, most)):
                return
            most = min(most, self.found[-1].layers.needed) - 1

    def _attempt(self, ways: Ways, most: int, have: int, beginning: Beginning) -> bool:
        """Whether the ways fit into so many layers with a fair balance; whatever fits is kept."""
        first = not self.found and not self.tried
        if self.looks <= 0 and not first:
            return False
        layers = self._layers(ways, most, have, beginning, FIRST_LOOKS if first else self.looks)
        self.tried = True
        self.looks -= 0 if first else layers.visited
        if layers.left:
            return False
        worst = float((layers.load * self.maker.slowness).max(initial=0.0))
        self.found.append(Layered(ways.name, layers, worst))
        return self._is_fair(self.found[-1])

    def _layers(self, ways: Ways, most: int, have: int, beginning: Beginning, budget: int) -> Layers:
        bisection = self.options.objective is Objective.BISECTION
        metis = self.options.partition == "metis"
        return layering(
            self.fabric.channels,
            self.maker.slowness,
            self.maker.sources,
            root=self.destinations.root,
            share=self.destinations.share,
            next_channel=ways.next_channel,
            load=ways.load,
            counted=self.fabric.terminals_at > 0,
            avoid=beginning.avoid,
            order=beginning.order,
            most=most,
            have=have,
            mutual=self.mutual,
            rechoose=True,
            easing=0 if bisection else EASING_ROUNDS,
            region=regions(self.fabric, most, seed=self.options.seed) if metis else None,
            budget=budget,
            spare=round(SPARE_LOOKS * self.options.effort),
        )

    def _beginnings(self, ways: Ways, layers: int) -> Iterator[Beginning]:
        """The turns from down to up, in orders of the switches of each layer's own; and nothing.

        On directed ways and on trees nothing is the better beginning.
        """
        if ways.name == RINGED and self.maker.rings is not None:
            if self.maker.rings.layers <= layers:
                yield Beginning(*self.maker.rings.cuts(self.fabric))
            return
        tops = top_switches(self.fabric)
        plain = Beginning(None, None)
        if tops:
            plain = Beginning.along(self.fabric, [breadth_first(self.fabric, tops)], strict=False)
        if tops or ways.name == DIRECTED:
            yield plain
        for attempt in range(ATTEMPTS):
            yield random_orders(self.fabric, min(layers, MOST_ORDERS), self.options.seed + 1000 * attempt)
        if not tops and ways.name != DIRECTED:
            yield plain

    def _last_resort(self, tried: list[Ways], have: int) -> Layered:
        """What a search for the fewest layers finds, if so many may be used.

        Raises
        ------
        NotEnoughVLs
            With the smallest number of layers that is found; 33 if 32 are too few.
        """
        if self.options.vls == "min":
            results = [(self._layers(ways, MOST_LAYERS, 1, Beginning(None, None), LOOKS), ways.name) for ways in tried]
            layers, name = min(results, key=lambda result: result[0].needed if not result[0].left else MOST_LAYERS + 1)
            if layers.left or layers.needed > have:
                raise NotEnoughVLs(MOST_LAYERS + 1 if layers.left else layers.needed, have)
            return Layered(name, layers, float((layers.load * self.maker.slowness).max(initial=0.0)))
        try:
            found = LayerSearch(self.fabric, self.destinations, replace(self.options, vls="min"), self.mutual).run()
        except NotEnoughVLs as problem:
            raise NotEnoughVLs(problem.needed, have) from None
        if found.layers.needed > have:
            raise NotEnoughVLs(found.layers.needed, have)
        return found


@dataclass(frozen=True, eq=False)
class Beginning:
    """How layers begin.

    Attributes
    ----------
    avoid
        uint32[turns], for each turn the layers in whose order of the switches it goes down, then up.
    order
        int32[layers, C], a topological order of all other turns of each layer.
    """

    avoid: npt.NDArray[np.uint32] | None
    order: npt.NDArray[np.int32] | None

    @classmethod
    def along(cls, fabric: Fabric, positions: list[npt.NDArray[np.int32]], *, strict: bool = True) -> Beginning:
        """With orders of the switches (int32[S] each): up, then down.  Not strict: other turns may come in at once."""
        channels = fabric.channels
        before, after = turns(channels)
        avoided = np.zeros(len(before), np.uint32)
        order = np.empty((len(positions), len(channels)), np.int32)
        for layer, position in enumerate(positions):
            rises = position[channels.dst] < position[channels.src]
            avoided |= (~rises[before] & rises[after]).astype(np.uint32) << np.uint32(layer)
            height = np.where(rises, -position[channels.src], position[channels.src])
            order[layer, np.lexsort((height, ~rises))] = np.arange(len(channels))
        return cls(avoided if strict else None, order)


def random_orders(fabric: Fabric, layers: int, seed: int) -> Beginning:
    """Layers along orders of a maximum cardinality search with random ties (:mod:`routing.engines.orders`).

    A layer that is filled with ways that agree with such an order at first holds far more than one that is filled with
    what comes.
    """
    rng = np.random.default_rng(seed)
    keys = [rng.random(fabric.switches) for _ in range(layers)]
    return Beginning.along(fabric, [grow_order(fabric.channels, key, pull=1.0) for key in keys])
