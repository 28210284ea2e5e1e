"""Manage the worker process from inside OpenSM.  This module imports only the standard library, because it runs inside
OpenSM.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from osm_plugin.config import POLICIES, PluginConfig, config_path
from osm_plugin.last_good import READ_AGAIN, VALID_AGAIN, ConfigFile
from osm_plugin.status import Status
from osm_plugin.status_writer import OutputFiles, StatusWriter
from osm_plugin.worker_process import SILENT, WorkerProcess
from routing import __version__
from routing.errors import EnvironmentProblem, RoutingError

MOST_START_DEADLINES = 5
"""A worker that is not ready after this multiple of ``start_deadline`` is replaced, even if it still computes."""

FIRST_PAUSE, MOST_PAUSE, CALM = 10.0, 320.0, 600.0
"""Pauses in seconds between starts of workers by :meth:`Host.check_worker`.  The first pause is ``FIRST_PAUSE``.  Each
further start doubles the pause, up to ``MOST_PAUSE``.  If no worker is started for ``CALM`` seconds after a pause, the
next pause is ``FIRST_PAUSE`` again.
"""


class StillComputing(RoutingError):
    """The worker has missed the deadline but still uses CPU time.  Its answer will be used when the answer arrives."""


class WorkerReplaced(RoutingError):
    """The worker has ended or stalled before its answer, and another worker is started."""


class Host:
    """Controls the worker process of one OpenSM: its configuration, its requests and their deadline."""

    def __init__(self, python: str, paths: list[str]) -> None:
        self._python = python
        self._paths = paths
        self._file = ConfigFile(None)
        self._ports_config = PluginConfig()  # the configuration for the next request for port rules
        self._opensm_log = self._configured = ""
        self._log_problem = ""  # why the worker's log cannot be opened; "": it can be opened
        self._worker: WorkerProcess | None = None
        self._generation = 0
        # Two threads of OpenSM use the worker: the one that sweeps, and the one that checks the worker between sweeps.
        self._lock = threading.Lock()
        # Three variables of check_worker, which leaves a pause between two starts of workers:
        # _pause: seconds between the last start and the earliest next start.
        # _next_start: time of the earliest next start (time.monotonic()).
        # _last_death: text on how the last worker ended.  If the next worker ends before it is ready, and its text is
        # equal, the text is not logged again.
        self._pause = FIRST_PAUSE / 2
        self._next_start = 0.0
        self._last_death = ""
        # A sweep waits for the worker's answer until this time (time.monotonic()).  0: no sweep waits.
        self._until = 0.0
        # Time of the last sweep in which a worker was not ready after start_deadline, but was left running
        # (time.monotonic()).
        self._found_overdue = -math.inf
        self._remarks: list[str] = []
        # The number of the last update schedule ("plan"), and how many of its rounds all switches have acknowledged
        # ("rounds").  The dictionary is empty after a request has passed both to the worker.
        self._written: dict[str, int] = {}
        self._shadow: WorkerProcess | None = None
        self._shadow_generation = 0
        # Number of the open request: wait() has not yet returned its answer.  None: there is no open request.
        self._asked_for: int | None = None
        self._answer: dict[str, Any] | None = None
        self._engine = ""  # Name of the engine of the last request.
        # For each engine that has failed since the last answer with tables: the number of workers that failed while
        # they computed tables for this engine.  The key "" is for workers that failed before they were ready.
        self._failed: dict[str, int] = {}
        # Time at which OpenSM should sweep, so that more entries are rebalanced (time.monotonic()).  None: never.
        self._again: float | None = None
        # Memory files in which a worker leaves its tables for the worker that replaces it.
        self._copies = [os.memfd_create("ibnue-copy", os.MFD_CLOEXEC) for _ in range(2)]
        self._status = StatusWriter(
            {"version": __version__, "pid": os.getpid()}, self._remarks.append, self._follow_log
        )

    @property
    def _config(self) -> PluginConfig:
        return self._file.current

    def start(self, options: str, opensm_log: str, configured: str = "") -> tuple[list[str], str]:
        """Start the worker, and wait until it is ready.

        ``configured`` is OpenSM's option routing_engine.  The worker loads the code of these engines first.

        Returns
        -------
        engines
            Names of the engines that the worker offers.
        line
            A line for OpenSM's log.
        """
        self._opensm_log, self._configured = opensm_log, configured
        self._file = ConfigFile(config_path(options))
        if options and self._file.path is None:
            self._remarks.append(f"event_plugin_options {options}: names no configuration, so the defaults apply")
        self._file.refresh()
        worker = self._running()
        worker.wait_ready(time.monotonic() + self._config.start_deadline)
        hello = worker.hello or {}
        return list(hello["engines"]), f"worker {worker.process.pid} is ready: {hello['about']}"

    def memory(self) -> tuple[int, int]:
        """Return the memory that a ready worker shares with OpenSM, and start the deadline of the next request.

        Returns
        -------
        descriptor
            File descriptor of the shared memory.
        generation
            Number of workers that have been started so far.  If the number changes, the caller has to map the memory of
            the new worker.
        """
        self._file.refresh()
        try:
            with self._lock:
                worker = self._running()
                self._until = time.monotonic() + self._config.deadline
            worker.listen()
            worker.wait_ready(self._until)
        except EnvironmentProblem:
            self._until = 0.0
            self._failed.setdefault("", 0)
            self._replace_unready()
            raise
        return worker.memory, self._generation

    def _replace_unready(self) -> None:
        """Replace a worker that has ended, or hangs, before it was ready.

        A worker that needs longer than ``start_deadline`` but still computes is not replaced at once.  If every sweep
        replaced the worker, no worker would ever become ready.  After :data:`MOST_START_DEADLINES` times
        ``start_deadline`` the worker is replaced, because it may be in an endless loop.
        """
        if (worker := self._worker) is None:
            return
        age, limit = time.monotonic() - worker.started, self._config.start_deadline
        hangs = age > MOST_START_DEADLINES * limit or (age > limit and not worker.computes(SILENT))
        if hangs or not worker.alive:
            self._replace(died=worker.crashed)
        elif age > limit:
            self._found_overdue = time.monotonic()

    def send(self, engine: str, sequence: int) -> None:
        """Inform the worker that a request is in the shared memory.

        ``engine`` is the engine that shall compute tables, and ``sequence`` the number of the request.

        Raises
        ------
        WorkerReplaced
            The worker has ended, and another worker is started.
        """
        worker = self._require_worker()
        request = {"engine": engine, "sequence": sequence, "written": self._written, "failed": self._failed}
        config = self._ports_config if engine == POLICIES else self._config
        try:
            worker.send({**request, "config": config.to_table()})
            worker.listen()
            self._engine, self._written, self._asked_for, self._answer = engine, {}, sequence, None
        except OSError:
            how = self._replace_dead(worker)
            self._failed.setdefault(engine, 0)
            raise WorkerReplaced(how) from None

    def wait(self, sequence: int, seconds: float) -> str | None:
        """Wait until the worker's answer is in the shared memory.

        ``sequence`` is the number of the request.

        Returns
        -------
        A line for OpenSM's log.  None: the worker has not answered within ``seconds``, and the deadline of the request
        has not passed.

        Raises
        ------
        StillComputing
            The deadline of the request has passed, but the worker still computes.  The caller should call this method
            again later.
        WorkerReplaced
            The worker ended, sent an invalid message, or was idle until the deadline.
        RoutingError
            The worker refused the request.  A worker with a bug is replaced.
        """
        worker = self._require_worker()
        until = min(self._until, time.monotonic() + seconds)
        try:
            while self._answer is None and (message := worker.receive(until)) is not None:
                self._record_remark(message)
        except EOFError:
            raise self._replaced(f"the worker {worker.exit_description()}") from None
        except ValueError:
            raise self._replaced("the worker sent an invalid message") from None
        answer = self._answer if self._asked_for == sequence else None
        if answer is None:
            worker.listen()
            if time.monotonic() < self._until:
                return None
            deadline = self._config.deadline
            if worker.computes(min(SILENT, deadline / 2)):
                raise StillComputing(
                    f"no answer within {deadline:g} s; the worker still computes, and its tables will be used later"
                )
            cause = worker.likely_cause()
            self._replace()
            raise WorkerReplaced(f"no answer within {deadline:g} s{cause}; another worker is started")
        self._asked_for, self._answer, self._until = None, None, 0.0
        again = answer.get("again")
        self._again = None if again is None else time.monotonic() + float(again)
        if answer.get("warning"):
            self._warn(str(answer["warning"])[:900])
        if answer.get("broken"):
            self._replace(died=True)
        if not answer.get("ok"):
            self._failed.setdefault(self._engine, 0)
            raise RoutingError(str(answer.get("note", "no reason given")))
        if self._engine != POLICIES:
            self._failed = {}
        return str(answer["note"])

    def awaited(self) -> bool | None:
        """Return whether OpenSM should sweep now.  False: a sweep may be needed later.  None: no sweep is expected.

        OpenSM should sweep in five cases:

        - A late answer has arrived.
        - The worker has an open request, but has not computed for :data:`SILENT` seconds.
        - After a failure, the new worker has become ready.
        - After a failure, the new worker has not become ready within ``start_deadline`` seconds after its start.  If a
          sweep has found the worker overdue, but has not replaced it, the seconds count from that sweep.
        - The pause before the next rebalancing is over.

        While a sweep waits for the worker, the result is never True.
        """
        with self._lock:
            worker, now = self._worker, time.monotonic()
            if worker is None or not worker.alive:
                return None
            if now < self._until:
                return False
            if worker.hello is None:
                overdue = now - max(worker.started, self._found_overdue) > self._config.start_deadline
                return worker.has_greeted() or overdue if self._failed else None
            if self._asked_for is None:
                return None if self._again is None else now >= self._again
            self._listen(worker)
            return self._answer is not None or not worker.computes(SILENT)

    def _warn(self, line: str) -> None:
        """Store a line for the log about a problem that did not stop the engine, or about the end of this problem."""
        self._remarks.append(line if line.endswith((READ_AGAIN, VALID_AGAIN)) else f"ERR IBN20: {line}")

    def check_worker(self) -> str:
        """Check the worker when a sweep begins or ends, and each second between sweeps.  If the worker has ended,
        replace it, so that a worker is ready when needed.

        Returns
        -------
        The next line for the log, about a worker, its tables or the configuration; "" if there is no line.  An error
        begins with "ERR".
        """
        with self._lock:
            if time.monotonic() >= self._until:
                self._tend()
            if self._shadow is not None and self._shadow.alive:
                self._listen(self._shadow)
            while self._file.warnings:
                self._warn(self._file.warnings.pop(0))
            return self._remarks.pop(0) if self._remarks else ""

    def _tend(self) -> None:
        """Process the worker's messages.  If the worker has ended, start another worker.

        If workers end again and again, each start follows only after a pause.
        """
        worker, now = self._worker, time.monotonic()
        if worker is not None and worker.alive:
            self._listen(worker)
            return
        if now < self._next_start or (worker is None and not self._failed):
            return
        self._pause = min(2 * self._pause, MOST_PAUSE) if now < self._next_start + CALM else FIRST_PAUSE
        self._next_start = now + self._pause
        try:
            how = self._restart() if worker is None else self._replace_dead(worker)
        except EnvironmentProblem as problem:
            how = str(problem)
        if how != self._last_death or (worker is not None and worker.hello is not None):
            self._remarks.append(how)
        self._last_death = how
        self._put_status()

    def _listen(self, worker: WorkerProcess) -> None:
        """Process the messages that a worker has sent.  If the worker has ended, the next :meth:`check_worker` replaces
        it.
        """
        if worker.hello is None:
            return
        with contextlib.suppress(EOFError, ValueError):
            while (answer := worker.receive(0.0)) is not None:
                self._record_remark(answer)

    def _record_remark(self, answer: dict[str, Any]) -> None:
        """Store a message of a worker: a remark for the log, or the answer to the open request."""
        if "remark" in answer:
            self._remarks.append(str(answer["remark"])[:900])
        elif self._asked_for is not None and answer.get("sequence") == self._asked_for:
            self._answer = answer

    def written(self, plan: int, rounds: int) -> None:
        """Inform the worker how many rounds of an update schedule all switches have acknowledged.

        ``plan`` is the number of the schedule, and ``rounds`` the number of rounds.  The next request repeats both,
        because the worker may be replaced before that request.
        """
        self._written = {"plan": plan, "rounds": rounds}
        self._status.put(self._output_files(), lambda status: status.take_rounds(rounds))
        if self._worker is not None and self._worker.alive and self._worker.hello is not None:
            with contextlib.suppress(OSError):
                self._worker.send({"written": self._written})

    def has_policies(self) -> bool:
        """Return whether the configuration names a file of port rules.

        The later request for port rules uses the same configuration, even if the configuration file changes in between.
        """
        self._ports_config = self._file.refresh()
        return self._ports_config.policies is not None

    def discard(self) -> str:
        """Replace a worker whose tables turned out to be wrong, and return a line for the log."""
        with self._lock:
            return self._replace(died=True)

    def status(self, facts: str) -> None:
        """Update the status file with the facts that the C part of the plugin (the shim) reports."""
        self._put_status(lambda status: status.take_summary(facts))

    def _put_status(self, *changes: Callable[[Status], None]) -> None:
        """Apply some changes to the status, set the worker's process number in it, and write the status file."""
        worker = self._worker
        pid = worker.process.pid if worker is not None and worker.alive else None
        self._status.put(self._output_files(), *changes, lambda status: status.take_worker(pid))

    def _output_files(self) -> OutputFiles:
        metrics = self._config.metrics_file
        return OutputFiles(self._config.status_path, None if metrics is None else Path(metrics))

    def stop(self) -> None:
        """End the worker and the shadow engine's worker, and write the last status."""
        self._end_worker()
        self._end_shadow()
        self._status.end()

    def _end_shadow(self) -> None:
        if self._shadow is not None:
            self._shadow.end()
            self._shadow = None

    def shadow(self, in_force: str) -> list[tuple[int, int]]:
        """Return the descriptor of the memory that the shadow engine's worker shares with OpenSM.  Start the worker if
        necessary.

        A shadow engine computes tables only to compare them with the tables in force.  If no shadow engine is
        configured, the worker is used only after a fallback to an engine of OpenSM.  It then searches the tables in
        force for credit loops, and computes no tables.  ``in_force`` is the engine whose tables OpenSM uses.

        Returns
        -------
        A list with one pair (descriptor, generation), as :meth:`memory` returns it.  The list is empty if no worker has
        to check the tables in force, or if these tables are the shadow engine's own tables.
        """
        engine = self._config.shadow
        if engine is None and not self._fell_back(in_force):
            self._end_shadow()
            return []
        if engine is not None and in_force == "ibnue-" + engine.removeprefix("ibnue-"):
            return []
        if self._shadow is not None and not self._shadow.alive:
            how = self._shadow.exit_description()
            self._remarks.append(f"the worker that checks tables {how}; another one is started")
            self._end_shadow()
        if self._shadow is None:
            self._shadow = self._start("shadow")
            self._shadow.hello = {}  # The shadow worker counts as ready, because it sends no first message.
            self._shadow_generation += 1
        return [(self._shadow.memory, self._shadow_generation)]

    def _fell_back(self, in_force: str) -> bool:
        """Return whether ``in_force`` is one of OpenSM's own engines, and OpenSM has tried an ibnue engine before."""
        names = self._configured.replace(",", " ").split()
        before = names[: names.index(in_force)] if in_force in names else names
        tried = any(name.startswith("ibnue-") for name in before)
        return tried and in_force != "none" and not in_force.startswith("ibnue-")

    def shadow_send(self, in_force: str, own_sls: bool, sequence: int) -> None:
        """Inform the shadow engine's worker that tables are in its shared memory.  No caller waits for its result.

        ``in_force`` is the engine whose tables OpenSM uses.  ``own_sls`` states whether this engine assigns SLs.
        ``sequence`` is the number of the request in the memory.

        Raises
        ------
        EnvironmentProblem, RoutingError
            The shadow engine has no worker, or its worker accepts no message.
        """
        if self._shadow is None:
            raise EnvironmentProblem("the shadow engine has no worker", remedy="the next sweep starts one")
        message = {
            "in_force": in_force, "own_sls": own_sls, "fell_back": self._fell_back(in_force), "sequence": sequence,
            "config": self._config.to_table(),
        }  # fmt: skip
        try:
            self._shadow.send(message)
        except ConnectionError:
            # The worker has closed its end of the connection: it has ended since the call of :meth:`shadow`, or it
            # has become unusable.  A worker that is just ending gets a second to end, so that its own exit status is
            # known.  The next call of :meth:`shadow` reports how the worker ended, and starts another worker.
            self._shadow.kill(grace=1.0)
        except OSError as problem:
            raise RoutingError(f"the worker that checks tables accepts no message: {problem.strerror}") from None

    def _end_worker(self) -> None:
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def _running(self) -> WorkerProcess:
        """Return a running worker, which is started or replaced if necessary."""
        if self._worker is None:
            self._restart()
        elif not self._worker.alive:
            self._remarks.append(self._replace_dead(self._worker))
        return self._require_worker()

    def _require_worker(self) -> WorkerProcess:
        """Return the worker, or raise EnvironmentProblem if there is no worker."""
        if self._worker is None:
            raise EnvironmentProblem("there is no worker", remedy="the next sweep starts one")
        return self._worker

    def _replace(self, *, died: bool = False) -> str:
        """End a worker that has failed while it started or routed, and start another worker.  Return a line for the
        log.

        ``died`` states whether the worker has ended by itself, had an internal error, or sent a wrong message or wrong
        tables.  Such failures are counted, because the tables in force may be their cause.  After two of them, these
        tables are not used any more.
        """
        cause = "" if self._worker is None or self._worker.hello is None else self._engine
        self._failed[cause] = max(int(cause != ""), self._failed.get(cause, 0) + died)
        return self._restart()

    def _restart(self) -> str:
        """End the worker, if a worker runs, and start another worker.  Return a line for the log."""
        self._end_worker()
        self._asked_for, self._answer, self._until = None, None, 0.0
        self._worker = self._start("worker")
        self._generation += 1
        return "another worker is started"

    def _replaced(self, reason: str) -> WorkerReplaced:
        """Start another worker, and return the exception to raise.  Its message states why the worker was replaced."""
        self._replace(died=True)
        return WorkerReplaced(f"{reason}; another one is started")

    def _replace_dead(self, worker: WorkerProcess) -> str:
        """Start another worker, and return a line for the log that describes how the previous worker ended."""
        how = f"the worker {worker.exit_description()}; another one is started"
        if worker.hello is None or (self._asked_for is not None and self._answer is None):
            self._replace(died=worker.crashed)
        else:
            self._restart()  # The worker was idle when it ended, so the tables in force did not cause its end.
        return how

    def _start(self, module: str) -> WorkerProcess:
        """Start a process that runs ``osm_plugin.<module>`` with the current configuration."""
        log = self._open_log()
        setup = {
            "path": None if self._file.path is None else str(self._file.path),
            "config": self._config.to_table(),
            "engines": self._configured,
            "doubtful": self._failed.get("", 0) > 1,
        }
        reports, copies = self._status.reports.fileno(), self._copies if module == "worker" else ()
        try:
            user = self._config.worker_user
            return WorkerProcess(
                self._python, self._paths, setup, log, reports=reports, copies=copies, module=module, user=user
            )  # fmt: skip
        finally:
            if log is not None:
                log.close()

    def _log_path(self) -> Path | None:
        if self._config.log_file is not None:
            return Path(self._config.log_file)
        return Path(self._opensm_log).parent / "ibnue-worker.log" if self._opensm_log.startswith("/") else None

    def _open_log(self) -> IO[bytes] | None:
        """Open the workers' log.  If the file cannot be opened, report the reason once.  Also report when the file can
        be opened again.
        """
        path, log, why = self._log_path(), None, ""
        try:
            log = None if path is None else open(path, "ab", opener=_open_without_wait)  # noqa: SIM115
        except OSError as problem:
            why = f"{(problem.strerror or str(problem)).lower()} (check log_file and its folder)"
        if why != self._log_problem and path is not None:
            state = f"is not written: {path}: {why}" if why else f"is written again: {path}"
            self._remarks.append(f"the worker's log {state}")
        self._log_problem = why
        return log

    def _follow_log(self) -> None:
        """Reopen the workers' log file if log rotation has moved it.  The status thread calls this function."""
        path = self._log_path()
        for worker in (self._worker, self._shadow):
            if worker is not None and path is not None and not worker.has_log(path) and (log := self._open_log()):
                with log:
                    worker.take_log(log)


def _open_without_wait(path: str, flags: int) -> int:
    """Open a file for writing, and return its descriptor.  A pipe is an error, because a pipe has no positions.

    Without O_NONBLOCK, OpenSM would wait until a program opens the other end of the pipe.
    """
    file = os.open(path, flags | os.O_NONBLOCK, 0o666)
    if stat.S_ISFIFO(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.ESPIPE, "is a pipe")
    os.set_blocking(file, True)
    return file
