"""Check ``ibnue sweep`` from the command line."""

import contextlib
import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from command_runs import assert_refused
from command_runs import run as ibnue
from in_one_test import cases_in_one_test
from waiting import AMPLE, until

import routing
from routing.cli import main
from routing.sweep import spec
from routing.sweep.ledger import Ledger
from routing.sweep.version import code_version

FAST = ("-e", "updn")
"""Options of a sweep whose engine does not matter.  The usual engine, auto, computes tables with many engines."""


def run(*args, **options):
    return ibnue("sweep", *args, **options)


def reported(result):
    return json.loads(result.stdout)


def test_every_single_fault(tmp_path):
    args = ["ring:4", "-e", "updn", "-e", "nue:vls=2", "--links", "all", "--switches", "all", "-j", 1]
    result = run(*args, "--ledger", tmp_path / "l.db", "--json")
    assert result.exit_code == 0, result.output
    found = reported(result)
    assert (found["cases"], found["cases_run"], found["cases_certified"], found["failures"]) == (18, 18, 18, [])
    assert [(line["engine"], line["cases"]) for line in found["summary"]] == [("nue:vls=2", 9), ("updn", 9)]
    assert found["summary"][0]["vls_needed_max"] <= 2
    again = run(*args, "--ledger", tmp_path / "l.db")
    assert again.exit_code == 0
    assert "ran " not in again.stdout
    assert "certified  18 of 18" in again.stdout
    assert again.stderr == ""


def test_the_report_says_what_faults_cost():
    """For each engine and stability, the losses equal the losses of ``ibnue whatif``.  The fabric without faults does
    not count.
    """
    fabric, faults = "random-regular:10,4", ["--links", "all"]
    words = [fabric, "-e", "nue", *faults, "--stability", "full", "--stability", "fresh", "-j", 1]
    lines = {line["mode"]: line for line in reported(run(*words, "--json"))["summary"]}
    for mode, beside in (("full", ["--beside-fresh"]), ("fresh", [])):
        found = reported(ibnue("whatif", fabric, "-e", "nue", *faults, "--stability", mode, *beside, "--json"))
        for kind in ("all_to_all_loss", "bisection_loss"):
            losses = [scenario[kind] for scenario in found["scenarios"]]
            assert lines[mode][f"{kind}_mean"] == pytest.approx(sum(losses) / len(losses))
            assert lines[mode][f"{kind}_max"] == pytest.approx(max(losses))
        if beside:
            over = [max(0, each["all_to_all_loss"] - each["fresh_all_to_all_loss"]) for each in found["scenarios"]]
            assert lines[mode]["all_to_all_over_fresh_mean"] == pytest.approx(sum(over) / len(over))
            assert max(over) > 0
            assert lines[mode]["all_to_all_over_fresh_max"] == pytest.approx(max(over))
    assert lines["fresh"]["all_to_all_over_fresh_max"] == 0
    assert lines["full"]["all_to_all_loss_mean"] > lines["fresh"]["all_to_all_loss_mean"]
    shown = [line.split()[-5:-1] for line in run(*words).stdout.splitlines() if line.startswith(" nue ")]
    keys = "all_to_all_loss_mean", "all_to_all_loss_max", "all_to_all_over_fresh_max", "bisection_loss_mean"
    assert shown == [[f"{line[key]:.1%}" for key in keys] for line in lines.values()]


def test_losses_that_are_not_known_are_left_out(tmp_path):
    path = tmp_path / "l.db"
    run("ring:4", *FAST, "--links", 1, "-j", 1, "--ledger", path)
    with sqlite3.connect(path) as base:
        for column in ("kept", "bisection_kept", "fresh_kept", "fresh_bisection_kept"):
            base.execute(f"ALTER TABLE results DROP COLUMN {column}")
    (line,) = reported(run("--ledger", path, "--json"))["summary"]
    assert (line["all_to_all_loss_mean"], line["all_to_all_loss_max"]) == (None, None)
    assert run("--ledger", path).stdout.splitlines()[3].split()[-5:-1] == ["-"] * 4


def test_uncertified_cases_are_listed():
    result = run("torus:3x3", "-e", "minhop", "--links", 2, "-j", 1)
    assert result.exit_code == 1
    assert "loop: torus-3x3 minhop: intact: credit loop of " in result.stdout
    assert "closed by requests\n" in result.stdout


