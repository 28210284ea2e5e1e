"""Check the Dask executor, with a real scheduler and real workers on this machine."""

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hostile import hostile, imported
from sweep_runners import HUNG, begun, finish
from waiting import AMPLE, until

import routing
from routing.cli import main
from routing.errors import EnvironmentProblem
from routing.sweep import executors
from routing.sweep.executors import Dask
from routing.sweep.ledger import Ledger
from routing.sweep.run import Run

distributed = pytest.importorskip("distributed")
HERE = Path(__file__).parents[2]


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


@contextlib.contextmanager
def processes(*commands, folder):
    """Start Python programs that can import this package; at the end, terminate them and their children."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(routing.__file__).parents[1]), str(HERE)]),
        # A batch whose worker dies returns at once, so that ibnue handles it.
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
        # Dask measures delays and profiles tasks all the time, which takes most of the CPU time of a small sweep.
        "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
        "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    }
    started = []
    try:
        for command in commands:
            log = (folder / f"{len(started)}.log").open("wb")
            started.append(
                subprocess.Popen(
                    [sys.executable, "-m", *map(str, command)], env=environment, stdout=log, stderr=log, cwd=folder
                )
            )
            log.close()
        yield started
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait()


def scheduler(port):
    return ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard", "--no-jupyter"]


def worker(port, folder, *more, workers=1):
    options = ["--nthreads", 1, "--nworkers", workers, "--no-dashboard", "--local-directory", folder, *more]
    return ["distributed.cli.dask_worker", f"tcp://127.0.0.1:{port}", *options]


def wait_for(folder, process=0, words=b"Scheduler at"):
    until(lambda: words in (folder / f"{process}.log").read_bytes())


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder, port = tmp_path_factory.mktemp("dask"), free_port()
    with processes(scheduler(port), worker(port, folder / "a", workers=2), folder=folder):
        wait_for(folder)
        yield f"dask://127.0.0.1:{port}"


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """Let ibnue wait for answers of Dask as long as a test may take."""
    monkeypatch.setattr(executors, "DASK_SECONDS", AMPLE)


@pytest.fixture
def crew(address):
    workers = Dask(address)
    yield workers
    workers.close()


def test_the_command(address, tmp_path):
    path = tmp_path / "l.db"
    args = ["sweep", "torus:3x3", "-e", "updn", "--links", "all", "--ledger", str(path), "--executor", address]
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 0, result.output
    assert "certified  19 of 19" in result.output
    with Ledger(path) as ledger:
        far = {record.task.id: record.result.tables for record in ledger.records()}
    near = tmp_path / "near.db"
    assert CliRunner().invoke(main, [*args[:-4], "--ledger", str(near)]).exit_code == 0
    with Ledger(near) as ledger:
        assert {record.task.id: record.result.tables for record in ledger.records()} == far


def test_workers_in_a_hostile_folder(plan, packer, tmp_path):
    port = free_port()
    hostile(tmp_path, ["routing"])  # no package "dask" there: "python -m" itself would import it
    with processes(scheduler(port), worker(port, tmp_path / "a"), folder=tmp_path):
        wait_for(tmp_path)
        crew = Dask(f"dask://127.0.0.1:{port}")
        made = plan(links="all")
        with Ledger(None) as ledger:
            finish(ledger, made, crew, packer(made, timeout=AMPLE))
            results = [record.result for record in ledger.records()]
            assert {(result.outcome, result.error) for result in results} == {("certified", None)}
        crew.close()
    assert imported(tmp_path) == []


def test_a_worker_that_dies_loses_nothing(plan, packer, crew, tmp_path):
    made = plan(links="all")
    pack = packer(made, "sweep_runners:dies_once", folder=tmp_path, fatal=made.tasks[7].fault)
    with Ledger(None) as ledger:
        finish(ledger, made, crew, pack)
        outcomes = [record.result.outcome for record in ledger.records()]
    assert outcomes == ["certified"] * len(made.tasks)
    assert (tmp_path / "died").exists()
    assert len(begun(tmp_path)) > len(made.tasks)


def test_a_task_that_kills_its_worker_every_time_is_an_error(plan, packer, crew, tmp_path):
    made = plan(links="all")
    pack = packer(made, "sweep_runners:dies_always", folder=tmp_path, fatal=made.tasks[3].fault)
    with Ledger(None) as ledger:
        finish(ledger, made, crew, pack)
        bad = [record.task for record in ledger.records() if not record.result.certified]
        assert len(ledger.done()) == len(made.tasks)
    assert bad == [made.tasks[3]]


def test_a_task_that_hangs_is_ended(plan, packer, crew, tmp_path):
    made = plan(links="all")
    reported = {"folder": tmp_path, "fatal": made.tasks[3].fault, "lock": "held"}
    with Ledger(None) as ledger:
        finish(ledger, made, crew, packer(made, "sweep_runners:hangs", timeout=HUNG, **reported))
        results = {record.task: record.result.outcome for record in ledger.records()}
    assert results.pop(made.tasks[3]) == "timed out"
    assert list(results.values()) == ["certified"] * (len(made.tasks) - 1)
    assert len(begun(tmp_path)) == len(made.tasks)


def test_a_scheduler_that_dies_leaves_what_was_done(plan, packer, tmp_path):
    made, port = plan(links="all"), free_port()
    pack = packer(made, "sweep_runners:slow", folder=tmp_path)
    alone = worker(port, tmp_path / "w", "--no-nanny")
    with processes(scheduler(port), alone, folder=tmp_path) as (head, _), Ledger(None) as ledger:
        wait_for(tmp_path)
        crew = Dask(f"tcp://127.0.0.1:{port}")
        try:
            with pytest.raises(EnvironmentProblem, match=r"scheduler at .* is gone"):
                Run(ledger, ledger.begin(""), crew, pack, lambda pairs: head.kill()).finish(made.tasks)
        finally:
            crew.close(now=True)
        some = ledger.done()
        assert 0 < len(some) < len(made.tasks)
        near = executors.Processes(1)
        try:
            finish(ledger, made, near, pack)
        finally:
            near.close()
        assert len(ledger.done()) == len(made.tasks)


def test_no_packet_there(monkeypatch):
    monkeypatch.setattr(executors, "DASK_SECONDS", 0.5)
    with pytest.raises(EnvironmentProblem, match="no Dask scheduler answers at tcp://127"):
        Dask(f"dask://127.0.0.1:{free_port()}")


def test_no_workers(monkeypatch, tmp_path):
    port = free_port()
    with processes(scheduler(port), folder=tmp_path):
        wait_for(tmp_path)
        wait = distributed.Client.wait_for_workers
        monkeypatch.setattr(
            distributed.Client, "wait_for_workers", lambda client, count, timeout: wait(client, count, timeout=0.5)
        )
        with pytest.raises(EnvironmentProblem, match="has no workers"):
            Dask(f"dask://127.0.0.1:{port}")
