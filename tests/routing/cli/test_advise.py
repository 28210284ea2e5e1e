"""Check ``ibnue advise``: its table, its recommendation, and the next command that it prints."""

import json
import shlex
from functools import cache
from itertools import pairwise

from command_runs import run


@cache
def advised(*words):
    """Return the output of ``ibnue advise`` for a small torus."""
    done = run("advise", "torus:4x3,cas=2", "--links", "0", *words)
    assert done.exit_code == 0
    return done.stdout


def test_the_command_prints_the_table_and_the_next_command():
    next_command = advised().splitlines()[-1].split()
    assert next_command[:5] == ["next", "ibnue", "route", "torus:4x3,cas=2", "-e"]
    assert run(*next_command[2:-2]).exit_code == 0
    found = json.loads(advised("--json"))
    assert found["recommended"]["engine"] == next_command[5]
    engines = {each["engine"] for each in found["candidates"]}
    assert engines >= {"updn", "nue"} and engines.isdisjoint({"auto", "minhop", "sssp"})


def test_the_next_command_has_the_options_for_the_fabric(tmp_path):
    path = tmp_path / "a fabric.json"
    assert run("fabric", "torus:4x3,cas=2", "-o", str(path)).exit_code == 0
    given = ["--class", "storage=ca0.*", "--class-weight", "storage=1:4", "--lmc", "1", "--vls", "4"]
    done = run("advise", str(path), "--links", "0", *given)
    label, *words = shlex.split(done.stdout.splitlines()[-1])
    assert label == "next" and words[:3] == ["ibnue", "route", str(path)]
    assert {*pairwise(words)} >= {*zip(given[::2], given[1::2], strict=True)}
    assert run(*words[1:-2]).exit_code == 0


def test_the_command_prints_the_effort_that_a_budget_allows():
    assert "effort" not in advised()
    row = next(line for line in advised("--budget", "2").splitlines() if line.startswith("effort"))
    found = json.loads(advised("--budget", "2", "--json"))
    assert 0 < found["effort"] < 1
    assert f"{found['effort']:.2g} for each engine" in row
    assert json.loads(advised("--json"))["effort"] == 1


def test_the_command_prints_a_row_for_each_class_of_end_ports_that_counts():
    done = run("advise", "cluster:2x3x4,2x2", "--links", "0", "--class", "storage=storage*")
    after = done.stdout.partition("traffic among the end ports of one class:")[2]
    rows = [line.split()[:3] for line in after.splitlines() if line.split()[:1] == ["updn"]]
    assert [(row[1], int(row[2]) > 0) for row in rows] == [("compute", True), ("storage", True)]
    assert "traffic among" not in run("advise", "ring:4", "--links", "0").stdout
