"""Orders of the switches, one for each VL, for link-disjoint paths (:mod:`routing.engines.disjoint`).

On the VL of an order, paths lead up (to earlier switches) and then down.  So the VL's CDG is acyclic, and the reverse
of an allowed path is allowed as well.  An order and the reversed order together allow every dependency.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing._kernels.disjoint import MOST_ORDERS, UNREACHED, Reach, balance_order, reach
from routing.engines.orders import breadth_first, top_switches
from routing.fabric import Channels, Fabric
from routing.grids.coordinates import Kind, NotAGrid, find_coordinates

CANDIDATES = 20
"""Number of orders that are generated.  The reversed orders are candidates too."""

BALANCE_STEPS, SMOOTHING_STEPS = 40, 2
"""Number of attempts to move each switch within a candidate order, so that the order is better balanced.  The first
number is for random orders.  The second number is for orders by distance (:data:`LANDMARKS`), but only for every second
one; the others do not change.
"""

LANDMARKS = 6
"""Number of landmarks: randomly chosen switches.  An order by distance sorts the switches by a weighted sum of their
distances from the landmarks.  Each landmark has a random weight.
"""

FIRST_SHORT, FIRST_RICH, SECOND_RICH = 10, 5, 1
"""Points by which the next switch order is chosen.  For each pair of switches, a candidate order gets:

- ``FIRST_SHORT`` points if it allows a shortest path between the two switches, and no order chosen before does.
- ``FIRST_RICH`` points if it serves the pair well, and no order chosen before does.  An order serves a pair well if it
  allows a shortest path and a rich choice of paths (:func:`_served`).
