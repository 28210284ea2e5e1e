import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from in_one_test import cases_in_one_test

import routing
from routing import __version__
from routing.cli import main
from routing.cli.command import COMMANDS, explain
from routing.errors import BrokenPromise, EnvironmentProblem, InputError, NotEnoughVLs


def test_help_lists_every_command():
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    for name, line in COMMANDS.items():
        assert name in result.output
        assert line in result.output


@cases_in_one_test("name", COMMANDS)
def test_every_command_has_help(name):
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: ibnue {name}")


def test_version():
    assert CliRunner().invoke(main, ["--version"]).output == f"ibnue, version {__version__}\n"


@pytest.mark.parametrize("words", [("--help",), ("route", "--help")])
def test_help_loads_no_library(python, words):
    """Help must not wait until numpy and igraph are loaded."""
    code = "import sys; from routing.cli import main; main(sys.argv[1:], standalone_mode=False); print(*sys.modules)"
    modules = python("-c", code, *words).communicate()[0].split()
    assert "click" in modules
    assert {"numpy", "igraph", "rich", "networkx"}.isdisjoint(modules)


def test_routing_loads_no_networkx(python):
    """Loading networkx takes a third of the time that the command needs for a small fabric."""
    code = "import sys; from routing.cli import main; main(sys.argv[1:], standalone_mode=False); print(*sys.modules)"
    modules = python("-c", code, "route", "ring:4").communicate()[0].split()
    assert "igraph" in modules
    assert "networkx" not in modules


def test_drawing_packages_of_igraph_are_not_loaded(python, tmp_path):
    for drawing in ("matplotlib", "cairocffi", "cairo", "wcwidth"):
        (tmp_path / f"{drawing}.py").write_text(f"raise RuntimeError('{drawing} is loaded')")
    paths = os.pathsep.join([str(tmp_path), str(Path(routing.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = python("-m", "routing.cli", "route", "ring:4", PYTHONPATH=paths)
    assert (command.communicate()[1], command.returncode) == ("", 0)


@pytest.mark.parametrize("args", [["nonsense"], ["completion"], ["completion", "tcsh"], ["--nonsense"]])
def test_wrong_use_is_one_line_and_status_2(args):
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "--help" in result.stderr


@pytest.mark.parametrize(
    ("error", "line", "status"),
    [
        (InputError("bad\nthing", path="f.net", line=3, remedy="repair it"), "f.net:3: bad thing (repair it)", 2),
        (InputError("no device 'a  b'"), "no device 'a  b'", 2),
        (EnvironmentProblem("no opensm"), "no opensm", 2),
        (
            NotEnoughVLs(None, 1),
            "the search found no tables with up to 1 VL (allow more, or use nue or updn, which need only one)",
            1,
        ),
        (
            NotEnoughVLs(4, 2),
            "4 VLs are needed, 2 may be used (allow more, or use nue or updn, which need only one)",
            1,
        ),
        (BrokenPromise("loop"), "loop", 1),
        (KeyboardInterrupt(), "interrupted", 130),
        (
            PermissionError(13, "Permission denied", "/there"),
            "/there: permission denied (ls -ld shows who may use it)",
            2,
        ),
        (click.BadParameter("no"), "Invalid value: no (see ibnue --help)", 2),
    ],
)
def test_errors_have_a_line_and_an_exit_status(error, line, status):
    complaint, found = explain(error)
    assert (str(complaint), found) == (line, status)


def test_a_bug_keeps_its_traceback_and_is_not_taken_for_a_finding(monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("unforeseen")

    monkeypatch.setattr("routing.cli.fabric_argument.read", fail)
    result = CliRunner().invoke(main, ["route", "ring:5"])
    assert result.exit_code == 70
    assert "ZeroDivisionError: unforeseen" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell):
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert "_IBNUE_COMPLETE" in result.output


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("ibnue comp", "plain,completion"),
        ("ibnue route tor", "plain,torus:"),
        ("ibnue route tor", "file,tor"),
        ("ibnue route f.net -e up", "plain,updn"),
        ("ibnue lab f.net -e min", "plain,minhop"),
        ("ibnue check --req", "plain,--require"),
    ],
)
def test_completion_completes(words, offered):
    completed = CliRunner().invoke(main, [], prog_name="ibnue", env=pressed(words))
    assert offered in completed.stdout.split(), completed.output


def pressed(words):
    """Return the environment that the completion script sets when the user presses the tab key."""
    folder = str(len(words.split()) - 1)
    return {"_IBNUE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": folder}


def test_completion_in_a_process_of_its_own(python):
    out, err = python("-m", "routing.cli", **pressed("ibnue comp")).communicate()
    assert "plain,completion" in out.split(), err
