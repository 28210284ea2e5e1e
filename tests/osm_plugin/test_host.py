"""The host's view of its worker, in real processes and without OpenSM."""

import gc
import os
import signal
import sys
from pathlib import Path

import pytest
from waiting import AMPLE, until

from osm_plugin.file_keeper import _inspect
from osm_plugin.host import Host
from osm_plugin.worker_process import WorkerProcess
from routing.errors import EnvironmentProblem


def open_files():
    gc.collect()  # Sockets of earlier tests may still be open.
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def host():
    host = Host(sys.executable, [path for path in sys.path if path])
    yield host
    host.stop()


def test_a_worker_that_is_found_dead_when_it_is_needed_is_reported(host, tmp_path):
    host.start("", str(tmp_path / "opensm.log"))
    dead = host._worker
    os.kill(dead.process.pid, signal.SIGKILL)
    dead._reaper.join()
    host.memory()
    assert host._worker is not dead and host._worker.alive
    assert host.check_worker() == "the worker was killed by signal 9; another one is started"
    assert host.check_worker() == ""


def test_a_worker_that_is_stopped_for_a_moment_still_computes(host, tmp_path):
    """As cpulimit does, which stops a process again and again."""
    host.start("", str(tmp_path / "opensm.log"))
    worker = host._worker
    worker.listen()
    os.kill(worker.process.pid, signal.SIGSTOP)
    until(lambda: ") T " in Path(f"/proc/{worker.process.pid}/stat").read_text())
    assert worker.computes(AMPLE) and not worker.computes(0)


def test_a_log_file_that_cannot_be_opened_is_reported_once(host, tmp_path):
    config = tmp_path / "ibnue.toml"
    config.write_text("log_file = 'none/worker.log'\n")
    host.start(f"--config {config}", str(tmp_path / "opensm.log"))
    wanted = f"the worker's log is not written: {tmp_path}/none/worker.log: no such file or directory"
    assert [host.check_worker(), host.check_worker()] == [wanted, ""]


def test_a_shadow_worker_that_dies_before_its_message_is_reported_once(host, tmp_path):
    config = tmp_path / "ibnue.toml"
    config.write_text("shadow = 'nue'\n")
    host.start(f"--config {config}", str(tmp_path / "opensm.log"))
    host.shadow("minhop")
    os.kill(host._shadow.process.pid, signal.SIGKILL)
    host._shadow._reaper.join()
    host.shadow_send("minhop", False, 1)
    host.check_worker()
    host.shadow("minhop")
    assert host.check_worker() == "the shadow engine's worker was killed by signal 9; another one is started"


def test_a_worker_of_another_protocol_is_dead_once_it_is_refused(host, tmp_path, monkeypatch):
    monkeypatch.setattr("osm_plugin.worker_process.protocol", lambda: "another")
    for _ in range(3):
        with pytest.raises(EnvironmentProblem, match="has protocol"):
            host.start("", str(tmp_path / "opensm.log"))
        assert not host._worker.alive


def test_a_worker_of_a_user_who_is_not_there_leaves_no_file_open():
    before = open_files()
    for _ in range(3):
        with pytest.raises(EnvironmentProblem, match="no-such-user"):
            WorkerProcess(sys.executable, [], {}, None, reports=0, user="no-such-user")
    assert open_files() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run the worker as another user")
def test_a_user_who_may_not_run_python_is_named(tmp_path):
    program = tmp_path / "python"
    program.write_text("")
    program.chmod(0o700)
    with pytest.raises(EnvironmentProblem, match=r"python: Permission denied \(worker_user is 'nobody'\)"):
        WorkerProcess(str(program), [], {}, None, reports=0, user="nobody")


def test_a_state_file_that_cannot_be_read_leaves_no_file_open(tmp_path):
    before = open_files()
    for _ in range(3):
        with pytest.raises(IsADirectoryError):
            _inspect(str(tmp_path), None)
    assert open_files() == before
