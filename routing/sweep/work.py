"""What a worker does: tables for a fabric with a fault, proven, measured, and compared with those before the fault."""

from __future__ import annotations

import importlib
import math
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from routing.deadlock.proof import Proof, prove
from routing.engines import ENGINES
from routing.engines.base import Engine, Promise
from routing.errors import BrokenPromise, IbnueError, RoutingError
from routing.fabric import NO_PORT, Fabric
from routing.faults import apply_faults
from routing.quality import all_to_all_share, channel_loads
from routing.reroute import Published, Stability, reroute
from routing.reroute.translate import lay_over
from routing.sweep.cases import faults_of
from routing.sweep.results import Result, tables_digest
from routing.sweep.tasks import Target, Task
from routing.whatif.connection import separation

LIVES = 2
"""Processes that a task may cost, once it is known that it is the one."""

Runner = Callable[[Fabric, Sequence[Task], Mapping[str, str]], list[Result]]
OFFLINE = "routing.sweep.work:offline"
"""The runner of all modes but "lab"."""


@dataclass(frozen=True)
class Batch:
    """Tasks on one fabric that travel together.

    Attributes
    ----------
    fabric
        As :func:`pack` made it, so that a worker needs no files.
    tasks
        What to do.
    runner
        Module and function that do it; a name, since what a live task needs stands above this package.
    settings
        What that function has to know besides.
    timeouts
        Seconds that each task may take, None without end; () where none has such a limit.
    """

    fabric: bytes
    tasks: tuple[Task, ...]
    runner: str = OFFLINE
    settings: tuple[tuple[str, str], ...] = ()
    timeouts: tuple[float | None, ...] = ()


def pack(fabric: Fabric) -> bytes:
    """A fabric for a journey, without what can be worked out again."""
    return pickle.dumps(replace(fabric))


@lru_cache(maxsize=8)
def unpack(packed: bytes) -> Fabric:
    """The fabric that was packed; a worker keeps the last few."""
    fabric = pickle.loads(packed)
    assert isinstance(fabric, Fabric)
    return fabric


def perform(batch: Batch) -> list[Result]:
    """Do the tasks of a batch, however long they take."""
    module, _, function = batch.runner.partition(":")
    runner: Runner = getattr(importlib.import_module(module), function)
    return runner(unpack(batch.fabric), batch.tasks, dict(batch.settings))


def offline(fabric: Fabric, tasks: Sequence[Task], settings: Mapping[str, str]) -> list[Result]:
    """Route each task with the kernels."""
    return [guarded(task, lambda task=task: one(fabric, task)) for task in tasks]  # type: ignore[misc]


def given_up(task: Task) -> Result:
    """The result of a task over which processes die."""
    return Result(task.id, "error", error=f"its worker died, {LIVES} times")


def guarded(task: Task, work: Callable[[], Result]) -> Result:
    """The result of a task whatever happens in it."""
    started = time.perf_counter()
    try:
        return work()
    except BrokenPromise as error:
        found, told = "wrong", str(error)
    except RoutingError as error:
        found, told = "refused", str(error)
    except IbnueError as error:
        found, told = "error", str(error).partition("\n")[0]  # a log's end may follow
    except Exception as error:
        found, told = "error", f"{type(error).__name__}: {error}"
    return Result(task.id, found, error=" ".join(told.split()), seconds=time.perf_counter() - started)


@lru_cache(maxsize=16)
def tables_before(fabric: Fabric, target: Target, seed: int) -> Published | None:
    """The tables of the intact fabric, None if the engine refuses it; a worker keeps the last few."""
    try:
        routing = ENGINES[target.engine].route(fabric, target.engine_options(seed=seed))
    except RoutingError:
        return None
    return Published(fabric, routing, prove(fabric, routing, threads=1))


def one(fabric: Fabric, task: Task) -> Result:
    """The result of one task.

    Raises
    ------
    IbnueError
        What the engine says of the fabric, with or without the fault.
    """
    faults = faults_of(task.fault, fabric)
    broken = apply_faults(fabric, faults)
    before = tables_before(fabric, task.target, task.seed)
    started = time.perf_counter()
    after, how = routed(task, before, broken)
    seconds = time.perf_counter() - started
    outcome, told = judge(ENGINES[task.target.engine], after.proof)
    entries, changed, gone = changes(before, after)
    return replace(
        described(task, fabric, after),
        outcome=outcome,
        error=told,
        faults=len(faults),
        how=how,
        entries=entries,
        changed=changed,
        broken=gone,
        tables=tables_digest(broken, after.routing),
        seconds=seconds,
    )


def routed(task: Task, before: Published | None, fabric: Fabric) -> tuple[Published, str | None]:
    """The tables for the fabric with the fault, and how a re-routing came by them.

    Raises
    ------
    RoutingError
        What the engine says; also where there are no tables before the fault that re-routing could start from.
    """
    engine, options = ENGINES[task.target.engine], task.target.engine_options(seed=task.seed)
    if task.mode == "fresh":
        routing = engine.route(fabric, options)
        return Published(fabric, routing, prove(fabric, routing, threads=1)), None
    if before is None:
        raise RoutingError("the engine refuses the intact fabric")
    done = reroute(engine, options, before, fabric, stability=Stability(task.mode))
    return Published(fabric, done.routing, done.proof), done.how


def judge(engine: Engine, proof: Proof) -> tuple[str, str | None]:
    """The outcome that a proof means for an engine, and what is wrong in one line."""
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
    """What a proof and the tables say."""
    fabric, routing, proof = after.fabric, after.routing, after.proof
    share = all_to_all_share(fabric, channel_loads(fabric, routing, threads=1))
    apart = separation(before, fabric)
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
    """Entries that one of the two has for switches and LIDs of now, those that differ, those that could not stay."""
    if before is None:
        return None, None, None
    laid = lay_over(before.routing, before.fabric, after.fabric)
    now = after.routing.lft
    filled = (laid.earlier != NO_PORT) | (now != NO_PORT)
    differ = np.count_nonzero(laid.earlier != now)
    return int(filled.sum()), int(differ), laid.broken
