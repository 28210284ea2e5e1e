"""Process pools that submit work and wait for it without signals interrupting a method of a future."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from queue import SimpleQueue
from typing import Generic, ParamSpec, TypeVar

from routing.processes import DeferredSignals

AHEAD = 2
"""Number of work items submitted per worker, so that no worker waits for the next one."""

Given = ParamSpec("Given")
Work = TypeVar("Work")
Value = TypeVar("Value")


class PendingFutures(Generic[Work, Value]):
    """Work items in progress, by their futures.

    Futures are used only while ``signals`` defers signal handlers.  A deferred signal is delivered while :meth:`wait`
    waits, or when ``signals`` exits.

    Attributes
    ----------
    signals
        Context manager that must surround all other uses of this object.
    """

    def __init__(self) -> None:
        self.signals = DeferredSignals()
        self._work: dict[Future[Value], Work] = {}
        self._finished: SimpleQueue[Future[Value]] = SimpleQueue()

    def __len__(self) -> int:
        return len(self._work)

    def add(self, future: Future[Value], work: Work) -> None:
        """Register submitted work."""
        self._work[future] = work
        future.add_done_callback(self._finished.put)

    def wait(self) -> list[tuple[Future[Value], Work]]:
        """Wait until at least one work item has finished; remove and return all finished items."""
        with self.signals.delivered():
            found = [self._finished.get()]  # atomic, unlike the wait function of concurrent.futures
        while not self._finished.empty():
            found.append(self._finished.get())
        return [(future, self._work.pop(future)) for future in found]


def submit(
    pool: ProcessPoolExecutor, perform: Callable[Given, Value], *args: Given.args, **more: Given.kwargs
) -> Future[Value]:
    """Submit work to a pool.

    Raises
    ------
    BrokenExecutor
        A worker died, possibly during this call: the pool then closes its pipes while it starts another worker.
    """
    try:
        return pool.submit(perform, *args, **more)
    except OSError as error:
        raise BrokenExecutor(f"a worker could not be started: {error}") from error


def end(pool: ProcessPoolExecutor, *, now: bool) -> None:
    """Shut down a pool: ``now`` kills its processes, else they finish their current work."""
    with DeferredSignals():
        if now:  # ProcessPoolExecutor.kill_workers() needs Python 3.14
            for process in list((pool._processes or {}).values()):
                process.kill()
        pool.shutdown(wait=True, cancel_futures=True)
