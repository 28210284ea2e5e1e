"""Task runners for tests of a sweep, whose workers crash, hang or report what they do."""

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
"""Time limit in seconds of a task that hangs.  The task hangs at once, so that the limit need not be long."""


def finish(ledger, plan, crew, pack, watch=lambda pairs: None):
    """Run all tasks of a plan that have no result in the ledger."""
    done = ledger.done()
    Run(ledger, ledger.begin(""), crew, pack, watch).finish([task for task in plan.tasks if task.id not in done])


def begun(folder):
    """Return the ids of all tasks that were started, once for each start."""
    return (folder / "begun").read_text().split()


def _mark(settings, task):
    """Append the id of a task to the file that records each start of a task."""
    with (Path(settings["folder"]) / "begun").open("a") as trace:
        trace.write(f"{task.id}\n")


def traced(fabric, tasks, settings):
    for task in tasks:
        _mark(settings, task)
    return offline(fabric, tasks, settings)


def dies_once(fabric, tasks, settings):
    """Kill the worker at the first start of the task with the fault ``settings["fatal"]``; run all other tasks."""
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
    """End the worker by SIGSEGV at one task, as a kernel with an invalid memory access does."""
    for task in tasks:
        if task.fault == settings["fatal"]:
            os.kill(os.getpid(), signal.SIGSEGV)
    return offline(fabric, tasks, settings)


def lacks_a_module(fabric, tasks, settings):
    return importlib.import_module("nowhere")


def dies(fabric, tasks, settings):
    os.kill(os.getpid(), signal.SIGKILL)


def slow(fabric, tasks, settings):
    """Take long enough for each task that a test can kill the process that distributes the tasks."""
    results = []
    for task in tasks:
        _mark(settings, task)
        time.sleep(0.05)
        results.append(Result(task.id, "certified"))
    return results


def victim(folder):
    """Wait until a worker has written its process number, and return the number."""
    return int(until(lambda: (folder / "victim").exists() and (folder / "victim").read_text()))


def waits_for_death(fabric, tasks, settings):
    """Let the first worker write its process number and wait for a signal, while the other workers run their tasks."""
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
    """Hang in a C function at one task, with or without Python's global lock."""
    for task in tasks:
        _mark(settings, task)
        if task.fault == settings["fatal"]:
            (Path(settings["folder"]) / "left").write_text(tempfile.mkdtemp())
            c = ctypes.PyDLL(None) if settings["lock"] == "held" else ctypes.CDLL(None)
            c.pause()
    return offline(fabric, tasks, settings)


def which(fabric, tasks, settings):
    """Return the process number and the temporary folder of the worker as the error text of each result."""
    return [Result(task.id, "certified", error=f"{os.getpid()} {tempfile.gettempdir()}") for task in tasks]
