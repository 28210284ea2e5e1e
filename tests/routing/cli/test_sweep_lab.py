"""Check ``ibnue sweep --lab`` with the installed OpenSM."""

import json

import pytest
from click.testing import CliRunner
from command_runs import run as ibnue
from shared_builds import copied_plugin

from routing.cli import main
from routing.sweep.ledger import Ledger
from routing.sweep.version import code_version

pytestmark = pytest.mark.lab


@pytest.fixture(autouse=True)
def _compiled(tmp_path_factory, monkeypatch):
    """Compile the plugin once, and let the sweeps of these tests copy it.  The sweep of ``test_isolation.py`` compiles
    its own plugin.
    """
    monkeypatch.setattr("routing.cli.sweep_lab.install", copied_plugin(tmp_path_factory))


def run(*args):
    return ibnue("sweep", *args, "--lab", "-j", "2")


def test_faults_under_a_running_opensm(tmp_path):
    args = [
        "ring:4",
        "-e",
        "updn:effort=0",
        "--links",
        1,
        "--switches",
        1,
        "--random",
        "1:2",
        "--ledger",
        tmp_path / "l",
    ]
    result = run(*args, "--json")
    assert result.exit_code == 0, result.output
    reported = json.loads(result.stdout)
    assert (reported["cases"], reported["cases_certified"]) == (4, 4)
    (line,) = reported["summary"]
    assert line["mode"] == "lab"
    assert line["entries_changed"] >= line["entries_broken"] > 0
    assert line["cut_off_max"] == 2  # two of the four links of a ring are lost
    assert json.loads(run(*args, "--json").stdout)["cases_run"] == 0


def test_vls_are_read_back_from_the_running_opensm():
    result = run("torus:3x3", "-e", "nue:vls=2", "--links", 1, "--json")
    assert result.exit_code == 0, result.output
    (line,) = json.loads(result.stdout)["summary"]
    assert (line["cases"], line["outcomes"]["certified"]) == (2, 2)


def test_a_credit_loop_is_named():
    result = run("ring:5", "-e", "minhop")
    assert result.exit_code == 1
    assert "loop: ring-5 minhop (lab): intact: credit loop of 5 channels" in result.stdout


def test_faults_that_ibsim_cannot_simulate_are_errors():
    result = run("ring:3", "--fault", "degrade sw0/2 1x")
    assert result.exit_code == 1
    assert "error: ring-3 auto (lab): degrade sw0/2 - sw2/3 1x" in result.stdout
    assert "ibsim cannot simulate degraded" in result.stdout


def test_the_lab_runs_on_this_machine_only():
    result = run("ring:3", "--executor", "dask://nowhere:1")
    assert result.exit_code == 2
    assert "on this machine" in result.stderr


def test_live_cases_are_of_more_code(tmp_path):
    spec, path = tmp_path / "s.toml", tmp_path / "l.db"
    spec.write_text('[[block]]\nfabrics = ["ring:3"]\nmodes = ["fresh", "lab"]\n')
    result = CliRunner().invoke(main, ["sweep", "--spec", str(spec), "--ledger", str(path)])
    assert result.exit_code == 0, result.output
    assert "2 cases" in result.stdout
    assert "versions" not in result.stdout
    with Ledger(path) as ledger:
        found = {record.task.mode: record.version for record in ledger.records()}
    assert found == {"fresh": code_version(), "lab": code_version(live=True)}
