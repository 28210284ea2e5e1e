"""Run one task of a sweep.

A task computes tables for a faulty fabric, proves and measures them, and compares them with the tables before the
fault.
"""

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
from routing.reroute import CapacityKept, Precomputed, Published, Stability, capacity_kept, precompute, reroute
from routing.reroute.translate import translate_tables
from routing.sweep.cases import faults_of
from routing.sweep.results import Result, tables_digest
from routing.sweep.tasks import Target, Task
from routing.tables import Routing
from routing.whatif.connectivity import connectivity_loss

MAX_ATTEMPTS = 2
"""A task is given up after this number of deaths of its worker, if the task ran alone each time."""

Runner = Callable[[Fabric, Sequence[Task], Mapping[str, str]], list[Result]]
OFFLINE = "routing.sweep.work:offline"
"""Name of the function that runs tasks without a real OpenSM, as ``MODULE:FUNCTION``.  The function is used in all
modes except "lab".
"""


@dataclass(frozen=True)
class Batch:
    """Tasks on one fabric that are sent to a worker together.

    Attributes
    ----------
    fabric
        Fabric in the serialised form of :func:`pack`, so that a worker needs no files.
    tasks
        Tasks to run.
    runner
        Name of the function that runs the tasks, as ``MODULE:FUNCTION``.  The batch has only the name, because this
        package must not import the modules that run tasks under a real OpenSM.
    settings
        Settings that the function ``runner`` receives, as pairs of name and value.
    timeouts
        Time limit of each task in seconds (None: no limit).  The tuple is empty if no task has a limit.
    """

    fabric: bytes
    tasks: tuple[Task, ...]
    runner: str = OFFLINE
    settings: tuple[tuple[str, str], ...] = ()
    timeouts: tuple[float | None, ...] = ()


def pack(fabric: Fabric) -> bytes:
    """Serialise a fabric for a worker, without its cached values."""
    return pickle.dumps(replace(fabric))


@lru_cache(maxsize=8)
def unpack(packed: bytes) -> Fabric:
    """Restore a fabric from the bytes of :func:`pack`.  The last few fabrics are cached."""
    fabric = pickle.loads(packed)
    assert isinstance(fabric, Fabric)
    return fabric


def perform(batch: Batch) -> list[Result]:
    """Run the tasks of a batch without time limits, and return their results."""
    module, _, function = batch.runner.partition(":")
    runner: Runner = getattr(importlib.import_module(module), function)
    return runner(unpack(batch.fabric), batch.tasks, dict(batch.settings))


def offline(fabric: Fabric, tasks: Sequence[Task], settings: Mapping[str, str]) -> list[Result]:
    """Run tasks on one fabric without a real OpenSM, and return their results.  ``settings`` is not used."""
    return [guarded(task, lambda task=task: run_task(fabric, task)) for task in tasks]  # type: ignore[misc]


def abandoned_result(task: Task, status: int | None = None) -> Result:
    """Return the result of a task whose worker has died repeatedly.

    ``status`` is the exit status of the worker that died last, None if unknown.  If this worker was ended by SIGKILL or
    SIGTERM, or exited without a signal, the outcome is "lost", because the cause may be outside the task.  If another
    signal ended the worker, or if the status is unknown, the outcome is "error".
    """
    how = "" if status is None else f"; the last {describe_exit(status)}"
    fault = status is None or (status < 0 and -status not in (signal.SIGKILL, signal.SIGTERM))
    return Result(task.id, "error" if fault else "lost", error=f"its worker died, {MAX_ATTEMPTS} times{how}")


def guarded(task: Task, work: Callable[[], Result]) -> Result:
    """Run a task by the function ``work``, and return the result of the task.

    If ``work`` raises an exception, the result has an outcome that depends on the type of the exception, such as
    "refused" for a ``RoutingError``.
    """
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
        # Only the first line of the message is kept.  Further lines can be the last lines of a program's log.
        found, report = "error", str(error).partition("\n")[0]
    except Exception as error:
        found, report = "error", f"{type(error).__name__}: {error}"
    return Result(task.id, found, error=" ".join(report.split()), seconds=time.perf_counter() - started)


@lru_cache(maxsize=16)
def tables_before(fabric: Fabric, target: Target, seed: int) -> Published | None:
    """Compute and prove the tables of the fault-free fabric with the engine and the options of ``target``.

    Return None if the engine cannot route the fabric.  The last few results are cached, because many tasks share them.
    """
    try:
        routing = ENGINES[target.engine].route(fabric, target.engine_options(seed=seed))
    except RoutingError:
        return None
    return Published(fabric, routing, prove(fabric, routing, threads=1))


