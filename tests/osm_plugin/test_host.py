"""Check the host with real worker processes, but without OpenSM."""

import contextlib
import gc
import itertools
import json
import os
import re
import resource
import signal
import socket
import sys
import tracemalloc
from pathlib import Path

import pytest
from waiting import AMPLE, until

import osm_plugin
from osm_plugin.build_info import protocol
from osm_plugin.file_keeper import _inspect, _put
from osm_plugin.host import Host, WorkerReplaced
from osm_plugin.last_good import ConfigFile
from osm_plugin.worker_process import WorkerProcess
from routing.errors import EnvironmentProblem

KILLED = "was killed by signal 9 (perhaps out of memory: see dmesg)"


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
    assert host.check_worker() == f"the worker {KILLED}; another one is started"
    assert host.check_worker() == ""


@pytest.mark.parametrize("options", ["", "/etc/ibnue.toml"])
def test_options_that_name_no_configuration_are_reported(host, options):
    host._python = "/no/python"  # The report does not depend on a worker.
    with pytest.raises(EnvironmentProblem):
        host.start(options, "stdout")
    wanted = f"event_plugin_options {options}: names no configuration, so the defaults apply"
    assert host.check_worker() == (wanted if options else "")


def test_a_worker_that_is_stopped_for_a_moment_still_computes(host, tmp_path):
    """The program cpulimit stops a process in this manner again and again."""
    host.start("", str(tmp_path / "opensm.log"))
    worker = host._worker
    worker.listen()
    os.kill(worker.process.pid, signal.SIGSTOP)
    until(lambda: ") T " in Path(f"/proc/{worker.process.pid}/stat").read_text())
    assert worker.computes(AMPLE) and not worker.computes(0)


def test_a_worker_that_waits_for_a_processor_computes(host):
    """On a busy machine, a worker gets so little CPU time that two samples in a row may be equal."""
    host._running()
    worker = host._worker

    def is_starved():
        worker.listen()
        used, moved = worker._used, worker._moved
        worker.listen()
        return worker._used == used and worker._moved > moved

    assert until(is_starved)


def test_a_worker_that_starts_slowly_is_not_replaced(host, tmp_path, monkeypatch):
    monkeypatch.setattr("osm_plugin.host.MOST_START_DEADLINES", AMPLE)
    (tmp_path / "ibnue.toml").write_text("start_deadline = 0.05\ndeadline = 0.05\n")
    with pytest.raises(EnvironmentProblem, match="not ready in time"):
        host.start(f"--config {tmp_path}/ibnue.toml", str(tmp_path / "opensm.log"))
    worker = host._worker

    def is_ready():
        with contextlib.suppress(EnvironmentProblem):
            return host.memory()

    assert until(is_ready) == (worker.memory, 1)


@pytest.fixture
def host_of(tmp_path):
    """Starts a host whose worker runs this program."""
    hosts = []

    def start(program):
        (tmp_path / "osm_plugin").mkdir()
        (tmp_path / "osm_plugin" / "__init__.py").touch()
        (tmp_path / "osm_plugin" / "worker.py").write_text(program)
        hosts.append(Host(sys.executable, [str(tmp_path)]))
        return hosts[0]

    yield start
    for host in hosts:
        host.stop()


def test_an_endless_loop_at_the_start_of_a_worker_requests_few_sweeps_and_then_another_worker(host_of, tmp_path):
    (tmp_path / "ibnue.toml").write_text("start_deadline = 1000\ndeadline = 0.05\n")
    host = host_of("while True: sum(range(1000))")
    host._file = ConfigFile(tmp_path / "ibnue.toml")

    def sweep():
        with pytest.raises(EnvironmentProblem, match="not ready in time"):
            host.memory()

    sweep()
    worker = host._worker
    assert not host.awaited()
    worker.started -= 1500
    assert host.awaited()
    sweep()
    assert host._worker is worker and not host.awaited()
    worker.started -= 4000
    host._found_overdue -= 1500
    assert host.awaited()
    sweep()
    assert host._worker is not worker and not host.awaited()


