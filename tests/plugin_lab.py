"""What tests of the plugin in a running OpenSM look at."""

import re
from pathlib import Path

from ibsim_fixtures.processes import poll
from osm_plugin.options import SWEEP_EFFORT
from routing.engines.base import EngineOptions


def children(pid):
    """Processes whose parent is ``pid``, zombies too."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return found


def worker_of(lab):
    """Process number of the one worker."""
    (pid,) = children(lab.opensm.pid)
    return pid


def gone(pid):
    """Whether the process has ended (and was waited for)."""
    return poll(lambda: not Path(f"/proc/{pid}").exists(), 10.0)


def said(lab, pattern):
    """Every match in OpenSM's log."""
    return re.findall(pattern, lab.opensm.log_path.read_text())


def expected_lfts(fabric, routing):
    """The form in which the lab reads tables back."""
    return {
        int(guid): {lid: int(port) for lid, port in enumerate(routing.lft[row].tolist()) if port != 255}
        for row, guid in enumerate(fabric.switch_guid.tolist())
    }


def sweep_options(**options):
    """The options that the worker runs an engine with."""
    return EngineOptions(**{"vls": 1, "effort": SWEEP_EFFORT, **options})
