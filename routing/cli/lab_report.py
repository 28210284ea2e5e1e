"""Report on the tables of a running lab: read the tables from the switches, prove them, and compare them with the
tables before the last action.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ibsim_fixtures.installed_tables import installed_routing
from routing.cli.output import fabric_object
from routing.deadlock.proof import Proof, prove
from routing.difference import Difference, compare, tables_of_fabric
from routing.fabric import Fabric
from routing.reroute import CapacityKept, FreshRoute, Published, capacity_kept
from routing.reroute.translate import translate_tables
from routing.tables import Routing

if TYPE_CHECKING:
    from ibsim_fixtures.lab import Lab
    from ibsim_fixtures.opensm_log import Sweep


@dataclass(frozen=True, eq=False)
class LabState:
    """State of the lab's fabric and tables after an action.

    Attributes
    ----------
    action
        The action, such as "unlink sw1 2", or "start".
    sweep
        OpenSM's sweep after the action.
    fabric, routing, proof
        Fabric as ibnetdiscover sees it, tables read back from its switches, and their proof.
    as_dumped
        Whether the tables in the switches equal the tables in OpenSM's dump files.
    since
        Differences between the previous state and this state; None in the first state.
    broken
        Number of LFT entries of the previous state that the action made invalid.
    kept
        All-to-all and bisection rates of an end port, divided by the rates in the previous state.  If tables from
        scratch were computed, their rates are included too, divided by the rates in the previous state.
    returned
        Whether the forwarding tables equal the forwarding tables of the first state.
    ports
        The plugin's report on packet lifetimes of ports; None without ``--policies``.
    """

    action: str
    sweep: Sweep
    fabric: Fabric
    routing: Routing
    proof: Proof
    as_dumped: bool
    since: Difference | None
    broken: int | None = None
    kept: CapacityKept = field(default_factory=CapacityKept)
    returned: bool = False
    ports: str | None = None

    def as_object(self) -> dict[str, Any]:
        """Return the state as an object for ``--json``."""
        return {
            "action": self.action,
            "engine": self.sweep.engine,
            "routing_seconds": self.sweep.routing_seconds,
            "sweep_seconds": self.sweep.seconds,
            "fabric": fabric_object(self.fabric, None),
            "as_dumped": self.as_dumped,
            "complete": self.proof.complete,
            "certified": self.proof.certified,
            "strength": self.proof.strength,
            "scope": self.proof.scope,
            "entries_changed": None if self.since is None else self.since.entries_changed,
            "entries_broken": self.broken,
            **self.kept.as_dict(),
            "entries": self.routing.lft.size,
            "returned": self.returned,
            "ports_report": self.ports,
        }


def inspect_lab(
    lab: Lab, subnet: Fabric, action: str, sweep: Sweep, before: LabState | None, *, fresh: FreshRoute | None = None
) -> LabState:
    """Read the tables of a running lab from its switches, prove them, and compare them with the previous state.

    ``before`` is the previous state; None for the first state.  ``sweep`` is OpenSM's sweep after ``action``.
    ``subnet`` is the fabric with which the lab was started.  The fabric that ibnetdiscover finds in the lab gets the
    name of ``subnet`` and its rules for classes of end ports.

    ``fresh`` is a function that computes tables from scratch, or None.  The rates of these tables are then measured for
    comparison with the rates of the lab's tables.
    """
    found = lab.fabric()
    fabric = replace(found, name=subnet.name, port_classes=found.port_classes.with_rules_of(subnet.port_classes))
    routing, as_dumped = installed_routing(lab, fabric, sweep.engine)
    since, broken, kept = None, None, CapacityKept()
    now = Published(fabric, routing, prove(fabric, routing))
    if before is not None:
        since = compare(tables_of_fabric(before.fabric, before.routing), tables_of_fabric(fabric, routing))
        broken = translate_tables(before.routing, before.fabric, fabric).broken
        beside = None if fresh is None else fresh(fabric)
        kept = capacity_kept(Published(before.fabric, before.routing, before.proof), now, beside)
    return LabState(action, sweep, fabric, routing, now.proof, as_dumped, since, broken, kept)
