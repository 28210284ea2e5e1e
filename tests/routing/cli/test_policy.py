"""Check ``ibnue policy`` from the command line."""

import json

import pytest
from command_runs import run

RULES = """[[rule]]
name = "cas"
role = "ca-facing"
hoq_life = 12

[[rule]]
name = "loops"
role = "loop"
hoq_life = 9
"""


@pytest.fixture
def rules(tmp_path):
    (tmp_path / "rules.toml").write_text(RULES)
    return tmp_path / "rules.toml"


@pytest.fixture
def loop(tmp_path):
    run("route", "ring:5", "-e", "minhop", "-o", tmp_path / "loop")
    return tmp_path / "loop"


def test_check_counts_ports(rules, loop):
    result = run("policy", "check", rules, "ring:5", "--tables", loop)
    assert result.exit_code == 0, result.output
    assert "15 cabled ports of switches, 15 with a rule" in result.stdout
    reported = json.loads(run("policy", "check", rules, "ring:5", "--tables", loop, "--json").stdout)
    assert reported["rules"] == [
        {"name": "cas", "line": 1, "ports": 5, "ports_decided": 5},
        {"name": "loops", "line": 6, "ports": 10, "ports_decided": 10},
    ]


def test_explain_names_the_rule(rules, loop):
    result = run("policy", "explain", rules, "ring:5", "sw1", 3, "--tables", loop)
    assert result.exit_code == 0, result.output
    assert f"9 (drops after 2.097 ms), by loops ({rules}:6)" in result.stdout
    reported = json.loads(run("policy", "explain", rules, "ring:5", "sw1", 1, "--tables", loop, "--json").stdout)
    assert reported["properties"][0]["rule"] == "cas"


def test_suggest_and_check_again(loop, tmp_path):
    printed = run("policy", "suggest", "ring:5", loop)
    assert printed.exit_code == 0, printed.output
    written = run("policy", "suggest", "ring:5", loop, "-o", tmp_path / "new.toml")
    assert "new.toml" in written.stdout
    assert (tmp_path / "new.toml").read_text() == printed.stdout
    assert run("policy", "check", tmp_path / "new.toml", "ring:5", "--tables", loop).exit_code == 0
    reported = json.loads(run("policy", "suggest", "ring:5", loop, "--json").stdout)
    assert [rule["role"] for rule in reported["rules"]] == ["ca-facing", "switch-facing", "loop"]


def test_export(rules, loop, tmp_path):
    result = run("policy", "export", rules, "ring:5", "--tables", loop, "-o", tmp_path / "agents", "--opensm")
    assert result.exit_code == 0, result.output
    assert "leaf_head_of_queue_lifetime 0x0c" in result.stdout
    assert len(list((tmp_path / "agents").iterdir())) == 5


def test_wrong_use_takes_one_line(rules, loop, tmp_path):
    (tmp_path / "wrong.toml").write_text("[[rule]]\nhoq_life = 40\n")
    for args in (("check", tmp_path / "wrong.toml", "ring:5"), ("check", rules, "ring:5"),
                 ("check", tmp_path / "none.toml", "ring:5"), ("explain", rules, "ring:5", "sw9", 1, "--tables", loop),
                 ("explain", rules, "ring:5", "sw1", 9, "--tables", loop), ("export", rules, "ring:5")):  # fmt: skip
        result = run("policy", *args)
        assert result.exit_code == 2, args
        assert result.stderr.startswith("ibnue: ")
        assert result.stderr.count("\n") == 1
        assert not result.stdout


def test_a_rule_that_decides_nothing_is_reported(tmp_path):
    (tmp_path / "rules.toml").write_text('[[rule]]\nname = "odd"\nspeed = 7\nhoq_life = 3\n[[rule]]\nhoq_life = 4\n')
    result = run("policy", "check", tmp_path / "rules.toml", "ring:5")
    assert result.exit_code == 0
    assert "odd (line 1) has no effect: it selects no cabled port of ring-5" in result.stdout
    assert result.stdout.count("has no effect") == 1
    (tmp_path / "rules.toml").write_text("")
    assert "has no rule" in run("policy", "check", tmp_path / "rules.toml", "ring:5").stdout


def test_similar_names_are_proposed(rules, loop):
    result = run("policy", "explain", rules, "ring:5", "sw9", 1, "--tables", loop)
    assert "did you mean sw" in result.stderr
    assert "'x' is not a whole number" in run("policy", "explain", rules, "ring:5", "sw1", "x").stderr
