"""The worker process: computes and proves the tables that OpenSM requests.

The host inside OpenSM starts the worker with file descriptors of a socket and of shared memory.  The worker imports and
warms up all modules and kernels, reports that it is ready, and then answers one request after the other.  It exits with
OpenSM.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import signal
import socket
import sys
import time
import traceback
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import routing
from osm_plugin.answer import SharedMemory, write_answer
from osm_plugin.base import Base, base_of
from osm_plugin.build_info import protocol
from osm_plugin.bundle_engine import BUNDLE, BundleEngine, plugin_engines
from osm_plugin.config import PluginConfig
from osm_plugin.historian import Desk, Historian, Pinned
from osm_plugin.judge import Judge
from osm_plugin.last_good import LastGood, from_message
from osm_plugin.opensm_conf import OpensmConf, Taken, describe_left_out, foreign_options, take_over
from osm_plugin.options import check_published, options_of, roots_there, threads_of
from osm_plugin.plan import options_key, plan
from osm_plugin.policies import POLICIES, PolicyDesk
from osm_plugin.qos import Classes, QosPolicy, check_classes, classes_of
from osm_plugin.report import Answer, Reporter
from osm_plugin.rounds import Change, as_written, in_rounds, plan_number
from osm_plugin.snapshot import CABLE, Snapshot, read_request
from osm_plugin.state import Kept, fits
from osm_plugin.tables_in_force import State
from osm_plugin.worker_log import WorkerLog, next_message
from routing.deadlock.proof import Proof
from routing.engines import ENGINES
from routing.engines.base import Engine, EngineOptions, offers_of
from routing.errors import IbnueError, InputError, OptionError
from routing.fabric import Fabric, NodeKind
from routing.fabric_builder import FabricBuilder
from routing.numerals import number_of
from routing.publish import verify
from routing.reroute import Stability, precompute
from routing.tables import Routing

PREFIX = "ibnue-"
_PR_SET_PDEATHSIG = 1
MOST_FILES = 256


def limit_resources() -> None:
    """Disable core files, which would contain the fabric, and limit the number of open files to a worker's needs."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = MOST_FILES if most == resource.RLIM_INFINITY else min(MOST_FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))


def die_with(parent: int) -> None:
    """Have the kernel kill this process when the OpenSM thread that started it ends.

    That thread lives until OpenSM ends.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("OpenSM is gone")


def plain_signals() -> None:
    """Reset signal masks and dispositions: both are inherited from OpenSM across exec."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)


REMEMBERED = 4
"""Number of recent fabrics that are recognised when they recur, such as the fault-free fabric after a repair."""


