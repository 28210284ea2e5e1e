"""Who does the work: processes on this machine, workers of a Dask scheduler, or ranks of an MPI job.

All three are :class:`concurrent.futures.Executor` behind one face, which knows when workers died and how to go on.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import importlib
import multiprocessing
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from concurrent.futures import BrokenExecutor, CancelledError, Future
from functools import partial
from typing import Any

from routing import pools
from routing.errors import EnvironmentProblem, OptionError
from routing.processes import cores, leave_with_parent, remove_folder
from routing.sweep.results import Result
from routing.sweep.timeouts import perform
from routing.sweep.version import code_version
from routing.sweep.work import Batch

DASK_SECONDS = 20.0
"""How long a scheduler, and then its first worker, may take to answer."""


class Workers(ABC):
    """Some workers.

    Attributes
    ----------
    count
        How many batches they do at a time.
    together
        When one dies, whatever runs at that time is lost.
    """

    count: int
    together: bool = True

    @abstractmethod
    def submit(self, batch: Batch) -> Future[list[Result]]:
        """Hand in a batch."""

    @abstractmethod
    def died(self, error: BaseException) -> bool:
        """Whether an error means that a worker died over the batch, or over one that ran at the same time."""

    @abstractmethod
    def restart(self) -> None:
        """Go on after workers died."""

    @abstractmethod
    def close(self, *, now: bool = False) -> None:
        """Let the workers go; at once, whatever they are doing, or when they are done."""


class Processes(Workers):
    """Processes on this machine.

    Parameters
    ----------
    count
        How many; None: one for each core that may be used.
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = count or cores()
        # Forked from a process without threads or open ledgers, which has loaded the engines once for all.
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["routing.sweep.timeouts"])
        self._pool = self._started()

    def _started(self) -> concurrent.futures.ProcessPoolExecutor:
        # Workers that are ended remove no folders, so theirs are all in one.
        self._folder = tempfile.mkdtemp(prefix="ibnue-sweep-")
        return concurrent.futures.ProcessPoolExecutor(
            self.count, mp_context=self._context, initializer=_begin, initargs=(self._folder,)
        )

    def submit(self, batch: Batch) -> Future[list[Result]]:
        """Hand in a batch.

        Raises
        ------
        BrokenExecutor
            A worker died.
        """
        return pools.submit(self._pool, perform, batch)

    def died(self, error: BaseException) -> bool:
        """Whether the pool is broken, which one dead process is enough for."""
        return isinstance(error, BrokenExecutor)

    def restart(self) -> None:
        """Start all processes anew."""
        self.close(now=True)
        self._pool = self._started()

    @property
    def pids(self) -> list[int]:
        """Those of the processes that run."""
        return list(self._pool._processes or {})

    def close(self, *, now: bool = False) -> None:
        """End the processes."""
        pools.end(self._pool, now=now)
        remove_folder(self._folder)


def _begin(folder: str) -> None:
    """Begin a worker whose temporary files go into a folder."""
    os.environ["TMPDIR"], tempfile.tempdir = folder, None
    leave_with_parent(partial(shutil.rmtree, folder, ignore_errors=True))


