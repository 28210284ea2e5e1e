"""Schedule the tasks of a sweep: submit them in batches, store results as they arrive, and continue when workers die.

If a worker dies, it is unknown which batch was the cause.  So all batches in progress are repeated, one at a time.  If
a worker dies again during a batch that runs alone, the tasks of this batch are repeated one by one.  A task that runs
alone and whose worker dies repeatedly is given up, with the outcome "error" or "lost".  So a task may run more than
once, but the ledger has one result.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field

from routing.errors import EnvironmentProblem
from routing.pools import AHEAD, PendingFutures
from routing.processes import describe_exit
from routing.sweep.executors import Workers
from routing.sweep.ledger import Ledger
from routing.sweep.results import Result
from routing.sweep.tasks import Task
from routing.sweep.work import MAX_ATTEMPTS, Batch, abandoned_result

BATCH_SECONDS = 0.5
"""Intended duration of a batch in seconds.

This duration is long compared with the cost of submitting the batch, but short enough that little work is lost with a
worker.
"""
FIRST_BATCH, LARGEST_BATCH = 2, 200
MAX_RECOVERIES = 20
"""The run ends after more consecutive deaths of workers than this number, if no result arrived between the deaths.  The
cause is then probably not a task.
"""

Packed = Callable[[Sequence[Task]], Batch]
Watch = Callable[[Sequence[tuple[Task, Result]]], None]


class Queue:
    """Tasks that have not been submitted yet, grouped by the fault-free tables that they need.

    The size of a batch depends on the measured time per task.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._groups: dict[tuple[object, ...], deque[Task]] = {}
        for task in tasks:
            self._groups.setdefault(task.group_key, deque()).append(task)
        self._seconds: dict[tuple[object, ...], float] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def take(self) -> tuple[Task, ...]:
        """Remove the next batch of tasks from the queue and return it."""
        group_key, group = next(iter(self._groups.items()))
        seconds = self._seconds.get(group_key)
        size = FIRST_BATCH if seconds is None else int(BATCH_SECONDS / max(seconds, 1e-6))
        size = min(max(size, 1), LARGEST_BATCH)
        batch = tuple(group.popleft() for _ in range(min(size, len(group))))
        if not group:
            del self._groups[group_key]
        return batch

    def learn(self, pairs: Sequence[tuple[Task, Result]]) -> None:
        """Measure the mean time of a task from finished tasks of one group.  This time determines the size of later
        batches.

        ``pairs`` has each finished task with its result.
        """
        if pairs:
            self._seconds[pairs[0][0].group_key] = sum(result.seconds for _, result in pairs) / len(pairs)


@dataclass
class CrashSuspects:
    """Batches that were in progress when a worker died.  These batches are repeated one at a time to find the batch
    that caused the death.
    """

    waiting: deque[tuple[Task, ...]] = field(default_factory=deque)
    deaths: dict[str, int] = field(default_factory=dict)

    def record_crash(self, batch: tuple[Task, ...], status: int | None) -> list[tuple[Task, Result]]:
        """Repeat or give up the tasks of a batch that ran alone when a worker died.

        A batch of several tasks is split into single tasks, which are repeated.  A single task is given up after
        :data:`~routing.sweep.work.MAX_ATTEMPTS` deaths of its worker.  ``status`` is the exit status of the worker,
        None if unknown.  The function returns the tasks that are given up, with their results.
        """
        if len(batch) > 1:
            self.waiting.extendleft((task,) for task in reversed(batch))
            return []
        (task,) = batch
        self.deaths[task.id] = self.deaths.get(task.id, 0) + 1
        if self.deaths[task.id] < MAX_ATTEMPTS:
            self.waiting.appendleft(batch)
            return []
        return [(task, abandoned_result(task, status))]


