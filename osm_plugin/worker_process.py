"""One worker process as the host sees it: the process, the socket to it, the memory shared with it."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import IO, Any

from routing.errors import EnvironmentProblem

LONGEST_MESSAGE = 1 << 16

_F_ADD_SEALS, _F_SEAL_SHRINK = 1033, 2
PRELUDE = "import sys; sys.modules['matplotlib'] = None"
"""igraph loads matplotlib where it is installed, which is most of the time that the worker would take to start."""
_BOOT = f"{PRELUDE}; sys.path[:0] = sys.argv[1:-1]; from osm_plugin.worker import main; sys.exit(main(sys.argv[-1]))"


def clean_environment() -> dict[str, str]:
    """OpenSM's environment without a preloaded simulator, which is meant for OpenSM alone."""
    environment = dict(os.environ)
    # Nothing here multiplies matrices; idle threads of BLAS spin on the cores that the kernels want.
    environment.setdefault("OPENBLAS_NUM_THREADS", "1")
    preload = environment.pop("LD_PRELOAD", "").replace(":", " ").split()
    kept = [library for library in preload if "umad2sim" not in library]
    if kept:
        environment["LD_PRELOAD"] = ":".join(kept)
    return environment


class WorkerProcess:
    """One worker: its process, the socket to it, and the memory shared with it."""

    def __init__(self, python: str, paths: list[str], setup: dict[str, Any], log: IO[bytes] | None) -> None:
        import fcntl  # noqa: PLC0415  (an extension module: not before libpython's symbols are visible)

        self.owner, self.started = os.getpid(), time.monotonic()
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
        ValueError
            It is no JSON object.
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
        said = json.loads(message)
        if not isinstance(said, dict):
            raise ValueError("no object")
        return said

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
        except ValueError:
            raise EnvironmentProblem("the worker talked nonsense while it started") from None
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
