"""Define the data of one request for tables in the worker: the decision, the tables, and the line for the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osm_plugin.base import Base
from osm_plugin.config import PluginConfig
from osm_plugin.decision import Start
from osm_plugin.historian import Pinned
from osm_plugin.options import describe_proof
from osm_plugin.route_or_reroute import Plan
from osm_plugin.snapshot import Snapshot
from osm_plugin.staged_update import Change
from osm_plugin.state import SavedTables
from routing.engines.base import Engine, EngineOptions
from routing.numerals import count_noun
from routing.tables import Routing


@dataclass(frozen=True, eq=False)
class Job:
    """One request for tables, and how the worker has decided to answer it.

    Attributes
    ----------
    snapshot
        The request, with its fabric.
    config
        The configuration that came with the request.
    engine
        The engine that computes the tables.  If tables are pinned, this is the engine that computed the pinned tables.
    options
        The options of this engine.  If tables are pinned, these are the options with which they were computed.
    key
        Text that identifies the options (:func:`~osm_plugin.route_or_reroute.options_key`).
    multicast_roots
        GUIDs of preferred root switches for multicast.
    pinned
        The tables that the administrator has pinned; None if no tables are pinned.
    start
        The decision how to get the tables, with the earlier tables (if any) from which the computation starts.
    """

    snapshot: Snapshot
    config: PluginConfig
    engine: Engine
    options: EngineOptions
    key: str
    multicast_roots: tuple[int, ...]
    pinned: Pinned | None
    start: Start

    def origin_of(self, routing: Routing) -> tuple[str, str]:
        """Return the engine and the options to record with new tables.

        If the new tables are a repair of earlier tables, return the engine that computed the earlier tables, and its
        options.  This holds even if this engine has failed since then.  When this engine works again, it can continue
        with the repaired tables.
        """
        before = self.start.before
        if self.pinned is None and isinstance(before, SavedTables) and routing.provenance.engine == before.engine:
            return before.engine, before.options
        return self.engine.name, self.key


@dataclass(frozen=True, eq=False)
class Outcome:
    """The tables that answer a request, as they were written to the shared memory.

    Attributes
    ----------
    made
        Tables without an update schedule, and how they were found.  They are new tables, as the engine or a re-route
        returned them, or earlier tables that stay in force.
    kept
        The tables to be stored as remembered tables.  They also have the engine, its options, and the LFT entries that
        later rounds of the update schedule write.
    base
        The tables in the switches before the answer.
    change
        The LFT entries that change in the switches; see :meth:`~osm_plugin.switch_changes.SwitchChanges.change`.
    """

    made: Plan
    kept: SavedTables
    base: Base | None
    change: Change | None


@dataclass(frozen=True, eq=False)
class Unsettled:
    """The tables of an answer that are not yet stored as remembered tables.

    If ``resets`` is true, the tables also become the baseline tables when they are stored.
    """

    kept: SavedTables
    change: Change | None
    resets: bool


def describe(job: Job, outcome: Outcome, remarks: Sequence[str]) -> str:
    """Return one line for OpenSM's log about the tables with which the worker answers a request.

    The line names the fabric, the number of VLs, the verdict of the proof, how the tables were found, and the changes
    in the switches.  The remarks follow at its end.  ``job`` is the request, and ``outcome`` has the tables.
    """
    made, kept, base, change = outcome.made, outcome.kept, outcome.base, outcome.change
    fabric = kept.fabric
    counts = f"{count_noun(fabric.switches, 'switch')}, {count_noun(fabric.endports, 'end port')}"
    size = f"fabric {fabric.digest[:12]}: {counts}"
    vls, verdict = count_noun(kept.routing.vls, "VL"), describe_proof(kept.proof)
    back = [] if job.pinned is None else [f"pinned to {job.pinned.name}"]
    entries = [] if base is None or not base.changed else [_entries(base.changed)]
    written = [] if change is None else [change.describe()]
    how = "; ".join([*back, made.how, *entries, *written, *remarks])
    return f"{size}, {vls}, {verdict}; {how}"


def _entries(count: int) -> str:
    return f"{count_noun(count, 'entry changes', 'entries change')} in the switches"
