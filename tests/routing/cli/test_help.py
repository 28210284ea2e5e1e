"""Check the help and the errors for users who do not know the commands yet, or misspell a command."""

import pytest
from command_runs import run
from in_one_test import cases_in_one_test

from routing.cli.command import COMMANDS


@pytest.mark.parametrize("group", [(), ("plugin",), ("policy",)])
def test_a_group_alone_prints_its_help(group):
    result = run(*group)
    assert result.exit_code == 2
    assert result.output.startswith("Usage: ibnue")
    assert "Commands:" in result.output


@cases_in_one_test("command", sorted(set(COMMANDS) - {"plugin", "policy"}))
def test_the_help_of_a_command_begins_with_an_example(command):
    text = run(command, "--help").output
    assert f"\n  ibnue {command} " in text.partition("Options:")[0]
    assert "INTEGER RANGE" not in text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("chek",), "there is no command 'chek' (did you mean check?)"),
        (("rout", "ring:3"), "there is no command 'rout' (did you mean route?)"),
        (("xyzzy",), "No such command 'xyzzy'."),
        (("route", "ring:3", "-e", "neu"), "there is no engine 'neu' (did you mean nue?"),
    ],
)
def test_a_misspelt_name_gets_the_nearest_one(words, expected):
    result = run(*words)
    assert result.exit_code == 2
    assert expected in result.stderr


def test_output_folders_are_created_with_their_parents(tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # the output is then as on a terminal
    folder = tmp_path / "a" / "b" / "tables"
    result = run("route", "ring:3,cas=1", "-e", "updn", "-o", folder)
    assert result.exit_code == 0, result.output
    assert (folder / "opensm-lfts.dump").is_file()
    assert "next: ibnue check ring:3,cas=1" in result.stderr
    assert run("fabric", "ring:3,cas=1", "-o", tmp_path / "c" / "fabric.net").exit_code == 0
    assert (tmp_path / "c" / "fabric.net").is_file()