class Worker:
    """Request handler of the worker: computes proven tables for the fabric in the shared memory."""

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
        self._answer: Answer | None = None
        self._last_good = LastGood(config_path)
        self._engines = engines
        self._state = State()
        self._saver, self._unsaved = Desk("ibnue-last-good"), ""
        self._historian = Historian(self._state.remark)  # not remarks.append, because take_remarks replaces the list
        self._policies = PolicyDesk()
        self._earlier: deque[Snapshot] = deque(maxlen=REMEMBERED)
        # Tables of the last answer, their change, and whether they become the baseline tables.
        self._published: tuple[Kept, Change | None, bool] | None = None
        self._lines: list[str] = []
        self._said: set[str] = set()
        self._in_force: Kept | None = None
        self._silent: frozenset[int] = frozenset()  # GUIDs of the switches with unknown entries in the last sweep
        self._balanced: Routing | None = None  # tables for which a search has found no better balance
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
            precompute(last, self._state.baseline_of(last))
        except Exception:  # the re-route itself computes it again
            traceback.print_exc()

    def settle(self) -> Change | None:
        """Do the work that can wait until OpenSM has its answer: store and save the published tables.

        Returns
        -------
        The change of the tables in the switches; None if it was returned before or nothing changes.
        """
        answered, self._answer = self._answer, None
        if answered is not None:
            self._reporter.put(answered)
        published, self._published = self._published, None
        if published is not None:
            self._state.put(published[0], reset=published[2])
        self._state.save()
        self._look_ahead()
        self._saver.put(self._save_configuration)
        return None if published is None else published[1]

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

    def written(self, told: Mapping[str, Any]) -> None:
        """Record how many rounds of the last tables all switches have."""
        mine = self._in_force
        if mine is not None and mine.held is not None and told.get("plan") == plan_number(mine):
            self._in_force = as_written(mine, int(told.get("rounds", 0)))
        last = self._state.last
        if last is not None and last.held is not None and told.get("plan") == plan_number(last):
            self._state.last = as_written(last, int(told.get("rounds", 0)))
            # The baseline tables are the same tables, so their rounds are complete too.
            if self._state.baseline is last:
                self._state.baseline = self._state.last

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
        return self._policies.answer(self._memory, self._read(), config)

    def _read(self) -> Snapshot:
        """Read the request in the shared memory, and move its fabric to the front of the recent fabrics."""
        snapshot = read_request(self._memory.view(), self._earlier)
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
        snapshot = self._read()
        fabric = snapshot.fabric
        pinned = self._pinned(fabric, config)
        engine = self._engine(str(request["engine"]) if pinned is None else pinned.kept.engine, config)
        taken = self._take_over(engine, config, snapshot)
        options = options_of(engine.name, config, snapshot, taken.options)
        clock.lap("fabric")
        key = options_key(options)
        options = roots_there(options, fabric) if taken.optional_roots else options
        previous = self._before(engine, key, fabric, config, request.get("written", {}))
        before = previous if pinned is None else pinned.kept
        clock.lap("state")
        # Pinned tables are repaired with as few changes as possible.  Other tables may use the baseline tables, too.
        baseline = None if before is None or pinned is not None else self._state.baseline_of(before)
        stability = Stability.FULL if pinned is not None else Stability(config.stability)
        in_force = before is not None and before.held is None and self._may_gain(before)
        moves = config.rebalance if stability is Stability.BALANCED and in_force else 0
        made = plan(engine, options, fabric, before, baseline=baseline, stability=stability, moves=moves)
        tables, proof = made.routing, made.proof
        if before is not None and tables is before.routing and moves:
            self._balanced = tables  # no better balance was found
        verdict = check_published(proof, tables, snapshot, config)
        clock.lap("route")
        classes = self._classes(snapshot, tables, proof, config)
        kept = Kept(fabric, tables, proof, engine.name, key)
        # The update schedule starts from the entries in the switches, not from the tables that the worker remembers.
        base = self._base(snapshot, kept)
        change = None if base is None else self._change_to(base, kept, config)
        kept = self._in_force = kept if change is None else change.after
        wait_from = 0 if change is None or change.stages is None else change.stages.wait_from
        clock.lap("rounds")
        write_answer(
            self._memory, snapshot.answer_at, fabric, tables, np.ascontiguousarray(proof.hops),
            sequence=snapshot.sequence, certified=proof.certified,
            held=kept.held, plan=plan_number(kept), wait=config.round_wait, wait_from=wait_from,
            multicast_roots=taken.multicast_roots, classes=classes,
        )  # fmt: skip
        clock.lap("write")
        self._policies.routed(fabric, tables)
        # Tables of a bundle are not stored: they can be read from the bundle again.
        if offers_of(engine).recomputes:
            better_baseline = made.spread and baseline is not None and baseline.fabric.digest == fabric.digest
            self._published = kept, change, config.stability == "fresh" or pinned is not None or better_baseline
            self._historian.put(kept, config)
        if config.rebalance and stability is Stability.BALANCED and self._may_gain(kept):
            self._again = config.rebalance_pause
        lanes = number_of(tables.vls, "VL")
        counts = f"{number_of(fabric.switches, 'switch')}, {number_of(fabric.endports, 'end port')}"
        size = f"fabric {fabric.digest[:12]}: {counts}"
        entries = [] if base is None or not base.changed else [_entries(base.changed)]
        written = [] if change is None else [change.describe()]
        back = [] if pinned is None else [f"pinned to {pinned.name}"]
        how = "; ".join([*back, made.how, *entries, *written, *self._state.take_remarks()])
        counted = made.entries if base is None else {**made.entries, "changed": base.changed}
        self._answer = Answer(snapshot.sequence, kept, change, made.how, counted, clock.seconds())
        return f"{size}, {lanes}, {verdict}; {how}; {clock}"

    def _may_gain(self, tables: Kept | None) -> bool:
        """Return whether moving entries may improve the balance.

        This is the case for re-routed tables until a search has found no improvement.
        """
        if tables is None or tables.routing is self._balanced:
            return False
        return "rerouted_from" in tables.routing.provenance.options

    def _take_over(self, engine: Engine, config: PluginConfig, snapshot: Snapshot) -> Taken:
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

    def _classes(self, snapshot: Snapshot, tables: Routing, proof: Proof, config: PluginConfig) -> Classes:
        """Assign SLs and VLs to the classes of the QoS policy, and prove the assignment for all classes."""
        classes = classes_of(snapshot.fabric, tables, QosPolicy.of(snapshot.conf), snapshot.data_vls)
        check_classes(snapshot.fabric, classes, proof, threads=threads_of(config))
        self._log_once([classes.line] if classes.line else [])
        return classes

    def _log_once(self, lines: list[str]) -> None:
        self._lines += [line for line in lines if line not in self._said]
        self._said.update(lines)

    def take_lines(self) -> list[str]:
        """Return the additional lines for OpenSM's log, and forget them."""
        lines, self._lines = self._lines, []
        return lines

    def _base(self, snapshot: Snapshot, kept: Kept) -> Base | None:
        """Return the tables in the switches, or None if an exception occurs.

        An exception here must not prevent the publication of proven tables.
        """
        remembered = [(tables, mine) for tables, mine in ((self._in_force, True), (self._state.last, False)) if tables]
        try:
            return base_of(snapshot.fabric, snapshot.switch_tables, kept.routing, remembered)
        except Exception:
            traceback.print_exc()
            self._state.remarks.append("base unknown: bug in the worker (its log has the traceback)")
            return None

    def _pinned(self, fabric: Fabric, config: PluginConfig) -> Pinned | None:
        """Return the tables pinned by the administrator if they belong to this subnet, else None."""
        found = self._historian.pinned(config, threads=threads_of(config))
        self._reporter.send({"pinned": None if found is None else found.name})
        if found is None:
            return None
        if found.kept.engine in self._engines and fits(found.kept, fabric):
            return found
        self._state.remarks.append("pin ignored: its tables are of another fabric, or of an engine that is not there")
        return None

    def _change_to(self, base: Base, kept: Kept, config: PluginConfig) -> Change | None:
        """Return the change from the tables in the switches to new tables, with its update schedule."""
        silent, self._silent = self._silent, base.silent(kept.fabric)
        # A switch that answered neither in the last sweep nor in this one may never answer.  The other switches must
        # not wait for it, so the tables are written at once.
        hopeless = bool(self._silent & silent)
        try:
            wanted = config.transitions == "rounds" and not hopeless
            return in_rounds(base, kept, wanted=wanted, threads=threads_of(config))
        except Exception:  # a failed search must not prevent the publication of proven tables
            traceback.print_exc()
            return Change(base, kept, None, asked=True)

    def _before(
        self, engine: Engine, key: str, fabric: Fabric, config: PluginConfig, written: Mapping[str, Any]
    ) -> Kept | None:
        """Return the tables in force to re-route from, or None if the engine has to compute new tables."""
        recomputes = offers_of(engine).recomputes
        if recomputes:
            self._state.refresh(config.state_path, threads=threads_of(config))
        self.written(written)  # may be about the tables that were read just now
        if not recomputes or config.stability == "fresh":
            return None
        return self._state.before(engine.name, key, fabric)


