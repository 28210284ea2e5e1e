"""Check ``ibnue advise``: its table, its recommendation, and the next command that it prints."""

import json

from command_runs import run


def test_the_command_prints_the_table_and_the_next_command():
    done = run("advise", "torus:4x3,cas=2", "--links", "0")
    assert done.exit_code == 0
    next_command = done.stdout.splitlines()[-1].split()
    assert next_command[:5] == ["next", "ibnue", "route", "torus:4x3,cas=2", "-e"]
    assert run(*next_command[2:-2]).exit_code == 0
    found = json.loads(run("advise", "torus:4x3,cas=2", "--links", "0", "--json").stdout)
    assert found["recommended"]["engine"] == next_command[5]
    engines = {each["engine"] for each in found["candidates"]}
    assert engines >= {"updn", "nue"} and engines.isdisjoint({"auto", "minhop", "sssp"})


def test_the_command_prints_the_effort_that_a_budget_allows():
    command = "advise", "torus:4x3,cas=2", "--links", "0"
    assert "effort" not in run(*command).stdout
    row = next(line for line in run(*command, "--budget", "2").stdout.splitlines() if line.startswith("effort"))
    found = json.loads(run(*command, "--budget", "2", "--json").stdout)
    assert 0 < found["effort"] < 1
    assert f"{found['effort']:.2g} for each engine" in row
    assert json.loads(run(*command, "--json").stdout)["effort"] == 1


def test_the_command_prints_a_row_for_each_class_of_end_ports_that_counts():
    done = run("advise", "cluster:2x3x4,2x2", "--links", "0", "--class", "storage=storage*")
    after = done.stdout.partition("traffic among the end ports of one class:")[2]
    rows = [line.split()[:3] for line in after.splitlines() if line.split()[:1] == ["updn"]]
    assert [(row[1], int(row[2]) > 0) for row in rows] == [("compute", True), ("storage", True)]
    assert "traffic among" not in run("advise", "ring:4", "--links", "0").stdout
