"""Make tables that switches hold, in the form in which OpenSM passes them to the plugin's worker."""

import numpy as np

from osm_plugin.base import base_of
from osm_plugin.snapshot import BLOCK, SwitchTables
from osm_plugin.staged_update import stage_update


def holding(kept, fabric, *, served="ours"):
    """Return the tables that the switches of ``fabric`` hold if ``kept`` was published for an earlier fabric.

    Entries whose round has not been written yet have their old ports.
    """
    lft = np.full((fabric.switches, max(len(fabric.lids), kept.routing.lft.shape[1])), 255, np.uint8)
    rows = {guid: row for row, guid in enumerate(kept.fabric.switch_guid.tolist())}
    for row, guid in enumerate(fabric.switch_guid.tolist()):
        if guid in rows:
            had = kept.routing.lft[rows[guid]].copy()
            for entry in [] if kept.deferred is None else kept.deferred:
                if entry["row"] == rows[guid]:
                    had[entry["lid"]] = entry["port"]
            lft[row, : len(had)] = had
    known = np.ones((fabric.switches, -(-lft.shape[1] // BLOCK)), bool)
    return SwitchTables(lft, known, np.full(fabric.switches, lft.shape[1] - 1, np.uint16), served)


def base_for(before, after, tables=None):
    """Return the base of a change: the tables that the switches hold, and the SLs in use, which are those of
    ``before``.
    """
    tables = holding(before, after.fabric) if tables is None else tables
    return base_of(after.fabric, tables, after.routing, [(before, True)])


def change_of(before, after, *, wanted=True):
    """Return the update that leads from the tables ``before`` to the tables ``after``."""
    return stage_update(base_for(before, after), after, wanted=wanted)
