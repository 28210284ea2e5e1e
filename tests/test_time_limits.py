"""Every test ends: at its time limit, and at twice its time limit if Python cannot end the test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
IN_PYTHON = "from waiting import until\ndef test_never():\n    until(lambda: 'the state' == 'never')\n"
IN_A_KERNEL = """
import signal
import threading

def test_never():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    threading.Event().wait()
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [(IN_PYTHON, "until(lambda: 'the state' == 'never')"), (IN_A_KERNEL, "in test_never")],
    ids=["python", "kernel"],
)
def test_a_test_that_waits_for_ever_ends_and_names_the_line(tmp_path, text, expected):
    (tmp_path / "test_never.py").write_text(text)
    settings = ("-c", ROOT / "pyproject.toml", "--rootdir", tmp_path, "-p", "conftest", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *settings, "--timeout", "1", tmp_path / "test_never.py"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Timeout" in done.stdout + done.stderr
    assert expected in done.stdout + done.stderr
