"""Answer OpenSM's requests for tables in the worker, and keep the tables in force from sweep to sweep.

docs/plugin.md shows the states of the worker.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from osm_plugin.answer import SharedMemory, write_answer
from osm_plugin.bundle_engine import BUNDLE, BundleEngine
from osm_plugin.conf_files import ConfFiles
from osm_plugin.config import POLICIES, PluginConfig, cache_folder
from osm_plugin.decision import Decision, Start, decide, decide_pinned
from osm_plugin.historian import Desk, Historian, Pinned
from osm_plugin.job import Job, Outcome, Unsettled, describe
from osm_plugin.last_good import LastGood, from_message
from osm_plugin.multicast import choose_tree
from osm_plugin.opensm_conf import AcceptedOptions, describe_left_out
from osm_plugin.options import admit_to_opensm, ignored_roots, options_of, port_classes, roots_there, threads_of
from osm_plugin.policies import PolicyDesk
from osm_plugin.qos import Classes, QosPolicy, check_classes, classes_of
from osm_plugin.report import Answer, Reporter
from osm_plugin.route_or_reroute import Plan, options_key, route_or_reroute
from osm_plugin.snapshot import CABLE, Snapshot, read_request
from osm_plugin.staged_update import Change, plan_number
from osm_plugin.state import SavedTables, fits, needs_more_vls
from osm_plugin.switch_changes import SwitchChanges
from osm_plugin.tables_in_force import State, with_classes_of
from osm_plugin.worker_log import Clock, WorkerLog
from routing.engines.base import Engine, offers_of
from routing.errors import IbnueError, InputError, OptionError
from routing.publish import VerifiedTables
from routing.reroute import Precomputed, Stability, precompute
from routing.tables import Routing

PREFIX = "ibnue-"
_CONF_FILES = "ibnue-last-good-opensm-conf"
"""Folder, in OpenSM's cache folder, with the last usable versions of the files that opensm.conf names."""
MOST_FAILURES = 3
"""Number of failed searches for a better balance after which the search is not repeated until the tables change."""
REMEMBERED = 4
"""Number of recent fabrics that are recognised when they occur again.  An example is the fabric without faults after a
repair.
"""


