"""Check the commands route, check, quality and diff from the command line."""

import ast
import json
import re
import shutil
import signal

import numpy as np
import pytest
from command_runs import assert_refused, run
from waiting import until

import ibnue
import routing.deadlock.proof
import routing.publish
import routing.reroute.verify
from routing.deadlock.proof import prove
from routing.formats import table_files


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with a fabric and its tables, of which each test gets a copy."""
    folder = tmp_path_factory.mktemp("made")
    assert run("fabric", "torus", "4x4", "-o", folder / "torus.net").exit_code == 0
    assert run("route", folder / "torus.net", "-o", folder / "updn").exit_code == 0
    return folder


@pytest.fixture
def torus(made, tmp_path):
    return shutil.copy(made / "torus.net", tmp_path / "torus.net")


@pytest.fixture
def routed(made, tmp_path):
    return shutil.copytree(made / "updn", tmp_path / "updn")


def test_route_writes_proven_tables(torus, tmp_path):
    result = run("route", torus, "-e", "updn", "-o", tmp_path / "out", "--json")
    assert result.exit_code == 0
    assert result.stderr == ""
    reported = json.loads(result.stdout)
    assert reported["certified"]
    assert (reported["vls_needed"], reported["vls"]) == (1, 8)
    assert reported["credit_loop"] is None
    assert sorted(reported["files"]) == sorted(str(path) for path in (tmp_path / "out").iterdir())
    assert {"read", "route", "prove", "write", "measure"} == set(reported["phase_seconds"])


def test_files_that_are_too_large_are_named(torus, tmp_path, monkeypatch):
    written = run("route", torus, "-e", "updn", "-o", tmp_path / "all")
    assert "not written" not in written.stdout
    size = (tmp_path / "all" / "opensm-path-records.dump").stat().st_size
    monkeypatch.setattr(table_files, "AUTO_BYTES", size // 2)
    shown = " ".join(run("route", torus, "-e", "updn", "-o", tmp_path / "few").stdout.split())
    assert not (tmp_path / "few" / "opensm-path-records.dump").exists()
    assert "not written " in shown and "opensm-path-records.dump: over " in shown
    formats = ast.literal_eval(re.search(r"tables.write\(DIR, formats=(\[.*?\])\)", shown)[1])
    ibnue.route(torus, "updn").write(tmp_path / "more", formats=formats)
    assert {path.name for folder in ("few", "more") for path in (tmp_path / folder).iterdir()} == {
        path.name for path in (tmp_path / "all").iterdir()
    }


def test_route_without_a_folder_writes_nothing(torus, tmp_path):
    result = run("route", torus)
    assert result.exit_code == 0
    assert "credit loops" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["torus.net"]


def test_a_loop_that_was_not_promised_away_is_named_and_written(torus, tmp_path):
    result = run("route", torus, "-e", "minhop", "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "credit loop of 4 channels on VL 0" in result.stdout
    assert "sw0.0 port" in result.stdout
    assert (tmp_path / "out" / "ibnue.npz").exists()
    again = run("check", torus, tmp_path / "out", "--json")
    assert again.exit_code == 1
    turns = json.loads(again.stdout)["credit_loop"]
    for turn, following in zip(turns, [*turns[1:], turns[0]], strict=True):
        assert turn["peer_guid"] == following["switch_guid"]
        assert turn["traffic"]["destination"]


def test_route_prints_why_replies_may_be_unsafe():
    row = "replies       not ensured on the request's SL: some paths and their reply paths use opposite sides of a ring"
    for options, expected in (((), True), (("--reversible",), False)):
        done = run("route", "torus:6x5,cas=2", "-e", "torus-2qos", *options)
        assert done.exit_code == 0 and (row in done.stdout.splitlines()) == expected


def test_a_loop_between_switches_takes_one_line_and_is_no_finding(tmp_path):
    result = run("route", "kary-ntree:2,3", "-e", "minhop", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "from or to CAs and routers (reversible certificate)" in result.stdout
    assert result.stdout.count("only with switch-to-switch traffic there is a credit loop of") == 1
    reported = json.loads(run("check", "kary-ntree:2,3", tmp_path / "out", "--require", "reversible", "--json").stdout)
    assert (reported["ok"], reported["strength"], reported["scope"]) == (True, "reversible", "endports")
    assert reported["bundle_certificate"] == "valid"
    assert reported["credit_loop"] is reported["reversible_loop"] is None
    turns = reported["switch_loop"]
    for turn, following in zip(turns, [*turns[1:], turns[0]], strict=True):
        assert turn["peer_guid"] == following["switch_guid"]
    output = next(line for line in result.stdout.splitlines() if line.startswith("only with"))
    assert f"{turns[0]['switch_name']} port {turns[0]['port']}, " in output


def test_a_certificate_says_no_more_than_its_scope(tmp_path):
    run("route", "kary-ntree:2,3", "-e", "minhop", "-o", tmp_path / "out")

    def widen(arrays):
        meta = json.loads(str(arrays["meta"][()]))
        assert meta.pop("scope") == "endports"
        arrays["meta"] = np.array(json.dumps(meta))

    rewritten(tmp_path / "out" / "ibnue.npz", tmp_path / "wide.npz", widen)
    assert "NOT valid" in run("check", "kary-ntree:2,3", tmp_path / "wide.npz").stdout


def test_a_broken_promise_is_never_written(torus, tmp_path, monkeypatch):
    from routing.engines import ENGINES  # noqa: PLC0415
    from routing.engines.base import Promise  # noqa: PLC0415

    minhop = ENGINES["minhop"]

    class Liar:
        name, summary, promise = "liar", "promises what it does not keep", Promise.DEADLOCK_FREE
        route = staticmethod(minhop.route)

    monkeypatch.setattr("routing.cli.route.ENGINES", {**ENGINES, "liar": Liar()})
    assert_refused(run("route", torus, "-e", "liar", "-o", tmp_path / "out"), "liar", "credit loop", status=1)
    assert not (tmp_path / "out").exists()


def test_check_accepts_a_folder_a_bundle_and_dumps(torus, routed):
    assert run("check", torus, routed).exit_code == 0
    assert run("check", torus, routed / "ibnue.npz").exit_code == 0
    dumped = run("check", torus, routed / "opensm-lfts.dump")
    assert dumped.exit_code == 0
    assert "none, whatever SLs and VLs packets use" in dumped.stdout


def test_check_does_not_trust_the_certificate_of_a_bundle(torus, routed, tmp_path):
    assert "in the bundle: verified" in run("check", torus, routed).stdout
    rewritten(
        routed / "ibnue.npz", tmp_path / "false.npz", lambda arrays: arrays.update(order=arrays["order"][:, ::-1])
    )
    result = run("check", torus, tmp_path / "false.npz")
    assert result.exit_code == 1
    assert "NOT valid" in result.stdout
    assert "credit loops  none" in result.stdout


def test_check_says_how_many_vls_types_of_messages_take(torus, routed):
    """Tables of Up*/Down* need one VL, and are distributed over several VLs here.  Each message type needs a copy of
    these VLs.
    """
    assert run("route", torus, "--vls", "2", "-o", routed / "two").exit_code == 0
    result = run("check", torus, routed / "two", "--message-types", 3)
    assert result.exit_code == 0
    assert "message types  3 need 6 VLs, 2 each; ports with 8 data VLs are enough" in result.stdout
    reported = json.loads(run("check", torus, routed / "two", "--message-types", 3, "--json").stdout)["message_types"]
    assert reported == {"types": 3, "vls_each": 2, "vls_needed": 6, "port_vls": 8, "strict": 1, "wide": 3}
    many = run("check", torus, routed / "two", "--message-types", 8)
    assert many.exit_code == 1
    assert "8 need 16 VLs, 2 each: MORE than the 15" in many.stdout


def test_no_number_of_vls_makes_up_for_a_credit_loop(tmp_path):
    assert run("route", "ring:5", "-e", "minhop", "-o", tmp_path / "loop").exit_code == 1
    result = run("check", "ring:5", tmp_path / "loop", "--message-types", 2)
    assert result.exit_code == 1
    assert "message types  NO number of VLs is enough" in result.stdout


def test_check_names_what_is_not_delivered(torus, routed, tmp_path):
    lines = (routed / "opensm-lfts.dump").read_text().splitlines()
    entry = next(number for number, line in enumerate(lines) if line.startswith("0x0014"))
    lines[entry] = lines[entry].replace(lines[entry].split()[1], "255", 1)
    (tmp_path / "cut.dump").write_text("\n".join(lines) + "\n")
    result = run("check", torus, tmp_path / "cut.dump")
    assert result.exit_code == 1
    assert "(LID 20): sw" in result.stdout
    assert "has no route" in result.stdout


def test_split_fabrics_are_an_exception_by_name(tmp_path):
    one = run("fabric", "ring", 4, "-o", tmp_path / "f.net")
    assert one.exit_code == 0
    text = (tmp_path / "f.net").read_text()
    lonely = '\nSwitch 4 "lonely"\n[1] "host"[1]\n\nCa 1 "host"\n[1] "lonely"[1]\n'
    (tmp_path / "f.net").write_text(text + lonely)
    result = run("route", tmp_path / "f.net", "-e", "updn", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "2 parts that are not connected" in result.stdout
    assert "in another part of the fabric" in result.stdout


def test_quality_and_diff(torus, routed, tmp_path):
    assert run("route", torus, "-e", "minhop", "-o", tmp_path / "minhop").exit_code == 1
    measured = json.loads(run("quality", torus, routed, "--links", 3, "--json").stdout)
    assert measured["pairs_lost"] == 0
    assert measured["busiest_channels"][0]["load"] == measured["load_max"]
    same = run("diff", routed, routed / "ibnue.npz")
    assert same.exit_code == 0
    differ = run("diff", routed, tmp_path / "minhop", "--fabric", torus, "--json")
    assert differ.exit_code == 1
    reported = json.loads(differ.stdout)
    assert 0 < reported["entries_changed"] < reported["entries"]
    assert reported["load_max_before"] == measured["load_max"]
    for text in (run("quality", torus, routed).stdout, run("diff", routed, tmp_path / "minhop").stdout):
        assert "switch" in text or "hops" in text


WRONG_FABRICS = {
    "cut short": ('Switch 4 "a"\n[1] "b"[1]\n\nSwitch 4 "b"\n[1] "a', "5"),
    "no fabric at all": ("to be or not to be\n", ""),
    "port used twice": ('Switch 4 "a"\n[1] "b"[1]\n[1] "b"[2]\n\nSwitch 4 "b"\n[1] "a"[1]\n', ""),
    "ends disagree": ('Switch 4 "a"\n[1] "b"[1]\n\nSwitch 4 "b"\n[1] "a"[2]\n', ""),
    "name twice": ('Switch 4 "a"\n[1] "b"[1]\n\nSwitch 4 "a"\n\nSwitch 4 "b"\n', "a"),
    "GUID twice": (
        'switchguid=0x10\nSwitch 4 "a"\n[1] "b"[1]\n\nswitchguid=0x10\nSwitch 4 "b"\n[1] "a"[1]\n', "GUID"
    ),
    "bytes": ("\x00\x01\x02\n", ""),
    "empty": ("", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_FABRICS)
def test_wrong_fabric_files(name, tmp_path):
    text, reported = WRONG_FABRICS[name]
    (tmp_path / "wrong.net").write_text(text)
    assert_refused(run("route", tmp_path / "wrong.net", "-o", tmp_path / "out"), "wrong.net", reported)
    assert [path.name for path in tmp_path.iterdir()] == ["wrong.net"]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--root", "nowhere"], "nowhere"),
        (["--root", "0x1234567"], "0x1234567"),
        (["--root-guid-file", "/nonexistent/roots"], "/nonexistent/roots"),
        (["--guid2lid", "/nonexistent/guid2lid"], "/nonexistent/guid2lid"),
        (["--effort", "much"], "--effort"),
        (["--budget", "0"], "--budget"),
        (["--budget", "0.00001"], "too short"),
        (["--budget", "5", "--effort", "2"], "--effort and --budget"),
        (["-e", "updm"], "updn"),
        (["--vls", "0"], "--vls"),
        (["--vls", "16"], "--vls"),
        (["--lmc", "8"], "--lmc"),
        (["--passes", "-1"], "--passes"),
        (["--no-verify"], "--no-verify"),
    ],
)
def test_wrong_options(torus, tmp_path, args, expected):
    assert_refused(run("route", torus, *args, "-o", tmp_path / "out"), expected)
    assert not (tmp_path / "out").exists()


def test_a_budget_is_effort_and_no_clock(torus):
    paid = json.loads(run("route", torus, "--budget", "2", "--json").stdout)
    effort = paid["options"]["effort"]
    assert 0.4 < effort < 0.5
    output = json.loads(run("route", torus, "--effort", effort, "--json").stdout)
    assert output["options"] == paid["options"]
    assert output["quality"] == paid["quality"]


def test_output_that_cannot_be_written(torus, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    before = sorted(tmp_path.rglob("*"))
    route = "route", torus, "-e", "updn", "-o"
    assert_refused(run(*route, tmp_path / "full" / "letter.txt" / "where"), "letter.txt")
    assert_refused(run(*route, tmp_path / "full"), "letter.txt")
    assert_refused(run(*route, torus), "torus.net")
    assert sorted(tmp_path.rglob("*")) == before


def rewritten(bundle, target, change):
    with np.load(bundle, allow_pickle=False) as archive:
        arrays = dict(archive)
    change(arrays)
    with target.open("wb") as file:
        np.savez(file, **arrays)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda arrays: arrays.update(extra=np.zeros(3)), "extra"),
        (lambda arrays: arrays.pop("lft"), "lft"),
        (lambda arrays: arrays.update(lft=arrays["lft"][:, :-1]), ""),
        (lambda arrays: arrays.update(lft=arrays["lft"].astype(np.int64)), "lft"),
        (lambda arrays: arrays.update(sl=arrays["sl"] + 16), "sl"),
        (lambda arrays: arrays.update(format=np.array("ibnue-bundle/99")), "ibnue-bundle/99"),
        (lambda arrays: arrays.update(meta=np.array({"a": 1}, dtype=object)), ""),
    ],
)
def test_wrong_bundles(torus, routed, tmp_path, change, expected):
    rewritten(routed / "ibnue.npz", tmp_path / "wrong.npz", change)
    for command in (("check", torus), ("quality", torus), ("diff", routed)):
        assert_refused(run(*command, tmp_path / "wrong.npz"), "wrong.npz", expected)


def test_a_bundle_cut_short_or_for_another_fabric(torus, routed, tmp_path):
    (tmp_path / "cut.npz").write_bytes((routed / "ibnue.npz").read_bytes()[:-100])
    assert_refused(run("check", torus, tmp_path / "cut.npz"), "cut.npz")
    assert_refused(run("check", "ring:6", routed), "another fabric")
    assert_refused(run("check", torus, tmp_path / "nothing"), "nothing")
    assert_refused(run("check", tmp_path / "nothing", routed), "nothing")
    (tmp_path / "void").mkdir()
    assert_refused(run("check", torus, tmp_path / "void"), "void")
    assert_refused(run("diff", tmp_path / "void", routed), "--fabric")


def test_a_reader_of_the_pipe_that_leaves_is_no_error(torus, routed, python):
    """An example is ``ibnue quality ... | head -n 1``."""
    process = python("-m", "routing.cli", "quality", torus, routed, "--links", 1000)
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == 141  # this is the status after SIGPIPE, not the status of a finding


def test_interrupt_leaves_nothing_behind(tmp_path, python):
    """After Ctrl-C while files are written, the status is 130, one line is printed, and no file is left."""
    run("fabric", "torus", "12x12x8", "-o", tmp_path / "big.net")
    process = python(
        "-m", "routing.cli", "route", tmp_path / "big.net", "-e", "minhop", "--effort", "0", "-o", tmp_path / "out"
    )
    # The temporary folder is next to its target.
    until(lambda: process.poll() is not None or list(tmp_path.glob(".out.*")))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130, err
    assert err.strip() == "ibnue: interrupted"
    assert [path.name for path in tmp_path.iterdir()] == ["big.net"]


def test_route_from_earlier_tables(torus, routed, tmp_path):
    """If a cable is lost, only the entries over it change.  When the cable returns, the earlier tables return."""
    result = run("route", torus, "--fail", "sw1.1/2", "--previous", routed, "-o", tmp_path / "less", "--json")
    assert result.exit_code == 0, result.stderr
    reported = json.loads(result.stdout)
    assert reported["certified"]
    assert reported["rerouted"]["method"] == "repaired"
    broken, changed = (reported["rerouted"][f"entries_{what}"] for what in ("broken", "changed"))
    assert 0 < broken <= changed <= 3 * broken
    assert run("fabric", torus, "--fail", "sw1.1/2", "-o", tmp_path / "less.net").exit_code == 0
    back = run("route", torus, "--previous", tmp_path / "less", "--was", tmp_path / "less.net")
    assert back.exit_code == 0, back.stderr
    assert "how" in back.stdout
    same = run("route", torus, "--previous", routed, "--json")
    assert json.loads(same.stdout)["rerouted"]["method"] == "unchanged"
    fresh = run("route", torus, "--fail", "sw1.1/2", "--previous", routed, "--stability", "fresh", "--json")
    assert json.loads(fresh.stdout)["rerouted"]["method"] == "fresh"


@pytest.mark.parametrize("option", [("--was", "ring:4"), ("--stability", "full")])
def test_options_that_need_earlier_tables(torus, option):
    assert_refused(run("route", torus, *option), option[0], "--previous")


def test_earlier_tables_that_are_not_what_is_asked_for(torus, routed, tmp_path):
    """The earlier tables would be kept unchanged, so the contradiction has to be reported."""
    assert_refused(run("route", torus, "--previous", routed, "-e", "nue"), "those of auto, not of nue", "-e auto")
    few = run("route", torus, "--previous", routed, "--port-vls", 4)
    assert_refused(few, "use VLs up to 7, --port-vls allows 4 (use --port-vls 8,")
    assert run("route", torus, "-e", "nue", "-o", tmp_path / "nue").exit_code == 0
    again = ["route", torus, "-e", "nue", "--previous", tmp_path / "nue", "--vls", 1]
    assert_refused(run(*again), "use 8 VLs, --vls allows 1", "--stability fresh")
    assert json.loads(run(*again, "--stability", "fresh", "--json").stdout)["vls"] == 1


def test_earlier_tables_say_which_engine_goes_on(torus, tmp_path):
    assert run("route", torus, "-e", "lash", "-o", tmp_path / "lash").exit_code == 0
    less = ["route", torus, "--fail", "sw1.1/2", "--previous", tmp_path / "lash", "--json"]
    reported, named = (json.loads(run(*less, *more).stdout) for more in ([], ["-e", "lash"]))
    assert (reported["engine"], reported["rerouted"]) == ("lash", named["rerouted"])
    assert reported["rerouted"]["method"] == "repaired"
    fresh = json.loads(run(*less, "--stability", "fresh").stdout)
    assert (fresh["engine"], fresh["rerouted"]["method"]) == ("lash", "fresh")
    refused = run(*less, "-e", "updn")  # the option names the default, but was given explicitly
    assert_refused(refused, "those of lash, not of updn", "leave -e out")


def test_earlier_tables_that_are_not_ours_go_on_with_the_usual_engine(torus, routed):
    dump = ["route", torus, "--previous", routed / "opensm-lfts.dump", "--fail", "sw1.1/2", "--json"]
    assert json.loads(run(*dump).stdout)["rerouted"]["method"] == "repaired"
    assert_refused(run(*dump, "-e", "nothing"), "there is no engine 'nothing'")


def test_earlier_tables_with_a_credit_loop_are_not_kept_by_an_engine_that_promises_none(torus, tmp_path):
    loops = tmp_path / "loops"
    assert run("route", torus, "-e", "minhop", "-o", loops).exit_code == 1
    result = run("route", torus, "-e", "updn", "--previous", loops / "opensm-lfts.dump", "--json")
    assert result.exit_code == 0, result.stderr
    reported = json.loads(result.stdout)
    assert reported["certified"]
    assert reported["rerouted"]["method"] == "fresh"
    assert reported["rerouted"]["reason"] == "the previous tables have no certificate"


def test_earlier_tables_of_another_fabric(torus, routed):
    assert_refused(run("route", "ring:4", "--previous", routed), "the bundle is for another fabric", "--was")


def test_the_remedy_for_a_damaged_bundle_is_not_another_fabric(torus, routed, tmp_path):
    (tmp_path / "ibnue.npz").write_bytes((routed / "ibnue.npz").read_bytes()[:-99])
    assert_refused(run("route", torus, "--previous", tmp_path), "cut short or damaged; make it again")


def test_tables_without_traffic_have_no_share(tmp_path):
    assert run("route", "full-mesh:1", "-e", "updn", "-o", tmp_path / "t").exit_code == 0
    result = run("quality", "full-mesh:1", tmp_path / "t")
    assert "no channel carries traffic" in result.stdout
    assert "inf" not in result.stdout


def test_earlier_tables_keep_the_vls_that_are_for_others(torus, tmp_path):
    """New tables begin with the first VL of the earlier tables, even if the engine routes from scratch."""
    made = ["route", torus, "-e", "nue", "--vls", 2, "--first-vl", 3, "-o", tmp_path / "tables"]
    assert run(*made).exit_code == 0
    again = ["route", torus, "--previous", tmp_path / "tables"]
    assert_refused(run(*again, "--first-vl", 0), "begin at VL 3, --first-vl says 0")
    assert_refused(run(*again, "--vls", 1), "use 2 VLs, --vls allows 1 (use --vls 2,")
    for stability in ("full", "fresh"):
        less = [*again, "--vls", 2, "--fail", "sw1.1/2", "--stability", stability, "-o", tmp_path / stability]
        assert run(*less).exit_code == 0
        with np.load(tmp_path / stability / "ibnue.npz") as found:
            assert (int(found["sl"].min()), int(found["vls"])) == (3, 5)


def test_earlier_tables_keep_their_roots(torus, tmp_path):
    """New tables have the roots of the earlier tables, even if the engine routes from scratch.  Other roots are
    refused.
    """
    roots = ["--root", "sw1.1", "--root", "sw2.2"]
    assert run("route", torus, "-e", "updn", *roots, "-o", tmp_path / "tables").exit_code == 0
    again = ["route", torus, "--previous", tmp_path / "tables"]
    assert run(*again, *roots).exit_code == 0
    reported = "the tables of --previous have the roots sw1.1, sw2.2, not sw0.2 (leave them out, or --stability fresh"
    assert_refused(run(*again, "--root", "sw0.2"), reported)
    assert_refused(run(*again, "--root", "sw9.9"), "no switch is named 'sw9.9'")
    (tmp_path / "roots").write_text("0x10\n")
    assert_refused(run(*again, "--root-guid-file", tmp_path / "roots"), "no switch has GUID 0x0000000000000010")
    assert_refused(
        run("whatif", torus, "--tables", tmp_path / "tables", "--root", "sw0.2"), "the tables of --tables have"
    )
    fresh = ["--stability", "fresh", "--json"]
    assert first_switches(*again, *fresh) == {"sw1.1"}
    assert first_switches(*again, *fresh, "--root", "sw0.2") == {"sw0.2"}
    assert first_switches(*again, *fresh, "--fail", "sw1.1") == {"sw2.2"}
    assert first_switches(*again, *fresh, "--fail", "sw1.1", *roots) == {"sw2.2"}


def test_earlier_tables_without_roots_are_not_kept_where_some_are_asked_for(torus, routed):
    reported = "the tables of --previous were made without roots, not from sw1.1 (leave them out, or --stability fresh"
    assert_refused(run("route", torus, "--previous", routed, "--root", "sw1.1"), reported)
    dump = ["route", torus, "--previous", routed / "opensm-lfts.dump", "--root", "sw1.1"]
    assert_refused(run(*dump), "were made without roots")


def first_switches(*words):
    result = run(*words)
    assert result.exit_code == 0, result.stderr
    return set(json.loads(result.stdout)["options"]["first_switches"])


def test_earlier_tables_have_to_be_safe_for_replies_where_these_count(torus, tmp_path):
    assert run("route", torus, "-e", "nue", "-o", tmp_path / "tables").exit_code == 0
    again = ["route", torus, "--previous", tmp_path / "tables", "--reversible"]
    assert_refused(run(*again), "the tables of --previous are not proven for replies")
    assert_refused(run("whatif", torus, "--tables", tmp_path / "tables", "--reversible"), "not proven for replies")
    fresh = run(*again, "--stability", "fresh", "--json")
    assert json.loads(fresh.stdout)["strength"] == "reversible"


def test_patterns_that_are_not_asked_for_have_no_figures(torus, routed):
    """The figures are missing, because 0 would mean that no traffic arrives."""
    result = run("quality", torus, routed, "--patterns", 0)
    assert [name for name in ("bisection", "shift", "permutation", "all-to-all") if name in result.stdout] == [
        "all-to-all"
    ]
    assert json.loads(run("quality", torus, routed, "--patterns", 0, "--json").stdout)["shift_mean"] is None
    reported = json.loads(run("route", torus, "-e", "updn", "--json").stdout)["quality"]
    assert reported["permutation_min"] is reported["shift_mean"] is None
    assert reported["bisection_mean"] > 0


def test_shares_without_limit_are_null_in_a_comparison(tmp_path):
    assert run("route", "full-mesh:1", "-e", "updn", "-o", tmp_path / "t").exit_code == 0
    result = run("diff", tmp_path / "t", tmp_path / "t", "--fabric", "full-mesh:1", "--json")
    assert result.exit_code == 0, result.stderr
    reported = json.loads(result.stdout)
    assert reported["all_to_all_before"] is reported["all_to_all_after"] is None


def test_more_entries_move_towards_the_balance_of_fresh_tables(tmp_path):
    made = ["torus:4x4,cas=4", "-e", "nue"]
    assert run("route", *made, "-o", tmp_path / "whole").exit_code == 0
    faults = ["--fail", "sw0.0/6", "--fail", "sw1.2/6", "--fail", "sw2.1/8"]
    repair = ["route", *made, *faults, "--previous", tmp_path / "whole", "--stability", "full", "--json"]
    plain, more = (json.loads(run(*repair, *options).stdout) for options in ((), ("--rebalance", 20)))
    assert plain["certified"] and more["certified"]
    assert more["rerouted"]["all_to_all_kept"] > plain["rerouted"]["all_to_all_kept"]
    assert more["rerouted"]["entries_changed"] <= plain["rerouted"]["entries_changed"] + 20
    ratio = more["quality"]["all_to_all"] / plain["quality"]["all_to_all"]
    assert ratio == pytest.approx(more["rerouted"]["all_to_all_kept"] / plain["rerouted"]["all_to_all_kept"])
    whole = json.loads(run("quality", made[0], tmp_path / "whole", "--json").stdout)
    for found in (plain, more):
        left = found["quality"]["bisection_mean"] / whole["bisection_mean"]
        assert found["rerouted"]["bisection_kept"] == pytest.approx(left)
    text = run(*repair[:-1]).stdout
    shares = (100 * plain["rerouted"][key] for key in ("all_to_all_kept", "bisection_kept"))
    assert "kept          {:.1f} % of the all-to-all rate, {:.1f} % of the bisection\n".format(*shares) in text
    assert_refused(run("route", *made, "--rebalance", 20), "--rebalance", "--previous")
    fresh = run("route", *made, "--previous", tmp_path / "whole", "--stability", "fresh", "--rebalance", 20)
    assert_refused(fresh, "leave --rebalance out")


@pytest.fixture
def proofs(monkeypatch):
    """Return a list that receives the number of threads of each proof of whole tables."""
    reported = []

    def counted(fabric, routing, *, threads=2, **options):
        reported.append(threads)
        return prove(fabric, routing, threads=threads, **options)

    for module in (routing.publish, routing.deadlock.proof, routing.reroute.verify):
        monkeypatch.setattr(module, "prove", counted)
    return reported


def test_tables_are_proven_once_with_the_threads_that_are_given(torus, tmp_path, proofs):
    assert run("route", torus, "--threads", 3, "-o", tmp_path / "out").exit_code == 0
    assert proofs == [3]


def test_a_re_route_proves_the_earlier_tables_and_the_new_ones_once(torus, routed, proofs):
    result = run("route", torus, "--fail", "sw1.1/2", "--previous", routed, "--threads", 3, "--json")
    assert json.loads(result.stdout)["certified"]
    assert proofs == [3]  # the earlier tables were proven; the proof of the new tables covers only changed entries
    del proofs[:]
    assert run("route", torus, "--previous", routed, "--threads", 3).exit_code == 0
    assert proofs == [3]
    del proofs[:]
    fresh = run("route", torus, "--fail", "sw1.1/2", "--previous", routed, "--threads", 3, "--stability", "fresh")
    assert fresh.exit_code == 0
    assert proofs == [3, 3]