def _entries(count: int) -> str:
    return f"{number_of(count, 'entry changes', 'entries change')} in the switches"


class Clock:
    """Stopwatch that measures the phases of a request for the log."""

    def __init__(self) -> None:
        self._laps: list[tuple[str, float]] = []
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Record the time since the last lap as a phase."""
        now = time.perf_counter()
        self._laps.append((name, now - self._last))
        self._last = now

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each phase by its name."""
        return dict(self._laps)

    def __str__(self) -> str:
        return ", ".join(f"{name} {1e3 * seconds:.1f} ms" for name, seconds in self._laps)


def tiny_fabric() -> Fabric:
    """Return a ring of four switches with a CA each: enough to load every module and kernel."""
    build = FabricBuilder("tiny")
    switches = [build.add_device(NodeKind.SWITCH, 0x10 + i, f"s{i}", 4) for i in range(4)]
    for i, switch in enumerate(switches):
        build.connect(switch, 1, switches[(i + 1) % 4], 2)
        build.connect(switch, 3, build.add_device(NodeKind.CA, 0x100 + 16 * i, f"h{i}", 1), 1)
    return build.build()


def warm(engines: Mapping[str, Engine]) -> None:
    """Route and prove a small fabric with every engine, so that all imports are done before the first sweep."""
    fabric = tiny_fabric()
    for engine in engines.values():
        try:
            verify(fabric, engine.route(fabric, EngineOptions()), engine)
        except Exception:  # noqa: PERF203  (an engine that cannot route a ring may still route other fabrics)
            print(f"{engine.name} does not route the warming ring", file=sys.stderr)  # noqa: T201
    gc.collect()
    gc.freeze()


