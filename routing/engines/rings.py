"""Shortest paths in tori that fit into two layers for each dimension, both directions of a pair of switches together.

Paths take one direction after the other, so dependencies can only close along a ring.  A ring is cut at two opposite
places: no shortest path passes both, neither on its way out nor on its way back, as long as both run over the same side
of the ring.  A layer for each choice of one cut a direction (2^3 for three rings) then holds every pair in some layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import igraph
import numpy as np
import numpy.typing as npt

from routing._kernels.layering import turns
from routing._kernels.mirror import Trunks
from routing.fabric import Fabric

SHORTEST_RING = 5
"""On shorter rings no shortest path passes a switch (a ring of four counts as two directions)."""


@dataclass(frozen=True, eq=False)
class Rings:
    """Coordinates of the switches of a torus.

    Attributes
    ----------
    rank
        int32[C], when the direction of each channel is taken: 0 first.
    place
        int64[ranks, S], place of each switch on the rings of a direction, counted round; some number without rings.
    length
        int64[ranks], of the rings of a direction; 0 where they are none, or too short to be cut.
    """

    rank: npt.NDArray[np.int32]
    place: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]

    @classmethod
    def of(cls, fabric: Fabric, rank: npt.NDArray[np.int32]) -> Rings | None:
        """The coordinates, from the direction of each channel; None if there are no rings to be cut.

        Switches that are joined without a direction have the same place in it, so missing links do no harm as long as
        others hold such a slice together.  Cost: O(C) for each direction.
        """
        channels, found, length = fabric.channels, [], []
        for one in range(int(rank.max()) + 1):
            others = np.column_stack([channels.src, channels.dst])[rank != one]
            slices = igraph.Graph(n=fabric.switches, edges=others).connected_components()
            slice_of = np.asarray(slices.membership, np.int64)
            ring = _round(slice_of[channels.src[rank == one]], slice_of[channels.dst[rank == one]], len(slices))
            found.append(slice_of if ring is None else ring[slice_of])
            length.append(0 if ring is None else len(ring))
        return cls(rank, np.stack(found), np.array(length)) if any(length) else None

    @property
    def layers(self) -> int:
        """Layers that always suffice where no link is missing."""
        return 1 << int(np.count_nonzero(self.length))

    def hops(self, fabric: Fabric, trunks: Trunks) -> npt.NDArray[np.uint8]:
        """uint8[S, S] by destination and switch, index of the trunk among those of the switch, 255 for none.

        Shortest paths, one direction after the other.  Half a ring away, the side hangs on what both ends of a path
        have in common, so that the way back takes it too; neighbours and what lies ahead in later directions alternate,
        which evens out the load.

        Cost: O(C S).
        """
        distance = np.asarray(fabric.graph.distances(mode="out"), np.float32)
        switches = fabric.switches
        src = np.repeat(np.arange(switches), np.diff(trunks.first))
        rank = np.empty(len(src), np.int64)
        rank[trunks.of] = self.rank
        best = np.full((switches, switches), 2 * len(self.length), np.int16)
        hop = np.full((switches, switches), 255, np.uint8)
        for k in range(int(np.diff(trunks.first).max(initial=0))):
            here = np.flatnonzero(np.diff(trunks.first) > k)
            trunk = trunks.first[here] + k
            nearer = distance[trunks.dst[trunk]] + 1 == distance[here]
            cost = 2 * rank[trunk, None] + self._is_wrong_side(rank[trunk], here, trunks.dst[trunk])
            better = nearer & (cost < best[here])
            best[here] = np.where(better, cost, best[here])
            hop[here] = np.where(better, np.uint8(k), hop[here])
        return np.ascontiguousarray(hop.T)

    def _is_wrong_side(
        self, rank: npt.NDArray[np.int64], here: npt.NDArray[np.int64], there: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.bool_]:
        """bool[N, S]: from ``here`` to ``there`` is the other way to the destination, which is half a ring away."""
        length, own = np.maximum(self.length[rank], 1), self.place[rank, here]
        goal = self.place[rank]
        later = np.cumsum(self.place[::-1], axis=0)[::-1] - self.place
        common = np.minimum(own[:, None], goal) + later[rank, here][:, None] + later[rank]
        forward = (self.place[rank, there] - own) % length == 1
        wanted = (own[:, None] < goal) ^ (common % 2 == 1)
        half = 2 * ((goal - own[:, None]) % length[:, None]) == self.length[rank][:, None]
        return np.asarray(half & (self.length[rank] > 0)[:, None] & (wanted != forward[:, None]))

    def cuts(self, fabric: Fabric) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int32]]:
        """The turns that each layer is to avoid, and an order of the channels that all others agree with.

        Returns
        -------
        avoid
            uint32[turns], a bit for each layer: straight on through a cut of it.
        order
            int32[layers, C], place of each channel.
        """
        src, dst, rank = fabric.channels.src, fabric.channels.dst, self.rank
        before, after = turns(fabric.channels)
        straight = (rank[before] == rank[after]) & (self.length[rank[before]] > 0)
        avoid = np.zeros(len(before), np.uint32)
        order = np.empty((self.layers, len(src)), np.int32)
        length = np.maximum(self.length[rank], 1)
        forward = (self.place[rank, dst] - self.place[rank, src]) % length == 1
        for layer, cut in enumerate(self._choices()):
            passed = self.place[rank[before], dst[before]] == cut[rank[before]]
            avoid |= (straight & passed).astype(np.uint32) << np.uint32(layer)
            way = np.where(forward, self.place[rank, src] - cut[rank], cut[rank] - self.place[rank, src]) % length
            order[layer, np.lexsort((way, forward, rank))] = np.arange(len(src))
        return avoid, order

    def _choices(self) -> Iterator[npt.NDArray[np.int64]]:
        """int64[ranks] for each layer: the place where the rings of each direction are cut."""
        ringed = np.flatnonzero(self.length)
        for layer in range(self.layers):
            cut = np.full(len(self.length), -1)
            cut[ringed] = np.where(layer >> np.arange(len(ringed)) & 1, self.length[ringed] // 2, 0)
            yield cut


def _round(src: npt.NDArray[np.int64], dst: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64] | None:
    """int64[count], places along the one ring that these channels make; None if they do not."""
    behind: list[set[int]] = [set() for _ in range(count)]
    for a, b in zip(src.tolist(), dst.tolist(), strict=True):
        behind[a].add(b)
    if count < SHORTEST_RING or any(len(two) != 2 for two in behind):
        return None
    place, last, at = np.full(count, -1, np.int64), -1, 0
    for step in range(count):
        place[at] = step
        last, at = at, min(behind[at] - {last}) if step else min(behind[at])
    return place if at == 0 and (place >= 0).all() else None
