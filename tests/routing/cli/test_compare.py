"""Check ``ibnue compare`` from the command line."""

import json
from pathlib import Path

from command_runs import run

RACK = "docs/examples/rack/ibnetdiscover.txt"


def test_a_swap_and_a_missing_cable_are_named(tmp_path):
    found = tmp_path / "found.net"
    made = run("fabric", RACK, "--fail", "swap ibsw-r3c2/3 ibsw-r4c1/4", "--fail", "ibsw-r3c3/4", "-o", found)
    assert made.exit_code == 0, made.output
    result = run("compare", RACK, found)
    assert result.exit_code == 1
    assert "cables   2 cables to reconnect" in result.output
    lines = result.output.splitlines()
    at = lines.index("swapped:")
    assert [line.split(":")[0].strip() for line in lines[at + 1 : at + 5]] == ["plan", "plan", "real", "real"]
    assert sum("ibsw-r3c2/3" in line for line in lines) == 2
    assert sum(line.startswith("missing: ") and "ibsw-r3c3/4" in line for line in lines) == 1
    found = json.loads(run("compare", RACK, found, "--json").output)
    assert (found["edits"], found["same"], len(found["cable_findings"])) == (2, False, 2)


def test_the_same_fabric_is_as_planned_whatever_the_format(tmp_path):
    assert run("fabric", RACK, "-o", tmp_path / "same.json").exit_code == 0
    result = run("compare", RACK, tmp_path / "same.json")
    assert result.exit_code == 0
    assert result.output.splitlines() == ["devices  36 in both", "cables   all as planned"]


def test_a_replaced_switch_is_listed_with_status_0_as_the_help_states(tmp_path):
    found = tmp_path / "found.txt"
    found.write_text(Path(RACK).read_text().replace("200004", "2000f4"))
    result = run("compare", RACK, found)
    assert (result.exit_code, result.output.splitlines()[-1]) == (0, "replaced: ibsw-r2c2 has another GUID")
    assert json.loads(run("compare", RACK, found, "--json").output)["same"]
    assert "Renamed and replaced devices do not change the exit status" in " ".join(
        run("compare", "--help").output.split()
    )


def test_a_slow_cable_is_named_in_text_json_and_csv(tmp_path):
    found, table = tmp_path / "found.json", tmp_path / "table.csv"
    assert run("fabric", RACK, "-o", found).exit_code == 0
    fabric = json.loads(found.read_text())
    fabric["links"][5]["width"] = 1
    found.write_text(json.dumps(fabric))
    result = run("compare", RACK, found, "--csv", table)
    assert result.exit_code == 1
    lines = [line for line in result.output.splitlines() if line.startswith("slower: ")]
    assert "rates    1 cable slower than planned" in result.output and len(lines) == 1
    assert lines[0].endswith(" has 1xSDR instead of 4xSDR")
    answer = json.loads(run("compare", RACK, found, "--json").output)
    assert [(each["kind"], each["real_rate"]) for each in answer["rate_findings"]] == [("slower", "1xSDR")]
    assert (answer["same"], answer["edits"]) == (False, 0)
    assert "slower" in table.read_text()


def test_a_plan_without_rates_is_compared_without_them(tmp_path):
    found = tmp_path / "found.txt"
    found.write_text(Path(RACK).read_text().replace("4x", "12x"))
    result = run("compare", RACK, found)
    assert result.exit_code == 0
    assert "rates    not compared, because most cables have another rate than in the plan" in result.output
    assert json.loads(run("compare", RACK, found, "--json").output)["rate_findings"] is None


def test_long_lists_are_cut(tmp_path):
    few, many = "ring:3,cas=1", "ring:3,cas=50"
    result = run("compare", few, many)
    assert "lines more (--all)" in result.output
    assert "lines more (--all)" not in run("compare", few, many, "--all").output