def test_a_worker_that_hangs_without_memory_is_replaced_with_the_cause(host, tmp_path):
    """A thread of Python that gets no memory while it starts leaves its parent waiting for ever."""
    (tmp_path / "ibnue.toml").write_text("deadline = 0.1\n")
    host.start(f"--config {tmp_path}/ibnue.toml", str(tmp_path / "opensm.log"))
    os.kill(host._worker.process.pid, signal.SIGSTOP)
    (tmp_path / "ibnue-worker.log").write_text("MemoryError: \n")
    host.memory()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 45, limits[1]))
        with pytest.raises(WorkerReplaced) as stop:
            host.wait(1, 1.0)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    limited = "OpenSM limits the worker's memory to 33554432 MB: raise LimitAS of systemd or ulimit -v"
    assert str(stop.value) == f"no answer within 0.1 s (MemoryError; {limited}); another worker is started"


@pytest.fixture
def bad_host(monkeypatch, tmp_path):
    """Starts a host whose worker has the fault of this name; the folder ``deadly`` is for the fault "mortal"."""
    monkeypatch.setenv("IBNUE_TEST_REAL", str(Path(osm_plugin.__file__).parent))
    monkeypatch.setenv("IBNUE_TEST_DEADLY", str(tmp_path / "deadly"))
    (tmp_path / "deadly").mkdir()
    bad = str(Path(__file__).with_name("bad_worker"))
    host = Host(sys.executable, [bad, *(path for path in sys.path if path)])

    def start(fault, toml):
        monkeypatch.setenv("IBNUE_TEST_FAULT", fault)
        (tmp_path / "ibnue.toml").write_text(toml)
        host.start(f"--config {tmp_path}/ibnue.toml", str(tmp_path / "opensm.log"))
        return host

    start.host = host
    yield start
    host.stop()


def test_a_worker_that_ended_twice_at_its_start_is_followed_by_one_without_tables(bad_host, tmp_path):
    os.write(bad_host.host._copies[0], b"poison")
    (tmp_path / "state.npz").write_bytes(b"poison")
    with pytest.raises(EnvironmentProblem, match=re.escape(f"the worker {KILLED} while it started")):
        bad_host("poison", f"state_file = 'state.npz'\nstart_deadline = {AMPLE}\ndeadline = {AMPLE}")
    host = bad_host.host
    with pytest.raises(EnvironmentProblem, match=re.escape(f"{KILLED} while it started")):
        host.memory()
    host.memory()
    assert host._worker.hello


@pytest.mark.parametrize(("program", "status"), [("import no_such_module", 1), ("main = lambda setup: 2", 2)])
def test_a_worker_whose_package_cannot_be_loaded_says_nothing_about_the_tables(host_of, program, status):
    """The package is being upgraded while OpenSM runs."""
    host = host_of(program)
    for _ in range(2):
        with pytest.raises(EnvironmentProblem, match=f"ended with status {status}.* while it started"):
            host.memory()
    assert (host._failed[""] >= 2) == (status == 2)


def test_a_sweep_is_requested_when_the_package_can_be_loaded_again(host_of, tmp_path):
    host = host_of("import no_such_module")
    with pytest.raises(EnvironmentProblem, match="while it started"):
        host.memory()

    def checked():
        host._worker._reaper.join()
        assert host.awaited() is None
        host._next_start = 0.0  # The pause between two starts is over.
        return host.check_worker()

    assert ["another one is started" in checked() for _ in range(3)] == [True, False, False]  # reported once
    host._worker._reaper.join()
    greeting = f"socket.socket(fileno=s['socket']).send(json.dumps({{'protocol': '{protocol()}'}}).encode())"
    program = f"import json, socket, time\ndef main(setup):\n s = json.loads(setup)\n {greeting}\n time.sleep(600)"
    (tmp_path / "osm_plugin" / "worker.py").write_text(program)
    checked()
    until(host.awaited)
    host.memory()
    assert host._worker.hello


