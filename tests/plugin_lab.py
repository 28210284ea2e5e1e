"""What tests of the plugin in a running OpenSM look at."""

import contextlib
import re
from pathlib import Path

from waiting import AMPLE, until

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


def said(lab, pattern):
    """Every match in OpenSM's log."""
    return re.findall(pattern, lab.opensm.log_path.read_text())


def unhurried(toml):
    """A configuration in which a worker may take its time, unless it says otherwise."""
    limits = [f"{key} = {AMPLE}\n" for key in ("start_deadline", "deadline") if not re.search(rf"^{key}\b", toml, re.M)]
    return "".join(limits) + toml


def comes_up(lab, pattern):
    """Wait for what the worker says when it has thought about it, and OpenSM logs as a sweep begins or ends."""
    return until(lambda: said(lab, pattern) or (lab.opensm.resweep() and said(lab, pattern)))


def expected_lfts(fabric, routing):
    """The form in which the lab reads tables back."""
    return {
        int(guid): {lid: int(port) for lid, port in enumerate(routing.lft[row].tolist()) if port != 255}
        for row, guid in enumerate(fabric.switch_guid.tolist())
    }


def sweep_options(**options):
    """The options that the worker runs an engine with."""
    return EngineOptions(**{"vls": 1, "effort": SWEEP_EFFORT, **options})
