"""Worker thread that checks the safety of transitions between tables, so that no sweep waits for the check."""

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
"""Nice value of the thread, so that the routing of the next sweep has priority."""


class TransitionChecker:
    """Thread that reports the effect of each change of tables on the traffic in the fabric.

    Parameters
    ----------
    tell
        Function that takes a line for the log; called from the thread.
    """

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send
        self._changes: queue.SimpleQueue[Change] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ibnue-judge", daemon=True)
        self._thread.start()

    def put(self, change: Change) -> None:
        """Queue a change.  If several changes are queued, only the last one is judged."""
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
            del change  # large, and the next change may come much later


def check_transition(change: Change) -> str | None:
    """Return a line with the verdict on a change, or why there is no verdict; None if nothing changes."""
    try:
        line = transition_line(change, threads=1)
    except IbnueError as problem:
        line = f"transition not judged: {problem}"
    except Exception:  # a failed verdict must not end the worker
        traceback.print_exc()
        line = "transition not judged: bug in the worker"
    return line
