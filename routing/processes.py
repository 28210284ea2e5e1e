"""What every pool of worker processes on this machine needs."""

from __future__ import annotations

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
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.join,), daemon=True).start()


def leave_with(pid: int) -> None:
    """The same for a process that :mod:`subprocess` has started, whose parent has that number."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        parent = os.pidfd_open(pid)
    except ProcessLookupError:
        os._exit(1)
    threading.Thread(target=_follow, args=(lambda: select.select([parent], [], []),), daemon=True).start()


def _follow(wait: Callable[[], object]) -> None:
    wait()
    os._exit(1)