def test_a_worker_is_started_again_when_its_interpreter_is_back(host, tmp_path):
    host._python, python = str(tmp_path / "python"), host._python
    with pytest.raises(EnvironmentProblem, match="the worker cannot be started"):
        host.memory()
    assert "the worker cannot be started" in host.check_worker()
    host._next_start = 0.0
    # The line is about the status file if OpenSM's folder for it does not exist.
    assert "the worker" not in host.check_worker() and host._worker is None
    host._python, host._next_start = python, 0.0
    host.check_worker()
    until(host.awaited)


def test_workers_that_end_again_and_again_are_started_after_longer_and_longer_pauses(host, monkeypatch):
    now = 1000.0
    monkeypatch.setattr("osm_plugin.host.time.monotonic", lambda: now)
    monkeypatch.setattr(host, "_restart", lambda: starts.append(now))
    host._failed, starts = {"": 0}, []  # An engine needs a worker, but none can be started.
    while now < 1200:
        host.check_worker()
        now += 1
    assert [b - a for a, b in itertools.pairwise(starts)] == [10, 20, 40, 80]


def test_a_worker_is_not_replaced_between_sweeps_while_a_sweep_waits_for_it(host, tmp_path):
    host.start("", str(tmp_path / "opensm.log"))
    host.memory()
    os.kill(host._worker.process.pid, signal.SIGKILL)
    host._worker._reaper.join()
    dead = host._worker
    assert host.check_worker() == "" and host._worker is dead
    with pytest.raises(WorkerReplaced):
        host.send("ibnue-updn", 1)


def test_a_worker_that_fails_after_it_has_read_tables_is_counted(bad_host):
    with pytest.raises(
        EnvironmentProblem, match=r"ended with status 2 \(ZeroDivisionError: by test\) while it started"
    ):
        bad_host("unready", f"start_deadline = {AMPLE}\ndeadline = {AMPLE}")
    assert bad_host.host._worker.crashed


def test_workers_that_end_for_an_engine_are_counted_until_it_has_tables(bad_host, tmp_path):
    host = bad_host("mortal", f"start_deadline = {AMPLE}\ndeadline = {AMPLE}")
    (tmp_path / "deadly" / "ibnue-updn").touch()
    for number in (1, 2):
        host.memory()
        host.send("ibnue-updn", number)
        with pytest.raises(WorkerReplaced):
            host.wait(number, AMPLE)
    assert host._failed["ibnue-updn"] == 2
    host.memory()
    host._answer, host._asked_for = {"ok": True, "note": "by test"}, 3
    host._engine = "policies"
    host.wait(3, AMPLE)
    assert host._failed["ibnue-updn"] == 2  # Port rules need no tables.
    host._answer, host._asked_for, host._engine = {"ok": True, "note": "by test"}, 4, "ibnue-nue"
    host.wait(4, AMPLE)
    assert not host._failed


def test_a_worker_is_counted_if_it_ends_after_its_deadline_but_not_if_it_was_idle(host, tmp_path):
    (tmp_path / "ibnue.toml").write_text(f"start_deadline = {AMPLE}\ndeadline = {AMPLE}\n")
    host.start(f"--config {tmp_path}/ibnue.toml", str(tmp_path / "opensm.log"))
    for asked, count in [(False, None), (True, 1), (False, 1), (True, 2)]:
        host.memory()
        host._engine, worker = "ibnue-updn", host._worker
        if asked:
            host._asked_for, host._answer = 1, None  # The worker still computes, and no caller waits.
        os.kill(worker.process.pid, signal.SIGKILL)
        worker._reaper.join()
        host._until = host._next_start = 0.0  # No sweep waits for the worker, and no other worker was started.
        until(lambda: "killed by signal 9" in host.check_worker())
        assert host._failed.get("ibnue-updn") == count