@lru_cache(maxsize=16)
def precomputed(before: Published) -> Precomputed:
    """Compute the part of a re-route that depends only on the previous tables.  The last few results are cached."""
    return precompute(before, threads=1)


def run_task(fabric: Fabric, task: Task) -> Result:
    """Run one task: apply the fault, compute tables, prove and measure them, and return the result.

    Raises
    ------
    IbnueError
        The engine fails on the fabric, with or without the fault.
    """
    faults = faults_of(task.fault, fabric)
    broken = apply_faults(fabric, faults)
    before = tables_before(fabric, task.target, task.seed)
    started = time.perf_counter()
    after, how, fresh = routed(task, before, broken)
    seconds = time.perf_counter() - started
    outcome, report = classify_outcome(ENGINES[task.target.engine], after.proof)
    entries, changed, gone = changes(before, after)
    kept = CapacityKept() if before is None else capacity_kept(before, after, fresh)
    return replace(
        with_kept(described(task, fabric, after), kept), outcome=outcome, error=report, faults=len(faults), how=how,
        entries=entries, changed=changed, broken=gone, tables=tables_digest(broken, after.routing), seconds=seconds,
    )  # fmt: skip


def with_kept(result: Result, kept: CapacityKept) -> Result:
    """Return a copy of a result with the rates of ``kept``: for the task's tables, and for tables from scratch."""
    return replace(
        result, kept=kept.all_to_all, bisection_kept=kept.bisection, fresh_kept=kept.fresh_all_to_all,
        fresh_bisection_kept=kept.fresh_bisection,
    )  # fmt: skip


def routed(task: Task, before: Published | None, fabric: Fabric) -> tuple[Published, str | None, Routing | None]:
    """Compute the tables for the faulty fabric in the mode of the task.

    Returns
    -------
    after : Published
        The tables with their proof.
    how : str or None
        Method of the re-route; None in the mode "fresh", which makes no re-route.
    fresh : Routing or None
        Tables from scratch; None if the task has not computed such tables.

    Raises
    ------
    RoutingError
        The engine fails, or there are no fault-free tables from which a re-route could start.
    """
    engine, options = ENGINES[task.target.engine], task.target.engine_options(seed=task.seed)
    if task.mode == "fresh":
        routing = engine.route(fabric, options)
        return Published(fabric, routing, prove(fabric, routing, threads=1)), None, routing
    if before is None:
        raise RoutingError("the engine refuses the intact fabric")
    done = reroute(engine, options, before, fabric, stability=Stability(task.mode), precomputed=precomputed(before))
    fresh = done.routing if done.how == "fresh" and done.fresh is None else done.fresh
    return Published(fabric, done.routing, done.proof), done.how, fresh


def classify_outcome(engine: Engine, proof: Proof) -> tuple[str, str | None]:
    """Derive a task's outcome from the proof of its tables.

    The function returns the outcome, and a one-line description of the problem (None if there is no problem).
    """
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
    """Return a new result with properties of the proof and the tables, such as strength, VLs and all-to-all rate.

    ``before`` is the fabric without the fault, and ``after`` has the tables of the fabric with the fault.
    """
    fabric, routing, proof = after.fabric, after.routing, after.proof
    share = all_to_all_share(fabric, channel_loads(fabric, routing, threads=1))
    apart = connectivity_loss(before, fabric)
    return Result(
        task.id, "certified", strength=proof.strength, scope=proof.scope, vls=routing.vls,
        vls_needed=routing.vls_needed, parts=apart.parts, cut_off=len(apart.cut_off),
        a2a=share if math.isfinite(share) else None,
    )  # fmt: skip


def changes(before: Published | None, after: Published) -> tuple[int | None, int | None, int | None]:
    """Count the LFT entries that differ between the tables before and after a fault.

    Only entries of switches and LIDs that still exist after the fault are counted.

    Returns
    -------
    entries, changed, broken
        Number of entries that are present in the old or in the new tables, number of entries that differ, and number of
        old entries that became invalid.  All three numbers are None if the case has no tables before the fault.
    """
    if before is None:
        return None, None, None
    routed = translate_tables(before.routing, before.fabric, after.fabric)
    now = after.routing.lft
    filled = (routed.earlier != NO_PORT) | (now != NO_PORT)
    differ = np.count_nonzero(routed.earlier != now)
    return int(filled.sum()), int(differ), routed.broken
