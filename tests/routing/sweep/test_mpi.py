"""Check the MPI executor, with real ranks on this machine."""

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from hostile import hostile, imported, program
from waiting import AMPLE, until

import routing
from routing.errors import EnvironmentProblem
from routing.sweep.executors import mpi_ranks
from routing.sweep.ledger import Ledger

pytest.importorskip("mpi4py")
MPIEXEC = shutil.which("mpiexec")
pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec (install openmpi-bin or mpich)")
RANKS = 3
SWEEP = ["sweep", "torus:3x3", "-e", "updn:effort=0.1", "-e", "nue:effort=0.1", "--links", "all", "--switches", "all"]
MORE = 100
TASKS = 2 * (1 + 18 + 9)


def start(*args, ranks=RANKS, cwd):
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(routing.__file__).parents[1]),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }
    (cwd / "bin").mkdir(exist_ok=True)
    command = [MPIEXEC, "-n", str(ranks), *program(cwd / "bin"), *args]
    return subprocess.Popen(
        command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def ranks_of(folder):
    """Return the process IDs of the ranks that run in a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes().split(b"\0")[1:2] == [os.fsencode(folder / "bin" / "ibnue")]:
                found.append(int(path.parent.name))
    return found


def ledger_when_free(path):
    """Open a ledger.  Rank 0, which locks it, may run a moment longer than mpiexec."""
    until(lambda: is_free(path))
    return Ledger(path)


def is_free(path):
    try:
        Ledger(path).close()
    except EnvironmentProblem:
        return False
    return True


def test_ranks_do_the_work(tmp_path):
    run = start(*SWEEP, "--executor", "mpi", "--ledger", "l.db", cwd=tmp_path)
    reported, wrong = run.communicate()
    assert run.returncode == 0, wrong
    assert f"certified  {TASKS} of {TASKS}" in reported


@pytest.mark.slow  # A rank that waits uses a whole processor: 12 to 18 CPU seconds.
def test_a_rank_that_is_killed_ends_the_job_and_loses_nothing(tmp_path):
    """MPI ends all ranks when one dies.  The ledger then has all finished tasks, and the next run does the others."""
    args = [*SWEEP, "--random", f"{MORE}:10%", "--executor", "mpi", "--ledger", "l.db"]
    run = start(*args, cwd=tmp_path)
    journal = tmp_path / "l.db-wal"
    until(lambda: run.poll() is not None or (journal.exists() and journal.stat().st_size > 20_000))
    os.kill(max(ranks_of(tmp_path)), signal.SIGKILL)
    run.communicate()
    assert run.returncode != 0
    with ledger_when_free(tmp_path / "l.db") as ledger:
        some = ledger.done()
    assert 0 < len(some) < TASKS + 2 * MORE
    again = start(*args, cwd=tmp_path)
    reported, wrong = again.communicate()
    assert again.returncode == 0, wrong
    with Ledger(tmp_path / "l.db") as ledger:
        records = list(ledger.records())
    assert len(records) == TASKS + 2 * MORE
    assert f"{len(some)} were in the ledger" in reported


@pytest.mark.slow  # A rank that waits uses a whole processor: 12 to 18 CPU seconds.
def test_cases_that_take_too_long_end_no_rank(tmp_path):
    spec = tmp_path / "s.toml"
    quick = f"[[block]]\nfabrics = 'torus:3x3'\nlinks = 'all'\ntimeout = {AMPLE}\n"
    spec.write_text(quick + "[[block]]\nfabrics = 'torus:4x4'\nlinks = 2\ntimeout = 1e-3\n")
    args = ["sweep", "--spec", "s.toml", "--executor", "mpi", "--ledger", "l.db"]
    run = start(*args, cwd=tmp_path)
    reported, wrong = run.communicate()
    assert run.returncode == 1, wrong
    assert "certified  19 of 22" in reported
    assert reported.count("took longer than 0.001 s") == 3
    again = start(*args, "--timeout", str(AMPLE), cwd=tmp_path)
    reported, wrong = again.communicate()
    assert (again.returncode, wrong) == (0, "")
    assert "ran        3 cases" in reported
    assert "certified  22 of 22" in reported


def test_ranks_in_a_hostile_folder(tmp_path):
    hostile(tmp_path)
    run = start(*SWEEP, "--timeout", "3000", "--executor", "mpi", cwd=tmp_path)
    reported, wrong = run.communicate()
    assert imported(tmp_path) == []
    assert run.returncode == 0, wrong
    assert f"certified  {TASKS} of {TASKS}" in reported


def test_ranks_end_when_rank_0_refuses(tmp_path):
    run = start("sweep", "nowhere.net", "--executor", "mpi", cwd=tmp_path)
    reported, wrong = run.communicate()
    assert run.returncode == 2 and reported == ""
    assert wrong.count("ibnue: nowhere.net") == 1


def test_without_ranks():
    with pytest.raises(EnvironmentProblem, match="no MPI ranks"), mpi_ranks():
        pass
