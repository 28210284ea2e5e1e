"""Convert the port rules of a policy to the simulator's settings for packets that cannot move."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from routing.fabric import Fabric
from routing.policy.facts import PortFacts
from routing.policy.model import OPENSM_STALL
from routing.policy.ports import PortPolicies
from routing.simulate.options import Breaker, Remedies, Remedy, lifetime_ticks

_KINDS = {"none": Breaker.NONE, "loop": Breaker.LOOP, "deadlock": Breaker.DEADLOCK}
_CHECKS = 4
"""Number of searches for suspected ports that the simulator makes within the shortest detection time among
all ports.
"""


def remedies_of(
    found: PortPolicies, facts: PortFacts, fabric: Fabric, *, tick: float, packet_bytes: int = 2048
) -> Remedies:
    """Convert the port rules of a policy to the simulator's settings for all cabled switch ports.

    Properties that no rule sets get OpenSM's defaults.

    Parameters
    ----------
    found
        Values that the policy sets at the ports.
    facts
        Properties of the ports, such as OpenSM's default lifetimes.
    fabric
        Simulated fabric.
    tick
        Length of a simulation tick in seconds.
    packet_bytes
        MTU in bytes, the unit of the buffer space that a breaker adds.
    """
    ports = {}
    for switch, port in np.argwhere(facts.cabled).tolist():
        life, stall = int(found.hoq_life[switch, port]), int(found.vl_stall_count[switch, port])
        breaker = found.breaker(switch, port)
        ports[switch, port] = Remedy(
            hoq=lifetime_ticks(int(facts.opensm_hoq[switch, port]) if life < 0 else life, tick),
            stall_count=OPENSM_STALL if stall < 0 else stall,
            breaker=_KINDS[breaker.kind],
            detect=round(breaker.detect_time / tick),
            repeat=max(1, round(breaker.check_period / tick)),
            release=max(1, round(breaker.release_period / tick)),
            extra=breaker.extra_mtus * packet_bytes,
        )
    visits = list(_detection_ticks(ports))
    return Remedies(ports=ports, sample=max(1, min(visits, default=1) // _CHECKS))


def _detection_ticks(ports: dict[tuple[int, int], Remedy]) -> Iterator[int]:
    for remedy in ports.values():
        if remedy.breaker is not Breaker.NONE:
            yield remedy.detect
