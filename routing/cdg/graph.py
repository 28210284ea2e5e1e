"""Channel dependency graph over pairs (channel, VL): cycles of the graph, and conversion of the graph for graph
libraries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from routing._kernels import digraph
from routing.fabric import Channels, Fabric

if TYPE_CHECKING:
    import igraph
    import networkx


Cycle = list[tuple[int, int]]
"""The members of a cycle in order, as pairs (channel, VL)."""


@dataclass(frozen=True, eq=False)
class DependencyGraph:
    """Channel dependency graph over pairs (channel, VL).

    A vertex is a channel on a VL; its number is ``vl * channels + channel``.

    Attributes
    ----------
    channels
        Number of channels (C).
    vls
        Number of VLs (V).
    first, to
        int32[V*C+1], int32[N] for N edges: vertex ``v`` depends on vertices ``to[first[v]:first[v+1]]``, ascending.
    """

    channels: int
    vls: int
    first: npt.NDArray[np.int32]
    to: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.to)

    @property
    def source(self) -> npt.NDArray[np.int64]:
        """Return int64[N], the source vertex of each of the N edges; ``to`` has the target vertices."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    @classmethod
    def of(
        cls, channels: int, vls: int, source: npt.NDArray[np.int64], target: npt.NDArray[np.int64]
    ) -> DependencyGraph:
        """Build the graph from its edges, which must be distinct and sorted by source, then by target.

        ``source`` and ``target`` (int64[N] each, for N edges) are the numbers of the vertices that each edge joins.
        Cost: O(N + V C).
        """
        first = np.zeros(channels * vls + 1, np.int32)
        np.cumsum(np.bincount(source, minlength=channels * vls), out=first[1:])
        return cls(channels, vls, first, target.astype(np.int32))

    @classmethod
    def of_masks(cls, channels: Channels, masks: npt.NDArray[np.uint16]) -> DependencyGraph:
        """Build the graph of packets that keep their VL.

        ``masks`` (uint16[edges]) holds the VLs on which each possible CDG edge is used, as bits.  Cost: O(V T) for T
        possible edges.
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

        ``masks`` (uint16[edges, V]) holds, for each possible CDG edge and each VL of its first channel, the VLs of its
        second channel, as bits.  Cost: O(V T + N log N) for T possible edges, of which N are used.
        """
        before, after = channels.edges.channels()
        masks, count = masks[channels.edges.numbers(), :vls], len(channels)
        row, own = np.nonzero(masks)
        bits = masks[row, own]
        pairs = [(np.flatnonzero(bits >> vl & 1), vl) for vl in range(vls)]
        source = np.concatenate([before[row[k]] + own[k] * count for k, _ in pairs])
        target = np.concatenate([after[row[k]] + vl * count for k, vl in pairs])
        edges = np.sort(source * (count * vls) + target)
        return cls.of(count, vls, *np.divmod(edges, count * vls))

    @classmethod
    def union(cls, graphs: Sequence[DependencyGraph]) -> DependencyGraph:
        """Return the union of several graphs over the same channels.

        Cost: O(N log N) for N edges in all graphs together.
        """
        channels, vls = graphs[0].channels, max(graph.vls for graph in graphs)
        size = np.int64(max(channels * vls, 1))
        pairs = np.unique(np.concatenate([graph.source * size + graph.to for graph in graphs]))
        return cls.of(channels, vls, pairs // size, pairs % size)

    def among(self, vertices: npt.NDArray[np.bool_]) -> DependencyGraph:
        """Return the graph with only the edges between the vertices that are marked in ``vertices`` (bool[V*C])."""
        source = self.source
        kept = vertices[source] & vertices[self.to]
        return DependencyGraph.of(self.channels, self.vls, source[kept], self.to[kept].astype(np.int64))

    def name(self, number: int) -> tuple[int, int]:
        """Return (channel, VL) of the vertex with this number."""
        return number % self.channels, number // self.channels

    def order(self) -> npt.NDArray[np.int32] | None:
        """Return int32[V, C], position of each vertex in a topological order over all VLs; None if there is a cycle."""
        position, placed = digraph.order(self.first, self.to)
        return position.reshape(self.vls, self.channels) if placed == len(position) else None

    def shortest_cycle(self, fabric: Fabric | None = None) -> Cycle:
        """Return a shortest cycle, or an empty list if there is no cycle.

        If the fabric is given, the search ends at the first cycle of the least possible length.  This length is 2 if a
        packet can return to the switch from which it came.  Otherwise, each cycle of channels follows a cycle of
        switches.  The least possible length is then the girth of the fabric: the length of its shortest cycle.
        """
        enough = 0 if fabric is None else self._least_cycle(fabric)
        return [self.name(number) for number in digraph.shortest_cycle(self.first, self.to, enough=enough)]

    def _least_cycle(self, fabric: Fabric) -> int:
        """Return a lower bound of the length of cycles: 2 if a packet can return to the switch from which it came, else
        the girth of the fabric (the length of its shortest cycle).  The bound is 2 for a fabric without a cycle.
        """
        channels = fabric.channels
        if (channels.dst[self.to % self.channels] == channels.src[self.source % self.channels]).any():
            return 2
        girth = fabric.graph.as_undirected(mode="collapse").girth()
        return int(girth) if np.isfinite(girth) else 2

    def to_igraph(self) -> igraph.Graph:
        """Return the graph as a directed igraph graph, with V*C vertices."""
        import igraph  # noqa: PLC0415 - the start of a command without graphs would take a tenth more time

        return igraph.Graph(n=len(self.first) - 1, edges=np.column_stack([self.source, self.to]), directed=True)

    def to_networkx(self) -> networkx.DiGraph:
        """Return the graph as a networkx graph of the pairs (channel, VL) that have any dependency."""
        import networkx  # noqa: PLC0415 - no command needs it, and its import would slow each of them down

        graph, pairs = networkx.DiGraph(), (self.source.tolist(), self.to.tolist())
        graph.add_edges_from((self.name(a), self.name(b)) for a, b in zip(*pairs, strict=True))
        return graph
