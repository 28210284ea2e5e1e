"""Balanced trees whose paths lead up and then down in an order of the switches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import Balanced
from routing.engines.base import EngineOptions
from routing.engines.destinations import Destinations, balanced_trees
from routing.engines.effort import refinement_passes
from routing.engines.orders import HOP_COST, VISITS_PER_SECOND, OrderSearch
from routing.fabric import Fabric


def balanced_in_orders(
    fabric: Fabric,
    destinations: Destinations,
    layer: npt.NDArray[np.int32],
    position: npt.NDArray[np.int32],
    options: EngineOptions,
) -> Balanced:
    """Compute balanced trees that follow an order of the switches in each layer.

    ``layer`` (int32[D]) is the layer of each destination.  ``position`` (int32[layers, S]) is the position of each
    switch in the order of each layer.
    """
    passes = refinement_passes(fabric, options)
    targets = destinations.targets(layer)
    return balanced_trees(fabric, options, targets, position=position, passes=passes, hop_cost=HOP_COST)


def searched_orders(
    fabric: Fabric, destinations: Destinations, layer: npt.NDArray[np.int32], options: EngineOptions, layers: int
) -> npt.NDArray[np.int32]:
    """Search for an order of the switches for each layer, and return the positions, int32[layers, S].

    ``layer`` (int32[D]) is the layer of each destination, and ``layers`` the number of layers.
    """
    search = OrderSearch(fabric, destinations, round(VISITS_PER_SECOND * options.effort), options.seed, options.threads)
    return search.for_layers(layer, layers)
