"""Check ``ibnue whatif``, and the options for faults of other commands, from the command line."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_runs import assert_refused, run
from waiting import until

import ibsim_fixtures
import routing
from routing.sweep.cases import faults_of
from routing.topologies import generate
from routing.whatif import bridges_and_cut_switches


def records(*args):
    result = run("whatif", *args, "--json")
    assert result.stderr == ""
    return result.exit_code, json.loads(result.stdout)["scenarios"]


def test_every_link_is_what_no_packet_has_to_ask_for():
    status, reported = records("torus:3x3", "-e", "nue")
    assert (status, len(reported)) == (0, 18)
    first = reported[0]
    assert first["faults"] == ["sw0.0/2 - sw2.0/3"]
    assert first["entries_changed"] >= first["entries_broken"] > 0 and first["cut_off"] == []
    assert all(record["certified"] and record["connected"] and record["limits_exceeded"] == [] for record in reported)


def test_choices_come_one_after_the_other(tmp_path):
    faults = tmp_path / "faults.txt"
    faults.write_text("sw0.1\ngroup card: sw0.0/1-2\n")
    choice = ["-e", "nue", "--links", 2, "--switches", "all", "--cas", 1, "--random", "2:3", "--random", "1:50%"]
    status, reported = records("torus:3x3", *choice, "--kinds", "link", "--fault", "sw0.0/2", "--list", faults)
    assert status == 0
    kinds = [record["kind"] for record in reported]
    assert kinds == ["link"] * 2 + ["switch"] * 9 + ["ca"] + ["link"] * 4 + ["switch", "group"]
    assert [len(record["faults"]) for record in reported] == [1] * 12 + [3, 3, 9, 1, 1, 1]


def test_processes_and_runs_print_the_same_bytes():
    words = ["whatif", "torus:3x3", "-e", "nue", "--links", "all", "--random", "5:2", "--effort", 0.05, "--json"]
    one, two, again = (run(*words, "-j", jobs).stdout for jobs in (1, 2, 2))
    assert one == two == again
    assert len(json.loads(one)["scenarios"]) == 23


def test_the_summary_names_what_matters():
    result = run("whatif", "mesh:4,cas=1", "-e", "updn", "--links", "all", "--switches", "all", "-j", 1)
    assert result.exit_code == 0
    reported = " ".join(result.stdout.split())
    links, switches = bridges_and_cut_switches(generate("mesh", ["4"], cas=1))
    assert (len(links), switches) == (3, [1, 2])
    assert "bridges 3: sw0/3 - sw1/2, sw1/3 - sw2/2, sw2/3 - sw3/2" in reported
    assert "cut switches 2: sw1, sw2" in reported
    assert "connected after 0 of 7 scenarios" in reported
    assert "certified after 7 of 7 scenarios" in reported
    assert "hurts most switch sw1; link sw1/3 - sw2/2" in reported
    ranked = [line.split()[0] for line in result.stdout.splitlines() if line.startswith(" sw")]
    assert ranked[:2] == ["sw1", "sw2"]


def test_limits_of_a_site():
    ring = ["whatif", "ring:4,cas=1", "-j", 1]
    assert run(*ring, "--require", "connected", "--require", "certified").exit_code == 0
    lossy = run(*ring, "--max-loss", 0.0)
    assert lossy.exit_code == 1
    assert "beyond max-loss: sw0/" in lossy.stdout
    split = run(*ring, "--random", "1:2", "--require", "connected")
    assert split.exit_code == 1
    assert "beyond connected: " in split.stdout
    status, reported = records("torus:4x4", "-e", "minhop", "--links", 2, "--require", "certified")
    assert status == 1
    assert [record["limits_exceeded"] for record in reported] == [["certified"]] * 2
    assert records("torus:4x4", "-e", "minhop", "--links", 2)[0] == 0


def test_losses_stand_beside_those_of_a_fresh_run():
    words = ["random-regular:16,4", "-e", "nue", "--stability", "full", "--links", 3]
    _, reported = records(*words, "--beside-fresh")
    _, fresh = records(*words[:-3], "fresh", *words[-2:])
    for beside, alone in zip(reported, fresh, strict=True):
        for loss in ("all_to_all_loss", "bisection_loss"):
            assert beside[f"fresh_{loss}"] == alone[loss] and alone[f"fresh_{loss}"] is None
    text = run("whatif", *words, "--beside-fresh", "-j", 1).stdout
    head, _, first = filter(None, text.splitlines()[:4])
    assert head.split()[-5:] == ["a2a", "loss", "bisection", "loss", "fresh"]
    most = max(reported, key=lambda record: record["all_to_all_loss"])
    wanted = [f"{100 * most[key]:.1f}" for key in ("all_to_all_loss", "bisection_loss", "fresh_all_to_all_loss")]
    assert first.split("repaired")[1].replace("%", "").split()[-3:] == wanted
    assert f"\nfresh         loss {100 * sum(r['all_to_all_loss'] for r in fresh) / 3:.1f} % mean, " in text
    assert f"\nbisection     loss {100 * sum(r['bisection_loss'] for r in reported) / 3:.1f} % mean, " in text
    assert "fresh" not in run("whatif", *words, "-j", 1).stdout
    refused = run("whatif", "torus:3x3", "--stability", "fresh", "--beside-fresh")
    assert_refused(refused, "--beside-fresh has no effect with --stability fresh")


def test_long_lists_of_names_are_cut():
    words = ["torus:4x4", "-e", "nue", "--random", "2:50%", "--random", "2:25", "--max-loss", 0.0]
    _, reported = records(*words)
    text = run("whatif", *words, "-j", 1).stdout
    assert [len(record["faults"]) for record in reported] == [16, 16, 25, 25]
    # the row "hurts most" has one name of each kind
    assert all(line.count(" - ") <= 4 * 3 for line in text.splitlines())
    flat = " ".join(text.split())
    for record in reported[:3]:
        names = record["faults"]
        assert f"beyond max-loss: {', '.join(names[:3])} ... and {len(names) - 3} more" in flat
    assert "% most: " in flat
    assert flat.split("hurts most ")[1].split(" seconds")[0].endswith("... and 22 more")
    assert len(max(text.splitlines(), key=len)) <= 200


def test_faults_together(tmp_path):
    faults = tmp_path / "faults.txt"
    faults.write_text("sw1/2\n")
    _, (record,) = records("mesh:4,cas=1", "-e", "updn", "--fault", "sw2/3", "--list", faults, "--together")
    assert record["faults"] == ["sw2/3 - sw3/2", "sw0/3 - sw1/2"]
    assert (record["parts"], record["connected"]) == (3, False)


def test_groups_fall_together(tmp_path):
    cards = tmp_path / "cards.txt"
    cards.write_text("group a: sw0.0/2-3\ngroup b: sw1.1, sw1.2\nsw2.2/2\n")
    _, reported = records("torus:3x3", "-e", "updn", "--random", "3:2", "--kinds", "group", "--groups", cards)
    assert {kind for record in reported for kind in record["kind"].split("+")} <= {"group", "link"}
    assert all(len(record["faults"]) == 2 for record in reported)
    assert_refused(run("whatif", "torus:3x3", "--random", "1", "--kinds", "group"), "there are no groups to draw from")


def test_tables_that_are_in_the_switches(tmp_path):
    assert run("route", "torus:3x3", "-e", "updn", "--seed", 5, "-o", tmp_path / "tables").exit_code == 0
    fresh = ["torus:3x3", "-e", "updn", "--seed", 5, "--links", 3]
    assert records(*fresh, "--tables", tmp_path / "tables") == records(*fresh)
    other = run("whatif", "torus:3x3", "--tables", tmp_path / "none")
    assert_refused(other, "none: there is no such")


def test_tables_are_repaired_by_the_engine_that_made_them(tmp_path):
    """Without -e, the engine is chosen as in ``ibnue route --previous``.  Another engine is refused, and so are tables
    with more VLs.
    """
    assert run("route", "torus:3x3", "-e", "nue", "-o", tmp_path / "tables").exit_code == 0
    reported = ["torus:3x3", "--tables", tmp_path / "tables", "--links", 1]
    assert "engine        nue, " in run("whatif", *reported).stdout
    assert records(*reported) == records(*reported, "-e", "nue")
    shown = run("whatif", *reported, "-j", 1).stdout
    assert f"repairs       by ibnue's engine nue, balanced, of {tmp_path / 'tables'} (made by nue); another" in shown
    assert_refused(run("whatif", *reported, "-e", "updn"), "the tables of --tables are those of nue, not of updn")
    assert_refused(run("whatif", *reported, "--vls", 2), "the tables of --tables use 8 VLs, --vls allows 2")
    assert records(*reported, "-e", "updn", "--stability", "fresh")[0] == 0


def test_a_root_may_be_what_breaks():
    """If a root is lost, the other roots are used."""
    status, reported = records("torus:3x3", "--root", "sw1.1", "--switches", "all", "--stability", "fresh")
    assert status == 0
    assert {record["method"] for record in reported} == {"fresh"}
    assert all(record["certified"] for record in reported)


def test_tables_with_a_loop_are_for_an_engine_that_may_have_one(tmp_path):
    assert run("route", "ring:5", "-e", "minhop", "-o", tmp_path / "tables").exit_code == 1
    dump = ["ring:5", "--tables", tmp_path / "tables" / "opensm-lfts.dump", "--links", 1]
    assert records("ring:5", "--tables", tmp_path / "tables", "--links", 1)[0] == 0
    refused = run("whatif", *dump)
    assert refused.exit_code == 1
    assert refused.stderr == (
        "ibnue: the tables have a credit loop of 5 channels on VL 0, closed by requests, and auto repairs no loops"
        " (ibnue check says more)\n"
    )
    assert records(*dump, "-e", "minhop")[0] == 0


def test_tables_with_holes_are_refused(tmp_path):
    assert run("route", "ring:5", "-o", tmp_path / "tables").exit_code == 0
    dump = tmp_path / "tables" / "opensm-lfts.dump"
    lines = dump.read_text().splitlines(keepends=True)
    missing = next(row for row, line in enumerate(lines) if line.startswith("0x0006 "))
    (tmp_path / "holes.dump").write_text("".join(lines[:missing] + lines[missing + 1 :]))
    refused = run("whatif", "ring:5", "--tables", tmp_path / "holes.dump")
    assert refused.exit_code == 1
    assert "the tables leave out routes: " in refused.stderr


def test_a_share_is_at_least_one_thing():
    """At least one fault is drawn, even if one percent of the fabric is less than one part.  The faults equal the
    faults of a sweep.
    """
    _, reported = records("torus:3x3", "-e", "nue", "--random", "3:1%", "--random", "2:0.5%", "--kinds", "switch,link")
    assert [len(record["faults"]) for record in reported] == [1] * 5
    fabric = generate("torus", ["3x3"])
    for number in range(3):
        swept = faults_of(f"random 1% switch,link 1/{number}", fabric)
        assert reported[number]["faults"] == [str(fault) for fault in swept]
    assert records("mesh:1", "--random", "3:1%") == (0, [])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--links", "some"], "'some' is neither all nor a number"),
        (["--random", "3:x"], "'3:x' is not a sample"),
        (["--random", "3:500%"], "'3:500%' is not a sample"),
        (["--together"], "--together has no effect without --fault or --list"),
        (["--json", "--worst", "3"], "--worst has no effect with --json, which has every scenario"),
        (["--kinds", "switch", "--links", "1"], "--kinds has no effect without --random"),
        (["--groups", "cards.txt"], "--groups has no effect without --random"),
        (["--random", "3", "--groups", "cards.txt"], "--groups has no effect without --kinds group (add --kinds group"),
        (["--kinds", "cable"], "'cable' is not one of link, ca-link"),
        (["--random", "1:99"], "99 random faults, and torus-3x3 has 18"),
        (["--random", "1000001"], "1000001 scenarios (use 0 to 1,000,000)"),
        (["--random", "9" * 5000], "is not a sample"),
        (["--links", "9" * 5000], "neither all nor a number of at most 18 digits"),
        (["--links", "99"], "99 random faults"),
        (["--fault", "sw0.9/1"], "no device 'sw0.9' (did you mean sw0."),
        (["--fault", "sw0.0/1 - sw0.1/1"], "there is no link"),
        (["--list", "/nowhere"], "/nowhere: there is no such file"),
        (["--jobs", "0"], "0 is not in the range"),
        (["-e", "none"], "there is no engine"),
    ],
)
def test_invalid_options_are_refused(words, expected):
    assert_refused(run("whatif", "torus:3x3", *words), expected)


def test_a_list_names_its_line(tmp_path):
    faults = tmp_path / "faults.txt"
    faults.write_text("sw0.0/2\n# a comment\nsw0.0/22\n")
    for words in (["whatif", "torus:3x3", "--list", faults], ["route", "torus:3x3", "--faults", faults]):
        assert_refused(run(*words), "faults.txt:3: sw0.0 has no port 22 (its ports are 1 to")


@pytest.mark.parametrize("text", ["", "# a comment\n\n"])
def test_a_list_of_nothing_is_no_list(text, tmp_path):
    faults = tmp_path / "faults.txt"
    faults.write_text(text)
    for words in ([], ["--together"], ["--fault", "sw0.0/2"]):
        assert_refused(run("whatif", "torus:3x3", "--list", faults, *words), "faults.txt: names no fault (")


ONE_SWITCH = Path(ibsim_fixtures.__file__).parent / "fabrics" / "single-switch.net"


@pytest.mark.parametrize("words", [[ONE_SWITCH], ["ring:4", "--links", 0], ["ring:4", "--random", 0]])
def test_nothing_to_break_is_reported(words):
    result = run("whatif", *words, "-e", "updn", "-j", 1)
    assert result.exit_code == 0, result.output
    assert "scenarios     none: no faults were asked for" in result.stdout
    assert records(*words, "-e", "updn", "-j", 1) == (0, [])


def test_other_commands_take_faults_too(tmp_path):
    faults = tmp_path / "faults.txt"
    faults.write_text("sw0.0/2\n")
    result = run(
        "fabric", "torus", "3x3", "--fail", "sw1.1", "--faults", faults, "-o", tmp_path / "less.json", "--json"
    )
    reported = json.loads(result.stdout)
    assert (reported["fabric"]["switches"], reported["switch_links"]) == (8, 13)
    words = "--fail", "sw1.1", "--faults", faults
    routed = json.loads(run("route", "torus:3x3", "-e", "updn", *words, "--json").stdout)
    assert routed["fabric"]["digest"] == reported["fabric"]["digest"]
    assert routed["certified"]
    assert_refused(run("fabric", "torus", "3x3", "--fail", "sw7"), "no device 'sw7'")


def start(*args, **pipes):
    found = os.pathsep.join([str(Path(routing.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    words = ["env", "--default-signal=INT", sys.executable, "-m", "routing.cli", "whatif", *args]
    return subprocess.Popen(
        words, stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": found}, start_new_session=True, **pipes
    )


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def cpu_ticks(pid):
    """Return the clock ticks of CPU time that a process has used in user mode."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_it_leaves_nothing_behind(ending):
    words = ["torus:4x4x4", "-e", "nue", "--random", "20000", "-j", "2", "--json"]
    process = start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: len(children(process.pid)) == 2)
        workers = children(process.pid)
        until(lambda: all(cpu_ticks(worker) > 5 for worker in workers))  # the workers have begun their work
        process.send_signal(ending)
        output, complaint = process.communicate()
    finally:
        process.kill()
    assert process.returncode == (130 if ending == signal.SIGINT else -signal.SIGKILL)
    assert complaint.lstrip() == ("ibnue: interrupted\n" if ending == signal.SIGINT else "")
    assert (json.loads(output)["exit_status"] == 130) if ending == signal.SIGINT else output == ""
    until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


def test_progress_shows_on_a_terminal_alone():
    terminal, ours = pty.openpty()
    process = start("torus:3x3", "-e", "nue", "-j", "1", stdout=subprocess.PIPE, stderr=ours)
    os.close(ours)
    seen = b""
    try:
        while chunk := os.read(terminal, 4096):
            seen += chunk
    except OSError:  # the other end is closed
        pass
    out, _ = process.communicate()
    os.close(terminal)
    assert process.returncode == 0
    assert b"breaking" in seen
    assert b"/18" in seen
    assert b"breaking" not in out
    assert b"hurts most" in out


def test_weak_spots_of_one_name_go_by_guid(tmp_path):
    nets = [
        'Switch 4 "a" # "x"\n[1] "b"[1]',
        'Switch 4 "b" # "x"\n[1] "a"[1]\n[2] "c"[1]',
        'Switch 4 "c" # "x"\n[1] "b"[2]',
    ]
    (tmp_path / "f.net").write_text("\n\n".join(nets) + "\n")
    assert (
        "cut switches  1: x (0x0000000000200001)\n" in run("whatif", tmp_path / "f.net", "-e", "updn", "-j", 1).stdout
    )
