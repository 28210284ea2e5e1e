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
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

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


class HeldSignals:
    """Keeps what signals raise out of the middle of things: it is raised in :meth:`heard` alone, or when this ends.

    An exception that comes while :mod:`concurrent.futures` has a lock leaves it locked, and the pool's own thread waits
    for it for ever.  Outside the main thread, which alone hears signals, this does nothing.
    """

    def __enter__(self) -> HeldSignals:
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
            if signal.getsignal(number) == self._come:  # a handler that has been told may have set another
                signal.signal(number, handler)
        if error is None:
            self._tell()

    def _come(self, number: int, _: FrameType | None) -> None:
        self._came.append(number)
        if self._open:
            self._tell()

    def _tell(self) -> None:
        while self._came:
            number = self._came.pop(0)
            self._handlers[number](number, None)

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """While this thread does nothing but wait."""
        self._open = True
        try:
            self._tell()
            yield
        finally:
            self._open = False


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
