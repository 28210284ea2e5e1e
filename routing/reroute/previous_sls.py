"""Find the SLs that senders still use from earlier tables, after switches, ports or LIDs have changed.

A sender keeps the SL that it got for a LID number.  So senders are identified by the GUID of their port, and
destinations by their LID number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from routing.deadlock.lost import LostLids
from routing.deadlock.traffic_sources import lid_name
from routing.fabric import Fabric
from routing.formats.lid_map import lid_owner, old_columns
from routing.reroute.translate import reindex, same_devices
from routing.tables import Routing, ServiceLevels

Bytes = npt.NDArray[np.uint8]
Scalar = TypeVar("Scalar", np.int32, np.bool_)


@dataclass(frozen=True, eq=False)
class PreviousSls:
    """An earlier SL table, with the numbers that map its rows and columns to the present fabric.

    Attributes
    ----------
    old, old_fabric
        The earlier SLs and their fabric.
    new, fabric
        The new SLs, and the present fabric.  The fabric includes all LIDs towards which there are LFT entries.
    row
        int32[S], earlier row of each switch, -1 for a new switch.
    sender
        int64[L]: the port with LID n now had LID ``sender[n]`` in the earlier fabric; -1 if the port is new.  If no
        port has LID n any more, the value is n.
    """

    old: ServiceLevels
    old_fabric: Fabric
    new: ServiceLevels
    fabric: Fabric
    row: npt.NDArray[np.int32]
    sender: npt.NDArray[np.int64]

    @classmethod
    def of(
        cls, old: Routing, old_fabric: Fabric, new: Routing, fabric: Fabric, row: npt.NDArray[np.int32]
    ) -> PreviousSls:
        """Return the earlier SL table with its map to the present fabric.  The GUID of a sender's port connects the
        earlier LID and the present LID.  ``row`` (int32[S]) is the earlier row of each switch, -1 for a new switch.
        """
        if same_devices(old_fabric, fabric):
            return cls(old.service_levels, old_fabric, new.service_levels, fabric, row, np.arange(len(fabric.lids)))
        owner, now = lid_owner(old_fabric), lid_owner(fabric)
        sender = old_columns(owner, now)
        known = (sender >= 0) & (now > 0)
        known[known] = owner[sender[known]] == now[known]
        gone = np.flatnonzero(fabric.lids.switch < 0)
        sender = np.where(known, sender, -1)
        sender[gone] = np.where(gone < len(owner), gone, -1)
        return cls(old.service_levels, old_fabric, new.service_levels, fabric, row, sender)

    @cached_property
    def _had(self) -> npt.NDArray[np.int32]:
        """Return int32[L], the switch that delivered each LID before, as a row of the earlier fabric.  The row is -1 if
        no switch delivered the LID.
        """
        return self._now(self.old_fabric.lids.switch, np.int32(-1))

    def _now(self, column: npt.NDArray[Scalar], filler: Scalar) -> npt.NDArray[Scalar]:
        """Convert an array with a value for each earlier LID to an array with a value for each present LID.  A LID
        number that did not exist earlier gets the value of ``filler``.
        """
        found = np.full(len(self.fabric.lids), filler)
        count = min(len(found), len(column))
        found[:count] = column[:count]
        return found

    def lost(self) -> LostLids:
        """Return the earlier owners of the LIDs that no device has now."""
        of_switch = self._now(self.old_fabric.lids.port == 0, np.False_)
        gone = np.flatnonzero((self.fabric.lids.switch < 0) & (self._had >= 0))
        names = {lid: lid_name(self.old_fabric, lid) for lid in gone.tolist()}
        table = self._by_number() if self.old.by_switch else self.table()
        return LostLids(of_switch, self._had, replace(self.old, table=table), self._had >= 0, names)

    def table(self) -> Bytes:
        """Return the earlier SLs with rows and columns for the present switches and LIDs.

        Rows of new senders and columns of new LIDs come from the new SL table.  If the new SL table distinguishes more
        senders than the result does, it has several SLs for one element of the result.  These rows and columns then
        hold SL 0.

        If a port has moved to another switch, SLs by source switch become SLs by source LID, because senders keep their
        SLs.
        """
        if self.old.by_lid:
            filler = self.new.table if self.new.by_lid else None
            return self._filled(self._by_number(), np.zeros(0, np.int64), filler)
        if self.old.by_source_lid:
            return self._with_rows(self.sender, by_switch=False)
        # The switch at which the owner of each present LID was before (a row of the earlier fabric); -1: new port.
        at = np.where(self.sender >= 0, self._had[self.sender], -1).astype(np.int32)
        now = self.fabric.lids.switch
        if bool((self.row[now] == at)[(now >= 0) & (at >= 0)].all()):
            return self._with_rows(self.row, by_switch=True)
        return self._with_rows(at, by_switch=False)

    def _by_number(self) -> Bytes:
        """Return the earlier SL table with a column for each present LID number.  A column belongs to the number, even
        if another port has that LID now.
        """
        columns = np.arange(len(self._had))
        columns[self.old.table.shape[-1] :] = -1
        return reindex(self.old.table, columns, -1, 0)

    def _with_rows(self, rows: npt.NDArray[np.signedinteger], *, by_switch: bool) -> Bytes:
        new, filler = self.new.table, None
        if self.new.by_lid or by_switch == self.new.by_switch:
            filler = self.new.with_rows(len(rows))
        elif not by_switch:
            filler = new[np.maximum(self.fabric.lids.switch[: new.shape[1]], 0)]
        return self._filled(reindex(self._by_number(), rows, 0, 0), np.flatnonzero(rows < 0), filler)

    def _filled(self, table: Bytes, rows: npt.NDArray[np.int64], filler: Bytes | None) -> Bytes:
        """Return an SL table in which some values are replaced by values of the new SL table (``filler``): the given
        rows, and the columns of new LIDs.
        """
        fresh = np.flatnonzero((self.fabric.lids.switch >= 0) & (self._had < 0))
        if filler is None or not (len(rows) or len(fresh)):
            return table
        table, height = table.copy(), len(filler)
        if self.old.by_lid:
            table[fresh] = filler[fresh]
            return table
        rows = rows[rows < height]
        table[rows, : filler.shape[1]] = filler[rows]
        table[:height, fresh] = filler[:, fresh]
        return table
