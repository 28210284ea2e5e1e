"""Determine in each sweep which tables the switches have, and in which rounds the new tables are written."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Mapping
from typing import Any

from osm_plugin.base import Base, base_of
from osm_plugin.config import PluginConfig
from osm_plugin.options import threads_of
from osm_plugin.snapshot import Snapshot
from osm_plugin.staged_update import Change, as_written, plan_number, stage_update
from osm_plugin.state import SavedTables
from osm_plugin.tables_in_force import State

MOST_LEFT = 4
"""Maximum number of sets of tables in each of two collections.  There is a limit, because tables can be large.

One collection has tables that were in force when devices left the fabric.  The other one has tables that this process
published before the tables in force.
"""


class SwitchChanges:
    """Tracks the tables in the switches from sweep to sweep, and finds update schedules for new tables.

    Parameters
    ----------
    state
        The tables that are kept from earlier sweeps.  Until this process has published tables, the SLs in use are the
        SLs of these earlier tables.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        # the tables that this process published last; None: it has published none
        self._in_force: SavedTables | None = None
        # The key is the GUID of a switch or end port that has left the fabric.  The value is the set of tables that was
        # in force when the device left.  Only the last MOST_LEFT sets of such tables are stored.  None: the tables are
        # not stored any more.
        self._left: dict[int, SavedTables | None] = {}
        # Tables that this process published before the tables in force.  A switch may still have entries of these
        # tables, if the writing of newer tables was interrupted.
        self._earlier: deque[SavedTables] = deque(maxlen=MOST_LEFT)
        self._silent: frozenset[int] = frozenset()  # GUIDs of the switches with unknown entries in the last sweep

    def written(self, report: Mapping[str, Any]) -> None:
        """Record how many rounds of the update schedule all switches have acknowledged.

        ``report`` has the number of the update schedule ("plan") and the number of completed rounds ("rounds").
        """
        number, rounds = report.get("plan"), int(report.get("rounds", 0))
        mine = self._in_force
        if mine is not None and mine.deferred is not None and number == plan_number(mine):
            self._in_force = as_written(mine, rounds)
        last = self._state.last
        if last is not None and last.deferred is not None and number == plan_number(last):
            self._state.last = as_written(last, rounds)
            # The baseline tables may be the same object as the last tables.  They stay one object, so the written
            # rounds count for both.
            if self._state.baseline is last:
                self._state.baseline = self._state.last

    def change(
        self, snapshot: Snapshot, new: SavedTables, config: PluginConfig, *, qos_changed: bool = False
    ) -> tuple[SavedTables, Base | None, Change | None]:
        """Find the update schedule for new tables, and record the new tables as the tables in force.

        The schedule starts from the entries that the switches have, not from the tables that the worker remembers.

        ``snapshot`` is OpenSM's request, which has the entries in the switches.  ``qos_changed`` states whether the SLs
        or VLs of QoS classes change.

        Returns
        -------
        kept
            The new tables, with the entries that later rounds write.
        base
            The tables in the switches; None if these tables are unknown because of a bug.
        change
            The change of the switches.  None if nothing changes, or if ``base`` is None.
        """
        base = self._base(snapshot, new)
        change = None if base is None else self._scheduled(base, new, config, qos_changed=qos_changed)
        self._remember_left(new)
        if self._in_force is not None and self._in_force.routing is not new.routing:
            self._earlier.append(self._in_force)
        self._in_force = new if change is None else change.after
        return self._in_force, base, change

    def _remember_left(self, new: SavedTables) -> None:
        """Record, for each switch and end port that has left the fabric, the tables that were in force before.  Drop
        the records of devices that are in the fabric of the new tables.
        """
        present = _guids(new)
        if self._in_force is not None:
            self._left.update(dict.fromkeys(_guids(self._in_force) - present, self._in_force))
        left = [(guid, tables) for guid, tables in self._left.items() if guid not in present]
        recent = list(dict.fromkeys(id(tables) for _, tables in reversed(left) if tables is not None))[:MOST_LEFT]
        self._left = {guid: tables if id(tables) in recent else None for guid, tables in left}

    def _base(self, snapshot: Snapshot, new: SavedTables) -> Base | None:
        """Return the tables in the switches; None if an exception occurs.

        An exception here is only logged, so that OpenSM still gets its proven tables.
        """
        remembered = [(tables, mine) for tables, mine in ((self._in_force, True), (self._state.last, False)) if tables]
        try:
            return base_of(
                snapshot.fabric, snapshot.switch_tables, new.routing, remembered, self._left, earlier=self._earlier
            )
        except Exception:
            traceback.print_exc()
            self._state.remark("base unknown: bug in the worker (its log has the traceback)")
            return None

    def _scheduled(self, base: Base, new: SavedTables, config: PluginConfig, *, qos_changed: bool) -> Change | None:
        """Return the change from the tables in the switches to the new tables, with its update schedule."""
        silent, self._silent = self._silent, base.silent(new.fabric)
        # A switch that answered neither in this sweep nor in the last sweep may never answer.  Then the tables are
        # written at once, so that other switches do not wait for this switch.
        stays_silent = bool(self._silent & silent)
        try:
            wanted = config.transitions == "rounds" and not stays_silent
            return stage_update(base, new, wanted=wanted, qos_changed=qos_changed, threads=threads_of(config))
        except Exception:  # A failed search must not prevent OpenSM from getting proven tables.
            traceback.print_exc()
            return Change(base, new, None, asked=True, qos_changed=qos_changed)


def _guids(tables: SavedTables) -> set[int]:
    """Return the GUIDs of the switches and end ports of the fabric of the tables."""
    return {*tables.fabric.switch_guid.tolist(), *tables.fabric.endport_guid.tolist()}