def test_a_refusal_is_a_result():
    result = run("torus:5x5", "-e", "dfsssp:vls=1", "-j", 1)
    assert result.exit_code == 1
    assert "refused: torus-5x5 dfsssp:vls=1: intact: " in result.stdout
    assert "1 may be used" in result.stdout


def test_results_of_other_code_are_reported(tmp_path):
    path = tmp_path / "l.db"
    assert "versions" not in run("ring:4", *FAST, "-j", 1, "--ledger", path).stdout
    with sqlite3.connect(path) as base:
        base.execute("UPDATE runs SET version = '0.0.9+other'")
    found = run("ring:5", "ring:4", *FAST, "-j", 1, "--ledger", path).stdout
    assert "1 case in" in found
    assert "; 1 was in the ledger" in found
    assert f"versions   0.0.9+other, {code_version()}" in found


def test_a_ledger_by_itself(tmp_path):
    run("ring:4", "ring:5", *FAST, "--links", 1, "--ledger", tmp_path / "l.db", "-j", 1)
    result = run("--ledger", tmp_path / "l.db", "--by-fabric")
    assert result.exit_code == 0
    assert "ring-4" in result.stdout
    assert "ring-5" in result.stdout


def test_shards_and_their_merger(tmp_path):
    args = ["ring:5", *FAST, "--links", "all", "--switches", "all", "-j", 1]
    whole = reported(run(*args, "--json"))["cases"]
    parts = [reported(run(*args, "--shard", f"{n}/3", "--ledger", tmp_path / f"{n}.db", "--json")) for n in (1, 2, 3)]
    assert sum(part["cases"] for part in parts) == whole == 11
    merged = [word for n in (1, 2, 3) for word in ("--merge", tmp_path / f"{n}.db")]
    result = reported(run(*args, "--ledger", tmp_path / "all.db", *merged, "--json"))
    assert (result["cases"], result["cases_run"]) == (whole, 0)


def test_an_empty_shard_leaves_a_ledger_that_can_be_merged(tmp_path):
    shards = [
        ["ring:5", *FAST, "--shard", f"{n}/2", "--ledger", tmp_path / f"{n}.db", "-j", 1, "--json"] for n in (1, 2)
    ]
    assert sorted(reported(run(*shard))["cases"] for shard in shards) == [0, 1]
    merged = [word for n in (1, 2) for word in ("--merge", tmp_path / f"{n}.db")]
    assert reported(run("--ledger", tmp_path / "all.db", *merged, "--json"))["cases"] == 1


def test_fabrics_of_one_name_have_lines_of_their_own():
    args = ["ring:5", "ring:5,cas=2", "ring:4", *FAST, "-j", 1]
    names = [line["fabric_name"] for line in reported(run(*args, "--by-fabric", "--json"))["summary"]]
    assert sorted(name.partition(" (")[0] for name in names) == ["ring-4", "ring-5", "ring-5"]
    assert len(set(names)) == 3
    assert "ring-4" in names


def test_a_spec(tmp_path):
    (tmp_path / "nets").mkdir()
    run_fabric = CliRunner().invoke(main, ["fabric", "ring:4", "-o", str(tmp_path / "nets" / "r.net")])
    assert run_fabric.exit_code == 0
    spec = tmp_path / "s.toml"
    spec.write_text("""
        [[block]]
        fabrics = ["nets/*.net", "torus:3x3"]
        engines = ["nue:vls=4", "lash"]
        links = "all"
        random = ["3:2", "2:10%"]
        modes = ["fresh", "full"]
        seeds = [1, 2]

        [[block]]
        fabrics = "ring:5"
        intact = false
        faults = ["sw0/2", "switch sw1"]
        """)
    result = run("--spec", spec, "--json", "-j", 2)
    assert result.exit_code == 0, result.output
    assert reported(result)["cases"] == 2 * 2 * 2 * ((1 + 4 + 5) + (1 + 18 + 5)) + 2


