"""Task runners for tests of the sweep: what a worker does besides, such as die or hang, and what became of it."""

import ctypes
import importlib
import os
import signal
import tempfile
import time
from pathlib import Path

from waiting import until

from routing.sweep.results import Result
from routing.sweep.run import Run
from routing.sweep.work import offline

HUNG = 5.0
"""Seconds that a task which hangs is given; it does so at once."""


def finish(ledger, plan, crew, pack, watch=lambda pairs: None):
    """Do what the ledger does not have."""
    done = ledger.done()
    Run(ledger, ledger.begin(""), crew, pack, watch).finish([task for task in plan.tasks if task.id not in done])


def begun(folder):
    """Ids of the tasks that were begun, each as often as it was."""
    return (folder / "begun").read_text().split()


def _mark(settings, task):
    """Leave a trace of each time that a task is begun."""
    with (Path(settings["folder"]) / "begun").open("a") as trace:
        trace.write(f"{task.id}\n")


def traced(fabric, tasks, settings):
    for task in tasks:
        _mark(settings, task)
    return offline(fabric, tasks, settings)


def dies_once(fabric, tasks, settings):
    """The worker is killed over one certain task, the first time."""
    for task in tasks:
        _mark(settings, task)
        once = Path(settings["folder"]) / "died"
        if task.fault == settings["fatal"] and not once.exists():
            once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return offline(fabric, tasks, settings)


def dies_always(fabric, tasks, settings):
    for task in tasks:
        _mark(settings, task)
        if task.fault == settings["fatal"]:
            os.kill(os.getpid(), signal.SIGKILL)
    return offline(fabric, tasks, settings)


def crashes(fabric, tasks, settings):
    """As a kernel does that writes where it must not."""
    for task in tasks:
        if task.fault == settings["fatal"]:
            os.kill(os.getpid(), signal.SIGSEGV)
    return offline(fabric, tasks, settings)


def lacks_a_module(fabric, tasks, settings):
    return importlib.import_module("nowhere")


def dies(fabric, tasks, settings):
    os.kill(os.getpid(), signal.SIGKILL)


def slow(fabric, tasks, settings):
    """Takes long enough for somebody to come and kill what hands out the work."""
    results = []
    for task in tasks:
        _mark(settings, task)
        time.sleep(0.05)
        results.append(Result(task.id, "certified"))
    return results


def victim(folder):
    """The process that waits to be killed, once there is one."""
    return int(until(lambda: (folder / "victim").exists() and (folder / "victim").read_text()))


def waits_for_death(fabric, tasks, settings):
    """The first worker that gets here says which it is, and goes no further."""
    for task in tasks:
        _mark(settings, task)
        try:
            with (Path(settings["folder"]) / "victim").open("x") as reported:
                reported.write(str(os.getpid()))
        except FileExistsError:
            continue
        signal.pause()
    return offline(fabric, tasks, settings)


def raises(fabric, tasks, settings):
    raise ValueError("two\nlines")


def hangs(fabric, tasks, settings):
    """One certain task never comes back from C, with Python's lock or without."""
    for task in tasks:
        _mark(settings, task)
        if task.fault == settings["fatal"]:
            (Path(settings["folder"]) / "left").write_text(tempfile.mkdtemp())
            c = ctypes.PyDLL(None) if settings["lock"] == "held" else ctypes.CDLL(None)
            c.pause()
    return offline(fabric, tasks, settings)


def which(fabric, tasks, settings):
    """Say in which process and folder a task is done."""
    return [Result(task.id, "certified", error=f"{os.getpid()} {tempfile.gettempdir()}") for task in tasks]
