"""Many scenarios over the cores of a machine, their effects in the order of the scenarios."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

from routing.errors import EnvironmentProblem
from routing.processes import leave_with_parent
from routing.whatif.effect import Baseline, Effect, effect_of
from routing.whatif.scenarios import Scenario

_ENTRIES_AT_ONCE, _MOST_AT_ONCE = 1 << 20, 16

_baseline: list[Baseline] = []
"""In a worker process, what it was started for: one baseline, set once, before its first task."""


def explore(baseline: Baseline, scenarios: Sequence[Scenario], *, jobs: int = 1) -> Iterator[Effect]:
    """The effect of each scenario, in their order.

    Parameters
    ----------
    baseline
        The fabric as it is with its tables.
    scenarios
        What breaks.
    jobs
        Worker processes; 1: none, the work is done here.  Never changes an effect.  With more, the engine runs on one
        thread in each.

    Raises
    ------
    OptionError
        A fault that does not fit the fabric.
    EnvironmentProblem
        A worker process died.
    """
    jobs = min(jobs, len(scenarios))
    if jobs <= 1:
        return (effect_of(baseline, scenario) for scenario in scenarios)
    return _over_processes(baseline, scenarios, jobs)


def _over_processes(baseline: Baseline, scenarios: Sequence[Scenario], jobs: int) -> Iterator[Effect]:
    fabric = baseline.published.fabric
    single = replace(baseline, options=replace(baseline.options, threads=1))
    _ = single.a2a, single.separation, fabric.channels, fabric.lids  # computed once, inherited by all
    entries = max(1, fabric.switches * len(fabric.lids))
    share = max(1, len(scenarios) // (4 * jobs))
    at_once = max(1, min(_MOST_AT_ONCE, _ENTRIES_AT_ONCE // entries, share))
    # Forked, so that workers inherit the tables instead of reading megabytes from a pipe; nothing here has threads yet.
    executor = ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), _begin, (single,))
    effects = executor.map(_effect, scenarios, chunksize=at_once)
    return _drained(executor, effects)


def _drained(executor: ProcessPoolExecutor, effects: Iterator[Effect]) -> Iterator[Effect]:
    try:
        yield from effects
    except BrokenProcessPool:
        raise EnvironmentProblem("a worker process died, perhaps for lack of memory (use fewer --jobs)") from None
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _begin(baseline: Baseline) -> None:
    """Make a fresh worker process ready."""
    leave_with_parent()
    _baseline.append(baseline)


def _effect(scenario: Scenario) -> Effect:
    return effect_of(_baseline[0], scenario)
