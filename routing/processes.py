"""Start worker processes that do not import from the working directory, and end these processes with their parent."""

from __future__ import annotations

import contextlib
import multiprocessing.connection
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import ForkServerContext
from pathlib import Path

REMOVE_SECONDS = 5.0
"""Maximum time in seconds for retries in :func:`remove_folder`, while processes still write into the folder."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def fork_server(preload: Sequence[str] = ()) -> ForkServerContext:
    """Start the server process from which :mod:`multiprocessing` forks workers.

    The server is started in ``/``, because its command ``python -c`` imports modules from the working directory first.
    Before Python 3.11, no option prevents this.  Each worker first takes over the import path of this process, and then
    the working directory of this process.

    Ctrl-C is blocked in the server, because otherwise the server would print a traceback if Ctrl-C is pressed during
    its imports.

    ``preload`` lists the modules that the server imports in advance.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    here = os.open(".", os.O_PATH | os.O_DIRECTORY)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        os.chdir("/")
        resource_tracker.ensure_running()  # This call unblocks Ctrl-C, so Ctrl-C is blocked only afterwards.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.fchdir(here)
        os.close(here)
    return context


def exit_with_parent(tidy: Callable[[], None] | None = None) -> None:
    """Make this worker process ignore Ctrl-C, and exit as soon as its parent has ended for any reason.

    Handlers that the parent installed for SIGTERM and SIGHUP are reset, so that these signals end the worker.  ``tidy``
    is called before the exit, to remove what the parent may have left behind.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if callable(signal.getsignal(number)):  # A forked worker must not run a signal handler of its parent.
            signal.signal(number, signal.SIG_DFL)
    parent = multiprocessing.parent_process()

    def wait() -> None:
        assert parent is not None
        parent.join()
        if tidy is not None:
            tidy()

    if parent is not None:
        threading.Thread(target=_follow, args=(wait,), daemon=True).start()


def describe_exit(status: int) -> str:
    """Describe the exit status of a process in words.

    Examples are "was killed by SIGKILL (out of memory?)" and "ended with exit status 1".
    """
    if status >= 0:
        return f"ended with exit status {status}"
    with contextlib.suppress(ValueError):  # `Signals` raises ValueError for real-time signals, which have no name.
        number = signal.Signals(-status)
        return f"was killed by {number.name}" + (" (out of memory?)" if number is signal.SIGKILL else "")
    return f"was killed by signal {-status}"


def remove_folder(folder: str) -> None:
    """Remove a folder, and retry for some seconds while ending processes still write into it."""
    end = time.monotonic() + REMOVE_SECONDS
    shutil.rmtree(folder, ignore_errors=True)
    while Path(folder).exists() and time.monotonic() < end:
        time.sleep(0.01)
        shutil.rmtree(folder, ignore_errors=True)


def exit_with_process(pid: int, tidy: Callable[[], None]) -> None:
    """Make this process exit when process ``pid``, its parent, ends; ``tidy`` is called before the exit.

    This function is for children started with :mod:`subprocess`.  For :mod:`multiprocessing` there is
    :func:`exit_with_parent`.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def wait() -> None:
        # If the parent has already ended, pidfd_open raises ProcessLookupError.  Then this process calls ``tidy``
        # and exits at once.
        with contextlib.suppress(ProcessLookupError):
            multiprocessing.connection.wait([os.pidfd_open(pid)])
        tidy()

    threading.Thread(target=_follow, args=(wait,), daemon=True).start()


def _follow(wait: Callable[[], None]) -> None:
    wait()
    os._exit(1)
