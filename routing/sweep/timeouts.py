"""Run tasks with a time limit.

Python handles signals only after a C kernel has returned, so a kernel that runs too long can be stopped only by killing
its process.  Therefore a worker runs tasks with a limit in a child process, which a system timer kills.  The worker
itself survives.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from routing.errors import EnvironmentProblem
from routing.isolation import import_path
from routing.processes import describe_exit, exit_with_process
from routing.sweep import work
from routing.sweep.results import Result
from routing.sweep.work import MAX_ATTEMPTS, Batch, abandoned_result, guarded

BEGIN = """import os, sys; os.mkdir(os.environ["TMPDIR"], 0o700); sys.path[:] = sys.argv[3:]
try:
    from routing.sweep.timeouts import begin
except BaseException as error:
    from multiprocessing.connection import Connection
    Connection(int(sys.argv[1])).send(f"{type(error).__name__}: {error}")
    sys.exit(1)
begin(*sys.argv[1:3])"""
STARTED = "started"
"""First message of a child process that has started.  A process that cannot start sends an error text instead."""

_own = threading.local()
"""Data of each thread of a worker.  The attribute ``process`` is the child process of the thread.  One child process
runs many batches, so that later batches use the fabrics and tables that it keeps in memory.
"""


class TaskProcess:
    """Child process of a worker, which runs tasks one by one and ends when the worker ends.

    Attributes
    ----------
    folder
        Folder for temporary files.  The child itself creates and removes the folder.  The worker cannot be relied on to
        remove it, because the worker may be killed at any moment.

    Raises
    ------
    EnvironmentProblem
        The process cannot start.  The message is the first error of the process.
    """

    def __init__(self) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        self.folder = str(Path(tempfile.gettempdir()) / f"ibnue-sweep-{secrets.token_hex(8)}")
        with theirs:
            # Isolated mode keeps the process from importing modules in the working directory.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", BEGIN, str(theirs.fileno()), str(os.getpid()), *import_path()],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "TMPDIR": self.folder},
            )
        answer = ""
        with contextlib.suppress(EOFError, OSError):
            answer = self._pipe.recv()
        if answer != STARTED:
            status = self.end()
            raise cannot_start(answer or f"it {describe_exit(status)}")

    def results(self, batch: Batch) -> Iterator[Result]:
        """Run the tasks of a batch, and yield their results as they arrive.

        If the process dies, there are fewer results than tasks.
        """
        with contextlib.suppress(EOFError, OSError):
            self._pipe.send(batch)
            for _ in batch.tasks:
                yield self._pipe.recv()

    def end(self) -> int:
        """Close the pipe, wait until the process has ended, and return its exit status.

        If a signal has ended the process, the status is the negative number of the signal.
        """
        self._pipe.close()
        status = self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        return status


def cannot_start(why: str) -> EnvironmentProblem:
    """Return the error for a child process that cannot start.  ``why`` is the first error of the process."""
    return EnvironmentProblem(
        f"a worker cannot start: {' '.join(why.split())}", remedy="is ibnue installed completely?"
    )


def check_start() -> None:
    """Check that a child process can start, by starting and ending such a process.

    Raises
    ------
    EnvironmentProblem
        The process cannot start.  The message is the first error of the process.
    """
    TaskProcess().end()


def run_batch(batch: Batch) -> list[Result]:
    """Run the tasks of a batch in a worker, and return their results.

    If any task of the batch has a time limit, all its tasks run in a child process, which is killed when a task exceeds
    its limit.  The remaining tasks then run in a new process.
    """
    if not any(batch.timeouts):
        return work.perform(batch)
    done: list[Result] = []
    deaths: dict[str, int] = {}
    while len(done) < len(batch.tasks):
        if not hasattr(_own, "process"):
            _own.process = TaskProcess()
        count = len(done)
        done += _own.process.results(replace(batch, tasks=batch.tasks[count:], timeouts=batch.timeouts[count:]))
        if len(done) < len(batch.tasks):
            task, seconds = batch.tasks[len(done)], batch.timeouts[len(done)]
            status = _own.process.end()
            del _own.process
            deaths[task.id] = deaths.get(task.id, 0) + 1
            if status == -signal.SIGALRM and seconds is not None:
                done.append(Result(task.id, "timed out", seconds=seconds, error=f"took longer than {seconds:g} s"))
            elif deaths[task.id] == MAX_ATTEMPTS:
                done.append(abandoned_result(task, status))
    return done


def begin(pipe: str, parent: str) -> None:
    """Run batches in a child process.  The process receives the batches through a pipe and sends back results, until
    the pipe is closed.

    ``pipe`` is the number of the pipe's file descriptor, and ``parent`` the process id of the worker.
    """
    tidy = partial(shutil.rmtree, os.environ["TMPDIR"], ignore_errors=True)
    exit_with_process(int(parent), tidy)
    # Without a handler in Python, the timer signal ends the process at once, even while a C kernel runs.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    with contextlib.suppress(EOFError, OSError), Connection(int(pipe)) as batches:
        batches.send(STARTED)
        while True:
            batch: Batch = batches.recv()
            for task, seconds in zip(batch.tasks, batch.timeouts, strict=True):
                batches.send(run_with_timeout(replace(batch, tasks=(task,)), seconds))
    tidy()


def run_with_timeout(batch: Batch, seconds: float | None) -> Result:
    """Run a batch that has one task, and return the result of the task.

    If the task takes longer than ``seconds`` (None: no limit), a timer kills the child process in which this function
    runs.
    """
    (task,) = batch.tasks
    signal.setitimer(signal.ITIMER_REAL, seconds or 0.0)
    try:
        return guarded(task, lambda: work.perform(batch)[0])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
