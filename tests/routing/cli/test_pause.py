"""Check ``ibnue pause`` from the command line."""

import json

import pytest
from command_runs import run

from routing.deadlock import pause
from routing.deadlock.pause import pauses


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "paths.txt"
    path.write_text("f: l5 l1 l2 l3\ng: l6 l3 l4 l1\n")
    return path


def test_paths_without_a_deadlock(scenario):
    result = run("pause", "--paths", scenario)
    assert result.exit_code == 0, result.output
    assert "no cycle of pause-regulated links" in result.stdout
    assert "waits for" not in result.stdout


def test_paths_with_one(scenario):
    scenario.write_text(f"{scenario.read_text()}b: l7 l2\n")
    result = run("pause", "--paths", scenario, "--trace")
    assert result.exit_code == 1
    assert "l1 waits for l2" in result.stdout
    assert "1/2 1/4 1/4 1/4" in result.stdout
    reported = json.loads(run("pause", "--paths", scenario, "--json").stdout)
    assert (reported["verdict"], reported["cycle"]) == ("deadlock", ["l1", "l2", "l3", "l4"])
    assert reported["iterations"][1]["fair"][1] == ["1/2", "1/2", "1/2", "1/4"]


def test_a_probability_that_is_nearly_one_is_not_shown_as_one(scenario):
    """The rates of the cycle are halved in each iteration.  A probability of 1 would mean that a link is paused for
    ever.
    """
    scenario.write_text(f"{scenario.read_text()}b: l7 l2\n")
    reported = run("pause", "--paths", scenario).stdout
    assert "1 - 0.00049" in reported
    assert not any(line.endswith(" 1") for line in reported.splitlines())


def test_every_link_is_counted_once(scenario, monkeypatch):
    """The cost of the report must be linear in the number of links."""
    asked = []
    monkeypatch.setattr(pause, "pauses", lambda *given: asked.append(given) or pauses(*given))
    run("pause", "--paths", scenario)
    assert len(asked) == 1


def test_flows_on_tables(tmp_path):
    run("route", "ring:5", "-e", "minhop", "-o", tmp_path / "loop")
    run("route", "ring:5", "-e", "updn", "-o", tmp_path / "tree")
    assert run("pause", "ring:5", tmp_path / "loop", "--shift", 2).exit_code == 1
    assert run("pause", "ring:5", tmp_path / "tree", "--shift", 2).exit_code == 0
    (tmp_path / "flows.txt").write_text("ca0.0 ca2.0\n")
    result = run("pause", "ring:5", tmp_path / "loop", "--flows", tmp_path / "flows.txt")
    assert result.exit_code == 0
    assert "no link" in result.stdout


def test_wrong_use_takes_one_line(scenario, tmp_path):
    run("route", "ring:5", "-e", "updn", "-o", tmp_path / "out")
    for args in ((), ("ring:5",), ("ring:5", tmp_path / "out"), ("ring:5", tmp_path / "out", "--paths", scenario),
                 ("--paths", scenario, "--shift", 1), ("--paths", tmp_path / "none"),
                 ("ring:5", tmp_path / "out", "--shift", 5)):  # fmt: skip
        result = run("pause", *args)
        assert result.exit_code == 2, args
        assert result.stderr.startswith("ibnue: ")
        assert result.stderr.count("\n") == 1


def test_a_misspelt_ca_gets_the_nearest_names(tmp_path):
    run("route", "ring:5", "-e", "updn", "-o", tmp_path / "out")
    (tmp_path / "flows.txt").write_text("ca0.0 ca20\n")
    result = run("pause", "ring:5", tmp_path / "out", "--flows", tmp_path / "flows.txt")
    assert result.exit_code == 2
    assert "flows.txt:1: no CA or router is called 'ca20' (did you mean ca2.0" in result.stderr
