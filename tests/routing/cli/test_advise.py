"""``ibnue advise``: one table, one recommendation, the next command."""

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
