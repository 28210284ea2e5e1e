"""The channel dependency graph as an object, for uses outside the proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import igraph
import numpy as np
import numpy.typing as npt

from routing._kernels import digraph
from routing._kernels.slots import Slots
from routing.fabric import Fabric

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, eq=False)
class DependencyGraph:
    """Channel dependency graph over pairs (channel, VL).

    Number ``vl * channels + channel`` stands for a channel on a VL.

    Attributes
    ----------
    channels
        Number of channels (C).
    vls
        Number of VLs (V).
    first, to
        int32[V*C+1], int32[D]: ``v`` depends on ``to[first[v]:first[v+1]]``, ascending.
    """

    channels: int
    vls: int
    first: npt.NDArray[np.int32]
    to: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.to)

    @classmethod
    def of(
        cls, channels: int, vls: int, source: npt.NDArray[np.int64], target: npt.NDArray[np.int64]
    ) -> DependencyGraph:
        """Build the graph from distinct edges, sorted by source, then by target.  Cost: O(D + V C)."""
        first = np.zeros(channels * vls + 1, np.int32)
        np.cumsum(np.bincount(source, minlength=channels * vls), out=first[1:])
        return cls(channels, vls, first, target.astype(np.int32))

    def name(self, number: int) -> tuple[int, int]:
        """Return (channel, VL) of a number."""
        return number % self.channels, number // self.channels

    def order(self) -> tuple[npt.NDArray[np.int32], bool]:
        """Return one topological order over all pairs, int32[V, C], and whether it is complete (no cycle)."""
        place, placed = digraph.order(self.first, self.to)
        return place.reshape(self.vls, self.channels), placed == len(place)

    def shortest_cycle(self, *, enough: int = 0) -> list[tuple[int, int]]:
        """Return (channel, VL) of a shortest cycle, or an empty list (``enough``: a lower bound of its length)."""
        return [self.name(number) for number in digraph.shortest_cycle(self.first, self.to, enough=enough)]

    def to_igraph(self) -> igraph.Graph:
        """Return a directed igraph graph over all V*C numbers."""
        source = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))
        return igraph.Graph(n=len(self.first) - 1, edges=np.column_stack([source, self.to]), directed=True)

    def to_networkx(self) -> networkx.DiGraph:
        """Return a networkx graph of the pairs (channel, VL) that have any dependency."""
        source = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first)).tolist()
        import networkx  # noqa: PLC0415 - no command needs it, and its import would slow each of them down

        graph = networkx.DiGraph()
        graph.add_edges_from((self.name(a), self.name(b)) for a, b in zip(source, self.to.tolist(), strict=True))
        return graph


def possible_turns(fabric: Fabric, slots: Slots) -> npt.NDArray[np.int64]:
    """Return int64[T, 3]: source channel, target channel and slot of every possible dependency.  Cost: O(T)."""
    channels = fabric.channels
    size = np.diff(channels.first)[channels.dst].astype(np.int64)
    source = np.repeat(np.arange(len(channels)), size)
    k = np.arange(len(source)) - np.repeat(np.cumsum(size) - size, size)
    return np.column_stack([source, channels.first[channels.dst[source]] + k, slots.slot[source] + k])


def from_masks(turns: npt.NDArray[np.int64], masks: npt.NDArray[np.uint16], channels: int, vls: int) -> DependencyGraph:
    """Build the graph from uint16[T]: for every possible dependency the mask of its VLs.  No packet changes its VL.

    Cost: O(V T).
    """
    taken = [np.flatnonzero(masks >> vl & 1) for vl in range(vls)]
    source = [turns[rows, 0] + vl * channels for vl, rows in enumerate(taken)]
    target = [turns[rows, 1] + vl * channels for vl, rows in enumerate(taken)]
    return DependencyGraph.of(channels, vls, np.concatenate(source), np.concatenate(target))


def from_lane_masks(
    turns: npt.NDArray[np.int64], masks: npt.NDArray[np.uint16], channels: int, vls: int
) -> DependencyGraph:
    """Build the graph from uint16[T, V]: for every possible dependency and VL of its source, the VLs of its target.

    Cost: O(V T + D log D).
    """
    row, before = np.nonzero(masks[:, :vls])
    bits = masks[row, before]
    pairs = [(np.flatnonzero(bits >> vl & 1), vl) for vl in range(vls)]
    source = np.concatenate([turns[row[k], 0] + before[k] * channels for k, _ in pairs])
    target = np.concatenate([turns[row[k], 1] + vl * channels for k, vl in pairs])
    by_source = np.lexsort((target, source))
    return DependencyGraph.of(channels, vls, source[by_source], target[by_source])


def least_cycle(fabric: Fabric, graph: DependencyGraph) -> int:
    """Return a lower bound of the length of cycles in a dependency graph.

    If no packet returns over the cable on which it came, a cycle of channels is a circuit of the fabric.  The fabric's
    girth is a lower bound then.
    """
    channels = fabric.channels
    source = np.repeat(np.arange(len(graph.first) - 1), np.diff(graph.first)) % graph.channels
    if (channels.dst[graph.to % graph.channels] == channels.src[source]).any():
        return 2
    girth = fabric.graph.as_undirected(mode="collapse").girth()
    return int(girth) if np.isfinite(girth) else 2
