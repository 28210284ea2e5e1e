"""Examine changes of tables in a thread of the worker, so that no sweep waits for the result."""

from __future__ import annotations

import os
import queue
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress

from osm_plugin.staged_update import Change
from osm_plugin.transition import transition_line
from routing.errors import IbnueError

NICE = 10
"""Nice value (scheduling priority) of the thread.  The routing of the next sweep has a higher priority."""


class TransitionChecker:
    """A thread that reports for each change of tables whether it is safe, and how it affects the traffic.

    Parameters
    ----------
    send
        Function that accepts a line for the log.  The thread calls it.
    """

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send
        self._changes: queue.SimpleQueue[Change] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ibnue-judge", daemon=True)
        self._thread.start()

    def put(self, change: Change) -> None:
        """Queue a change.  If several changes are queued, only the last change is examined."""
        self._changes.put(change)

    def _run(self) -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        while True:
            change = self._changes.get()
            with suppress(queue.Empty):
                while True:
                    change = self._changes.get_nowait()
            if (line := check_transition(change)) is not None:
                self._send(line)
            # The thread may wait long for the next change, so it first frees the memory of the examined change, which
            # is large.
            del change


def check_transition(change: Change) -> str | None:
    """Return a line that states whether a change is safe, or why this is unknown; None if nothing changes."""
    try:
        return transition_line(change, threads=1)
    except IbnueError as problem:
        return f"transition not judged: {problem}"
    except Exception:  # A failed check must not end the worker.
        traceback.print_exc()
        return "transition not judged: bug in the worker"
