"""Destinations of a fabric as the balancing kernel takes them, and its trees as forwarding tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import Balanced, Targets
from routing._kernels.nue import Grown
from routing.fabric import NO_PORT, Fabric


@dataclass(frozen=True, eq=False)
class Destinations:
    """Every LID that some switch delivers, grouped by the port that owns it: end ports first, then switches.

    Attributes
    ----------
    lid, root
        int32[D], the LIDs and the switches that deliver them.
    family_first
        int32[F+1], the LIDs of port ``f`` are ``family_first[f]:family_first[f+1]``.
    share
        float64[D], part of the flow towards the port that takes this LID: 1 / 2^LMC, 0 for a switch.
    """

    lid: npt.NDArray[np.int32]
    root: npt.NDArray[np.int32]
    family_first: npt.NDArray[np.int32]
    share: npt.NDArray[np.float64]

    @classmethod
    def of(cls, fabric: Fabric) -> Destinations:
        """All destinations of a fabric."""
        lids = fabric.lids
        own = np.flatnonzero((lids.endport >= 0) & (lids.switch >= 0))
        family = lids.endport[own]
        own = own[np.argsort(family, kind="stable")]
        family = lids.endport[own]
        starts = np.flatnonzero(np.diff(family, prepend=-1))
        sizes = np.diff(starts, append=len(own))
        switches = np.flatnonzero(lids.port == 0)
        lid = np.concatenate([own, switches])
        return cls(
            lid=lid.astype(np.int32),
            root=lids.switch[lid],
            family_first=np.concatenate([starts, np.arange(len(own), len(lid) + 1)]).astype(np.int32),
            share=np.concatenate([np.repeat(1.0 / sizes, sizes), np.zeros(len(switches))]),
        )

    def targets(self, layer: npt.NDArray[np.int32] | None = None) -> Targets:
        """The same for the kernel; ``layer`` is int32[D]."""
        return Targets(self.family_first, self.root, self.share, np.zeros_like(self.lid) if layer is None else layer)


def slowness(fabric: Fabric) -> npt.NDArray[np.float64]:
    """float64[C], what a unit of load weighs on each channel: 1 on the slowest kind of link, less on faster ones."""
    capacity = fabric.channels.capacity
    return np.ascontiguousarray(capacity.min(initial=np.inf) / capacity)


def forwarding_tables(fabric: Fabric, destinations: Destinations, trees: Balanced | Grown) -> npt.NDArray[np.uint8]:
    """uint8[S, L] from the trees: out-ports, at the delivering switches the end port or 0, 255 elsewhere."""
    channels, lids = fabric.channels, fabric.lids
    lft = np.full((fabric.switches, len(lids)), NO_PORT, np.uint8)
    for switch in range(fabric.switches):
        out = np.full(256, NO_PORT, np.uint8)
        ports = channels.port[channels.first[switch] : channels.first[switch + 1]]
        out[: len(ports)] = ports
        lft[switch, destinations.lid] = out[trees.next_channel[:, switch]]
    lft[destinations.root, destinations.lid] = lids.port[destinations.lid]
    return lft
