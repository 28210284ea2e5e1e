"""What every pool of worker processes on this machine needs."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import select
import signal
import threading
from collections.abc import Callable


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def leave_with_parent() -> None:
    """Begin a worker: Ctrl-C is for the parent to hear, and when the parent is gone, however it went, so is this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if callable(signal.getsignal(number)):  # what the parent does about it is not for a fork of it
            signal.signal(number, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.join,), daemon=True).start()


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