@cases_in_one_test(
    ("text", "word"),
    [
        ("", "s.toml: a spec has tables [[block]]"),
        ("[[block]\n", "s.toml:1: is not TOML"),
        ("x = 1\n[[block]]\nfabrics = ['ring:4']", "s.toml:1: a spec has tables [[block]]"),
        ("[[block]]\nengines = ['updn']", "s.toml:1: a block names no fabric"),
        ("[[block]]\nfabrics = ['ring:4']\nlinsk = 'all'", "s.toml:3: there is no key 'linsk'"),
        ("[[block]]\nfabrics = ['ring:4']\norigin = 'x'", "s.toml:3: there is no key 'origin'"),
        ("[[block]]\nfabrics = ['ring:4']\nlinks = 'some'", "s.toml:3: links is neither all nor a number"),
        ("[[block]]\nfabrics = ['ring:4']\nlinks = 5", "s.toml:3: 5 single links, and ring-4 has 4"),
        ("[[block]]\nfabrics = ['ring:4']\nlinks = " + "9" * 5000, "s.toml: has a number with thousands of digits"),
        ("[[block]]\nfabrics = ['ring:4']\nrandom = '999999999'", "s.toml:1: over 1,000 cases"),
        ("[[block]]\nfabrics = ['ring:4']\nseeds = ['one']", "s.toml:3: seeds has a value that is not an integer"),
        ("[[block]]\nfabrics = ['ring:4']\nseeds = -1", "s.toml:3: -1 is not a valid seed"),
        ("[[block]]\nfabrics = ['ring:4']\nseeds = []", "s.toml:3: seeds is empty"),
        ("[[block]]\nfabrics = ['ring:4']\nintact = [true, false]", "s.toml:3: intact is neither true nor false"),
        ("[[block]]\nfabrics = ['*.nothing']", "s.toml:2: no file is like"),
        ("[[block]]\nfabrics = ['nowhere.net']", "s.toml:2: nowhere.net: no such file"),
        ("[[block]]\nfabrics = ['ring:4']\ntimeout = 0", "s.toml:3: timeout is not a number of seconds"),
        ("[[block]]\nfabrics = ['ring:4']\ntimeout = nan", "s.toml:3: timeout is not a number of seconds"),
        ("[[block]]\nfabrics = ['ring:4']\ntimeout = true", "s.toml:3: timeout is not a number of seconds"),
        ("[[block]]\nfabrics = ['ring:4']\nrandom = '5:200%'", "s.toml:3: '5:200%' is not a sample"),
        ("[[block]]\nfabrics = ['ring:4']\nrandom = '5:99'", "s.toml:3: 99 random faults"),
        ("[[block]]\nfabrics = ['ring:4']\nrandom = '5'\nkinds = 'weather'", "weather"),
        ("[[block]]\nfabrics = ['ring:4']\nkinds = 'link'", "s.toml:3: kinds is about random cases"),
        ("[[block]]\nfabrics = ['ring:4']\nengines = 'nue:vls=99'", "s.toml:3: '99' is not a value of vls"),
        ("[[block]]\nfabrics = ['ring:4']\nfaults = 'sw9/1'", "s.toml:3: ring-4 has no device 'sw9'"),
        ("[[block]]\nfabrics = ['ring:4']\nmodes = 'quick'", "s.toml:3: 'quick' is not a mode"),
        ("[[block]]\nfabrics = ['ring:4']\n\nengines = [\n'nue',\n'dfssp']", "s.toml:4: there is no engine 'dfssp'"),
    ],
)
def test_specs_that_are_none(text, word, tmp_path, monkeypatch):
    monkeypatch.setattr(spec, "MOST", 1000)
    (tmp_path / "s.toml").write_text(text)
    assert_refused(run("--spec", tmp_path / "s.toml", "--ledger", tmp_path / "l.db"), word)
    assert not (tmp_path / "l.db").exists()