def serve(link: socket.socket, worker: Worker, log: WorkerLog) -> None:
    """Answer requests until OpenSM closes the socket, and do deferred work between two requests."""

    def tell(line: str) -> None:
        log.info(line)
        with suppress(OSError):  # OpenSM has exited
            link.send(json.dumps({"remark": line}).encode())

    judge = Judge(tell)
    while message := next_message(link):
        request = json.loads(message)
        if "engine" in request:
            answer = worker.answer(request)
            for line in worker.take_lines():
                tell(line)
            link.send(json.dumps(answer).encode())
        else:
            worker.written(request.get("written", {}))
        if (change := worker.settle()) is not None:
            judge.put(change)
        del change
        gc.collect()
        log.debug(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss} kB of memory at most so far")


def main(setup_text: str) -> int:
    """Run the worker.

    Parameters
    ----------
    setup_text
        JSON object: file descriptors ``socket``, ``memory`` and ``reports``, process id ``parent``, and optionally
        ``path`` and ``config`` of the configuration.
    """
    setup = json.loads(setup_text)
    plain_signals()
    limit_resources()
    die_with(int(setup["parent"]))
    engines: dict[str, Engine] = dict(ENGINES)
    warm(engines)
    gc.disable()  # a collection can take longer than a sweep, so serve() collects when OpenSM has its answer
    reporter = Reporter(socket.socket(fileno=int(setup["reports"])))
    path = setup.get("path")
    log, config = WorkerLog(), from_message(setup.get("config"))
    log.level = config.log_level
    memory = SharedMemory(int(setup["memory"]))
    worker = Worker(memory, engines, reporter, None if path is None else Path(path), log)
    worker.prepare(config)
    link = socket.socket(fileno=int(setup["socket"]))
    about = f"ibnue {routing.__version__}, Python {sys.version.split()[0]}, numpy {np.__version__}"
    names = [PREFIX + name for name in plugin_engines()]
    link.send(json.dumps({"engines": names, "about": about, "protocol": protocol()}).encode())
    serve(link, worker, log)
    return 0
