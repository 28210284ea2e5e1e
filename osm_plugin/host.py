"""Keeps the worker process from inside OpenSM.  Imports nothing but the standard library."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import IO, Any

from osm_plugin.config import PluginConfig, config_path, read_config
from osm_plugin.worker_process import WorkerProcess
from routing.errors import EnvironmentProblem, RoutingError


class Host:
    """The one host of an OpenSM process: configuration, worker, deadline."""

    def __init__(self, python: str, paths: list[str]) -> None:
        self._python = python
        self._paths = paths
        self._path: Path | None = None
        self._opensm_log = ""
        self._config = PluginConfig()
        self._stamp: tuple[int, int] | None = None
        self._worker: WorkerProcess | None = None
        self._generation = 0
        self._until = 0.0
        self._remarks: list[str] = []
        self._written: dict[str, int] = {}

    def start(self, options: str, opensm_log: str) -> tuple[list[str], str]:
        """Start the worker and wait for it; its engines' names, and a line for the log."""
        self._opensm_log = opensm_log
        self._path = config_path(options)
        self._reload()
        worker = self._running()
        worker.wait_ready(time.monotonic() + self._config.start_deadline)
        hello = worker.hello or {}
        return list(hello["engines"]), f"worker {worker.process.pid} is ready: {hello['about']}"

    def memory(self) -> tuple[int, int]:
        """The shared memory (descriptor, generation) of a worker that is ready.  The deadline runs from here."""
        self._reload()
        self._until = time.monotonic() + self._config.deadline
        worker = self._running()
        try:
            worker.wait_ready(self._until)
        except EnvironmentProblem:
            # One that is only slow to start is let be: replaced at every sweep, none would ever be ready.
            if not worker.alive or time.monotonic() > worker.started + self._config.start_deadline:
                self._replace()
            raise
        return worker.memory, self._generation

    def send(self, engine: str, sequence: int) -> None:
        """Tell the worker that a request lies in the memory."""
        worker = self._asked()
        try:
            place = None if self._path is None else str(self._path)
            worker.send({"engine": engine, "sequence": sequence, "config": place, "written": self._written})
            self._written = {}
        except OSError:
            obituary = worker.obituary()
            self._replace()
            raise RoutingError(f"the worker {obituary}; another one is started") from None

    def wait(self, sequence: int, seconds: float) -> str | None:
        """Wait until the answer lies in the memory; a line for the log, or None after ``seconds``.

        Raises
        ------
        RoutingError
            The worker failed, died, or took longer than the deadline; after a failure of its own it is replaced.
        """
        worker = self._asked()
        until = min(self._until, time.monotonic() + seconds)
        try:
            answer = worker.receive(until)
            while answer is not None and answer.get("sequence") != sequence:
                self._note(answer)
                answer = worker.receive(until)
        except EOFError:
            obituary = worker.obituary()
            self._replace()
            raise RoutingError(f"the worker {obituary}; another one is started") from None
        except ValueError:
            self._replace()
            raise RoutingError("the worker talks nonsense; another one is started") from None
        if answer is None and time.monotonic() < self._until:
            return None
        if answer is None:
            self._replace()
            raise RoutingError(f"no answer within {self._config.deadline:g} s; another worker is started")
        if answer.get("broken"):
            self._replace()
        if not answer.get("ok"):
            raise RoutingError(str(answer.get("note", "no reason given")))
        return str(answer["note"])

    def tend(self) -> str:
        """See to the worker as a sweep begins or ends, so that a new one is warm when needed.

        Returns a line for the log, if there is one: a worker's end, or what it had to say of the tables it made.
        """
        if self._worker is None:
            return ""
        if self._worker.alive:
            self._listen(self._worker)
        else:
            obituary = self._worker.obituary()
            self._replace()
            self._remarks.append(f"the worker {obituary}; another one is started")
        told, self._remarks = self._remarks, []
        return "; ".join(told)

    def _listen(self, worker: WorkerProcess) -> None:
        """Take what was said without a question.  A worker that is about to die is seen to the next time."""
        if worker.hello is None:
            return
        with contextlib.suppress(EOFError, ValueError):
            while (said := worker.receive(0.0)) is not None:
                self._note(said)

    def _note(self, said: dict[str, Any]) -> None:
        if "remark" in said:
            self._remarks.append(str(said["remark"])[:900])

    def written(self, plan: int, rounds: int) -> None:
        """Tell the worker how many rounds of a plan all switches have, and its successors, should it die."""
        self._written = {"plan": plan, "rounds": rounds}
        if self._worker is not None and self._worker.alive and self._worker.hello is not None:
            with contextlib.suppress(OSError):
                self._worker.send({"written": self._written})

    def has_policies(self) -> bool:
        """Whether the configuration, as it is now, names rules for ports."""
        self._reload()
        return self._config.policies is not None

    def discard(self) -> str:
        """Replace a worker whose tables turned out to be wrong; a line for the log."""
        self._replace()
        return "another worker is started"

    def stop(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def _running(self) -> WorkerProcess:
        if self._worker is None or not self._worker.alive:
            self._replace()
        return self._asked()

    def _asked(self) -> WorkerProcess:
        if self._worker is None:
            raise EnvironmentProblem("there is no worker")
        return self._worker

    def _replace(self) -> None:
        self.stop()
        log = self._open_log()
        setup = {"config": None if self._path is None else str(self._path)}
        try:
            self._worker = WorkerProcess(self._python, self._paths, setup, log)
        finally:
            if log is not None:
                log.close()
        self._generation += 1

    def _open_log(self) -> IO[bytes] | None:
        place = self._config.log_file
        if place is None and self._opensm_log.startswith("/"):
            place = str(Path(self._opensm_log).parent / "ibnue-worker.log")
        try:
            return None if place is None else Path(place).open("ab")
        except OSError:
            return None

    def _reload(self) -> None:
        """Read the configuration if it changed (SIGHUP brings a sweep, and with it us here)."""
        stamp = None
        if self._path is not None:
            try:
                about = self._path.stat()
                stamp = (about.st_mtime_ns, about.st_size)
            except OSError:
                stamp = None
            if stamp is not None and stamp == self._stamp:
                return
        self._stamp = None
        self._config = read_config(self._path)
        self._stamp = stamp