@cases_in_one_test(
    ("args", "word"),
    [
        ([], "there is nothing to do"),
        (["nowhere.net"], "no such file"),
        (["ring:4", "-e", "dfssp"], "did you mean dfsssp"),
        (["ring:4", "--fault", "sw9/1"], "sw9"),
        (["ring:4", "--shard", "9/8"], "not a shard"),
        (["ring:4", "--shard", "1/" + "9" * 5000], "not a shard"),
        (["ring:4", "--seeds", "5-1"], "not a list of seeds"),
        (["ring:4", "--seeds", "9" * 5000], "not a list of seeds"),
        (["ring:4", "--seeds", "1-99999999999"], "'1-99999999999' means over 1,000,000 seeds"),
        (["ring:4", "--links", "5"], "5 single links, and ring-4 has 4 (use all"),
        (["ring:5", "ring:4", "--switches", "5"], "5 single switches, and ring-4 has 4 (use all"),
        (["ring:4", "--links", "9" * 5000], "neither all nor a number of at most 18 digits"),
        (["ring:4", "--random", "9" * 5000], "is not a sample"),
        (["ring:4", "--random", "5:99"], "99 random faults"),
        (["ring:4", "--random", "5", "--kinds", "weather"], "weather"),
        (["ring:4", "--links", "many"], "many"),
        (["ring:4", "--kinds", "switch"], "--kinds has no effect without --random"),
        (["ring:4", "--random", "5", "--kinds", "link,group"], "a sweep draws no groups"),
        (["ring:4", "--fault", "random 1..2% link 1/1"], "ring-4 has no device 'random 1..2% link 1'"),
        (["ring:4", "--fault", "random 1e-5 link 1/1"], "no device"),
        (["ring:4", "--fault", "intact"], "ring-4 has no device 'intact'"),
        (["ring:4", "-e", "nue:vls=99"], "'99' is not a value of vls"),
        (["ring:4", "-e", "nue:vls=\u0663"], "is not a value of vls"),
        (["ring:4", "-e", "nue:effort=1_0"], "'1_0' is not a value of effort"),
        (["ring:4", "-e", "nue:vls=2,vls=4"], "vls is given twice"),
        (["ring:4", "--tolerance", "0.1"], "--tolerance has no effect without --against"),
        (["ring:4", "--executor", "pigeons"], "'pigeons' is not an executor"),
        (["ring:4", "--executor", "mpi"], "mpi"),
        (["ring:4", "--spec", "s.toml"], "FABRIC or --spec"),
        (["--spec", "s.toml", "--links", "all"], "--links cannot be combined with --spec"),
        (["--spec", "s.toml", "--seeds", "1"], "--seeds cannot be combined with --spec"),
        (["--spec", "s.toml", "-e", "lash", "--lab"], "--engine cannot be combined with --spec"),
        (["ring:4", "--timeout", "0"], "0.0 is not in the range"),
        (["ring:4", "--timeout", "inf"], "inf is not in the range"),
        (["ring:4", "--lab", "--stability", "full"], "--lab cannot be combined with --stability"),
        (["--ledger", "nowhere.db"], "no such ledger"),
        (["--ledger", "nowhere.db", "--links", "all"], "--links has no effect without fabrics"),
        (["--ledger", "nowhere.db", "--shard", "1/3"], "--shard has no effect without fabrics"),
        (["--ledger", "nowhere.db", "--timeout", "3"], "--timeout has no effect without fabrics"),
        (["--ledger", "nowhere.db", "-j", "1"], "--jobs has no effect without fabrics"),
        (["--ledger", "nowhere.db", "--executor", "mpi"], "--executor has no effect without fabrics"),
        (["ring:4", "--against", "nowhere.db"], "no such ledger"),
        (["ring:4", "--merge", "nowhere.db"], "no such ledger"),
    ],
)
def test_wrong_use(args, word, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_refused(run(*args), word)
    assert list(tmp_path.iterdir()) == []
    if "--ledger" not in args:
        assert_refused(run(*args, "--ledger", "new.db"), word if args else "no such ledger")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["--seeds", "1-999,2-999"], "means over 1,000 seeds"),
        (["--seeds", "0-999", "--links", "1"], "over 1,000 cases"),
        (["--random", "999999999"], "over 1,000 cases"),
    ],
)
def test_more_than_there_may_be(args, word, monkeypatch):
    assert spec.MOST == 1_000_000
    monkeypatch.setattr(spec, "MOST", 1000)
    assert_refused(run("ring:4", *args), word)
    assert_refused(run("ring:4", *args, "--ledger", "new.db"), word)