def test_a_worker_whose_idle_death_the_next_request_finds_is_not_counted(host, tmp_path):
    host.start("", str(tmp_path / "opensm.log"))
    host.memory()
    os.kill(host._worker.process.pid, signal.SIGKILL)
    host._worker._reaper.join()
    with pytest.raises(WorkerReplaced, match=re.escape(f"the worker {KILLED}; another one is started")):
        host.send("ibnue-updn", 1)
    assert host._failed == {"ibnue-updn": 0}  # The engine has failed, but no worker has ended because of its tables.


def test_a_log_file_that_cannot_be_opened_is_reported_once(host, tmp_path):
    config = tmp_path / "ibnue.toml"
    config.write_text("log_file = 'none/worker.log'\n")
    host.start(f"--config {config}", "stdout")
    wanted = (
        f"the worker's log is not written: {tmp_path}/none/worker.log: no such file or directory (check log_file and"
    )
    wanted += " its folder)"
    assert [host.check_worker(), host.check_worker()] == [wanted, ""]
    config.write_text("")
    host.memory()  # The worker has no log file now, because OpenSM logs to its standard output.
    assert host._open_log() is None and host.check_worker() == ""


@pytest.mark.timeout(60)
@pytest.mark.parametrize("has_reader", [False, True])
def test_a_pipe_as_log_file_is_reported_and_opensm_does_not_wait_for_a_reader(host, tmp_path, has_reader):
    config = tmp_path / "ibnue.toml"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK) if has_reader else None
    config.write_text("log_file = 'pipe'\n")
    host.start(f"--config {config}", "stdout")
    why = "is a pipe" if has_reader else "no such device or address"
    assert host.check_worker().startswith(f"the worker's log is not written: {tmp_path}/pipe: {why}")
    assert host._worker.alive
    if reader is not None:
        os.close(reader)


def test_a_log_file_that_becomes_a_folder_is_reported_until_it_can_be_written(host, tmp_path):
    host.start("", str(tmp_path / "opensm.log"))
    log = tmp_path / "ibnue-worker.log"
    log.unlink()
    log.mkdir()
    for _ in range(2):
        host._follow_log()
    why = "is a directory (check log_file and its folder)"
    assert [host.check_worker(), host.check_worker()] == [f"the worker's log is not written: {log}: {why}", ""]
    log.rmdir()
    host._follow_log()
    assert host.check_worker() == f"the worker's log is written again: {log}"
    assert host._worker.has_log(log)
    log.write_bytes(b"the worker's last line\n")
    host._worker._log_start = 1000  # The program logrotate has made the file shorter (copytruncate).
    assert host._worker._log_tail() == "the worker's last line"
    log.write_bytes(b"ValueError: an earlier problem, which the worker survived\n2026-11-29 18:26:54 info: work\n")
    assert host._worker._log_tail() == ""
    for work in (
        "info: shadow: fabric 9d0460d377ab",
        "error: ERR IBN32: OpenSM's engine minhop routes fabric 9d0460d3",
    ):
        log.write_text(f"MemoryError\n2026-11-29 18:26:54 {work}\n")
        assert host._worker._log_tail() == "MemoryError"  # The worker that checks tables still reports work.
    log.write_bytes(b"KeyError: 'name'\n2026-11-29 18:26:54 error: shadow: bug in its worker: KeyError: 'name'\n")
    assert host._worker._log_tail() == ""  # The KeyError is that of the worker that checks tables.
    log.write_bytes(b"2026-11-29 18:26:54 info: " + b"long " * 600 + b"\n")
    assert host._worker._log_tail() == ""  # Lines that report work do not explain the end of a worker.


def test_the_configuration_that_names_port_rules_is_the_one_that_is_sent(host, tmp_path):
    """The administrator removes the port rules while the plugin prepares the request for them."""
    (tmp_path / "ibnue.toml").write_text("policies = 'rules.toml'\n")
    host.start(f"--config {tmp_path}/ibnue.toml", str(tmp_path / "opensm.log"))
    assert host.has_policies()
    (tmp_path / "ibnue.toml").write_text("")
    host.memory()
    host._worker.socket.close()
    host._worker.socket, sent = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with sent:
        host.send("policies", 1)
        assert json.loads(sent.recv(1 << 16))["config"]["policies"] == f"{tmp_path}/rules.toml"
    assert not host.has_policies()


