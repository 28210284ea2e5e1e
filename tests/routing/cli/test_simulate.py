"""Check ``ibnue simulate`` from the command line."""

import csv
import json

import pytest
from command_runs import run as ibnue
from sim_cases import ADAPTIVE

from routing.simulate.scenario import scenarios


def run(*args):
    return ibnue("simulate", *args)


def test_list_names_every_scenario():
    result = run("--list")
    assert result.exit_code == 0
    assert "ring-locks" in result.output


def test_a_scenario_comes_out_and_leaves_charts(tmp_path):
    result = run("one-vl-ring", "--plot", tmp_path)
    assert result.exit_code == 0, result.output
    assert "as expected" in result.output
    charts = sorted(path.name for path in tmp_path.iterdir())
    assert charts == [f"one-vl-ring-{how}.svg" for how in ("at-random", "by-arrival", "in-turn")]
    assert "polyline" in (tmp_path / charts[0]).read_text()


ONE_LOAD = """
[[case]]
name = "one load"
what = "adaptive"
loads = [0.4]
adaptive = { schemes = ["escape"] }
expect = { deadlocked = [] }
"""


def test_adaptive_cases_leave_a_chart_over_load_or_say_that_there_is_none(tmp_path):
    (tmp_path / "mine.toml").write_text(ADAPTIVE.replace("[0.2, 0.4]", "[0.4, 0.2]") + ONE_LOAD)
    result = run(tmp_path / "mine.toml", "--plot", tmp_path / "charts", "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr == "no chart of one load: the case has no figures over time or load\n"
    assert len(json.loads(result.stdout)["case_results"]) == 2
    (chart,) = (tmp_path / "charts").iterdir()
    assert chart.name == "mine-c.svg"
    drawn = chart.read_text()
    assert "over offered load" in drawn
    assert drawn.count("<polyline") == 3


def test_origins_and_chosen_settings_are_stated():
    result = run("pauses-settle", "--case", "pauses, by arrival", "--case", "at random")
    assert result.exit_code == 0, result.output
    assert "program" in result.output
    assert "regression" in result.output
    assert "switch = 1 was chosen for these counts." in result.output
    cases = json.loads(run("pauses-settle", "--case", "at random", "--json").output)["case_results"]
    assert (cases[0]["origin"], cases[0]["chosen"]) == ("regression", None)


def test_another_outcome_is_a_finding(tmp_path):
    text = scenarios()["ring-locks"].read_text().replace("stopped = 45.375", "stopped = 60.0")
    (tmp_path / "mine.toml").write_text(text)
    result = run(tmp_path / "mine.toml", "--case", "4 packets", "--json")
    assert result.exit_code == 1
    reported = json.loads(result.output)
    assert reported["case_results"][0]["unmet_expectations"] == ["stopped is 45.38, expected 60.0"]


def test_wrong_use_is_one_line():
    for args, reported in (
        (["nothing"], "there is no scenario"),
        ([], "give either a scenario"),
        (["--case", "x", "ring-locks"], "no case"),
    ):
        result = run(*args)
        assert result.exit_code == 2
        assert reported in result.output
        assert len(result.output.strip().splitlines()) == 1


def test_wrong_scenario_names_are_refused_with_a_remedy(tmp_path):
    (tmp_path / "notes.txt").write_text("notes")
    (tmp_path / "folder.toml").mkdir()
    for name, reported in (
        ("ring-lock", "did you mean ring-locks"),
        ("Ring-Locks", "did you mean ring-locks"),
        ("xyzzy", "give one of ibnue simulate --list, or a TOML file"),
        (tmp_path / "notes.txt", "notes.txt:1: is not TOML"),
        (tmp_path, "is a folder"),
        (tmp_path / "folder.toml", "folder.toml"),
        (tmp_path / "none.toml", "there is no such file"),
    ):
        result = run(name)
        assert result.exit_code == 2
        assert reported in result.output
        assert len(result.output.strip().splitlines()) == 1
        assert len(result.output) < 300


def test_the_trace_tells_the_election_in_order():
    result = run("ring-remedies", "--case", "Loop Breaker", "--trace", "--json")
    assert result.exit_code == 0
    events = json.loads(result.output)["case_results"][0]["trace"]
    reported = [event["text"] for event in events]
    words = ("suspected, its", "sent, phase 0", "passes on", "is master of the loop", "goes by port", "without credit")
    steps = [next(n for n, text in enumerate(reported) if word in text) for word in words]
    assert steps == sorted(steps)
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)
    text = run("ring-remedies", "--case", "Deadlock Breaker, 100 and 10 packet times", "--trace").output
    assert "found a loop of 4 from" in text
    assert "serves all again" in text


def test_a_sweep_over_loads_has_a_row_for_each_point(tmp_path):
    words = (
        "--sweep",
        "-e",
        "updn",
        "--scheme",
        "escape",
        "--pattern",
        "neighbour",
        "--loads",
        "0.2,0.4",
        "--vls",
        "2",
    )
    result = run(
        "mesh:2x2,cas=1", *words, "--seeds", "2", "-j", "2", "--csv", tmp_path / "points.csv", "--plot", tmp_path
    )
    assert result.exit_code == 0, result.output
    assert "95 % confidence interval" in result.output
    rows = (tmp_path / "points.csv").read_text().splitlines()
    assert rows[0].startswith("routing,pattern,load,accepted,accepted_error,latency_us,")
    assert [row.rpartition(",")[0].split(",")[:1] for row in rows[1:3]] == [["updn"], ["updn"]]
    assert len(rows) == 5
    assert all(row.endswith(",settled") for row in rows[1:])
    assert (tmp_path / "sweep-neighbour.svg").read_text().count("<polyline") == 4


def test_a_sweep_with_port_groups_of_each_engine(tmp_path):
    words = ("-e", "updn", "-e", "nue", "--scheme", "commit", "--pattern", "tornado", "--loads", "0.9", "--seeds", "1")
    result = run("kary-ntree:4,2", "--sweep", *words, "--csv", tmp_path / "points.csv")
    assert result.exit_code == 0, result.output
    with (tmp_path / "points.csv").open() as file:
        accepted = {row["routing"]: float(row["accepted"]) for row in csv.DictReader(file)}
    assert list(accepted) == ["updn", "updn, commit", "nue", "nue, commit"]
    assert all(accepted[f"{engine}, commit"] > 0.85 for engine in ("updn", "nue"))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("ring-locks", "--loads", "0.5"), "--loads needs --sweep"),
        (("mesh:2x2,cas=1", "--sweep", "--case", "x"), "--sweep takes a fabric"),
        (("--sweep",), "--sweep takes a fabric"),
        (("mesh:2x2,cas=1", "--sweep", "--loads", "0.1:2:0.1"), "'0.1:2:0.1' is not a list of loads such as"),
        (("mesh:2x2,cas=1", "--sweep", "--loads", "much"), "'much' is not a list of loads such as"),
        (("mesh:2x2,cas=1", "--sweep", "-e", "best"), "there is no engine 'best'"),
        (
            ("torus:6x6,cas=1", "--sweep", "-e", "minhop", "--vls", "1", "--scheme", "commit"),
            "no port groups for minhop: the tables have a",
        ),
        (("mesh:2x2,cas=1", "--sweep", "--pattern", "storm"), "'storm' is not a pattern"),
        (("mesh:3x2,cas=1", "--sweep", "--pattern", "transpose"), "6 CAs form no square"),
    ],
)
def test_sweeps_that_cannot_be_are_refused_before_the_first_run(words, expected):
    result = run(*words)
    assert result.exit_code == 2
    assert expected in result.stderr
