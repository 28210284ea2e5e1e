"""Start worker processes that do not import from the working directory, and end them with their parent."""

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
"""Maximum time in seconds for retries in :func:`remove_folder`, while processes still write into the folder."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def fork_server(preload: Sequence[str] = ()) -> ForkServerContext:
    """Start the server process from which :mod:`multiprocessing` forks workers.

    The server is started in ``/``.  ``python -c``, by which it is started, would import modules from the working
    directory first, and before Python 3.11 no option prevents that.  Workers change back to this process's working
    directory once they have its import path.

    ``preload`` lists the modules that the server imports in advance.
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


class DeferredSignals:
    """Context manager that defers signal handlers until :meth:`delivered` is entered or the context exits.

    If a handler raises while :mod:`concurrent.futures` holds a lock, the lock stays taken and the pool's thread waits
    for it for ever.  Only the main thread receives signals, so that in other threads this does nothing.
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
            # A handler that has just run may have installed another handler.
            if signal.getsignal(number) == self._come:
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
        """Run signal handlers without delay inside this context.  Enter it only around code in which the thread does
        nothing but wait.
        """
        self._open = True
        try:
            self._deliver()
            yield
        finally:
            self._open = False


def describe_exit(status: int) -> str:
    """Describe the exit status of a process in words.

    Examples are "was killed by SIGKILL (out of memory?)" and "ended with exit status 1".
    """
    if status >= 0:
        return f"ended with exit status {status}"
    with contextlib.suppress(ValueError):  # A real-time signal has no name.
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
    """Make this process exit when process ``pid``, its parent, ends; ``tidy`` is called first.

    This is for children started with :mod:`subprocess`.  For :mod:`multiprocessing` there is :func:`exit_with_parent`.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def wait() -> None:
        # If the parent has ended before this call, there is nothing to wait for.
        with contextlib.suppress(ProcessLookupError):
            select.select([os.pidfd_open(pid)], [], [])
        tidy()

    threading.Thread(target=_follow, args=(wait,), daemon=True).start()


def _follow(wait: Callable[[], None]) -> None:
    wait()
    os._exit(1)
