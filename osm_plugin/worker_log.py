"""Write the worker's log to standard error, filtered by level.  Switch to a new file when the log file has
been moved.
"""

from __future__ import annotations

import os
import socket
import sys
import time
import traceback
from contextlib import suppress

from osm_plugin.config import LOG_LEVELS
from routing.names import escape_control

LONGEST_MESSAGE = 1 << 16


class Clock:
    """Stopwatch for the phases of a request, whose times go into the log."""

    def __init__(self) -> None:
        self._laps: list[tuple[str, float]] = []
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Record the time since the previous call (or since the start) as the duration of the phase ``name``."""
        now = time.perf_counter()
        self._laps.append((name, now - self._last))
        self._last = now

    def seconds(self) -> dict[str, float]:
        """Return the duration of each phase in seconds, by name."""
        return dict(self._laps)

    def __str__(self) -> str:
        return ", ".join(f"{name} {1e3 * seconds:.1f} ms" for name, seconds in self._laps)


class WorkerLog:
    """Log that writes lines up to a level: "error", "info" or "debug".

    Attributes
    ----------
    level
        The level in the configuration.  The level may be changed at any time.
    """

    def __init__(self, level: str = "info") -> None:
        self.level = level

    def _write(self, level: str, line: str) -> None:
        if LOG_LEVELS.index(level) <= LOG_LEVELS.index(self.level):
            stamp = time.strftime("%Y-%m-%d %H:%M:%S")
            with suppress(OSError):  # A full disk must not stop the worker.
                print(f"{stamp} {level}: {escape_control(line)}", file=sys.stderr, flush=True)  # noqa: T201

    def error(self, line: str) -> None:
        """Write a line about a failure, at level "error"."""
        self._write("error", line)

    def info(self, line: str) -> None:
        """Write a line about completed work, at level "info"."""
        self._write("info", line)

    def debug(self, line: str) -> None:
        """Write a line that is only useful for debugging, at level "debug"."""
        self._write("debug", line)

    def bug(self) -> None:
        """Write the traceback of the current exception, whatever the level is."""
        with suppress(OSError):
            traceback.print_exc()
            sys.stderr.flush()

    def refusal(self, line: str) -> None:
        """Write the reason why a request was refused.  At level "debug", write the traceback of the current exception
        too.
        """
        self.error(line)
        if self.level == "debug":
            self.bug()


def next_message(link: socket.socket) -> bytes:
    """Return the next message of the host.

    The host can also send the descriptor of a new log file.  This file becomes standard output and standard error, and
    the message that comes with it is not returned.
    """
    while True:
        message, descriptors, _, _ = socket.recv_fds(link, LONGEST_MESSAGE, 1)
        if not descriptors:
            return message
        for descriptor in descriptors:
            for standard in (1, 2):
                os.dup2(descriptor, standard)
            os.close(descriptor)
