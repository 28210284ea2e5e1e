"""Throughput of the tables of a fabric, and its loss after a fault."""

from __future__ import annotations

import math
from dataclasses import dataclass

from routing.fabric import Fabric
from routing.flows import reference_rate
from routing.quality import all_to_all_share, bisection_share, channel_loads
from routing.reroute import Published
from routing.reroute.flow import flow_towards
from routing.reroute.rebalance import kept_share
from routing.tables import Routing
from routing.whatif.connectivity import ConnectivityLoss

BISECTIONS = 32
"""Number of random bisections per scenario, with a fixed seed; they cost at most a seventh of a re-route."""


@dataclass(frozen=True)
class Capacity:
    """Throughput of the tables of a fabric.

    Attributes
    ----------
    a2a
        All-to-all share; infinite if no channel carries traffic.
    bisection
        Effective bisection bandwidth over :data:`BISECTIONS` patterns, as a share of the reference rate; NaN with fewer
        than two end ports.
    reference_rate
        Reference rate in Gb/s.
    endports, pairs
        Number of end ports with a LID on a switch, and of their ordered pairs that are connected.
    """

    a2a: float
    bisection: float
    reference_rate: float
    endports: int
    pairs: int

    @classmethod
    def of(cls, fabric: Fabric, routing: Routing, apart: ConnectivityLoss, *, threads: int) -> Capacity:
        """Measure tables of a fabric whose connected components are known."""
        return cls(
            a2a=all_to_all_share(fabric, channel_loads(fabric, routing, threads=threads)),
            bisection=bisection_share(fabric, routing, bisections=BISECTIONS, threads=threads),
            reference_rate=reference_rate(fabric),
            endports=apart.endports,
            pairs=apart.pairs,
        )


def loss(before: Capacity, now: Capacity) -> float:
    """Return the lost share of the earlier all-to-all traffic, due to disconnected pairs and a lower rate."""
    if not before.pairs or not now.pairs:
        return 1.0 if before.pairs else 0.0
    # A share is in units of one end port's traffic to all others, whose number may have changed.
    had, has = before.a2a / (before.endports - 1), now.a2a / (now.endports - 1)
    rate = has / had if has < had else 1.0
    return 1.0 - rate * min(now.pairs, before.pairs) / before.pairs


def bisection_loss(before: Capacity, now: Capacity) -> float | None:
    """Return the lost share of the traffic of random bisections; None if there was no traffic before.

    The traffic is the mean rate of a flow times the number of end ports; a flow without a path has the rate 0.
    """
    had, has = (
        0.0 if math.isnan(there.bisection) else there.bisection * there.reference_rate * there.endports
        for there in (before, now)
    )
    return max(0.0, 1.0 - has / had) if had else None


def share_kept(before: Published, now: Published) -> float | None:
    """Return an end port's all-to-all rate relative to that of earlier tables, as a re-route reports it.

    Disconnected pairs are left out, so the rate can grow if fewer end ports send.

    Returns
    -------
    float or None
        None if no channel carries traffic, before or now.
    """
    return kept_share(before, now.fabric.channels, flow_towards(now.fabric, now.routing, threads=1))