def test_ledgers_that_cannot_be_used(tmp_path):
    path = tmp_path / "l.db"
    with Ledger(path) as ledger:
        ledger.begin("")
        assert_refused(run("ring:4", "--ledger", path), "another run has this ledger open")
        assert_refused(run("ring:4", "--against", path), "another run has this ledger open")
        found = reported(run("ring:4", "--ledger", path, "--json"))
    assert found["message"] == "another run has this ledger open"
    assert (found["file"], found["remedy"]) == (str(path), "wait for it, or use another file")
    assert_refused(run("ring:4", "--ledger", path, "--against", path), "is the ledger of this run")
    with sqlite3.connect(path) as base:
        base.execute("PRAGMA user_version = 7")
    assert_refused(run("ring:4", "--ledger", path), "a ledger of version 7")
    assert_refused(run("ring:4", "--ledger", tmp_path / "no" / "l.db"), "folder")


def test_regressions_are_listed(tmp_path):
    args = ["ring:5", "torus:3x3", "-e", "nue:vls=4", "-e", "updn", "--links", 2, "-j", 1]
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    assert run(*args, "--ledger", old).exit_code == 0
    result = run(*args, "--ledger", new, "--against", old)
    assert result.exit_code == 0
    assert "compared   12 same, 0 better, 0 with other tables, 0 worse; 0 only before, 0 only now" in result.stdout
    with sqlite3.connect(old) as base:
        (first,), (second,), (third,), (fourth,) = base.execute("SELECT task FROM results LIMIT 4").fetchall()
        base.execute("UPDATE results SET tables = 'other' WHERE task = ?", (first,))
        base.execute("UPDATE results SET a2a = a2a * 1.2 WHERE task = ?", (second,))
        base.execute("UPDATE results SET vls_needed = vls_needed - 1 WHERE task = ?", (third,))
    with sqlite3.connect(new) as base:
        base.execute("UPDATE results SET outcome = 'wrong', error = 'loop' WHERE task = ?", (fourth,))
    result = run(*args, "--ledger", new, "--against", old, "--json")
    assert result.exit_code == 1
    worse = {entry["id"]: entry["property"] for entry in reported(result)["comparison"]["regressions"]}
    assert worse == {first: "tables", second: "all_to_all", third: "vls", fourth: "outcome"}
    assert run(*args, "--ledger", new, "--against", old).stdout.count("worse: ") == 4


def test_cases_that_take_too_long(tmp_path):
    args = ["torus:4x4", *FAST, "--links", 2, "-j", 1, "--ledger", tmp_path / "l.db"]
    result = run(*args, "--timeout", "1e-3")
    assert result.exit_code == 1
    assert "certified  0 of 3" in result.stdout
    assert "timed out: torus-4x4 updn: intact: took longer than 0.001 s" in result.stdout
    again = reported(run(*args, "--timeout", AMPLE, "--json"))
    assert (again["cases_run"], again["cases_certified"], again["cases"]) == (3, 3, 3)
    assert reported(run(*args, "--json"))["cases_run"] == 0


def test_errors_are_done_again_when_asked_and_kept_until_then(tmp_path):
    path = tmp_path / "l.db"
    args = ["ring:4", *FAST, "--links", 2, "-j", 1, "--ledger", path]
    assert run("ring:5", *args).exit_code == 0
    with sqlite3.connect(path) as base:
        base.execute("UPDATE results SET outcome = 'error', error = 'worker' WHERE fault = 'intact'")
    kept = run(*args)
    assert kept.exit_code == 1
    assert "error: ring-4 updn: intact: worker" in kept.stdout
    again = reported(run(*args, "--retry-errors", "--json"))
    assert (again["cases_run"], again["cases_certified"]) == (1, 3)
    rest = run("--ledger", path)
    assert "certified  5 of 6" in rest.stdout
    assert "error: ring-5 updn: intact: worker" in rest.stdout
    assert_refused(run("--ledger", path, "--retry-errors"), "there is nothing to do")


def start(python, *args):
    return python("-m", "routing.cli", "sweep", *args)


