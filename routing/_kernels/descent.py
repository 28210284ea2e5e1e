"""Kernel wrapper: hops of paths that lead up and then down on trees, and tables in which few pairs of flows share
channels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.balance import Balanced, Targets, network_of, targets_of
from routing._kernels.native import call, lib, struct_of
from routing.fabric import Channels

NO_CHANNEL = 255
"""Value that stands for "no channel", in place of the index of a channel."""


def updown_hops(
    channels: Channels, position: npt.NDArray[np.int32], roots: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """Compute the hops of shortest paths that lead up and then down in a switch order.  All paths to one switch form a
    tree: each switch has one next hop.

    Parameters
    ----------
    channels
        The channels of the fabric.
    position
        int32[S], position of each switch in the switch order; a channel leads up if it leads to a lower position.
    roots
        int32[R], the R switches where the paths end.

    Returns
    -------
    int32[R, S]
        Hops from each switch; -1 if there is no path.  Cost: O(R C).
    """
    switches = len(position)
    unused = np.zeros(max(len(channels), switches))
    network = network_of(channels, unused[: len(channels)], unused[:switches])
    hops = np.empty((len(roots), switches), np.int32)
    call(lib.ibn_trees_updown_hops, network, position, len(roots), roots, hops)
    return hops


@dataclass(frozen=True, eq=False)
class TreeSlots:
    """Switch order and slots of a tree topology.

    A group is the switches of one level that are connected with each other by links to the level below.  The switches
    of a group are numbered from 0 on, and the number of a switch is its slot.  In the first pass of the descent, each
    switch prefers the switches of the group above it in turn: one slot for some destinations, then the next slot.

    Attributes
    ----------
    position
        int32[S], position of each switch in the switch order; a channel leads up if it leads to a lower position.
    level
        int32[S], level of each switch: the number of tiers below it.
    slot
        int32[S], slot of each switch: its number in its group.
    slots
        int32[S], number of slots above each switch: the number of switches in the group directly above it, at least 1.
    stride
        int32[S], number of consecutive destinations for which each switch prefers the same slot in the first pass,
        before it goes on to the next slot.
    """

    position: npt.NDArray[np.int32]
    level: npt.NDArray[np.int32]
    slot: npt.NDArray[np.int32]
    slots: npt.NDArray[np.int32]
    stride: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class DescentCosts:
    """Costs that the descent minimises: pairs of flows that share channels, and utilisation above a ceiling.

    Attributes
    ----------
    meet_source, meet_target
        float64[S] and float64[D], weight of each source switch and of each destination.  The weight of a flow is the
        product of the weights of its source and of its destination.  The weights of two flows determine the cost of a
        channel that both flows share.
    ceiling
        float64[C], ceiling of each channel: utilisation (flow times inverse capacity) up to which the channel has no
        extra cost.  The lowest ceiling, which most channels have, is the common ceiling.
    least_peak
        Lower bound: with any tables, some channel with the common ceiling has at least this utilisation.
    discount
        float64[sweeps], one number from 0 to 1 for each pass.  If two flows share two consecutive channels, their pair
        has a cost at both channels.  At the first of the two channels, this fraction of the cost is left out.
    price
        float64[sweeps], one number for each pass: the cost of a unit of utilisation above a ceiling.
    """

    meet_source: npt.NDArray[np.float64]
    meet_target: npt.NDArray[np.float64]
    ceiling: npt.NDArray[np.float64]
    least_peak: float
    discount: npt.NDArray[np.float64]
    price: npt.NDArray[np.float64]


def descend(
    channels: Channels,
    inverse_capacity: npt.NDArray[np.float64],
    sources: npt.NDArray[np.float64],
    targets: Targets,
    *,
    tree: TreeSlots,
    order: npt.NDArray[np.int32],
    costs: DescentCosts,
    seed: int,
    start: npt.NDArray[np.uint8] | None = None,
) -> Balanced:
    """Compute trees in which few pairs of flows share channels.  The paths are shortest paths that lead up and then
    down.

    Parameters
    ----------
    channels
        The channels of the fabric.
    inverse_capacity
        float64[C], inverse capacity of each channel (reference capacity / capacity).
    sources
        float64[S], flow that each switch sends to every LMC group.
    targets
        The destinations; the field ``layer`` is not used.  Destinations with a share of 0 get trees that avoid the flow
        to other destinations.
    tree
        The switch order, and the slots for the first pass.
    order
        int32[D], destinations in the order of the first pass.
    costs
        Weights, ceilings, and the costs of each pass.
    seed
        Seed of the random numbers by which destinations, and switches at equal distance, are shuffled.
    start
        uint8[D, S], index of the channel that each switch takes in the first pass, if the channel is on a shortest
        path.  255: the slots decide.  None: 255 everywhere.

    Returns
    -------
    Balanced
        The trees and loads; ``max_utilisation`` has one value.

    Notes
    -----
    One thread.  Cost: O(D C) per pass.  Memory: 2 D S bytes, C bytes per root, and 8 bytes per turn.
    """
    switches, count = len(sources), len(targets.root)
    network, aims = network_of(channels, inverse_capacity, sources), targets_of(targets)
    first = np.full((count, switches), NO_CHANNEL, np.uint8) if start is None else start
    sweeps = len(costs.price)
    options = struct_of("ibn_descent_options", tree, costs, sweeps=sweeps, seed=seed, order=order, start=first)
    next_channel = np.empty((count, switches), np.uint8)
    load = np.zeros(len(channels))
    call(lib.ibn_trees_descend, network, aims, options, next_channel, load)
    peak = np.array([float((load * inverse_capacity).max(initial=0.0))])
    return Balanced(next_channel=next_channel, load=load, max_utilisation=peak)
