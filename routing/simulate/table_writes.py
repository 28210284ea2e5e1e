"""Compute the sequence of writes by which a subnet manager replaces tables while traffic runs.

Each method is a sequence of table writes.  In some methods, CAs send nothing to some LIDs for a time.  The simulator
carries the sequence out, and so measures its cost in lost packets, latency and deadlocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from routing.deadlock.double_scheme import double_scheme
from routing.deadlock.schedule_search import find_schedule
from routing.deadlock.single_scheme import lids_to_drain
from routing.errors import OptionError
from routing.fabric import NO_PORT, Fabric
from routing.simulate.network import data_vls
from routing.tables import DATA_VLS, Routing

Bytes = npt.NDArray[np.uint8]
Lids = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class TableWrite:
    """One step of a change of tables.

    Attributes
    ----------
    after
        Ticks from the start of the change to this step.
    lft, sl2vl, sl
        Tables that are in force from this step on; None: the table does not change.
    held
        bool[L], LIDs to which CAs send nothing from this step on; None: as before.
    drained
        bool[L], LIDs to which no packet should be in flight at this step.  None: no such requirement.
    """

    after: int
    lft: Bytes | None = None
    sl2vl: Bytes | None = None
    sl: Bytes | None = None
    held: Lids | None = None
    drained: Lids | None = None


@dataclass(frozen=True, eq=False)
class TableChange:
    """Change from old to new tables.

    Attributes
    ----------
    fabric
        Fabric whose switches are written.
    old, new
        Tables of equal shapes (see :func:`aligned`).
    every
        Ticks between the writes of two switches or of two rounds, or between the steps of a drain.
    order
        Rows of the switches in the order in which they are written.
    """

    fabric: Fabric
    old: Routing
    new: Routing
    every: int
    order: Sequence[int]

    def at_once(self) -> list[TableWrite]:
        """Return the writes of all tables at one tick."""
        return [TableWrite(0, *_all(self.new))]

    def one_by_one(self) -> list[TableWrite]:
        """Return the writes of one switch after the other.

        If one SL2VL table applies to all switches, this table changes together with the LFT of the first switch.  The
        SLs of senders change together with the LFT of the last switch.
        """
        lft, sl2vl, writes = self.old.lft, self.old.sl2vl, list[TableWrite]()
        for number, switch in enumerate(self.order):
            lft = _with_row(lft, self.new.lft, switch)
            sl2vl = _with_row(sl2vl, self.new.sl2vl, switch) if sl2vl.ndim > 1 else self.new.sl2vl
            writes.append(TableWrite(number * self.every, lft, sl2vl))
        writes[-1] = replace(writes[-1], sl=self.new.service_levels.matrix)
        return writes

    def rounds(self) -> list[TableWrite]:
        """Return the writes of an update schedule (:func:`routing.deadlock.schedule_search.find_schedule`).

        Each round lasts ``every`` ticks.  In the first half of this time, the switches of the round are written one by
        one.  The second half gives packets time to leave the fabric.  The SLs of senders change with the last switch.

        Raises
        ------
        OptionError
            The search finds no update schedule without a credit loop.
        """
        schedule = find_schedule(self.fabric, self.old, self.new, threads=1)
        if schedule is None:
            raise OptionError("no rounds of writing without a credit loop were found", remedy='use how = "drained"')
        state, writes = self.old.lft, list[TableWrite]()
        for number, goal in enumerate(schedule.states(self.old.lft, self.new.lft)):
            switches = [switch for switch in self.order if (state[switch] != goal[switch]).any()]
            for place, switch in enumerate(switches):
                state = _with_row(state, goal, switch)
                writes.append(TableWrite(number * self.every + place * (self.every // 2) // len(switches), state))
        return [*writes[:-1], replace(writes[-1], sl=self.new.service_levels.matrix)] if writes else []

    def removed_first(self) -> list[TableWrite]:
        """Return the writes of a change in two steps, which drops packets between the steps.

        The first step removes all LFT entries that differ between old and new tables.  The second step writes the new
        tables, ``every`` ticks later.
        """
        left = np.where(self.old.lft == self.new.lft, self.old.lft, np.uint8(NO_PORT))
        return [TableWrite(0, left), TableWrite(self.every, *_all(self.new))]

    def drained(self) -> list[TableWrite]:
        """Return the writes of a change in a drained fabric.

        CAs send nothing for ``every`` ticks.  Then all tables are written at one tick, and CAs send again.
        """
        nothing, everything = np.zeros(len(self.fabric.lids), bool), np.ones(len(self.fabric.lids), bool)
        return [TableWrite(0, held=everything), TableWrite(self.every, *_all(self.new), nothing, everything)]

    def single_scheme(self) -> list[TableWrite]:
        """Return the writes of the Single Scheme (:mod:`routing.deadlock.single_scheme`).

        First, CAs send nothing to some LIDs for ``every`` ticks, so that these LIDs drain.  Then the switches are
        written one after the other, within ``every`` / 2 ticks.  From the last write on, CAs send to all LIDs again.
        """
        wait, nothing = lids_to_drain(self.fabric, self.old, self.new, threads=1), np.zeros(len(self.fabric.lids), bool)
        steps = replace(self, every=0).one_by_one()
        later = [
            replace(write, after=self.every + place * (self.every // 2) // len(steps))
            for place, write in enumerate(steps)
        ]
        later[0] = replace(later[0], drained=wait)
        return [TableWrite(0, held=wait), *later[:-1], replace(later[-1], held=nothing)]

    def double_scheme(self) -> list[TableWrite]:
        """Return the writes of the Double Scheme: the LIDs are split into two sets, which drain one after the other.

        Raises
        ------
        OptionError
            There is no safe Double Scheme for these tables.
        """
        scheme = double_scheme(self.fabric, self.old, self.new, max_vls=DATA_VLS, threads=1)
        if scheme is None or not scheme.safe:
            raise OptionError("there is no Double Scheme for these tables", remedy='use how = "drained"')
        first, second, none = scheme.first, scheme.second, np.zeros(len(self.fabric.lids), bool)
        tables = [aligned(self.fabric, self.old, scheme.steps[step].tables)[1] for step in (0, 2, 4)]
        return [
            TableWrite(0, *_all(tables[0]), first),
            TableWrite(self.every, *_all(tables[1]), second, first),
            TableWrite(2 * self.every, *_all(tables[2]), none, second),
        ]


METHODS: Mapping[str, Callable[[TableChange], list[TableWrite]]] = {
    "at once": TableChange.at_once,
    "one by one": TableChange.one_by_one,
    "rounds": TableChange.rounds,
    "removed first": TableChange.removed_first,
    "drained": TableChange.drained,
    "single scheme": TableChange.single_scheme,
    "double scheme": TableChange.double_scheme,
}
"""Methods to change tables, by the name that a scenario uses."""


def _all(routing: Routing) -> tuple[Bytes, Bytes, Bytes]:
    return routing.lft, routing.sl2vl, routing.service_levels.matrix


def _with_row(table: Bytes, source: Bytes, row: int) -> Bytes:
    """Return a copy of ``table`` that has the row number ``row`` of the table ``source``."""
    changed = table.copy()
    changed[row] = source[row]
    return changed


def aligned(fabric: Fabric, old: Routing, new: Routing) -> tuple[Routing, Routing]:
    """Return the old and the new routing, with SL tables and SL2VL tables of equal shapes.

    Equal shapes are needed because a simulation cannot change the shapes of its tables.  If two shapes differ, the less
    detailed table is expanded, and its values are repeated.  For example, SLs by destination become SLs by source
    switch and destination.
    """
    both = (old, new)
    by_lid = any(routing.service_levels.by_source_lid for routing in both)
    rows = len(fabric.lids) if by_lid else fabric.switches
    by_port = next((routing.sl2vl.shape for routing in both if routing.sl2vl.ndim > 1), None)

    def shaped(routing: Routing) -> Routing:
        sls = routing.service_levels
        if by_lid and sls.by_switch:
            sl = sls.matrix[np.maximum(fabric.lids.switch, 0)]
        elif all(one.service_levels.by_lid for one in both):
            sl = sls.matrix[0]
        else:
            sl = np.ascontiguousarray(sls.with_rows(rows))
        sl2vl = routing.sl2vl
        if by_port is not None and sl2vl.ndim == 1:
            sl2vl = np.ascontiguousarray(np.broadcast_to(sl2vl, by_port))
        return replace(routing, sl=sl, sl2vl=sl2vl)

    return shaped(old), shaped(new)


def vls_of(old: Routing, new: Routing, writes: Sequence[TableWrite]) -> int:
    """Return the number of data VLs that packets may use before, during and after a change of tables.

    The function assumes that every SL in use at one of these times may meet every SL2VL table in force at one of these
    times.

    ``old`` and ``new`` are the tables before and after the change, and ``writes`` are the steps of the change.
    """
    sls = [old.sl, new.sl, *(write.sl for write in writes if write.sl is not None)]
    maps = [old.sl2vl, new.sl2vl, *(write.sl2vl for write in writes if write.sl2vl is not None)]
    used = np.unique(np.concatenate([np.unique(sl) for sl in sls]))
    return max(data_vls(replace(old, sl=used, sl2vl=sl2vl)) for sl2vl in maps)
