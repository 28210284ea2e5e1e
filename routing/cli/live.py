"""The tables of a running lab: read back from the switches, proven, compared with those before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from routing.deadlock.proof import Proof, prove
from routing.difference import Difference, compare, tables_of_fabric
from routing.fabric import NO_PORT, Fabric
from routing.tables import Provenance, Routing

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
    """

    deed: str
    sweep: Sweep
    fabric: Fabric
    routing: Routing
    proof: Proof
    as_dumped: bool
    since: Difference | None

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
            "entries": self.routing.lft.size,
        }


def look(lab: Lab, name: str, deed: str, sweep: Sweep, before: State | None) -> State:
    """Read back and prove what a lab has now."""
    fabric = replace(lab.fabric(), name=name)
    tables = lab.switch_lfts()
    lft = np.full((fabric.switches, len(fabric.lids)), NO_PORT, np.uint8)
    for row, guid in enumerate(fabric.switch_guid.tolist()):
        for lid, port in tables.get(guid, {}).items():
            if lid < lft.shape[1]:
                lft[row, lid] = port
    made = Provenance(sweep.engine or "unknown", fabric_digest=fabric.digest)
    routing = Routing(lft, service_levels(lab, fabric), sl2vl(lab, fabric), 1, 1, made)
    since = None
    if before is not None:
        since = compare(tables_of_fabric(before.fabric, before.routing), tables_of_fabric(fabric, routing))
    as_dumped = lab.dumped_lfts() == tables
    return State(deed, sweep, fabric, routing, prove(fabric, routing), as_dumped, since)


def service_levels(lab: Lab, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """SLs as the SA gives them to every CA: uint8[L] if they depend on the destination alone, else uint8[L, L].

    Asked for base LIDs only; all LIDs of an end port are taken to have the SL of its base LID.
    """
    base = _base_lids(fabric)
    terminal = {int(guid): row for row, guid in enumerate(fabric.terminal_guid)}
    asked = np.zeros((fabric.terminals + 1, len(fabric.lids)), np.uint8)
    for (guid, lid), level in lab.ca_sls().items():
        if guid in terminal and lid < asked.shape[1]:
            asked[terminal[guid], lid] = level
    asked = asked[:, base]
    row = np.full(len(fabric.lids), fabric.terminals)
    owned = fabric.lids.endport >= 0
    row[owned] = fabric.endport_terminal[fabric.lids.endport[owned]]
    levels = asked[row]
    most = levels.max(axis=0, initial=0)
    # A CA is not asked for the way to itself, so its own entry is 0 whatever the others say.
    own = row[:, None] == row[None, base]
    alike = bool(((levels == most) | own | ~owned[:, None]).all())
    return np.asarray(most if alike else levels, np.uint8)


def _base_lids(fabric: Fabric) -> npt.NDArray[np.int64]:
    """int64[L]: the base LID of the end port that owns each LID; the LID itself where none does."""
    base = np.arange(len(fabric.lids))
    owned = fabric.lids.endport >= 0
    base[owned] = fabric.endport_lid[fabric.lids.endport[owned]]
    return base


def sl2vl(lab: Lab, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """SL-to-VL tables as the switches have them: uint8[16] if they are all the same, else uint8[S, P, P, 16]."""
    ports = 1 + int(fabric.switch_ports.max(initial=0))
    row_of = {int(guid): row for row, guid in enumerate(fabric.switch_guid)}
    found = lab.switch_sl2vl()
    if len(set(found.values())) <= 1:
        return np.array(next(iter(found.values()), range(16)), np.uint8)
    tables = np.zeros((fabric.switches, ports, ports, 16), np.uint8)
    for (guid, entry, leave), vls in found.items():
        if guid in row_of:
            tables[row_of[guid], entry, leave] = vls
    return tables
