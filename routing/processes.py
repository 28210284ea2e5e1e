"""What every pool of worker processes on this machine needs."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import select
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

REMOVE_SECONDS = 5.0
"""How long a folder may resist."""


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def leave_with_parent(tidy: Callable[[], None] | None = None) -> None:
    """Begin a worker: Ctrl-C is for the parent to hear, and when the parent is gone, however it went, so is this.

    Other signals that the parent heeds end it at once.  If the parent did not tidy up, this does.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if callable(signal.getsignal(number)):  # what the parent does about it is not for a fork of it
            signal.signal(number, signal.SIG_DFL)
    parent = multiprocessing.parent_process()

    def wait() -> None:
        assert parent is not None
        parent.join()
        if tidy is not None:
            tidy()

    if parent is not None:
        threading.Thread(target=_follow, args=(wait,), daemon=True).start()


def remove_folder(folder: str) -> None:
    """Remove a folder into which processes may still be writing that end at this moment."""
    end = time.monotonic() + REMOVE_SECONDS
    shutil.rmtree(folder, ignore_errors=True)
    while Path(folder).exists() and time.monotonic() < end:
        time.sleep(0.01)
        shutil.rmtree(folder, ignore_errors=True)


def leave_with(pid: int, tidy: Callable[[], None]) -> None:
    """The same for a process that :mod:`subprocess` has started, whose parent has that number; it tidies up first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def wait() -> None:
        with contextlib.suppress(ProcessLookupError):  # gone already
            select.select([os.pidfd_open(pid)], [], [])
        tidy()

    threading.Thread(target=_follow, args=(wait,), daemon=True).start()


def _follow(wait: Callable[[], None]) -> None:
    wait()
    os._exit(1)
