"""Store proven tables in threads of the worker, and read which stored tables an administrator has pinned.

Pinned tables are used instead of newly computed tables.  Threads do this work, so no sweep waits for a file system.
"""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from osm_plugin.config import PluginConfig
from osm_plugin.history import PIN, history_folder, pinned_name, store
from osm_plugin.last_good import Stamp, stamp_of
from osm_plugin.state import SavedTables, read_state
from routing.errors import IbnueError

RETRY_SECONDS = 0.5
"""Maximum number of seconds for which a sweep waits until the pinned tables are read.  After this time, the sweep uses
the last known pinned tables.
"""


def folder_of(config: PluginConfig) -> Path | None:
    """Return the folder of stored tables, which is next to the state file; None if there is no state file."""
    return None if config.state_path is None else history_folder(config.state_path)


class Desk:
    """A thread with a queue of jobs, which it executes one after the other."""

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def put(self, job: Callable[[], None]) -> None:
        """Add a job to the queue."""
        self._jobs.put(job)

    def _run(self) -> None:
        while True:
            try:
                self._jobs.get()()
            except Exception:  # noqa: PERF203  (the next job may succeed)
                traceback.print_exc()


@dataclass(frozen=True, eq=False)
class Pinned:
    """Stored tables that an administrator has pinned, so that they are used again."""

    name: str
    kept: SavedTables


class Historian:
    """Stores proven tables, and loads the pinned tables.

    Parameters
    ----------
    remark
        Function that accepts a line for the log.  Several threads may call this function at the same time.
    """

    def __init__(self, remark: Callable[[str], None]) -> None:
        self._remark = remark
        self._writer, self._reader = Desk("ibnue-history"), Desk("ibnue-pin")
        self._pinned: Pinned | None = None
        self._stamp: tuple[Path, Stamp | None] | None = None
        self._asked = threading.Event()
        self._asked.set()
        self._unwritten = ""

    def put(self, kept: SavedTables, config: PluginConfig) -> None:
        """Queue tables for storage, if the configuration wants a history.

        ``kept`` are the tables with their fabric, and ``config`` is the configuration.
        """
        folder = folder_of(config)
        if folder is not None and config.history:
            self._writer.put(lambda: self._store(folder, kept, config.history))

    def _store(self, folder: Path, kept: SavedTables, most: int) -> None:
        problem = ""
        try:
            if store(folder, kept, most) is None:
                return  # Nothing was written, so an earlier problem may still be there.
        except IbnueError as error:
            problem = f"history not written: {error}"
        if problem != self._unwritten:  # A problem is reported once, not in every sweep.
            self._remark(problem or f"history written again: {folder}")
        self._unwritten = problem

    def pinned(self, config: PluginConfig, *, threads: int, timeout: float = RETRY_SECONDS) -> Pinned | None:
        """Return the tables that are pinned now; None if no tables are pinned.

        If the file system does not answer within ``timeout`` seconds, the tables that were pinned before are returned.
        """
        folder = folder_of(config)
        if folder is None:
            return None
        # If the thread is still reading the pinned tables for an earlier sweep, return the last known tables.
        if not self._asked.is_set():
            return self._pinned
        self._asked.clear()
        self._reader.put(lambda: self._read(folder, threads))
        if not self._asked.wait(timeout):
            self._remark(f"the pin in {folder} could not be read in time: the last known pin stays in use")
        return self._pinned

    def _read(self, folder: Path, threads: int) -> None:
        try:
            stamp = folder, stamp_of(folder / PIN)
            if stamp == self._stamp:
                return
            self._pinned = self._load(folder, threads)
            self._stamp = stamp
        finally:
            self._asked.set()

    def _load(self, folder: Path, threads: int) -> Pinned | None:
        try:
            name = pinned_name(folder)
            return None if name is None else Pinned(name, read_state(folder / name, threads=threads))
        except IbnueError as problem:
            self._remark(f"pin ignored: {problem}")
            return None
