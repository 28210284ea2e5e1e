"""Start worker processes on this machine, isolated from the working directory, and end them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import select
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

REMOVE_SECONDS = 5.0
"""Maximum time in seconds to remove a folder while processes still write into it."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def fork_server(preload: Sequence[str] = ()) -> ForkServerContext:
    """Start the server from which :mod:`multiprocessing` forks workers, outside of the working directory.

    The server is started by ``python -c``, which searches the working directory first, and before Python 3.11 no option
    prevents that.  Workers return to the working directory of this process once they have its import path.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    here = os.open(".", os.O_PATH | os.O_DIRECTORY)
    try:
        os.chdir("/")
        forkserver.ensure_running()
    finally:
        os.fchdir(here)
        os.close(here)
    return context


def exit_with_parent(tidy: Callable[[], None] | None = None) -> None:
    """Prepare a worker process: ignore Ctrl-C, and exit when the parent has ended for any reason.

    Handlers that the parent installed for other signals are reset, so that these end the worker.  `tidy` is called when
    the parent has ended, in case the parent did not clean up.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if callable(signal.getsignal(number)):  # a forked worker must not run the parent's handler
            signal.signal(number, signal.SIG_DFL)
    parent = multiprocessing.parent_process()

    def wait() -> None:
        assert parent is not None
        parent.join()
        if tidy is not None:
            tidy()

    if parent is not None:
        threading.Thread(target=_follow, args=(wait,), daemon=True).start()


class DeferredSignals:
    """Context manager that defers signal handlers until :meth:`delivered` or until the context exits.

    An exception raised by a handler while :mod:`concurrent.futures` holds a lock leaves the lock taken, and the thread
    of the pool waits for it for ever.  Only the main thread receives signals; in other threads this does nothing.
    """

    def __enter__(self) -> DeferredSignals:
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._came: list[int] = []
        self._open = False
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._come)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._come:  # a delivered handler may have installed another one
                signal.signal(number, handler)
        if error is None:
            self._deliver()

    def _come(self, number: int, _: FrameType | None) -> None:
        self._came.append(number)
        if self._open:
            self._deliver()

    def _deliver(self) -> None:
        while self._came:
            number = self._came.pop(0)
            self._handlers[number](number, None)

    @contextlib.contextmanager
    def delivered(self) -> Iterator[None]:
        """Deliver signals at once while this thread only waits."""
        self._open = True
        try:
            self._deliver()
            yield
        finally:
            self._open = False


def describe_exit(status: int) -> str:
    """Describe the end of a process: "was killed by SIGKILL (out of memory?)", "ended with exit status 1"."""
    if status >= 0:
        return f"ended with exit status {status}"
    with contextlib.suppress(ValueError):  # a real-time signal has no name
        number = signal.Signals(-status)
        return f"was killed by {number.name}" + (" (out of memory?)" if number is signal.SIGKILL else "")
    return f"was killed by signal {-status}"


def remove_folder(folder: str) -> None:
    """Remove a folder, with retries while ending processes may still write into it."""
    end = time.monotonic() + REMOVE_SECONDS
    shutil.rmtree(folder, ignore_errors=True)
    while Path(folder).exists() and time.monotonic() < end:
        time.sleep(0.01)
        shutil.rmtree(folder, ignore_errors=True)


def exit_with_process(pid: int, tidy: Callable[[], None]) -> None:
    """Make this process exit when process `pid` (its parent) ends, after calling `tidy`.

    This is for children started with :mod:`subprocess`; :func:`exit_with_parent` is for :mod:`multiprocessing`.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def wait() -> None:
        with contextlib.suppress(ProcessLookupError):  # the parent has ended already
            select.select([os.pidfd_open(pid)], [], [])
        tidy()

    threading.Thread(target=_follow, args=(wait,), daemon=True).start()


def _follow(wait: Callable[[], None]) -> None:
    wait()
    os._exit(1)
