"""Executors of a sweep: processes on this machine, workers of a Dask scheduler, or ranks of an MPI job.

All three use a :class:`concurrent.futures.Executor` behind a common interface, which detects dead workers and restarts
them if possible.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import importlib
import os
import shutil
import signal
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future
from functools import partial
from typing import Any

from routing import pools
from routing.errors import EnvironmentProblem, OptionError
from routing.processes import cores, exit_with_parent, fork_server, remove_folder
from routing.sweep.results import Result
from routing.sweep.timeouts import check_start, run_batch
from routing.sweep.version import code_version
from routing.sweep.work import Batch

DASK_SECONDS = 20.0
"""Timeout for a scheduler to answer, and then for its first worker, in seconds."""


ISOLATE = """
from distributed import WorkerPlugin

def isolate():
    import importlib.util, os, sys
    here, named, before = os.getcwd(), os.environ.get("PYTHONPATH", "").split(os.pathsep), sys.path[:]
    sys.path[:] = [entry for entry in before if os.path.isabs(entry) and (entry != here or entry in named)]
    if importlib.util.find_spec("routing") is None:
        sys.path[:] = before

class Isolate(WorkerPlugin):
    name, idempotent = "ibnue-isolate", True

    def setup(self, worker):
        isolate()
"""
"""Code that removes the working directory from the import path of Dask's scheduler and workers; sent as text.

A process that is started by ``python -m`` searches its working directory first, and would import any ``routing`` there.
The directory stays if this package is found nowhere else.
"""


class Workers(ABC):
    """Interface of a group of workers.

    Attributes
    ----------
    count
        Number of batches processed at a time.
    together
        Whether all running batches are lost when one worker dies.
    status
        Exit status of the worker that died last (negative: the signal), None if unknown.
    """

    count: int
    together: bool = True
    status: int | None = None

    @abstractmethod
    def submit(self, batch: Batch) -> Future[list[Result]]:
        """Submit a batch."""

    @abstractmethod
    def died(self, error: BaseException) -> bool:
        """Return whether an error means that a worker died during the batch or during one that ran at that time."""

    @abstractmethod
    def restart(self) -> None:
        """Make workers available again after some died."""

    @abstractmethod
    def close(self, *, now: bool = False) -> None:
        """Release the workers: at once if ``now``, even during a batch, else when they are idle."""


class Processes(Workers):
    """Processes on this machine.

    Parameters
    ----------
    count
        Number of processes; None: one for each core that may be used.
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = count or cores()
        self._checked = False
        self._pool = self._started()

    def _started(self) -> concurrent.futures.ProcessPoolExecutor:
        # The workers are forked from a server process without threads or open ledgers that has loaded the engines.
        context = fork_server(["routing.sweep.timeouts"])
        # Workers that are killed do not remove their folders, so all these folders are in a common one.
        self._folder = tempfile.mkdtemp(prefix="ibnue-sweep-")
        return concurrent.futures.ProcessPoolExecutor(
            self.count, mp_context=context, initializer=_begin, initargs=(self._folder,)
        )

    def submit(self, batch: Batch) -> Future[list[Result]]:
        """Submit a batch.

        Raises
        ------
        BrokenExecutor
            A worker died.
        """
        return pools.submit(self._pool, run_batch, batch)

    def died(self, error: BaseException) -> bool:
        """Return whether the pool is broken; one dead process breaks it."""
        if not isinstance(error, BrokenExecutor):
            return False
        exits = [process.exitcode for process in list((self._pool._processes or {}).values())]
        # A broken pool ends its other processes by SIGTERM, and some exit by themselves.
        first = [status for status in exits if status not in (None, 0, -signal.SIGTERM)]
        self.status = first[0] if first else self.status
        return True

    def restart(self) -> None:
        """Start all processes again.

        Raises
        ------
        EnvironmentProblem
            Processes cannot start; the message is the first error of one.
        """
        self.close(now=True)
        if not self._checked:
            check_start()
            self._checked = True
        self._pool = self._started()

    @property
    def pids(self) -> list[int]:
        """Process ids of the running processes."""
        return list(self._pool._processes or {})

    def close(self, *, now: bool = False) -> None:
        """End the processes."""
        pools.end(self._pool, now=now)
        remove_folder(self._folder)


def _begin(folder: str) -> None:
    """Initialise a worker whose temporary files go into a folder."""
    os.environ["TMPDIR"], tempfile.tempdir = folder, None
    exit_with_parent(partial(shutil.rmtree, folder, ignore_errors=True))


