"""A thread of the worker that judges changes of tables, so that neither this sweep nor the next one waits for it."""

from __future__ import annotations

import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress

from osm_plugin.rounds import Change
from osm_plugin.transition import transition_line
from routing.errors import IbnueError
from routing.names import escaped

NICE = 10
"""The next sweep's routing goes first."""


class Judge:
    """Tells what each change of tables meant for traffic that was under way.

    Parameters
    ----------
    tell
        Takes a line; called from the thread.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._changes: queue.SimpleQueue[Change] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ibnue-judge", daemon=True)
        self._thread.start()

    def put(self, change: Change) -> None:
        """Have a change judged.  Of several that wait only the last one is."""
        self._changes.put(change)

    def _run(self) -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        while True:
            change = self._changes.get()
            with suppress(queue.Empty):
                while True:
                    change = self._changes.get_nowait()
            if (line := judged(change)) is not None:
                self._tell(line)
            del change  # large, and the next one may be long in coming


def judged(change: Change) -> str | None:
    """The verdict on a change, or why there is none; None where nothing changes."""
    try:
        line = transition_line(change, threads=1)
    except IbnueError as problem:
        line = f"transition not judged: {problem}"
    except Exception:  # nobody needs this so badly that the worker may die of it
        traceback.print_exc()
        line = "transition not judged: bug in the worker"
    if line is not None:
        print(escaped(line), file=sys.stderr, flush=True)  # noqa: T201
    return line
