"""Compute the effects of many fault scenarios in parallel.  The results have the order of the scenarios."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from dataclasses import replace

from routing.errors import EnvironmentProblem
from routing.pools import AHEAD, PendingFutures, end, submit
from routing.processes import exit_with_parent
from routing.whatif.effect import Baseline, Effect, evaluate
from routing.whatif.scenarios import Scenario

_ENTRIES_AT_ONCE, _MOST_AT_ONCE = 1 << 20, 16

_baseline: list[Baseline] = []
"""In a worker process, this list has one element: the baseline of all scenarios.  In the main process it is empty."""


def explore(baseline: Baseline, scenarios: Sequence[Scenario], *, jobs: int = 1) -> Generator[Effect, None, None]:
    """Compute the effects of fault scenarios, and yield them in the order of the scenarios.

    The worker processes end when this generator has yielded all effects or is closed.  They also end if an exception
    is raised in this generator, for example by a signal handler.

    Parameters
    ----------
    baseline
        Current fabric with its tables.
    scenarios
        Fault scenarios, each of which is applied separately.
    jobs
        Number of worker processes; 1: compute in this process.  The number has no influence on the effects.  In worker
        processes, the engine uses one thread.

    Raises
    ------
    OptionError
        A fault does not exist on the fabric.
    EnvironmentProblem
        A worker process died.
    """
    jobs = min(jobs, len(scenarios))
    if jobs <= 1:
        return (evaluate(baseline, scenario) for scenario in scenarios)
    return _over_processes(baseline, scenarios, jobs)


def _over_processes(baseline: Baseline, scenarios: Sequence[Scenario], jobs: int) -> Generator[Effect, None, None]:
    fabric = baseline.published.fabric
    single = replace(baseline, options=replace(baseline.options, threads=1))
    # Cached properties of the baseline and its fabric are computed before the workers are forked.  So all workers
    # inherit the values.
    _ = single.capacity, single.separation, fabric.channels, fabric.lids
    entries = max(1, fabric.switches * len(fabric.lids))
    share = max(1, len(scenarios) // (4 * jobs))
    at_once = max(1, min(_MOST_AT_ONCE, _ENTRIES_AT_ONCE // entries, share))
    batches = [scenarios[first : first + at_once] for first in range(0, len(scenarios), at_once)]
    # Workers are forked, so that they inherit the tables instead of reading megabytes from a pipe.  Forking is safe
    # because this process has no threads yet.
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), _begin, (single,))
    finished = False
    try:
        yield from _in_order(pool, batches, jobs)
        finished = True
    except BrokenExecutor:
        raise EnvironmentProblem(
            "a worker process died, perhaps for lack of memory", remedy="use fewer --jobs"
        ) from None
    finally:
        end(pool, now=not finished)


def _in_order(pool: ProcessPoolExecutor, batches: Sequence[Sequence[Scenario]], jobs: int) -> Iterator[Effect]:
    """Compute batches of scenarios in worker processes, and yield the effects in the order of the scenarios.

    Signals are deferred while this function receives results.  Otherwise an exception in a signal handler could lose a
    result.

    ``batches`` has the scenarios of each batch, and ``jobs`` is the number of worker processes.
    """
    in_flight, came = PendingFutures[int, list[Effect]](), dict[int, Future[list[Effect]]]()
    waiting = iter(enumerate(batches))

    def hand_out() -> None:
        for number, batch in itertools.islice(waiting, max(0, AHEAD * jobs - len(in_flight))):
            in_flight.add(submit(pool, _effects, batch), number)

    for turn in range(len(batches)):
        with in_flight.signals:
            hand_out()
            while turn not in came:
                came.update((number, future) for future, number in in_flight.wait())
                hand_out()
            effects = came.pop(turn).result()
        yield from effects


def _begin(baseline: Baseline) -> None:
    """Initialise a new worker process, which ends when its parent ends."""
    exit_with_parent()
    _baseline.append(baseline)


def _effects(scenarios: Sequence[Scenario]) -> list[Effect]:
    return [evaluate(_baseline[0], scenario) for scenario in scenarios]
