"""Compute the flow on each channel when every end port sends to every other end port, and the rate of bisections.

The balance of tables is measured by this flow.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from routing._kernels.load import WHOLE, all_to_all, routes_of
from routing.endports import reference_rate
from routing.fabric import Channels, Fabric
from routing.quality import bisection_share
from routing.tables import Routing

BISECTIONS = 32
"""Number of random bisections that are measured for each fault, with a fixed seed.

With this number, the measurement takes at most a seventh of the time of a re-route.
"""


def flow_towards(
    fabric: Fabric, routing: Routing, lids: npt.NDArray[np.bool_] | None = None, *, threads: int
) -> npt.NDArray[np.int64]:
    """Return int64[C], the flow on each channel when every end port sends to every other end port.

    Each pair of end ports exchanges :data:`WHOLE` units of flow (a fixed number), times the weights of both end ports.
    If ``lids`` (bool[L]) is given, only traffic towards these LIDs counts.

    Cost: O(S) for each LID that counts.
    """
    weight = lid_weights(fabric)
    if lids is not None:
        weight = np.where(lids, weight, 0)
    routes = routes_of(fabric, np.ascontiguousarray(routing.lft))
    return all_to_all(routes, weight, fabric.source_weight_at, threads, hops=False)[0]


def highest_utilisation(channels: Channels, flow: npt.NDArray[np.int64]) -> float:
    """Return the highest utilisation of any channel: flow (int64[C]) divided by capacity."""
    return float((flow / channels.capacity).max(initial=0.0))


def lid_weights(fabric: Fabric) -> npt.NDArray[np.int64]:
    """Return int64[L], the units of flow that a source of weight 1 sends to each LID.

    The source sends :data:`WHOLE` units to each end port, times the weight of the end port as a destination.  The LIDs
    of an end port share these units equally.  LIDs of switches get 0.  So do LIDs of end ports
    without weight, such as aggregation nodes by default.
    """
    lids, weight = fabric.lids, np.zeros(len(fabric.lids), np.int64)
    owned = lids.endport >= 0
    endport = lids.endport[owned]
    weight[owned] = fabric.endport_weight[endport, 1] * (WHOLE >> fabric.endport_lmc[endport].astype(np.int64))
    return weight


def inverse_capacity_of_base(channels: Channels) -> npt.NDArray[np.int64]:
    """Return int64[C], the inverse capacity of each channel: 100 for the fastest links, and proportionally more for
    slower links.
    """
    capacity = channels.capacity
    weight: npt.NDArray[np.int64] = np.rint(100 * capacity.max(initial=0.0) / capacity).astype(np.int64)
    return weight


def bisection_rate(fabric: Fabric, routing: Routing, *, threads: int = 1) -> float:
    """Return the mean rate of the flows in :data:`BISECTIONS` random bisections, in Gb/s.

    In each bisection, every end port of one random half sends to an end port of the other half.  The result is NaN
    with fewer than two end ports.
    """
    return bisection_share(fabric, routing, bisections=BISECTIONS, threads=threads) * reference_rate(fabric)
