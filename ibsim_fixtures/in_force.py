"""The tables in force in a running lab, read back from the switches and from OpenSM's SA, as one value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from routing.fabric import NO_PORT, Fabric
from routing.tables import Provenance, Routing

if TYPE_CHECKING:
    from ibsim_fixtures.lab import Lab


def in_force(lab: Lab, fabric: Fabric, engine: str | None = None) -> tuple[Routing, bool]:
    """What switches and SA say, and whether the forwarding tables are those that OpenSM dumped.

    Parameters
    ----------
    lab
        A running lab.
    fabric
        :meth:`Lab.fabric` as it is now.
    engine
        For the provenance.
    """
    tables = lab.switch_lfts()
    lft = np.full((fabric.switches, len(fabric.lids)), NO_PORT, np.uint8)
    for row, guid in enumerate(fabric.switch_guid.tolist()):
        for lid, port in tables.get(guid, {}).items():
            if lid < lft.shape[1]:
                lft[row, lid] = port
    made = Provenance(engine or "unknown", fabric_digest=fabric.digest)
    routing = Routing(lft, service_levels(lab, fabric), sl2vl(lab, fabric), 1, 1, made)
    return routing, lab.dumped_lfts() == tables


def service_levels(lab: Lab, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """SLs as the SA gives them: uint8[L] if they depend on the destination alone, else uint8[L, L].

    Asked for base LIDs only; all LIDs of a port are taken to have the SLs of its base LID.
    """
    base, count = _base_lids(fabric), len(fabric.lids)
    asked, known = np.zeros((count, count), np.uint8), np.zeros((count, count), bool)
    for (source, to), level in lab.sls().items():
        if source < count and to < count:
            asked[source, to], known[source, to] = level, True
    most = asked.max(axis=0, initial=0)
    if ((asked == most) | ~known).all():
        return np.asarray(most[base], np.uint8)
    return np.ascontiguousarray(asked[np.ix_(base, base)])


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
