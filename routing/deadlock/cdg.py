"""The channel dependency graph as a value, for whatever the proof itself does not ask."""

from __future__ import annotations

from dataclasses import dataclass

import igraph
import networkx
import numpy as np
import numpy.typing as npt

from routing._kernels import digraph
from routing._kernels.cdg import Slots
from routing.fabric import Fabric


@dataclass(frozen=True, eq=False)
class DependencyGraph:
    """Which (channel, VL) waits for which.

    Number ``vl * channels + channel`` stands for a channel on a VL.

    Attributes
    ----------
    channels
        Number of channels (C).
    vls
        Number of VLs (V).
    first, to
        int32[V*C+1], int32[D]: those that ``v`` waits for are ``to[first[v]:first[v+1]]``, ascending.
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
        """From pairs of numbers without doubles, sorted by source, then by target.  Cost: O(D + V C)."""
        first = np.zeros(channels * vls + 1, np.int32)
        np.cumsum(np.bincount(source, minlength=channels * vls), out=first[1:])
        return cls(channels, vls, first, target.astype(np.int32))

    def name(self, number: int) -> tuple[int, int]:
        """(channel, VL) of a number."""
        return number % self.channels, number // self.channels

    def order(self) -> tuple[npt.NDArray[np.int32], bool]:
        """int32[V, C], topological order over all pairs at once, and whether it is complete (there is no cycle)."""
        place, placed = digraph.order(self.first, self.to)
        return place.reshape(self.vls, self.channels), placed == len(place)

    def shortest_cycle(self, *, enough: int = 0) -> list[tuple[int, int]]:
        """(channel, VL) of a shortest cycle, or nothing (``enough``: a length that none can undercut)."""
        return [self.name(number) for number in digraph.shortest_cycle(self.first, self.to, enough=enough)]

    def to_igraph(self) -> igraph.Graph:
        """Directed igraph over all V*C numbers."""
        source = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))
        return igraph.Graph(n=len(self.first) - 1, edges=np.column_stack([source, self.to]), directed=True)

    def to_networkx(self) -> networkx.DiGraph:
        """As a networkx graph of those (channel, VL) that wait or are waited for."""
        source = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first)).tolist()
        graph = networkx.DiGraph()
        graph.add_edges_from((self.name(a), self.name(b)) for a, b in zip(source, self.to.tolist(), strict=True))
        return graph


def possible_turns(fabric: Fabric, slots: Slots) -> npt.NDArray[np.int64]:
    """int64[T, 3]: every turn that the cables allow: from channel, to channel, slot.  Cost: O(T)."""
    channels = fabric.channels
    size = np.diff(channels.first)[channels.dst].astype(np.int64)
    source = np.repeat(np.arange(len(channels)), size)
    k = np.arange(len(source)) - np.repeat(np.cumsum(size) - size, size)
    return np.column_stack([source, channels.first[channels.dst[source]] + k, slots.slot[source] + k])


def from_masks(turns: npt.NDArray[np.int64], masks: npt.NDArray[np.uint16], channels: int, vls: int) -> DependencyGraph:
    """From uint16[T], for every possible turn the VLs on which it is taken; a VL never changes.

    Cost: O(V T).
    """
    taken = [np.flatnonzero(masks >> vl & 1) for vl in range(vls)]
    source = [turns[rows, 0] + vl * channels for vl, rows in enumerate(taken)]
    target = [turns[rows, 1] + vl * channels for vl, rows in enumerate(taken)]
    return DependencyGraph.of(channels, vls, np.concatenate(source), np.concatenate(target))


def from_lane_masks(
    turns: npt.NDArray[np.int64], masks: npt.NDArray[np.uint16], channels: int, vls: int
) -> DependencyGraph:
    """From uint16[T, V], for every possible turn and each VL before it, the VLs after it.

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
    """A length that no cycle of a dependency graph undercuts.

    Without turns straight back, a cycle of channels is a circuit of the fabric, so that the fabric's girth bounds it.
    """
    channels = fabric.channels
    source = np.repeat(np.arange(len(graph.first) - 1), np.diff(graph.first)) % graph.channels
    if (channels.dst[graph.to % graph.channels] == channels.src[source]).any():
        return 2
    girth = fabric.graph.as_undirected(mode="collapse").girth()
    return int(girth) if np.isfinite(girth) else 2
