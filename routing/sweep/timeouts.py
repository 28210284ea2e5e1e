"""Tasks that may take so long and no longer.

A kernel that hangs hears nobody, so that its process has to be ended.  A worker therefore does such tasks in a process
beside it, whose timer is the system's own: the same for every executor, and no worker is lost.
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

from routing.processes import leave_with
from routing.sweep import work
from routing.sweep.results import Result
from routing.sweep.work import LIVES, Batch, given_up, guarded

BEGIN = """import os, sys; os.mkdir(os.environ["TMPDIR"], 0o700); sys.path[:] = sys.argv[3:]
from routing.sweep.timeouts import begin; begin(*sys.argv[1:3])"""

_own = threading.local()
"""Holds the process beside each thread of a worker, which keeps fabrics and tables from one batch to the next."""


class Beside:
    """A process beside a worker that does tasks one by one, and ends with it.

    Attributes
    ----------
    folder
        Where its temporary files go, made and removed by itself: a worker may be killed at any moment.
    """

    def __init__(self) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        self.folder = str(Path(tempfile.gettempdir()) / f"ibnue-sweep-{secrets.token_hex(8)}")
        with theirs:
            # Isolated: what lies in the working directory is no module of ours.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", BEGIN, str(theirs.fileno()), str(os.getpid()), *sys.path],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "TMPDIR": self.folder},
            )

    def results(self, batch: Batch) -> Iterator[Result]:
        """Results as they come in; fewer than there are tasks if the process ends."""
        with contextlib.suppress(EOFError, OSError):
            self._pipe.send(batch)
            for _ in batch.tasks:
                yield self._pipe.recv()

    def end(self) -> int:
        """Collect it; its exit status (negative: the signal)."""
        self._pipe.close()
        status = self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        return status


def perform(batch: Batch) -> list[Result]:
    """Do the tasks of a batch, in a worker; those that take too long are ended, wherever they are."""
    if not any(batch.timeouts):
        return work.perform(batch)
    done: list[Result] = []
    deaths: dict[str, int] = {}
    while len(done) < len(batch.tasks):
        if not hasattr(_own, "process"):
            _own.process = Beside()
        count = len(done)
        done += _own.process.results(replace(batch, tasks=batch.tasks[count:], timeouts=batch.timeouts[count:]))
        if len(done) < len(batch.tasks):
            task, seconds = batch.tasks[len(done)], batch.timeouts[len(done)]
            status = _own.process.end()
            del _own.process
            deaths[task.id] = deaths.get(task.id, 0) + 1
            if status == -signal.SIGALRM and seconds is not None:
                done.append(Result(task.id, "timed out", seconds=seconds, error=f"took longer than {seconds:g} s"))
            elif deaths[task.id] == LIVES:
                done.append(given_up(task))
    return done


def begin(pipe: str, parent: str) -> None:
    """Do what comes through a pipe, until it is closed."""
    tidy = partial(shutil.rmtree, os.environ["TMPDIR"], ignore_errors=True)
    leave_with(int(parent), tidy)
    # What the timer does is the system's business: it needs neither Python nor its lock.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    with contextlib.suppress(EOFError, OSError), Connection(int(pipe)) as batches:
        while True:
            batch: Batch = batches.recv()
            for task, seconds in zip(batch.tasks, batch.timeouts, strict=True):
                batches.send(timed(replace(batch, tasks=(task,)), seconds))
    tidy()


def timed(batch: Batch, seconds: float | None) -> Result:
    """The result of a batch's only task; this process ends if it is not there in time."""
    (task,) = batch.tasks
    signal.setitimer(signal.ITIMER_REAL, seconds or 0.0)
    try:
        return guarded(task, lambda: work.perform(batch)[0])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
