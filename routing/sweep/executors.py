"""Start workers that run the tasks of a sweep: processes on this machine, workers of a Dask scheduler, or ranks of an
MPI job.

All three kinds of workers use a :class:`concurrent.futures.Executor` behind a common interface.  The interface detects
workers that have died, and restarts the workers if possible.
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

MANAGER_SECONDS = 1.0
"""Maximum number of seconds to wait until a broken process pool has ended its remaining processes."""
DASK_SECONDS = 20.0
"""Maximum number of seconds to wait for the answer of a Dask scheduler, and then for its first worker."""


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
"""Code that removes the working directory from the import path.  This code is sent as text to Dask's scheduler and
workers, which run it.

A process that is started by ``python -m`` searches the working directory first, and would import any package
``routing`` there.  The directory stays on the path if ibnue's own package ``routing`` is found only in this directory.
"""


class Workers(ABC):
    """Interface of a group of workers, which run batches of tasks.

    Attributes
    ----------
    count
        Number of batches that run at the same time.
    together
        Whether the batches of all workers are lost if one worker dies.
    status
        Exit status of the last worker that died (negative: the signal), None if unknown.
    """

    count: int
    together: bool = True
    status: int | None = None

    @abstractmethod
    def submit(self, batch: Batch) -> Future[list[Result]]:
        """Submit a batch to the workers, and return a future of its results."""

    @abstractmethod
    def died(self, error: BaseException) -> bool:
        """Return whether an exception of a batch means that a worker died.

        The worker may have died during this batch, or during another batch that ran at the same time.
        """

    @abstractmethod
    def restart(self) -> None:
        """Make workers available again after some workers have died."""

    @abstractmethod
    def close(self, *, now: bool = False) -> None:
        """Release the workers.  If ``now`` is true, this happens immediately, even during a batch.  Otherwise the
        workers are released when they are idle.
        """


class Processes(Workers):
    """Workers that are processes on this machine.

    Parameters
    ----------
    count
        Number of processes.  None: one for each processor core that this program may use.
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = count or cores()
        self._checked = False
        self._pool = self._started()

    def _started(self) -> concurrent.futures.ProcessPoolExecutor:
        # Workers are forked from a server process that has loaded the engines.  This server has no threads and no open
        # ledger, so forking it is safe.
        context = fork_server(["routing.sweep.timeouts"])
        # A worker that is killed cannot remove its temporary folder.  So the temporary folders of all workers are in
        # one common folder.
        self._folder = tempfile.mkdtemp(prefix="ibnue-sweep-")
        return concurrent.futures.ProcessPoolExecutor(
            self.count, mp_context=context, initializer=_begin, initargs=(self._folder,)
        )

    def submit(self, batch: Batch) -> Future[list[Result]]:
        """Submit a batch to a process, and return a future of its results.

        Raises
        ------
        BrokenExecutor
            A worker has died.
        """
        return pools.submit(self._pool, run_batch, batch)

    def died(self, error: BaseException) -> bool:
        """Return whether an exception means that a process died, which makes the whole pool unusable."""
        if not isinstance(error, BrokenExecutor):
            return False
        # After the death of a process, a thread of the pool ends all other processes and reads their exit statuses.
        # The system gives each status only once.  If two threads ask for it, one of them gets a wrong status.  So this
        # code first waits until the thread of the pool has ended.
        manager = getattr(self._pool, "_executor_manager_thread", None)
        if manager is not None:
            manager.join(MANAGER_SECONDS)
        exits = [process.exitcode for process in list((self._pool._processes or {}).values())]
        # After the death of one process, the pool ends all other processes by SIGTERM, and some of them exit with
        # status 0.  So a process with any other status than SIGTERM or 0 is the one that died first.
        first = [status for status in exits if status not in (None, 0, -signal.SIGTERM)]
        self.status = first[0] if first else self.status
        return True

    def restart(self) -> None:
        """Replace all processes by new processes, after a process has died.

        Raises
        ------
        EnvironmentProblem
            Processes cannot start.  The message is the first error of such a process.
        """
        self.close(now=True)
        if not self._checked:
            check_start()
            self._checked = True
        self._pool = self._started()

    @property
    def pids(self) -> list[int]:
        """Process ids of the worker processes that are running."""
        return list(self._pool._processes or {})

    def close(self, *, now: bool = False) -> None:
        """End the processes and remove their temporary files."""
        pools.end(self._pool, now=now)
        remove_folder(self._folder)


def _begin(folder: str) -> None:
    """Initialise a worker process.  Its temporary files go into ``folder``, and it ends when its parent ends."""
    os.environ["TMPDIR"], tempfile.tempdir = folder, None
    exit_with_parent(partial(shutil.rmtree, folder, ignore_errors=True))


