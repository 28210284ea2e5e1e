"""Control one worker process from inside OpenSM: start it, exchange messages, watch it and end it."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import re
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from osm_plugin.build_info import protocol
from routing.errors import EnvironmentProblem

LONGEST_MESSAGE = 1 << 16

SILENT = 2.0
"""Number of seconds without progress after which a worker counts as stalled, if it has a request.

A worker makes no progress while it uses no CPU time and none of its threads is runnable.
"""

_TAIL = 2000
"""Maximum number of bytes at the end of the worker's log that are read to find its last line."""

NOT_LOADED = 1
"""Exit status of Python if the package cannot be loaded, for example while it is being upgraded."""

_SWITCHES = ("-I", "-X", "faulthandler", "-X", "utf8")
"""Options of the Python interpreter of a worker."""
_READ_LOG = "read the worker's log"
_F_ADD_SEALS, _F_SEAL_SHRINK = 1033, 2
PRELUDE = "import gc, sys; gc.disable(); sys.modules.update(dict.fromkeys(('matplotlib', 'wcwidth')))"
"""First line of the worker's program.  This line keeps igraph from importing matplotlib, which would take most of the
worker's start-up time.  It also keeps igraph from importing wcwidth, which only drawings of tables need.  The garbage
collector is off, because it would find nothing while modules are loaded.
"""
_BOOT = f"{PRELUDE}; sys.path[:0] = sys.argv[1:-1]; from osm_plugin.{{}} import main; sys.exit(main(sys.argv[-1]))"


_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "OSM_CACHE_DIR", "LD_LIBRARY_PATH")
_KEPT_PREFIXES = ("IBNUE_", "ASAN_", "UBSAN_", "LSAN_", "OPENBLAS_", "OMP_")


