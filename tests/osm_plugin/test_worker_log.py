import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from plugin_lab import children, comes_up, gone, logged, worker_of
from waiting import AMPLE, until

from osm_plugin.config import LOG_LEVELS
from osm_plugin.worker import import_engines, load_code, serve
from osm_plugin.worker_log import WorkerLog
from routing.engines import ENGINES

STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d "


def refused(log):
    try:
        raise ValueError("no")
    except ValueError as problem:
        log.refusal(f"refused: {problem}")


@pytest.mark.parametrize("level", LOG_LEVELS)
def test_each_level_has_the_lines_of_those_above_it(capsys, level):
    log = WorkerLog(level)
    log.error("a")
    log.info("b")
    log.debug("c\nd")
    lines = ["error: a", "info: b", "debug: c\\nd"][: LOG_LEVELS.index(level) + 1]
    assert [re.sub(STAMP, "", line, count=1) for line in capsys.readouterr().err.splitlines()] == lines
    refused(log)
    reported = capsys.readouterr().err
    assert re.match(f"{STAMP}error: refused: no\n", reported) and ("Traceback" in reported) == (level == "debug")


CHILD = """
import json, socket, sys
from osm_plugin.worker import serve
from osm_plugin.worker_log import WorkerLog, next_message
link, log = socket.socket(fileno=int(sys.argv[1])), WorkerLog()
while message := next_message(link):
    log.info(message.decode())
    link.send(message)
"""


def test_a_log_that_comes_along_replaces_the_old_one(tmp_path):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    files = [tmp_path / "old", tmp_path / "new"]
    with files[0].open("ab") as old:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(theirs.fileno())], pass_fds=[theirs.fileno()], stderr=old,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
    theirs.close()
    with ours:
        ours.send(b"one")
        assert ours.recv(100) == b"one"
        with files[1].open("ab") as new:
            socket.send_fds(ours, [b"log"], [new.fileno()])
        ours.send(b"two")
        assert ours.recv(100) == b"two"
    assert child.wait() == 0
    assert [re.findall("one|two|log", path.read_text()) for path in files] == [["one"], ["two"]]


@pytest.mark.lab
def test_a_log_that_is_moved_is_opened_again(live, nets):
    with live(nets("ring", "4", cas=1), "ibnue-updn,no_fallback", toml="shadow = 'nue'") as lab:
        log = lab.opensm.log_path.parent / "ibnue-worker.log"
        until(lambda: "routed from scratch" in log.read_text())
        until(lambda: "shadow: " in log.read_text())
        worker = worker_of_module(lab, "worker")
        for number in range(2):  # logrotate moves the log in this manner
            moved = log.with_name(f"ibnue-worker.log.{number}")
            log.rename(moved)
            until(log.exists)
            both_write(lab, log, times=1)
            before = moved.read_text()  # this includes what the shadow engine still wrote about an earlier sweep
            both_write(lab, log, times=2)
            assert moved.read_text() == before
        assert worker_of_module(lab, "worker") == worker
        # The last output of a worker that dies is in the new file.
        os.kill(worker, signal.SIGABRT)
        comes_up(lab, r"the worker was killed by signal 6 \(Extension modules: ")


def both_write(lab, log, *, times):
    for words in ("tables unchanged", "shadow: "):
        until(lambda words=words: lab.opensm.resweep() and log.read_text().count(words) >= times)


def worker_of_module(lab, module):
    mark = f"osm_plugin.{module} import".encode()
    (pid,) = [pid for pid in children(lab.opensm.pid) if mark in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return pid


@pytest.mark.lab
@pytest.mark.parametrize("level", LOG_LEVELS)
def test_levels_differ_in_a_running_worker(live, nets, level):
    toml = f"log_level = '{level}'\nstate_file = false\n"
    with live(nets("ring", "4", cas=1), "ibnue-updn,minhop", toml=f"{toml}[engine]\nvls = 3\n") as lab:
        log = lab.opensm.log_path.parent / "ibnue-worker.log"
        reported = until(lambda: "vls = 3, but OpenSM sets up 1" in (text := log.read_text()) and text)
        assert f"error: ibnue-updn: {live.config}:" in reported
        assert ("Traceback" in reported) == (level == "debug")
        live.configure(toml)
        assert lab.opensm.resweep().engine == "ibnue-updn"
        if level != "error":
            until(lambda: "info: ibnue-updn: fabric " in log.read_text())
        if level == "debug":
            until(lambda: "kB is the peak of memory so far" in log.read_text())
        reported = log.read_text()
        assert ("info: " in reported) == (level != "error") and ("debug: request" in reported) == (level == "debug")


@pytest.mark.lab
def test_a_worker_whose_log_is_full_is_replaced(live, nets):
    # Every write to /dev/full fails, as on a full disk, and every read returns zeros without an end.
    with live(nets("torus", "3x3", cas=1), "ibnue-updn,no_fallback", toml="log_file = '/dev/full'") as lab:
        worker = worker_of(lab)
        os.kill(worker, signal.SIGKILL)
        assert gone(worker)
        assert lab.opensm.resweep().engine == "ibnue-updn"
        (how,) = until(lambda: logged(lab, "the worker (.*); another one is started"))
        assert how == "was killed by signal 9 (perhaps out of memory: see dmesg)"


def test_the_worker_waits_for_descriptors_that_do_not_fit_into_a_set_of_select():
    """OpenSM may have opened more than 1024 files before it starts the worker."""
    ends = (*socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET), *socket.socketpair())
    high = [socket.socket(fileno=fcntl.fcntl(end, fcntl.F_DUPFD, 1100)) for end in (ends[0], ends[2])]
    for end in ends:
        end.close()  # The end of OpenSM is closed too, so the worker returns.
    handler = SimpleNamespace(state=SimpleNamespace(writing=high[1], written=lambda: []))
    serve(high[0], handler, WorkerLog("info"), {})
    for end in high:
        end.close()


def test_modules_that_are_missing_during_an_upgrade_do_not_end_the_worker(monkeypatch):
    def missing(name):
        raise ImportError(name)

    names = ["updn", "auto"]
    monkeypatch.setattr("routing.engines.registry.import_module", missing)
    monkeypatch.setattr(ENGINES, "_loaded", {})
    assert list(import_engines(names)) == list(load_code(names)) == names


def test_a_waiting_worker_imports_all_engines_at_once_and_loads_more_code_after_a_pause():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    modules, code = iter(["updn", "nue"]), iter(["updn"])
    handler = SimpleNamespace(state=SimpleNamespace(writing=None))

    def steps():
        yield from modules
        ours.close()  # OpenSM ends, so the worker returns.

    serve(theirs, handler, WorkerLog("info"), {0.0: steps(), AMPLE: code})
    assert list(modules) == [] and list(code) == ["updn"]
    theirs.close()
