"""Defer the handlers of signals while code runs that must not be interrupted."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any


class DeferredSignals:
    """Context manager that defers signal handlers until :meth:`delivered` is entered or the context exits.

    If the context exits with an exception, the deferred handlers are not run.

    Without the delay, a handler could raise an exception while :mod:`concurrent.futures` holds a lock.  The lock would
    stay taken, and the thread of the process pool would wait for the lock for ever.

    Only the main thread receives signals, so in other threads the context does nothing.
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

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        for number, handler in self._handlers.items():
            # Restore the original handler.  But if a handler that ran inside the context has installed another handler,
            # the other handler stays.
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
        """Run signal handlers without delay inside this context.  Enter this context only around code in which the
        thread does nothing but wait.
        """
        self._open = True
        try:
            self._deliver()
            yield
        finally:
            self._open = False