class Dask(Workers):
    """Workers of a Dask scheduler, on this machine or on other machines.

    Parameters
    ----------
    address
        Address of the scheduler, such as ``tcp://head:8786`` or (with equal meaning) ``dask://head:8786``.

    Raises
    ------
    EnvironmentProblem
        Dask is not installed, the scheduler does not answer, the scheduler has no workers, or its workers have another
        version of ibnue.
    """

    together = False

    def __init__(self, address: str) -> None:
        self._dask = optional("distributed", "dask")
        self._address = address.replace("dask://", "tcp://", 1)
        try:
            self._client: Any = self._dask.Client(self._address, timeout=DASK_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise EnvironmentProblem(
                f"no Dask scheduler answers at {self._address}: {error}", remedy="dask scheduler prints its address"
            ) from None
        try:
            self.count = self._greet()
        except BaseException:
            self._client.close(timeout=DASK_SECONDS)
            raise
        self._executor = self._client.get_executor(pure=False)

    def _greet(self) -> int:
        """Check that the workers have this version of ibnue, and return the number of threads of all workers."""
        try:
            self._client.wait_for_workers(1, timeout=DASK_SECONDS)
            # The functions of ISOLATE must run before the scheduler or a worker imports this package.  So they belong
            # to the module ``__main__``, because Dask sends functions of ``__main__`` with their code.  For a function
            # of this package, Dask would send only the name, and the receiver would have to import the package.
            scope: dict[str, Any] = {"__name__": "__main__"}
            exec(ISOLATE, scope)
            self._client.run_on_scheduler(scope["isolate"])
            self._client.register_plugin(scope["Isolate"]())
            versions = self._client.run(code_version)
        except (TimeoutError, self._dask.TimeoutError):
            raise EnvironmentProblem(
                f"the Dask scheduler at {self._address} has no workers", remedy="dask worker ADDRESS"
            ) from None
        except ImportError as error:
            raise EnvironmentProblem(
                f"the Dask workers at {self._address} have no ibnue: {error}", remedy="install it there"
            ) from None
        other = sorted({version for version in versions.values() if version != code_version()})
        if other:
            raise EnvironmentProblem(
                f"the Dask workers at {self._address} have ibnue {', '.join(other)}, this is {code_version()}",
                remedy="install the same on all",
            )
        return sum(self._client.nthreads().values()) or 1

    def submit(self, batch: Batch) -> Future[list[Result]]:
        """Submit a batch to the scheduler, and return a future of its results.

        If a worker dies, Dask gives the batch to another worker, up to three times.
        """
        future: Future[list[Result]] = self._executor.submit(run_batch, batch)
        return future

    def died(self, error: BaseException) -> bool:
        """Return whether Dask has given up on a batch because its workers died.

        Raises
        ------
        EnvironmentProblem
            Raised if the connection to the scheduler is lost.
        """
        if isinstance(error, CancelledError) or self._client.status not in ("running", "connecting"):
            raise EnvironmentProblem(
                f"the Dask scheduler at {self._address} is gone", remedy="run again to continue"
            ) from None
        return isinstance(error, self._dask.KilledWorker)

    def restart(self) -> None:
        """Do nothing, because the scheduler replaces workers that died, or continues without these workers."""

    def close(self, *, now: bool = False) -> None:
        """Disconnect from the Dask scheduler."""
        with contextlib.suppress(Exception):
            self._executor.shutdown(wait=False)
        with contextlib.suppress(Exception):
            self._client.close(timeout=DASK_SECONDS)


@contextlib.contextmanager
def mpi_ranks() -> Iterator[Any]:
    """Connect the ranks (processes) of an MPI job.  Rank 0 uses all other ranks as workers.

    This context manager gives an executor to rank 0.  On every other rank it runs tasks until rank 0 is done, and then
    gives None.  All ranks run the same command.  Each rank must enter the context before any step that can fail on this
    rank alone.  Otherwise the other ranks would wait forever for this rank.

    Raises
    ------
    EnvironmentProblem
        mpi4py or an MPI library is not installed, or there is only one rank.
    """
    futures = optional("mpi4py.futures", "mpi")
    try:
        mpi = importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise EnvironmentProblem(f"mpi4py finds no MPI: {error}", remedy="install openmpi-bin or mpich") from None
    if mpi.COMM_WORLD.Get_size() < 2:
        raise EnvironmentProblem("there are no MPI ranks to work", remedy="mpiexec -n 5 ibnue sweep ... --executor mpi")
    # With main=False, the other ranks do not import the main module of rank 0.  The ranks do not need this module,
    # because all functions that they run are in modules of this package.
    with futures.MPICommExecutor(mpi.COMM_WORLD, root=0, main=False) as executor:
        yield executor


class Mpi(Workers):
    """Workers that are the other ranks of an MPI job; this process is rank 0.

    Parameters
    ----------
    executor
        Executor from :func:`mpi_ranks`.
    """

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        self.count = executor.num_workers

    def submit(self, batch: Batch) -> Future[list[Result]]:
        """Submit a batch to a rank, and return a future of its results."""
        future: Future[list[Result]] = self._executor.submit(run_batch, batch)
        return future

    def died(self, error: BaseException) -> bool:
        """Return whether an exception means that the other ranks are gone.

        Usually MPI ends the whole job, including this rank, when one rank dies.
        """
        return isinstance(error, BrokenExecutor)

    def restart(self) -> None:
        """Raise EnvironmentProblem, because MPI cannot restart a rank."""
        raise EnvironmentProblem("the MPI workers are gone", remedy="run again to continue")

    def close(self, *, now: bool = False) -> None:
        """Release the other ranks, which then end."""
        self._executor.shutdown(wait=True, cancel_futures=True)


def optional(module: str, extra: str) -> Any:
    """Import a module of a package that is not always installed.  ``pip install 'ibnue[EXTRA]'`` installs the package,
    where EXTRA is the argument ``extra``.

    Raises
    ------
    EnvironmentProblem
        The package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise EnvironmentProblem(f"{module} is not installed", remedy=f"pip install 'ibnue[{extra}]'") from None


def workers(executor: str, count: int | None = None) -> Workers:
    """Start the workers that the option ``--executor`` names: ``processes`` or ``dask://host:port`` (also tcp://,
    tls://).

    ``count`` is the number of processes; None: one for each processor core.

    Raises
    ------
    OptionError
        No executor has this name.
    EnvironmentProblem
        The workers are not available.
    """
    if executor == "processes":
        return Processes(count)
    if executor.partition("://")[0] in ("dask", "tcp", "tls") and executor.partition("://")[2]:
        return Dask(executor)
    raise OptionError(f"{executor!r} is not an executor", remedy="use processes, dask://host:port or mpi")
