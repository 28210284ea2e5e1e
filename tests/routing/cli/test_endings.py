"""Check commands that a signal ends while OpenSM and ibsim run: no process and no file is left."""

import contextlib
import os
import signal
from pathlib import Path

import pytest
from campaigns import some_of
from waiting import until

from ibsim_fixtures.processes import missing_packages
from routing.cli import command
from routing.cli.command import Complaint, Terminated, explain, install_signal_handlers

COMMANDS = {
    "lab": ["lab", "torus:4x4", *["--do", "show"] * 1000],
    "soak": ["lab", "torus:4x4", "--soak", "1h"],
    "sweep": ["sweep", "torus:4x4", "-e", "updn", "--links", "all", "--lab", "-j", "2"],
}
OTHERS = [("lab", signal.SIGTERM), ("lab", signal.SIGHUP), ("soak", signal.SIGTERM), ("sweep", signal.SIGINT)]
"""Cases for the campaign only.  Each command and each signal is also in another case."""


def test_a_signal_has_its_status_and_its_name():
    assert explain(Terminated(signal.SIGTERM)) == (Complaint("ended by SIGTERM"), 143)


def test_an_error_that_follows_an_interrupt_is_reported_as_the_interrupt():
    """An example is a file that cannot be closed, because the interrupt came while the file was written."""
    try:
        try:
            raise KeyboardInterrupt
        finally:
            raise ValueError("cannot be closed")
    except ValueError as error:
        assert explain(error) == (Complaint("interrupted"), 130)
    assert explain(ValueError("of its own")) is None


def test_a_second_signal_does_not_interrupt_the_clean_up(monkeypatch):
    monkeypatch.setattr(command, "TERMINATION_SIGNALS", (signal.SIGUSR1, signal.SIGUSR2))
    before = [signal.getsignal(number) for number in command.TERMINATION_SIGNALS]
    try:
        install_signal_handlers()
        with pytest.raises(Terminated, match="SIGUSR1"):
            signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGUSR2)
    finally:
        for number, handler in zip(command.TERMINATION_SIGNALS, before, strict=True):
            signal.signal(number, handler)


def test_a_signal_that_is_ignored_stays_so(monkeypatch):
    monkeypatch.setattr(command, "TERMINATION_SIGNALS", (signal.SIGUSR1,))
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        install_signal_handlers()
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


def programs(folder):
    """Return the process numbers of programs that run in a folder (OpenSM, its worker, ibsim)."""

    def belongs(path):
        try:
            return os.fsencode(folder) in path.read_bytes()
        except OSError:  # the process has ended
            return False

    return [int(place.parent.name) for place in Path("/proc").glob("[0-9]*/environ") if belongs(place)]


def running(folder):
    """Return whether an OpenSM in a folder or below it has reached SUBNET UP."""
    with contextlib.suppress(OSError):  # a log may be removed, because one lab follows another
        return any("SUBNET UP" in log.read_text(errors="replace") for log in folder.rglob("opensm.log"))
    return False


@pytest.mark.lab
@pytest.mark.skipif(bool(missing_packages()), reason=f"apt install {' '.join(missing_packages())}")
@pytest.mark.parametrize(
    ("what", "number"),
    [
        ("lab", signal.SIGINT),
        *some_of([("soak", signal.SIGHUP), ("sweep", signal.SIGTERM), *OTHERS], [("soak", signal.SIGHUP)]),
    ],
)
def test_nothing_is_left_of_a_lab(python, tmp_path, what, number):
    process = python("-m", "routing.cli", *COMMANDS[what], TMPDIR=str(tmp_path))
    try:
        until(lambda: process.poll() is not None or running(tmp_path))
        assert process.poll() is None, process.communicate()
        assert len(programs(tmp_path)) > 2
        process.send_signal(number)
        out, err = process.communicate()
    finally:
        process.kill()
    assert list(tmp_path.iterdir()) == []
    until(lambda: not programs(tmp_path))
    if what == "soak" and "events" in out:  # a soak that has begun prints its results so far and ends with status 0
        assert process.returncode == 0
    else:
        assert process.returncode == 128 + number
        word = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
        assert err.strip().partition(" (")[0] == f"ibnue: {word}"
