"""Throughput of the routing tables of a fabric, and the part of the throughput that is lost by a fault."""

from __future__ import annotations

import math
from dataclasses import dataclass

from routing.endports import reference_rate
from routing.fabric import Fabric
from routing.quality import all_to_all_share, bisection_share, channel_loads
from routing.reroute.flow import BISECTIONS
from routing.tables import Routing
from routing.whatif.connectivity import ConnectivityLoss


@dataclass(frozen=True)
class Capacity:
    """Throughput that the routing tables of a fabric allow.

    Attributes
    ----------
    a2a
        All-to-all rate of an end port as a share of the reference rate; infinite if no channel carries traffic.
    pair_rate
        Rate in Gb/s of each pair of end ports in all-to-all traffic; infinite if no channel carries traffic.
    bisection
        Mean throughput of :data:`BISECTIONS` random bisections (traffic between two random halves of the end ports), as
        a share of the reference rate; NaN with fewer than two end ports.
    reference_rate
        Data rate in Gb/s to which the shares refer.
    endports, pairs
        Number of end ports that count in traffic, and number of ordered pairs of such end ports within one component.
    """

    a2a: float
    pair_rate: float
    bisection: float
    reference_rate: float
    endports: int
    pairs: int

    @classmethod
    def of(cls, fabric: Fabric, routing: Routing, apart: ConnectivityLoss, *, threads: int) -> Capacity:
        """Measure the throughput that tables allow.  ``apart`` describes the connected components of the fabric."""
        loads = channel_loads(fabric, routing, threads=threads)
        used = loads > 0
        return cls(
            a2a=all_to_all_share(fabric, loads),
            pair_rate=float((fabric.channels.capacity[used] / loads[used]).min(initial=math.inf)),
            bisection=bisection_share(fabric, routing, bisections=BISECTIONS, threads=threads),
            reference_rate=reference_rate(fabric),
            endports=apart.endports,
            pairs=apart.pairs,
        )


def loss(before: Capacity, now: Capacity) -> float:
    """Return the lost share of the all-to-all traffic, relative to the traffic before the fault.

    Traffic is lost if pairs of end ports are disconnected, or if the rate of a pair is lower than before.
    """
    if not before.pairs or not now.pairs:
        return 1.0 if before.pairs else 0.0
    rate = now.pair_rate / before.pair_rate if now.pair_rate < before.pair_rate else 1.0
    return 1.0 - rate * min(now.pairs, before.pairs) / before.pairs


def bisection_loss(before: Capacity, now: Capacity) -> float | None:
    """Return the share of the earlier bisection traffic that is lost; None if there was no such traffic.

    Bisection traffic is the mean rate of a flow, times the number of end ports.  A flow without a path has the rate 0.
    """
    had, has = (
        0.0 if math.isnan(there.bisection) else there.bisection * there.reference_rate * there.endports
        for there in (before, now)
    )
    return max(0.0, 1.0 - has / had) if had else None
