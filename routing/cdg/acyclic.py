"""Channel dependency graph (CDG) of packets that keep their VL, and its topological order."""

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
    """Channel dependency graph of packets that keep their VL along a path.

    Attributes
    ----------
    fabric
        The fabric.  Its channels determine the numbers of the edges (:class:`~routing.edges.Edges`).
    masks
        uint16[edges], the VLs on which each edge is used: bit v stands for VL v.
    """

    fabric: Fabric
    masks: npt.NDArray[np.uint16]

    def __or__(self, other: Cdg) -> Cdg:
        """Return the union with another CDG over the channels of the same fabric."""
        return Cdg(self.fabric, self.masks | other.masks)

    def onto(self, fabric: Fabric) -> Cdg:
        """Return the CDG with the edge numbers of another fabric, without edges of channels that the other fabric
        lacks.
        """
        return self if fabric is self.fabric else Cdg(fabric, renumber(self.masks, self.fabric, fabric))

    def among(self, channels: npt.NDArray[np.int32]) -> Cdg:
        """Return the CDG with only the edges whose two channels are both given.  The edges keep their numbers."""
        masks = self.masks.copy()
        masks[edges_without(self.fabric.channels, channels)] = 0
        return Cdg(self.fabric, masks)

    def graph(self) -> DependencyGraph:
        """Return the CDG as a graph whose vertices are pairs (channel, VL)."""
        return DependencyGraph.of_masks(self.fabric.channels, self.masks)

    def sorted(self, vls: int, *, threads: int) -> AcyclicCdg | None:
        """Return the CDG with a topological order for each of the first ``vls`` VLs; None if the CDG has a cycle."""
        order = topological_order(self.fabric.channels, self.masks, vls, threads=threads)
        return None if order is None else AcyclicCdg(self.fabric, self.masks, order)

    def follows(self, order: npt.NDArray[np.int32]) -> bool:
        """Return whether every edge leads to a channel that is later in ``order`` than the edge's first channel.

        ``order`` (int32[V, C]) is the position of each channel on each VL.
        """
        return dependencies_against_order(self.fabric.channels, self.masks, order) == 0

    def follows_switches(self, position: npt.NDArray[np.int32]) -> bool:
        """Return whether every edge is allowed by an Up*/Down* order of the switches (int32[S]).

        An Up*/Down* order forbids edges from a channel that leads down to a channel that leads up.
        """
        channels, used = self.fabric.channels, np.minimum(self.masks, 1)
        return dependencies_against_order(channels, used, is_increasing(channels, position)[np.newaxis]) == 0

    def switch_order(self) -> npt.NDArray[np.int32] | None:
        """Return int32[S], an Up*/Down* order of the switches that allows all CDG edges; None if none exists."""
        return up_down(self.fabric.channels, self.masks)


@dataclass(frozen=True, eq=False)
class AcyclicCdg(Cdg):
    """Acyclic channel dependency graph, with a topological order that proves it.

    Attributes
    ----------
    order
        int32[V, C], position of each channel in a topological order of each VL.  V = 0: there is no order, because
        credit loops are allowed.
    position
        int32[S], position of each switch in an Up*/Down* order.  Each possible CDG edge that the Up*/Down* order
        allows leads to a later channel in ``order``, whether this CDG has the edge or not.  None if no Up*/Down* order
        with this property is known.
    """

    order: npt.NDArray[np.int32]
    position: npt.NDArray[np.int32] | None = None

    @classmethod
    def unchecked(cls, fabric: Fabric) -> AcyclicCdg:
        """Return a CDG without edges and VLs, for tables that may have credit loops."""
        return cls(fabric, np.zeros(0, np.uint16), np.zeros((0, len(fabric.channels)), np.int32))

    def grown(self, masks: npt.NDArray[np.uint16], order: npt.NDArray[np.int32]) -> AcyclicCdg:
        """Return the CDG with the edges and the topological order that a kernel returned after it added paths."""
        return replace(self, masks=masks, order=order)

    def along(self, position: npt.NDArray[np.int32], edges: Cdg | None = None) -> AcyclicCdg:
        """Return the CDG with a topological order of the channels that is derived from an Up*/Down* order of the
        switches (int32[S]).

        The topological order is the same on every VL.  If ``edges`` is given, its edges replace the edges of this CDG.
        """
        order = np.tile(is_increasing(self.fabric.channels, position), (len(self.order), 1))
        return replace(self, masks=(edges or self).masks, order=order, position=position)


def topological_order(
    channels: Channels, masks: npt.NDArray[np.unsignedinteger], vls: int, *, threads: int
) -> npt.NDArray[np.int32] | None:
    """Compute int32[V, C], the position of each channel in a topological order of each of ``vls`` VLs; None if there is
    a cycle.

    ``masks`` (uint16[edges] or uint32[edges]) holds the VLs on which each CDG edge is used, as bits.  Cost: O(edges)
    for each VL.
    """
    order = sort_channels(
        channels, masks.astype(np.uint32, copy=False), np.arange(vls, dtype=np.uint8), threads=threads
    )
    return order if (order >= 0).all() else None
