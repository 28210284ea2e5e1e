"""The tables of a running lab: read back from the switches, proven, compared with those before."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from routing.deadlock.proof import Proof, prove
from routing.difference import Difference, compare, tables_of_fabric
from routing.fabric import NO_PORT, Fabric
from routing.formats.table_files import read_tables
from routing.tables import Routing

if TYPE_CHECKING:
    from ibsim_fixtures.lab import Lab
    from ibsim_fixtures.opensm_log import Sweep

QUERIES_AT_ONCE = 8


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
    routing = replace(read_tables(lab.opensm.folder, fabric), lft=lft, sl=service_levels(lab, fabric))
    since = None
    if before is not None:
        since = compare(tables_of_fabric(before.fabric, before.routing), tables_of_fabric(fabric, routing))
    as_dumped = lab.dumped_lfts() == tables
    return State(deed, sweep, fabric, routing, prove(fabric, routing), as_dumped, since)


def service_levels(lab: Lab, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """uint8[L]: the SL that the SA gives the first end port towards each other one.

    The engines of this project that the command line offers give an SL to a destination, whoever asks.
    """
    levels = np.zeros(len(fabric.lids), np.uint8)
    bases = [int(lid) for lid in fabric.endport_lid if lid]
    source = bases[0] if bases else 0
    with ThreadPoolExecutor(QUERIES_AT_ONCE) as pool:
        for lid, level in zip(bases, pool.map(lambda lid: lab.sl(source, lid), bases), strict=True):
            levels[lid] = level
    return levels