class Run:
    """One run of a sweep over the tasks that have no result yet.

    Parameters
    ----------
    ledger, number
        Ledger that stores the results, and the number of this run in the ledger.
    workers
        Workers that run the tasks.
    packed
        Function that makes a batch from tasks on one fabric.
    watch
        Function that is called with the results as they are stored, for example to show progress.
    """

    def __init__(self, ledger: Ledger, number: int, workers: Workers, packed: Packed, watch: Watch) -> None:
        self._ledger, self._number, self._workers, self._packed, self._watch = ledger, number, workers, packed, watch
        self._pending: PendingFutures[tuple[Task, ...], list[Result]] = PendingFutures()
        self._suspects = CrashSuspects()
        self._alone = False
        self._deaths_in_a_row = 0

    def finish(self, tasks: Sequence[Task]) -> None:
        """Run all given tasks and store their results.

        Raises
        ------
        EnvironmentProblem
            The workers cannot be restarted, or the ledger cannot be written.  Results that were stored stay in the
            ledger.
        """
        queue = Queue(tasks)
        with self._pending.signals:
            while queue or self._pending or self._suspects.waiting:
                lost = self._hand_out(queue)
                if not lost:
                    lost = self._collect(self._pending.wait(), queue)
                if lost:
                    self._recover(lost, queue)

    def _hand_out(self, queue: Queue) -> list[tuple[Task, ...]]:
        """Submit batches until all workers are busy.  Return a list with the batch that could not be submitted.

        There is such a batch only if workers have died; otherwise the list is empty.  A batch that may have killed a
        worker is submitted only when no other batch runs.
        """
        while batch := self._next(queue):
            if not self._submit(batch):
                return [batch]
        return []

    def _submit(self, batch: tuple[Task, ...]) -> bool:
        try:
            future = self._workers.submit(self._packed(batch))
        except Exception as error:
            if not self._workers.died(error):
                raise
            return False
        self._pending.add(future, batch)
        return True

    def _next(self, queue: Queue) -> tuple[Task, ...] | None:
        """Return the next batch to submit now.  None if no batch is left, or if the next batch has to wait until other
        batches are finished.
        """
        if self._pending and (self._alone or self._suspects.waiting):
            return None
        if self._suspects.waiting:
            self._alone = True
            return self._suspects.waiting.popleft()
        self._alone = False
        return queue.take() if queue and len(self._pending) < AHEAD * self._workers.count else None

    def _collect(
        self, finished: Iterable[tuple[Future[list[Result]], tuple[Task, ...]]], queue: Queue
    ) -> list[tuple[Task, ...]]:
        """Store the results of finished batches, and return the batches whose workers died."""
        lost = []
        for future, batch in finished:
            error = future.exception() if not future.cancelled() else CancelledError()
            if error is None:
                pairs = list(zip(batch, future.result(), strict=True))
                queue.learn(pairs)
                self._deaths_in_a_row = 0
                self._keep(pairs)
            elif self._workers.died(error):
                lost.append(batch)
            elif isinstance(error, EnvironmentProblem):
                raise error
            else:
                report = " ".join(f"{type(error).__name__}: {error}".split())
                outcome = "lost" if isinstance(error, ImportError | MemoryError) else "error"
                self._keep([(task, Result(task.id, outcome, error=report)) for task in batch])
        return lost

    def _recover(self, lost: list[tuple[Task, ...]], queue: Queue) -> None:
        """Restart the workers after some workers have died, and schedule the lost batches again."""
        if self._workers.together:
            while self._pending:
                lost += self._collect(self._pending.wait(), queue)
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row > MAX_RECOVERIES:
            status = self._workers.status
            last = "" if status is None else f"; the last {describe_exit(status)}"
            raise EnvironmentProblem(
                f"workers died {MAX_RECOVERIES} times in a row without a result{last}",
                remedy="use fewer workers (--jobs) if memory is short, then run again to continue",
            )
        self._workers.restart()
        if self._alone:
            for batch in lost:
                self._keep(self._suspects.record_crash(batch, self._workers.status))
        else:
            self._suspects.waiting.extend(lost)

    def _keep(self, pairs: Sequence[tuple[Task, Result]]) -> None:
        self._ledger.record(self._number, pairs)
        self._watch(pairs)
