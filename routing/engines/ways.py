"""Shortest paths that suit layers: three ways to choose among them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import Balanced, Targets, balance
from routing._kernels.mirror import Trunks, mirror, spread
from routing.engines.base import EngineOptions, Objective
from routing.engines.destinations import Destinations, slowness
from routing.engines.directions import directions
from routing.engines.effort import refinement_passes
from routing.engines.minhop import NEW_CHANNEL_COST
from routing.engines.rings import Rings
from routing.fabric import Fabric

DIRECTED, RINGED = "directed", "ringed"
"""Names of the ways in grids and tori; the latter go with the layers of :class:`~routing.engines.rings.Rings`."""

MIRROR_PASSES = 4
"""Passes after the first; more were not seen to change anything."""

TRANSIT_FLOW = 0.01
"""What a switch without end ports counts for when mirrored ways are laid, of the mean: it lets them spread as well."""


@dataclass(frozen=True, eq=False)
class Ways:
    """A tree of shortest paths for every destination.

    Attributes
    ----------
    name
        How they were chosen.
    next_channel
        uint8[D, S], index of the chosen channel among those of the switch, 255 for none.
    load
        float64[C], flow on each channel.
    worst
        Load over capacity of the fullest channel.
    bound
        What no shortest paths can keep that below: the mean load over capacity of all channels, since all shortest
        paths take as many hops in sum.  In grids and tori they do so in each direction, and the fullest one counts (an
        estimate where links are missing).
    """

    name: str
    next_channel: npt.NDArray[np.uint8]
    load: npt.NDArray[np.float64]
    worst: float
    bound: float


@dataclass(frozen=True, eq=False)
class WayMaker:
    """Chooses shortest paths.  All of them balance; they differ in what else they care for."""

    fabric: Fabric
    destinations: Destinations
    options: EngineOptions

    @cached_property
    def slowness(self) -> npt.NDArray[np.float64]:
        """float64[C]."""
        return slowness(self.fabric)

    @cached_property
    def sources(self) -> npt.NDArray[np.float64]:
        """float64[S], end ports at each switch."""
        return self.fabric.terminals_at.astype(np.float64)

    @cached_property
    def free(self) -> Ways:
        """Any shortest path, as MinHop takes them."""
        return self._balanced("free", None, refinement_passes(self.fabric, self.options))

    @cached_property
    def rank(self) -> npt.NDArray[np.int32] | None:
        """int32[C], in grids, tori and hypercubes: when the direction of each channel is taken, the fullest first."""
        direction = directions(self.fabric)
        if direction is None:
            return None
        count = int(direction.max()) + 1
        load = self._load_between_switches(direction) * self.slowness
        full = np.bincount(direction, load, count) / np.bincount(direction, minlength=count)
        rank = np.empty(count, np.int32)
        rank[np.argsort(-np.round(full, 6), kind="stable")] = np.arange(count)
        return rank[direction]

    @cached_property
    def rings(self) -> Rings | None:
        """The rings of a torus."""
        return None if self.rank is None else Rings.of(self.fabric, self.rank)

    def directed(self) -> Ways | None:
        """In grids, tori and hypercubes: one direction after the other, the one with the fullest channels first.

        Turns between directions then never close a cycle, only the rings do.  A direction that comes first is balanced
        in the finest grains, since flows have not been gathered yet.  None where there are no directions.
        """
        if self.rank is None:
            return None
        return self._balanced(DIRECTED, self.rank, refinement_passes(self.fabric, self.options))

    def ringed(self, rings: Rings) -> Ways:
        """The same, but both directions of a pair of switches over the same side of each ring."""
        trunks = Trunks.among(self.fabric.channels, self.slowness)
        following, load = self._spread(trunks, rings.hops(self.fabric, trunks))
        return self._ways(RINGED, following, load, rings.rank)

    def _load_between_switches(self, rank: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """float64[C], load with one tree for all end ports of a switch: as good as any to tell the directions' sums."""
        root = np.flatnonzero(self.sources).astype(np.int32)
        families = np.arange(len(root) + 1, dtype=np.int32)
        return self._trees(Targets(families, root, self.sources[root], np.zeros_like(root)), rank, 0).load

    def mirrored(self) -> Ways:
        """One way between two switches for all their end ports, the way back mirroring the way out.

        A turn that closes no cycle with the others then mostly does not in its mirrored form either, so that both take
        little more room in a layer than one.
        """
        sources = self.sources
        flowing = np.where(sources > 0.0, sources, TRANSIT_FLOW * sources[sources > 0.0].mean())
        trunks = Trunks.among(self.fabric.channels, self.slowness)
        hop, _, _ = mirror(trunks, flowing, passes=MIRROR_PASSES, seed=self.options.seed)
        following, load = self._spread(trunks, hop)
        return self._ways("mirrored", following, load)

    def _spread(
        self, trunks: Trunks, hop: npt.NDArray[np.uint8]
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float64]]:
        targets, channels = self.destinations, self.fabric.channels
        return spread(channels, trunks, self.slowness, self.sources, root=targets.root, share=targets.share, hop=hop)

    def _balanced(self, name: str, rank: npt.NDArray[np.int32] | None, passes: int) -> Ways:
        trees = self._trees(self.destinations.targets(), rank, passes)
        return self._ways(name, trees.next_channel, trees.load, rank)

    def _trees(self, targets: Targets, rank: npt.NDArray[np.int32] | None, passes: int) -> Balanced:
        bisection = self.options.objective is Objective.BISECTION
        return balance(
            self.fabric.channels,
            self.slowness,
            self.sources,
            targets,
            passes=passes,
            seed=self.options.seed,
            threads=self.options.threads,
            hop_cost=NEW_CHANNEL_COST if bisection else 0.0,
            bisection=bisection,
            rank=rank,
        )

    def _ways(
        self,
        name: str,
        following: npt.NDArray[np.uint8],
        load: npt.NDArray[np.float64],
        direction: npt.NDArray[np.int32] | None = None,
    ) -> Ways:
        worst = float((load * self.slowness).max(initial=0.0))
        part = np.zeros(len(load), np.int32) if direction is None else direction
        mean = np.bincount(part, load) / np.bincount(part, 1.0 / self.slowness)
        return Ways(name, _lead_switches(self.destinations, following), load, worst, float(mean.max(initial=0.0)))


def _lead_switches(destinations: Destinations, following: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """A switch with end ports is reached as its first end port is: no turns of its own."""
    with_flow = np.flatnonzero(destinations.share > 0.0)
    roots, first = np.unique(destinations.root[with_flow], return_index=True)
    idle = np.flatnonzero(destinations.share == 0.0)
    idle = idle[np.isin(destinations.root[idle], roots)]
    led = following.copy()
    led[idle] = following[with_flow[first[np.searchsorted(roots, destinations.root[idle])]]]
    return led
