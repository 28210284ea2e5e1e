"""Work of a sweep task: compute tables for a faulty fabric, prove and measure them, and compare with those before."""

from __future__ import annotations

import importlib
import math
import pickle
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from routing.deadlock.proof import Proof, prove
from routing.engines import ENGINES
from routing.engines.base import Engine, Promise
from routing.errors import BrokenPromise, IbnueError, KernelError, RoutingError
from routing.fabric import NO_PORT, Fabric
from routing.faults import apply_faults
from routing.processes import describe_exit
from routing.quality import all_to_all_share, channel_loads
from routing.reroute import Precomputed, Published, Stability, precompute, reroute
from routing.reroute.translate import translate_tables
from routing.sweep.cases import faults_of
from routing.sweep.results import Result, tables_digest
from routing.sweep.tasks import Target, Task
from routing.whatif.capacity import share_kept
from routing.whatif.connectivity import connectivity_loss

MAX_ATTEMPTS = 2
"""Deaths of processes, while the task ran alone, after which the task is given up."""

Runner = Callable[[Fabric, Sequence[Task], Mapping[str, str]], list[Result]]
OFFLINE = "routing.sweep.work:offline"
"""Runner of all modes except "lab"."""


@dataclass(frozen=True)
class Batch:
    """Tasks on one fabric that are sent to a worker together.

    Attributes
    ----------
    fabric
        Fabric packed by :func:`pack`, so that a worker needs no files.
    tasks
        The tasks.
    runner
        Module and function that run the tasks; a name, because modules for live tasks are above this package.
    settings
        Further settings of that function.
    timeouts
        Time limit of each task in seconds, None without limit; () if no task has a limit.
    """

    fabric: bytes
    tasks: tuple[Task, ...]
    runner: str = OFFLINE
    settings: tuple[tuple[str, str], ...] = ()
    timeouts: tuple[float | None, ...] = ()


def pack(fabric: Fabric) -> bytes:
    """Serialise a fabric without its cached values."""
    return pickle.dumps(replace(fabric))


@lru_cache(maxsize=8)
def unpack(packed: bytes) -> Fabric:
    """Return the fabric from :func:`pack`; a worker caches the last few."""
    fabric = pickle.loads(packed)
    assert isinstance(fabric, Fabric)
    return fabric


def perform(batch: Batch) -> list[Result]:
    """Run the tasks of a batch without time limits."""
    module, _, function = batch.runner.partition(":")
    runner: Runner = getattr(importlib.import_module(module), function)
    return runner(unpack(batch.fabric), batch.tasks, dict(batch.settings))


def offline(fabric: Fabric, tasks: Sequence[Task], settings: Mapping[str, str]) -> list[Result]:
    """Run each task with the kernels."""
    return [guarded(task, lambda task=task: run_task(fabric, task)) for task in tasks]  # type: ignore[misc]


def abandoned_result(task: Task, status: int | None = None) -> Result:
    """Return the result of a task during which processes die, the last one with exit status ``status`` (None: unknown).

    If a process is killed by SIGKILL or SIGTERM, or exits by itself, the task need not be the cause.
    """
    how = "" if status is None else f"; the last {describe_exit(status)}"
    fault = status is None or (status < 0 and -status not in (signal.SIGKILL, signal.SIGTERM))
    return Result(task.id, "error" if fault else "lost", error=f"its worker died, {MAX_ATTEMPTS} times{how}")


def guarded(task: Task, work: Callable[[], Result]) -> Result:
    """Run a task and return its result; exceptions become results too."""
    started = time.perf_counter()
    try:
        return work()
    except BrokenPromise as error:
        found, report = "wrong", str(error)
    except RoutingError as error:
        found, report = "refused", str(error)
    except (ImportError, MemoryError, KernelError) as error:
        found, report = "lost", f"{type(error).__name__}: {error}"
    except IbnueError as error:
        found, report = "error", str(error).partition("\n")[0]  # the end of a log may follow
    except Exception as error:
        found, report = "error", f"{type(error).__name__}: {error}"
    return Result(task.id, found, error=" ".join(report.split()), seconds=time.perf_counter() - started)


