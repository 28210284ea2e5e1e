"""Shortest paths in tori that fit into 2^n layers for n dimensions, where a path and its reply path are in one layer.

Paths complete one dimension before the next, so dependencies can close a cycle only along a ring.  Two opposite
switches of each ring can be the cut of the ring.  In each layer, one of these two switches is the cut: no path of the
layer passes through it along the ring.  A shortest path passes through at most one of the two switches.  A path and its
reply path that use the same side of the ring pass through the same switches.  So at least one of the two possible cuts
suits both paths.  A layer is a choice of one of the two cuts for each dimension (2^3 layers for three dimensions).  So
every pair of switches fits into a layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.symmetric_paths import LinkBundles
from routing.fabric import Fabric

SHORTEST_RING = 5
"""Length of the shortest ring that needs cuts.  In a ring of three, shortest paths have one hop, so they pass
through no switch.  A ring of four counts as two directions, and a path has at most one hop in each of them.
"""


@dataclass(frozen=True, eq=False)
class Rings:
    """Coordinates of the switches of a torus.

    Attributes
    ----------
    rank
        int32[C], for each channel the rank of its direction: paths use channels of rank 0 first, then rank 1, and so
        on.
    position
        int64[ranks, S], by direction and switch: the position of the switch on its ring, in cyclic order.  In a
        direction without rings, the position is the number of a slice.  The slices are the connected components that
        are left if the channels of the direction are removed.
    length
        int64[ranks], length of the rings of a direction.  The length is 0 if there are no rings, or if the rings are so
        short that shortest paths along them close no cycle.
    """

    rank: npt.NDArray[np.int32]
    position: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]

    @classmethod
    def of(cls, fabric: Fabric, rank: npt.NDArray[np.int32]) -> Rings | None:
        """Return the coordinates of the switches on the rings of a torus; None if all rings are so short that shortest
        paths close no cycle of dependencies.

        ``rank`` (int32[C]) has the number of the direction of each channel: paths use direction 0 first.  Two switches
        have the same position in a direction if they stay connected when the channels of this direction are removed.
        So missing links change nothing as long as other links connect these switches.  Cost: O(C) for each direction.
        """
        import igraph  # noqa: PLC0415 - the start of a command without graphs would take a tenth more time

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
        """Number of layers into which the paths of all pairs of switches fit if no link is missing."""
        return 1 << int(np.count_nonzero(self.length))

    def hops(self, fabric: Fabric, bundles: LinkBundles) -> npt.NDArray[np.uint8]:
        """Return uint8[S, S] by destination and switch: index of the bundle among the bundles of the switch, 255 for
        none.

        The paths are shortest paths that use one direction after the other.  If the destination is half a ring away,
        both sides of the ring are equally long.  The side is then derived from the positions of both ends of a path, in
        such a manner that the reply path gets the same side.  From one position on the ring to the next, the side
        changes, which balances the load.

        Cost: O(C S).
        """
        distance = np.asarray(fabric.graph.distances(mode="out"), np.float32)
        switches = fabric.switches
        src = np.repeat(np.arange(switches), np.diff(bundles.first))
        rank = np.empty(len(src), np.int64)
        rank[bundles.of] = self.rank
        best = np.full((switches, switches), 2 * len(self.length), np.int16)
        hop = np.full((switches, switches), 255, np.uint8)
        for k in range(int(np.diff(bundles.first).max(initial=0))):
            here = np.flatnonzero(np.diff(bundles.first) > k)
            bundle = bundles.first[here] + k
            nearer = distance[bundles.dst[bundle]] + 1 == distance[here]
            cost = 2 * rank[bundle, None] + self._is_wrong_side(rank[bundle], here, bundles.dst[bundle])
            better = nearer & (cost < best[here])
            best[here] = np.where(better, cost, best[here])
            hop[here] = np.where(better, np.uint8(k), hop[here])
        return np.ascontiguousarray(hop.T)

    def _is_wrong_side(
        self, rank: npt.NDArray[np.int64], here: npt.NDArray[np.int64], there: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.bool_]:
        """Return bool[N, S], by hop (from ``here`` to ``there``) and destination: whether the hop is on the wrong side
        of a ring.

        A side can be wrong only for a destination half a ring away, to which both sides of the ring are equally long.
        The function selects one of the two sides; the other side is wrong.
        """
        length, own = np.maximum(self.length[rank], 1), self.position[rank, here]
        goal = self.position[rank]
        later = np.cumsum(self.position[::-1], axis=0)[::-1] - self.position
        common = np.minimum(own[:, None], goal) + later[rank, here][:, None] + later[rank]
        forward = (self.position[rank, there] - own) % length == 1
        wanted = (own[:, None] < goal) ^ (common % 2 == 1)
        half = 2 * ((goal - own[:, None]) % length[:, None]) == self.length[rank][:, None]
        return np.asarray(half & (self.length[rank] > 0)[:, None] & (wanted != forward[:, None]))

    def cuts(self, fabric: Fabric) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int32]]:
        """Compute the CDG edges that each layer avoids, and a topological order of the channels for all other edges.

        Returns
        -------
        avoid
            uint32[N], for each of the N possible CDG edges the layers, as bits, in which the edge leads straight
            through a cut.  A cut is a switch of a ring through which paths of the layer must not pass.
        order
            int32[layers, C], position of each channel in the topological order of each layer.
        """
        src, dst, rank = fabric.channels.src, fabric.channels.dst, self.rank
        before, after = fabric.channels.edges.channels()
        straight = (rank[before] == rank[after]) & (self.length[rank[before]] > 0)
        avoid = np.zeros(len(before), np.uint32)
        order = np.empty((self.layers, len(src)), np.int32)
        length = np.maximum(self.length[rank], 1)
        forward = (self.position[rank, dst] - self.position[rank, src]) % length == 1
        for layer, cut in enumerate(self._choices()):
            passed = self.position[rank[before], dst[before]] == cut[rank[before]]
            avoid |= (straight & passed).astype(np.uint32) << np.uint32(layer)
            direction = (
                np.where(forward, self.position[rank, src] - cut[rank], cut[rank] - self.position[rank, src]) % length
            )
            order[layer, np.lexsort((direction, forward, rank))] = np.arange(len(src))
        return avoid, order

    def _choices(self) -> Iterator[npt.NDArray[np.int64]]:
        """Yield int64[ranks] for each layer: by direction, the position of the layer's cut in the rings.

        A cut is a switch of a ring through which paths of the layer must not pass.  The position is -1 if the rings of
        a direction need no cut.
        """
        ring_symmetric = np.flatnonzero(self.length)
        for layer in range(self.layers):
            cut = np.full(len(self.length), -1)
            cut[ring_symmetric] = np.where(
                layer >> np.arange(len(ring_symmetric)) & 1, self.length[ring_symmetric] // 2, 0
            )
            yield cut


def _round(src: npt.NDArray[np.int64], dst: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64] | None:
    """Return int64[count], the position of each slice along the ring that the channels of one direction form.

    A slice is the switches that stay connected without these channels.  ``src`` and ``dst`` are the slices at the two
    ends of each channel, and ``count`` is the number of slices.  The result is None if the channels do not form a
    single ring, or if the ring is shorter than :data:`SHORTEST_RING`.
    """
    behind: list[set[int]] = [set() for _ in range(count)]
    for a, b in zip(src.tolist(), dst.tolist(), strict=True):
        behind[a].add(b)
    if count < SHORTEST_RING or any(len(two) != 2 for two in behind):
        return None
    position, last, at = np.full(count, -1, np.int64), -1, 0
    for step in range(count):
        position[at] = step
        last, at = at, min(behind[at] - {last}) if step else min(behind[at])
    return position if at == 0 and (position >= 0).all() else None
