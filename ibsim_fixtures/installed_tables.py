"""Read back the tables that are in force in a running lab, from the switches and from OpenSM's SA."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ibsim_fixtures.processes import poll
from routing.fabric import NO_PORT, Fabric
from routing.tables import Provenance, Routing

if TYPE_CHECKING:
    from ibsim_fixtures.lab import Lab
    from ibsim_fixtures.records import Records


def installed_routing(lab: Lab, fabric: Fabric, engine: str | None = None) -> tuple[Routing, bool]:
    """Read the installed tables: LFTs and SL2VL tables from the switches, SLs from the SA.

    Parameters
    ----------
    lab
        Running lab.
    fabric
        Present fabric, as :meth:`Lab.fabric` returns it.
    engine
        Name of the engine to record as the origin of the tables.

    Returns
    -------
    routing
        The tables in force.
    as_dumped
        Whether the LFTs in the switches equal the LFTs in OpenSM's dump.
    """
    tables = lab.switch_lfts(fabric)
    lft = np.full((fabric.switches, len(fabric.lids)), NO_PORT, np.uint8)
    for row, guid in enumerate(fabric.switch_guid.tolist()):
        table = tables.get(guid, {})
        lids = np.fromiter(table, np.int64, len(table))
        known = lids < lft.shape[1]
        lft[row, lids[known]] = np.fromiter(table.values(), np.uint8, len(table))[known]
    made = Provenance(engine or "unknown", fabric_digest=fabric.digest)
    records = lab.records()
    if records is None:
        sl, vls = service_levels(lab, fabric), sl2vl(lab, fabric)
    else:
        sl, vls = _recorded_sls(records, fabric), _recorded_sl2vl(records, fabric)
    # OpenSM may still be writing the dump, because a switch's trap has started another sweep.  So the comparison of the
    # LFTs with the dump is repeated for up to 2 seconds, until the LFTs are equal.
    return Routing(lft, sl, vls, 1, 1, made), poll(lambda: lab.dumped_lfts() == tables, seconds=2.0)


def service_levels(lab: Lab, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """Query the SA for the SLs of all paths.  The result is uint8[L] (by destination LID) if the SLs depend only on the
    destination, otherwise uint8[L, L] (by source LID and destination LID).

    Only base LIDs are queried.  The other LIDs of a port are assumed to have the SLs of its base LID.
    """
    count = len(fabric.lids)
    asked, known = np.zeros((count, count), np.uint8), np.zeros((count, count), bool)
    for (source, to), sl in lab.sls().items():
        if source < count and to < count:
            asked[source, to], known[source, to] = sl, True
    return _by_destination(fabric, asked, known)


def _recorded_sls(records: Records, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """Return the SLs from the file that the record plugin has written, in the form of :func:`service_levels`."""
    count = len(fabric.lids)
    asked, known = np.zeros((count, count), np.uint8), np.zeros((count, count), bool)
    there = np.flatnonzero(records.lids < count)
    position = np.ix_(records.lids[there], records.lids[there])
    asked[position], known[position] = records.sl[np.ix_(there, there)], True
    known[records.lids[there], records.lids[there]] = False
    return _by_destination(fabric, asked, known)


def _by_destination(
    fabric: Fabric, asked: npt.NDArray[np.uint8], known: npt.NDArray[np.bool_]
) -> npt.NDArray[np.uint8]:
    """Return the SLs by destination LID (uint8[L]) if all known SLs depend only on the destination.

    Otherwise return the SLs by source LID and destination LID (uint8[L, L]).  ``asked`` (uint8[L, L]) has the SLs that
    the SA returned, by source LID and destination LID.  ``known`` (bool[L, L]) is false where the SA returned no SL.
    """
    base = _base_lids(fabric)
    # `most` is the largest SL of each destination.  Unknown SLs are 0 in `asked`, so they do not affect `most`.
    most = asked.max(axis=0, initial=0)
    if ((asked == most) | ~known).all():
        return np.asarray(most[base], np.uint8)
    return np.ascontiguousarray(asked[np.ix_(base, base)])


def _base_lids(fabric: Fabric) -> npt.NDArray[np.int64]:
    """Return int64[L]: for each LID, the base LID of the end port that owns it, or the LID itself if no end port owns
    it.
    """
    base = np.arange(len(fabric.lids))
    owned = fabric.lids.endport >= 0
    base[owned] = fabric.endport_lid[fabric.lids.endport[owned]]
    return base


def sl2vl(lab: Lab, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """Read the SL2VL tables from the switches.

    The result is uint8[16] (the VL of each SL) if all rows in use are equal.  Otherwise the result is
    uint8[S, P, P, 16], by switch, in-port, out-port and SL.

    A row is in use if its ports are cabled (:func:`used_sl2vl_rows`).  Rows that are not in use are 0.
    """
    used = used_sl2vl_rows(fabric)
    ports = [sorted(set(np.argwhere(used[row])[:, 1].tolist())) for row in range(fabric.switches)]
    found = lab.switch_sl2vl(dict(zip(fabric.switch_guid.tolist(), ports, strict=True)))
    keys = np.array(list(found), np.uint64).reshape(-1, 3)
    rows = np.array(list(found.values()), np.uint8).reshape(-1, 16)
    return _sl2vl_tables(fabric, keys[:, 0], keys[:, 1], keys[:, 2], rows)


def _recorded_sl2vl(records: Records, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """Return the SL2VL tables from the file that the record plugin has written, in the form of :func:`sl2vl`."""
    rows = records.rows
    return _sl2vl_tables(fabric, rows["guid"], rows["in"], rows["out"], rows["vl"])


def _sl2vl_tables(
    fabric: Fabric,
    guid: npt.NDArray[np.uint64],
    entry: npt.NDArray[np.integer[Any]],
    leave: npt.NDArray[np.integer[Any]],
    rows: npt.NDArray[np.uint8],
) -> npt.NDArray[np.uint8]:
    """Build SL2VL tables from rows, in the form of :func:`sl2vl`.  Without rows, each SL has the VL of the same number.

    ``rows[i]`` (uint8[16]) has the VL of each SL.  This row belongs to the switch with GUID ``guid[i]``, the in-port
    ``entry[i]`` and the out-port ``leave[i]``.
    """
    if not len(rows):
        return np.arange(16, dtype=np.uint8)
    if (rows == rows[0]).all():
        return np.array(rows[0], np.uint8)
    ports = 1 + int(fabric.switch_ports.max(initial=0))
    tables = np.zeros((fabric.switches, ports, ports, 16), np.uint8)
    here = np.isin(guid, fabric.switch_guid)
    switch = np.searchsorted(fabric.switch_guid, guid[here])
    tables[switch, entry[here].astype(int), leave[here].astype(int)] = rows[here]
    return tables


def used_sl2vl_rows(fabric: Fabric) -> npt.NDArray[np.bool_]:
    """Return for each SL2VL row (switch, in-port, out-port) whether a packet can use the row: bool[S, P, P].

    The out-port must be cabled, and the in-port must be cabled or be port 0.  OpenSM writes no rows for out-ports
    without a link.  So the rows of such ports keep the initial values of the switch.
    """
    cabled = np.zeros((fabric.switches, 1 + int(fabric.switch_ports.max(initial=0))), bool)
    of_switch = fabric.link_device < fabric.switches
    cabled[fabric.link_device[of_switch], fabric.link_port[of_switch]] = True
    entry = cabled.copy()
    entry[:, 0] = True
    return np.asarray(entry[:, :, None] & cabled[:, None, :])