def clean_environment() -> dict[str, str]:
    """Return the environment for the worker: those variables of OpenSM's environment that the worker needs.

    The simulator's library (umad2sim) is removed from the variable LD_PRELOAD.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT_VARIABLES or name.startswith(_KEPT_PREFIXES)
    }  # fmt: skip
    # The worker multiplies no matrices, so it needs no threads of the linear algebra library (BLAS).  Idle threads of
    # that library would only take time from the kernels.
    environment.setdefault("OPENBLAS_NUM_THREADS", "1")
    preload = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    kept = [library for library in preload if "umad2sim" not in library]
    if kept:
        environment["LD_PRELOAD"] = ":".join(kept)
    return environment


def _identity(about: os.stat_result) -> tuple[int, int]:
    return about.st_dev, about.st_ino


def _stat_fields(folder: Path) -> list[str]:
    """Return the fields of the file ``stat`` of a process or thread, beginning with its state.

    ``folder`` is the folder of the process or thread in ``/proc``.  If the process or thread has ended, the only field
    is the state of a zombie ("Z").
    """
    try:
        text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ["Z"]
    return text[text.rindex(")") + 2 :].split()


def _as_user(name: str | None) -> dict[str, Any]:
    """Return the arguments of ``subprocess.Popen`` for a process that runs as a given user, without supplementary
    groups.

    There are no arguments if no user is named, or if OpenSM does not run as root.
    """
    if name is None or os.geteuid() != 0:
        return {}
    try:
        group = pwd.getpwnam(name).pw_gid
    except KeyError:
        raise EnvironmentProblem(f"there is no user {name!r} for the worker", remedy="correct worker_user") from None
    return {"user": name, "group": group, "extra_groups": []}


def _sealed_memory() -> int:
    """Return the descriptor of a file in memory that cannot shrink.

    If a mapped file shrinks, a read of the mapping raises the signal SIGBUS, which would end OpenSM.
    """
    import fcntl  # noqa: PLC0415  (an extension module: not before the symbols of libpython are visible)

    memory = os.memfd_create("ibnue", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    fcntl.fcntl(memory, _F_ADD_SEALS, _F_SEAL_SHRINK)
    return memory


_REPORTED = re.compile(r"[-0-9]+ [:0-9]+ (error|info|debug): ")
_CHECKED = re.compile(_REPORTED.pattern + r"(ERR IBN32: )?(shadow: (?!bug )|OpenSM's engine )")
"""Pattern of the log lines in which the worker that runs :mod:`osm_plugin.shadow` reports a result.  The line about a
bug of that worker, which comes after a traceback, does not match.
"""


class WorkerProcess:
    """One worker process, with its socket and the memory it shares with OpenSM."""

    def __init__(
        self,
        python: str,
        paths: list[str],
        setup: dict[str, Any],
        log: IO[bytes] | None,
        *,
        reports: int,
        copies: Sequence[int] = (),
        module: str = "worker",
        user: str | None = None,
    ) -> None:
        identity = _as_user(user)  # If the user is unknown, this call fails before any descriptor is open.
        self.started = time.monotonic()
        self._routes = module == "worker"  # The module "shadow" only checks and compares tables.
        self.hello: dict[str, Any] | None = None
        self._killed = False  # Whether the host has killed the worker because the worker was unusable.
        # Samples of listen(): the worker's CPU time in clock ticks (None: unknown), and the time (time.monotonic()) of
        # the last sample in which the CPU time had changed or a thread was runnable.
        self._used: int | None = None
        self._moved = self.started
        self._reading = threading.Lock()
        self._log_path = None if log is None else Path(log.name)
        self._log_start = 0 if log is None else log.seek(0, os.SEEK_END)
        self._log_file = None if log is None else _identity(os.fstat(log.fileno()))
        self.memory = _sealed_memory()
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (self.socket, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * LONGEST_MESSAGE)
        setup = {**setup, "socket": theirs.fileno(), "memory": self.memory, "reports": reports, "copies": copies}
        setup["parent"] = os.getpid()
        command = [python, *_SWITCHES, "-c", _BOOT.format(module), *paths, json.dumps(setup)]
        output = log or subprocess.DEVNULL
        try:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                command, pass_fds=(theirs.fileno(), self.memory, reports, *copies), stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, start_new_session=True, env=clean_environment(), cwd="/", **identity,
            )  # fmt: skip
        except OSError as problem:
            self.socket.close()
            os.close(self.memory)
            who = f" (worker_user is {user!r})" if identity else ""
            raise EnvironmentProblem(
                f"the worker cannot be started: {python}: {problem.strerror}{who}", remedy="install ibnue again"
            ) from None
        finally:
            theirs.close()
        self._reaper = threading.Thread(target=self.process.wait, name="ibnue-reaper", daemon=True)
        self._reaper.start()

    @property
    def alive(self) -> bool:
        """Return whether the worker runs."""
        return self.process.poll() is None and self._reaper.is_alive()

    @property
    def crashed(self) -> bool:
        """Return whether the worker has ended by itself, possibly because of the tables that the worker has read.

        The result is false if the worker could not load its package, or was killed by the host.
        """
        return not self._killed and self.process.poll() not in {None, NOT_LOADED}

    def listen(self) -> None:
        """Record for :meth:`computes` whether the worker has used CPU time since the last call, or is runnable.

        The host calls this method at each request, and while it waits for the answer.
        """
        used, now = self._processor_time(), time.monotonic()
        if used != self._used or self._is_runnable():
            self._used, self._moved = used, now

    def computes(self, timeout: float) -> bool:
        """Return whether the worker has used CPU time, or has waited for a processor, within the last ``timeout``
        seconds.

        The result is false if the worker is stopped, or if it waits for a lock or for a blocked file system.  If the
        system limits the CPU time (cgroup), the worker waits for a processor, and the result is true.  The state of the
        worker is read only in calls of :meth:`listen`, which have to be frequent.
        """
        self.listen()
        return self.alive and self._used is not None and time.monotonic() < self._moved + timeout

    def _processor_time(self) -> int | None:
        """Return the CPU time of all threads of the worker in clock ticks; None if the worker has ended."""
        fields = _stat_fields(Path(f"/proc/{self.process.pid}"))
        return None if fields[0] in "ZX" else int(fields[11]) + int(fields[12])

    def _is_runnable(self) -> bool:
        """Return whether a thread of the worker runs or waits for a processor.

        On a busy machine, or under a limit of CPU time, a thread may wait for a processor for many seconds.
        """
        with contextlib.suppress(OSError):  # If the worker has ended, its folder in /proc cannot be read.
            return any(_stat_fields(task)[0] == "R" for task in Path(f"/proc/{self.process.pid}/task").iterdir())
        return False

    def send(self, message: dict[str, Any]) -> None:
        """Send a message to the worker.

        If the worker has ended, this method raises OSError.  It never raises SIGPIPE, which would end OpenSM.
        """
        self.socket.send(json.dumps(message).encode(), socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)

    def has_log(self, path: Path) -> bool:
        """Return whether the worker writes its log to the file that is at ``path`` now."""
        with contextlib.suppress(OSError):
            return self._log_file == _identity(path.stat())
        return False

    def take_log(self, log: IO[bytes]) -> None:
        """Make the worker write its log to an open file.  If this fails, the next call tries again."""
        with contextlib.suppress(OSError):
            message, flags = json.dumps({"log": log.name}).encode(), socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT
            socket.send_fds(self.socket, [message], [log.fileno()], flags)
            self._log_path, self._log_start = Path(log.name), log.seek(0, os.SEEK_END)
            self._log_file = _identity(os.fstat(log.fileno()))

    def receive(self, until: float) -> dict[str, Any] | None:
        """Return the next message of the worker.  Return None if no message arrives before the time ``until``
        (``time.monotonic()``).

        Raises
        ------
        EOFError
            The worker has closed its connection.
        ValueError
            The message is not a JSON object.
        """
        with self._reading:  # Two threads of OpenSM may call this method, and each message must have one reader.
            poll = select.poll()
            poll.register(self.socket, select.POLLIN)
            if not poll.poll(max(0, int((until - time.monotonic()) * 1000) + 1)):
                return None
            try:
                message = self.socket.recv(LONGEST_MESSAGE)
            except OSError:
                message = b""
        if not message:
            raise EOFError
        answer = json.loads(message)
        if not isinstance(answer, dict):
            raise ValueError("no object")
        return answer

    def has_greeted(self) -> bool:
        """Return whether a message from the worker is waiting to be read.  :meth:`receive` reads the message."""
        with contextlib.suppress(OSError):
            return bool(self.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        return False

    def wait_ready(self, until: float) -> None:
        """Wait for the worker's first message, by which it reports that it is ready.

        ``until`` is the time at which the method gives up (``time.monotonic()``).

        Raises
        ------
        EnvironmentProblem
            The worker ended, sent no message in time, or uses another protocol.
        """
        if self.hello is not None:
            return
        try:
            self.hello = self.receive(until)
        except EOFError:
            how = f"the worker {self.exit_description()} while it started"
            raise EnvironmentProblem(how, remedy=_READ_LOG) from None
        except ValueError:
            raise EnvironmentProblem("the worker sent an invalid message while it started", remedy=_READ_LOG) from None
        if self.hello is None:
            raise EnvironmentProblem("the worker was not ready in time", remedy="raise start_deadline")
        spoken = self.hello.get("protocol")
        if spoken != protocol():
            self.hello = None
            self.kill()
            raise EnvironmentProblem(
                f"the worker has protocol {spoken}, the library {protocol()}: ibnue was replaced while OpenSM ran; "
                "run 'ibnue plugin install' again, and start OpenSM again"
            )

    def exit_description(self) -> str:
        """Describe how the worker ended, with what is known about the cause."""
        self._reaper.join(1.0)
        code = self.process.returncode
        how = "closed its connection" if code is None else f"ended with status {code}"
        if self._killed:
            how = "could not be used, so the plugin killed it"
        elif code is not None and code < 0:
            # The kernel kills a process by SIGKILL if memory is full.  Then the worker's log has no reason.
            how = f"was killed by signal {-code}" + " (perhaps out of memory: see dmesg)" * (-code == signal.SIGKILL)
        return how + self.likely_cause()

    def likely_cause(self) -> str:
        """Return the last line of the worker's log and the limit of the worker's address space, in parentheses.

        The result is empty if this line reports normal work, and the address space is not limited.
        """
        import resource  # noqa: PLC0415  (an extension module: not before the symbols of libpython are visible)

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)  # OpenSM's limit, which the worker inherits
        limited = f"OpenSM limits the worker's memory to {limit >> 20} MB: raise LimitAS of systemd or ulimit -v"
        known = [*filter(None, [self._log_tail()]), *[limited] * (limit != resource.RLIM_INFINITY)]
        return f" ({'; '.join(known)})" if known else ""

    def _log_tail(self) -> str:
        # Only a regular file is read.  If the log is a device such as /dev/full, a read would never reach an end.
        if self._log_path is None or not self._log_path.is_file():
            return ""
        try:
            with self._log_path.open("rb") as log:
                end = log.seek(0, os.SEEK_END)
                first = self._log_start if self._log_start <= end else 0  # Log rotation may have made the file shorter.
                log.seek(max(first, end - _TAIL))
                lines = log.read(_TAIL).decode(errors="replace").split("\n")
                del lines[: first < end - _TAIL]  # The first line was read without its beginning.
        except OSError:
            return ""
        # A line with a time and "error", "info" or "debug" reports work, or an error after which the worker continued.
        # If such a line is the last one, the log does not explain why the worker ended.  The worker that
        # runs osm_plugin.shadow writes to the same log, also after the worker that routes has ended.  So the lines of
        # :data:`_CHECKED` at the end of the log are skipped.
        written = [line.strip() for line in lines if line.strip()]
        while written and self._routes and _CHECKED.match(written[-1]):
            del written[-1]
        last = written[-1] if written else ""
        return "" if _REPORTED.match(last) else last.rstrip(":")[:300]

    def end(self) -> None:
        """Kill the worker if it still runs, and close its socket and the shared memory."""
        self.kill()
        self.socket.close()
        os.close(self.memory)

    def kill(self, grace: float = 0.0) -> None:
        """Kill the worker if it does not end within ``grace`` seconds, and wait for at most 5 s until it has ended."""
        self._reaper.join(grace)
        self._killed = self._killed or self.alive
        self.process.kill()
        self._reaper.join(5.0)
