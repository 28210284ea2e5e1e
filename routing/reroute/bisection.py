"""Measure the rate of random bisections.  A re-route reports this rate as a part of its cost."""

from __future__ import annotations

from routing.endports import reference_rate
from routing.fabric import Fabric
from routing.quality import bisection_share
from routing.tables import Routing

BISECTIONS = 32
"""Number of random bisections that are measured for each fault, with a fixed seed.

The measurement takes at most a seventh of the time of a re-route.
"""


def bisection_rate(fabric: Fabric, routing: Routing, *, threads: int = 1) -> float:
    """Return the mean rate of a flow of :data:`BISECTIONS` random bisections, in Gb/s.

    In each bisection, every end port of one random half sends to an end port of the other half.  The result is NaN
    with fewer than two end ports.
    """
    return bisection_share(fabric, routing, bisections=BISECTIONS, threads=threads) * reference_rate(fabric)