class RequestHandler:
    """Computes and proves tables for the fabric in the shared memory, and keeps the tables in force.

    Each request passes through two methods.  :meth:`answer` decides how to get the tables, computes them, checks their
    proof, finds an update schedule and writes the answer.  :meth:`finish_publication` stores the tables after OpenSM
    has its answer.
    """

    def __init__(
        self,
        memory: SharedMemory,
        engines: Mapping[str, Engine],
        reporter: Reporter,
        config_path: Path | None = None,
        log: WorkerLog | None = None,
        *,
        copies: Sequence[int] = (),
    ) -> None:
        self._memory = memory
        self._log = WorkerLog() if log is None else log
        self._reporter = reporter
        self._report: Answer | None = None
        self._last_good = LastGood(config_path)
        self._engines = engines
        self.state = State(copies=copies)
        self._changes = SwitchChanges(self.state)
        self._saver, self._unsaved = Desk("ibnue-last-good"), ""
        # The historian gets the method ``remark``, which adds a line to the present list ``remarks``.  take_remarks()
        # replaces this list by a new list, so ``remarks.append`` would later add lines to an old list.
        self._historian = Historian(self.state.remark)
        self._policies = PolicyDesk()
        self._conf_files = ConfFiles()
        self._earlier: deque[Snapshot] = deque(maxlen=REMEMBERED)
        self._unsettled: Unsettled | None = None
        self._lines: list[str] = []
        self._qos = b""  # Identity of the QoS classes of the last answer.
        self._asked = ""  # Name of the engine of the last request.
        # _reported: for each engine, the log lines that applied at the last request to this engine, such as lines about
        # unused options.
        # _known: the log lines in `_reported`, of all engines together.  These lines are not logged again.
        self._reported: dict[str, set[str]] = {}
        self._known: set[str] = set()
        # _balanced: tables for which no further search for a better balance is made
        # _failures: number of searches that failed with an error, counted for the tables in force
        self._balanced: Routing | None = None
        self._failures = 0
        self._precomputed: Precomputed | None = None  # Data that the next re-route of the tables in force needs.
        # Seconds until OpenSM should sweep again, so that more entries can be rebalanced.  None: no sweep is needed.
        self._again: float | None = None

    def prepare(self, config: PluginConfig) -> None:
        """Read the state file and the pinned tables before the first request, so that the request need not wait for
        them.
        """
        with suppress(IbnueError):
            self.state.refresh(config.state_path, threads=threads_of(config))
        self._historian.pinned(config, threads=threads_of(config))
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Compute in advance the data for the next re-route that depend only on the tables in force, not on
        the fault.
        """
        last = self.state.last
        if last is None:
            return
        try:
            self._precomputed = precompute(last, self.state.baseline_of(last))
        except Exception:  # Without these data, the next re-route computes them itself.
            traceback.print_exc()

    def finish_publication(self) -> Change | None:
        """Do the work that can wait until OpenSM has its answer: store the tables, and save them to the state file.

        Tables are stored even if OpenSM got them too late, because the next sweep re-routes from these tables.

        Returns
        -------
        The change of the tables in the switches.  None if nothing changes, or if an earlier call has returned this
        change.
        """
        report, self._report = self._report, None
        if report is not None:
            self._reporter.put(report)
        published, self._unsettled = self._unsettled, None
        if published is not None:
            self.state.put(published.kept, reset=published.resets)
        self.state.save()
        self._look_ahead()
        self._saver.put(self._save_configuration)
        return None if published is None else published.change

    def _save_configuration(self) -> None:
        """Save the last good configuration.  A thread runs this method, because the file system may not answer."""
        problem = ""
        try:
            self._last_good.save()
            self._conf_files.save()
        except IbnueError as error:
            problem = f"last good configuration not saved: {error}"
        if problem and problem != self._unsaved:
            self.state.remark(problem)
        self._unsaved = problem

    def written(self, report: Mapping[str, Any]) -> None:
        """Record how many rounds of the update schedule all switches have acknowledged.

        ``report`` has the number of the update schedule ("plan") and the number of completed rounds ("rounds").
        """
        self._changes.written(report)

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer the request in the shared memory, and return a message for the host.  This method never raises an
        exception.
        """
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
        """Perform a request with the configuration in its message.  If this configuration is invalid, use the last good
        configuration.
        """
        config, engine = from_message(request.get("config")), str(request["engine"])
        self._asked, self._known = engine, set().union(*self._reported.values())
        self._reported[engine] = set()
        if engine == POLICIES:
            return self._last_good.use(config, self._set_ports, ports=True)
        return self._last_good.use(
            config, lambda config: self._route(request, config), bundle=engine.removeprefix(PREFIX) == BUNDLE
        )

    def _set_ports(self, config: PluginConfig) -> str:
        """Write the PortInfo values that the port rules demand, and return a line for OpenSM's log."""
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
        """Return the engine with a given name; the prefix "ibnue-" of the name is ignored.

        Raises
        ------
        InputError
            There is no such engine, or the configuration names no file for the engine "bundle".
        """
        plain = name.removeprefix(PREFIX)
        if plain == BUNDLE:
            if config.bundle is None:
                raise InputError("no bundle is named", remedy='set bundle = "FILE" in the file of --config')
            return BundleEngine(Path(config.bundle))
        if plain not in self._engines:
            raise OptionError(f"unknown engine {name!r}", remedy=f"known are {', '.join(self._engines)}")
        return self._engines[plain]

    def _route(self, request: Mapping[str, Any], config: PluginConfig) -> str:
        """Compute, prove and write the tables for a request, and return a line for OpenSM's log."""
        clock = Clock()
        self._log.level = config.log_level
        job = self._job(request, config, clock)
        snapshot, start = job.snapshot, job.start
        with self._last_good.line_in_errors(config, job.engine.name):
            made = route_or_reroute(job.engine, job.options, snapshot.fabric, start)
        self._record_search(start, made)
        tables = admit_to_opensm(made.tables, snapshot, config)
        clock.lap("route")
        classes = self._classes(snapshot, tables, config)
        kept = SavedTables(tables.fabric, tables.routing, tables.proof, *job.origin_of(tables.routing))
        qos_changed = classes.identity != self._qos
        kept, base, change = self._changes.change(snapshot, kept, config, qos_changed=qos_changed)
        clock.lap("rounds")
        schedule = None if change is None else change.schedule
        roots, threads = job.multicast_roots, threads_of(config)
        multicast = choose_tree(tables.fabric, tables.routing, tables.proof, roots, threads=threads)
        clock.lap("multicast")
        write_answer(
            self._memory, snapshot.answer_at, tables,
            sequence=snapshot.sequence, deferred=kept.deferred, plan=plan_number(kept), wait=config.round_wait,
            first_draining_round=0 if schedule is None else schedule.first_draining_round,
            multicast=multicast.tree, classes=classes,
        )  # fmt: skip
        clock.lap("write")
        self._qos = classes.identity
        outcome = Outcome(made, kept, base, change)
        self._remember(job, outcome)
        figures = made.figures if base is None else {**made.figures, "entries_changed": base.changed}
        # `start_note` is a note about the earlier tables.  It is kept apart from the remarks, because this method may
        # be called again with another configuration.  Then only the note of the last call is logged.
        line = describe(job, outcome, [*self.state.take_remarks(), *filter(None, [self.state.start_note])])
        self._report = Answer(snapshot.sequence, kept, change, made.how, figures, clock.seconds())
        return f"{line}; {multicast.describe()}; {clock}"

    def _job(self, request: Mapping[str, Any], config: PluginConfig, clock: Clock) -> Job:
        """Read a request, and decide how to get the requested tables, and which earlier tables to start from.

        ``request`` is the message of the host, and ``clock`` measures the time of each phase.
        """
        snapshot = self._read(config)
        pinned = self._pinned(snapshot, config)
        engine = self._engine(str(request["engine"]) if pinned is None else pinned.kept.engine, config)
        taken = self._take_over(engine, config, snapshot)
        with self._last_good.line_in_errors(config, engine.name):
            options = options_of(engine.name, config, snapshot, taken.options)
        clock.lap("fabric")
        key = options_key(options, snapshot.fabric.port_classes)
        options = roots_there(options, snapshot.fabric) if taken.optional_roots else options
        start = self._start(engine, key, snapshot, config, request)
        if pinned is not None:
            start = decide_pinned(snapshot.fabric, pinned.kept)
        clock.lap("state")
        return Job(snapshot, config, engine, options, key, taken.multicast_roots, pinned, start)

    def _start(
        self, engine: Engine, key: str, snapshot: Snapshot, config: PluginConfig, request: Mapping[str, Any]
    ) -> Start:
        """Read the state file if it has changed, and decide how to get new tables from the tables in force.

        ``key`` identifies the options of the engine.  ``request`` reports how many rounds of an update schedule have
        been written, and which engines have failed.
        """
        fabric, remembers, stability = snapshot.fabric, offers_of(engine).recomputes, Stability(config.stability)
        failed = {name.removeprefix(PREFIX): deaths for name, deaths in request.get("failed", {}).items()}
        self.state.start_note = ""
        if failed.get(engine.name, 0) > 1:
            self.state.distrust()
        if remembers:
            self.state.refresh(config.state_path, threads=threads_of(config))
        # The report of written rounds may be about the tables that have just been read from the state file.  So the
        # report is processed after the file is read.
        self.written(request.get("written", {}))
        if not remembers or stability is Stability.FRESH:
            return decide(fabric, None, stability=stability)
        # The tables in force can be tables of another engine, which has failed.  If a worker has ended while it
        # computed tables for `engine`, these tables in force may be the cause.  So they are not used in this case.
        usable = {} if failed.get(engine.name) else failed
        before = self.state.before(engine.name, key, fabric, usable, data_vls=snapshot.data_vls)
        baseline = None if before is None else self.state.baseline_of(before)
        # All entries of an unfinished update schedule must be in the switches before other entries are changed.
        written_all = before is not None and before.deferred is None
        moves = stability is Stability.BALANCED and written_all and self._may_gain(before)
        return decide(
            fabric, before,
            baseline=baseline, stability=stability, moves=config.rebalance if moves else 0,
            precomputed=self._precomputed,
        )  # fmt: skip

    def _remember(self, job: Job, outcome: Outcome) -> None:
        """Keep the tables of an answer until OpenSM has the answer.  If a search may still improve the balance of these
        tables, request another sweep after a pause.
        """
        kept, config = outcome.kept, job.config
        self._policies.routed(kept.fabric, kept.routing)
        # Tables of a bundle are not stored, because they can be read from the bundle again.
        if offers_of(job.engine).recomputes:
            baseline = job.start.baseline
            complete = baseline is not None and baseline.fabric.digest == kept.fabric.digest
            better = complete and outcome.made.decision is Decision.REBALANCE and not kept.left_baseline
            resets = config.stability == "fresh" or job.pinned is not None or better
            self._unsettled = Unsettled(kept, outcome.change, resets)
            self._historian.put(kept, config)
        if config.rebalance and job.start.stability is Stability.BALANCED and self._may_gain(kept):
            self._again = config.rebalance_pause

    def _may_gain(self, tables: SavedTables | None) -> bool:
        """Return whether a search may find changes of entries that improve the balance of the tables.

        For re-routed tables, every sweep searches for such changes until a search finds no improvement.
        """
        if tables is None or tables.routing is self._balanced:
            return False
        return "rerouted_from" in tables.routing.provenance.options

    def _record_search(self, start: Start, made: Plan) -> None:
        """Record whether the search for a better balance, if there was one, should be repeated in the next sweep.

        A failed search is repeated, because its cause may pass, such as a lack of memory.
        """
        if start.before is None or start.decision is not Decision.REBALANCE:
            self._failures = 0  # The next search may be for other tables.
            return
        self._failures = self._failures + 1 if made.problem else 0
        if made.problem:
            self.state.remark(f"rebalancing failed ({self._failures} of {MOST_FAILURES} attempts): {made.problem}")
        # No further search is made after a search without an error that found no better balance, or after the last
        # attempt.
        if made.decision is Decision.KEEP and self._failures in (0, MOST_FAILURES):
            self._balanced, self._failures = start.before.routing, 0

    def _take_over(self, engine: Engine, config: PluginConfig, snapshot: Snapshot) -> AcceptedOptions:
        """Apply the options of opensm.conf.  Log the options that are not applied, but do not repeat these lines at
        every request.
        """
        # If the administrator has disabled the state file, copies of the files that opensm.conf names are not stored
        # either.
        self._conf_files.folder = None if config.state_path is None else cache_folder() / _CONF_FILES
        taken = self._conf_files.take_over(snapshot.conf, engine.name, config.options_of(engine.name))
        lines = list(taken.lines)
        if taken.optional_roots and (ignored := ignored_roots(taken.options["root_guid_file"], snapshot.fabric)):
            lines.append(f"opensm.conf: root_guid_file {snapshot.conf.get('root_guid_file')}: {ignored}")
        if snapshot.throttled:
            sick = np.frombuffer(snapshot.source[2], CABLE)["sick"]
            kept = snapshot.fabric.links == int(np.count_nonzero(sick == 0))
            lines.append(describe_left_out(snapshot.throttled, kept))
        wanted, policy = taken.options.get("vls"), QosPolicy.of(snapshot.conf)
        if policy.sls and isinstance(wanted, int) and wanted > (most := policy.most_layers):
            lines.append(
                f"QoS: vls = {wanted} is reduced to {most}, because each SL of the policy needs an SL for every layer"
            )
        self._log_new([*lines, *self._unused_tables(config)])
        return taken

    def _unused_tables(self, config: PluginConfig) -> list[str]:
        """Return a line for the log for each table ``[engine.NAME]`` of the configuration whose NAME is not an engine.
        The options in such a table have no effect.
        """
        return [
            f"[engine.{name}] of the plugin's configuration: not used: there is no engine {name!r}"
            + f" (write [engine.{name.removeprefix(PREFIX)}])" * (name.removeprefix(PREFIX) in self._engines)
            for name in sorted(config.engine)
            if name not in ("", BUNDLE, *self._engines)
        ]

    def _classes(self, snapshot: Snapshot, tables: VerifiedTables, config: PluginConfig) -> Classes:
        """Assign SLs and VLs to the classes of the QoS policy, and check the certificate for the traffic of all
        classes.
        """
        policy = QosPolicy.of(snapshot.conf)
        classes = classes_of(snapshot.fabric, tables.routing, policy, snapshot.data_vls)
        check_classes(snapshot.fabric, classes, tables.proof, threads=threads_of(config))
        self._log_new([line for line in (classes.line, policy.sl2vl_line(tables.routing.vls)) if line])
        return classes

    def _log_new(self, lines: list[str]) -> None:
        """Queue the given lines for OpenSM's log.  Leave out lines that applied at the last request to some engine,
        because they are in the log already.
        """
        self._lines += [line for line in lines if line not in self._known]
        self._known.update(lines)
        self._reported[self._asked].update(lines)

    def take_lines(self) -> list[str]:
        """Return the queued lines for OpenSM's log, and empty the queue."""
        lines, self._lines = self._lines, []
        return lines

    def _pinned(self, snapshot: Snapshot, config: PluginConfig) -> Pinned | None:
        """Return the tables that the administrator has pinned; None if no tables are pinned, or if the pinned tables
        cannot be used.

        Pinned tables cannot be used if they belong to another subnet or to an unknown engine, or if they use more VLs
        than OpenSM sets up.
        """
        found = self._historian.pinned(config, threads=threads_of(config))
        self._reporter.send({"pinned": None if found is None else found.name})
        if found is None:
            return None
        if found.kept.engine not in self._engines or not fits(found.kept, snapshot.fabric):
            self.state.remarks.append("pin ignored: its tables are for another fabric, or from an unknown engine")
            return None
        if found.kept.routing.vls > snapshot.data_vls:
            self.state.remarks.append(f"pin ignored: {needs_more_vls(found.kept, snapshot.data_vls)}")
            return None
        return replace(found, kept=with_classes_of(found.kept, snapshot.fabric))
