"""What names hold does nothing to a terminal, and everything to files."""

import json

import pytest
from command_runs import assert_refused, run

from routing.cli.output import shown, tell

RED = "\x1b[31m"


@pytest.fixture
def painted(tmp_path):
    """A fabric whose switches have names that would paint a terminal."""
    run("fabric", "ring", "4", "-o", tmp_path / "plain.json")
    described = json.loads((tmp_path / "plain.json").read_text())
    described["name"] = f"ring{RED}"
    for switch in described["switches"]:
        switch["name"] = f"{RED}{switch['name']}"
    path = tmp_path / "painted.json"
    path.write_text(json.dumps(described))
    return path


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("sw0 [red] é 日本", "sw0 [red] é 日本"),
        (f"{RED}sw0", "\\x1b[31msw0"),
        ("a\tb\rc\x07\x7f\x9b", "a\\tb\\rc\\x07\\x7f\\x9b"),
        ("right\u202eleft\udc80", "right\\u202eleft\\udc80"),
        ("one\ntwo", "one\ntwo"),
    ],
)
def test_what_a_terminal_would_obey_is_escaped(text, escaped, capsys):
    assert shown(text) == escaped
    tell(text)
    assert capsys.readouterr().out == f"{escaped}\n"


def test_reports_escape_names(painted, tmp_path):
    routed = run("route", painted, "-e", "minhop", "-o", tmp_path / "out")
    assert "credit loop of 4 channels" in routed.stdout
    listed = run("quality", painted, tmp_path / "out", "--links", 3)
    refused = run("route", painted, "--fail", f"{RED}sw9")
    for result in (routed, listed, refused):
        assert "\x1b" not in result.output
        assert "\\x1b[31m" in result.output
    assert_refused(refused, "sw9")


def test_json_and_files_hold_names_as_they_are(painted, tmp_path):
    told = json.loads(run("route", painted, "-e", "minhop", "-o", tmp_path / "out", "--json").stdout)
    assert told["credit_loop"][0]["switch"].startswith(f"{RED}sw")
    assert RED.encode() in (tmp_path / "out" / "opensm-lfts.dump").read_bytes()
