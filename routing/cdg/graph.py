"""The channel dependency graph as an object, for uses outside the proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import igraph
import numpy as np
import numpy.typing as npt

from routing._kernels import digraph
from routing.fabric import Channels, Fabric

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

    @classmethod
    def of_masks(cls, channels: Channels, masks: npt.NDArray[np.uint16]) -> DependencyGraph:
        """Build the graph of packets that keep their VL, from the mask of VLs of each possible edge (uint16[edges]).

        Cost: O(V T).
        """
        before, after = channels.edges.channels()
        masks, count = masks[channels.edges.numbers()], len(channels)
        vls = max(1, int(np.bitwise_or.reduce(masks, initial=0)).bit_length())
        used = [np.flatnonzero(masks >> vl & 1) for vl in range(vls)]
        source = [before[rows] + vl * count for vl, rows in enumerate(used)]
        target = [after[rows] + vl * count for vl, rows in enumerate(used)]
        return cls.of(count, vls, np.concatenate(source), np.concatenate(target))

    @classmethod
    def of_changing_vls(cls, channels: Channels, masks: npt.NDArray[np.uint16], vls: int) -> DependencyGraph:
        """Build the graph of packets that may change their VL from hop to hop.

        ``masks`` are uint16[edges, V]: for each possible edge and each VL of its source, the VLs of its target.
        Cost: O(V T + D log D).
        """
        before, after = channels.edges.channels()
        masks, count = masks[channels.edges.numbers(), :vls], len(channels)
        row, own = np.nonzero(masks)
        bits = masks[row, own]
        pairs = [(np.flatnonzero(bits >> vl & 1), vl) for vl in range(vls)]
        source = np.concatenate([before[row[k]] + own[k] * count for k, _ in pairs])
        target = np.concatenate([after[row[k]] + vl * count for k, vl in pairs])
        by_source = np.lexsort((target, source))
        return cls.of(count, vls, source[by_source], target[by_source])

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