@lru_cache(maxsize=16)
def tables_before(fabric: Fabric, target: Target, seed: int) -> Published | None:
    """Return the tables of the intact fabric, None if the engine cannot route it; a worker caches the last few."""
    try:
        routing = ENGINES[target.engine].route(fabric, target.engine_options(seed=seed))
    except RoutingError:
        return None
    return Published(fabric, routing, prove(fabric, routing, threads=1))


@lru_cache(maxsize=16)
def precomputed(before: Published) -> Precomputed:
    """Return what all re-routes of the same tables need; a worker caches the last few."""
    return precompute(before, threads=1)


def run_task(fabric: Fabric, task: Task) -> Result:
    """Run one task and return its result.

    Raises
    ------
    IbnueError
        The engine fails on the fabric, with or without the fault.
    """
    faults = faults_of(task.fault, fabric)
    broken = apply_faults(fabric, faults)
    before = tables_before(fabric, task.target, task.seed)
    started = time.perf_counter()
    after, how = routed(task, before, broken)
    seconds = time.perf_counter() - started
    outcome, report = classify_outcome(ENGINES[task.target.engine], after.proof)
    entries, changed, gone = changes(before, after)
    return replace(
        described(task, fabric, after),
        outcome=outcome,
        error=report,
        faults=len(faults),
        how=how,
        entries=entries,
        changed=changed,
        broken=gone,
        kept=None if before is None else share_kept(before, after),
        tables=tables_digest(broken, after.routing),
        seconds=seconds,
    )


def routed(task: Task, before: Published | None, fabric: Fabric) -> tuple[Published, str | None]:
    """Return the tables for the faulty fabric, and the method of the re-route (None without one).

    Raises
    ------
    RoutingError
        The engine fails, or there are no tables of the intact fabric for a re-route.
    """
    engine, options = ENGINES[task.target.engine], task.target.engine_options(seed=task.seed)
    if task.mode == "fresh":
        routing = engine.route(fabric, options)
        return Published(fabric, routing, prove(fabric, routing, threads=1)), None
    if before is None:
        raise RoutingError("the engine refuses the intact fabric")
    done = reroute(engine, options, before, fabric, stability=Stability(task.mode), precomputed=precomputed(before))
    return Published(fabric, done.routing, done.proof), done.how


def classify_outcome(engine: Engine, proof: Proof) -> tuple[str, str | None]:
    """Return the outcome for an engine's proof, and a description of the fault in one line (None without one)."""
    if proof.certified:
        return "certified", None
    if not proof.complete:
        return "wrong", _line(proof.unreachable.describe())
    assert proof.credit_loop is not None
    outcome = "wrong" if engine.promise is Promise.DEADLOCK_FREE else "loop"
    return outcome, _line(proof.credit_loop.describe()[:1]).rstrip(":")


def _line(lines: Sequence[str]) -> str:
    return " ".join("; ".join(line.strip() for line in lines).split())


def described(task: Task, before: Fabric, after: Published) -> Result:
    """Return a result with the properties of the proof and the tables."""
    fabric, routing, proof = after.fabric, after.routing, after.proof
    share = all_to_all_share(fabric, channel_loads(fabric, routing, threads=1))
    apart = connectivity_loss(before, fabric)
    return Result(
        task.id,
        "certified",
        strength=proof.strength,
        scope=proof.scope,
        vls=routing.vls,
        vls_needed=routing.vls_needed,
        parts=apart.parts,
        cut_off=len(apart.cut_off),
        a2a=share if math.isfinite(share) else None,
    )


def changes(before: Published | None, after: Published) -> tuple[int | None, int | None, int | None]:
    """Count the entries for current switches and LIDs in either table, those that differ, and those no longer valid.

    Returns
    -------
    entries, changed, broken
        The three numbers; None without tables before the fault.
    """
    if before is None:
        return None, None, None
    routed = translate_tables(before.routing, before.fabric, after.fabric)
    now = after.routing.lft
    filled = (routed.earlier != NO_PORT) | (now != NO_PORT)
    differ = np.count_nonzero(routed.earlier != now)
    return int(filled.sum()), int(differ), routed.broken