def test_a_run_that_is_killed_goes_on(python, tmp_path):
    """No result is lost or counted twice, no process is left, and the ledger is free at once."""
    path = tmp_path / "l.db"
    args = [
        "torus:4x4",
        "-e",
        "nue:effort=0",
        "-e",
        "updn:effort=0",
        "--links",
        "all",
        "--random",
        "60:3",
        "--ledger",
        path,
        "-j",
        "2",
    ]
    first = start(python, *args)
    journal = tmp_path / "l.db-wal"
    until(lambda: first.poll() is not None or (journal.exists() and journal.stat().st_size > 20_000))
    workers = below(first.pid)
    assert workers
    first.kill()
    first.wait()
    with Ledger(path) as ledger:
        some = len(ledger.done())
    assert 0 < some < 186
    again = start(python, *args)
    out, err = again.communicate()
    assert (again.returncode, err) == (0, "")
    assert f"{some} were in the ledger" in out
    assert "certified  186 of 186" in out
    for pid in workers:
        assert not is_ours(pid)


def below(pid):
    """Return the processes below a process."""
    found, waiting = set(), [pid]
    while waiting:
        parent = waiting.pop()
        for path in Path(f"/proc/{parent}/task").glob("*/children"):
            with contextlib.suppress(OSError):  # threads begin and end meanwhile
                waiting += map(int, path.read_text().split())
        found.add(parent)
    return found - {pid}


def is_ours(pid):
    try:
        return b"forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.mark.parametrize(("number", "word"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "ended by SIGTERM")])
def test_ctrl_c_keeps_what_is_done(python, tmp_path, number, word):
    path = tmp_path / "l.db"
    run_ = start(python, "torus:4x4", "-e", "nue", "--random", "2000:3", "--ledger", path, "-j", "2")
    journal = tmp_path / "l.db-wal"
    until(lambda: run_.poll() is not None or (journal.exists() and journal.stat().st_size > 20_000))
    run_.send_signal(number)
    out, err = run_.communicate()
    with Ledger(path) as ledger:
        done = len(ledger.done())
    assert done
    how = f"{path} has the results of {done} of 2001 cases; the same command continues"
    assert (run_.returncode, out, err.strip()) == (128 + number, "", f"ibnue: {word} ({how})")


def test_interrupted_it_leaves_no_folders(python, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    run_ = start(python, "torus:4x4", "-e", "nue", "--random", "2000:3", "--timeout", str(AMPLE), "-j", "2")
    until(lambda: run_.poll() is not None or len(list(tmp_path.glob("ibnue-sweep-*/ibnue-sweep-*"))) >= 2)
    run_.send_signal(signal.SIGINT)
    _, err = run_.communicate()
    assert run_.returncode == 130
    assert "no case is stored: --ledger FILE stores the cases" in err
    until(lambda: not list(tmp_path.glob("ibnue-sweep-*")))


def test_progress_on_a_terminal(tmp_path):
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(Path(routing.__file__).parents[1]), "TERM": "xterm", "COLUMNS": "99"}
    command = [sys.executable, "-m", "routing.cli", "sweep", "torus:4x4", "-e", "nue", "--links", "all", "-j", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment, cwd=tmp_path) as run_:
        os.close(theirs)
        seen = b""
        try:
            while part := os.read(ours, 4096):
                seen += part
        except OSError:
            pass  # the other end is closed
        assert run_.wait() == 0
    os.close(ours)
    assert b"/33" in seen
    assert b"/s" in seen
    assert b"0:00:" in seen


def test_classes_of_end_ports_make_other_cases(tmp_path):
    """Tables depend on the weights, so the ledger has both cases.  Rules that equal the default rules make no new
    case.
    """
    words = ["rails:2x3x4,3,speed=EDR", "-e", "updn", "-j", 1, "--ledger", tmp_path / "l.db"]
    storage = ["--class", "storage=storage*"]
    assert reported(run(*words, *storage, "--class-weight", "storage=1:8", "--json"))["cases_run"] == 1
    assert reported(run(*words, *storage, "--class-weight", "storage=1:8", "--json"))["cases_run"] == 0
    assert reported(run(*words, "--json"))["cases_run"] == 1
    assert reported(run(*words, "--class", "compute=compute*", "--json"))["cases_run"] == 0
    with Ledger(tmp_path / "l.db", read_only=True) as book:
        assert len({record.task.digest for record in book.records()}) == 2
    assert_refused(run("--ledger", tmp_path / "l.db", *storage), "--class", "fabrics")