def test_the_end_of_a_problem_is_not_an_error(host):
    host._file.warnings += ["c.toml:1: wrong; the last good configuration stays in use", "c.toml: can be read again"]
    host._warn("the configuration is valid again, and in use")
    lines = ["the configuration is valid again, and in use"]
    lines += ["ERR IBN20: c.toml:1: wrong; the last good configuration stays in use", "c.toml: can be read again"]
    assert [host.check_worker() for _ in range(4)] == [*lines, ""]


def test_a_shadow_worker_that_dies_before_its_message_is_reported_once(host, tmp_path):
    config = tmp_path / "ibnue.toml"
    config.write_text("shadow = 'nue'\n")
    host.start(f"--config {config}", str(tmp_path / "opensm.log"))
    host.shadow("minhop")
    for file in Path(f"/proc/{host._shadow.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # The worker opens and closes files while it starts.
            assert "ibnue-copy" not in file.readlink().name
    os.kill(host._shadow.process.pid, signal.SIGKILL)
    host._shadow._reaper.join()
    host.shadow_send("minhop", False, 1)
    host.check_worker()
    host.shadow("minhop")
    assert host.check_worker() == f"the worker that checks tables {KILLED}; another one is started"


def test_memory_is_no_cause_if_the_plugin_killed_the_worker(host, tmp_path):
    config = tmp_path / "ibnue.toml"
    config.write_text("shadow = 'nue'\n")
    host.start(f"--config {config}", str(tmp_path / "opensm.log"))
    host.shadow("minhop")
    os.kill(host._shadow.process.pid, signal.SIGSTOP)  # The worker lives on after the end of its connection.
    host._shadow.socket.shutdown(socket.SHUT_RDWR)
    host.shadow_send("minhop", False, 1)
    host.shadow("minhop")
    how = "could not be used, so the plugin killed it"
    assert host.check_worker() == f"the worker that checks tables {how}; another one is started"


@pytest.mark.parametrize(
    ("configured", "in_force", "checked"),
    [
        ("ibnue-updn,ibnue-nue", "minhop", True),
        ("ibnue-updn,updn", "updn", True),
        ("ibnue-updn updn", "minhop", True),
        ("ibnue-updn,ibnue-nue", "ibnue-nue", False),
        ("updn,ibnue-nue", "updn", False),
        ("minhop", "minhop", False),
        ("ibnue-updn,no_fallback", "none", False),
    ],
)
def test_tables_of_opensms_engines_are_checked_after_a_fallback(host, configured, in_force, checked):
    host._configured = configured
    assert len(host.shadow(in_force)) == checked
    assert host.shadow("ibnue-updn") == [] and host._shadow is None


def test_a_worker_of_another_protocol_is_dead_once_it_is_refused(host, tmp_path, monkeypatch):
    monkeypatch.setattr("osm_plugin.worker_process.protocol", lambda: "another")
    for _ in range(3):
        with pytest.raises(EnvironmentProblem, match="has protocol"):
            host.start("", str(tmp_path / "opensm.log"))
        assert not host._worker.alive and not host._worker.crashed
        assert host._worker.exit_description() == "could not be used, so the plugin killed it"


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


def test_a_long_file_without_newlines_is_copied_in_pieces(tmp_path):
    with (tmp_path / "zeros").open("wb") as zeros:
        zeros.truncate(8 << 20)
    tracemalloc.start()
    try:
        _, content = _inspect(str(tmp_path / "zeros"), None)
        _put(str(tmp_path / "copy"), content)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    os.close(content)
    assert (tmp_path / "copy").read_bytes() == bytes(8 << 20)
