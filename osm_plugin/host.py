"""Keeps the worker process from inside OpenSM.  Imports nothing but the standard library.

The shim calls these functions through cffi; they never raise into it, and what they return on success is
:data:`TOKEN`, because 0 is what cffi returns when Python itself is broken.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from osm_plugin.config import PluginConfig, config_path, read_config
from routing.errors import EnvironmentProblem, IbnueError, RoutingError

TOKEN = 0x1B0E
LONGEST_MESSAGE = 1 << 16

_F_ADD_SEALS, _F_SEAL_SHRINK = 1033, 2
_BOOT = "import sys; sys.path[:0] = sys.argv[1:-1]; from osm_plugin.worker import main; sys.exit(main(sys.argv[-1]))"


def clean_environment() -> dict[str, str]:
    """OpenSM's environment without a preloaded simulator, which is meant for OpenSM alone."""
    environment = dict(os.environ)
    preload = environment.pop("LD_PRELOAD", "").replace(":", " ").split()
    kept = [library for library in preload if "umad2sim" not in library]
    if kept:
        environment["LD_PRELOAD"] = ":".join(kept)
    return environment


class WorkerProcess:
    """One worker: its process, the socket to it, and the memory shared with it."""

    def __init__(self, python: str, paths: list[str], setup: dict[str, Any], log: IO[bytes] | None) -> None:
        import fcntl  # noqa: PLC0415  (an extension module: not before libpython's symbols are visible)

        self.owner = os.getpid()
        self.hello: dict[str, Any] | None = None
        self._log_path = None if log is None else Path(log.name)
        self._log_start = 0 if log is None else log.seek(0, os.SEEK_END)
        self.memory = os.memfd_create("ibnue", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        # A file that shrinks under a mapping kills whoever reads it.  OpenSM reads it.
        fcntl.fcntl(self.memory, _F_ADD_SEALS, _F_SEAL_SHRINK)
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (self.socket, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * LONGEST_MESSAGE)
        setup = {**setup, "socket": theirs.fileno(), "memory": self.memory, "parent": self.owner}
        try:
            self.process = subprocess.Popen(
                [python, "-I", "-X", "faulthandler", "-c", _BOOT, *paths, json.dumps(setup)],
                pass_fds=(theirs.fileno(), self.memory),
                stdin=subprocess.DEVNULL,
                stdout=log or subprocess.DEVNULL,
                stderr=log or subprocess.DEVNULL,
                start_new_session=True,
                env=clean_environment(),
                cwd="/",
            )
        except OSError as problem:
            self.socket.close()
            os.close(self.memory)
            raise EnvironmentProblem(f"the worker cannot be started: {python}: {problem.strerror}") from None
        finally:
            theirs.close()
        self._reaper = threading.Thread(target=self.process.wait, name="ibnue-reaper", daemon=True)
        self._reaper.start()

    @property
    def alive(self) -> bool:
        """Whether the process runs, and is ours (a daemon's fork does not inherit children)."""
        return self.owner == os.getpid() and self.process.poll() is None and self._reaper.is_alive()

    def send(self, message: dict[str, Any]) -> None:
        """Send a request; raises OSError when the worker is gone (and no SIGPIPE: OpenSM would die of it)."""
        self.socket.send(json.dumps(message).encode(), socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)

    def receive(self, until: float) -> dict[str, Any] | None:
        """The next message, or None when there is none by then (``time.monotonic()``).

        Raises
        ------
        EOFError
            The worker is gone.
        """
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        left = until - time.monotonic()
        if not poll.poll(max(0, int(left * 1000) + 1)):
            return None
        try:
            message = self.socket.recv(LONGEST_MESSAGE)
        except OSError:
            message = b""
        if not message:
            raise EOFError
        return dict(json.loads(message))

    def wait_ready(self, until: float) -> None:
        """Wait for the worker's first word.

        Raises
        ------
        EnvironmentProblem
            It died, or did not speak in time.
        """
        if self.hello is not None:
            return
        try:
            self.hello = self.receive(until)
        except EOFError:
            raise EnvironmentProblem(f"the worker {self.obituary()} while it started") from None
        if self.hello is None:
            raise EnvironmentProblem("the worker was not ready in time")

    def obituary(self) -> str:
        """How it died, with the last line of its log."""
        self._reaper.join(1.0)
        code = self.process.returncode
        how = "closed its connection" if code is None else f"ended with status {code}"
        if code is not None and code < 0:
            how = f"was killed by signal {-code}"
        last = self._last_words()
        return f"{how} ({last})" if last else how

    def _last_words(self) -> str:
        if self._log_path is None:
            return ""
        try:
            with self._log_path.open("rb") as log:
                end = log.seek(0, os.SEEK_END)
                log.seek(max(self._log_start, end - 2000))
                lines = log.read().decode(errors="replace").split("\n")
        except OSError:
            return ""
        return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")

    def end(self) -> None:
        """Kill the process, if it is there still, and give everything back."""
        if self.owner == os.getpid():
            self.process.kill()
            self._reaper.join(5.0)
        self.socket.close()
        os.close(self.memory)


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
            self._replace()
            raise
        return worker.memory, self._generation

    def send(self, engine: str, sequence: int) -> None:
        """Tell the worker that a request lies in the memory."""
        worker = self._asked()
        try:
            worker.send(
                {"engine": engine, "sequence": sequence, "config": None if self._path is None else str(self._path)}
            )
        except OSError:
            obituary = worker.obituary()
            self._replace()
            raise RoutingError(f"the worker {obituary}; another one is started") from None

    def wait(self, sequence: int) -> str:
        """Wait until the answer lies in the memory; a line for the log."""
        worker = self._asked()
        try:
            answer = worker.receive(self._until)
            while answer is not None and answer.get("sequence") != sequence:
                answer = worker.receive(self._until)
        except EOFError:
            obituary = worker.obituary()
            self._replace()
            raise RoutingError(f"the worker {obituary}; another one is started") from None
        except ValueError:
            self._replace()
            raise RoutingError("the worker talks nonsense; another one is started") from None
        if answer is None:
            self._replace()
            raise RoutingError(f"no answer within {self._config.deadline:g} s; another worker is started")
        if not answer.get("ok"):
            raise RoutingError(str(answer.get("note", "no reason given")))
        return str(answer["note"])

    def tend(self) -> str:
        """See to the worker as a sweep begins, so that a new one is warm when needed; a line for the log, if any."""
        if self._worker is None or self._worker.alive:
            return ""
        obituary = self._worker.obituary()
        self._replace()
        return f"the worker {obituary}; another one is started"

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


def attach(ffi: Any, python: str, paths: list[str]) -> None:
    """Make a :class:`Host` the implementation of ``host.h``."""
    host = Host(python, paths)

    def put(buffer: Any, room: int, text: str) -> None:
        line = " ".join(text.split()) if buffer is not None else text
        data = line.encode()[: room - 1] + b"\0"
        ffi.memmove(buffer, data, len(data))

    def guarded(note: Any, room: int, action: Callable[[], str]) -> int:
        try:
            put(note, room, action())
        except IbnueError as problem:
            put(note, room, str(problem))
            return -1
        except Exception as problem:
            put(note, room, f"{type(problem).__name__} in the host: {problem}")
            return -1
        return TOKEN

    def text(chars: Any) -> str:
        return str(ffi.string(chars).decode(errors="replace"))

    @ffi.def_extern()  # type: ignore[untyped-decorator]
    def ibnue_host_start(  # noqa: PLR0917  (C has no keywords)
        options: Any, opensm_log: Any, names: Any, names_room: int, note: Any, room: int
    ) -> int:
        def action() -> str:
            engines, line = host.start(text(options), text(opensm_log))
            data = "\n".join(engines).encode()[: names_room - 1] + b"\0"
            ffi.memmove(names, data, len(data))
            return line

        return guarded(note, room, action)

    @ffi.def_extern()  # type: ignore[untyped-decorator]
    def ibnue_host_memory(fd: Any, generation: Any, note: Any, room: int) -> int:
        def action() -> str:
            fd[0], generation[0] = host.memory()
            return ""

        return guarded(note, room, action)

    @ffi.def_extern()  # type: ignore[untyped-decorator]
    def ibnue_host_send(engine: Any, sequence: int, note: Any, room: int) -> int:
        def action() -> str:
            host.send(text(engine), sequence)
            return ""

        return guarded(note, room, action)

    @ffi.def_extern()  # type: ignore[untyped-decorator]
    def ibnue_host_wait(sequence: int, note: Any, room: int) -> int:
        return guarded(note, room, lambda: host.wait(sequence))

    @ffi.def_extern()  # type: ignore[untyped-decorator]
    def ibnue_host_tend(note: Any, room: int) -> int:
        return guarded(note, room, host.tend)

    @ffi.def_extern()  # type: ignore[untyped-decorator]
    def ibnue_host_stop() -> int:
        host.stop()
        return TOKEN
