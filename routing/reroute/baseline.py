"""Restore LFT columns of the baseline tables (the tables of the fault-free fabric) as soon as they are valid again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from routing._kernels.shared_copy import forbid_writes, writable_copy
from routing.fabric import NO_PORT, Fabric
from routing.reroute.translate import invalidate_lost_entries, translate_tables
from routing.reroute.values import Published
from routing.tables import Routing


def restore_baseline_entries(
    routing: Routing, baseline: Published, fabric: Fabric, differing_lids: npt.NDArray[np.intp] | None = None
) -> tuple[Routing, int]:
    """Replace LFT columns by the columns of the baseline tables, if every entry of the baseline's column is valid.

    Parameters
    ----------
    routing
        Present tables, in the rows and columns of ``fabric``.
    baseline
        The tables of the fault-free fabric.
    fabric
        The present fabric.
    differing_lids
        The LIDs whose entries or SLs differ between ``routing`` and the baseline tables.  Give these LIDs only if
        ``fabric`` and the fault-free fabric have the same switches and LIDs.  None: all LIDs are compared.

    Returns
    -------
    routing : Routing
        The tables with the restored columns and their SLs.
    count : int
        Number of LFT entries that changed.
    """
    lids, parts = fabric.lids, fabric.component
    lft, sl, lid = _baseline_now(baseline, fabric, differing_lids)
    if sl.shape[:-1] != routing.sl.shape[:-1] or not len(lid):
        return routing, 0
    target = lids.switch[lid]
    here = np.flatnonzero(target >= 0)
    lft[target[here], here] = lids.port[lid[here]]
    valid, sls = routing.lft[:, lid], routing.sl[..., lid]
    other = (lft != valid).any(axis=0) | routing.service_levels.of_any_sender(sl != sls)
    column = np.flatnonzero(other & (target >= 0))
    reached = parts[:, None] == parts[target[column]]
    column = column[~((lft[:, column] == NO_PORT) & reached).any(axis=0)]
    if not len(column):
        return routing, 0
    differs = valid[:, column] != lft[:, column]
    rows = differs.any(axis=1)
    tables, new_sl = writable_copy(routing.lft), routing.sl.copy()
    tables[np.ix_(rows, lid[column])], new_sl[..., lid[column]] = lft[np.ix_(rows, column)], sl[..., column]
    forbid_writes(tables)
    return replace(routing, lft=tables, sl=new_sl), int(np.count_nonzero(differs))


def _baseline_now(
    baseline: Published, fabric: Fabric, differing_lids: npt.NDArray[np.intp] | None
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], npt.NDArray[np.intp]]:
    """Return LFT columns of the baseline tables in the rows of the present fabric, the SLs of these columns, and their
    LIDs.

    Invalid entries are 255.  If ``differing_lids`` is given, only the columns of these LIDs are returned.
    """
    if differing_lids is None:
        then = translate_tables(baseline.routing, baseline.fabric, fabric).routing
        return then.lft, then.sl, np.arange(then.lft.shape[1])
    lft = baseline.routing.lft[:, differing_lids]
    invalidate_lost_entries(lft, baseline.fabric, fabric, differing_lids)
    return lft, baseline.routing.sl[..., differing_lids], differing_lids


def is_same(one: Fabric, other: Fabric) -> bool:
    """Return whether two fabrics have the same switches, the same LIDs and the same cables between switches.

    Each LID must also be delivered at the same port, and the same switches must have end ports.  A proof of tables then
    covers the same packets in both fabrics.  End ports are compared because an end port without a LID can still send.
    """
    return one is other or all(map(np.array_equal, _proven_properties(one), _proven_properties(other)))


def _proven_properties(fabric: Fabric) -> tuple[npt.NDArray[np.generic], ...]:
    """Return all properties of a fabric that a proof of tables depends on."""
    out, lids = fabric.channels, fabric.lids
    return fabric.switch_guid, out.src, out.port, out.dst, out.dst_port, lids.switch, lids.port, fabric.terminals_at > 0
