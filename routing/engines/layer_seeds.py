"""Initial states of layers: orders of the switches in which paths lead up and then down."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.order import build_order
from routing._kernels.up_down import is_increasing
from routing.fabric import Fabric


@dataclass(frozen=True, eq=False)
class LayerSeed:
    """Initial state of the layers.

    Attributes
    ----------
    avoid
        uint32[N], for each of the N possible CDG edges: the layers that must not use the edge at first, as bits.  These
        are for example edges that lead down and then up in a switch order.  Paths that fit into no layer under this
        restriction are assigned again without it.  None: no edge is avoided.
    order
        int32[M, C], position of each channel in the initial topological order of each of the first M layers; or None.
        The initial order changes the run time.  It changes the layers only if the search reaches its work limit.
    """

    avoid: npt.NDArray[np.uint32] | None
    order: npt.NDArray[np.int32] | None

    @classmethod
    def from_orders(cls, fabric: Fabric, positions: list[npt.NDArray[np.int32]], *, strict: bool = True) -> LayerSeed:
        """Return a seed for layers that prefer paths up and then down.

        ``positions`` has the switch order (int32[S]) of each of the first layers; further layers have no order.  If
        ``strict`` is true, the first layers avoid dependencies that lead down and then up.  If it is false, the first
        layers may get such dependencies, and only their initial topological order follows the switch order.
        """
        channels = fabric.channels
        before, after = channels.edges.channels()
        avoided = np.zeros(len(before), np.uint32)
        order = np.empty((len(positions), len(channels)), np.int32)
        for layer, position in enumerate(positions):
            rises = position[channels.dst] < position[channels.src]
            avoided |= (~rises[before] & rises[after]).astype(np.uint32) << np.uint32(layer)
            order[layer] = is_increasing(channels, position)
        return cls(avoided if strict else None, order)


def random_orders(fabric: Fabric, layers: int, seed: int) -> LayerSeed:
    """Return a seed whose layers have random orders of the switches, by maximum cardinality search with random ties
    (:mod:`routing.engines.orders`).

    A layer takes far more paths if the paths that agree with such an order are added to it first.
    """
    rng = np.random.default_rng(seed)
    keys = [rng.random(fabric.switches) for _ in range(layers)]
    return LayerSeed.from_orders(fabric, [build_order(fabric.channels, key, pull=1.0) for key in keys])
