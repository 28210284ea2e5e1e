"""Check that control characters in names have no effect on a terminal, but are written to files."""

import json
import subprocess
import sys

import pytest
from command_runs import assert_refused, run

from routing.cli.output import echo_lines, print_table
from routing.names import escape_control

RED = "\x1b[31m"
RULES = '[[rule]]\nname = "one"\nports = [1]\nhoq_life = 8\n[[rule]]\nname = "two"\nspeed = "XDR"\nhoq_life = 9\n'


@pytest.fixture
def painted(tmp_path):
    """Return a fabric file whose switch names have control sequences that would change the colour of a terminal."""
    run("fabric", "ring", "4", "-o", tmp_path / "plain.json")
    described = json.loads((tmp_path / "plain.json").read_text())
    described["name"] = f"ring{RED}"
    for switch in described["switches"]:
        switch["name"] = f"{RED}{switch['name']}"
    path = tmp_path / "painted.json"
    path.write_text(json.dumps(described))
    return path


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("sw0 [red] é 日本", "sw0 [red] é 日本"),
        (f"{RED}sw0", "\\x1b[31msw0"),
        ("a\tb\rc\x07\x7f\x9b", "a\\tb\\rc\\x07\\x7f\\x9b"),
        ("right\u202eleft\udc80", "right\\u202eleft\\udc80"),
        ("one\ntwo\u2028three\x85", "one\\ntwo\\u2028three\\x85"),
    ],
)
def test_control_characters_are_escaped(text, wanted, capsys):
    assert escape_control(text) == wanted
    echo_lines(text)
    assert capsys.readouterr().out == f"{wanted}\n"


def test_lines_are_reported_one_by_one(capsys):
    echo_lines("one", "t\nwo", "")
    echo_lines()
    assert capsys.readouterr().out == "one\nt\\nwo\n\n\n"


def test_tables_show_names_as_they_are(capsys):
    print_table(["name :smile:"], [["rack:x:1 [bold]"], ["two\nlines"]])
    head, _, *rows = filter(None, map(str.strip, capsys.readouterr().out.split("\n")))
    assert (head, *rows) == ("name :smile:", "rack:x:1 [bold]", "two\\nlines")


def broken(path, folder):
    """Return the fabric file with a line end in each device name and in the name of the fabric."""
    described = json.loads(path.read_text())
    described["name"] += "\n"
    for device in (*described["switches"], *described["terminals"]):
        device["name"] = device["name"].replace("sw", "s\nw").replace("ca", "c\u2028a")
    (folder / "broken.json").write_text(json.dumps(described))
    return folder / "broken.json"


def test_no_command_breaks_a_line_at_a_name(tmp_path):
    """Every report has as many lines as with names without line ends."""
    plain = tmp_path / "plain.json"
    run("fabric", "ring", "5", "-o", plain)
    odd = broken(plain, tmp_path)
    for engine in ("minhop", "updn"):
        run("route", plain, "-e", engine, "-o", tmp_path / engine)
    loops, safe = tmp_path / "minhop", tmp_path / "updn"
    (tmp_path / "flows").write_text("0x100000 0x100004\n0x100004 0x100008\n")
    (tmp_path / "rules.toml").write_text(RULES)
    reports = (
        ["fabric", "@"], ["route", "@", "-e", "minhop"], ["check", "@", loops], ["check", "@", safe],
        ["check", "@", loops, "--require", "reversible"], ["quality", "@", loops, "--links", 3],
        ["diff", loops, safe, "--fabric", "@"], ["transition", "@", safe, loops], ["transition", "@", loops, safe],
        ["pause", "@", loops, "--shift", 1], ["pause", "@", loops, "--flows", tmp_path / "flows", "--trace"],
        ["whatif", "@", "-e", "updn", "--jobs", 1, "--max-loss", "0.01"], ["policy", "suggest", "@", loops],
        ["policy", "check", tmp_path / "rules.toml", "@", "--tables", loops],
        ["policy", "explain", tmp_path / "rules.toml", "@", "0x200001", 2],
        ["route", "@", "-e", "updn", "--fail", "0x200001/9"],
    )  # fmt: skip
    for words in reports:
        usual, reported = (run(*(fabric if word == "@" else word for word in words)) for fabric in (plain, odd))
        assert usual.stdout or words[-2] == "--fail", (words, usual.output)
        assert reported.exit_code == usual.exit_code, (words, reported.output)
        assert len(reported.output.splitlines()) == len(usual.output.splitlines()), (words, reported.output)


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
    reported = json.loads(run("route", painted, "-e", "minhop", "-o", tmp_path / "out", "--json").stdout)
    assert reported["credit_loop"][0]["switch_name"].startswith(f"{RED}sw")
    assert RED.encode() in (tmp_path / "out" / "opensm-lfts.dump").read_bytes()


def test_commands_run_without_a_standard_error(tmp_path):
    """A service may start a command without standard error.  Python then has no object for standard error."""
    command = f"{sys.executable} -m routing.cli route torus:3x3 -e updn -o {tmp_path}/tables 2>&-"
    assert subprocess.run(["sh", "-c", command], stdout=subprocess.DEVNULL, check=False).returncode == 0
