import shutil
import subprocess

import pytest

from ibsim_fixtures.processes import tied

pytestmark = pytest.mark.skipif(shutil.which("setpriv") is None, reason="no setpriv")


def test_a_tied_program_runs_as_the_child_that_was_started(tmp_path):
    with subprocess.Popen(tied(["sh", "-c", "echo $$ $PPID; exit 7"]), stdout=subprocess.PIPE, text=True) as process:
        told, _ = process.communicate()
    ours = subprocess.run(["sh", "-c", "echo $PPID"], capture_output=True, text=True, check=True).stdout
    assert told.split() == [str(process.pid), ours.strip()]
    assert process.returncode == 7


def test_nothing_runs_whose_parent_has_gone_before_the_kernel_was_told(tmp_path):
    # A parent that has gone is another than the one that asked, and so is a shell between the two.
    between = ["sh", "-c", '"$@"; exit 0', "sh", *tied(["touch", tmp_path / "ran"])]
    subprocess.run(between, check=True)
    assert not (tmp_path / "ran").exists()