class Dask(Workers):
    """Workers of a Dask scheduler, on this machine or others.

    Parameters
    ----------
    address
        Address of the scheduler, such as ``tcp://head:8786`` or, equivalently, ``dask://head:8786``.

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
        """Check the workers' version of ibnue, and return the number of threads of all workers."""
        try:
            self._client.wait_for_workers(1, timeout=DASK_SECONDS)
            scope: dict[str, Any] = {"__name__": "__main__"}  # objects of no importable module are pickled by value
            exec(ISOLATE, scope)
            self._client.run_on_scheduler(scope["isolate"])
            self._client.register_plugin(scope["Isolate"]())
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
        """Submit a batch; if a worker dies, Dask itself gives the batch to another one, up to three times."""
        future: Future[list[Result]] = self._executor.submit(run_batch, batch)
        return future

    def died(self, error: BaseException) -> bool:
        """Return whether Dask has given up on the batch.

        Raises
        ------
        EnvironmentProblem
            The scheduler is gone.
        """
        if isinstance(error, CancelledError) or self._client.status not in ("running", "connecting"):
            raise EnvironmentProblem(f"the Dask scheduler at {self._address} is gone (run again to go on)") from None
        return isinstance(error, self._dask.KilledWorker)

    def restart(self) -> None:
        """Do nothing: the scheduler replaces dead workers or continues without them."""

    def close(self, *, now: bool = False) -> None:
        """Disconnect from the scheduler."""
        with contextlib.suppress(Exception):
            self._executor.shutdown(wait=False)
        with contextlib.suppress(Exception):
            self._client.close(timeout=DASK_SECONDS)


@contextlib.contextmanager
def mpi_ranks() -> Iterator[Any]:
    """Connect the ranks of an MPI job: yield an executor to rank 0, and None to every other rank when rank 0 is done.

    Every rank runs the same command.  Each must enter this context before it can fail on its own: the other ranks would
    wait for a missing rank for ever.

    Raises
    ------
    EnvironmentProblem
        mpi4py or an MPI library is not installed, or there is only one rank.
    """
    futures = optional("mpi4py.futures", "mpi")
    try:
        mpi = importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise EnvironmentProblem(f"mpi4py finds no MPI: {error} (install openmpi-bin or mpich)") from None
    if mpi.COMM_WORLD.Get_size() < 2:
        raise EnvironmentProblem("there are no MPI ranks to work (mpiexec -n 5 ibnue sweep ... --executor mpi)")
    # The other ranks need not import the main module of rank 0: their tasks are in modules of this package.
    with futures.MPICommExecutor(mpi.COMM_WORLD, root=0, main=False) as executor:
        yield executor


class Mpi(Workers):
    """The other ranks of an MPI job; this one is rank 0.

    Parameters
    ----------
    executor
        Executor from :func:`mpi_ranks`.
    """

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        self.count = executor.num_workers

    def submit(self, batch: Batch) -> Future[list[Result]]:
        """Submit a batch."""
        future: Future[list[Result]] = self._executor.submit(run_batch, batch)
        return future

    def died(self, error: BaseException) -> bool:
        """Return whether the ranks are gone; usually MPI ends the whole job, this rank included, when one dies."""
        return isinstance(error, BrokenExecutor)

    def restart(self) -> None:
        """Raise an error: MPI cannot restart a rank."""
        raise EnvironmentProblem("the MPI workers are gone (run again to go on)")

    def close(self, *, now: bool = False) -> None:
        """Release the ranks."""
        self._executor.shutdown(wait=True, cancel_futures=True)


def optional(module: str, extra: str) -> Any:
    """Import a module of an optional package.

    Raises
    ------
    EnvironmentProblem
        The package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise EnvironmentProblem(f"{module} is not installed (pip install 'ibnue[{extra}]')") from None


def workers(executor: str, count: int | None = None) -> Workers:
    """Return the workers that ``--executor`` names: ``processes``, or ``dask://host:port`` (or tcp://, tls://).

    Raises
    ------
    OptionError
        The name is not an executor.
    EnvironmentProblem
        The workers are not available.
    """
    if executor == "processes":
        return Processes(count)
    if executor.partition("://")[0] in ("dask", "tcp", "tls") and executor.partition("://")[2]:
        return Dask(executor)
    raise OptionError(f"{executor!r} is not an executor", remedy="use processes, dask://host:port or mpi")
