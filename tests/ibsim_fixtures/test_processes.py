import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from ibsim_fixtures import processes
from ibsim_fixtures.processes import Child, kill_with_parent, run_to_end, small_files_folder

pytestmark = pytest.mark.skipif(shutil.which("setpriv") is None, reason="no setpriv")


def test_a_tied_program_runs_as_the_child_that_was_started(tmp_path):
    with subprocess.Popen(
        kill_with_parent(["sh", "-c", "echo $$ $PPID; exit 7"]), stdout=subprocess.PIPE, text=True
    ) as process:
        reported, _ = process.communicate()
    ours = subprocess.run(["sh", "-c", "echo $PPID"], capture_output=True, text=True, check=True).stdout
    assert reported.split() == [str(process.pid), ours.strip()]
    assert process.returncode == 7


def test_nothing_runs_whose_parent_has_gone_before_the_kernel_was_reported(tmp_path):
    # The shell between this process and the program ends at once, so the program's parent is not the process that
    # asked.
    between = ["sh", "-c", '"$@"; exit 0', "sh", *kill_with_parent(["touch", tmp_path / "ran"])]
    subprocess.run(between, check=True)
    assert not (tmp_path / "ran").exists()


def test_small_files_are_in_memory_only_where_there_is_room_and_no_other_folder_is_named(monkeypatch, tmp_path):
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(processes, "IN_MEMORY", str(tmp_path))
    monkeypatch.setattr(processes, "SMALL_FILES_ROOM", 1)
    assert small_files_folder() == str(tmp_path)
    monkeypatch.setattr(processes, "SMALL_FILES_ROOM", shutil.disk_usage(tmp_path).total + 1)
    assert small_files_folder() is None
    monkeypatch.setattr(processes, "SMALL_FILES_ROOM", 1)
    monkeypatch.setenv("TMPDIR", "/tmp")
    assert small_files_folder() is None
    monkeypatch.delenv("TMPDIR")
    monkeypatch.setattr(processes, "IN_MEMORY", str(tmp_path / "missing"))
    assert small_files_folder() is None


class Interrupted(Exception):
    """Exception that the signal handler raises."""


@pytest.fixture
def signal_at_birth(monkeypatch):
    """Send a signal after each start of a program, before the parent has its process number.  Return the process
    numbers.
    """
    born = []

    def interrupt(number, frame):
        raise Interrupted

    real = subprocess.Popen._execute_child

    def execute(self, *args, **more):
        real(self, *args, **more)
        born.append(self.pid)
        os.kill(os.getpid(), signal.SIGHUP)

    before = signal.signal(signal.SIGHUP, interrupt)
    monkeypatch.setattr(subprocess.Popen, "_execute_child", execute)
    yield born
    signal.signal(signal.SIGHUP, before)


def test_a_signal_while_a_program_starts_leaves_nothing_of_it(signal_at_birth, tmp_path):
    long = ["sleep", "3600"]
    with pytest.raises(Interrupted):
        Child(long, environment=os.environ, folder=tmp_path)
    with pytest.raises(Interrupted):
        run_to_end(long, environment=os.environ, folder=tmp_path, stdin="", timeout=3600)
    assert len(signal_at_birth) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in signal_at_birth)
