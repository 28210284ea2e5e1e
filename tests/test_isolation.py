"""Neither the ``ibnue`` command nor a process that it starts imports a file of the working directory."""

import subprocess
import sys

import pytest
from hostile import ROOT, environment, hostile, imported, program

from ibsim_fixtures.processes import missing_packages
from routing.isolation import import_path


@pytest.fixture
def run(tmp_path):
    """Return a function that runs the installed command in a folder with packages that must not be imported.

    The function returns exit status, standard output and standard error.
    """
    (tmp_path / "bin").mkdir()
    (tmp_path / "here").mkdir()
    command, here = program(tmp_path / "bin"), hostile(tmp_path / "here")

    def run_(*arguments, command=command):
        done = subprocess.run(
            [*command, *map(str, arguments)], cwd=here, env=environment(), capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert imported(here) == []
        return done.returncode, done.stdout, done.stderr

    return run_


@pytest.mark.parametrize("more", [["-j", "2"], ["-j", "2", "--timeout", "3000"]], ids=["processes", "beside"])
def test_workers_of_a_sweep(run, more):
    status, out, err = run("sweep", "ring:4", "-e", "updn", "--links", "all", *more)
    assert (status, err) == (0, "")
    assert "certified  5 of 5" in out


def test_the_command_and_its_forks(run):
    assert run("whatif", "ring:4", "-j", "2")[::2] == (0, "")
    assert run("route", "ring:4")[::2] == (0, "")


@pytest.mark.lab
@pytest.mark.skipif(bool(missing_packages()), reason=f"apt install {' '.join(missing_packages())}")
@pytest.mark.parametrize(
    "words",
    [
        ["sweep", "ring:4", "-e", "updn", "--lab", "-j", "1"],
        pytest.param(["lab", "ring:4", "--do", "show"], marks=pytest.mark.slow),
        pytest.param(["lab", "ring:4", "--soak", "1"], marks=pytest.mark.slow),
    ],
)
def test_processes_of_the_lab(run, words):
    status, _, err = run(*words)
    assert (status, err) == (0, "")


def test_benchmarks(run):
    # The option "-P" of Python has this effect, but Python 3.10 does not have it.
    first = f"import sys; sys.path[0] = {str(ROOT)!r}; import benchmarks.__main__ as program; "
    only = "program.BENCHMARKS = {'published_fabrics': program.Benchmark('nue.md')}; "
    code = first + only + "sys.exit(program.run_all(['published_fabrics'])['published_fabrics'].exit_status)"
    status, out, err = run(command=[sys.executable, "-c", code])
    assert (status, out.strip(), err) == (0, "== published_fabrics", "")


def test_the_import_path(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    usual = [str(ROOT), "/usr/lib/python"]
    for first in ("", ".", "x", str(tmp_path)):
        monkeypatch.setattr(sys, "path", [first, *usual])
        assert import_path() == usual
    # The working directory stays on the path if PYTHONPATH names it.
    monkeypatch.setattr(sys, "path", ["/usr/bin", str(tmp_path), *usual])
    assert import_path() == sys.path
    monkeypatch.setattr(sys, "path", ["", "/usr/lib/python"])  # Sources that are not installed are put on the path.
    assert import_path() == ["/usr/lib/python", str(ROOT)]
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "path", usual)
    assert import_path() == usual


def test_a_working_directory_that_is_gone(monkeypatch, tmp_path):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setattr(sys, "path", ["/usr/bin", str(ROOT)])
    assert import_path() == sys.path
