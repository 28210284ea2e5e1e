"""Check that a benchmark handles an OpenSM that ends at any time while the benchmark watches it."""

import resource
import signal
import subprocess
from types import SimpleNamespace

import pytest

from benchmarks.opensm_tables import _cpu_seconds, _routed
from ibsim_fixtures.processes import LabError


def ended(log, returncode):
    """Return a stand-in for an OpenSM whose process has ended after the first sweep."""
    process = subprocess.Popen(["true"])
    process.wait()
    log.touch()
    sweep = SimpleNamespace(routing_seconds=1.0)
    return SimpleNamespace(
        pid=process.pid, returncode=returncode, log_path=log, wait_for_subnet_up=lambda *, after: sweep
    )


def test_the_end_of_opensm_is_an_error_of_the_lab(tmp_path):
    opensm = ended(tmp_path / "log", returncode=1)
    with pytest.raises(LabError, match="OpenSM has ended"):
        _routed(opensm, None)
    with pytest.raises(LabError, match="OpenSM has ended"):
        _cpu_seconds(opensm.pid)
    with pytest.raises(LabError, match="no tables within 60 CPU seconds"):
        _routed(ended(tmp_path / "log", returncode=-signal.SIGXCPU), 60)


def test_the_limit_of_cpu_seconds_is_lifted_after_the_sweep(tmp_path):
    with subprocess.Popen(["sleep", "inf"]) as process:
        limits = []

        def sweep(*, after):
            limits.append(resource.prlimit(process.pid, resource.RLIMIT_CPU)[0])
            return SimpleNamespace(routing_seconds=2.5)

        opensm = SimpleNamespace(pid=process.pid, returncode=None, log_path=tmp_path, wait_for_subnet_up=sweep)
        assert _routed(opensm, 60) == 2.5
        soft, hard = resource.prlimit(process.pid, resource.RLIMIT_CPU)
        assert limits == [60] and soft == hard
        process.kill()
