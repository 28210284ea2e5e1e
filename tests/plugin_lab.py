"""What tests of the plugin in a running OpenSM look at."""

import contextlib
import os
import re
import signal
from pathlib import Path

from waiting import AMPLE, until

from ibsim_fixtures.opensm_log import EventKind
from osm_plugin.options import SWEEP_EFFORT
from routing.engines.base import EngineOptions


def children(pid):
    """Processes whose parent is ``pid``, zombies too."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # threads come and go
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def worker_of(lab):
    """Process number of the one worker."""
    (pid,) = children(lab.opensm.pid)
    return pid


def gone(pid):
    """Wait for the end of a process (and for whoever has to collect it)."""
    return until(lambda: not Path(f"/proc/{pid}").exists())


def sweep_with_stopped_worker(lab, *cable):
    """Begin a sweep whose worker does not answer; the place in the log, once OpenSM waits for it, and the worker.

    The fabric is as it was, unless a cable is named that is to be pulled.
    """
    worker, position = worker_of(lab), lab.opensm.mark()
    os.kill(worker, signal.SIGSTOP)
    if cable:
        lab.ibsim.unlink(*cable)
    lab.opensm.signal(signal.SIGHUP)
    lab.opensm.wait_for(
        lambda events: any(event.kind is EventKind.ROUTING for event in events), what="routing", after=position
    )
    return position, worker


def logged(lab, pattern):
    """Every match in OpenSM's log."""
    return re.findall(pattern, lab.opensm.log_path.read_text())


def ample_timeouts(toml):
    """A configuration in which a worker may take its time, and asks for no sweep, unless it says otherwise."""
    usual = {"start_deadline": AMPLE, "deadline": AMPLE, "rebalance": 0}
    reported = [f"{key} = {value}\n" for key, value in usual.items() if not re.search(rf"^{key}\b", toml, re.M)]
    return "".join(reported) + toml


def comes_up(lab, pattern):
    """Wait for what the worker says when it has thought about it, and OpenSM logs as a sweep begins or ends."""
    return until(lambda: logged(lab, pattern) or (lab.opensm.resweep() and logged(lab, pattern)))


def expected_lfts(fabric, routing):
    """The form in which the lab reads tables back."""
    return {
        int(guid): {lid: int(port) for lid, port in enumerate(routing.lft[row].tolist()) if port != 255}
        for row, guid in enumerate(fabric.switch_guid.tolist())
    }


def sweep_options(**options):
    """The options that the worker runs an engine with."""
    return EngineOptions(**{"vls": 1, "effort": SWEEP_EFFORT, **options})