- ``SECOND_RICH`` points if it serves the pair well, and exactly one order chosen before does.
"""


@dataclass(frozen=True, eq=False)
class VlOrders:
    """The orders of the switches, one for each VL.

    Attributes
    ----------
    position
        int32[orders, S], position of each switch in each order.
    degree
        uint8[orders, S, S], by switch order, destination and source: with how many of its channels (at most 255) the
        source can begin a path to the destination that the order allows.
    """

    position: npt.NDArray[np.int32]
    degree: npt.NDArray[np.uint8]

    def allowed(self, channels: Channels) -> npt.NDArray[np.uint8]:
        """Return uint8[edges], for each CDG edge the switch orders that allow it, as bits.  Cost: O(orders x edges)."""
        before, after = channels.edges.channels()
        masks = np.zeros(channels.edges.count, np.uint8)
        found = np.zeros(len(before), np.uint8)
        for order, position in enumerate(self.position):
            rises = position[channels.dst] < position[channels.src]
            found |= (rises[before] | ~rises[after]).astype(np.uint8) << np.uint8(order)
        masks[channels.edges.numbers()] = found
        return masks


def candidate_orders(fabric: Fabric, distance: npt.NDArray[np.uint16], seed: int) -> list[npt.NDArray[np.int32]]:
    """Return candidate orders of the switches, as positions (int32[S] each): random orders, orders by distance, and on
    a tree an order that begins at the top switches.

    Random orders are balanced: each switch has about as many neighbours before it as after it.  Each order is followed
    by the reversed order.

    ``distance`` is uint16[S, S], hops between switches.
    """
    channels, switches = fabric.channels, fabric.switches
    rng = np.random.default_rng(seed)
    found: list[npt.NDArray[np.int32]] = []
    tops = top_switches(fabric)
    if tops:
        found.append(breadth_first(fabric, tops))
    for number in range(CANDIDATES):
        ties = rng.permutation(switches)
        if number % 2:
            roots = rng.integers(switches, size=LANDMARKS)
            key = rng.integers(-8, 9, size=LANDMARKS) @ np.minimum(distance[roots], switches).astype(np.int64)
        else:
            key = np.zeros(switches, np.int64)
        position = np.empty(switches, np.int32)
        position[np.lexsort((ties, key))] = np.arange(switches, dtype=np.int32)
        steps = SMOOTHING_STEPS * (number % 4 == 1) if number % 2 else BALANCE_STEPS
        balance_order(channels, position, steps=steps * switches, seed=int(rng.integers(1 << 31)))
        found.append(position)
    return [each for position in found for each in (position, (switches - 1 - position).astype(np.int32))]


def grid_orders(fabric: Fabric) -> list[npt.NDArray[np.int32]]:
    """Return orders of the switches, as positions (int32[S] each), that together allow all dimension-ordered paths.

    For each pair of switches, one order allows the paths in both directions.  Meshes, HyperX and hypercubes have such
    orders.  The list is empty for other fabrics.

    Notes
    -----
    Each order sorts the switches by their coordinates, ascending or descending in each dimension.  A path between two
    switches ascends or descends in each dimension that it uses.  For each path, one of the orders has the same
    direction as the path in all of these dimensions, or the opposite direction in all of them.  In this order, the path
    leads only down or only up, and the path back does the opposite.  So n dimensions need 2^(n-1) orders.
    """
    try:
        grids = find_coordinates(fabric).grids
    except NotAGrid:
        return []
    if len(grids) != 1 or Kind.RING in grids[0].kind or len(grids[0].switches) < fabric.switches:
        return []
    position = grids[0].position
    found = []
    for signs in range(1 << max(0, grids[0].dimensions - 1)):
        signed = [column * (-1 if signs >> axis & 1 else 1) for axis, column in enumerate(position.T)]
        place = np.empty(fabric.switches, np.int32)
        place[grids[0].switches[np.lexsort(signed)]] = np.arange(fabric.switches, dtype=np.int32)
        found.append(place)
    return found


def choose_orders(
    fabric: Fabric,
    distance: npt.NDArray[np.uint16],
    required: Sequence[npt.NDArray[np.int32]] = (),
    *,
    count: int,
    wanted: int,
    most_hops: int,
    seed: int,
) -> VlOrders:
    """Choose switch orders that together allow good paths for most pairs of switches.

    The orders are chosen one after the other.  After the required orders, the next order is always the candidate with
    the most points (:data:`FIRST_SHORT`).

    Parameters
    ----------
    fabric
        The fabric.
    distance
        uint16[S, S], hops between switches.
    required
        Orders that are chosen first, as positions (int32[S] each), at most ``count``.
    count
        Number of orders, at most ``MOST_ORDERS``.
    wanted
        Number of link-disjoint paths that each pair should have.
    most_hops
        Maximum length of a path.
    seed
        Seed of the candidates.

    Notes
    -----
    Cost: O(S C) for each candidate, O(S^2) for each candidate and order.
    """
    ends = fabric.terminals_at > 0
    counted = (ends[:, None] | ends[None, :]) & (distance != UNREACHED) & (distance > 0)
    positions = [*required, *candidate_orders(fabric, distance, seed)]
    offers = [reach(fabric.channels, position, most_hops=most_hops) for position in positions]
    has_short, rich_count = np.zeros(counted.shape, bool), np.zeros(counted.shape, np.int64)
    chosen: list[int] = []
    for place in range(min(count, MOST_ORDERS, len(positions))):
        best, most = -1, -1
        for number in [place] if place < len(required) else set(range(len(offers))).difference(chosen):
            offer = offers[number]
            short, rich = _served(offer, distance, counted, wanted)
            gain = FIRST_SHORT * int(np.count_nonzero(short & ~has_short))
            gain += FIRST_RICH * int(np.count_nonzero(rich & (rich_count == 0)))
            gain += SECOND_RICH * int(np.count_nonzero(rich & (rich_count == 1)))
            if gain > most:
                best, most = number, gain
        short, rich = _served(offers[best], distance, counted, wanted)
        has_short |= short
        rich_count += rich
        chosen.append(best)
    return VlOrders(np.stack([positions[each] for each in chosen]), np.stack([offers[each].degree for each in chosen]))


def _served(
    offer: Reach, distance: npt.NDArray[np.uint16], counted: npt.NDArray[np.bool_], wanted: int
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return two arrays bool[S, S]: the pairs of switches between which a switch order allows a shortest path, and the
    pairs for which it also allows a rich choice of paths.

    The choice is rich if the allowed paths of a pair begin with at least ``wanted`` different channels, and end with at
    least ``wanted`` different channels.  ``offer`` holds the paths that the order allows.  Only pairs that ``counted``
    marks are in the results.
    """
    short = counted & (offer.hops == distance)
    return short, short & (np.minimum(offer.degree, offer.degree.T) >= wanted)