class Dask(Workers):
    """Workers of a Dask scheduler, on this machine or others.

    Parameters
    ----------
    address
        Such as ``tcp://head:8786``; ``dask://head:8786`` means the same.

    Raises
    ------
    EnvironmentProblem
        Dask is not installed, the scheduler does not answer, it has no workers, or they have another version of ibnue.
    """

    together = False

    def __init__(self, address: str) -> None:
        self._dask = optional("distributed", "dask")
        self._address = address.replace("dask://", "tcp://", 1)
        try:
            self._client: Any = self._dask.Client(self._address, timeout=DASK_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise EnvironmentProblem(
                f"no Dask scheduler answers at {self._address}: {error} (dask scheduler prints its address)"
            ) from None
        try:
            self.count = self._greet()
        except BaseException:
            self._client.close(timeout=DASK_SECONDS)
            raise
        self._executor = self._client.get_executor(pure=False)

    def _greet(self) -> int:
        """Threads of all workers; they have to know what to do."""
        try:
            self._client.wait_for_workers(1, timeout=DASK_SECONDS)
            versions = self._client.run(code_version)
        except (TimeoutError, self._dask.TimeoutError):
            raise EnvironmentProblem(
                f"the Dask scheduler at {self._address} has no workers (dask worker ADDRESS)"
            ) from None
        except ImportError as error:
            raise EnvironmentProblem(f"the Dask workers at {self._address} have no ibnue: {error}") from None
        other = sorted({version for version in versions.values() if version != code_version()})
        if other:
            raise EnvironmentProblem(
                f"the Dask workers at {self._address} have ibnue {', '.join(other)}, this is {code_version()}"
                " (install the same on all)"
            )
        return sum(self._client.nthreads().values()) or 1

    def submit(self, batch: Batch) -> Future[list[Result]]:
        """Hand in a batch; Dask itself gives it to another worker if one dies, three times."""
        future: Future[list[Result]] = self._executor.submit(perform, batch)
        return future

    def died(self, error: BaseException) -> bool:
        """Whether Dask has given up on the batch.

        Raises
        ------
        EnvironmentProblem
            The scheduler is gone.
        """
        if isinstance(error, CancelledError) or self._client.status not in ("running", "connecting"):
            raise EnvironmentProblem(f"the Dask scheduler at {self._address} is gone (run again to go on)") from None
        return isinstance(error, self._dask.KilledWorker)

    def restart(self) -> None:
        """Nothing to do: the scheduler replaces or does without what died."""

    def close(self, *, now: bool = False) -> None:
        """Leave the scheduler."""
        with contextlib.suppress(Exception):
            self._executor.shutdown(wait=False)
        with contextlib.suppress(Exception):
            self._client.close(timeout=DASK_SECONDS)


class Mpi(Workers):
    """The other ranks of an MPI job that mpi4py.futures has started; this one is rank 0.

    Raises
    ------
    EnvironmentProblem
        mpi4py or an MPI is not installed, or this is no such job.
    """

    def __init__(self) -> None:
        futures = optional("mpi4py.futures", "mpi")
        try:
            mpi = importlib.import_module("mpi4py.MPI")
        except (ImportError, RuntimeError) as error:
            raise EnvironmentProblem(f"mpi4py finds no MPI: {error} (install openmpi-bin or mpich)") from None
        self.count = mpi.COMM_WORLD.Get_size() - 1
        # Without its shared pool mpi4py would start processes of its own, which few MPIs can.
        if self.count < 1 or getattr(importlib.import_module("mpi4py.futures._core"), "SharedPool", True) is None:
            raise EnvironmentProblem(
                "there are no MPI ranks to work (mpiexec -n 5 python -m mpi4py.futures -m routing.cli sweep ...)"
            )
        self._executor: Any = futures.MPIPoolExecutor()

    def submit(self, batch: Batch) -> Future[list[Result]]:
        """Hand in a batch."""
        future: Future[list[Result]] = self._executor.submit(perform, batch)
        return future

    def died(self, error: BaseException) -> bool:
        """Whether the ranks are gone; mostly MPI ends the whole job when one dies, and this rank with it."""
        return isinstance(error, BrokenExecutor)

    def restart(self) -> None:
        """MPI cannot."""
        raise EnvironmentProblem("the MPI workers are gone (run again to go on)")

    def close(self, *, now: bool = False) -> None:
        """Let the ranks go."""
        self._executor.shutdown(wait=True, cancel_futures=True)


def optional(module: str, extra: str) -> Any:
    """A module of an optional package.

    Raises
    ------
    EnvironmentProblem
        It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise EnvironmentProblem(f"{module} is not installed (pip install 'ibnue[{extra}]')") from None


def workers(executor: str, count: int | None = None) -> Workers:
    """The workers that ``--executor`` names: ``processes``, ``dask://host:port`` (or tcp://, tls://), ``mpi``.

    Raises
    ------
    OptionError
        It names none.
    EnvironmentProblem
        They are not there.
    """
    if executor == "processes":
        return Processes(count)
    if executor == "mpi":
        return Mpi()
    if executor.partition("://")[0] in ("dask", "tcp", "tls") and executor.partition("://")[2]:
        return Dask(executor)
    raise OptionError(f"{executor!r} is no executor", remedy="use processes, dask://host:port or mpi")
