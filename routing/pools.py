"""Manage work in a process pool such that a signal handler never interrupts a method of a future object."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from queue import SimpleQueue
from typing import Generic, ParamSpec, TypeVar

from routing.deferred_signals import DeferredSignals

AHEAD = 2
"""Number of work items submitted per worker process.  The second item keeps a worker busy while the first result is
collected.
"""

Given = ParamSpec("Given")
Work = TypeVar("Work")
Value = TypeVar("Value")


class PendingFutures(Generic[Work, Value]):
    """Work items that a process pool is working on, identified by their futures.

    Call the methods only in a ``with`` block of the attribute ``signals``, which defers signal handlers.  The
    handler of a deferred signal runs while :meth:`wait` waits, or at the end of the ``with`` block.

    Attributes
    ----------
    signals
        Context manager that must surround every other use of this object.
    """

    def __init__(self) -> None:
        self.signals = DeferredSignals()
        self._work: dict[Future[Value], Work] = {}
        self._finished: SimpleQueue[Future[Value]] = SimpleQueue()

    def __len__(self) -> int:
        return len(self._work)

    def add(self, future: Future[Value], work: Work) -> None:
        """Register the future of a submitted work item."""
        self._work[future] = work
        future.add_done_callback(self._finished.put)

    def wait(self) -> list[tuple[Future[Value], Work]]:
        """Wait until at least one work item has finished, then remove and return all finished items."""
        with self.signals.delivered():
            # Signal handlers may run here and raise exceptions.  An exception cannot interrupt the method `get` of a
            # SimpleQueue halfway.  But it could interrupt the function `wait` of concurrent.futures halfway, so `wait`
            # is not used.
            found = [self._finished.get()]
        while not self._finished.empty():
            found.append(self._finished.get())
        return [(future, self._work.pop(future)) for future in found]


def submit(
    pool: ProcessPoolExecutor, perform: Callable[Given, Value], *args: Given.args, **more: Given.kwargs
) -> Future[Value]:
    """Submit work to a process pool, and turn every failure of the pool into BrokenExecutor.

    Raises
    ------
    BrokenExecutor
        A worker died.  If a worker dies during the call, the pool may raise OSError, which this function turns into
        BrokenExecutor.
    """
    try:
        return pool.submit(perform, *args, **more)
    except OSError as error:
        raise BrokenExecutor(f"a worker could not be started: {error}") from error


def end(pool: ProcessPoolExecutor, *, now: bool) -> None:
    """Shut down a process pool.

    With ``now`` its processes are killed; otherwise they finish their current work first.
    """
    with DeferredSignals():
        if now:  # Before Python 3.14, a process pool has no method that kills its workers.
            for process in list((pool._processes or {}).values()):
                process.kill()
        pool.shutdown(wait=True, cancel_futures=True)
