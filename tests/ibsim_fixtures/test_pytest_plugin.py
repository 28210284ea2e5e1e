import os
import subprocess
import sys

import pytest
from lab_nets import net_text, ring

pytest_plugins = ["pytester"]

USES = """
def test_lab(lab):
    with_fabric = lab("ring.net")
    assert with_fabric.sweep.engine == "minhop"

def test_both(ibsim_fabric, opensm):
    ibsim = ibsim_fabric("ring.net")
    assert opensm(ibsim, routing_engine="dor").last_sweep.engine == "dor"

def test_fabric_value(lab):
    from routing.topologies import generate
    running = lab(generate("ring", ["5"], cas=2))
    assert len(running.switch_lfts()) == 5

def test_fixture_fabric(lab):
    assert len(lab("torus-3x3").switch_lfts()) == 9
"""


@pytest.fixture
def project(pytester, monkeypatch):
    """Return a project of another developer, whose tests use the fixtures."""
    monkeypatch.delenv("IBNUE_REQUIRE_LAB", raising=False)
    # Labs run in another process, because igraph cannot be imported twice into one process.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    pytester.makeconftest(
        "from importlib.metadata import entry_points\n"
        "if not any(e.name == 'ibnue_lab' for e in entry_points(group='pytest11')):\n"
        "    pytest_plugins = ['ibsim_fixtures.pytest_plugin']\n"
    )
    (pytester.path / "ring.net").write_text(net_text(4, ring(4)))
    return pytester


@pytest.mark.lab
def test_fixtures_start_what_is_asked_for(project):
    project.makepyfile(USES)
    project.runpytest_subprocess().assert_outcomes(passed=4)


@pytest.mark.lab
def test_a_failure_shows_the_end_of_the_log(project):
    project.makepyfile("def test_fails(lab):\n    lab('ring.net')\n    assert 1 == 2\n")
    result = project.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*end of OpenSM's log*", "*SUBNET UP*"])


def test_without_the_programs_tests_are_skipped(project, monkeypatch):
    monkeypatch.setattr("ibsim_fixtures.processes._is_there", lambda name: name != "opensm")
    project.makepyfile(USES)
    result = project.runpytest("-rs")
    result.assert_outcomes(skipped=4)
    result.stdout.fnmatch_lines(["*apt install opensm*"])


def test_require_lab_makes_them_fail(project, monkeypatch):
    monkeypatch.setattr("ibsim_fixtures.processes._is_there", lambda name: name != "opensm")
    project.makepyfile(USES)
    result = project.runpytest("--require-lab")
    result.assert_outcomes(errors=4)
    result.stdout.fnmatch_lines(["*apt install opensm*"])


def test_nothing_heavy_is_imported_with_the_plugin():
    code = (
        "import sys, ibsim_fixtures.pytest_plugin\n"
        "print([name for name in ('numpy', 'igraph', 'networkx', 'routing.fabric') if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.check_output([sys.executable, "-c", code], env=environment, text=True) == "[]\n"
