"""Pools of processes: work is handed in and waited for so that no signal comes in the middle of a future's method."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from queue import SimpleQueue
from typing import Generic, ParamSpec, TypeVar

from routing.processes import HeldSignals

AHEAD = 2
"""Pieces of work under way for each worker, so that none waits for the next."""

Given = ParamSpec("Given")
Work = TypeVar("Work")
Value = TypeVar("Value")


class UnderWay(Generic[Work, Value]):
    """Work that is under way, by its futures.

    All that is done with futures is done while ``signals`` holds what signals raise; it is raised where :meth:`wait`
    waits, or when ``signals`` ends.

    Attributes
    ----------
    signals
        To be held around everything else here.
    """

    def __init__(self) -> None:
        self.signals = HeldSignals()
        self._work: dict[Future[Value], Work] = {}
        self._finished: SimpleQueue[Future[Value]] = SimpleQueue()

    def __len__(self) -> int:
        return len(self._work)

    def add(self, future: Future[Value], work: Work) -> None:
        """Take note of work that was handed in."""
        self._work[future] = work
        future.add_done_callback(self._finished.put)

    def wait(self) -> list[tuple[Future[Value], Work]]:
        """At least one that is finished, of those under way, which it is no longer."""
        with self.signals.heard():
            found = [self._finished.get()]  # one step, unlike what concurrent.futures waits with
        while not self._finished.empty():
            found.append(self._finished.get())
        return [(future, self._work.pop(future)) for future in found]


def submit(
    pool: ProcessPoolExecutor, perform: Callable[Given, Value], *args: Given.args, **more: Given.kwargs
) -> Future[Value]:
    """Hand work in to a pool.

    Raises
    ------
    BrokenExecutor
        A worker died, if need be just now: then the pool closes its pipes while another worker is being started.
    """
    try:
        return pool.submit(perform, *args, **more)
    except OSError as error:
        raise BrokenExecutor(f"a worker could not be started: {error}") from error


def end(pool: ProcessPoolExecutor, *, now: bool) -> None:
    """End the processes of a pool; ``now``: whatever they are doing, else when they are done."""
    with HeldSignals():
        if now:  # kill_workers() is of Python 3.14
            for process in list((pool._processes or {}).values()):
                process.kill()
        pool.shutdown(wait=True, cancel_futures=True)
