"""Write the status file and the metrics file, in a thread inside OpenSM.

The thread runs in OpenSM's process, so it also works when the worker has ended.  No caller waits for the thread, so a
file system that does not answer blocks nothing else.
"""

from __future__ import annotations

import json
import queue
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osm_plugin.status import Status, metrics
from routing.errors import IbnueError
from routing.formats.atomic import write_text_atomically

LONGEST_REPORT = 1 << 16
CHORE_MS = 1000
"""Maximum time in milliseconds between two calls of ``chore``, the function that the thread calls periodically."""
LAST_WRITE_SECONDS = 1.0
"""Maximum number of seconds for which OpenSM waits for the last write when it ends."""


@dataclass(frozen=True)
class OutputFiles:
    """Paths of the status file and of the metrics file; None for a file that is disabled."""

    status: Path | None = None
    metrics: Path | None = None


class StatusWriter:
    """Collects changes of the status and reports of workers, and writes the status and metrics files in a thread.

    Parameters
    ----------
    about
        Version and process number of the plugin.
    remark
        Function that adds a line to OpenSM's log.  The thread calls it if a file cannot be written, once for each
        reason, and when the file can be written again.
    chore
        Function that the thread calls at least once a second.

    Attributes
    ----------
    reports
        The socket to which workers send reports.  Each worker gets a copy of the socket's descriptor.
    """

    def __init__(self, about: Mapping[str, Any], remark: Callable[[str], None], chore: Callable[[], None]) -> None:
        self._status = Status(about, time.time())
        self._remark, self._chore = remark, chore
        self._changes: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._ours, self.reports = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._output_files = OutputFiles()
        self._failed: dict[Path, str] = {}
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread that writes the files, unless it already runs."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="ibnue-status", daemon=True)
            self._thread.start()

    def put(self, output_files: OutputFiles, *changes: Callable[[Status], None]) -> None:
        """Queue changes of the status.  The thread applies them, and then writes the files.

        ``output_files`` are the paths of the files, and each of ``changes`` is a function that changes the status.
        """
        self.start()

        def change() -> None:
            self._output_files = output_files
            for one in changes:
                one(self._status)

        self._changes.put(change)
        self._wake()

    def _wake(self) -> None:
        # An empty message wakes the thread.  If the socket is full, sending fails, but the messages in the socket wake
        # the thread.
        with suppress(OSError):
            self.reports.send(b"", socket.MSG_DONTWAIT)

    def end(self) -> None:
        """Write the files a last time, and end the thread that writes them.

        If a file system blocks this thread, the method stops waiting for the thread.
        """
        if self._thread is None:
            return
        self._changes.put(self._status.end)
        self._changes.put(None)
        self._wake()
        self._thread.join(LAST_WRITE_SECONDS)

    def _run(self) -> None:
        with suppress(OSError, ValueError):  # This thread blocks all signals, so that OpenSM's own threads get them.
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        poll = select.poll()
        poll.register(self._ours, select.POLLIN)
        going = True
        while going:
            if poll.poll(CHORE_MS):
                going = self._take_all()
                self._write_all()
            self._chore()

    def _take_all(self) -> bool:
        with suppress(BlockingIOError):
            while True:
                message = self._ours.recv(LONGEST_REPORT, socket.MSG_DONTWAIT)
                # An invalid report is ignored.
                with suppress(ValueError, TypeError, LookupError):
                    self._status.take_report(json.loads(message or b"{}"))
        with suppress(queue.Empty):
            while True:
                change = self._changes.get_nowait()
                if change is None:
                    return False
                change()
        return True

    def _write_all(self) -> None:
        shown = self._status.as_object()
        if self._output_files.status is not None:
            self._write(self._output_files.status, json.dumps(shown, indent=1) + "\n")
        if self._output_files.metrics is not None:
            self._write(self._output_files.metrics, metrics(shown))

    def _write(self, path: Path, text: str) -> None:
        try:
            write_text_atomically(path, text)
        except (IbnueError, OSError) as problem:
            if self._failed.get(path) != str(problem):
                self._remark(f"status not written: {problem}")
            self._failed[path] = str(problem)
        else:
            if self._failed.pop(path, None):
                self._remark(f"status written again: {path}")
