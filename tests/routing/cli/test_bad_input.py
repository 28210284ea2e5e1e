"""Check mistakes of new users: every command reports a mistake in one line that names the file and a remedy."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from routing.cli import main
from routing.cli.param_types import Number
from routing.engines import ENGINES

FABRIC = "torus:3x3"
READERS = {
    "fabric": "route {}",
    "guid2lid": "route torus.net --guid2lid {}",
    "faults": "route torus:3x3 --faults {}",
    "roots": "route torus:3x3 --root-guid-file {}",
    "previous": "route torus:3x3 --previous {}",
    "was": "route torus:3x3 --previous tables --was {}",
    "check": "check torus:3x3 {}",
    "quality": "quality torus:3x3 {}",
    "diff": "diff tables {}",
    "old": "transition torus:3x3 {} tables",
    "new": "transition torus:3x3 tables {}",
    "whatif": "whatif torus:3x3 --list {}",
    "whatif-tables": "whatif torus:3x3 --tables {}",
    "flows": "pause torus:3x3 tables --flows {}",
    "paths": "pause --paths {}",
    "watch": "watch torus:3x3 {} --once",
    "spec": "sweep --spec {}",
    "against": "sweep torus:3x3 --against {}",
    "scenario": "simulate {}",
    "policy": "policy check {} torus:3x3",
    "suggest": "policy suggest torus:3x3 {}",
    "lab": "lab {} --do show",
    "lab-policies": "lab torus:3x3 --do show --policies {}",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    assert CliRunner().invoke(main, ["route", FABRIC, "-o", str(folder / "tables")]).exit_code == 0
    assert CliRunner().invoke(main, ["fabric", FABRIC, "-o", str(folder / "torus.net")]).exit_code == 0
    (folder / "folder").mkdir()
    (folder / "text").write_text("nothing of use\n")
    (folder / "bytes").write_bytes(bytes(range(128, 256)) * 20)
    (folder / "typo.toml").write_text('title = "t"\n[[rule]]\nhoq_life\n')
    return folder


def refused(monkeypatch, folder, *args):
    """Run a command, and return the one line in which it refuses its input."""
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(main, list(args))
    assert (result.exit_code, result.stdout) == (2, "")
    line = result.stderr
    assert line.startswith("ibnue: ")
    assert line.endswith("\n")
    assert line.count("\n") == 1
    return line


@pytest.mark.parametrize("bad", ["missing", "folder", "text", "bytes"])
@pytest.mark.parametrize("command", READERS)
def test_unreadable_files(monkeypatch, folder, command, bad):
    line = refused(monkeypatch, folder, *READERS[command].format(bad).split())
    assert bad in line
    assert len(line) < 400


@pytest.mark.parametrize("command", ["route torus:3x3 --faults {}", "sweep --spec {}", "pause --paths {}"])
def test_a_folder_is_distinguished_from_a_file(monkeypatch, folder, command):
    assert "folder: is a folder" in refused(monkeypatch, folder, *command.format("folder").split())


def test_a_folder_without_a_fabric_names_the_files_that_would_serve(monkeypatch, folder):
    line = refused(monkeypatch, folder, "route", "folder")
    assert "folder: the folder has no fabric file" in line
    assert "opensm-subnet.lst" in line


@pytest.mark.parametrize("command", ["sweep --spec {}", "policy check {} torus:3x3", "simulate {}"])
def test_toml_errors_name_the_line(monkeypatch, folder, command):
    assert "typo.toml:3: is not TOML: " in refused(monkeypatch, folder, *command.format("typo.toml").split())


def test_other_files_are_not_called_damaged_bundles(monkeypatch, folder):
    line = refused(monkeypatch, folder, "diff", "tables", "text")
    assert "text: is not a bundle" in line
    assert "--fabric" in line


@pytest.mark.parametrize(
    ("command", "option"),
    [("route torus:4x4 --previous tables", "--was"), ("transition torus:4x4 tables tables", "--old-fabric")],
)
def test_tables_of_another_fabric(monkeypatch, folder, command, option):
    assert option in refused(monkeypatch, folder, *command.split())


@pytest.mark.parametrize("group", ["policy", "plugin"])
def test_commands_of_a_group_are_reported_whole(group):
    assert "..." not in CliRunner().invoke(main, [group, "--help"]).output.partition("Commands:")[2]


def test_an_endless_budget_is_not_called_short(monkeypatch, folder):
    assert "not in the range" in refused(monkeypatch, folder, "route", FABRIC, "--budget", "inf")


def test_help_names_every_engine():
    reported = " ".join(CliRunner().invoke(main, ["route", "--help"]).output.split())
    assert sorted(re.search("The routing engine: ([^.]*)\\.", reported)[1].replace(" or ", ", ").split(", ")) == sorted(
        ENGINES
    )


@pytest.mark.parametrize("share", ["-0.1", "1.5"])
def test_a_loss_is_a_share(monkeypatch, folder, share):
    assert "--max-loss" in refused(monkeypatch, folder, "whatif", FABRIC, "--max-loss", share)


@pytest.mark.parametrize(("text", "share"), [("5%", 0.05), ("0.05", 0.05), ("100%", 1), ("0%", 0)])
def test_a_share_may_be_a_percentage(text, share):
    assert Number(0, 1).convert(text, None, None) == share


@pytest.mark.parametrize("text", ["101%", "-1%", "x%", "%", "nan%", "5%%", "5"])
def test_percentages_that_are_not_shares(monkeypatch, folder, text):
    assert "--max-loss" in refused(monkeypatch, folder, "whatif", FABRIC, "--max-loss", text)
    assert "--budget" in refused(monkeypatch, folder, "route", FABRIC, "--budget", "5%")


@pytest.mark.parametrize("action", ["unlink sw9.9 1", "unlink sw0.0 99", "relink nobody"])
def test_actions_are_checked_before_anything_starts(monkeypatch, folder, action):
    refused(monkeypatch, folder, "lab", FABRIC, "--do", "show", "--do", action)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--max-loss", ("whatif", FABRIC)),
        ("--tolerance", ("sweep", FABRIC)),
        ("--effort", ("route", FABRIC, "-e", "updn")),
    ],
)
def test_nan_is_no_number(monkeypatch, folder, option, words):
    assert "is not a number" in refused(monkeypatch, folder, *words, option, "nan")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("fabric torus 3x3 --guid2lid tables/guid2lid", "a generator makes its own GUIDs"),
        ("fabric torus:3x3,cas=1,cas=2", "cas is given twice"),
        ("fabric slimfly 1000003", "more than any subnet holds"),
        (f"fabric slimfly {'9' * 5000}", f" {'9' * 5000} is more than any subnet holds"),
        ("whatif torus:3x3 --random 3 --kinds group", "no groups to draw from"),
        ("route torus:3x3 --first-vl 8", "ports have 8 data VLs, and none from VL 8 on"),
        ("watch torus:3x3 tables --interval 1e300", "not in the range"),
        ("watch torus:3x3 tables --once --rounds 2", "--once cannot be combined with --rounds"),
        ("check torus:3x3 pipe", "pipe: is not a regular file"),
        ("fabric pipe", "pipe: is not a regular file"),
        ("diff tables tables --lmc 3", "--lmc has no effect without --fabric"),
        ("diff tables tables --guid2lid nowhere", "--guid2lid has no effect without --fabric"),
        ("simulate --list --trace", "--list runs nothing"),
        ("simulate --list --case a", "--list runs nothing"),
        ("fabric --list torus", "give either 'torus' or --list"),
        ("fabric torus:3x3,cas=1e9", "cas is 1000000000.0, not a whole number (write it like cas=1)"),
        ("slurm torus:3x3 -o topology.yaml", "topology.yaml: topology.conf is not YAML (add --yaml"),
        ("simulate text", "text:1: is not TOML"),
        ("simulate nothing", "nothing: the scenario: title is missing (write title = ...)"),
        ("route torus:3x3 -o folder/of-others", "of-others: the folder has files that this command does not write"),
    ],
)
def test_invalid_arguments_are_refused_with_the_reason(monkeypatch, folder, words, why):
    if not (folder / "pipe").exists():
        os.mkfifo(folder / "pipe")
    (folder / "nothing").touch()
    (folder / "folder" / "of-others").mkdir(exist_ok=True)
    (folder / "folder" / "of-others" / "notes.txt").touch()
    assert why in refused(monkeypatch, folder, *words.split())


@pytest.mark.parametrize("command", ["fabric", "check", "draw"])
def test_an_empty_fabric_argument_is_refused(monkeypatch, folder, command):
    more = ["-o", "x.svg"] if command == "draw" else []
    assert "FABRIC is empty" in refused(monkeypatch, folder, command, "", *more)


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_full_standard_output_is_reported(folder, more):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "routing.cli", "fabric", FABRIC, *more],
            check=False, stdout=full, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": ""},
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "ibnue: standard output: cannot be written: no space left (free space, or write elsewhere)\n"


def run_closed(folder, words, closed):
    """Run Python with some standard streams closed, as the shell words ``closed`` state."""
    return subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {closed}', sys.executable, *words],
        check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=folder,
    )  # fmt: skip


@pytest.mark.parametrize(
    "words", ["check torus:3x3 tables", "fabric torus:3x3 -o closed.net", "diff tables tables --json"]
)
def test_a_closed_standard_output_is_reported(folder, words):
    done = run_closed(folder, ["-m", "routing.cli", *words.split()], ">&- <&-")
    assert done.returncode == 2
    assert done.stderr == ("ibnue: standard output: cannot be written: not open for writing (redirect it to a file)\n")


@pytest.mark.parametrize(
    ("words", "closed", "status"),
    [
        ("check torus:3x3 tables", "<&- 2>&-", 0),
        ("check torus:3x3 text", "2>&-", 2),
        ("check torus:3x3 text --json", ">&- 2>&-", 2),
        ("fabric -", "<&-", 2),
    ],
)
def test_closed_streams_do_not_change_the_exit_status(folder, words, closed, status):
    done = run_closed(folder, ["-m", "routing.cli", *words.split()], closed)
    assert done.returncode == status
    assert done.stderr == ("" if "2>" in closed else "ibnue: standard input is closed (name a file)\n")


def test_files_do_not_get_the_numbers_of_closed_streams(folder):
    """Otherwise a program that a command starts could write its messages into an output file."""
    code = "from routing.cli.__main__ import open_standard_streams as f; f(); print(open('text').fileno())"
    assert run_closed(folder, ["-c", code], "<&- 2>&-").stdout == "3\n"


@pytest.mark.parametrize("rate", ["1e-999999999", "-1", "0", "1/0", "1.5", "nan", "1" * 5000])
def test_rates_of_flows_are_shares(monkeypatch, folder, rate):
    (folder / "flows.txt").write_text(f"ca0.0.0 ca1.1.0 {rate}\n")
    line = refused(monkeypatch, folder, "pause", FABRIC, "tables", "--flows", "flows.txt")
    assert "flows.txt:1: " in line
    assert "is not a rate" in line
    assert len(line) < 200


@pytest.mark.parametrize("where", ["text", "missing/agents"])
def test_folders_are_made_one_at_a_time(monkeypatch, folder, where):
    (folder / "rules.toml").write_text("[[rule]]\nhoq_life = 5\n")
    assert "cannot be written" in refused(monkeypatch, folder, "policy", "export", "rules.toml", FABRIC, "-o", where)
    assert not (folder / "missing").exists()


def test_too_few_vls_name_a_remedy(monkeypatch, folder):
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(main, ["route", "ring:5", "-e", "lash", "--vls", "1"])
    assert result.exit_code == 1
    assert "the search needed 2 VLs, 1 may be used (allow more, or use nue or updn" in result.stderr


def test_unusual_lines_of_a_file_are_counted_in_one_warning(tmp_path):
    path = tmp_path / "real.txt"
    text = (Path(__file__).parents[1] / "formats" / "data" / "mixed.ibnetdiscover").read_text()
    path.write_text(re.sub(r"lid \d+", "lid 65535", text).replace(" 4xEDR", " 4x???").expandtabs())
    result = CliRunner().invoke(main, ["fabric", str(path), "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["warnings"] == [
        f"{path}: 1 link has an unknown rate (?); ibnue assumes 4xSDR, the most frequent one",
        f"{path}: 10 ports have LID 65535: no subnet manager has configured them; they count as without a LID",
    ]
    assert result.stderr.splitlines() == [f"ibnue: warning: {line}" for line in json.loads(result.stdout)["warnings"]]
    routed = CliRunner().invoke(main, ["route", str(path), "-o", str(tmp_path / "tables")])
    assert (routed.exit_code, routed.stderr) == (0, result.stderr)
    compared = CliRunner().invoke(main, ["diff", str(tmp_path / "tables"), str(tmp_path / "tables"), "--json"])
    assert (compared.exit_code, compared.stderr) == (0, "")
    assert json.loads(compared.stdout)["warnings"] == []
