"""The tables of a running lab: read back from the switches, proven, compared with those before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ibsim_fixtures.in_force import in_force
from routing.deadlock.proof import Proof, prove
from routing.difference import Difference, compare, tables_of_fabric
from routing.fabric import Fabric
from routing.reroute.translate import lay_over
from routing.tables import Routing

if TYPE_CHECKING:
    from ibsim_fixtures.lab import Lab
    from ibsim_fixtures.opensm_log import Sweep


@dataclass(frozen=True, eq=False)
class State:
    """What a running fabric looks like.

    Attributes
    ----------
    deed
        What was done before: "start", "unlink sw1 2".
    sweep
        OpenSM's sweep after it.
    fabric, routing, proof
        The fabric as ibnetdiscover sees it, the tables in its switches, what can be proven of them.
    as_dumped
        Whether the tables in the switches are those that OpenSM dumped.
    since
        What differs from the state before, if there was one.
    broken
        Entries of the state before that no longer held.
    returned
        Whether the forwarding tables are those of the start again.
    ports
        What the plugin said of the values of single ports, where there are rules for them.
    """

    deed: str
    sweep: Sweep
    fabric: Fabric
    routing: Routing
    proof: Proof
    as_dumped: bool
    since: Difference | None
    broken: int | None = None
    returned: bool = False
    ports: str | None = None

    def as_object(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "deed": self.deed,
            "engine": self.sweep.engine,
            "routing_seconds": self.sweep.routing_seconds,
            "sweep_seconds": self.sweep.seconds,
            "switches": self.fabric.switches,
            "links": self.fabric.links,
            "as_dumped": self.as_dumped,
            "complete": self.proof.complete,
            "certified": self.proof.certified,
            "strength": self.proof.strength,
            "scope": self.proof.scope,
            "entries_changed": None if self.since is None else self.since.entries_changed,
            "entries_broken": self.broken,
            "entries": self.routing.lft.size,
            "returned": self.returned,
            "ports": self.ports,
        }


def look(lab: Lab, name: str, deed: str, sweep: Sweep, before: State | None) -> State:
    """Read back and prove what a lab has now."""
    fabric = replace(lab.fabric(), name=name)
    routing, as_dumped = in_force(lab, fabric, sweep.engine)
    since = broken = None
    if before is not None:
        since = compare(tables_of_fabric(before.fabric, before.routing), tables_of_fabric(fabric, routing))
        broken = lay_over(before.routing, before.fabric, fabric).broken
    return State(deed, sweep, fabric, routing, prove(fabric, routing), as_dumped, since, broken)
