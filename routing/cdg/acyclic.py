"""The channel dependency graph (CDG) of packets that keep their VL, and its topological order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing._kernels.check_delta import dependencies_against_order
from routing._kernels.dependencies import sort_channels
from routing._kernels.up_down import is_increasing, up_down
from routing.cdg.graph import DependencyGraph
from routing.cdg.renumber import edges_without, renumber
from routing.fabric import Channels, Fabric


@dataclass(frozen=True, eq=False)
class Cdg:
    """Channel dependency graph of packets that keep their VL.

    Attributes
    ----------
    fabric
        The fabric whose channels number the edges (:class:`~routing.edges.Edges`).
    masks
        uint16[edges], the VLs on which each edge is in use.
    """

    fabric: Fabric
    masks: npt.NDArray[np.uint16]

    def __or__(self, other: Cdg) -> Cdg:
        """Return the union with another CDG of the same channels."""
        return Cdg(self.fabric, self.masks | other.masks)

    def onto(self, fabric: Fabric) -> Cdg:
        """Return the CDG in the edge numbers of another fabric, without the edges over channels that it lacks."""
        return self if fabric is self.fabric else Cdg(fabric, renumber(self.masks, self.fabric, fabric))

    def among(self, channels: npt.NDArray[np.int32]) -> Cdg:
        """Return the CDG with only the edges between these channels, in the same numbers."""
        masks = self.masks.copy()
        masks[edges_without(self.fabric.channels, channels)] = 0
        return Cdg(self.fabric, masks)

    def graph(self) -> DependencyGraph:
        """Return the CDG as a graph over pairs (channel, VL)."""
        return DependencyGraph.of_masks(self.fabric.channels, self.masks)

    def sorted(self, vls: int, *, threads: int) -> AcyclicCdg | None:
        """Return the CDG with a topological order of each of ``vls`` VLs; None if it has a cycle."""
        order = topological_order(self.fabric.channels, self.masks, vls, threads=threads)
        return None if order is None else AcyclicCdg(self.fabric, self.masks, order)

    def follows(self, order: npt.NDArray[np.int32]) -> bool:
        """Return whether every edge leads forward in an order of the channels on each VL, int32[V, C]."""
        return dependencies_against_order(self.fabric.channels, self.masks, order) == 0

    def follows_switches(self, position: npt.NDArray[np.int32]) -> bool:
        """Return whether no edge, on any VL, leads down and then up in an Up*/Down* order of the switches, int32[S]."""
        channels, used = self.fabric.channels, (self.masks != 0).astype(np.uint16)
        return dependencies_against_order(channels, used, is_increasing(channels, position)[np.newaxis]) == 0

    def switch_order(self) -> npt.NDArray[np.int32] | None:
        """Return int32[S], an order of the switches in which no edge leads down and then up; None if there is none."""
        return up_down(self.fabric.channels, self.masks)


@dataclass(frozen=True, eq=False)
class AcyclicCdg(Cdg):
    """Acyclic CDG with a topological order.

    Attributes
    ----------
    order
        int32[V, C], position of each channel in a topological order of each VL; V = 0: credit loops are allowed.
    position
        int32[S], an Up*/Down* order of the switches such that ``order`` admits every dependency from up to down; None
        if none is known.
    """

    order: npt.NDArray[np.int32]
    position: npt.NDArray[np.int32] | None = None

    @classmethod
    def unchecked(cls, fabric: Fabric) -> AcyclicCdg:
        """Return the CDG without VLs, for tables that may have credit loops."""
        return cls(fabric, np.zeros(0, np.uint16), np.zeros((0, len(fabric.channels)), np.int32))

    def grown(self, masks: npt.NDArray[np.uint16], order: npt.NDArray[np.int32]) -> AcyclicCdg:
        """Return the CDG after a kernel has placed paths: with further edges, and the order of all of them."""
        return replace(self, masks=masks, order=order)

    def along(self, position: npt.NDArray[np.int32], edges: Cdg | None = None) -> AcyclicCdg:
        """Return the edges, or other edges, with the order that an Up*/Down* order of the switches gives every VL."""
        order = np.tile(is_increasing(self.fabric.channels, position), (len(self.order), 1))
        return replace(self, masks=(edges or self).masks, order=order, position=position)


def topological_order(
    channels: Channels, masks: npt.NDArray[np.unsignedinteger], vls: int, *, threads: int
) -> npt.NDArray[np.int32] | None:
    """Return int32[V, C], a topological order of the channels on each of ``vls`` VLs; None if there is a cycle.

    ``masks`` holds the VLs of each CDG edge, uint16[edges] or uint32[edges].  Cost: O(edges) for each VL.
    """
    order = sort_channels(
        channels, masks.astype(np.uint32, copy=False), np.arange(vls, dtype=np.uint8), threads=threads
    )
    return order if (order >= 0).all() else None
