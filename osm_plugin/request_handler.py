"""The worker's answers to OpenSM's requests, from sweep to sweep.

docs/plugin.md has the state machine.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from osm_plugin.answer import SharedMemory, write_answer
from osm_plugin.bundle_engine import BUNDLE, BundleEngine
from osm_plugin.config import PluginConfig
from osm_plugin.decision import Decision, Start, decide, decide_pinned
from osm_plugin.historian import Desk, Historian, Pinned
from osm_plugin.job import Job, Outcome, Unsettled, describe
from osm_plugin.last_good import LastGood, from_message
from osm_plugin.opensm_conf import AcceptedOptions, OpensmConf, describe_left_out, foreign_options, take_over
from osm_plugin.options import admit_to_opensm, options_of, port_classes, roots_there, threads_of
from osm_plugin.policies import POLICIES, PolicyDesk
from osm_plugin.qos import Classes, QosPolicy, check_classes, classes_of
from osm_plugin.report import Answer, Reporter
from osm_plugin.route_or_reroute import options_key, route_or_reroute
from osm_plugin.snapshot import CABLE, Snapshot, read_request
from osm_plugin.staged_update import Change, plan_number
from osm_plugin.state import SavedTables, fits
from osm_plugin.switch_changes import SwitchChanges
from osm_plugin.tables_in_force import State, with_classes_of
from osm_plugin.worker_log import Clock, WorkerLog
from routing.engines.base import Engine, offers_of
from routing.errors import IbnueError, InputError, OptionError
from routing.fabric import Fabric
from routing.publish import VerifiedTables
from routing.reroute import Precomputed, Stability, precompute
from routing.tables import Routing

PREFIX = "ibnue-"
REMEMBERED = 4
"""Number of recent fabrics that are recognised when they recur, such as the fault-free fabric after a repair."""


class RequestHandler:
    """Compute and prove tables for the fabric in the shared memory, and remember the tables in force.

    Each request passes through :meth:`answer` (decide, compute, admit, schedule, write), and then through
    :meth:`settle`, which stores the tables after OpenSM has its answer.
    """

    def __init__(
        self,
        memory: SharedMemory,
        engines: Mapping[str, Engine],
        reporter: Reporter,
        config_path: Path | None = None,
        log: WorkerLog | None = None,
    ) -> None:
        self._memory = memory
        self._log = WorkerLog() if log is None else log
        self._reporter = reporter
        self._report: Answer | None = None
        self._last_good = LastGood(config_path)
        self._engines = engines
        self._state = State()
        self._changes = SwitchChanges(self._state)
        self._saver, self._unsaved = Desk("ibnue-last-good"), ""
        self._historian = Historian(self._state.remark)  # not remarks.append, because take_remarks replaces the list
        self._policies = PolicyDesk()
        self._earlier: deque[Snapshot] = deque(maxlen=REMEMBERED)
        self._unsettled: Unsettled | None = None
        self._lines: list[str] = []
        self._reported: set[str] = set()
        self._balanced: Routing | None = None  # tables for which a search has found no better balance
        self._precomputed: Precomputed | None = None  # of the tables in force, for the next re-route
        self._again: float | None = None  # seconds after which OpenSM should sweep again to move more entries

    def prepare(self, config: PluginConfig) -> None:
        """Read the state file before the first request, which then reads the file again only if it has changed."""
        with suppress(IbnueError):
            self._state.refresh(config.state_path, threads=threads_of(config))
        self._historian.pinned(config, threads=threads_of(config))
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Precompute the part of the next re-route that depends on the tables in force alone, not on the fault."""
        last = self._state.last
        if last is None:
            return
        try:
            self._precomputed = precompute(last, self._state.baseline_of(last))
        except Exception:  # the re-route itself computes it again
            traceback.print_exc()

    def finish_publication(self) -> Change | None:
        """Do the work that can wait until OpenSM has its answer: store and save the published tables.

        The tables are stored even if the answer is late: the next sweep re-routes from them.

        Returns
        -------
        The change of the tables in the switches; None if it was returned before or nothing changes.
        """
        report, self._report = self._report, None
        if report is not None:
            self._reporter.put(report)
        published, self._unsettled = self._unsettled, None
        if published is not None:
            self._state.put(published.kept, reset=published.resets)
        self._state.save()
        self._look_ahead()
        self._saver.put(self._save_configuration)
        return None if published is None else published.change

    def _save_configuration(self) -> None:
        """Save the last good configuration.  Runs in a thread, because the file system may hang."""
        problem = ""
        try:
            self._last_good.save()
        except IbnueError as error:
            problem = f"last good configuration not saved: {error}"
        if problem and problem != self._unsaved:
            self._state.remark(problem)
        self._unsaved = problem

    def written(self, report: Mapping[str, Any]) -> None:
        """Record how many rounds of the last tables all switches have."""
        self._changes.written(report)

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Compute tables for the request in the shared memory; never raises."""
        sequence, self._again = request.get("sequence"), None
        try:
            self._log.debug(f"request {sequence} for {request.get('engine')}")
            note, warning = self._perform(request)
            self._log.info(f"{request.get('engine')}: {note}")
            if warning:
                self._log.error(warning)
            return {"ok": True, "sequence": sequence, "note": note, "warning": warning, "again": self._again}
        except IbnueError as problem:
            self._log.refusal(f"{request.get('engine')}: {problem}")
            return {"ok": False, "sequence": sequence, "note": str(problem)[:900]}
        except Exception as problem:
            self._log.bug()
            text = f"bug in the worker: {type(problem).__name__}: {problem} (its log has the traceback)"
            return {"ok": False, "broken": True, "sequence": sequence, "note": text[:900]}

    def _perform(self, request: Mapping[str, Any]) -> tuple[str, str]:
        """Perform a request with the configuration in its message, or with the last good configuration."""
        config, engine = from_message(request.get("config")), str(request["engine"])
        if engine == POLICIES:
            return self._last_good.use(config, self._set_ports, ports=True)
        return self._last_good.use(
            config, lambda config: self._route(request, config), bundle=engine.removeprefix(PREFIX) == BUNDLE
        )

    def _set_ports(self, config: PluginConfig) -> str:
        """Write the wanted PortInfo values of the port policies, and return a line for OpenSM's log."""
        return self._policies.answer(self._memory, self._read(config), config)

    def _read(self, config: PluginConfig) -> Snapshot:
        """Read the request in the shared memory, and move its fabric to the front of the recent fabrics."""
        snapshot = read_request(self._memory.view(), self._earlier, port_classes(config))
        again = next((known for known in self._earlier if known.fabric is snapshot.fabric), None)
        if again is not None:
            self._earlier.remove(again)
        self._earlier.appendleft(replace(snapshot, switch_tables=None))
        return snapshot

    def _engine(self, name: str, config: PluginConfig) -> Engine:
        """Return the engine with this name, with or without the plugin's prefix."""
        plain = name.removeprefix(PREFIX)
        if plain == BUNDLE:
            if config.bundle is None:
                raise InputError("no bundle is named", remedy='set bundle = "FILE" in the file of --config')
            return BundleEngine(Path(config.bundle))
        if plain not in self._engines:
            raise OptionError(f"unknown engine {name!r}", remedy=f"known are {', '.join(self._engines)}")
        return self._engines[plain]

    def _route(self, request: Mapping[str, Any], config: PluginConfig) -> str:
        """Compute, prove and write tables for a request, and return a line for OpenSM's log."""
        clock = Clock()
        self._log.level = config.log_level
        job = self._job(request, config, clock)
        snapshot, start = job.snapshot, job.start
        made = route_or_reroute(job.engine, job.options, snapshot.fabric, start)
        if start.before is not None and made.tables.routing is start.before.routing and start.moves:
            self._balanced = start.before.routing  # no better balance was found
        tables = admit_to_opensm(made.tables, snapshot, config)
        clock.lap("route")
        classes = self._classes(snapshot, tables, config)
        kept = SavedTables(tables.fabric, tables.routing, tables.proof, job.engine.name, job.key)
        kept, base, change = self._changes.change(snapshot, kept, config)
        clock.lap("rounds")
        schedule = None if change is None else change.schedule
        write_answer(
            self._memory, snapshot.answer_at, tables,
            sequence=snapshot.sequence, deferred=kept.deferred, plan=plan_number(kept), wait=config.round_wait,
            first_draining_round=0 if schedule is None else schedule.first_draining_round,
            multicast_roots=job.multicast_roots, classes=classes,
        )  # fmt: skip
        clock.lap("write")
        outcome = Outcome(made, kept, base, change)
        self._remember(job, outcome)
        figures = made.figures if base is None else {**made.figures, "changed": base.changed}
        line = describe(job, outcome, self._state.take_remarks())
        self._report = Answer(snapshot.sequence, kept, change, made.how, figures, clock.seconds())
        return f"{line}; {clock}"

    def _job(self, request: Mapping[str, Any], config: PluginConfig, clock: Clock) -> Job:
        """Read a request, and decide which tables the new ones are computed from."""
        snapshot = self._read(config)
        pinned = self._pinned(snapshot.fabric, config)
        engine = self._engine(str(request["engine"]) if pinned is None else pinned.kept.engine, config)
        taken = self._take_over(engine, config, snapshot)
        options = options_of(engine.name, config, snapshot, taken.options)
        clock.lap("fabric")
        key = options_key(options, snapshot.fabric.port_classes)
        options = roots_there(options, snapshot.fabric) if taken.optional_roots else options
        start = self._start(engine, key, snapshot.fabric, config, request.get("written", {}))
        if pinned is not None:
            start = decide_pinned(snapshot.fabric, pinned.kept)
        clock.lap("state")
        return Job(snapshot, config, engine, options, key, taken.multicast_roots, pinned, start)

    def _start(
        self, engine: Engine, key: str, fabric: Fabric, config: PluginConfig, written: Mapping[str, Any]
    ) -> Start:
        """Read the state file if it has changed, and decide what to compute from the tables in force."""
        remembers, stability = offers_of(engine).recomputes, Stability(config.stability)
        if remembers:
            self._state.refresh(config.state_path, threads=threads_of(config))
        self.written(written)  # may be about the tables that were read just now
        if not remembers or stability is Stability.FRESH:
            return decide(fabric, None, stability=stability)
        before = self._state.before(engine.name, key, fabric)
        baseline = None if before is None else self._state.baseline_of(before)
        # Entries of an unfinished update schedule have to be in the switches before others move.
        written_all = before is not None and before.deferred is None
        moves = stability is Stability.BALANCED and written_all and self._may_gain(before)
        return decide(
            fabric, before,
            baseline=baseline, stability=stability, moves=config.rebalance if moves else 0,
            precomputed=self._precomputed,
        )  # fmt: skip

    def _remember(self, job: Job, outcome: Outcome) -> None:
        """Remember the tables of an answer until they are settled, and whether their balance may still improve."""
        kept, config = outcome.kept, job.config
        self._policies.routed(kept.fabric, kept.routing)
        # Tables of a bundle are not stored: they can be read from the bundle again.
        if offers_of(job.engine).recomputes:
            baseline = job.start.baseline
            complete = baseline is not None and baseline.fabric.digest == kept.fabric.digest
            better = complete and outcome.made.decision is Decision.REBALANCE
            resets = config.stability == "fresh" or job.pinned is not None or better
            self._unsettled = Unsettled(kept, outcome.change, resets)
            self._historian.put(kept, config)
        if config.rebalance and job.start.stability is Stability.BALANCED and self._may_gain(kept):
            self._again = config.rebalance_pause

    def _may_gain(self, tables: SavedTables | None) -> bool:
        """Return whether moving entries may improve the balance.

        This is the case for re-routed tables until a search has found no improvement.
        """
        if tables is None or tables.routing is self._balanced:
            return False
        return "rerouted_from" in tables.routing.provenance.options

    def _take_over(self, engine: Engine, config: PluginConfig, snapshot: Snapshot) -> AcceptedOptions:
        """Apply the options of opensm.conf.  Options that are not applied are logged once."""
        conf = OpensmConf({**foreign_options(snapshot.conf.get("config_file")), **snapshot.conf.values})
        taken, _ = take_over(conf, engine.name, config.options_of(engine.name))
        lines = list(taken.lines)
        if snapshot.throttled:
            sick = np.frombuffer(snapshot.source[2], CABLE)["sick"]
            kept = snapshot.fabric.links == int(np.count_nonzero(sick == 0))
            lines.append(describe_left_out(snapshot.throttled, kept))
        wanted, most = taken.options.get("vls"), QosPolicy.of(snapshot.conf).most_layers
        if isinstance(wanted, int) and wanted > most:
            lines.append(
                f"QoS: vls = {wanted} is taken for {most}, as each SL of the policy needs an SL for every layer"
            )
        self._log_once(lines)
        return taken

    def _classes(self, snapshot: Snapshot, tables: VerifiedTables, config: PluginConfig) -> Classes:
        """Assign SLs and VLs to the classes of the QoS policy, and prove the assignment for all classes."""
        classes = classes_of(snapshot.fabric, tables.routing, QosPolicy.of(snapshot.conf), snapshot.data_vls)
        check_classes(snapshot.fabric, classes, tables.proof, threads=threads_of(config))
        self._log_once([classes.line] if classes.line else [])
        return classes

    def _log_once(self, lines: list[str]) -> None:
        self._lines += [line for line in lines if line not in self._reported]
        self._reported.update(lines)

    def take_lines(self) -> list[str]:
        """Return the additional lines for OpenSM's log, and forget them."""
        lines, self._lines = self._lines, []
        return lines

    def _pinned(self, fabric: Fabric, config: PluginConfig) -> Pinned | None:
        """Return the tables pinned by the administrator if they belong to this subnet, else None."""
        found = self._historian.pinned(config, threads=threads_of(config))
        self._reporter.send({"pinned": None if found is None else found.name})
        if found is None:
            return None
        if found.kept.engine in self._engines and fits(found.kept, fabric):
            return replace(found, kept=with_classes_of(found.kept, fabric))
        self._state.remarks.append("pin ignored: its tables are of another fabric, or of an engine that is not there")
        return None
