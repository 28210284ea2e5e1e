"""Runs tasks to their end: hands them out in batches, keeps results as they come, goes on when workers die.

What a dead worker was doing is not known, so all that was under way is done again, one batch at a time; a batch over
which the workers die while nothing else runs is taken apart, and a task that is their end once more is written down as
an error.  A task may so run more than once; the ledger keeps one result.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field

from routing.errors import EnvironmentProblem
from routing.pools import AHEAD, UnderWay
from routing.sweep.executors import Workers
from routing.sweep.ledger import Ledger
from routing.sweep.results import Result
from routing.sweep.tasks import Task
from routing.sweep.work import LIVES, Batch, given_up

BATCH_SECONDS = 0.5
"""How long a batch should take: long beside the cost of handing it out, short beside what a kill may lose."""
FIRST_BATCH, LARGEST_BATCH = 2, 200
PATIENCE = 20
"""Deaths of workers in a row, without a result between them, after which something else must be wrong."""

Packed = Callable[[Sequence[Task]], Batch]
Watch = Callable[[Sequence[tuple[Task, Result]]], None]


class Queue:
    """Tasks that wait, by what they share; batches of a size that their like has shown to be right."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._groups: dict[tuple[object, ...], deque[Task]] = {}
        for task in tasks:
            self._groups.setdefault(task.home, deque()).append(task)
        self._seconds: dict[tuple[object, ...], float] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def take(self) -> tuple[Task, ...]:
        """The next batch."""
        home, group = next(iter(self._groups.items()))
        seconds = self._seconds.get(home)
        size = FIRST_BATCH if seconds is None else int(BATCH_SECONDS / max(seconds, 1e-6))
        size = min(max(size, 1), LARGEST_BATCH)
        batch = tuple(group.popleft() for _ in range(min(size, len(group))))
        if not group:
            del self._groups[home]
        return batch

    def learn(self, pairs: Sequence[tuple[Task, Result]]) -> None:
        """Take note of how long tasks took."""
        if pairs:
            self._seconds[pairs[0][0].home] = sum(result.seconds for _, result in pairs) / len(pairs)


@dataclass
class Suspects:
    """Batches that were under way when workers died, to be done again alone."""

    waiting: deque[tuple[Task, ...]] = field(default_factory=deque)
    deaths: dict[str, int] = field(default_factory=dict)

    def blame(self, batch: tuple[Task, ...]) -> list[tuple[Task, Result]]:
        """Workers died over a batch while nothing else ran; results of tasks that are given up."""
        if len(batch) > 1:
            self.waiting.extendleft((task,) for task in reversed(batch))
            return []
        (task,) = batch
        self.deaths[task.id] = self.deaths.get(task.id, 0) + 1
        if self.deaths[task.id] < LIVES:
            self.waiting.appendleft(batch)
            return []
        return [(task, given_up(task))]


class Run:
    """One run over tasks that have no result yet.

    Parameters
    ----------
    ledger, number
        Where results go, and the number of this run in it.
    workers
        Who does the work.
    packed
        Makes a batch of tasks that share a fabric.
    watch
        Is told of results as they are kept.
    """

    def __init__(self, ledger: Ledger, number: int, workers: Workers, packed: Packed, watch: Watch) -> None:
        self._ledger, self._number, self._workers, self._packed, self._watch = ledger, number, workers, packed, watch
        self._under_way: UnderWay[tuple[Task, ...], list[Result]] = UnderWay()
        self._suspects = Suspects()
        self._alone = False
        self._deaths_in_a_row = 0

    def finish(self, tasks: Sequence[Task]) -> None:
        """Do all tasks.

        Raises
        ------
        EnvironmentProblem
            The workers are gone for good, or the ledger cannot be written; what is in the ledger stays.
        """
        queue = Queue(tasks)
        with self._under_way.signals:
            while queue or self._under_way or self._suspects.waiting:
                lost = self._hand_out(queue)
                if not lost:
                    lost = self._collect(self._under_way.wait(), queue)
                if lost:
                    self._recover(lost, queue)

    def _hand_out(self, queue: Queue) -> list[tuple[Task, ...]]:
        """Keep the workers busy; suspects go alone.  What could not be handed out since workers died."""
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
        self._under_way.add(future, batch)
        return True

    def _next(self, queue: Queue) -> tuple[Task, ...] | None:
        """The next batch to hand out, if there is one and its time has come."""
        if self._under_way and (self._alone or self._suspects.waiting):
            return None
        if self._suspects.waiting:
            self._alone = True
            return self._suspects.waiting.popleft()
        self._alone = False
        return queue.take() if queue and len(self._under_way) < AHEAD * self._workers.count else None

    def _collect(
        self, finished: Iterable[tuple[Future[list[Result]], tuple[Task, ...]]], queue: Queue
    ) -> list[tuple[Task, ...]]:
        """Keep what came in; batches whose workers died."""
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
            else:
                told = " ".join(f"{type(error).__name__}: {error}".split())
                self._keep([(task, Result(task.id, "error", error=told)) for task in batch])
        return lost

    def _recover(self, lost: list[tuple[Task, ...]], queue: Queue) -> None:
        """Go on after workers died."""
        if self._workers.together:
            while self._under_way:
                lost += self._collect(self._under_way.wait(), queue)
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row > PATIENCE:
            raise EnvironmentProblem(f"workers died {PATIENCE} times in a row without a result (out of memory?)")
        self._workers.restart()
        if self._alone:
            for batch in lost:
                self._keep(self._suspects.blame(batch))
        else:
            self._suspects.waiting.extend(lost)

    def _keep(self, pairs: Sequence[tuple[Task, Result]]) -> None:
        self._ledger.record(self._number, pairs)
        self._watch(pairs)
