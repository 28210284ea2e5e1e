"""Helpers for tests of the plugin in a running OpenSM: its worker process, its log, and the tables in the switches."""

import contextlib
import os
import re
import signal
from pathlib import Path

from waiting import AMPLE, until

from osm_plugin.options import SWEEP_EFFORT
from routing.engines.base import EngineOptions


def children(pid):
    """Return the numbers of the child processes of process ``pid``, including zombies."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # A thread may end while its list of children is read.
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def executes_worker(pid, module="worker"):
    """Return whether process ``pid`` executes the worker's Python program, and not OpenSM's before ``exec``.

    ``module`` is "shadow" for the worker that checks the tables in force in shadow mode or after a fallback.
    """
    with contextlib.suppress(OSError):  # The process may have ended.
        return f"osm_plugin.{module} import".encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def workers_of(lab):
    """Return the process numbers of OpenSM's children, without the worker that checks the tables in force."""
    return [pid for pid in children(lab.opensm.pid) if not executes_worker(pid, "shadow")]


def worker_of(lab):
    """Return the process number of the plugin's worker, of which OpenSM must have only one."""
    (pid,) = workers_of(lab)
    return pid


def gone(pid):
    """Wait until a process has ended and its parent has collected its exit status."""
    return until(lambda: not Path(f"/proc/{pid}").exists())


def requests_to(worker):
    """Return the first bytes of the memory through which OpenSM asks a worker: they differ for each request."""
    found = {}
    for file in Path(f"/proc/{worker}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # The worker has closed a file, such as a module that it loads.
            if "memfd:ibnue " in str(file.readlink()):
                found[file.name] = file.open("rb").read(4096)
    return found


def stopped_between_sweeps(lab):
    """Stop the worker, which must be ready, by a signal while no sweep is under way.

    Returns
    -------
    worker : int
        Process number of the worker.
    requests : dict[str, bytes]
        What :func:`requests_to` returns before the next sweep.
    """

    def stop():
        worker = worker_of(lab)
        os.kill(worker, signal.SIGSTOP)
        requests, log = requests_to(worker), lab.opensm.log_path.read_text()
        if log.rindex("SUBNET UP") > log.rindex("INITIATING HEAVY SWEEP"):
            return worker, requests
        os.kill(worker, signal.SIGCONT)  # The sweep needs the worker.
        return None

    return until(stop)


def sweep_with_stopped_worker(lab, *cable):
    """Stop the worker by a signal, begin a sweep, and return when OpenSM has written the request to the worker.

    If a cable is named, it is pulled before the sweep.  OpenSM replaces a worker that ends before the request.  So a
    test may end the worker only after the request.

    Returns
    -------
    position
        Position in OpenSM's log at which the sweep begins.
    worker : int
        Process number of the worker.
    """
    worker, requests = stopped_between_sweeps(lab)
    position = lab.opensm.mark()
    if cable:
        lab.ibsim.unlink(*cable)
    lab.opensm.signal(signal.SIGHUP)
    until(lambda: requests_to(worker) != requests)
    return position, worker


def logged(lab, pattern):
    """Return all matches of a pattern in OpenSM's log."""
    return re.findall(pattern, lab.opensm.log_path.read_text())


def opensm_agrees(lab, file, good, bad, refused):
    """Check that OpenSM logs the pattern ``refused`` for each bad text of a file, and for no good text.

    ``good`` has texts by name, and ``bad`` has tuples that begin with a text.
    """
    for name, text in good.items():
        file.write_text(text)
        lab.opensm.resweep()
        assert not logged(lab, refused), name
    for text, *_ in bad.values():
        before = len(logged(lab, refused))
        file.write_text(text, newline="")
        lab.opensm.signal(signal.SIGHUP)
        until(lambda before=before: len(logged(lab, refused)) > before)


def ample_timeouts(toml):
    """Return a configuration of the plugin with deadlines that never expire and without rebalancing.

    Values that ``toml`` sets take precedence.
    """
    usual = {"start_deadline": AMPLE, "deadline": AMPLE, "rebalance": 0}
    reported = [f"{key} = {value}\n" for key, value in usual.items() if not re.search(rf"^{key}\b", toml, re.M)]
    return "".join(reported) + toml


def comes_up(lab, pattern):
    """Wait until a pattern occurs in OpenSM's log, and return its matches.

    OpenSM logs remarks of the worker when a sweep begins or ends, so sweeps are requested until the pattern occurs.
    """
    return until(lambda: logged(lab, pattern) or (lab.opensm.resweep() and logged(lab, pattern)))


def expected_lfts(fabric, routing):
    """Return the forwarding tables in the form in which the lab reads them from the switches: port by GUID and LID."""
    return {
        int(guid): {lid: int(port) for lid, port in enumerate(routing.lft[row].tolist()) if port != 255}
        for row, guid in enumerate(fabric.switch_guid.tolist())
    }


def sweep_options(**options):
    """Return the options with which the worker runs an engine during a sweep."""
    return EngineOptions(**{"vls": 1, "effort": SWEEP_EFFORT, **options})
